"""How far chance may have moved an epoch time."""

import random
import statistics

import pytest

from gpubench.analysis.noise import half_width, resting, times
from gpubench.analysis.repeats import iqr

PAIRS = 4000


def row(epochs, **others):
    measured = {"epoch_time_s": statistics.median(epochs), "epoch_time_iqr_s": iqr(epochs)}
    return measured | {"epochs_measured": len(epochs)} | others


@pytest.mark.parametrize("count", [3, 4, 5, 6, 8, 9, 10, 15, 30])
def test_equal_configurations_are_called_different_in_at_most_one_pair_of_twenty(count):
    """Of 4,000 pairs 5 % are 200, give or take 14."""
    chance = random.Random(count)
    different = 0
    for _ in range(PAIRS):
        one, other = (row([chance.gauss(10, 0.1) for _ in range(count)]) for _ in range(2))
        apart = abs(one["epoch_time_s"] - other["epoch_time_s"])
        different += apart > half_width(one) + half_width(other)
    assert 0.01 < different / PAIRS < 0.06


@pytest.mark.parametrize("count", [3, 5, 10])
def test_rows_five_standard_deviations_apart_are_mostly_told_apart(count):
    chance = random.Random(count)
    found = 0
    for _ in range(400):
        one, other = (row([chance.gauss(mean, 1) for _ in range(count)]) for mean in (100, 105))
        found += other["epoch_time_s"] - one["epoch_time_s"] > half_width(one) + half_width(other)
    assert found / 400 > (0.8 if count == 3 else 0.95)


@pytest.mark.parametrize(
    "unknown",
    [
        {"epochs_measured": 2},
        {"epochs_measured": None},
        {"epoch_time_iqr_s": None},
        {"epoch_time_s": None},
        {"repeats": 2},  # their range says as little as that of two epochs
    ],
    ids=str,
)
def test_unknown_noise_is_not_none(unknown):
    assert half_width(row([1.0, 1.1, 1.2]) | unknown) is None


def test_epochs_that_took_equally_long_have_no_noise():
    assert half_width(row([2.0, 2.0, 2.0])) == 0


def test_repeats_count_for_more_than_the_epochs_of_one_process():
    merged = row([1.0, 1.1, 1.2], repeats=5)
    assert times(merged) == 5
    assert half_width(merged) < half_width(row([1.0, 1.1, 1.2]))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row([1.0])], "; each row is of one process (and one epoch) only"),
        ([row([1.0, 1.1])], "; each row is of one process (and two epochs) only"),
        ([row([1.0]), row([1.0, 1.1])], "; each row is of one process only"),
        ([row([1.0, 1.1, 1.2])], "; each row is of one process only"),
        ([row([1.0, 1.1], repeats=2)], "; each row is of two processes only"),
        ([row([1.0, 1.1], repeats=1), row([1.0, 1.1], repeats=3)], "; some rows are of one process only"),
        ([row([1.0, 1.1], repeats=3)], ""),
        ([row([1.0], source="published log")], ""),
        ([], ""),
    ],
)
def test_what_conclusions_rest_on_is_said(rows, said):
    assert resting(rows) == said
