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
def test_steps_of_a_hump_are_rightly_sure() -> None:
    truths = [place * math.log1p(0.20) for place in HUMP]
    rates = rate_reports(answer_batch_size(1, TABLES, truths, 0.05, 5), truths)
    assert rates.sure >= 0.95
    assert rates.bounded >= 0.95


@pytest.mark.slow
def test_equal_sizes_are_seldom_called_different_and_the_bound_of_the_choice_holds() -> None:
    rates = rate_reports(answer_batch_size(2, TABLES, [0.0] * 5, 0.05, 3), [0.0] * 5)
    assert rates.false <= 0.17  # 5 % and, of 30 tables, three standard errors
    assert rates.bounded == 1
