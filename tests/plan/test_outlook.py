"""How long a sweep in rounds still takes, by hand."""

from __future__ import annotations

import pytest

from gpubench.plan.outlook import Left, Outlook, place
from gpubench.plan.rounds import Rounds, rounds_of


def left(
    rounds: Rounds, number: int, round_s: float = 0.0, elapsed_s: float = 0.0, pace: float = 1.0
) -> Left:
    return Outlook(rounds=rounds, number=number, each_s=14.0).left(round_s, elapsed_s, pace)


def test_so_many_rounds_each_as_long_as_it_is_expected_to_be() -> None:
    five = rounds_of(5, None, None)
    assert left(five, 2, 3.0) == Left(seconds=3 + 3 * 14)
    assert left(five, 2, 3.0, pace=0.5) == Left(seconds=3 + 3 * 14 / 2)
    assert left(five, 5, 3.0) == Left(seconds=3)


def test_until_a_certainty_it_is_at_least_what_three_processes_take() -> None:
    within = rounds_of(None, "2%", None)
    assert left(within, 1, 5.0) == Left(seconds=5 + 2 * 14, until="to ± 2 %", at_least=True)
    assert left(within, 4, 5.0) == Left(seconds=5, until="to ± 2 %", at_least=True)


def test_a_budget_ends_it_where_that_is_sooner() -> None:
    budget = rounds_of(None, None, "2m")
    assert left(budget, 2, 9, elapsed_s=50) == Left(seconds=70, until="of the budget", at_most=True)
    assert left(budget, 2, elapsed_s=130).seconds == 0
    both = rounds_of(None, "2%", "2m")
    assert left(both, 1, elapsed_s=100) == Left(seconds=20, until="of the budget")


def test_the_first_round_is_gone_through_whatever_the_budget() -> None:
    assert left(rounds_of(None, None, "10s"), 1, 25, elapsed_s=2) == Left(seconds=25)


@pytest.mark.parametrize(
    ("time_left", "text"),
    [
        (Left(seconds=200), "about 3 min left"),
        (Left(seconds=40, until="of the budget"), "about 40 s left of the budget"),
        (Left(seconds=40, until="of the budget", at_most=True), "at most 40 s left of the budget"),
        (Left(seconds=40, until="to ± 2 %", at_least=True), "at least 40 s left to ± 2 %"),
    ],
)
def test_what_is_left_in_words(time_left: Left, text: str) -> None:
    assert str(time_left) == text


def test_a_round_is_counted_among_all_where_their_number_is_known() -> None:
    assert place(2, Rounds(number=5)) == "round 2 of 5"
    assert place(2, rounds_of(None, "2%", None)) == "round 2"
