"""Where the program begins: Ctrl-C while Python still reads our modules is no traceback either."""

import sys


def main() -> None:
    """Run `kvfabric`."""
    try:
        from fabric.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
