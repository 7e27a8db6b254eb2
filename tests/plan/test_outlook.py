"""How long a sweep in rounds still takes, by hand."""

from __future__ import annotations

import pytest

from gpubench.plan.outlook import SweepOutlook, TimeLeft, format_round_number
from gpubench.plan.rounds import RoundLimits, parse_rounds


def left(
    rounds: RoundLimits, number: int, round_s: float = 0.0, elapsed_s: float = 0.0, pace: float = 1.0
) -> TimeLeft:
    return SweepOutlook(rounds=rounds, number=number, each_s=14.0).estimate_time_left(
        round_s, elapsed_s, pace
    )


def test_so_many_rounds_each_as_long_as_it_is_expected_to_be() -> None:
    five = parse_rounds(5, None, None)
    assert left(five, 2, 3.0) == TimeLeft(seconds=3 + 3 * 14)
    assert left(five, 2, 3.0, pace=0.5) == TimeLeft(seconds=3 + 3 * 14 / 2)
    assert left(five, 5, 3.0) == TimeLeft(seconds=3)


def test_until_a_certainty_it_is_at_least_what_three_processes_take() -> None:
    within = parse_rounds(None, "2%", None)
    assert left(within, 1, 5.0) == TimeLeft(seconds=5 + 2 * 14, until="to ± 2 %", at_least=True)
    assert left(within, 4, 5.0) == TimeLeft(seconds=5, until="to ± 2 %", at_least=True)


def test_a_budget_ends_it_where_that_is_sooner() -> None:
    budget = parse_rounds(None, None, "2m")
    assert left(budget, 2, 9, elapsed_s=50) == TimeLeft(seconds=70, until="of the budget", at_most=True)
    assert left(budget, 2, elapsed_s=130).seconds == 0
    both = parse_rounds(None, "2%", "2m")
    assert left(both, 1, elapsed_s=100) == TimeLeft(seconds=20, until="of the budget")


def test_the_first_round_is_gone_through_whatever_the_budget() -> None:
    assert left(parse_rounds(None, None, "10s"), 1, 25, elapsed_s=2) == TimeLeft(seconds=25)


@pytest.mark.parametrize(
    ("time_left", "text"),
    [
        (TimeLeft(seconds=200), "about 3 min left"),
        (TimeLeft(seconds=40, until="of the budget"), "about 40 s left of the budget"),
        (TimeLeft(seconds=40, until="of the budget", at_most=True), "at most 40 s left of the budget"),
        (TimeLeft(seconds=40, until="to ± 2 %", at_least=True), "at least 40 s left to ± 2 %"),
    ],
)
def test_what_is_left_in_words(time_left: TimeLeft, text: str) -> None:
    assert str(time_left) == text


def test_a_round_is_counted_among_all_where_their_number_is_known() -> None:
    assert format_round_number(2, RoundLimits(number=5)) == "round 2 of 5"
    assert format_round_number(2, parse_rounds(None, "2%", None)) == "round 2"
