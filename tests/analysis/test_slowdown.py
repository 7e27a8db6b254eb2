"""Slowdown, overlap gain, its range and its words."""

import math
import random
import statistics

import pytest
from gpubench.analysis.noise import half_width
from gpubench.analysis.slowdown import group_verdict, loss, overlap_gain, sharing_word, slowdown
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import changed, row_with

from gpubench.schema.verdict import Verdict

SCATTERED = "epoch times spread by as much as they last; measure again on a quiet machine"


def row(time, iqr, epochs=3):
    return row_with(epoch_time_s=time, epoch_time_iqr_s=iqr, epochs_measured=epochs)


def measured(*times):
    """A row of one or two epochs that took so long: they have no spread."""
    return row_with(epoch_time_s=statistics.median(times), epochs_measured=len(times), epoch_times_s=times)


def verdict_of(alone, together):
    gain = overlap_gain([
        slowdown(t.epoch_time_s, a.epoch_time_s) for a, t in zip(alone, together, strict=True)
    ])  # fmt: skip
    return group_verdict(gain, alone, together)


def gain_range(alone, together):
    return verdict_of(alone, together).gain_range


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
    assert [sharing_word(g) for g in (1.0, 0.9, 0.5, 0.1, -0.2)] == [
        "parallel", "parallel", "partly parallel", "merely concurrent", "merely concurrent",
    ]  # fmt: skip


def test_the_range_of_two_jobs_by_hand():
    """Alone 10 s give or take a, together 20 s give or take b: the gain is the sum of both 10/20, less 1."""
    alone, together = [row(10, 0.2)] * 2, [row(20, 0.4)] * 2
    a, b = half_width(alone[0]), half_width(together[0])
    low, high = gain_range(alone, together)
    # Each time by itself, as far as it goes; then as chance moves several: twice the same, in quadrature.
    down = math.sqrt(2 * (a / 20) ** 2 + 2 * (10 / 20 - 10 / (20 + b)) ** 2)
    up = math.sqrt(2 * (a / 20) ** 2 + 2 * (10 / (20 - b) - 10 / 20) ** 2)
    assert low == pytest.approx(0 - down)
    assert high == pytest.approx(0 + up)


def test_chance_moves_the_gain_of_many_jobs_less_than_all_their_times_at_once():
    """Simulated: 2,000 groups of three jobs that overlap by a half, three epochs each with 5 % noise."""
    draw = random.Random(11)

    def epochs_of(seconds):
        times = [draw.gauss(seconds, 0.05 * seconds) for _ in range(3)]
        low, middle, high = statistics.quantiles(times, n=4, method="inclusive")
        return row(middle, high - low)

    true, missed, wide = 0.5, 0, []
    for _ in range(2000):
        low, high = gain_range([epochs_of(10) for _ in range(3)], [epochs_of(15) for _ in range(3)])
        missed += not low <= true <= high
        wide.append(high - low)
    assert missed / 2000 < 0.05
    assert statistics.median(wide) < 0.45, "all at once it would be 0.7"


spread = st.floats(0, 0.05)
job = st.tuples(st.floats(0.1, 1e3), st.floats(0.8, 50), spread, spread)
pairs = st.lists(
    job.map(lambda j: (row(j[0], j[0] * j[2]), row(j[0] * j[1] * 1.0001, j[0] * j[1] * j[3]))),
    min_size=2,
    max_size=5,
)


@given(pairs)
def test_the_gain_lies_in_its_range(jobs):
    alone, together = [a for a, _ in jobs], [t for _, t in jobs]
    low, high = gain_range(alone, together)
    gain = overlap_gain([slowdown(t.epoch_time_s, a.epoch_time_s) for a, t in jobs])
    assert low <= gain * (1 + 1e-9) + 1e-9
    assert gain <= high * (1 + 1e-9) + 1e-9


@given(pairs)
def test_without_spread_the_range_is_the_gain(jobs):
    still = [[row(one.epoch_time_s, 0.0) for one in rows] for rows in zip(*jobs, strict=True)]
    low, high = gain_range(*still)
    assert low == high == overlap_gain([slowdown(t.epoch_time_s, a.epoch_time_s) for a, t in jobs])


@pytest.mark.parametrize("bad", [row(10, None), row(10, 0.1, epochs=2), None])
@pytest.mark.parametrize("side", [0, 1])
def test_no_range_without_every_spread(bad, side):
    """Nobody knows it of two epochs, nor of a row that is gone: the verdict is that of the gain alone, perhaps."""
    sides = [[row(10, 0.1)] * 2, [row(20, 0.1)] * 2]
    assert group_verdict(0.5, *sides).sure == "few processes"
    sides[side] = [row(10, 0.1), bad] if bad or not side else [row(10, 0.1), row_with()]
    found = group_verdict(0.5, *sides)
    assert (found.gain_range, found.sure, found.cell) == (None, "spread not known", "perhaps partly parallel")


def test_one_job_has_no_range():
    assert gain_range([row(10, 1)], [row(10, 1)]) is None


def test_words_for_a_range():
    def both(gain, *ends):
        found = group_verdict(gain, (), (), [Verdict(gain_range=ends)])
        return found.words, found.cell

    assert both(0.95, 0.92, 1.05) == (("parallel",), "parallel")
    assert both(0.25, 0.2, 0.3) == (("partly parallel",), "partly parallel")
    between = ("merely concurrent", "partly parallel")
    assert both(0.12, 0.05, 0.2) == (between, "between merely concurrent and partly parallel")
    assert both(0.5, 0.0, 1.0) == ((*between, "parallel"), "between merely concurrent and parallel")
    assert both(0.95, 0.2, 0.3)[1] == "between partly parallel and parallel", "the gain itself is possible"


def test_a_range_without_width_is_known():
    still = [row(10, 0.0)] * 2, [row(16, 0.0)] * 2
    assert verdict_of(*still).cell == "partly parallel"
    assert verdict_of(*still).gain_range == (0.25, 0.25)


@pytest.mark.parametrize("gain", [-0.2, 0.1, 0.25, 0.9, 1.2])
def test_where_nothing_but_the_gain_is_known_no_word_is_sure(gain):
    found = group_verdict(gain, (), ())
    assert (found.sure, found.cell) == ("spread not known", f"perhaps {sharing_word(gain)}")
    assert found.words == (sharing_word(gain),)


def test_without_a_gain_or_where_it_is_refused_there_is_no_word():
    nothing = group_verdict(None, [row(10, 0.1)] * 2, [row(20, 0.1)] * 2)
    assert (nothing.words, nothing.cell, nothing.why_not) == ((), None, None)
    refused = group_verdict(0.25, (), (), [Verdict(why_not="job 1 was too fast", gain_range=(0.2, 0.3))])
    assert (refused.words, refused.cell, refused.why_not) == ((), None, "job 1 was too fast")


@pytest.mark.parametrize(
    ("repeats", "sure", "rests"),
    [
        (None, "few processes", "; each row is of one process only"),
        (1, "few processes", "; each row is of one process only"),
        ([10.0, 10.0, 10.0], "yes", ""),
    ],
)
def test_fewer_than_three_processes_are_few(repeats, sure, rests):
    """By the one rule that knees and scaling have, too: `noise.resting`."""
    more = (
        {"repeats": len(repeats), "epoch_times_s": repeats}
        if isinstance(repeats, list)
        else {"repeats": repeats}
    )
    rows = [changed(row(10, 0.0), **more)] * 2
    found = verdict_of(rows, rows)
    assert (found.sure, found.rests, found.cell) == (sure, rests, "parallel")


def test_one_row_alone_of_few_processes_makes_the_verdict_one_of_few():
    many, few = changed(row(10, 0.0), repeats=3, epoch_times_s=[10.0] * 3), row(10, 0.0)
    assert verdict_of([many, many], [many, many]).sure == "yes"
    assert verdict_of([many, few], [many, many]).sure == "few processes"


def test_no_verdict_where_a_job_was_sped_up_by_its_neighbours():
    def why(first, second, **more):
        return group_verdict(
            0.5, [row(10, 0.0)] * 2, [row(first, 0.0), changed(row(second, 0.0), **more)]
        ).why_not

    told = (
        "took 0.79 times as long as alone, which sharing can't do: something slowed it down alone "
        "(other work, low clocks, CPUs at rest); measure both again (--rounds 5)"
    )
    assert why(10.0, 7.9) == f"job 2 of 2 {told}"
    assert why(10.0, 7.9, job="64@1") == f"job 64@1 {told}"
    assert why(10.0, 8.0) is None
    gone = [row(10, 0.0), None]
    assert group_verdict(0.5, gone, [row(10, 0.0), changed(row(7.9, 0.0), slowdown=0.79)]).why_not == (
        f"job 2 of 2 {told}"
    ), "by the stored slowdown"


@pytest.mark.parametrize("side", [0, 1])
def test_no_verdict_where_chance_may_have_moved_an_epoch_time_by_as_much_as_it_lasts(side):
    """By `noise.half_width`, as the range: 10 s with an interquartile range of 8 s over three epochs are 10 +- 11.2."""

    def why(noisy):
        sides = [[row(10, 0.1)] * 2, [row(20, 0.1)] * 2]
        sides[side] = [row(10, 0.1), noisy]
        return group_verdict(0.5, *sides).why_not

    assert half_width(row(10, 8.0)) > 10
    assert why(row(10, 8.0)) == SCATTERED
    just = 10 / half_width(row(10, 1.0))
    assert why(row(10, just)) == SCATTERED
    assert why(row(10, 0.99 * just)) is None
    assert why(row(10, just, epochs=9)) is None, "of nine epochs the median is known better"


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(
    ("times", "why_not"), [((5.0, 15.0), SCATTERED), ((5.1, 14.9), None), ((10.0,), None)]
)
def test_two_epochs_that_lie_as_far_apart_as_they_last_allow_no_verdict_either(side, times, why_not):
    sides = [[measured(10.0, 10.0)] * 2, [measured(20.0, 20.0)] * 2]
    sides[side] = [measured(10.0, 10.0), measured(*times)]
    found = verdict_of(*sides)
    assert found.why_not == why_not
    assert found.sure == "spread not known"


def test_what_was_found_before_counts_where_the_rows_do_not_tell():
    ends = [Verdict(gain_range=(0.05, 0.2)), Verdict(gain_range=(0.3, 0.4)), Verdict()]
    assert group_verdict(0.15, (), (), ends).gain_range == (0.05, 0.4)
    assert group_verdict(0.5, (), (), ends).gain_range == (0.05, 0.5)
    still = [row(10, 0.0)] * 2, [row(16, 0.0)] * 2
    assert group_verdict(0.25, *still, ends).gain_range == (0.25, 0.25), "the rows know better"


def test_half_of_those_before_without_a_verdict_leave_none():
    fine, noise = Verdict(gain_range=(0.2, 0.3)), Verdict(why_not="noise")
    assert group_verdict(0.25, (), (), [fine, noise]).why_not.endswith(" it is told: noise")
    assert group_verdict(0.25, (), (), [fine, fine, noise]).cell == "partly parallel"


def test_few_processes_of_which_one_was_faster_together_leave_no_sure_word():
    """Sharing can't do that: what the epochs of one process tell of its times is not all that moves them."""
    alone, together = [row(10, 0.01)] * 2, [row(9.3, 0.01), row(10.0, 0.01)]
    found = verdict_of(alone, together)
    assert (found.sure, found.cell) == ("faster than alone", "perhaps parallel")
    assert found.gain_range is not None
    assert verdict_of(alone, [row(9.6, 0.01), row(10.0, 0.01)]).cell == "parallel"
    often = {"repeats": 3, "epoch_times_s": [9.3] * 3}
    many = [changed(one, **often) for one in (*alone, *together)]
    assert verdict_of(many[:2], many[2:]).cell == "parallel", "how far processes differ is in the range"


# ---- doubts ----


@pytest.mark.parametrize("code", ["other-load", "stranger"])
@pytest.mark.parametrize("side", [0, 1])
def test_somebody_else_s_work_leaves_the_verdict_open(code, side):
    """It slows every epoch down, so the range, which stays, can't tell of it."""
    sides = [[row(10, 0.1)] * 2, [row(16, 0.1)] * 2]
    sides[side] = [changed(row(10 if side == 0 else 16, 0.1), doubts=f"{code}+dp"), sides[side][1]]
    found = verdict_of(*sides)
    assert (found.sure, found.cell) == ("doubtful", "perhaps partly parallel")
    assert found.gain_range is not None


def test_doubts_that_the_range_holds_or_that_are_of_no_time_leave_the_verdict_as_it_is():
    doubts = {"doubts": "dp+shared-gpu+short-warmup+short-window+spread"}
    assert (
        verdict_of([changed(row(10, 0.1), **doubts)] * 2, [changed(row(16, 0.1), **doubts)] * 2).cell
        == "partly parallel"
    )


@pytest.mark.parametrize(("disturbed", "word"), [(1, "partly parallel"), (2, "perhaps partly parallel")])
def test_of_three_repeats_one_beside_other_work_shows_in_their_spread(disturbed, word):
    runs = [row_with(doubts="other-load" if n < disturbed else None) for n in range(3)]
    often = {"repeats": 3, "epoch_times_s": [16.0] * 3, "doubts": "other-load", "runs": runs}
    still = {"repeats": 3, "epoch_times_s": [10.0] * 3}
    assert verdict_of([changed(row(10, 0.0), **still)] * 2, [changed(row(16, 0.0), **often)] * 2).cell == word


def test_what_repeats_were_compared_with_may_have_run_beside_other_work():
    """The rows alone of repeats are known by their times only; the verdict on each repeat knows their doubts."""
    quiet, loud = Verdict(gain_range=(0.2, 0.3)), Verdict(gain_range=(0.2, 0.3), beside_others=True)
    assert group_verdict(0.25, (), (), [quiet, quiet, loud]).cell == "partly parallel"
    assert group_verdict(0.25, (), (), [quiet, loud, loud]).cell == "perhaps partly parallel"


# ---- jobs that lose by running together ----


@pytest.mark.parametrize(
    ("gain", "ends", "told"),
    [
        (-0.82, (-0.9, -0.7), "yes"),
        (-0.05, (-0.08, -0.02), "yes"),
        (-0.05, (-0.12, 0.02), "perhaps"),
        (-0.2, (-0.6, 0.2), "perhaps"),
        (-1.3, (-1.4, -1.2), "yes"),
        (-0.82, None, "perhaps"),
        (-0.004, (-0.01, -0.001), "no"),
        (0.0, (-0.1, 0.1), "no"),
        (0.05, (-0.1, 0.1), "no"),
        (1.2, (1.1, 1.3), "no"),
    ],
)
def test_whether_jobs_took_longer_than_one_after_the_other(gain, ends, told):
    found = group_verdict(gain, (), (), [Verdict(gain_range=ends)])
    assert loss(found, gain) == told


def test_where_there_is_no_verdict_nobody_lost():
    assert loss(Verdict(why_not="noise"), -0.82) == "no"


def test_two_epochs_tell_of_a_large_loss_and_of_no_small_one():
    """Half the width around two times is 6.35 times their distance, by Student's t."""
    alone = [measured(10.0, 10.2)] * 2
    heavy = verdict_of(alone, [measured(109.0, 111.0)] * 2)
    assert (heavy.cell, heavy.sure, heavy.gain_range) == ("merely concurrent", "few processes", None)
    assert loss(heavy, -0.82) == "yes"
    near = verdict_of(alone, [measured(21.0, 21.4)] * 2)
    assert near.cell == "perhaps merely concurrent"
    wild = verdict_of(alone, [measured(90.0, 130.0)] * 2)
    assert wild.cell == "perhaps merely concurrent"
    once = verdict_of([measured(10.0)] * 2, [measured(110.0)] * 2)
    assert once.cell == "perhaps merely concurrent"
    loud = verdict_of(alone, [changed(measured(109.0, 111.0), doubts="other-load")] * 2)
    assert (loud.cell, loss(loud, -0.82)) == ("perhaps merely concurrent", "perhaps")
