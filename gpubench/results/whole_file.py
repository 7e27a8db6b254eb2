"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.litter import make_temporary_path

NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
"""What file systems answer that know no hard links."""


def write_whole(path: Path, data: str | bytes) -> None:
    """Writes beside `path`, syncs and renames: a reader sees the old file or the new one, never half of one.

    Raises UnusableError where that can't be done, and leaves nothing behind.
    """
    _write_then_place(path, data, Path.replace)


def write_new(path: Path, data: str | bytes) -> None:
    """The same of a file that nobody may have written before. Raises UnusableError where somebody has."""

    def link(temporary: Path, path: Path) -> None:
        try:
            os.link(temporary, path)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if path.exists():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            temporary.replace(path)
        temporary.unlink(missing_ok=True)

    _write_then_place(path, data, link)


def _write_then_place(path: Path, data: str | bytes, put: Callable[[Path, Path], object]) -> None:
    temporary = make_temporary_path(path)  # sweeps of several hosts may write the same table at once
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
        put(temporary, path)
    except (OSError, UnicodeEncodeError) as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else "it would hold the name of a file or folder that is no UTF-8; rename that one"
        )
        raise UnusableError(f"{path} can't be written: {reason}") from None
