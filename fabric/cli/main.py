"""Entry point of `kvfabric`: finds the verbs, turns exceptions into exit codes, survives a closed pipe.

Exit codes: 0 pass, 1 a check failed or things differ, 2 input error, 3 could not run, 4 nothing ran; 128 and its number
after a signal.
"""

from __future__ import annotations

import errno
import importlib
import io
import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fabric import __version__
from fabric.cli.endings import (
    PipeBrokenError,
    broken_pipes_kept,
    ended_as_interrupted,
    outlive_readers,
    readers_left,
    silence,
)
from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_INPUT
from fabric.files import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.problem import Problem

_VERBS = Path(__file__).parent / "verbs"


class _VerbGroup(click.Group):
    """A click group whose commands are the modules beside it, imported when used or listed."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with broken_pipes_kept():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with broken_pipes_kept():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(path.stem.rstrip("_") for path in _VERBS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        stem = cmd_name if (_VERBS / f"{cmd_name}.py").exists() else f"{cmd_name}_"
        command: click.Command = importlib.import_module(f"fabric.cli.verbs.{stem}").command
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        formatter.write("\n" + _EPILOG)


_EPILOG = """\
Examples:
  kvfabric plan xoc-256                     what the site is
  kvfabric build xoc-256 --out out          plan, check, render and cable files
  kvfabric check ./my-site --external       our rules, then YANG, vtysh and nft

Exit codes: 0 pass, 1 failed or different, 2 input error, 3 could not run, 4 nothing ran.
"""


@click.group(cls=_VerbGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="kvfabric")
def cli() -> None:
    """Plan, render, lab and accept the network of an AI-inference cluster.

    SITE is a name under inventories/ (xoc-64 ... xoc-1024, xoc-64-rail ... xoc-1024-rail, minimal, lab, pods-100k) or
    a path to a folder or site.yaml.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit the process."""
    try:
        code = _run(argv)
    except KeyboardInterrupt:  # before or after our own hands are on it
        code = _INTERRUPTED
    if argv is None and code > _SIGNALLED:
        _leave(code)
    sys.exit(code)


_SIGNALLED = 128
_INTERRUPTED = _SIGNALLED + signal.SIGINT


def _leave(code: int) -> None:
    """Exit at once: what a signal ended is taken back by now, and threads that wait for a device are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run(argv: list[str] | None) -> int:
    from fabric.problem import CouldNotRunError, InputError

    _open_missing_streams()
    ended: list[signal.Signals] = []
    try:
        with ended_as_interrupted(ended):
            _require_docstrings()
            result = cli.main(args=argv, prog_name="kvfabric", standalone_mode=False)
            sys.stdout.flush()
    except InputError as error:
        return _refuse(error.problems, argv)
    except CouldNotRunError as error:
        return _could_not_run(str(error), argv)
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.Abort as error:
        return _ended(ended, argv, getattr(error.__cause__, "__notes__", []))
    except click.ClickException as error:
        return _misused(error, argv)
    except (BrokenPipeError, PipeBrokenError) as error:
        if not readers_left():
            return _could_not_run(f"a program that was written to has ended: {error}", argv)
        # who read what a program in a lab says has seen enough: not an error
        silence(sys.stdout, sys.stderr)
        return 0
    except OSError as error:
        from fabric.problem import Problem

        name = str(error.filename or "output")
        rule = f"file.{errno.errorcode.get(error.errno or 0, 'error').lower()}"
        fix = _FIXES.get(error.errno or 0, "check the path and its rights")
        if not error.filename:  # stdout itself: what it still holds must not be tried again at exit
            silence(sys.stdout)
        return _refuse((Problem(rule, name, str(error.strerror or error), fix),), argv)
    return result if isinstance(result, int) else 0


def _ended(ended: list[signal.Signals], argv: list[str] | None, notes: Sequence[str]) -> int:
    """Say that we were ended, with how to go on; return what a shell says of a program that a signal ended."""
    number = ended[0] if ended else signal.SIGINT
    text = "interrupted" if number is signal.SIGINT else f"ended by {number.name}"
    text = ". ".join([text, *notes])
    click.echo(f"kvfabric: {text}", err=True)
    _answer_json([_problem("ended", text)], argv)
    return 128 + number


_ELSEWHERE = "check the rights of the file and its folder, or choose another place"
_FIXES = {
    errno.EACCES: _ELSEWHERE,
    errno.EPERM: _ELSEWHERE,
    errno.EROFS: "this file system can only be read: choose another place",
    errno.ENOSPC: "make room on the disk, or choose another",
    errno.ENOENT: "check the path: its folder must be there",
    errno.ENOTDIR: "a part of the path is a file: name a folder",
    errno.EEXIST: "a file of that name is in the way: name another",
    errno.EISDIR: "it is a folder: name a file",
    errno.ENAMETOOLONG: "shorten the name",
    errno.EFBIG: f"give a file of at most {MOST_BYTES >> 20} MiB",
}


def _refuse(problems: Sequence[Problem], argv: list[str] | None) -> int:
    from fabric.cli.output import print_problems

    print_problems(problems)
    _answer_json(problems, argv)
    return EXIT_INPUT


def _could_not_run(text: str, argv: list[str] | None) -> int:
    click.echo(f"kvfabric: could not run: {text}", err=True)
    _answer_json([_problem("could-not-run", text)], argv)
    return EXIT_COULD_NOT_RUN


def _misused(error: click.ClickException, argv: list[str] | None) -> int:
    error.show()
    _answer_json([_problem("usage", error.format_message())], argv)
    return EXIT_INPUT


def _problem(rule: str, text: str) -> Problem:
    from fabric.problem import Problem

    return Problem(rule, "kvfabric", text)


def _answer_json(problems: Sequence[Problem], argv: list[str] | None) -> None:
    """Give who asked for JSON a document, also when there is no answer: what reads it must not fail on nothing."""
    from fabric.cli.output import print_json

    if _wants_json(sys.argv[1:] if argv is None else argv):
        print_json({"problems": [problem.to_dict() for problem in problems]})


def _require_docstrings() -> None:
    """Raise CouldNotRunError where Python left them out: checks are described by theirs."""
    if sys.flags.optimize > 1:
        from fabric.problem import CouldNotRunError

        raise CouldNotRunError("checks are described by their docstrings: take PYTHONOPTIMIZE=2 (`-OO`) away")


def _open_missing_streams() -> None:
    """Give streams that the caller closed (`>&-`) to the null device: a file opened later would get their number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", closefd=False))
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):
            # a terminal that lacks a letter (LC_ALL=C) shows its number
            stream.reconfigure(errors="backslashreplace")
    outlive_readers()


def _wants_json(argv: list[str]) -> bool:
    return "--format=json" in argv or ("--format", "json") in pairwise(argv)
