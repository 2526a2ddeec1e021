"""What containerlab and Docker say when they refuse, in one line with what to do.

The words are those of containerlab 0.60 and Docker 20 to 29; what is not known here is passed on as it was said.
"""

from __future__ import annotations

import re

# in the order in which they decide: the first that is in the text
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"permission denied while trying to connect to the [Dd]ocker",
        "no rights to use Docker",
        "run it as root, or join the group `docker` and log in again",
    ),
    (r"requires sudo privileges", "containerlab wants root", "run it with sudo"),
    (
        r"Cannot connect to the Docker daemon at (?P<what>\S+?)\. ",
        "no Docker engine answers at {what}",
        "start Docker (`systemctl start docker`), or use `--engine uml`, which needs none",
    ),
    (
        r"image (?P<what>\S+) not found locally",
        "image {what} is not there",
        "`docker build -t {what} .` in the exported folder, or another `--image`",
    ),
    (
        r"(?:pull access denied for|manifest for|failed to resolve reference) \"?(?P<what>[^\s,\"]+)",
        "image {what} can neither be found here nor pulled",
        "load or build it, or name another with `--image`",
    ),
    (
        r"containers \[?\"?(?P<what>[^\]]+?)\"?\]? already exist",
        "containers of these names are there already: {what}",
        "destroy that lab, or export with `--name` and `--prefix` of your own",
    ),
    (
        r"the '(?P<what>[^']+)' lab has already been deployed",
        "a lab called {what} is running already",
        "`containerlab destroy --name {what}`, or export with another `--name`",
    ),
    (
        r"[Pp]ool overlaps with other one on this address space",
        "another Docker network has the addresses of the lab's management network",
        "remove that network (`docker network ls`), or export with the other `--management`",
    ),
    (
        r"Bind for (?P<what>\S+) failed: port is already allocated",
        "port {what} is in use",
        "stop what listens there (`ss -ltnp`), or take the port out of `ports:`",
    ),
    (
        r"listen (?:tcp|udp)4? (?P<what>\S+): bind: address already in use",
        "port {what} is in use",
        "stop what listens there (`ss -ltnp`), or take the port out of `ports:`",
    ),
    (
        r"failed to verify bind path: stat (?P<what>.+?): no such file",
        "{what} is missing",
        "the folder is not whole: export again",
    ),
    (r"no space left on device", "the disk is full", "`docker system df` says what takes the room"),
)


def explain(said: str) -> str:
    """Return one line for what a failed containerlab or Docker printed: what is wrong, and after a colon what to do.

    Text that is not known gives its last line, without the log's time and level.
    """
    for pattern, what, fix in _KNOWN:
        if found := re.search(pattern, said):
            words = {name: value.replace('" "', ", ") for name, value in found.groupdict().items()}
            return f"{what.format(**words)}: {fix.format(**words)}"
    lines = [line for line in said.splitlines() if line.strip()]
    last = lines[-1].strip() if lines else "it said nothing"
    logged = re.search(r'msg="((?:[^"\\]|\\.)*)"', last)
    return (logged[1].replace('\\"', '"') if logged else last).removeprefix("Error: ")
