"""Synthetic processes whose truth is known, as claims: for tests and benchmarks of what decisions promise.

The figure of a process in round r of row i is exp(truth_i + noise): `draw_noise` gives tables x rows x rounds.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpubench.core.claims import Claim, Design, Evidence, StudentEstimate
from gpubench.stats.choice import make_row_choice
from gpubench.stats.decisions import decide_claims
from gpubench.stats.estimates import estimate_log_ratio
from gpubench.stats.power import find_rounds_for_claims

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


HUMP = (0, -1, -2, -1, 0)
LADDER = (0, -1, -2, -3, -4)
"""Truths of five sizes, in steps of one effect."""

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
    **options: Any,
) -> Claim:
    return make_claim(estimate_log_ratio(candidate, baseline), design, row, before, **options)


def make_claim(
    evidence: Evidence, design: Design, candidate: int = 1, baseline: int = 0, **options: Any
) -> Claim:
    """`options`: limit, series, family."""
    return Claim(
        metric="memory_time",
        candidate=candidate,
        baseline=baseline,
        evidence=evidence,
        design=design,
        **options,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Rates:
    """What came of simulated questions, as shares."""

    sure: float
    """Of claims: that they are sure, and rightly so."""
    false: float
    """Of questions: that something is sure that is not so."""
    covered: float
    """Of claims: that their interval holds the truth."""
    called: float
    """Of claims without an effect: that they are sure or likely."""


def rate_verdicts(questions: Iterable[Sequence[Claim]], truths: Sequence[float]) -> Rates:
    """`questions`: undecided claims, the same ones each time, in families of one question. `truths`: of each claim."""
    count = right = false = covered = called = 0
    for claims in questions:
        is_wrong = False
        for claim, truth in zip(decide_claims(claims), truths, strict=True):
            verdict = claim.decided
            is_true = truth != 0 and verdict.direction == ("more" if truth > 0 else "less")
            right += verdict.word == "sure" and is_true
            is_wrong |= verdict.word == "sure" and not is_true
            called += truth == 0 and verdict.word != "unknown"
            assert verdict.low is not None
            assert verdict.high is not None
            covered += verdict.low <= math.exp(truth) <= verdict.high
        count += 1
        false += is_wrong
    claims_in_all = count * len(truths)
    empty = sum(truth == 0 for truth in truths)
    return Rates(
        sure=right / claims_in_all,
        false=false / count,
        covered=covered / claims_in_all,
        called=called / (count * empty) if empty else 0.0,
    )


def rate_steps(seed: int, tables: int, truths: Sequence[float], *noise: Any) -> Rates:
    """Of the steps along an axis. `truths`: of rows. `noise`: deviations, rounds and more of `simulate_tables`."""
    simulated = simulate_tables(seed, tables, truths, *noise)
    return rate_verdicts(map(claim_steps, simulated), [b - a for a, b in itertools.pairwise(truths)])


def rate_others(seed: int, tables: int, truths: Sequence[float], *noise: Any) -> Rates:
    """Of unordered claims against the first row."""
    simulated = simulate_tables(seed, tables, truths, *noise)
    return rate_verdicts(map(claim_others, simulated), [truth - truths[0] for truth in truths[1:]])


def rate_choices(seed: int, tables: int, truths: Sequence[float], *noise: Any) -> tuple[float, float]:
    """Shares of tables in which the bound of the choice holds, and in which it is firm. `truths`: of rates."""
    holds = firm = 0
    for table in simulate_tables(seed, tables, truths, *noise):
        rates = {row: statistics.geometric_mean(figures.values()) for row, figures in enumerate(table)}
        choice = make_row_choice(
            rates,
            dict.fromkeys(rates, None),
            lambda other, row, table=table: estimate_log_ratio(table[other], table[row]),
        )
        assert choice.bound is not None
        holds += max(truths) - truths[choice.row] <= math.log1p(choice.bound)
        firm += choice.is_firm
    return holds / tables, firm / tables


def rate_border(
    seed: int, tables: int, design: Design, deviations: Sequence[float], rounds: int, limit: float = 0.1
) -> float:
    """How often a claim is called sure whose truth lies at its limit, of two rows."""
    simulated = simulate_tables(seed, tables, (0, limit), deviations, rounds)
    claims = [claim_difference(table[1], table[0], design, limit=limit) for table in simulated]
    return sum(decide_claims([claim])[0].decided.word == "sure" for claim in claims) / tables


def foretell_rounds(design: Design, noise: float, effect: float) -> int | None:
    """What would be foretold of three rounds that show the true effect and the true noise."""
    error = noise * math.sqrt(2 / 3)
    evidence = Evidence(
        center=effect,
        processes=(3, 3),
        pairs=StudentEstimate(center=effect, error=error, degrees=2),
        welch=StudentEstimate(center=effect, error=error, degrees=4),
    )
    claim = make_claim(evidence, design)
    return find_rounds_for_claims([claim], [claim])[0]
