"""Messages over a SOCK_SEQPACKET socket: one `send` is one message, whoever else writes to it.

A Struct goes out as JSON; what comes in is JSON's plain values, which the receiver makes its own Struct of.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Sequence
from typing import Any

from gpubench.schema.catalog import MOST_RANKS
from gpubench.schema.validation import plain

LARGEST = 200_000
"""Bytes of one message at most; the kernel's default buffer holds a little more."""
EXIT_UNHEARD = 71
"""Exit code of a rank that can't speak to the parent any more."""
_to_json = json.JSONEncoder(separators=(",", ":")).encode
"""Bound here, before a user's model is loaded beside it, which may put another `json.dumps` in its place."""


def channel_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class TooLargeError(ValueError):
    """A message that no channel carries. The message says its size, and how large one may be."""


class Channel:
    """One end. Raises ConnectionError when the other end is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: Any, fds: Sequence[int] = (), *, wait: bool = True) -> None:
        """Sends one message, with open files where the other process needs them.

        `wait=False`: raises BlockingIOError where the other end has not read what was sent before. Raises
        TooLargeError, and then nothing was sent.
        """
        data = _to_json(plain(message)).encode()
        if len(data) > LARGEST:
            raise TooLargeError(f"{len(data):,} bytes, and at most {LARGEST:,} can be sent")
        flags = 0 if wait else socket.MSG_DONTWAIT
        if fds:
            socket.send_fds(self.sock, [data], list(fds), flags)
        else:
            self.sock.send(data, flags)

    def receive(self, timeout: float | None = None) -> Any:
        """The next message; None when `timeout` seconds pass without one.

        Raises ConnectionError at the end of the conversation.
        """
        if timeout is not None and not select.select([self.sock], [], [], timeout)[0]:
            return None
        return json.loads(self.receive_bytes())

    def receive_files(self) -> tuple[Any, list[int]]:
        """The next message and the open files that came with it. Raises as `receive`."""
        data, fds, _, _ = socket.recv_fds(self.sock, LARGEST, MOST_RANKS)
        if not data:
            raise ConnectionError("the other process is gone")
        return json.loads(data), fds

    def receive_bytes(self) -> bytes:
        """The next message as it came, cut after LARGEST + 1 bytes; open files that came with it are not taken.

        An empty one, which no `send` makes, is given out where the other end is still there. Raises as `receive`.
        """
        data = self.sock.recv(LARGEST + 1)
        if not data and self._has_hung_up():
            raise ConnectionError("the other process is gone")
        return data

    def _has_hung_up(self) -> bool:
        looked = select.poll()
        looked.register(self.sock, 0)
        return any(what & select.POLLHUP for _, what in looked.poll(0))

    def ask(self, message: Any, timeout: float) -> Any:
        """Sends a question and waits for its answer. Raises TimeoutError, ConnectionError."""
        self.send(message)
        answer = self.receive(timeout)
        if answer is None:
            raise TimeoutError(f"no answer to {message} within {timeout:g} s")
        return answer

    def close(self) -> None:
        self.sock.close()
