"""The exit codes of every verb."""

EXIT_PASS = 0
EXIT_FAILED = 1
EXIT_INPUT = 2
EXIT_COULD_NOT_RUN = 3
EXIT_NOTHING_RAN = 4
