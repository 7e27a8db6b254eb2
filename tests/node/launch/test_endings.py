"""Every way in which a trial can end, with real processes."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import time

import psutil
import pytest
from family import Spy, blamed, family, left, line_of
from msgspec import structs
from scripted import SIGKILLED

from gpubench.node.launch import fork_server
from gpubench.schema.events import Error, LeaderExit

MODELS = "tests/train/user_models.py:"


@pytest.fixture(autouse=True)
def _nobody_left(server):
    """Whatever a test did to its trial, none of the trial's processes outlives it, not even as a zombie."""
    server.wait_ready()
    yield
    deadline = time.monotonic() + 2  # the server reaps the leader a moment after it was told to
    while family(server) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert family(server) == []


def test_running_out_of_gpu_memory_is_a_result(train):
    ran = train(model=MODELS + "runs_out_of_gpu_memory")
    assert ran.status == "oom"
    assert ran.reason.startswith("OutOfMemoryError: ")
    assert "2.00 GiB" in ran.reason


def test_an_exception_gives_its_message_and_leaves_its_traceback_in_the_log(train):
    ran = train(model=MODELS + "raises")
    assert (ran.status, ran.reason) == ("failed", "ValueError: the moon is full")
    assert "Traceback" in ran.log
    assert "user_models.py" in ran.log


@pytest.mark.parametrize(
    ("model", "end"),
    [("exits", "3"), ("is_killed", "SIGKILL"), ("segfaults", "SIGSEGV"), ("aborts", "SIGABRT")],
)
def test_a_process_that_dies_leaves_how_and_its_last_words(train, model, end):
    ran = train(model=MODELS + model)
    assert ran.status == "failed"
    assert blamed(ran.reason) == (0, end)
    assert ran.done.last_words == "step three begins"
    assert ran.reason.endswith(f": {ran.done.last_words}")
    assert ran.seconds < 20


def test_a_hang_ends_at_the_deadline(train):
    ran = train(model=MODELS + "hangs", timeout_s=3)
    assert ran.status == "timeout"
    assert re.fullmatch(
        rf"did not end within 3 s; rank 0 was in user_models.py:{line_of('_block', 2)} _block; "
        "(loader worker 0 of rank 0 was in [^;]+; )?"  # where the machine is slow it is not done yet
        "last line of its output: step three begins",
        ran.reason,
    )
    assert ran.log.count("gpubench asked rank 0 ") == 1
    assert ran.log.count('user_models.py", line') > 1, "the whole stack"
    assert 3 <= ran.seconds < 5
    assert ran.outcome.result == {}


def test_a_stop_ends_the_trial_at_once(train):
    stop_at = time.monotonic() + 2
    ran = train(model=MODELS + "hangs", should_stop=lambda: time.monotonic() > stop_at)
    assert ran.status == "interrupted"
    assert time.monotonic() - stop_at < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [
        ("second_rank_raises", "failed", "ValueError: only rank one (rank 1)"),
        (
            "second_rank_runs_out_of_gpu_memory",
            "oom",
            "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. (rank 1)",
        ),
    ],
)
def test_the_first_rank_to_fail_gives_the_reason(train, model, status, reason):
    ran = train(model=MODELS + model, ranks=2, cpus=2, workers=2)
    assert (ran.status, ran.reason) == (status, reason)
    assert ran.seconds < 20


def test_a_rank_that_is_killed_gives_the_reason_not_the_rank_that_lost_it(train):
    ran = train(model=MODELS + "second_rank_is_killed", ranks=2, cpus=2, workers=2)
    assert ran.status == "failed"
    assert blamed(ran.reason) == (1, "SIGKILL")
    assert ran.seconds < 20


@pytest.mark.parametrize(
    ("model", "status"), [("leaves_a_daemon", "ok"), ("leaves_a_daemon_and_dies", "failed")]
)
def test_a_daemon_that_left_the_session_is_ended_too(train, model, status):
    ran = train(model=MODELS + model)
    assert ran.status == status
    said = next(json.loads(line) for line in ran.log.splitlines() if line.startswith("{"))
    assert not psutil.pid_exists(said["daemon"])


def test_loader_workers_go_with_the_deadline(train, server):
    spy = Spy(server, count=4)  # leader, rank, two workers
    ran = train(model=MODELS + "hangs", workers=2, timeout_s=2, look=spy)
    assert ran.status == "timeout"
    assert len(spy.seen) == 4
    _, left = psutil.wait_procs(spy.seen, timeout=0.5)  # the leader is reaped by the server, on our word
    assert not left, "not even as zombies"


def test_a_killed_loader_worker_fails_the_trial(train, server):
    def kill_a_worker(found):
        next(p for p in found if not p.children()).kill()

    ran = train(
        model=MODELS + "slow_step", epochs=None, window=50.0, workers=2, look=Spy(server, 4, kill_a_worker)
    )
    assert ran.status == "failed"
    assert re.search(
        "DataLoader worker .*(is killed by signal: Killed|ended while a batch was read)", ran.reason
    )


def test_a_killed_leader_fails_the_trial(train, server):
    def kill_the_leader(found):
        next(p for p in found if p.ppid() == server.pid).kill()

    spy = Spy(server, count=4, act=kill_the_leader)
    ran = train(model=MODELS + "hangs", workers=2, look=spy)
    assert ran.status == "failed"
    assert [event.code for event in ran.done.events if isinstance(event, LeaderExit)] == [-signal.SIGKILL]
    assert SIGKILLED in ran.reason
    assert left(spy.seen, within=1) == []


@pytest.mark.slow
def test_a_killed_server_fails_its_trial_and_is_replaced(train, own_server):
    first = own_server.pid
    spy = Spy(own_server, count=4, act=lambda _: psutil.Process(first).kill())
    ran = train(model=MODELS + "hangs", workers=2, look=spy, launcher=own_server)
    assert ran.status == "failed"
    assert ran.reason.startswith(f"the fork server {SIGKILLED}")
    assert left(spy.seen, within=1) == []
    assert train(model=MODELS + "tiny", launcher=own_server).status == "ok"
    assert own_server.pid != first
    assert not psutil.pid_exists(first)


@pytest.mark.slow
def test_a_server_that_does_not_start_a_trial_is_killed_and_its_trial_fails(train, own_server, monkeypatch):
    monkeypatch.setattr(fork_server, "LAUNCH_LIMIT_S", 1.0)
    first = psutil.Process(own_server.pid)
    first.suspend()
    ran = train(model=MODELS + "tiny", launcher=own_server)
    assert ran.status == "failed"
    assert ran.done.forced == ("failed", ran.reason)
    assert "within 1 s" in ran.reason
    assert ran.seconds < 10
    assert left([first], within=1) == []


class Altering:
    """A launcher that changes the order on its way."""

    def __init__(self, server, **changes):
        self.server, self.changes = server, changes

    def launch(self, order, should_stop):
        return self.server.launch(structs.replace(order, **self.changes), should_stop)


def test_a_trial_that_cannot_even_start_says_why(train, server):
    ran = train(launcher=Altering(server, cpu_ids=(4000,)))
    assert ran.status == "failed"
    (error,) = (event for event in ran.done.events if isinstance(event, Error))
    assert ran.reason == error.reason
    assert f"OSError: [Errno {errno.EINVAL}]" in ran.reason


def test_an_order_that_no_message_holds_ends_as_one_row_and_leaves_no_file_open(train, server):
    """A user's variant may list transforms without end."""
    pid, before = server.pid, psutil.Process(os.getpid()).num_fds()
    for ranks in (1, 2):
        ran = train(model=MODELS + "tiny", ranks=ranks, cpu=({"RandomHorizontalFlip": {}},) * 9_000)
        assert ran.status == "failed"
        assert ran.reason.startswith("the order can't be handed to the fork server: 253,")
        assert ran.reason.endswith("of at most 200,000; shorten what its variant lists")
    assert psutil.Process(os.getpid()).num_fds() == before
    assert train(model=MODELS + "tiny").status == "ok"
    assert server.pid == pid, "the same server"
