"""The event loop of one attempt: what it asks of the watcher, and what it keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripted import Line, Scripted, epoch, hangs, hello, order, result

from gpubench.node import environment
from gpubench.node.launch import running_job
from gpubench.node.launch.attempt import run_attempt
from gpubench.node.launch.trial_log import HEAD_BYTES, TAIL_BYTES
from gpubench.node.watch.watcher import Watcher
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.events import Begin, End, StepsDone
from gpubench.schema.order import TrialOrder


class Edges(Watcher):
    """Notes the edges that it is told of; it watches nothing."""

    def __init__(self) -> None:
        super().__init__(None, environment.make_machine(None), (), (0,))
        self.seen: list[bool] = []

    def sample_counters_at_edge(self, *, first: bool = False) -> None:
        self.seen.append(first)


def tried(script: object, watcher: Watcher) -> Attempt:
    launcher = Scripted(lambda _: script)  # type: ignore[arg-type,return-value]
    orders = [order(batch_size=4, ranks=2, train_images=8)]
    (done,) = run_attempt(
        orders, [watcher], launcher, timeout_s=10, should_stop=lambda: False, look=lambda _: None
    )
    return done


def late_rank_0(order: TrialOrder) -> Iterator[Line]:
    """Rank 0 is the last to tell of every edge."""
    yield from hello(order)
    for number in range(3):
        yield from sorted(epoch(order, number), key=lambda e: (e.event, -e.rank))
    yield from result(order)


def test_the_counters_are_read_as_the_first_measured_window_begins_whichever_rank_tells_first() -> None:
    watcher = Edges()
    tried(late_rank_0, watcher)
    warmed_up, first, second = watcher.seen[::2]
    assert (warmed_up, first, second) == (False, True, False)


def test_a_window_of_which_nothing_is_told_is_as_far_as_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten seconds are expected. After its end, and in an epoch that tells its steps, the time says nothing."""
    now = [100.0]
    monkeypatch.setattr(running_job, "time", SimpleNamespace(monotonic=lambda: now[0]))
    job = running_job.RunningJob(order(ranks=2), Edges(), None)

    def step_at(second: float) -> int:
        now[0] = second
        return job.read_progress().step

    job.handle_event(Begin(rank=0, epoch=0, steps=50, measured=False))
    job.handle_event(StepsDone(rank=0, epoch=0, step=7))
    assert step_at(150.0) == 7
    job.handle_event(Begin(rank=0, epoch=1, steps=40, measured=True, seconds=10.0))
    now[0] = 151.0
    job.handle_event(Begin(rank=1, epoch=1, steps=40, measured=True, seconds=10.0))  # no new beginning
    assert [step_at(second) for second in (150.0, 152.5, 157.49, 160.0, 175.0)] == [0, 10, 29, 40, 40]
    job.handle_event(
        End(rank=0, epoch=1, measured=True, steps=40, t0=150, t1=175, first_batch_s=0, train_loss=1)
    )
    assert step_at(155.0) == 0


class Broken(Edges):
    """A watcher whose driver breaks as the trial ends."""

    def fetch_driver_samples(self) -> None:
        raise RuntimeError(f"the driver has gone, said watcher {id(self)}")


def test_what_fails_to_be_cleaned_keeps_nothing_else_from_it(tmp_path: Path) -> None:
    """One job's watcher fails at the end: all jobs are ended all the same, logs are cut, and the error is told."""
    watchers: list[Watcher] = [Broken(), Broken()]
    orders = []
    for place in range(2):
        log = tmp_path / f"{place}.txt"
        log.write_bytes(b"x" * (HEAD_BYTES + TAIL_BYTES + 1000))
        orders.append(order(batch_size=4, train_images=8, log=log))
    launcher = Scripted(lambda _: hangs)
    with pytest.raises(RuntimeError, match=f"said watcher {id(watchers[0])}"):
        run_attempt(orders, watchers, launcher, timeout_s=0.1, should_stop=lambda: False, look=lambda _: None)
    launcher.close()  # which finds out whether all have been ended
    for place in range(2):
        assert b"gpubench left out" in (tmp_path / f"{place}.txt").read_bytes()


def test_the_error_that_comes_first_is_told_not_those_of_the_cleaning() -> None:
    def looks(_: Sequence[JobProgress]) -> None:
        raise KeyError("the first")

    launcher = Scripted(lambda _: hangs)
    orders = [order(batch_size=4, train_images=8)]
    with pytest.raises(KeyError, match="the first"):
        run_attempt(orders, [Broken()], launcher, timeout_s=10, should_stop=lambda: False, look=looks)
    launcher.close()
