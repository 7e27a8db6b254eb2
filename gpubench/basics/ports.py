"""A port at one address of this host: reserved by one process, listened at by another."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def reserve_port(address: str) -> Iterator[int]:
    """A port of this host's IP address `address` that no other user gets meanwhile, though nobody listens there yet:
    `open_listener` does, in the process that is told of it. Raises OSError."""
    with _bind_socket(address, 0) as held:
        yield int(held.getsockname()[1])


def open_listener(address: str, port: int) -> socket.socket:
    """Listens at a reserved port: at this one address, and at no other of this host's. Raises OSError."""
    bound = _bind_socket(address, port)
    bound.listen(socket.SOMAXCONN)
    return bound


def _bind_socket(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        # Two sockets of one user that both say so may be bound there; connections go to the one that listens.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound
