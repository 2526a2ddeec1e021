"""Real devices over SSH: netmiko sessions under Nornir, one session per device for all its questions.

An error of one device is its own answer and never stops the others. A session that drops is made once more; a prompt
that changes (a new host name) does not matter: the end of a command is found by a marker of our own, in sonic-cli by
the form of its prompts.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Any

from validators.devices.answers import Answer, Ask, unasked, unreached
from validators.devices.dialects import SONIC_CLI, UNPROVEN, command_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from validators.devices.hosts import Host

_WORKERS = 16
# paramiko's words for a far end that takes the connection and then says nothing, or ends it
_NO_GREETING = ("Error reading SSH protocol banner", "No existing session")
# of sonic-cli, whatever the host's name has become: `leaf-01# `, `leaf-01(config)# `
_CLI_PROMPT = r"(?:^|\n)[\w.-]+(?:\([\w./ -]*\))?# ?$"


class _SessionLostError(Exception):
    """A session was not made, or did not last until the answer; the text says why."""


def _where(host: Host) -> str:
    """Who is asked where, as ssh is told."""
    address = f"[{host.hostname}]" if ":" in host.hostname else host.hostname
    return f"{host.username}@{address}:{host.port}"


def _reason(error: BaseException) -> str:
    """Why there is no session, in a line: the network's word or paramiko's, not netmiko's page of advice."""
    from netmiko.exceptions import NetmikoTimeoutException
    from paramiko.ssh_exception import NoValidConnectionsError

    plain = error
    while isinstance(plain, NetmikoTimeoutException) and (inner := plain.__cause__ or plain.__context__):
        plain = inner
    if isinstance(plain, NoValidConnectionsError):  # one per address of the name
        plain = next(iter(plain.errors.values()))
    if isinstance(plain, EOFError):
        return "connected, and the far end ended it"
    text = getattr(plain, "strerror", None) or str(plain)
    if text.startswith(_NO_GREETING):
        return "connected, but no SSH greeting came"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:2]) if lines else type(plain).__name__


class SshDevices:
    """An engine for a site reached over SSH. `timeout_s` bounds logging in and each command."""

    name = "ssh"
    physical = True
    rounds: int | None = None

    def __init__(self, hosts: dict[str, Host], timeout_s: float = 30.0) -> None:
        for library in ("paramiko", "netmiko", "nornir"):
            # what goes wrong is the device's answer; without a handler they print tracebacks on standard error
            logging.getLogger(library).addHandler(logging.NullHandler())
        self.hosts, self.timeout_s = hosts, timeout_s
        self.unproven: Sequence[str] = tuple(name for name, host in hosts.items() if host.dialect in UNPROVEN)
        self._sessions: dict[str, Any] = {}
        self._nornir: Any = None
        self._closed = False

    def gather(self, asks: Iterable[Ask], sample: int = 0) -> dict[Ask, Answer]:
        """Ask all devices in parallel, each its questions in order."""
        del sample
        wanted: dict[str, list[Ask]] = {}
        found: dict[Ask, Answer] = {}
        for ask in asks:
            if ask.device in self.hosts:
                wanted.setdefault(ask.device, []).append(ask)
            else:
                found[ask] = Answer(error="not in the hosts file")
        found |= self._in_parallel(wanted)
        return found

    def _in_parallel(self, wanted: dict[str, list[Ask]]) -> dict[Ask, Answer]:
        if not wanted:
            return {}
        found: dict[Ask, Answer] = {}

        def questions(task: Any) -> Any:
            from nornir.core.task import Result

            return Result(host=task.host, result=self._ask_in_turn(wanted[task.host.name]))

        results = self._chosen(set(wanted)).run(task=questions)
        for name, asks in wanted.items():
            said = results[name][0] if name in results else None
            answers = said.result if said is not None and not said.failed else {}
            reason = f"the session task broke: {said.exception}" if said is not None and said.failed else "no answer"
            found |= {ask: answers.get(ask, Answer(error=reason)) for ask in asks}
        return found

    def _ask_in_turn(self, asks: list[Ask]) -> dict[Ask, Answer]:
        """Ask one device; one that cannot be reached is not tried anew, and not logged in to in vain, per question."""
        answers: dict[Ask, Answer] = {}
        gone: Answer | None = None
        for ask in asks:
            if self._closed:
                break
            answers[ask] = gone or self._ask(ask)
            gone = gone or (None if answers[ask].reached else answers[ask])
        return answers

    def _chosen(self, names: set[str]) -> Any:
        from nornir.core import Nornir
        from nornir.core.inventory import Defaults, Groups, Hosts, Inventory
        from nornir.core.inventory import Host as NornirHost
        from nornir.plugins.runners import ThreadedRunner

        if self._nornir is None:
            inventory = Inventory(
                Hosts({n: NornirHost(name=n, hostname=h.hostname, port=h.port) for n, h in self.hosts.items()}),
                Groups(),
                Defaults(),
            )
            self._nornir = Nornir(inventory=inventory, runner=ThreadedRunner(num_workers=_WORKERS))
        self._nornir.data.reset_failed_hosts()
        return self._nornir.filter(filter_func=lambda host: host.name in names)

    def _ask(self, ask: Ask) -> Answer:
        dialect = self.hosts[ask.device].dialect
        command = command_for(dialect, ask.question)
        if not command:
            return unasked(dialect, ask.question)
        return self.run(ask.device, command)

    def run(self, device: str, command: str, timeout_s: float = 0.0) -> Answer:
        """Run a command; a dropped session is made once more, everything else that goes wrong is the answer."""
        if device not in self.hosts:
            return Answer(error="not in the hosts file")
        limit = timeout_s or self.timeout_s
        started = time.monotonic()
        try:
            answer = self._attempt(device, command, limit)
        except _SessionLostError:
            try:
                answer = self._attempt(device, command, limit)
            except _SessionLostError as error:
                answer = unreached(_where(self.hosts[device]), str(error))
        return Answer(answer.text, answer.error, time.monotonic() - started)

    def _attempt(self, device: str, command: str, limit: float) -> Answer:
        """Run a command in a session that stands, or is made. Raises _SessionLostError."""
        from netmiko.exceptions import (
            NetmikoAuthenticationException,
            NetmikoTimeoutException,
            ReadException,
            ReadTimeout,
        )
        from paramiko import SSHException

        host = self.hosts[device]
        try:
            session = self._session(device)
            if host.dialect == SONIC_CLI:
                return self._in_cli(session, command, limit)
            return self._marked(session, command, limit)
        except NetmikoAuthenticationException:
            return unreached(_where(host), "the device refused user name, password or key")
        except ReadTimeout:
            self._drop(device)
            return Answer(error=f"no end of the answer within {limit:g} s")
        except (NetmikoTimeoutException, ReadException, SSHException, OSError, EOFError, ValueError) as error:
            self._drop(device)
            raise _SessionLostError(_reason(error)) from error

    def _in_cli(self, session: Any, commands: str, limit: float) -> Answer:
        """Run lines in a shell that has neither markers nor exit codes: any prompt ends a command, `%Error` is one.

        With several lines each answer stands under the line that it belongs to.
        """
        lines = commands.splitlines()
        parts = []
        for line in lines:
            text = session.send_command(line, expect_string=_CLI_PROMPT, read_timeout=limit, strip_prompt=False)
            body = re.sub(_CLI_PROMPT, "", str(text).replace("\r", "")).strip("\n")
            if found := re.search(r"^\s*%\s?Error.*", body, re.MULTILINE):
                return Answer(body, f"`{line}`: {found[0].strip()}")
            parts.append(f"# {line}\n{body}" if len(lines) > 1 else body)
        return Answer("\n".join(parts))

    def _marked(self, session: Any, command: str, limit: float) -> Answer:
        """Run in a shell and find the end, and the exit code, by a marker that nobody can print by chance."""
        marker = f"kv{secrets.token_hex(6)}"
        # the echo of this line has the marker in two pieces, so only the real end matches
        line = f"{{ {command}; }} 2>&1; echo {marker[:7]}''{marker[7:]}:$?:"
        text = session.send_command(
            line,
            expect_string=rf"{marker}:\d+:",
            read_timeout=limit,
            strip_prompt=False,
            strip_command=False,
            cmd_verify=False,
        )
        body, found, rest = str(text).replace("\r", "").partition(f"{marker}:")
        echo = f"{marker[7:]}:$?:"
        if echo in body:
            body = body.rpartition(echo)[2].lstrip("\n")
        code = re.match(r"\d+", rest) if found else None
        if code is None:
            return Answer(body, "the answer has no end")
        return Answer(body, "" if code[0] == "0" else f"exit {code[0]}: {body.strip()[-300:]}")

    def _session(self, device: str) -> Any:
        from netmiko import ConnectHandler

        session = self._sessions.get(device)
        if session is not None and _open(session):
            return session
        host = self.hosts[device]
        options: dict[str, Any] = {
            "conn_timeout": min(self.timeout_s, 15),
            "auth_timeout": self.timeout_s,
            "banner_timeout": self.timeout_s,
        }
        if host.key_file:
            options |= {"use_keys": True, "key_file": host.key_file}
        if host.known_hosts:
            options |= {"alt_host_keys": True, "alt_key_file": host.known_hosts, "ssh_strict": True}
        session = ConnectHandler(
            device_type=host.platform,
            host=host.hostname,
            port=host.port,
            username=host.username,
            password=host.password or None,
            **options,
        )
        self._sessions[device] = session
        return session

    def _drop(self, device: str) -> None:
        session = self._sessions.pop(device, None)
        if session is not None:
            try:
                session.remote_conn.close()
            except (AttributeError, OSError):
                return

    def close(self) -> None:
        """End all sessions; what is being asked ends after the question that it is at."""
        self._closed = True
        for device in list(self._sessions):
            self._drop(device)


def _open(session: Any) -> bool:
    """Whether a session still stands; netmiko's own way types a NUL, which not every shell overlooks."""
    channel = session.remote_conn
    return bool(channel is not None and not channel.closed and channel.get_transport().is_active())
