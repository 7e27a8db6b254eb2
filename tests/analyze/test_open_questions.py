"""Which questions are open while a sweep goes on, by stricter tests than those below the table."""

from __future__ import annotations

from typing import Any

import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze.open_questions import SAME_RATE, list_rows_of_open_questions
from gpubench.analyze.table_rows import TableRows

QUIET = (-0.0002, 0.0, 0.0002)
MEMORY = {"gpu_mem_mib": 1000.0}


def ways(*times: list[float]) -> TableRows:
    """The same work by several strategies, in the order of these names."""
    names = ("ddp", "dp", "fsdp")
    rows = [
        {"strategy": name, "gpus": 2, "epoch_time_s": time} for name, time in zip(names, times, strict=False)
    ]
    return make_table([{**MEMORY, **row} for row in rows], varied=("strategy",))


def sizes(*times: list[float], **facts: Any) -> TableRows:
    rows = [{**MEMORY, "batch_size": 16 << n, "epoch_time_s": time} for n, time in enumerate(times)]
    return make_table(rows, varied=("batch_size",), axis="batch_size", tied=(), **facts)


def pair_apart(by: float, deviations: tuple[float, ...]) -> TableRows:
    return ways(scatter(1.0, *deviations), scatter(1.0 + by, *reversed(deviations)))


def test_what_differs_for_sure_and_what_is_the_same_are_answers() -> None:
    assert list_rows_of_open_questions(pair_apart(0.5, QUIET), 1) == []
    assert list_rows_of_open_questions(pair_apart(0.0, QUIET), 1) == [], "within 2 %"
    assert list_rows_of_open_questions(pair_apart(SAME_RATE, (-0.01, 0.0, 0.01)), 1) == [(11, 10)], (
        "neither is known"
    )
    (pair,) = list_rows_of_open_questions(ways([1.0] * 3, [2.0] * 3, scatter(1.0, -0.2, 0.0, 0.2)), 1) or []
    assert set(pair) == {10, 12}


def test_of_one_process_and_of_two_nothing_is_answered() -> None:
    for count in (1, 2):
        assert list_rows_of_open_questions(ways([1.0] * count, [9.0] * count), 1) == [(11, 10)]
    assert list_rows_of_open_questions(ways([1.0] * 3, [9.0] * 3), 1) == []
    assert list_rows_of_open_questions(ways([1.0] * 2, [9.0] * 3), 1) == [(11, 10)]  # the smaller side counts


def test_each_further_look_is_a_stricter_one() -> None:
    """Pairs whose t is 14.7 have p = 0.0046 of three rounds: below 5 %, and not below a fortieth of that."""
    table = pair_apart(0.1, (-0.0056, 0.0, 0.0056))
    assert list_rows_of_open_questions(table, 1) == [(11, 10)]
    assert list_rows_of_open_questions(pair_apart(0.1, (-0.0015, 0.0, 0.0015)), 1) == []


def test_a_choice_is_open_against_the_rows_that_may_be_much_faster() -> None:
    """The chosen size is the fastest; 16 is far slower, and 64 scatters so that it may be faster by more than 25 %."""
    flat = [1.0, 1.0, 1.0]
    table = sizes([4.0, 4.0, 4.0], flat, scatter(1.1, -0.2, 0.0, 0.2))
    assert list_rows_of_open_questions(table, 1) == [(11, 12)]
    assert list_rows_of_open_questions(sizes([4.0] * 3, flat, scatter(1.1, *QUIET)), 1) == []
    assert list_rows_of_open_questions(sizes([4.0], [1.0], [1.1]), 1) == [(11, 10), (11, 12)], (
        "of one process all are"
    )


def test_jobs_stay_with_their_trials_alone_until_it_is_known_whether_sharing_gains() -> None:
    def group(*deviations: float, slowed: float) -> TableRows:
        alone = [{"trial_id": name, "epoch_time_s": scatter(1.0, *QUIET)} for name in "ab"]
        jobs = [
            {"group": "g", "unit": 0, "jobs_of_group": 2, "solo_id": name, "trial_id": f"g{name}",
             "epoch_time_s": scatter(slowed, *deviations)}
            for name in "ab"
        ]  # fmt: skip
        return make_table([{**MEMORY, **row} for row in (*alone, *jobs)])

    assert list_rows_of_open_questions(group(-0.3, 0.0, 0.3, slowed=1.5), 1) == [(12, 13, 10, 11)]
    assert list_rows_of_open_questions(group(*QUIET, slowed=1.5), 1) == [], "it gains"
    assert list_rows_of_open_questions(group(*QUIET, slowed=2.2), 1) == [], "it does not"
    # Work of 1.9 lies at the border of full overlap: how full it is may stay open.
    assert list_rows_of_open_questions(group(*QUIET, slowed=2 / 1.9), 1) == []


@pytest.mark.parametrize("table", [ways([1.0] * 3), sizes([1.0] * 3)])
def test_one_row_asks_nothing(table: TableRows) -> None:
    assert list_rows_of_open_questions(table, 1) is None
