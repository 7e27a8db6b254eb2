"""What decisions promise, of 200 simulated tables a cell; tests/benchmarks/decisions.py prints 1,000 a cell.

At 200 tables a share of 5 % is known to 1.5 points, so single cells have room, and all cells of a kind together little.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from simulated_claims import (
    HUMP,
    NOISES,
    Rates,
    claim_difference,
    claim_others,
    claim_steps,
    foretell_rounds,
    make_claim,
    rate_border,
    rate_choices,
    rate_others,
    rate_steps,
    rate_verdicts,
    simulate_tables,
)

from gpubench.core.claims import Claim, Design
from gpubench.stats.decisions import count_looks, decide_claims
from gpubench.stats.estimates import estimate_combined_work

TABLES = 200
RATIOS = ((1, 1), (1, 3), (1, 10), (30, 1))
TRUTHS = ((0, 0, 0, 0, 0), (0, -1, -1, -1, 0), (0, -1, -2, -2, -2))


@pytest.mark.parametrize(
    ("noise", "rounds", "at_least"),
    [
        (0.02, 3, {0.05: 30, 0.10: 87, 0.20: 100, 0.40: 100}),
        (0.05, 3, {0.05: 4, 0.10: 16, 0.20: 64, 0.40: 98}),
        (0.05, 5, {0.05: 11, 0.10: 55, 0.20: 99, 0.40: 100}),
    ],
)
def test_power(noise: float, rounds: int, at_least: dict[float, int]) -> None:
    """Steps of a hump that are rightly sure, in per cent."""
    shares = {
        effect: 100
        * rate_steps(1, TABLES, [place * math.log1p(effect) for place in HUMP], noise, rounds).sure
        for effect in at_least
    }
    assert all(shares[effect] >= least for effect, least in at_least.items()), shares


@pytest.mark.parametrize("rate", [rate_steps, rate_others])
@pytest.mark.parametrize(
    "noise", [pytest.param(name, marks=[pytest.mark.slow] * (name != "normal")) for name in NOISES]
)
def test_honesty(noise: str, rate: Callable[..., Rates]) -> None:
    """Equal and unequal noises, truths without an effect in all, some or the last rows.

    Whether two tests share their level only unequal normal noises tell; what is done to many claims tell all.
    """
    ratios = RATIOS[1::2] if noise in ("t(3)", "outliers", "common rounds") else RATIOS
    cells = [
        rate(11 + number, TABLES, truths, [0.01 * ratio[row % 2] for row in range(5)], rounds, NOISES[noise])
        for number, (truths, ratio, rounds) in enumerate(itertools.product(TRUTHS, ratios, (2, 3, 5)))
    ]
    false, called, covered = (
        [getattr(cell, field) for cell in cells] for field in ("false", "called", "covered")
    )
    assert sum(false) / len(cells) <= 0.05
    assert max(false) <= 0.10
    assert sum(called) / len(cells) <= 0.055
    assert 0.945 <= sum(covered) / len(cells) <= 0.985
    assert min(covered) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize("ratio", RATIOS)
def test_the_bound_of_a_choice_holds(ratio: tuple[int, int]) -> None:
    for number, (noise, rounds) in enumerate(itertools.product(NOISES, (2, 5))):
        deviations = [0.02 * ratio[row % 2] for row in range(5)]
        holds, _ = rate_choices(
            50 + number, TABLES, (0, 0.1, 0.2, 0.18, 0.1), deviations, rounds, NOISES[noise]
        )
        assert holds >= 0.95


@pytest.mark.parametrize("design", ["above", "below", "equal"])
def test_truths_at_borders(design: Design) -> None:
    shares = [
        rate_border(70 + number, TABLES, design, [0.01 * side for side in ratio], rounds)
        for number, (ratio, rounds) in enumerate(itertools.product(RATIOS, (2, 3, 5, 8)))
    ]
    assert sum(shares) / len(shares) <= 0.055
    assert max(shares) <= 0.10


def test_the_work_of_copies_and_of_unlike_jobs_at_a_border() -> None:
    """Alone three processes; groups of three runs, whose jobs have half of their noise in common."""
    for jobs in (["a", "a"], ["a", "b", "c"]):
        truth = math.log(len(jobs) * 0.75)
        shares = []
        for design in ("above", "below"):
            sure = 0
            for table in simulate_tables(90, 4 * TABLES, [0.0] * 7, 0.1, 3):
                alone = {name: list(table[place].values()) for place, name in enumerate("abc")}
                common = table[3].values()
                together = [
                    (
                        name,
                        [math.sqrt(x * y) / 0.75 for x, y in zip(common, table[4 + k].values(), strict=True)],
                    )
                    for k, name in enumerate(jobs)
                ]
                claim = make_claim(estimate_combined_work(alone, together), design, limit=truth)
                sure += decide_claims([claim])[0].decided.word == "sure"
            shares.append(sure / (4 * TABLES))
        assert max(shares) <= 0.06, shares


def test_without_common_rounds_unequal_noise_is_judged_by_the_fewest_degrees() -> None:
    def claim_apart(table: list[dict[int, float]]) -> list[Claim]:
        shifted = {10 + key: value for key, value in table[1].items()}
        return [claim_difference(shifted, table[0], "paired")]

    for ratio in RATIOS:
        tables = simulate_tables(100, 3 * TABLES, (0, 0), [0.01 * side for side in ratio], 3)
        assert rate_verdicts(map(claim_apart, tables), [0.0]).false <= 0.055


@pytest.mark.slow
@pytest.mark.parametrize("claim_table", [claim_steps, claim_others])
def test_looks_after_each_round_cost_a_twentieth(claim_table: Callable[..., list[Claim]]) -> None:
    """Nine equal rows, looked at after each of eight rounds, and judged at the end: what stops is sure for good."""
    false = 0
    for table in simulate_tables(110, TABLES // 2, [0.0] * 9, 0.02, 8):
        looked = [
            decide_claims(claims, [count_looks(claim.evidence) for claim in claims])
            for rounds in range(2, 9)
            if (claims := claim_table([{key: row[key] for key in range(rounds)} for row in table]))
        ]
        false += any(claim.decided.word == "sure" for claims in looked for claim in claims)
    assert false / (TABLES // 2) <= 0.01


@pytest.mark.parametrize("design", ["ordered", "paired"])
def test_what_was_foretold_decides_in_four_of_five_sweeps(design: Design) -> None:
    for effect in (0.05, 0.10):
        rounds = foretell_rounds(design, 0.05, effect)
        assert rounds is not None
        tables = simulate_tables(120, 2 * TABLES, (0, effect), 0.05, rounds)
        claims = [[claim_difference(table[1], table[0], design)] for table in tables]
        assert 0.75 <= rate_verdicts(claims, [effect]).sure <= 0.9
