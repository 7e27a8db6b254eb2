"""What findings promise, by the function that `gpubench table --json` prints: what the decisions under them do.

tests/stats holds those against the truth, of many more tables, and tests/benchmarks/promises.py whole reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from simulated_claims import HUMP, claim_steps, simulate_tables
from simulated_reports import IMAGES, answer_batch_size

from gpubench.stats.choice import make_row_choice
from gpubench.stats.decisions import decide_claims
from gpubench.stats.estimates import estimate_log_ratio

TABLES = 3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truths", "noise", "rounds"),
    [
        ([place * math.log1p(0.20) for place in HUMP], 0.05, 5),
        ([0.0] * 5, 0.05, 3),
    ],
)
def test_a_report_says_of_its_rows_what_decisions_say_of_their_figures(
    truths: Sequence[float], noise: float, rounds: int
) -> None:
    findings = answer_batch_size(1, TABLES, truths, noise, rounds)
    simulated = simulate_tables(1, TABLES, truths, noise, rounds)
    for number, (finding, table) in enumerate(zip(findings, simulated, strict=True)):
        for told, claim in zip(finding["claims"], decide_claims(claim_steps(table)), strict=True):
            verdict = claim.decided
            assert (told["verdict"], told["direction"]) == (verdict.word, verdict.direction)
            assert (told["low"], told["high"]) == pytest.approx((verdict.low, verdict.high))
        rates = {
            row: IMAGES / math.exp(sum(map(math.log, seconds.values())) / rounds)
            for row, seconds in enumerate(table)
        }
        choice = make_row_choice(
            rates,
            dict.fromkeys(rates),
            lambda other, row, table=table: estimate_log_ratio(table[row], table[other]),
        )
        assert finding["choice"]["row"] == number * len(table) + choice.row
        assert finding["choice"]["bound"] == pytest.approx(choice.bound)
