"""Ask the store what it knows of pieces of work, from where the store can be reached."""

from __future__ import annotations

import json
import sys

from validators.session.wire import Line


def main(arguments: list[str]) -> None:
    """Print the facts of each SESSION/TOKEN as JSON, by token: HOST PORT SESSION TOKEN [SESSION TOKEN ...]."""
    host, port, *names = arguments
    line = Line.to(host, int(port), 5.0)
    found = {}
    for session, token in zip(names[::2], names[1::2], strict=True):
        line.send({"op": "facts", "session": session, "token": token})
        found[token] = line.receive()
    line.close()
    print(json.dumps(found), flush=True)  # noqa: T201 - the parent reads it


if __name__ == "__main__":
    main(sys.argv[1:])
