"""How far chance may have moved an epoch time."""

import math
import statistics

import numpy as np
import pytest
from gpubench.analysis.noise import beginning, half_width, processes, resting, times, together
from gpubench.analysis.repeats import iqr, merge_repeats
from whole_rows import changed, row_with

PAIRS = 4000
COUNTS = (3, 4, 5, 6, 8, 9, 10, 15, 20, 30)


def row(epochs, **others):
    measured = {"epoch_time_s": statistics.median(epochs), "epoch_time_iqr_s": iqr(epochs)}
    return row_with(**(measured | {"epochs_measured": len(epochs)} | others))


def repeated(*found):
    """A row of repeats with these epoch times, as `merge_repeats` makes it; None is a repeat without one."""
    return merge_repeats(
        [
            row_with(status="ok", config_id="c", epoch_time_s=time, epochs_measured=5, repeat=n)
            for n, time in enumerate(found)
        ]
    )[0]


def drawn(chance, count, sd=1.0, mean=100.0):
    """So many rows of so many normal epoch times."""
    return summed_up(chance.normal(mean, sd, (PAIRS, count)))


def summed_up(found):
    """A row for each line of epoch times."""
    low, middle, high = np.percentile(found, [25, 50, 75], axis=1)
    return [
        row_with(epoch_time_s=m, epoch_time_iqr_s=wide, epochs_measured=found.shape[1])
        for m, wide in zip(middle.tolist(), (high - low).tolist(), strict=True)
    ]


def told_apart(some, others):
    """The share of pairs that are called different."""
    found = [
        abs(one.epoch_time_s - other.epoch_time_s) > together(half_width(one), half_width(other))
        for one, other in zip(some, others, strict=True)
    ]
    return sum(found) / len(found)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("ratio", [1, 2, 5, 10])
def test_equal_configurations_are_called_different_in_at_most_one_pair_of_twenty(count, ratio):
    """Of 4,000 pairs 5 % are 200, give or take 14; whatever both spreads, and how many times the other row has."""
    chance = np.random.default_rng(count)
    some = drawn(chance, count, ratio)
    for other in (3, 5, count, 30):
        assert 0.005 < told_apart(some, drawn(chance, other)) < 0.062


@pytest.mark.parametrize("count", COUNTS)
def test_the_factors_are_no_larger_than_that_takes(count):
    """Beside a row without any spread all of the noise is one row's, which is the worst case: there they are 5 %."""
    chance = np.random.default_rng(count)
    still = [row_with(epoch_time_s=100.0, epoch_time_iqr_s=0.0, epochs_measured=3)] * PAIRS
    assert 0.035 < told_apart(drawn(chance, count), still) < 0.062


@pytest.mark.parametrize(
    ("count", "resembles", "processes_differ", "share"),
    [
        (5, 0.5, 0.0, 0.055),
        (30, 0.5, 0.0, 0.157),
        (5, 0.8, 0.0, 0.193),
        (30, 0.8, 0.0, 0.397),
        (3, 0.0, 1.0, 0.097),
        (10, 0.0, 1.0, 0.384),
        (30, 0.0, 1.0, 0.626),
    ],
)
def test_what_the_share_is_where_epochs_are_not_independent_is_as_the_docs_say(
    count, resembles, processes_differ, share
):
    chance = np.random.default_rng(7)

    def of_processes():
        steps = chance.normal(0, 1, (PAIRS, count))
        for n in range(1, count):
            steps[:, n] = resembles * steps[:, n - 1] + math.sqrt(1 - resembles**2) * steps[:, n]
        return summed_up(100 + steps + processes_differ * chance.normal(0, 1, (PAIRS, 1)))

    assert told_apart(of_processes(), of_processes()) == pytest.approx(share, abs=0.025)


@pytest.mark.parametrize(("count", "found"), [(3, 0.8), (4, 0.9), (5, 0.83), (10, 0.99)])
def test_rows_five_standard_deviations_apart_are_mostly_told_apart(count, found):
    chance = np.random.default_rng(count)
    assert told_apart(drawn(chance, count), drawn(chance, count, mean=105.0)) > found


@pytest.mark.parametrize(
    "unknown",
    [
        {"epochs_measured": 2},
        {"epochs_measured": None},
        {"epoch_time_iqr_s": None},
        {"epoch_time_s": None},
        {"repeats": 2, "epoch_times_s": [1.0]},  # of two processes one has a time
    ],
    ids=str,
)
def test_unknown_noise_is_not_none(unknown):
    assert half_width(changed(row([1.0, 1.1, 1.2]), **unknown)) is None


def test_epochs_that_took_equally_long_have_no_noise():
    assert half_width(row([2.0, 2.0, 2.0])) == 0


def test_the_noise_of_processes_is_half_their_interval():
    """ln: 0, 0.0953 (twice), 0.1823; standard error 0.03724, times 3.182 is 0.1185; 1.0977 × sinh(0.1185)."""
    merged = repeated(1.0, 1.1, 1.2, 1.1)
    assert (times(merged), processes(merged)) == (4, 4)
    assert half_width(merged) == pytest.approx(0.13038, abs=1e-5)


def test_two_processes_know_their_noise_badly():
    """12.706 × ln(1.2) / 2 = 1.1583, and sqrt(1.2) × sinh(1.1583) = 1.5722: more than the time itself."""
    assert half_width(repeated(1.0, 1.2)) == pytest.approx(1.5722, abs=1e-4)


def test_a_repeat_without_an_epoch_time_is_no_time():
    merged = repeated(1.0, 1.001, None)
    assert (merged.repeats, times(merged), processes(merged)) == (3, 2, 2)
    assert half_width(merged) == pytest.approx(0.0063531, abs=1e-6)  # 1.0005 × 12.706 × ln(1.001) / 2
    assert resting([merged]) == "; each row is of two processes only"
    assert half_width(repeated(1.0, 1.001, 1.002, None)) == half_width(repeated(1.0, 1.001, 1.002))
    assert resting([repeated(1.0, None)]) == "; each row is of one process only", "which may have any epochs"


@pytest.mark.parametrize(
    ("rows", "said", "begins"),
    [
        (
            [row([1.0])],
            "; each row is of one process (and one epoch) only",
            "By one process (and one epoch) each, ",
        ),
        (
            [row([1.0, 1.1])],
            "; each row is of one process (and two epochs) only",
            "By one process (and two epochs) each, ",
        ),
        ([row([1.0]), row([1.0, 1.1])], "; each row is of one process only", "By one process each, "),
        ([row([1.0, 1.1, 1.2])], "; each row is of one process only", "By one process each, "),
        ([repeated(1.0, 1.1)], "; each row is of two processes only", ""),
        (
            [row([1.0, 1.1]), repeated(1.0, 1.1, 1.2)],
            "; some rows are of one process only",
            "By one process of some rows, ",
        ),
        ([repeated(1.0, 1.1, 1.2)], "", ""),
        ([row([1.0], source="published log")], "", ""),
        ([], "", ""),
    ],
)
def test_what_conclusions_rest_on_is_said_and_of_one_process_before_anything_else(rows, said, begins):
    assert resting(rows) == said
    assert beginning(rows) == begins
