"""JSON messages over a SOCK_SEQPACKET socket: one `send` is one message, whoever else writes to it."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Sequence
from typing import Any

LARGEST = 200_000
"""Bytes of one message at most; the kernel's default buffer holds a little more."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """One end. Raises ConnectionError when the other end is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
        """Sends one message, with open files where the other process needs them."""
        data = json.dumps(message, separators=(",", ":")).encode()
        if len(data) > LARGEST:
            raise ValueError(f"message of {len(data)} bytes; at most {LARGEST}")
        if fds:
            socket.send_fds(self.sock, [data], list(fds))
        else:
            self.sock.send(data)

    def receive(self, timeout: float | None = None) -> tuple[dict[str, Any], list[int]] | None:
        """The next message and its files; None when `timeout` seconds pass without one.

        Raises ConnectionError at the end of the conversation.
        """
        if timeout is not None and not select.select([self.sock], [], [], timeout)[0]:
            return None
        data, fds, _, _ = socket.recv_fds(self.sock, LARGEST, 128)
        if not data:
            raise ConnectionError("the other process is gone")
        message: dict[str, Any] = json.loads(data)
        return message, fds

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Sends a question and waits for its answer. Raises TimeoutError, ConnectionError."""
        self.send(message)
        answer = self.receive(timeout)
        if answer is None:
            raise TimeoutError(f"no answer to {message.get('event')!r} within {timeout:g} s")
        return answer[0]

    def close(self) -> None:
        self.sock.close()
