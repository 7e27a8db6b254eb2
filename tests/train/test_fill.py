"""Training on, uncounted, while other jobs of a group still measure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from gpubench.train.data.opened import OnDevice
from gpubench.train.loop import Loop, Segment
from gpubench.train.place import Place
from gpubench.train.strategies.single import Single
from gpubench.train.timing import step_clock

PLACE = Place(rank=0, world=1, devices=(torch.device("cpu"),), rendezvous=Path("none"))


@dataclass
class Numbered:
    """Batches that say which they are: epoch and number."""

    steps_per_epoch: int
    opened: list[int] = field(default_factory=list)
    """Epochs that were begun."""

    def train_epoch(self, epoch: int) -> Iterator[tuple[int, int]]:
        self.opened.append(epoch)
        return ((epoch, number) for number in range(self.steps_per_epoch))

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
        self.told: list[dict[str, Any]] = []
        self.firsts: list[int] = []
        self.loop = Loop(
            self.data,
            self.step,  # type: ignore[arg-type]
            Single(PLACE),
            step_clock(PLACE),
            self.told.append,
            lambda: self.firsts.append(len(self.step.seen)),
        )

    def run(self, *segments: Segment, continuing: bool) -> None:
        for segment in segments:
            self.loop.run(segment, continuing=continuing)


def segment(number: int, steps: int, *, fresh: bool) -> Segment:
    return Segment(number=number, steps=steps, measured=True, fresh=fresh)


def batches(per_epoch: int, count: int) -> list[tuple[int, int]]:
    """The first ones of epoch after epoch."""
    return [divmod(number, per_epoch) for number in range(count)]


@given(per_epoch=st.integers(1, 6), epochs=st.integers(1, 3), more=st.integers(1, 20))
def test_epochs_go_on_where_the_measured_ones_stopped(per_epoch: int, epochs: int, more: int) -> None:
    bench = Bench(per_epoch)
    bench.run(*(segment(k, per_epoch, fresh=True) for k in range(epochs)), continuing=False)
    asked: list[int] = []

    def over(step: int) -> bool:
        asked.append(step)
        return step == more

    bench.loop.fill(epochs, per_epoch, continuing=False, over=over)
    assert asked == list(range(1, more + 1)), "after each step, with how many there were"
    assert bench.step.seen == batches(per_epoch, epochs * per_epoch + more)
    assert bench.data.opened == list(range(epochs + -(-more // per_epoch))), "no epoch is begun for nothing"


@given(per_epoch=st.integers(1, 6), measured=st.integers(1, 10), more=st.integers(1, 20))
def test_steps_go_on_in_the_same_stream_of_batches(per_epoch: int, measured: int, more: int) -> None:
    bench = Bench(per_epoch)
    bench.run(segment(0, measured, fresh=True), continuing=True)
    bench.loop.fill(1, per_epoch, continuing=True, over=lambda step: step == more)
    assert bench.step.seen == batches(per_epoch, measured + more)


@given(more=st.integers(1, 20))
def test_what_was_measured_stays_as_it_was(more: int) -> None:
    bench = Bench(4)
    bench.run(segment(0, 4, fresh=True), segment(1, 4, fresh=True), continuing=False)
    loop = bench.loop
    before = list(loop.measured_step_s), list(loop.later_step_s), dict(loop.phases), list(bench.told)
    loop.fill(2, 4, continuing=False, over=lambda step: step == more)
    assert (loop.measured_step_s, loop.later_step_s, loop.phases, bench.told) == before
    assert len(loop.measured_step_s) == 8
    assert bench.firsts == [1], "the first step is the first of all"
