"""Training on, uncounted, while other jobs of a group still measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.schema.events import Told
from gpubench.train.data.opened import OnDevice
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.loop import Loop, Segment, pieces
from gpubench.train.strategies.single import Single
from gpubench.train.timing import step_clock

ASSIGNMENT = DeviceAssignment(rank=0, world=1, devices=(torch.device("cpu"),), rendezvous=Path("none"))


@dataclass
class Numbered:
    """Batches that say which they are: epoch and number."""

    steps_per_epoch: int
    opened: list[int] = field(default_factory=list)
    """Epochs that were begun."""

    def train_epoch(self, epoch: int, steps: int | None = None) -> Iterator[tuple[int, int]]:
        self.opened.append(epoch)
        return ((epoch, number) for number in range(steps or self.steps_per_epoch))

    def to_device(self, batch: Any, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return torch.tensor(batch), torch.zeros(1)

    def validation(self) -> None:
        return None


class Noting:
    """A step that only notes its batches."""

    def __init__(self) -> None:
        self.loss_sum = torch.zeros(())
        self.seen: list[tuple[int, ...]] = []

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:  # noqa: ARG002
        self.seen.append(tuple(images.tolist()))


class Bench:
    """A loop over numbered batches, and what it does to them."""

    def __init__(self, steps_per_epoch: int) -> None:
        self.data, self.step = Numbered(steps_per_epoch), Noting()
        self.told: list[Told] = []
        self.firsts: list[int] = []
        self.loop = Loop(
            self.data,
            self.step,  # type: ignore[arg-type]
            Single(ASSIGNMENT),
            step_clock(ASSIGNMENT),
            self.told.append,
            lambda: self.firsts.append(len(self.step.seen)),
        )

    def run(self, *segments: Segment) -> None:
        for segment in segments:
            self.loop.run(segment)


def segment(number: int, steps: int) -> Segment:
    return Segment(number=number, steps=steps, measured=True)


def batches(per_epoch: int, count: int) -> list[tuple[int, int]]:
    """The first ones of epoch after epoch."""
    return [divmod(number, per_epoch) for number in range(count)]


@given(per_epoch=st.integers(1, 6), epochs=st.integers(1, 3), more=st.integers(1, 20))
def test_epochs_go_on_where_the_measured_ones_stopped(per_epoch: int, epochs: int, more: int) -> None:
    bench = Bench(per_epoch)
    bench.run(*(segment(k, per_epoch) for k in range(epochs)))
    asked: list[int] = []

    def over(step: int) -> bool:
        asked.append(step)
        return step == more

    bench.loop.fill(epochs, per_epoch, over=over)
    assert asked == list(range(1, more + 1)), "after each step, with how many there were"
    assert bench.step.seen == batches(per_epoch, epochs * per_epoch + more)
    assert bench.data.opened == list(range(epochs + -(-more // per_epoch))), "no epoch is begun for nothing"


@given(per_epoch=st.integers(1, 6), warmup=st.integers(0, 10), measured=st.integers(1, 10))
def test_steps_are_pieces_of_epochs(per_epoch: int, warmup: int, measured: int) -> None:
    warm, counted = pieces(measured, warmup, per_epoch)
    assert [sum(one.steps for one in part) for part in (warm, counted)] == [warmup, measured]
    for part in (warm, counted):
        assert all(one.steps == per_epoch for one in part[:-1]), "all but the last are whole"
        assert all(1 <= one.steps <= per_epoch for one in part)
    assert [one.measured for one in (*warm, *counted)] == [False] * len(warm) + [True] * len(counted)
    bench = Bench(per_epoch)
    bench.run(*warm, *counted)
    assert bench.data.opened == list(range(len(warm) + len(counted))), "each begins with iter(loader)"
    assert bench.step.seen == [(one.number, k) for one in (*warm, *counted) for k in range(one.steps)]


@given(more=st.integers(1, 20))
def test_what_was_measured_stays_as_it_was(more: int) -> None:
    bench = Bench(4)
    bench.run(segment(0, 4), segment(1, 4))
    loop = bench.loop
    before = list(loop.measured_step_s), list(loop.later_step_s), dict(loop.phases), list(bench.told)
    loop.fill(2, 4, over=lambda step: step == more)
    assert (loop.measured_step_s, loop.later_step_s, loop.phases, bench.told) == before
    assert len(loop.measured_step_s) == 8
    assert bench.firsts == [1], "the first step is the first of all"
