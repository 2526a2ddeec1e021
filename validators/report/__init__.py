"""The report of a run: HTML, JUnit, JSON, CSV, Markdown, Prometheus; and the difference of two runs."""
