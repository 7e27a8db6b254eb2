"""Which sweep of this host has which GPUs for itself, and which measures on which CPUs.

Sweeps that start at the same moment find each other's GPUs idle; so a look at them is not enough. And several sweeps
may work through one plan on one host: on the same CPUs they do so in turns, or they would slow each other.

What is held is held by an address of the kernel's abstract namespace of sockets (unix(7)): one process alone can have
it, whoever's it is, and it goes with its process, so that nothing stays behind of one that was killed.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Iterable


class SweepLocks:
    """What one sweep has for itself among all of this host."""

    def __init__(self) -> None:
        self._held: dict[str, socket.socket] = {}

    def take_free(self, names: Iterable[str]) -> list[str]:
        """Takes those that no other sweep has; returns those that one has.

        Where the kernel gives no addresses nobody can be kept apart, and they are this sweep's.
        """
        others = []
        for name in names:
            if name in self._held:
                continue
            address = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                address.bind(f"\0gpubench-{name}")
            except OSError as error:
                address.close()
                if error.errno == errno.EADDRINUSE:
                    others.append(name)
            else:
                self._held[name] = address
        return others

    def try_take_all(self, names: Iterable[str]) -> bool:
        """Whether all of these are this sweep's now, in place of what it had; if not, it has none."""
        self.release()
        if others := self.take_free(names):
            self.release()
        return not others

    def release(self) -> None:
        """Gives all of them up."""
        for address in self._held.values():
            with contextlib.suppress(OSError):
                address.close()
        self._held.clear()
