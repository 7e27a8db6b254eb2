"""From the figures of processes to estimates: means and ratios with what is known of how far chance has moved them.

The unit of evidence is the process (Georges, Buytaert and Eeckhout 2007; Hoefler and Belli 2015). Figures above 0 are
taken by their logarithms: a ratio becomes a difference, a speed-up and its inverse have the same interval, means are
geometric. Samples may have any variances: degrees of freedom are Welch's and Satterthwaite's (Welch 1947), which go
wrong where a sample of few values has most of the variance (of two processes against five, an interval holds the truth
in 90 % of cases in place of 95 %). `StudentEstimate.floors` keep them from that.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from gpubench.core.claims import Evidence, StudentEstimate
from gpubench.stats.distributions import compute_t_quantile, compute_t_tail

ALPHA = 0.05
"""Probability of an error up to which a test decides."""
FEWEST_SEEDS = 3
"""Of fewer on a side nothing is tested of top-1."""


# ---- from processes to evidence ----


def estimate_log_ratio(
    candidate: Mapping[Any, float], baseline: Mapping[Any, float], *, noise: float | None = None
) -> Evidence:
    """The logarithm of a ratio, candidate by baseline: of all processes, and by the rounds that both have in common.

    Figures are above 0, by the round that they are of (with its node, where nodes differ); each side has one or more.
    What a round does to both sides (a machine that becomes slower) cancels in pairs. `noise`: as
    `Evidence.noise`. Raises ValueError for a figure that is not above 0.
    """
    candidate_logs = dict(zip(candidate, _compute_logs(candidate.values()), strict=True))
    baseline_logs = dict(zip(baseline, _compute_logs(baseline.values()), strict=True))
    differences = [candidate_logs[key] - baseline_logs[key] for key in candidate_logs if key in baseline_logs]
    center = mean(candidate_logs.values()) - mean(baseline_logs.values())
    return Evidence(
        center=center,
        processes=(len(candidate_logs), len(baseline_logs)),
        pairs=estimate_weighted_sum(mean(differences), [(differences, 1.0)])
        if len(differences) > 1
        else None,
        welch=_estimate_welch(center, list(candidate_logs.values()), list(baseline_logs.values())),
        noise=noise,
    )


def estimate_combined_work(
    alone: Mapping[Hashable, Sequence[float]],
    together: Sequence[tuple[Hashable, Sequence[float]]],
    *,
    noise: float | None = None,
) -> Evidence:
    """The logarithm of the work that jobs get done together: the sum of time alone by time together, of all jobs.

    1 is as much as one job after the other, the number of jobs no loss at all. `alone`: times of each configuration by
    itself. `together`: for each job its configuration and its times, in the order of the group's runs, so that what
    one run does to all of its jobs counts once; copies share their baseline, which varies once for all of them. To
    first order (the delta method) each job's logarithm of a ratio weighs as its share of the sum.
    """
    runs = {len(times) for _, times in together}
    if len(runs) != 1:
        raise ValueError("jobs of one group have as many runs")
    baselines = {key: _compute_logs(alone[key]) for key, _ in together}
    shared = [_compute_logs(times) for _, times in together]
    parts = [
        math.exp(mean(baselines[key]) - mean(logs)) for (key, _), logs in zip(together, shared, strict=True)
    ]
    weights = [part / math.fsum(parts) for part in parts]
    group = [math.fsum(map(math.prod, zip(weights, run, strict=True))) for run in zip(*shared, strict=True)]
    samples = [(group, 1.0)]
    for key, logs in baselines.items():
        weight = math.fsum(w for w, (name, _) in zip(weights, together, strict=True) if name == key)
        samples.append((logs, weight))
    center = math.log(math.fsum(parts))
    is_tested = all(len(values) > 1 for values, _ in samples)
    return Evidence(
        center=center,
        processes=tuple(len(values) for values, _ in samples),
        welch=estimate_weighted_sum(center, samples) if is_tested else None,
        noise=noise,
    )


def estimate_top1_difference(
    candidate: Sequence[float], baseline: Sequence[float], *, images: int | None = None
) -> Evidence:
    """The difference of the mean top-1 of seeds, in percentage points; tested from FEWEST_SEEDS a side on.

    `images`: how many it was taken on. As top-1 is a multiple of 100 / images, seeds can't show a smaller standard
    deviation than that of rounding to it, and equal values don't prove that nothing varies.
    """
    center = mean(candidate) - mean(baseline)
    deviation = 100 / images / math.sqrt(12) if images else 0.0
    is_tested = min(len(candidate), len(baseline)) >= FEWEST_SEEDS
    return Evidence(
        center=center,
        processes=(len(candidate), len(baseline)),
        welch=_estimate_welch(center, candidate, baseline, deviation) if is_tested else None,
        is_log=False,
    )


# ---- what an estimate tells ----


def compute_p_beyond(estimate: StudentEstimate, distance: float) -> float:
    """The p-value of "the truth lies `distance` or more from the center", on the side of its sign.

    Where nothing varies: 0 for a distance above 0, 1 below, 0.5 at none.
    """
    if not estimate.error:
        return 0.5 if not distance else float(distance < 0)
    return max(
        compute_t_tail(distance / error, degrees) for error, degrees in _list_standard_errors(estimate)
    )


def compute_interval_half_width(estimate: StudentEstimate, tail: float) -> float:
    """How far from its center the bound lies beyond which the truth is with probability `tail`."""
    return max(
        float(compute_t_quantile(1 - tail, degrees)) * error
        for error, degrees in _list_standard_errors(estimate)
    )


def compute_interval_half_width_pct(figures: Sequence[float]) -> float | None:
    """Half the 95 % interval of the geometric mean of some processes' figures above 0, in per cent of that mean.

    None for fewer than two.
    """
    if len(figures) < 2:
        return None
    logs = _compute_logs(figures)
    half = compute_interval_half_width(estimate_weighted_sum(mean(logs), [(logs, 1.0)]), ALPHA / 2)
    try:
        return 100 * math.sinh(half)
    except OverflowError:
        return math.inf


def estimate_weighted_sum(
    center: float, samples: Sequence[tuple[Sequence[float], float]], least_deviation: float = 0.0
) -> StudentEstimate:
    """The sum of the means of independent samples of two values or more, each times its weight."""
    parts = [
        (weight**2 * max(variance(values), least_deviation**2) / len(values), len(values) - 1)
        for values, weight in samples
    ]
    total = math.fsum(part for part, _ in parts)
    squares = math.fsum(part**2 / degrees for part, degrees in parts)
    return StudentEstimate(
        center=center,
        error=math.sqrt(total),
        degrees=total**2 / squares if squares else min(degrees for _, degrees in parts),
        floors=tuple((math.sqrt(part), degrees) for part, degrees in parts) if len(parts) > 1 else (),
    )


def mean(values: Any) -> float:
    """Exactly rounded, so that the order of values changes nothing."""
    return math.fsum(values) / len(values)


def variance(values: Sequence[float]) -> float:
    """Of a sample of two values or more; exactly 0 where all are the same."""
    if min(values) == max(values):
        return 0.0
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1)


def _list_standard_errors(estimate: StudentEstimate) -> list[tuple[float, float]]:
    """Standard error and degrees of freedom: of all samples, then of each that varies by itself."""
    return [(estimate.error, estimate.degrees), *(floor for floor in estimate.floors if floor[0])]


def _estimate_welch(
    center: float,
    candidate_logs: Sequence[float],
    baseline_logs: Sequence[float],
    least_deviation: float = 0.0,
) -> StudentEstimate | None:
    if min(len(candidate_logs), len(baseline_logs)) < 2:
        return None
    return estimate_weighted_sum(center, [(candidate_logs, 1.0), (baseline_logs, -1.0)], least_deviation)


def _compute_logs(figures: Any) -> list[float]:
    if not all(0 < figure < math.inf for figure in figures):
        raise ValueError("a figure of a process that is taken by its logarithm is a number above 0")
    return [math.log(figure) for figure in figures]
