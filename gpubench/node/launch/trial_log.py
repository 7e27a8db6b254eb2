"""What a trial's processes print: a file that holds its first and its last megabytes, however much they print.

They write to the file themselves, so that the last words of a process that is killed are there. While they run, blocks
between the first and the last megabytes are given back to the file system where it can do that; at the end the file is
written anew without them.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from gpubench.basics import linux
from gpubench.basics.quoted import clean_line

HEAD_BYTES = 2 << 20
"""Kept from the beginning."""
TAIL_BYTES = 2 << 20
"""Kept from the end."""
LOOSE_BYTES = 16 << 20
"""What may lie between the two before blocks are given back."""
WORDS_BYTES = 256_000
"""In which the last words lie: a stack may follow them, or what thousands of threads print."""
_AFTER_ERROR = re.compile(
    r"frame #\d+: |Exception raised from |Search for `cuda|CUDA kernel errors might be |For debugging consider "
    r"|Compile with `TORCH_USE_CUDA_DSA`|Device-side assert(ion|ions) (tracking|were) |\S+\.cuh?:\d+: "
)
"""What stands below errors of torch: the stack in C++, the same advice for every error of CUDA, and what thousands of
threads of a kernel print of an assert, of which the process's end may cut the last line."""


class TrialLog:
    """The log of one job."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._given_back = HEAD_BYTES
        """Up to here the middle holds nothing any more."""

    def punch_middle_hole(self) -> None:
        """Gives the middle of a long log back to the file system. Cheap; to be called now and then while they print."""
        with contextlib.suppress(OSError):  # no log, or a file system without holes: the end bounds it
            end = self.path.stat().st_size - TAIL_BYTES
            if end - self._given_back > LOOSE_BYTES:
                with self.path.open("r+b") as file:
                    linux.punch_hole(file.fileno(), self._given_back, end - self._given_back)
                self._given_back = end

    def cut_middle(self) -> None:
        """Leaves the first and the last megabytes of a long log. Nobody may write to it any more."""
        with contextlib.suppress(OSError):  # it stays as it is, and its trial is none the worse for it
            size = self.path.stat().st_size
            left_out = size - HEAD_BYTES - TAIL_BYTES
            if left_out <= 0:
                return
            with self.path.open("r+b") as file:
                file.seek(size - TAIL_BYTES)
                tail = file.read(TAIL_BYTES)
                file.seek(HEAD_BYTES)
                file.write(f"\n… gpubench left out {left_out:,} bytes of this log …\n".encode())
                file.write(tail)
                file.truncate()

    def read_last_words(self) -> str:
        """The last line that says something; empty where there is none. Below an error of torch's, the error itself."""
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - WORDS_BYTES))
                lines = file.read(WORDS_BYTES).decode(errors="replace").splitlines()
        except OSError:
            return ""
        telling = [cleaned for line in lines if (cleaned := clean_line(line).strip())]
        without_stack = (line for line in reversed(telling) if not _AFTER_ERROR.match(line))
        return next(without_stack, telling[-1] if telling else "")[:300]

    def append_note(self, text: str) -> None:
        """Adds what gpubench has found out about the processes, as lines of its own."""
        with (
            contextlib.suppress(OSError),  # a full disk: the reason says the gist of it
            self.path.open("a", encoding="utf-8", errors="backslashreplace") as file,
        ):
            file.write(f"\n{text}\n")
