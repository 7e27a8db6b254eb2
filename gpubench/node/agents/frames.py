"""Messages over a pipe: a mark, the length, so many bytes of JSON, and the end of a line.

What bears no mark is none of ours: before the first message it is passed over where a login may greet, later it is
damage. SLURM hands a task's output on line by line: without its end a message would wait.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import struct
from array import array
from collections.abc import Iterator
from typing import Any

from gpubench.basics.checked import plain
from gpubench.basics.quoted import clean

MARK = b"gpb1"
"""Before each message: a login's greeting, or what else a command prints on its way, is told from one by it."""
_HEAD = struct.Struct(">4sQ")
_END = b"\n"
LARGEST = 1 << 32
"""Bytes of one message: more is damage."""
PIECE = 1 << 20
LONGEST_GREETING = 1 << 16
QUOTED = 200
"""Bytes of what is no message that are told of it."""


class ForeignError(Exception):
    """What came is no message. The text quotes it."""


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, array) else plain(value)


_encoded = json.JSONEncoder(separators=(",", ":"), default=_plain).encode


def send(descriptor: int, message: Any, patience_s: float | None = None) -> None:
    """Writes one message, all of it. Raises OSError where nobody reads it any more.

    `patience_s`: of a descriptor that does not block, how long its reader may take nothing in: TimeoutError then.
    """
    data = _encoded(message).encode()
    rest = memoryview(_HEAD.pack(MARK, len(data)) + data + _END)
    while rest:
        if patience_s is not None and not select.select([], [descriptor], [], patience_s)[1]:
            raise TimeoutError
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(descriptor, rest) :]


class Frames:
    """What was read of a pipe, in messages. `may_greet`: whatever started the writer may have printed something first,
    as a login's or a module's greeting."""

    def __init__(self, *, may_greet: bool = False) -> None:
        self._held = bytearray()
        self._may_greet = may_greet
        self._greeting = b""

    @property
    def greeting(self) -> str:
        """The beginning of what stood before the first message, as one line."""
        all_of_it = self._greeting + bytes(self._held) if self._may_greet else self._greeting
        return clean(all_of_it[:QUOTED].decode(errors="replace")).strip()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole with these bytes. Raises ForeignError."""
        self._held += data
        if self._may_greet and not self._pass_over():
            return
        while self._held:
            if not self._held.startswith(MARK[: len(self._held)]):
                raise ForeignError(clean(bytes(self._held[:QUOTED]).decode(errors="replace")).strip())
            if len(self._held) < _HEAD.size:
                return
            _, length = _HEAD.unpack_from(self._held)
            if length > LARGEST:
                raise ForeignError(f"a message of {length:,} bytes")
            end = _HEAD.size + length
            if len(self._held) < end + len(_END):
                return
            message = bytes(self._held[_HEAD.size : end])
            del self._held[: end + len(_END)]
            yield message

    def _pass_over(self) -> bool:
        """Whether the first message has begun; until then all but what may be its mark is a greeting."""
        at = self._held.find(MARK)
        passed = at if at >= 0 else max(0, len(self._held) - len(MARK) + 1)
        self._greeting += bytes(self._held[:passed])
        del self._held[:passed]
        if len(self._greeting) > LONGEST_GREETING:
            raise ForeignError(self.greeting)
        self._may_greet = at < 0
        return at >= 0
