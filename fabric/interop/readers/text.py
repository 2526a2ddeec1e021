"""Read a text file that a person gave, saying what is wrong with it in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.files import read_whole
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file (a byte order mark is dropped); InputError when it is not one."""

    def refuse(text: str, fix: str) -> InputError:
        return InputError([Problem("import.file", path.name, text, fix, str(path))])

    try:
        if path.is_dir():
            raise refuse("this is a folder", "name a file in it")
        text = read_whole(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse("the file is not UTF-8 text", "save it as UTF-8 CSV or YAML") from error
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}", "check the name and its rights") from error
    except ValueError as error:
        # a NUL inside the name itself
        raise refuse("this is not a file name", "check the name") from error
    if "\0" in text:
        raise refuse("the file holds NUL bytes, it is not text", "save it as UTF-8 CSV or YAML")
    if not text.strip():
        raise refuse("the file is empty", "give a cable map")
    return text
