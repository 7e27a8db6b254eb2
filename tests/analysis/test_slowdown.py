"""Slowdown, overlap gain, its range and its words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpubench.analysis.noise import half_width
from gpubench.analysis.slowdown import (
    WORDS,
    gain_range,
    overlap_gain,
    possible,
    slowdown,
    undecidable,
    verdict,
    word,
)


def row(time, iqr, epochs=3):
    return {"epoch_time_s": time, "epoch_time_iqr_s": iqr, "epochs_measured": epochs}


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
    """Alone 10 s give or take a, together 20 s give or take b: at worst 10 - a against 20 + b, for both."""
    alone, together = [row(10, 0.2)] * 2, [row(20, 0.4)] * 2
    a, b = half_width(alone[0]), half_width(together[0])
    low, high = gain_range(alone, together)
    assert low == pytest.approx(2 * (10 - a) / (20 + b) - 1)
    assert high == pytest.approx(2 * (10 + a) / (20 - b) - 1)


times = st.tuples(st.floats(0.1, 1e3), st.floats(0, 0.05)).map(lambda t: row(t[0], t[0] * t[1]))
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


@pytest.mark.parametrize(
    "bad", [row(None, 0.1), row(10, None), {}, row(10, 20), row(7, 5), row(10, 0.1, epochs=2)]
)
@pytest.mark.parametrize("side", [0, 1])
def test_no_range_without_every_spread(bad, side):
    """Also where an epoch spreads by as much as it lasts, and where two of them can't have a spread."""
    sides = [[row(10, 0.1)] * 2, [row(20, 0.1)] * 2]
    assert gain_range(*sides) is not None
    sides[side] = [row(10, 0.1), bad]
    assert gain_range(*sides) is None


def test_one_job_has_no_range():
    assert gain_range([row(10, 1)], [row(10, 1)]) is None


def test_words_for_a_range():
    assert word(0.95, (0.92, 1.05)) == "parallel"
    assert word(0.25, (0.2, 0.3)) == "partly parallel"
    assert word(0.12, (0.05, 0.2)) == "between merely concurrent and partly parallel"
    assert word(0.5, (0.0, 1.0)) == "between merely concurrent and parallel"
    assert possible((0.0, 1.0)) == ("merely concurrent", "partly parallel", "parallel")
    assert possible((0.05, 0.2)) == ("merely concurrent", "partly parallel")
    assert possible((0.2, 0.3)) == ("partly parallel",)


@pytest.mark.parametrize("gain", [-0.2, 0.1, 0.25, 0.9, 1.2])
def test_without_a_range_no_word_is_sure(gain):
    """Nobody knows how far chance moved the gain: no plain word, and no word that it rules out."""
    assert word(gain, None) == word(gain) == f"perhaps {verdict(gain)}"
    assert word(gain, (gain, gain)) == verdict(gain), "a range without width is known"
    assert possible(None) == WORDS


@pytest.mark.parametrize("gain_range", [None, (0.2, 0.3)])
def test_without_a_gain_or_where_it_is_refused_there_is_no_word(gain_range):
    assert word(None, gain_range) is None
    assert word(0.25, gain_range, "job 1 was too fast") is None


def test_no_verdict_where_a_job_was_sped_up_by_its_neighbours():
    assert undecidable([1.0, 0.79], []) == (
        "job 2 of 2 took 0.79 times as long as alone, which sharing can't do: what it took alone is wrong; measure it "
        "again (--fresh) on a quiet machine"
    )
    assert undecidable([1.0, 0.8], []) is None
    assert undecidable([None, 1.2], []) is None


@pytest.mark.parametrize("epochs", [2, 3])
def test_no_verdict_where_epoch_times_spread_by_as_much_as_they_last(epochs):
    """Of two epochs, too: they lie as far apart as they do."""
    why = "epoch times spread by as much as they last; measure again on a quiet machine"
    assert undecidable([2.0, 2.0], [row(10, 0.1), row(10, 10.0, epochs)]) == why
    assert undecidable([2.0, 2.0], [row(10, 0.1), row(10, 9.9, epochs)]) is None
    assert undecidable([2.0, 2.0], [row(10, None, epochs), row(None, 9.9, epochs), {}]) is None
