"""Slowdown, overlap gain, its range and its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.analysis.slowdown import gain_range, overlap_gain, slowdown, verdict, verdict_between


def row(time, iqr):
    return {"epoch_time_s": time, "epoch_time_iqr_s": iqr}


def test_overlap_gain_of_the_published_log():
    alone = (19.6, 12.8, 11.3)
    four = overlap_gain([slowdown(t, a) for t, a in zip((51, 28, 22.5), alone, strict=True)])
    own = overlap_gain([slowdown(28.5, a) for a in (16.2, 15.4, 11.3)])
    shared = overlap_gain([slowdown(32.5, 21.5), slowdown(23.1, 13.6)])
    assert [round(gain, 2) for gain in (four, own, shared)] == [0.17, 0.25, 0.25]
    assert overlap_gain([1.0, 1.0, 1.0]) == 1
    assert overlap_gain([3.0, 3.0, 3.0]) == 0
    assert overlap_gain([2.0, None]) is None


def test_words_for_an_overlap_gain():
    assert [verdict(g) for g in (1.0, 0.9, 0.5, 0.1, -0.2)] == [
        "parallel", "parallel", "partly parallel", "merely concurrent", "merely concurrent",
    ]  # fmt: skip


def test_the_range_of_two_jobs_by_hand():
    """Alone 10 ± 1 s, together 20 ± 2 s: at worst 9 against 22, at best 11 against 18, for both."""
    alone, together = [row(10, 2)] * 2, [row(20, 4)] * 2
    low, high = gain_range(alone, together)
    assert low == pytest.approx(2 * 9 / 22 - 1)
    assert high == pytest.approx(2 * 11 / 18 - 1)


times = st.tuples(st.floats(0.1, 1e3), st.floats(0, 1)).map(lambda t: row(t[0], t[0] * t[1]))
pairs = st.lists(st.tuples(times, times), min_size=2, max_size=5)


@given(pairs)
def test_the_gain_lies_in_its_range(jobs):
    alone, together = [a for a, _ in jobs], [t for _, t in jobs]
    low, high = gain_range(alone, together)
    gain = overlap_gain([slowdown(t["epoch_time_s"], a["epoch_time_s"]) for a, t in jobs])
    assert low <= gain * (1 + 1e-9) + 1e-9
    assert gain <= high * (1 + 1e-9) + 1e-9


@given(pairs)
def test_without_spread_the_range_is_the_gain(jobs):
    still = [[row(one["epoch_time_s"], 0.0) for one in rows] for rows in zip(*jobs, strict=True)]
    low, high = gain_range(*still)
    assert low == high == overlap_gain([slowdown(t["epoch_time_s"], a["epoch_time_s"]) for a, t in jobs])


@pytest.mark.parametrize("bad", [row(None, 0.1), row(10, None), {}, row(10, 20)])
@pytest.mark.parametrize("side", [0, 1])
def test_no_range_without_every_spread(bad, side):
    """Also where half the IQR is as long as the epoch: then anything could be."""
    sides = [[row(10, 1)] * 2, [row(20, 1)] * 2]
    sides[side] = [row(10, 1), bad]
    assert gain_range(*sides) is None


def test_one_job_has_no_range():
    assert gain_range([row(10, 1)], [row(10, 1)]) is None


def test_words_for_a_range():
    assert verdict_between(0.92, 1.05) == "parallel"
    assert verdict_between(0.2, 0.3) == "partly parallel"
    assert verdict_between(0.05, 0.2) == "between merely concurrent and partly parallel"
    assert verdict_between(0.0, 1.0) == "between merely concurrent and parallel"
