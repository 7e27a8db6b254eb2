"""What a process trains, what it tells and when it is done, with batches that say which they are and made-up times."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import scripted
import torch

from gpubench.schema.events import Begin, End, Steps, StepsDone
from gpubench.schema.order import SteadyWindow, WholeEpochs
from gpubench.train import loop
from gpubench.train.data.opened import OnDevice
from gpubench.train.device_assignment import DeviceAssignment
from gpubench.train.protocols import EpochsProtocol, PeerJobs, SteadyProtocol
from gpubench.train.strategies.contract import Strategy
from gpubench.train.timing import StepClock, TimedWindow

CPU = torch.device("cpu")
ALONE = DeviceAssignment(rank=0, world=1, devices=(CPU,), rendezvous=Path("none"))
PER_EPOCH = 4


@dataclass
class Numbered:
    """Batches that say which they are: epoch and number."""

    steps_per_epoch: int = PER_EPOCH
    begun: list[int] = field(default_factory=list)
    """Epochs whose loader was started."""

    def iterate_epoch(self, epoch: int) -> Iterator[tuple[int, int]]:
        self.begun.append(epoch)
        return ((epoch, number) for number in range(self.steps_per_epoch))

    def iterate_stream(self) -> Iterator[tuple[int, int]]:
        return (divmod(number, self.steps_per_epoch) for number in itertools.count())

    def close(self) -> None:
        pass

    def move_and_transform(self, batch: Any, *, augment: bool = True) -> OnDevice:  # noqa: ARG002
        return torch.tensor(batch), torch.zeros(1)

    def iterate_validation(self) -> None:
        return None


class MadeUpTimes:
    """A clock by which steps take as long as a test says, by their number in the training."""

    def __init__(self, step_s: Callable[[int], float]) -> None:
        self._step_s = step_s
        self._steps = 0

    def begin_window(self) -> None:
        self._first = self._steps

    def mark_batch(self) -> None:
        pass

    def mark_step(self) -> None:
        self._steps += 1

    def end_window(self) -> TimedWindow:
        times = [self._step_s(number) for number in range(self._first, self._steps)]
        return TimedWindow(t0=0.0, t1=sum(times), step_s=times, wait_s=[0.0] * len(times), first_batch_s=0.0)


class Bench:
    """A loop over numbered batches, and all that happens in it, one after the other."""

    def __init__(self, clock: StepClock) -> None:
        self.data = Numbered()
        self.happened: list[Any] = []
        """Batches that were trained, messages, and in words what goes beyond this rank."""
        self.loss_sum = torch.zeros(())
        self.loop = loop.TrainingLoop(
            self.data, self, Noted(self.happened), clock, self.happened.append, lambda: None  # type: ignore[arg-type]
        )  # fmt: skip

    def __call__(self, images: torch.Tensor, labels: torch.Tensor) -> None:  # noqa: ARG002
        """A step that only notes its batch."""
        self.happened.append(tuple(images.tolist()))

    def steady(self, order: SteadyWindow, peers: PeerJobs | None = None, **how: Any) -> None:
        SteadyProtocol(scripted.order(**how), order, self.loop, peers).train()

    @property
    def trained(self) -> list[tuple[int, int]]:
        return [what for what in self.happened if isinstance(what, tuple)]

    @property
    def windows(self) -> list[tuple[int, bool]]:
        """Steps of each window, and whether it is measured."""
        begun = [what for what in self.happened if isinstance(what, Begin)]
        assert [begin.epoch for begin in begun] == list(range(len(begun)))
        return [(begin.steps, begin.measured) for begin in begun]


class Noted(Strategy):
    def __init__(self, happened: list[Any]) -> None:
        super().__init__(ALONE)
        self._happened = happened

    def barrier(self) -> None:
        self._happened.append("barrier")

    def sum_over_ranks(self, values: torch.Tensor) -> torch.Tensor:
        self._happened.append("sum")
        return values


class Others:
    """Other jobs that have measured when they have been asked so many times."""

    def __init__(self, happened: list[Any], asked: int) -> None:
        self._happened = happened
        self._asked = asked

    def wait_until_warm(self) -> None:
        self._happened.append("waits")

    def tell_measured(self) -> None:
        self._happened.append("measured")

    def have_all_measured(self) -> bool:
        self._happened.append("asks")
        self._asked -= 1
        return self._asked == 0


def first_batches(count: int) -> list[tuple[int, int]]:
    return [divmod(number, PER_EPOCH) for number in range(count)]


def eighths(number: int) -> float:
    """The first step takes a minute, and each other one an eighth of a second."""
    return 0.125 if number else 60.0


def sixteenths(number: int) -> float:
    return 0.0625 if number else 60.0


def slowing(number: int) -> float:
    """The pace is that of steps 9 to 16: (1/16 + 7/8) / 8 s."""
    return sixteenths(number) if number < 10 else 0.125


# ---------------------------------------------------------------- a stream


@pytest.mark.parametrize(
    ("order", "step_s", "how", "windows"),
    [
        (SteadyWindow(window_s=3.0), eighths, {}, [(10, False), (24, True)]),
        (SteadyWindow(window_s=3.0), sixteenths, {}, [(10, False), (7, False), (48, True)]),
        (SteadyWindow(window_s=3.0), slowing, {}, [(10, False), (7, False), (26, True)]),
        (SteadyWindow(window_s=None, steps=7), sixteenths, {}, [(10, False), (7, False), (7, True)]),
        (SteadyWindow(window_s=1.0), eighths, {"workers": 3}, [(10, False), (3, False), (9, True)]),
        (
            SteadyWindow(window_s=1.0),
            eighths,
            {"workers": 3, "prefetch": 4},
            [(12, False), (3, False), (9, True)],
        ),
        (SteadyWindow(window_s=1.0), eighths, {"sync_every": 5}, [(10, False), (10, True)]),
        (SteadyWindow(window_s=1.125), eighths, {"breakdown": True}, [(10, False), (10, True)]),
    ],
    ids=["seconds", "short steps", "slowing", "steps", "waves", "held ready", "averaged", "broken down"],
)
def test_a_stream_goes_on_from_its_warm_up_into_its_window(
    order: SteadyWindow,
    step_s: Callable[[int], float],
    how: dict[str, Any],
    windows: list[tuple[int, bool]],
) -> None:
    bench = Bench(MadeUpTimes(step_s))
    bench.steady(order, **how)
    assert bench.windows == windows
    assert bench.trained == first_batches(sum(steps for steps, _ in windows))
    # The loader of no epoch is started.
    assert not bench.data.begun


SHORT_BY = 2**-20


@pytest.mark.parametrize(
    ("order", "window_s", "more"),
    [
        (SteadyWindow(window_s=2.5), 2.0, []),
        (SteadyWindow(window_s=2.5), 2.0 - SHORT_BY, [(20, True)]),
        (SteadyWindow(window_s=2.5), 0.1, [(20, True)]),  # once, and no more
        (SteadyWindow(window_s=None, steps=20), 0.1, []),
    ],
    ids=["80 %", "just below", "far below", "steps"],
)
def test_a_window_below_80_per_cent_gets_as_many_steps_again(
    order: SteadyWindow, window_s: float, more: list[tuple[int, bool]]
) -> None:
    """20 steps of an eighth of a second are to come, and then take `window_s` together."""
    bench = Bench(MadeUpTimes(lambda n: eighths(n) if n < 10 else window_s if n == 10 else 0.0))
    bench.steady(order)
    assert bench.windows == [(10, False), (20, True), *more]


def test_in_a_measured_window_of_a_stream_nothing_is_told_and_no_rank_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "PROGRESS_PERIOD_S", 0.0)
    bench = Bench(MadeUpTimes(sixteenths))
    bench.steady(SteadyWindow(window_s=2.0))
    (begin,) = [what for what in bench.happened if isinstance(what, Begin) and what.measured]
    assert begin.seconds == 2.0
    after = bench.happened[bench.happened.index(begin) + 1 :]
    assert after[:32] == bench.trained[-32:]
    # The 33rd is the sum of the ranks' losses.
    assert [type(what) for what in after[33:]] == [Steps, End]
    warm_up = bench.happened[: bench.happened.index(begin)]
    # A warm-up tells how far it is.
    assert sum(isinstance(what, StepsDone) for what in warm_up) == 17


def test_a_job_of_a_group_measures_until_the_others_have_their_windows() -> None:
    bench = Bench(MadeUpTimes(eighths))
    bench.steady(SteadyWindow(window_s=3.0), Others(bench.happened, asked=3))
    assert bench.windows == [(10, False), (24, True), (8, True), (8, True)]
    marks = ("waits", "measured", "asks")
    order = [what.epoch if isinstance(what, Begin) else what for what in bench.happened]
    assert [what for what in order if what in marks or isinstance(what, int)] == [
        0, "waits", 1, "measured", "asks", 2, "asks", 3, "asks"
    ]  # fmt: skip
    assert bench.trained == first_batches(10 + 24 + 2 * 8)


def test_what_loaders_made_while_a_job_waited_is_used_up_before_its_window() -> None:
    """Three workers hold six batches ready: behind the wait come as many unmeasured steps, and a wave."""
    bench = Bench(MadeUpTimes(eighths))
    bench.steady(SteadyWindow(window_s=3.0), Others(bench.happened, asked=1), workers=3)
    assert bench.windows[:3] == [(10, False), (3, False), (9, False)]
    assert bench.windows[3] == (24, True)
    assert (
        bench.happened.index("waits")
        < [place for place, what in enumerate(bench.happened) if isinstance(what, Begin)][2]
    )


def test_a_job_of_slow_steps_has_three_whole_ones_between_two_that_are_cut() -> None:
    bench = Bench(MadeUpTimes(lambda _: 2.0))
    bench.steady(SteadyWindow(window_s=3.0), Others(bench.happened, asked=2))
    # It looks after every step of two seconds.
    assert bench.windows == [(10, False), (5, True), (1, True)]
    alone = Bench(MadeUpTimes(lambda _: 2.0))
    alone.steady(SteadyWindow(window_s=3.0))
    assert alone.windows == [(10, False), (3, True)]


# ---------------------------------------------------------------- whole epochs


def test_epochs_of_a_group_go_on_where_the_measured_ones_stopped_and_count_no_more() -> None:
    bench = Bench(MadeUpTimes(eighths))
    others = Others(bench.happened, asked=2)
    order = WholeEpochs(epochs=3, warmup_epochs=1)
    protocol = EpochsProtocol(order, bench.loop, lambda: pytest.fail("is judged"), others)
    protocol.train()
    assert bench.windows == [(4, False), (4, True), (4, True)]
    # The other jobs are asked after each second.
    assert bench.trained == first_batches(3 * 4 + 2 * 8)
    # Each epoch begins with iter(loader), and none begins for nothing.
    assert bench.data.begun == [0, 1, 2, 3, 4, 5, 6]
    over = bench.happened[bench.happened.index("measured") + 1 :]
    assert [what for what in over if not isinstance(what, tuple)] == ["asks", "asks"], "nothing is told"
    # Quality is left to the trial alone.
    assert protocol.evaluate_quality() is None


# ---------------------------------------------------------------- ranks


class BesideSlower(Noted):
    """The first of two ranks; the other one's steps take an eighth of a second, and its window 3 s."""

    def __init__(self, happened: list[Any]) -> None:
        super().__init__(happened)
        self.assignment = replace(ALONE, world=2)

    def sum_over_ranks(self, values: torch.Tensor) -> torch.Tensor:
        if values.dim() == 2:  # a row a rank: its steps' seconds come last
            values[1, -1] = 0.125 if values[0, -1] < 1 else 3.0  # as it says of its window
        return values


def test_ranks_of_unlike_speed_have_as_many_steps_as_the_slowest_asks_for() -> None:
    bench = Bench(MadeUpTimes(sixteenths))
    bench.loop.strategy = BesideSlower(bench.happened)
    bench.steady(SteadyWindow(window_s=3.0))
    # The fastest has its second of warm-up, too.
    assert bench.windows == [(10, False), (7, False), (24, True)]
