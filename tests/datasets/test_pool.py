from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from gpubench.basics.errors import UnusableError
from gpubench.datasets import pool


def test_results_come_in_the_order_of_the_tasks() -> None:
    tasks = [(n,) for n in range(101)]
    assert pool.map_on_cpus("builtins:sum", tasks, shared={"start": 5}, processes=3) == [
        n + 5 for n in range(101)
    ]


def test_an_exception_of_a_worker_is_raised_here() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        pool.map_on_cpus("os:listdir", ["/", "/nowhere"], shared={}, processes=1)
    assert caught.value.filename == "/nowhere"


def test_a_worker_that_dies_is_an_error_not_a_hang() -> None:
    with pytest.raises(UnusableError, match=r"ended \(out of memory, or .* over one of the 1 from 9"):
        pool.map_on_cpus("os:_exit", [9], shared={}, processes=1)


def test_the_caller_is_asked_while_a_worker_blocks_and_can_stop_it_all() -> None:
    class StoppedError(Exception):
        pass

    asked: list[float] = []

    def progress(done: int, total: int) -> None:  # noqa: ARG001
        asked.append(time.monotonic())
        if len(asked) == 3:
            raise StoppedError

    began = time.monotonic()
    with pytest.raises(StoppedError):
        pool.map_on_cpus("time:sleep", [600], shared={}, processes=1, progress=progress)
    assert time.monotonic() - began < 10


def test_a_worker_that_hangs_ends_it_with_the_file_s_name() -> None:
    with pytest.raises(UnusableError, match=r"no answer for 0.5 s; it may hang at one of the 1 from 600"):
        pool.map_on_cpus("time:sleep", [600], shared={}, processes=1, stall_s=0.5)


def test_a_blocked_worker_goes_with_its_killed_parent() -> None:
    code = "from gpubench.datasets import pool; pool.map_on_cpus('time:sleep', [600], shared={}, processes=1)"
    parent = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 20
    workers: list[psutil.Process] = []
    while not workers and time.monotonic() < deadline:
        workers = psutil.Process(parent.pid).children()
        time.sleep(0.05)
    time.sleep(1.0)  # it has its task by now
    workers[0].suspend()
    parent.kill()
    parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=5)
    assert not [p for p in alive if p.status() != psutil.STATUS_ZOMBIE]
