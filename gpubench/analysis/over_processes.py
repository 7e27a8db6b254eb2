"""Ratios between rows of several processes, with their intervals over these. Pure.

Rows that were measured in three rounds or more in common are compared round by round, others by all their processes:
which of both, their rounds decide, never their figures (docs/certainty.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.analysis.certainty import interval as intervals
from gpubench.analysis.certainty.interval import Interval
from gpubench.schema.row import Row

MARGIN = 0.02
"""Times count as the same where one is at most so much longer than the other."""
MARGIN_WORDS = f"inside {100 * MARGIN:g} %"
FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One figure of each process of a row."""

    values: tuple[float, ...]
    by_round: Mapping[int, float] = field(default_factory=dict)
    """Empty where the processes are not of one round each."""

    def __len__(self) -> int:
        return len(self.values)


def figures(row: Row, figure: Callable[[Row], float | None], known: Sequence[float] = ()) -> Sample | None:
    """This figure of each process of a row; None where it has one process, or one of them has no such figure.

    `known`: the figures, where the row does not hold its processes by themselves.
    """
    if (row.repeats or 0) < 2:
        return None
    found = [figure(run) for run in row.runs]
    values = [value for value in found if value]
    if not row.runs:
        values = list(known)
    if len(values) < max(2, len(found)):
        return None
    rounds = [run.round for run in row.runs]
    alone = len(set(rounds)) == len(rounds) == len(values)
    return Sample(
        values=tuple(sorted(values)), by_round=dict(zip(rounds, values, strict=True)) if alone else {}
    )


def epochs(row: Row) -> Sample | None:
    """Epoch times of a row's processes, in s."""
    return figures(row, lambda run: run.epoch_time_s, row.epoch_times_s)


def per_image(row: Row) -> Sample | None:
    """Epoch times of a row's processes by their images, in s."""
    images = row.images_per_epoch
    return _over(epochs(row), images) if images else None


def steady(row: Row) -> Sample | None:
    """Steady steps of a row's processes by their images, in s."""
    batch = row.batch_size
    return _over(figures(row, lambda run: run.steady_step_s), batch) if batch else None


def time_ratio(over: Row, under: Row) -> Interval | None:
    """Time per image of one row by that of another, of epoch times where a row does not know its images."""
    return _ratio(*_times(over, under))


def steady_ratio(over: Row, under: Row) -> Interval | None:
    """Time per image of steady steps; of whole epochs where the steady steps of a row are not known."""
    return _ratio(*steady_times(over, under))


def cpu_ratio(over: Row, under: Row) -> Interval | None:
    """CPU time an image of one row's own processes by that of another's; None where one does not know its images."""
    found = [
        _over(figures(row, lambda run: run.cpu_s_per_epoch), row.images_per_epoch)
        if row.images_per_epoch
        else None
        for row in (over, under)
    ]
    return _ratio(*found)


def of_some_rounds(over: Row, under: Row) -> bool:
    """Whether two rows are compared by the rounds that both have, and one has others, too.

    Then the ratio is not that of their epoch times: a row that dropped out early knows nothing of how the machine
    changed later.
    """
    if (over.repeats or 0) < 2 or (under.repeats or 0) < 2:  # of most rows: one process has no rounds
        return False
    first, second = _times(over, under)
    if first is None or second is None:
        return False
    return _by_rounds(first, second) and first.by_round.keys() != second.by_round.keys()


def slowdown(together: Row, alone: Row) -> Interval | None:
    """Epoch time of a job beside others by that of the same trial alone; of all processes, as the figure is."""
    first, second = epochs(together), epochs(alone)
    if first is None or second is None or first.by_round.keys() == second.by_round.keys():
        return _ratio(first, second)
    return intervals.ratio(first.values, second.values)


def overlap_gain(alone: Sequence[Row | None], together: Sequence[Row]) -> Interval | None:
    """The overlap gain of jobs with its interval; None where a job or its trial alone has one process.

    Rows of the same job have the same place in both. Jobs count by the runs of the group that all of them have.
    """
    solos = [(row, epochs(row)) for row in alone if row is not None]
    runs = _runs(together)
    if len(solos) < len(together) or len(together) < 2 or runs is None:
        return None
    names = [row.solo_id or str(place) for place, row in enumerate(together)]
    samples = {name: found.values for name, (_, found) in zip(names, solos, strict=True) if found is not None}
    if any(name not in samples for name in names):
        return None
    return intervals.overlap_gain(samples, list(zip(names, runs, strict=True)))


def _runs(together: Sequence[Row]) -> list[list[float]] | None:
    """For each job its times, one for each run of the group, the runs in the same order for all."""
    if any((row.repeats or 0) < 2 for row in together):
        return None
    if not any(row.runs for row in together):
        times = [list(row.epoch_times_s) for row in together]
        return times if len({len(one) for one in times}) == 1 and len(times[0]) > 1 else None
    each = [
        {(run.repeat or 0, run.round): run.epoch_time_s for run in row.runs if run.epoch_time_s}
        for row in together
    ]
    common = sorted(set.intersection(*map(set, each)))
    return [[one[key] for key in common] for one in each] if len(common) > 1 else None


def _times(over: Row, under: Row) -> tuple[Sample | None, Sample | None]:
    if over.images_per_epoch and under.images_per_epoch:
        return per_image(over), per_image(under)
    return epochs(over), epochs(under)


def steady_times(over: Row, under: Row) -> tuple[Sample | None, Sample | None]:
    """What `steady_ratio` compares."""
    found = steady(over), steady(under)
    return _times(over, under) if None in found else found


def _ratio(over: Sample | None, under: Sample | None) -> Interval | None:
    if over is None or under is None:
        return None
    if _by_rounds(over, under):
        return intervals.ratio_by_rounds(over.by_round, under.by_round)
    return intervals.ratio(over.values, under.values)


def _by_rounds(over: Sample, under: Sample) -> bool:
    return len(over.by_round.keys() & under.by_round.keys()) >= FEWEST_ROUNDS


def _over(sample: Sample | None, exact: float) -> Sample | None:
    if sample is None:
        return None
    return Sample(
        values=tuple(value / exact for value in sample.values),
        by_round={number: value / exact for number, value in sample.by_round.items()},
    )


def growth_pct(ratio: Interval) -> tuple[float, float, float]:
    """A ratio's change in per cent, with both ends of its interval."""
    return _pct(ratio.value), _pct(ratio.low), _pct(ratio.high)


def _pct(ratio: float) -> float:
    return 100 * (ratio - 1) if ratio < math.inf else math.inf
