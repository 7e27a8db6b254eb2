"""Which sweep of this host measures on which CPUs.

Several sweeps may work through one plan on one host; on the same CPUs they do so in turns, or they would slow each
other. A CPU is held by an address of the kernel's abstract namespace of sockets (unix(7)): one process alone can have
it, and it goes with its process, so that nothing stays behind of one that was killed, as a file in shared memory would.
"""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Collection


class CpuLocks:
    """The CPUs on which one sweep measures now."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    def take(self, folder_id: str, cpus: Collection[int]) -> bool:
        """Whether these CPUs are this sweep's now: False while another one measures on any of them.

        `folder_id`: of the results folder; sweeps into others are not asked after. Where the kernel gives no addresses,
        nobody can be kept apart, and they are this sweep's.
        """
        self.release()
        for cpu in sorted(cpus):
            address = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._sockets.append(address)
            try:
                address.bind(f"\0gpubench-{folder_id}-cpu-{cpu}")
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    self.release()
                    return False
        return True

    def release(self) -> None:
        """Gives them up."""
        for address in self._sockets:
            with contextlib.suppress(OSError):
                address.close()
        self._sockets.clear()
