"""Files that anybody may have damaged, or replaced by something that is no file: read whole, or refused at once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 256 << 20
"""Bytes. No record or plan comes near; a larger file (all holes, perhaps) would take the memory of the machine."""


def read_regular(path: Path) -> bytes:
    """The bytes of a file, whose like a reader never waits for.

    Raises OSError, with a reason in `strerror`, for all that can't be read and for what is no regular file: the reader
    of a FIFO would wait for ever, and a device may never end.
    """
    try:
        # Without O_NONBLOCK to open a FIFO is to wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        if path.is_symlink():
            raise OSError(errno.ENOLINK, "a link to a file that is not there", os.fspath(path)) from None
        raise
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, "a folder", os.fspath(path))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
        if found.st_size > LARGEST:
            raise OSError(errno.EFBIG, f"larger than {LARGEST >> 20} MiB", os.fspath(path))
        return file.read(LARGEST)
