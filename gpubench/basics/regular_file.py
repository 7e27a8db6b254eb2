"""Files that anybody may have damaged, or replaced by something that is no file: read whole, or refused at once."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LARGEST = 128 << 20
"""Bytes of a record or a plan.

A larger file (all holes, perhaps) is no work of gpubench; what is read fills several times its size. Measured: a record
has 9 KiB, and 0.8 KiB more for each epoch with 8 ranks, so 1,000 epochs make 0.8 MiB (3.5 MiB with 128 ranks, the most)
and 100,000, the most that a trial may have, 80 MiB; 64 jobs of 1,000 epochs
make 50 MiB. A plan whose axis has 100,000 values, the most, has 1 to 3 MiB.
"""


def read_regular_file(path: Path | str, largest: int = LARGEST) -> bytes:
    """The bytes of a file, whose like a reader never waits for: at most so many.

    Raises OSError, with a reason in `strerror`, for all that can't be read and for what is no regular file: the reader
    of a FIFO would wait for ever, a device may never end, and a link in somebody else's folder may lead to any file.
    """
    try:
        # Without O_NONBLOCK to open a FIFO is to wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "a link, which is not followed", os.fspath(path)) from None
        raise
    try:
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no regular file", os.fspath(path))
        if status.st_size > largest:
            raise OSError(errno.EFBIG, f"larger than {largest >> 20} MiB", os.fspath(path))
        return _read_first_bytes(descriptor, status.st_size)
    finally:
        os.close(descriptor)


def _read_first_bytes(descriptor: int, size: int) -> bytes:
    """So many bytes of a file, or all that there are."""
    data = os.read(descriptor, size)  # as a rule all of them: a file object would take twice as long
    if len(data) == size:
        return data
    pieces = [data]
    while data and (missing := size - sum(map(len, pieces))) > 0:
        pieces.append(data := os.read(descriptor, missing))
    return b"".join(pieces)
