"""Files: a reader sees the old one or the new one, never half of one; and none is read that has no end."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

MOST_BYTES = 64 * 1024 * 1024


def read_whole(path: Path, most: int = MOST_BYTES) -> bytes:
    """Return what a file or a pipe holds. Raises OSError, EFBIG for more than `most` bytes: `/dev/zero` has no end."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def replace_file(path: Path, data: str | bytes, *, mode: int = 0o644, sync: bool = False) -> None:
    """Put `data` (text as UTF-8) at `path` in one step, by a temporary file beside it and a rename.

    `sync` waits until the data is on the disk, for files that cannot be made again. Raises OSError, and then leaves
    neither a temporary file nor a changed `path`.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.chmod(mode)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
