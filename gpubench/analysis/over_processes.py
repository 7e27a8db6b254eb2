"""Ratios between rows of several processes, with their intervals over these. Pure.

Rows that were measured in three rounds or more in common, each on the same node, are compared round by round, others by
all their processes: which of both, their rounds decide, never their figures (docs/certainty.md). Of rows that were
measured on unlike nodes, or unlike often on them, what the nodes differ by is taken away first, and its error counts.
A trial over several nodes is set beside one over fewer by its first node, on which a sweep measures both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpubench.analysis.certainty import interval as intervals
from gpubench.analysis.certainty import node_effects
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import MeanEstimate, Part
from gpubench.schema import hosts
from gpubench.schema.node_fit import Figure, NodeFit
from gpubench.schema.row import Row

MARGIN = 0.02
"""Times count as the same where one is at most so much longer than the other."""
MARGIN_WORDS = f"inside {100 * MARGIN:g} %"
FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""
NOT_KNOWN = Part(math.inf, 1.0)
"""What is added to the variance of a comparison between nodes of which nobody knows how they differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One figure of each process of a row."""

    values: tuple[float, ...]
    by_round: Mapping[tuple[int, str], float] = field(default_factory=dict)
    """By round and node. Empty where two processes are of one round on one node."""
    nodes: tuple[str, ...] = ()
    """Of each of `values`; empty where the row does not hold its processes by themselves."""
    fit: NodeFit | None = None
    """How nodes differ in this figure; None where all rows of this kind of machine are of one node."""
    is_of_first: bool = False
    """Whether `nodes` are the first ones of trials over several, of which nobody knows how they differ."""

    def __len__(self) -> int:
        return len(self.values)

    @property
    def processes(self) -> list[tuple[str, float]]:
        return list(zip(self.nodes, self.values, strict=True))

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
            fit=None,
            is_of_first=True,
        )


def figures(
    row: Row, figure: Callable[[Row], float | None], known: Sequence[float] = (), of: Figure | None = None
) -> Sample | None:
    """This figure of each process of a row; None where it has one process, or one of them has no such figure.

    `known`: the figures, where the row does not hold its processes by themselves. `of`: which of the figures it is in
    which nodes are known to differ.
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
    ordered = sorted(zip(values, nodes, strict=True))
    return Sample(
        values=tuple(value for value, _ in ordered),
        by_round=dict(zip(places, values, strict=True)) if len(set(places)) == len(places) else {},
        nodes=tuple(node for _, node in ordered),
        fit=row.node_fits.get(of) if of else None,
    )


def epochs(row: Row) -> Sample | None:
    """Epoch times of a row's processes, in s."""
    return figures(row, lambda run: run.epoch_time_s, row.epoch_times_s, "epoch")


def per_image(row: Row) -> Sample | None:
    """Epoch times of a row's processes by their images, in s."""
    images = row.images_per_epoch
    return _over(epochs(row), images) if images else None


def steady(row: Row) -> Sample | None:
    """Steady steps of a row's processes by their images, in s."""
    batch = row.batch_size
    return _over(figures(row, lambda run: run.steady_step_s, of="steady"), batch) if batch else None


def time_ratio(over: Row, under: Row) -> Interval | None:
    """Time per image of one row by that of another, of epoch times where a row does not know its images."""
    return _ratio(*_times(over, under))


def steady_ratio(over: Row, under: Row) -> Interval | None:
    """Time per image of steady steps; of whole epochs where the steady steps of a row are not known."""
    return _ratio(*steady_times(over, under))


def cpu_ratio(over: Row, under: Row) -> Interval | None:
    """CPU time an image of one row's own processes by that of another's; None where one does not know its images."""
    found = [
        _over(figures(row, lambda run: run.cpu_s_per_epoch, of="cpu"), row.images_per_epoch)
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


def between_nodes(over: Row, under: Row) -> bool:
    """Whether two rows are compared after what their nodes differ by is taken away.

    Then the ratio is not that of their epoch times, either.
    """
    found = _both(over, under)
    return found is not None and not _by_rounds(*found) and bool(_apart(*found))


def unlike_shown(over: Row, under: Row) -> Interval | None:
    """Time per image of one row by that of another where that is not the ratio of their epoch times; else None.

    None, too, between nodes of which nobody knows how they differ: then the ratio of epoch times is all there is.
    """
    if not (of_some_rounds(over, under) or between_nodes(over, under)):
        return None
    ratio = time_ratio(over, under)
    return ratio if ratio is not None and ratio.is_known else None


def slowdown(together: Row, alone: Row) -> Interval | None:
    """Epoch time of a job beside others by that of the same trial alone; of all processes, as the figure is."""
    first, second = epochs(together), epochs(alone)
    if first is None or second is None or first.by_round.keys() == second.by_round.keys():
        return _ratio(first, second)
    return _of_all(first, second)


def slowdown_between_nodes(together: Row, alone: Row) -> float | None:
    """The slowdown without what nodes differ by; None where both were measured alike on them, or that is not known."""
    first, second = epochs(together), epochs(alone)
    if first is None or second is None or not _apart(first, second):
        return None
    found = slowdown(together, alone)
    return found.value if found is not None and found.is_known else None


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
    found = _gain(names, {name: one.values for name, one in samples.items()}, times)
    fits = [one.fit for one in samples.values()]
    fit = next((one for one in fits if one is not None), None)
    if found is None or fit is None or not nodes:
        return found
    # To first order the logarithm of the sum moves with each job's ratio by that one's share of it.
    rates = [
        math.exp(_log_mean(samples[name].values) - _log_mean(own))
        for name, own in zip(names, times, strict=True)
    ]
    before: dict[str, float] = {}
    for name, rate in zip(names, rates, strict=True):
        for node, share in _shares(samples[name].nodes).items():
            before[node] = before.get(node, 0.0) + share * rate / math.fsum(rates)
    apart = _differences(before, _shares(nodes))
    if not apart:
        return found
    is_one = all(one is fit for one in fits)  # jobs on unlike devices: each of these has effects of its own
    parts = node_effects.parts(fit, apart, min(found.processes)) if is_one else None
    if parts is None:
        return found.with_parts(NOT_KNOWN)
    least = _without_nodes(fit)
    corrected = _gain(
        names,
        {name: tuple(map(least, one.values, one.nodes)) for name, one in samples.items()},
        [list(map(least, own, nodes)) for own in times],
    )
    return corrected.with_parts(*parts) if corrected is not None else None


def _gain(
    names: Sequence[str], alone: Mapping[str, Sequence[float]], together: Sequence[Sequence[float]]
) -> Interval | None:
    return intervals.overlap_gain(alone, list(zip(names, together, strict=True)))


def _without_nodes(of: NodeFit) -> Callable[[float, str], float]:
    return lambda time, node: time * math.exp(-node_effects.effect(of, {node: 1.0}))


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
    """Whether enough rounds are there in common on one node: FEWEST_ROUNDS, and half of those in common on any.

    Of fewer than half, all processes tell more, after what nodes differ by is taken away.
    """
    same = len(over.by_round.keys() & under.by_round.keys())
    return same >= FEWEST_ROUNDS and 2 * same >= len(_rounds(over) & _rounds(under))


def _rounds(of: Sample) -> set[int]:
    return {number for number, _ in of.by_round}


def _of_all(over: Sample, under: Sample) -> Interval | None:
    """By all processes. What nodes differ by is taken away where they were measured on several."""
    plain = intervals.ratio(over.values, under.values)
    if over.is_of_first and plain is not None and _differences(_shares(over.nodes), _shares(under.nodes)):
        return plain.with_parts(NOT_KNOWN)
    fit = _fit(over, under)
    if fit is None or len({*over.nodes, *under.nodes}) < 2:
        return plain
    apart = _apart(over, under)
    count = min(len(over), len(under))
    of_nodes = node_effects.parts(fit, apart, count) if apart else ()
    (first, mine), (second, others) = (node_effects.own_part(fit, one.processes) for one in (over, under))
    if mine is None or others is None or of_nodes is None:
        return plain if plain is None or not apart else plain.with_parts(NOT_KNOWN)
    return Interval(
        log=MeanEstimate(center=first - second, parts=(mine, others, *of_nodes)),
        processes=(len(over), len(under)),
    )


def _fit(over: Sample, under: Sample) -> NodeFit | None:
    """How the nodes of both differ; None of rows of unlike machines, which differ by more than nodes do."""
    return over.fit if over.fit is under.fit else None


def _apart(over: Sample, under: Sample) -> dict[str, float]:
    """Of each node how much larger a share of the first's processes it had than of the second's, where they differ.

    Empty where nobody asked how nodes differ.
    """
    if _fit(over, under) is None or not over.nodes or not under.nodes:
        return {}
    return _differences(_shares(over.nodes), _shares(under.nodes))


def _shares(nodes: Sequence[str]) -> dict[str, float]:
    return {node: count / len(nodes) for node, count in Counter(nodes).items()}


def _differences(over: Mapping[str, float], under: Mapping[str, float]) -> dict[str, float]:
    """Of each node, but where there is none."""
    found = {node: over.get(node, 0.0) - under.get(node, 0.0) for node in sorted({*over, *under})}
    return {node: weight for node, weight in found.items() if abs(weight) > node_effects.NOTHING}


def _log_mean(values: Sequence[float]) -> float:
    return math.fsum(map(math.log, values)) / len(values)


def _over(sample: Sample | None, exact: float) -> Sample | None:
    if sample is None:
        return None
    return replace(
        sample,
        values=tuple(value / exact for value in sample.values),
        by_round={one: value / exact for one, value in sample.by_round.items()},
    )


def of_nodes(row: Row, figure: Figure) -> float:
    """How many times as long as the first of its nodes' kin a row's nodes take in this figure; 1 where nobody knows."""
    fit = row.node_fits.get(figure)
    if fit is None or (row.repeats or 0) < 2:
        return 1.0
    return math.exp(node_effects.effect(fit, _shares([run.host or "" for run in row.runs])))


def growth_pct(ratio: Interval) -> tuple[float, float, float]:
    """A ratio's change in per cent, with both ends of its interval."""
    return _pct(ratio.value), _pct(ratio.low), _pct(ratio.high)


def _pct(ratio: float) -> float:
    return 100 * (ratio - 1) if ratio < math.inf else math.inf
