"""The command line: one file per verb under `verbs`, imported only when asked for."""
