"""Messages over a SOCK_SEQPACKET socket: one `send` is one message, whoever else writes to it.

A Struct goes out as JSON; what comes in is JSON's plain values, which the receiver makes its own Struct of.
"""

from __future__ import annotations

import errno
import json
import select
import socket
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from gpubench.schema.catalog import MOST_RANKS
from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import convert_to_plain, make_converter

LARGEST = 200_000
"""Bytes of one message at most; the kernel's default buffer holds a little more."""


def make_socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected ends."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Channel:
    """One end. Raises ConnectionError when the other end is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def fileno(self) -> int:
        return self.sock.fileno()

    def send(self, message: Any, fds: Sequence[int] = (), *, wait: bool = True) -> None:
        """Sends one message, with open files where the other process needs them. Raises OSError for a larger one than
        the kernel takes, and then nothing was sent; without `wait` also where the other end has not read the last."""
        data = json.dumps(convert_to_plain(message), separators=(",", ":")).encode()
        if len(data) > LARGEST:
            raise OSError(errno.EMSGSIZE, f"{len(data):,} bytes, of at most {LARGEST:,}")
        if fds:
            socket.send_fds(self.sock, [data], list(fds))  # takes no heed of its flags
        else:
            self.sock.send(data, 0 if wait else socket.MSG_DONTWAIT)

    def receive(self, timeout: float | None = None) -> Any:
        """The next message; None when `timeout` seconds pass without one.

        Raises ConnectionError at the end of the conversation.
        """
        if timeout is not None and not select.select([self.sock], [], [], timeout)[0]:
            return None
        return json.loads(self.receive_bytes())

    def receive_with_files(self) -> tuple[Any, list[int]]:
        """The next message and the open files that came with it. Raises as `receive`."""
        data, fds, _, _ = socket.recv_fds(self.sock, LARGEST, MOST_RANKS)
        if not data:
            raise ConnectionError("the other process is gone")
        return json.loads(data), fds

    def receive_bytes(self) -> bytes:
        """The next message as it came. Raises as `receive`."""
        if not (data := self.sock.recv(LARGEST)):
            raise ConnectionError("the other process is gone")
        return data

    def ask(self, message: Any, timeout: float) -> Any:
        """Sends a question and waits for its answer. Raises TimeoutError, ConnectionError."""
        self.send(message)
        answer = self.receive(timeout)
        if answer is None:
            raise TimeoutError(f"no answer to {message} within {timeout:g} s")
        return answer

    def close(self) -> None:
        self.sock.close()


# ---------------------------------------------------------------- what the parent and the fork server say to each other


class _Request(Struct, frozen=True, forbid_unknown_fields=True, tag_field="request"):
    """What the parent asks."""


class _Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="message"):
    """What the server tells."""


class StartTrial(_Request, frozen=True, kw_only=True, tag="run"):
    """Start a trial. An event socket for each rank comes with it."""

    order: TrialOrder


class ReapLeader(_Request, frozen=True, kw_only=True, tag="reap"):
    """A leader that was told to have ended may be forgotten: its process id is the system's again."""

    pid: int


Request = StartTrial | ReapLeader
read_request: Callable[[Any], Request] = make_converter(Request)


class ServerReady(_Message, frozen=True, kw_only=True, tag="ready"):
    """torch is imported: trials can be started."""


class ImportFailed(_Message, frozen=True, kw_only=True, tag="failed"):
    """torch can't be imported; the server ends."""

    reason: str


class TrialStarted(_Message, frozen=True, kw_only=True, tag="started"):
    """A trial's leader runs."""

    pid: int


class LeaderExited(_Message, frozen=True, kw_only=True, tag="exited"):
    """A leader has ended: how, as waitid(2) tells it."""

    pid: int
    code: int
    status: int


ServerMessage = ServerReady | ImportFailed | TrialStarted | LeaderExited
read_server_message: Callable[[Any], ServerMessage] = make_converter(ServerMessage)
