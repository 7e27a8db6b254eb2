"""How long a sweep in rounds still takes, by hand."""

from __future__ import annotations

import math

import pytest

from gpubench.plan.outlook import Ahead, Left, Outlook, outlook, place
from gpubench.plan.rounds import Rounds, rounds_of
from gpubench.stats.estimates import find_width_pct
from gpubench.stats.power import find_processes

# Logarithms 0, 0.02 and 0.04: a standard deviation of 0.02.
THREE = (1.0, math.exp(0.02), math.exp(0.04))


def ahead(*samples: tuple[float, ...], each_s: float = 10.0, turns: int = 0) -> Ahead:
    return Ahead(each_s=each_s, samples=samples, turns=turns)


def left(
    rounds: Rounds, number: int, *each: Ahead, round_s: float = 0.0, elapsed_s: float = 0.0, pace: float = 1.0
) -> Left:
    return outlook(rounds, number, each).left(round_s, elapsed_s, pace)


def test_so_many_rounds_each_as_long_as_it_is_expected_to_be() -> None:
    five = rounds_of(5, None, None)
    each = [ahead((1.0,)), ahead((1.0,), each_s=4.0)]
    assert left(five, 2, *each, round_s=3.0) == Left(seconds=3 + 3 * 14)
    assert left(five, 2, *each, round_s=3.0, pace=0.5) == Left(seconds=3 + 3 * 14 / 2)
    assert left(five, 5, *each, round_s=3.0) == Left(seconds=3)


@pytest.mark.parametrize(
    ("within_pct", "processes"),
    [
        # t × 0.02 / √n: 0.0497 at 3 (4.303), 0.0318 at 4 (3.182), 0.0248 at 5 (2.776), 0.0210 at 6 (2.571),
        # 0.0185 at 7 (2.447).
        (5.0, 3), (4.9, 4), (2.5, 5), (2.0, 7),
    ],
)  # fmt: skip
def test_how_many_processes_a_certainty_takes(within_pct: float, processes: int) -> None:
    assert find_processes(THREE, within_pct) == processes


def test_one_process_tells_nothing_of_how_many_it_takes_and_a_wild_row_never_gets_there() -> None:
    assert find_processes((1.0,), 5.0) is None
    assert find_processes((1.0, 9.0, 1.0), 0.1) is None
    assert find_processes((2.0, 2.0), 0.1) == 2


def test_as_many_as_were_foretold_bring_it_there_where_they_spread_as_the_first_did() -> None:
    seven = [math.exp(0.02 * z) for z in (-1.3, -0.9, -0.45, 0.0, 0.45, 0.9, 1.3)]
    scale = 0.02 / (sum(math.log(t) ** 2 for t in seven) / 6) ** 0.5
    known = find_width_pct([t**scale for t in seven])
    assert known is not None
    assert 1.8 < known <= 2.0


def test_until_a_certainty_each_row_takes_its_own_rounds() -> None:
    within = rounds_of(None, "2%", None)
    # 7 processes in all: 4 more than these three, one of which is still to come in this round.
    assert left(within, 3, ahead(THREE)) == Left(seconds=40, until="to ± 2 %")
    assert left(within, 3, ahead(THREE, turns=1), round_s=8) == Left(seconds=8 + 30, until="to ± 2 %")
    # A group takes what its least sure job does; a row that is sure takes none.
    sure = (1.0, 1.0, 1.0)
    assert left(within, 3, ahead(sure, THREE), ahead(sure)).seconds == 40
    # Fewer rounds than that may be left.
    assert left(rounds_of(5, "2%", None), 3, ahead(THREE)).seconds == 20


def test_before_anybody_knows_how_far_processes_lie_apart_it_is_at_least_three() -> None:
    within = rounds_of(None, "2%", None)
    first = left(within, 1, ahead((), turns=1), round_s=5)
    assert first == Left(seconds=5 + 20, until="to ± 2 %", at_least=True)
    assert left(within, 1, ahead((1.0,))) == Left(seconds=20, until="to ± 2 %", at_least=True)


def test_a_budget_ends_it_where_that_is_sooner() -> None:
    budget = rounds_of(None, None, "2m")
    found = left(budget, 2, ahead((1.0,)), round_s=9, elapsed_s=50)
    assert found == Left(seconds=70, until="of the budget", at_most=True)
    assert left(budget, 2, ahead((1.0,)), elapsed_s=130).seconds == 0
    both = rounds_of(None, "2%", "2m")
    assert left(both, 3, ahead(THREE), elapsed_s=70) == Left(seconds=40, until="to ± 2 %")
    assert left(both, 3, ahead(THREE), elapsed_s=90) == Left(seconds=30, until="of the budget")


def test_the_first_round_is_gone_through_whatever_the_budget() -> None:
    budget = rounds_of(None, None, "10s")
    assert left(budget, 1, ahead((), turns=1), round_s=25, elapsed_s=2) == Left(seconds=25)


def test_one_round_has_nothing_after_it() -> None:
    assert Outlook(rounds=Rounds(), number=1).left(7.0, 3.0) == Left(seconds=7)


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
