from __future__ import annotations

import os
import signal

import pytest

from gpubench.datasets import pool
from gpubench.errors import UnusableError


def test_results_come_in_the_order_of_the_tasks() -> None:
    tasks = [(n,) for n in range(101)]
    assert pool.each("builtins:sum", tasks, shared={"start": 5}, processes=3) == [n + 5 for n in range(101)]


def test_no_tasks_need_no_processes() -> None:
    assert pool.each("builtins:sum", [], shared={}) == []


def test_an_exception_of_a_worker_is_raised_here() -> None:
    with pytest.raises(FileNotFoundError) as caught:
        pool.each("os:listdir", ["/", "/nowhere"], shared={}, processes=1)
    assert caught.value.filename == "/nowhere"


def test_a_worker_that_dies_is_an_error_not_a_hang() -> None:
    with pytest.raises(UnusableError, match="was killed"):
        pool.each("os:_exit", [9], shared={}, processes=1)


def test_workers_leave_signals_to_the_parent() -> None:
    answers = pool.each("signal:getsignal", [signal.SIGINT, signal.SIGTERM], shared={}, processes=1)
    assert answers == [signal.SIG_IGN, signal.SIG_IGN]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_workers_have_a_process_group_of_their_own() -> None:
    groups = pool.each("os:getpgid", [0, 0], shared={}, processes=2)
    assert os.getpgid(0) not in groups
