"""An sshd of a test's own on 127.0.0.1, with its own host key, that knows one key."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Sshd:
    """Where it listens, the key it knows, one that it does not, and a file that knows its own."""

    port: int
    key: str
    stranger: str
    known_hosts: str


def _keygen(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return path


@contextmanager
def sshd(folder: Path, command: str) -> Iterator[Sshd]:
    """Run it: every session gets `command`, a line of shell."""
    host_key, key, stranger = (_keygen(folder / name) for name in ("host", "user", "stranger"))
    shutil.copy(f"{key}.pub", folder / "authorized")
    shell = folder / "device"
    shell.write_text(f"#!/bin/sh\ncd /\n{command}\n")
    shell.chmod(0o755)
    Path("/run/sshd").mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile {folder}/pid\nAuthorizedKeysFile {folder}/authorized\n"
        f"PermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
        f"StrictModes no\nMaxSessions 20\nPrintMotd no\nForceCommand {shell}\n"
    )
    process = subprocess.Popen(["/usr/sbin/sshd", "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{port} {Path(f'{host_key}.pub').read_text()}")
    try:
        yield Sshd(port, str(key), str(stranger), str(known))
    finally:
        process.terminate()
        process.wait(10)
