"""Ratios between rows of several processes, with their intervals over these. Pure.

Rows that were measured in three rounds or more in common, each on the same node, are compared round by round, others by
all their processes: which of both, their rounds decide, never their figures (docs/certainty.md). Of others that were
measured on unlike nodes of one kind, or unlike often on them, nothing is known: nobody knows what these differ by. A
trial over several nodes is set beside one over fewer by its first node, on which a sweep measures both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpubench.analysis.certainty import interval as intervals
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import Part
from gpubench.analysis.varied import machine
from gpubench.schema import hosts
from gpubench.schema.row import Row

MARGIN = 0.02
"""Times count as the same where one is at most so much longer than the other."""
MARGIN_WORDS = f"inside {100 * MARGIN:g} %"
FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""
NOT_KNOWN = Part(math.inf, 1.0)
"""What is added to the variance of a comparison between unlike nodes: nobody knows what these differ by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One figure of each process of a row."""

    values: tuple[float, ...]
    by_round: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """By round and node. Empty where two processes are of one round on one node."""
    nodes: tuple[str, ...] = ()
    """Of each of `values`; empty where the row does not hold its processes by themselves."""
    machine: str | None = None
    """The kind of its nodes."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def width(self) -> int:
        """On how many nodes each of its processes was."""
        return max(map(hosts.count, self.nodes), default=1)

    def of_first(self) -> Sample:
        """The same by the first node of each process."""
        rounds = {(number, hosts.first(node)): value for (number, node), value in self.by_round.items()}
        return replace(
            self,
            by_round=rounds if len(rounds) == len(self.by_round) else {},
            nodes=tuple(map(hosts.first, self.nodes)),
        )


def figures(row: Row, figure: Callable[[Row], float | None], known: Sequence[float] = ()) -> Sample | None:
    """This figure of each process of a row; None where it has one process, or one of them has no such figure.

    `known`: the figures, where the row does not hold its processes by themselves.
    """
    if (row.repeats or 0) < 2:
        return None
    found = [figure(run) for run in row.runs]
    values = [value for value in found if value]
    if not row.runs:
        return Sample(values=tuple(sorted(known))) if len(known) > 1 else None
    if len(values) < max(2, len(found)):
        return None
    rounds = [run.round for run in row.runs]
    nodes = [run.host or "" for run in row.runs]
    places = list(zip(rounds, nodes, strict=True))
    return Sample(
        values=tuple(sorted(values)),
        by_round=dict(zip(places, values, strict=True)) if len(set(places)) == len(places) else {},
        nodes=tuple(nodes),
        machine=machine(row),
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
    if row.kind == "steady rate":  # it is the rate itself
        return None
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
    return _ratio(*_beside(*found))


def of_some_rounds(over: Row, under: Row) -> bool:
    """Whether two rows are compared by the rounds that both have, and one has others, too.

    Then the ratio is not that of their epoch times: a row that dropped out early knows nothing of how the machine
    changed later.
    """
    found = _both(over, under)
    return found is not None and _by_rounds(*found) and found[0].by_round.keys() != found[1].by_round.keys()


def unlike_shown(over: Row, under: Row) -> Interval | None:
    """Time per image of one row by that of another where that is not the ratio of their epoch times; else None."""
    return time_ratio(over, under) if of_some_rounds(over, under) else None


def slowdown(together: Row, alone: Row) -> Interval | None:
    """Epoch time of a job beside others by that of the same trial alone; of all processes, as the figure is."""
    first, second = epochs(together), epochs(alone)
    if first is None or second is None or first.by_round.keys() == second.by_round.keys():
        return _ratio(first, second)
    return _of_all(first, second)


def overlap_gain(alone: Sequence[Row | None], together: Sequence[Row]) -> Interval | None:
    """The overlap gain of jobs with its interval; None where a job or its trial alone has one process.

    Rows of the same job have the same place in both. Jobs count by the runs of the group that all of them have.
    """
    solos = [(row, epochs(row)) for row in alone if row is not None]
    runs = _runs(together)
    if len(solos) < len(together) or len(together) < 2 or runs is None:
        return None
    names = [row.solo_id or str(place) for place, row in enumerate(together)]
    samples = {name: found for name, (_, found) in zip(names, solos, strict=True) if found is not None}
    if any(name not in samples for name in names):
        return None
    times, nodes = runs
    found = intervals.overlap_gain(
        {name: one.values for name, one in samples.items()}, list(zip(names, times, strict=True))
    )
    if found is None or not nodes:
        return found
    unlike = any(is_apart(one, replace(one, nodes=tuple(nodes))) for one in samples.values())
    return found.with_parts(NOT_KNOWN) if unlike else found


def _runs(together: Sequence[Row]) -> tuple[list[list[float]], list[str]] | None:
    """For each job its times, one for each run of the group, the runs in the same order for all; and their nodes,
    which are not known where jobs don't hold their processes by themselves."""
    if any((row.repeats or 0) < 2 for row in together):
        return None
    if not any(row.runs for row in together):
        times = [list(row.epoch_times_s) for row in together]
        return (times, []) if len({len(one) for one in times}) == 1 and len(times[0]) > 1 else None
    each = [
        {
            (run.repeat or 0, run.round): (run.epoch_time_s, run.host or "")
            for run in row.runs
            if run.epoch_time_s
        }
        for row in together
    ]
    common = sorted(set.intersection(*map(set, each)))
    if len(common) < 2:
        return None
    return [[one[key][0] for key in common] for one in each], [each[0][key][1] for key in common]


def _times(over: Row, under: Row) -> tuple[Sample | None, Sample | None]:
    if over.images_per_epoch and under.images_per_epoch:
        return _beside(per_image(over), per_image(under))
    return _beside(epochs(over), epochs(under))


def _beside(over: Sample | None, under: Sample | None) -> tuple[Sample | None, Sample | None]:
    """Both as they are, but by their first nodes where one had more of them than the other."""
    if over is None or under is None or not over.nodes or not under.nodes or over.width == under.width:
        return over, under
    return over.of_first(), under.of_first()


def steady_times(over: Row, under: Row) -> tuple[Sample | None, Sample | None]:
    """What `steady_ratio` compares."""
    found = steady(over), steady(under)
    return _times(over, under) if None in found else _beside(*found)


def _both(over: Row, under: Row) -> tuple[Sample, Sample] | None:
    """What `time_ratio` compares; None where a row is of one process."""
    if (over.repeats or 0) < 2 or (under.repeats or 0) < 2:  # of most rows: one process has no rounds
        return None
    first, second = _times(over, under)
    return None if first is None or second is None else (first, second)


def _ratio(over: Sample | None, under: Sample | None) -> Interval | None:
    if over is None or under is None:
        return None
    if _by_rounds(over, under):
        return intervals.ratio_by_rounds(over.by_round, under.by_round)
    return _of_all(over, under)


def _by_rounds(over: Sample, under: Sample) -> bool:
    """Whether enough rounds are there in common on the same node."""
    return len(over.by_round.keys() & under.by_round.keys()) >= FEWEST_ROUNDS


def _of_all(over: Sample, under: Sample) -> Interval | None:
    """By all processes."""
    found = intervals.ratio(over.values, under.values)
    return found.with_parts(NOT_KNOWN) if found is not None and is_apart(over, under) else found


def is_apart(over: Sample, under: Sample) -> bool:
    """Whether two rows had unlike shares of their processes on the nodes of one kind. Unlike machines differ by more
    than nodes do: rows of these are compared as they are."""
    if over.machine != under.machine or not over.nodes or not under.nodes:
        return False
    return _shares(over.nodes) != _shares(under.nodes)


def _shares(nodes: Sequence[str]) -> dict[str, float]:
    return {node: count / len(nodes) for node, count in Counter(nodes).items()}


def _over(sample: Sample | None, exact: float) -> Sample | None:
    if sample is None:
        return None
    return replace(
        sample,
        values=tuple(value / exact for value in sample.values),
        by_round={one: value / exact for one, value in sample.by_round.items()},
    )


def growth_pct(ratio: Interval) -> tuple[float, float, float]:
    """A ratio's change in per cent, with both ends of its interval."""
    return _pct(ratio.value), _pct(ratio.low), _pct(ratio.high)


def _pct(ratio: float) -> float:
    return 100 * (ratio - 1) if ratio < math.inf else math.inf
