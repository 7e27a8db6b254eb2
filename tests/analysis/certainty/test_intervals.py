"""Intervals and ratios against scipy.stats 1.17, and by hand."""

import math

import numpy as np
import pytest
from gpubench.analysis.certainty.interval import interval, overlap_gain, product, ratio, ratio_by_rounds
from hypothesis import given, settings
from hypothesis import strategies as st

SLOW = [1.02, 1.05, 0.99, 1.04, 1.01]
FAST = [0.95, 0.98, 1.0, 0.93, 0.96, 0.97]

times = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=8)


def ends(found):
    return found.low, found.value, found.high


def test_the_interval_of_one_row():
    """scipy.stats.t.interval(0.95, 2, mean, sem) of the logarithms; the value is (1.0 × 1.1 × 1.3) ** (1 / 3)."""
    found = interval([1.0, 1.1, 1.3])
    assert ends(found) == pytest.approx((0.81002844, 1.12662317, 1.56695704))
    assert found.half_pct == pytest.approx(100 * (1.56695704 - 0.81002844) / 2 / 1.12662317)
    assert found.processes == (3,)
    narrow = interval([1.0, 1.1, 1.3], confidence=0.9)
    assert ends(narrow) == pytest.approx((0.90062315, 1.12662317, 1.40933504))


def test_a_ratio_by_welch():
    """scipy.stats.ttest_ind(logs, logs, equal_var=False): its interval and its freedom."""
    found = ratio(SLOW, FAST)
    assert ends(found) == pytest.approx((1.02445669, 1.05911538, 1.09494663))
    assert found.log.freedom == pytest.approx(8.85105943)
    assert found.processes == (5, 6)
    assert ratio(SLOW, FAST, confidence=0.9).low > found.low


def test_the_other_side_can_not_make_up_for_two_processes():
    """Nearly all variance is that of two processes: 12.706 standard errors, 0.131183 each, not Welch's 1.6667."""
    found = ratio([1.0, 1.3], [1.1, 1.101, 1.099, 1.1, 1.102])
    assert found.log.half_width() == pytest.approx(1.66682703)
    # Both noisy, both two processes: 12.706 of one side's, or 4.303 (freedom 2) of both: the former is more.
    alike = ratio([1.0, 1.3], [1.0, 1.3])
    assert alike.log.half_width() == pytest.approx(12.70620474 * math.log(1.3) / 2)


def test_few_processes_have_no_interval_of_their_own():
    assert interval([]) is None
    assert interval([1.0]) is None
    assert ratio([1.0], [1.0, 1.1]) is None
    assert ratio([1.0, 1.1], []) is None
    assert ratio([], [1.0]) is None


def test_pairs_by_rounds():
    """scipy.stats.ttest_rel of the logarithms of the four rounds that both have."""
    over = {4: 1.3, 1: 1.1, 2: 1.2, 3: 1.15, 7: 9.0}
    under = {1: 1.0, 2: 1.15, 3: 1.12, 4: 1.2, 5: 0.1}
    found = ratio_by_rounds(over, under)
    assert [math.log(end) for end in (found.low, found.high)] == pytest.approx([0.01014500, 0.11202788])
    assert found.log.chance_equal(0) == pytest.approx(0.03165400)
    assert found.processes == (4, 4)
    assert ratio_by_rounds(over, under, 0.9).low > found.low
    assert ratio_by_rounds({1: 1.0, 2: 1.0}, {2: 1.0, 3: 1.0}) is None
    assert ratio_by_rounds({1: 1.0, 2: 1.1}, {1: 1.0, 2: 1.0}) is not None


def test_pairs_don_t_see_what_a_whole_round_does():
    drift = {n: 1.1**n for n in range(5)}
    slower = {n: 1.02 * time * (1 + 0.001 * (n % 2)) for n, time in drift.items()}
    found = ratio_by_rounds(slower, drift)
    assert found.value == pytest.approx(1.02, rel=1e-3)
    assert found.half_pct < 0.1 < ratio(list(slower.values()), list(drift.values())).half_pct


def test_a_growth_and_an_efficiency_are_the_ratio_in_other_units():
    found = ratio(SLOW, FAST)
    growth = found.minus(1).times(100)
    assert ends(growth) == pytest.approx([100 * (end - 1) for end in ends(found)])
    assert growth.half_pct == pytest.approx((growth.high - growth.low) / 2 / growth.value * 100)
    assert ends(found.times(0.25)) == pytest.approx([end / 4 for end in ends(found)])
    assert ends(found.times(2).minus(1).times(3).minus(4)) == pytest.approx(
        [3 * (2 * end - 1) - 4 for end in ends(found)]
    )
    assert growth.chance_at_most(0) == pytest.approx(found.chance_at_most(1))
    assert growth.chance_at_least(7) == pytest.approx(found.chance_at_least(1.07))
    assert (growth.chance_at_most(-100), growth.chance_at_least(-150)) == (0.0, 1.0), (
        "no time falls by so much"
    )
    for factor in (0, -1):
        with pytest.raises(ValueError, match="above 0"):
            found.times(factor)
    assert ratio([1.0, 1.1], [1.0, 1.1]).minus(1).half_pct == math.inf


def test_powers_multiply():
    cubed = product([([1.0, 1.1, 1.3], 3.0)])
    assert ends(cubed) == pytest.approx([end**3 for end in ends(interval([1.0, 1.1, 1.3]))])
    assert product([(SLOW, 1.0), (FAST, -1.0)]) == ratio(SLOW, FAST)
    four = product([(SLOW, 1.0), (FAST, -1.0), (FAST, 1.0), (SLOW, -1.0)])
    assert four.value == pytest.approx(1)
    assert four.log.error == pytest.approx(math.sqrt(2) * ratio(SLOW, FAST).log.error)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_a_time_is_above_0(bad):
    with pytest.raises(ValueError, match=r"^a time of a process is a number above 0$"):
        interval([1.0, bad])


def test_times_that_are_all_the_same_have_no_width():
    found = interval([0.1, 0.1, 0.1])
    assert found.low == found.high == pytest.approx(0.1)
    assert found.half_pct == 0


def test_what_is_unknown_upwards_is_infinite():
    assert interval([1e-9, 1e200]).high == math.inf


def test_the_overlap_gain_by_hand():
    alone = {"a": [1.0, 1.02, 0.98], "b": [2.0, 2.1, 2.05]}
    together = [("a", [1.5, 1.6, 1.55]), ("b", [2.5, 2.4, 2.6])]
    logs = {name: np.log(values) for name, values in alone.items()}
    shared = [np.log(values) for _, values in together]
    rates = [
        math.exp(logs[name].mean() - own.mean()) for (name, _), own in zip(together, shared, strict=True)
    ]
    found = overlap_gain(alone, together)
    assert found.value == pytest.approx(sum(rates) - 1)
    weights = [rate / sum(rates) for rate in rates]
    group = weights[0] * shared[0] + weights[1] * shared[1]
    variances = [
        weights[0] ** 2 * logs["a"].var(ddof=1) / 3,
        weights[1] ** 2 * logs["b"].var(ddof=1) / 3,
        group.var(ddof=1) / 3,
    ]
    assert found.log.error == pytest.approx(math.sqrt(sum(variances)))
    assert [part.freedom for part in found.log.parts] == [2, 2, 2]
    assert found.processes == (3, 3, 3)
    half = found.log.half_width()
    assert (found.low, found.high) == pytest.approx([sum(rates) * math.exp(s * half) - 1 for s in (-1, 1)])


def test_the_gain_of_three_jobs_is_shared_by_two():
    same = [1.0, 1.001]
    found = overlap_gain({"a": same}, [("a", [2.0, 2.002])] * 3)
    assert found.value == pytest.approx((3 / 2 - 1) / 2)
    assert found.chance_at_most(0.25) == pytest.approx(0.5, abs=0.01)


def test_copies_share_their_times_alone():
    """The trial alone varies once for both of its copies: 2 × ½ of its error, not √2 × ½."""
    alone = [1.0, 1.1, 1.2, 1.05]
    still = [2.0] * 4
    found = overlap_gain({"a": alone}, [("a", still), ("a", still)])
    assert found.log.error == pytest.approx(interval(alone).log.error)
    other = overlap_gain({"a": alone, "b": alone}, [("a", still), ("b", still)])
    assert other.log.error == pytest.approx(found.log.error / math.sqrt(2))


def test_jobs_of_one_run_that_make_up_for_each_other_leave_the_gain_sure():
    alone = {"a": [1.0, 1.0, 1.0]}
    one, other = [2.0, 2.2, 2.1], [2.2, 2.0, 2.1]
    against = overlap_gain(alone, [("a", one), ("a", other)])
    along = overlap_gain(alone, [("a", one), ("a", one)])
    assert against.log.error < along.log.error / 10


def test_a_gain_takes_two_jobs_and_all_their_times():
    assert overlap_gain({"a": [1.0, 1.1]}, [("a", [1.0, 1.1])]) is None
    assert overlap_gain({"a": [1.0, 1.1]}, [("a", [1.0, 1.1]), ("b", [1.0, 1.1])]) is None
    assert overlap_gain({"a": [1.0, 1.1]}, [("a", []), ("a", [])]) is None
    assert overlap_gain({"a": [1.0]}, [("a", [2.0]), ("a", [2.0])]) is None
    with pytest.raises(ValueError, match="as many runs"):
        overlap_gain({"a": [1.0, 1.1]}, [("a", [1.0, 1.1]), ("a", [1.0])])


@given(times, times, st.randoms(use_true_random=False))
def test_the_order_of_processes_changes_nothing(over, under, chance):
    found = ratio(over, under)
    shuffled = chance.sample(over, len(over)), chance.sample(under, len(under))
    assert ratio(*shuffled) == found


@given(times, times, st.sampled_from([1e-3, 1e3, 7.3]))
def test_the_unit_changes_nothing(over, under, unit):
    found, other = ratio(over, under), ratio([unit * t for t in over], [unit * t for t in under])
    assert ends(other) == pytest.approx(ends(found), rel=1e-6)
    own, in_unit = interval(over), interval([unit * t for t in over])
    assert [end / unit for end in ends(in_unit)] == pytest.approx(ends(own), rel=1e-6)


@given(times, times)
def test_upside_down_it_is_the_same_interval(over, under):
    found, other = ratio(over, under), ratio(under, over)
    assert ends(other) == pytest.approx([1 / end for end in reversed(ends(found))], rel=1e-9)


@settings(max_examples=500)
@given(times, times)
def test_a_process_at_the_mean_makes_no_interval_wider(over, under):
    """By Welch alone it could: see `MeanEstimate`."""
    found = ratio(over, under)
    more = ratio([*over, interval(over).value], under)
    assert more.value == pytest.approx(found.value)
    assert more.log.half_width() <= found.log.half_width() * (1 + 1e-9) + 1e-12
    # At the ratio itself a p-value is a half, or what the rounding of floats makes of it.
    for value in (found.value * away for away in (0.8, 0.999, 1.001, 1.25)):
        gone = min(more.chance_at_most(value), more.chance_at_least(value))
        assert gone <= min(found.chance_at_most(value), found.chance_at_least(value)) + 1e-9
    own = interval(over)
    assert interval([*over, own.value]).log.half_width() <= own.log.half_width() * (1 + 1e-9) + 1e-12
