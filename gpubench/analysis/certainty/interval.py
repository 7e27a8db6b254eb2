"""Times of processes, and ratios of them, with their intervals: on the log scale, over processes.

Hoefler and Belli (2015) and Georges, Buytaert and Eeckhout (2007) say why processes, and not what one of them saw, are
the unit. The logarithm makes a ratio a difference, gives a speed-up and its inverse the same interval, and does not
care for the unit. Means are geometric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate, Part, mean, part_of

Round = TypeVar("Round", int, tuple[int, str])


@dataclass(frozen=True, kw_only=True, slots=True)
class Interval:
    """A figure and where the truth lies: `scale` × (exp(`log`) − `shift`)."""

    log: MeanEstimate
    """Of the logarithm."""
    processes: tuple[int, ...]
    """Of each sample, in the order in which they were given."""
    scale: float = 1.0
    """Above 0, as `times` and `minus` leave it."""
    shift: float = 0.0
    confidence: float = 1 - LEVEL

    @property
    def is_known(self) -> bool:
        """Whether anything is known of how far chance may have moved it: not so between unlike nodes."""
        return math.isfinite(self.log.error)

    @property
    def value(self) -> float:
        return self._figure(self.log.center)

    @property
    def low(self) -> float:
        return self._figure(self.log.center - self.log.half_width(self.confidence))

    @property
    def high(self) -> float:
        return self._figure(self.log.center + self.log.half_width(self.confidence))

    @property
    def half_pct(self) -> float:
        """Half the width of the interval, in per cent of the value; infinite at a value of 0."""
        return 50 * (self.high - self.low) / abs(self.value) if self.value else math.inf

    def chance_at_most(self, value: float) -> float:
        """The p-value of "the truth is `value` or less"."""
        bound = value / self.scale + self.shift
        return self.log.chance_at_most(math.log(bound)) if bound > 0 else 0.0

    def chance_at_least(self, value: float) -> float:
        """The p-value of "the truth is `value` or more"."""
        bound = value / self.scale + self.shift
        return self.log.chance_at_least(math.log(bound)) if bound > 0 else 1.0

    def times(self, factor: float) -> Interval:
        """The figure times an exact factor: speed-up / devices is an efficiency, and time × exact memory a cost."""
        if not factor > 0:
            raise ValueError("a factor of a figure is above 0")
        if self.shift:
            return replace(self, scale=self.scale * factor)
        return replace(self, log=replace(self.log, center=self.log.center + math.log(factor)))

    def minus(self, value: float) -> Interval:
        """The figure less an exact value: `ratio.minus(1).times(100)` is a growth in per cent."""
        return replace(self, shift=self.shift + value / self.scale)

    def with_parts(self, *parts: Part) -> Interval:
        """The same figure with more that chance may have moved it by."""
        return replace(self, log=replace(self.log, parts=(*self.log.parts, *parts)))

    def _figure(self, logarithm: float) -> float:
        try:
            return self.scale * (math.exp(logarithm) - self.shift)
        except OverflowError:  # of two processes that differ much: nothing is known upwards
            return math.inf


def interval(times: Sequence[float], confidence: float = 1 - LEVEL) -> Interval | None:
    """The geometric mean of the times of processes, with Student's interval on the log scale.

    None for fewer than two processes. Raises ValueError for a time that is not above 0.
    """
    return product([(times, 1.0)], confidence)


def ratio(over: Sequence[float], under: Sequence[float], confidence: float = 1 - LEVEL) -> Interval | None:
    """The geometric mean of `over` by that of `under`, with Welch's interval on the log scale.

    The sides may have different variances and numbers of processes. None where one has fewer than two processes. Where
    memory and time are of the same processes and both vary, multiply them process by process first: they are not
    independent.
    """
    return product([(over, 1.0), (under, -1.0)], confidence)


def ratio_by_rounds(
    over: Mapping[Round, float], under: Mapping[Round, float], confidence: float = 1 - LEVEL
) -> Interval | None:
    """The geometric mean of `over` by that of `under`, from the rounds in which both were measured, pair by pair.

    A round is its number, or its number and its node: then only rounds on the same node are one.

    What a round does to both (a machine that becomes slower while the sweep goes on) cancels; rounds' order must be
    random. It holds the truth as often as `ratio` and is far narrower where the machine drifts, and wider by at most a
    tenth where it doesn't, from three common rounds on. Choose by the rounds there are, never by which is narrower.
    None under two common rounds.
    """
    rounds: list[Round] = sorted(over.keys() & under.keys())
    if len(rounds) < 2:
        return None
    logs = _logs([over[one] for one in rounds]), _logs([under[one] for one in rounds])
    apart = [one - other for one, other in zip(*logs, strict=True)]
    return Interval(
        log=MeanEstimate(center=mean(apart), parts=(part_of(apart),)),
        processes=(len(rounds), len(rounds)),
        confidence=confidence,
    )


def product(
    powers: Sequence[tuple[Sequence[float], float]], confidence: float = 1 - LEVEL
) -> Interval | None:
    """Geometric means of independent samples, each to a power, multiplied. Exact on the log scale.

    None where a sample has fewer than two processes.
    """
    samples = [(_logs(times), power) for times, power in powers]
    parts = _parts(samples)
    if parts is None:
        return None
    center = math.fsum(power * mean(logs) for logs, power in samples)
    return Interval(
        log=MeanEstimate(center=center, parts=parts),
        processes=tuple(len(logs) for logs, _ in samples),
        confidence=confidence,
    )


def overlap_gain(
    alone: Mapping[str, Sequence[float]],
    together: Sequence[tuple[str, Sequence[float]]],
    confidence: float = 1 - LEVEL,
) -> Interval | None:
    """(Σ solo / together − 1) / (n − 1) of n jobs: 1 is parallel, 0 merely concurrent.

    `alone`: times of the processes of each trial alone, by its name. `together`: for each job the name of its trial and
    its times, one for each run of the group, the runs in the same order for all jobs: what they have in common in one
    run (one fast, another slow) counts. Copies of one trial share its times alone, which vary once for all of them.

    The sum is taken to first order on the log scale (the delta method), where each ratio has its share of the sum as
    its weight. None for fewer than two jobs, and where a trial or the group has fewer than two processes. Raises
    ValueError where jobs have not the same number of runs.
    """
    if len(together) < 2:
        return None
    runs = {len(times) for _, times in together}
    if len(runs) > 1:
        raise ValueError("jobs of one group have as many runs")
    logs = {name: _logs(alone.get(name, ())) for name, _ in together}
    shared = [_logs(times) for _, times in together]
    if not all(logs.values()) or not all(shared):
        return None
    rates = [math.exp(mean(logs[name]) - mean(own)) for (name, _), own in zip(together, shared, strict=True)]
    total = math.fsum(rates)
    weights = [rate / total for rate in rates]
    of_trial: dict[str, float] = {}
    for (name, _), weight in zip(together, weights, strict=True):
        of_trial[name] = of_trial.get(name, 0.0) + weight
    group = [math.fsum(w * own[k] for w, own in zip(weights, shared, strict=True)) for k in range(*runs)]
    samples = [(logs[name], weight) for name, weight in of_trial.items()]
    parts = _parts([*samples, (group, 1.0)])
    if parts is None:
        return None
    found = Interval(
        log=MeanEstimate(center=math.log(total), parts=parts),
        processes=(*(len(logs[name]) for name in of_trial), len(group)),
        confidence=confidence,
    )
    return found.minus(1.0).times(1 / (len(together) - 1))


def _parts(samples: Sequence[tuple[Sequence[float], float]]) -> tuple[Part, ...] | None:
    """What weighted samples of logarithms add to the variance; None where one has fewer than two."""
    if any(len(logs) < 2 for logs, _ in samples):
        return None
    return tuple(part_of(logs, weight) for logs, weight in samples)


def _logs(times: Sequence[float]) -> list[float]:
    if not all(0 < time < math.inf for time in times):
        raise ValueError("a time of a process is a number above 0")
    return [math.log(time) for time in times]
