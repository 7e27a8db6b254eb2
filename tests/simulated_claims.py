"""Synthetic processes whose truth is known, as claims: for tests and benchmarks of what decisions promise.

The figure of a process in round r of row i is exp(truth_i + noise): `draw_noise` gives tables x rows x rounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from gpubench.core.claims import Claim, Design, Evidence
from gpubench.stats.estimates import compare_rounds

Array = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...], Array], Array]
"""Noise of shape (tables, rows, rounds) with a standard deviation a row."""


def draw_normal(draw: np.random.Generator, shape: tuple[int, ...], deviations: Array) -> Array:
    return draw.normal(size=shape) * deviations[:, None]


def draw_heavy(draw: np.random.Generator, shape: tuple[int, ...], deviations: Array) -> Array:
    """t(3), of the same standard deviation."""
    return draw.standard_t(3, size=shape) / math.sqrt(3) * deviations[:, None]


def draw_outliers(draw: np.random.Generator, shape: tuple[int, ...], deviations: Array) -> Array:
    """One process in twenty is 30 % slower."""
    slow = np.where(draw.random(shape) < 0.05, math.log(1.3), 0.0)
    return draw_normal(draw, shape, deviations) + slow


def draw_common_rounds(draw: np.random.Generator, shape: tuple[int, ...], deviations: Array) -> Array:
    """Each round does the same to all rows, three times the noise of the quietest."""
    common = draw.normal(size=(shape[0], 1, shape[2])) * 3 * deviations.min()
    return draw_normal(draw, shape, deviations) + common


def draw_slow_start(draw: np.random.Generator, shape: tuple[int, ...], deviations: Array) -> Array:
    """All processes of the first round are 10 % slower."""
    noise = draw_normal(draw, shape, deviations)
    noise[:, :, 0] += math.log(1.1)
    return noise


NOISES: dict[str, Draw] = {
    "normal": draw_normal,
    "t(3)": draw_heavy,
    "outliers": draw_outliers,
    "common rounds": draw_common_rounds,
    "slow first round": draw_slow_start,
}


def simulate_tables(
    seed: int,
    tables: int,
    truths: Sequence[float],
    deviations: float | Sequence[float],
    rounds: int,
    draw_noise: Draw = draw_normal,
) -> list[list[dict[int, float]]]:
    """Of each table, of each row: its figures by round. `truths`: logarithms."""
    shape = (tables, len(truths), rounds)
    spread = np.broadcast_to(np.asarray(deviations, dtype=float), (len(truths),))
    figures = np.exp(np.asarray(truths)[:, None] + draw_noise(np.random.default_rng(seed), shape, spread))
    return [[dict(enumerate(row)) for row in table] for table in figures.tolist()]


def claim_steps(table: Sequence[dict[int, float]], series: str = "") -> list[Claim]:
    """Each row against the one before, along an ordered axis."""
    return [
        claim_difference(after, before, "ordered", row + 1, row, series=series)
        for row, (before, after) in enumerate(itertools.pairwise(table))
    ]


def claim_others(table: Sequence[dict[int, float]]) -> list[Claim]:
    """Each other row against the first, without an order."""
    return [claim_difference(other, table[0], "paired", row) for row, other in enumerate(table[1:], start=1)]


def claim_difference(
    candidate: dict[int, float],
    baseline: dict[int, float],
    design: Design,
    row: int = 1,
    before: int = 0,
    *,
    limit: float = 0.0,
    series: str = "",
) -> Claim:
    return make_claim(compare_rounds(candidate, baseline), design, row, before, limit=limit, series=series)


def make_claim(
    evidence: Evidence,
    design: Design,
    candidate: int = 1,
    baseline: int = 0,
    *,
    limit: float = 0.0,
    series: str = "",
    family: str = "",
) -> Claim:
    return Claim(
        metric="memory_time",
        candidate=candidate,
        baseline=baseline,
        evidence=evidence,
        design=design,
        limit=limit,
        series=series,
        family=family,
    )
