"""What findings promise, by the function that `gpubench table --json` prints: power and honesty on synthetic tables.

tests/stats judges decisions by many more tables, and tests/benchmarks/promises.py whole reports; here a few whole
reports are made, from rows to data.
"""

from __future__ import annotations

import math

import pytest
from simulated_claims import HUMP
from simulated_reports import answer_batch_size, rate_reports

TABLES = 30


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "rounds", "effect", "at_least"),
    [(0.02, 3, 0.10, 0.80), (0.05, 3, 0.40, 0.95), (0.05, 5, 0.20, 0.95)],
)
def test_steps_of_a_hump_are_rightly_sure(noise: float, rounds: int, effect: float, at_least: float) -> None:
    truths = [place * math.log1p(effect) for place in HUMP]
    rates = rate_reports(answer_batch_size(1, TABLES, truths, noise, rounds), truths)
    assert rates.sure >= at_least
    assert rates.bounded >= 0.95


@pytest.mark.slow
def test_equal_sizes_are_seldom_called_different_and_the_bound_of_the_choice_holds() -> None:
    rates = rate_reports(answer_batch_size(2, TABLES, [0.0] * 5, 0.05, 3), [0.0] * 5)
    assert rates.false <= 0.17  # 5 % and, of 30 tables, three standard errors
    assert rates.bounded == 1


@pytest.mark.slow
def test_the_bound_of_a_choice_holds_where_another_row_is_the_fastest() -> None:
    truths = [0.3, 0.02, 0.0, 0.02, 0.3]
    assert rate_reports(answer_batch_size(3, TABLES, truths, 0.05, 3), truths).bounded >= 0.95
