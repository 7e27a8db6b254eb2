"""A server that tests may kill."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest
from family import family

from gpubench.node.launch.fork_server import ForkServer


@pytest.fixture(scope="session")
def _left_whole() -> Iterator[list[ForkServer]]:
    """What the last test has left, for the next one."""
    servers: list[ForkServer] = []
    yield servers
    for server in servers:
        server.close()
        assert not psutil.pid_exists(server.pid)


@pytest.fixture
def own_server(_left_whole: list[ForkServer]) -> Iterator[ForkServer]:
    """One that a test may stop or kill. It takes seconds to start: if it was replaced, the next test gets that one."""
    running = _left_whole.pop() if _left_whole else ForkServer()
    running.wait_ready()
    yield running
    if _is_whole(running):
        _left_whole.append(running)
    else:
        running.close()


def _is_whole(server: ForkServer) -> bool:
    """Whether it waits for orders, and no process of a trial is left of it."""
    try:
        waits = psutil.Process(server.pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_STOPPED)
        return waits and not family(server)
    except psutil.NoSuchProcess:
        return False
