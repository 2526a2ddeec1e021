"""Flow-level questions: fair shares, ECMP, patterns, failures, restores."""
