"""Repeats merged: what is kept of each, and when they lie too far apart."""

import statistics

import pytest
from gpubench.analysis.repeats import SPREAD, apart, merge_repeats, with_spread
from gpubench.analysis.slowdown import group_verdict
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import changed, row_with

from gpubench.schema.verdict import Verdict


def repeats(*times, **more):
    base = {"config_id": "c", "status": "ok", "epochs": 3}
    return [
        row_with(**base | {"trial_id": f"t{n}", "repeat": n, "epoch_time_s": time} | more)
        for n, time in enumerate(times)
    ]


@pytest.mark.parametrize(
    ("times", "wide"),
    [
        ((1.0,), False),
        ((1.0, 1.04), False),
        ((1.0, 1.06), True),
        ((39.0, 41.0), False),  # 5 % is not more than 5 %
        ((1.0, 1.0, 1.08), False),  # from three on the interquartile range counts
        ((1.0, 1.0, 1.0, 1.0, 9.0), False),  # one outlier is no spread
        ((1.0, 1.1, 1.2, 1.3), True),
    ],
)
def test_repeats_that_lie_apart_are_a_doubt(times, wide):
    assert apart(times) is wide
    (merged,) = merge_repeats(repeats(*times))
    assert ("spread" in (merged.doubts or "")) is wide
    assert merged.doubt_texts.get("spread") == ((SPREAD,) if wide else None)
    rates = repeats(*times, epoch_time_source="steady")
    assert "spread" not in (merge_repeats(rates)[0].doubts or ""), (
        "their interval says how far they lie apart"
    )
    assert not [row.doubts for row in with_spread(rates) if row.doubts]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ((1.0, 1.01, 0.99, 1.3), None),  # of four nothing tells
        ((1.0, 1.01, 0.99, 1.02, 1.05), None),
        (
            (1.0, 1.01, 0.99, 1.0, 1.3),
            "1 of its 5 processes lies further from the others than chance explains, 30 %",
        ),
        ((1.0, 1.01, 0.99, 1.0, 0.7), "chance explains, 30 % below the median"),
        ((1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.3, 1.5), "2 of its 8 processes lie further from the others"),
    ],
)
def test_a_process_far_from_the_others_is_flagged_and_counts(times, said):
    (merged,) = merge_repeats(repeats(*times))
    assert merged.epoch_time_s == pytest.approx(statistics.geometric_mean(times))
    (text,) = merged.doubt_texts.get("outlier", (None,))
    assert (text is None) if said is None else (said in text)
    assert ("outlier" in (merged.doubts or "").split("+")) == (said is not None)


def test_a_rank_has_no_median_and_a_top1_that_one_repeat_missed_no_time():
    rows = repeats(1.0, 1.0, 1.0, slowest_rank=3, time_to_top1_s=9.0, until_top1=50.0)
    assert merge_repeats(rows)[0].slowest_rank == 3
    assert merge_repeats(rows)[0].time_to_top1_s == 9.0
    rows[0] = changed(rows[0], slowest_rank=0, time_to_top1_s=None)
    (merged,) = merge_repeats(rows)
    assert (merged.slowest_rank, merged.time_to_top1_s, merged.reached) == (None, None, 2)


@pytest.mark.parametrize("source", ["steady", "measured"])
def test_the_figures_of_rounds_are_medians_over_all_of_them(source):
    """Versions before 0.2 measured a short window in further rounds: that tells of times alone."""
    figures = {
        "energy_j": (9.0, 1.0, 5.0),
        "gpu_mem_mib": (700.0, 900.0, 800.0),
        "step_time_ms_p50": (3.0, 4.0, 8.0),
    }
    rows = [
        changed(row, repeat=0, round=n + 1, epoch_time_source=source, **{c: v[n] for c, v in figures.items()})
        for n, row in enumerate(repeats(1.0, 2.0, 4.0, images_per_epoch=100))
    ]
    (row,) = merge_repeats(rows)
    assert (row.epoch_time_s, row.images_per_s, row.epoch_time_source) == (
        pytest.approx(2),
        pytest.approx(50),
        source,
    )
    assert (row.energy_j, row.gpu_mem_mib, row.step_time_ms_p50) == (5.0, 800.0, 4.0)
    (row,) = merge_repeats(
        [rows[0], *(changed(later, epoch_time_source="extrapolated") for later in rows[1:])]
    )
    assert (row.energy_j, row.gpu_mem_mib, row.step_time_ms_p50) == (9.0, 700.0, 4.0)
    assert (row.epoch_time_s, row.epoch_time_source) == (pytest.approx(2), source)
    (row,) = merge_repeats([rows[0], changed(rows[1], epoch_time_source="extrapolated"), rows[2]])
    assert (row.energy_j, row.gpu_mem_mib, row.step_time_ms_p50) == (7.0, 750.0, 4.0)


def test_other_doubts_stay_and_failed_repeats_show():
    rows = repeats(1.0, 2.0, doubts="dp", doubt_texts={"dp": "copies"})
    rows += [changed(rows[0], status="failed", epoch_time_s=None, reason="killed", doubts=None)]
    (merged,) = merge_repeats(rows)
    assert merged.doubts == "dp+spread"
    assert set(merged.doubt_texts) == {"dp", "spread"}
    assert (merged.endings, merged.repeats, merged.reason) == ("2 ok, 1 failed", 2, "killed")


def test_a_doubt_of_one_repeat_is_the_rows():
    rows = repeats(1.0, 1.0)
    rows[1] = changed(rows[1], doubts="stranger", doubt_texts={"stranger": "python (7)"})
    (merged,) = merge_repeats(rows)
    assert (merged.doubts, merged.doubt_texts) == ("stranger", {"stranger": ("python (7)",)})


def test_repeats_with_unlike_doubts_have_all_of_them():
    found = ("dp", "dp+stranger", None)
    rows = [changed(row, doubts=own) for row, own in zip(repeats(1.0, 1.0, 1.0), found, strict=True)]
    assert merge_repeats(rows)[0].doubts == "dp+stranger"


def test_each_repeat_of_a_row_that_spreads_carries_the_doubt():
    rows = [*repeats(1.0, 2.0, doubts="dp"), changed(repeats(1.0)[0], config_id="other")]
    failed = changed(rows[0], status="failed", doubts=None)
    assert [row.doubts for row in with_spread([*rows, failed])] == ["dp+spread", "dp+spread", None, None]
    assert rows[0].doubts == "dp", "records stay as they are"


def in_group(*slowdowns, **more):
    """Repeats of one job of a group, which differ in how much they overlapped."""
    rows = repeats(*(2.0 for _ in slowdowns), group="g", job="1 of 2", **more)
    return [
        changed(row, slowdown=s, overlap_gain=2 / s - 1, group_id=f"g{9 - n}", solo_id=f"t{n}",
                sharing="partly parallel", full_together="cpu+gpu" if n else "cpu", together={"jobs": 2},
                verdict=Verdict(gain_range=(2 / s - 1.1, 2 / s - 0.9)))
        for n, (row, s) in enumerate(zip(rows, slowdowns, strict=True))
    ]  # fmt: skip


def test_one_job_of_a_group_has_the_verdict_of_all_its_repeats():
    """Of its neighbours there is no row, so nothing else tells how far the gain spreads."""
    (merged,) = merge_repeats(in_group(1.6, 1.9, 2.0))
    assert merged.overlap_gain == pytest.approx(2 / 1.9 - 1)
    assert merged.sharing == "between merely concurrent and partly parallel", "by the range, as the sentence"
    (close,) = merge_repeats(without_ranges(in_group(1.85, 1.9, 2.0)))
    assert close.sharing == "perhaps merely concurrent", "of these repeats, not of the first as stored"
    assert merged.full_together == "cpu+gpu"
    assert merged.verdict.gain_range == pytest.approx((-0.1, 0.35))
    assert (merged.group_id, merged.solo_id) == ("g7", "t0")


def test_jobs_of_a_group_keep_one_id_whatever_their_order():
    rows = in_group(1.6, 1.9)
    other = [changed(row, job="2 of 2") for row in reversed(rows)]
    other[0] = changed(other[0], status="failed")
    assert {row.group_id for row in merge_repeats([*rows, *other])} == {"g8"}


def test_what_was_full_in_few_repeats_was_not_full():
    rows = [
        changed(row, full_together=full)
        for row, full in zip(in_group(1.6, 1.6, 1.6), ("cpu", None, None), strict=True)
    ]
    assert merge_repeats(rows)[0].full_together is None


def without_ranges(rows):
    """As if each process had measured two epochs."""
    return [changed(row, verdict=group_verdict(row.overlap_gain, (), ())) for row in rows]


def test_two_repeats_with_ranges_of_their_own_have_that_of_both():
    (merged,) = merge_repeats(in_group(1.6, 1.61))
    assert merged.verdict.gain_range == pytest.approx((2 / 1.61 - 1.1, 2 / 1.6 - 0.9))
    assert (merged.sharing, merged.verdict.sure) == ("partly parallel", "few processes")


def of_group(*times, jobs=2, **more):
    """A repeat for each of `times`: (alone, together) of each job in s, from which it has its own slowdowns."""
    found = []
    for n, both in enumerate(times):
        slowed = [together / alone for alone, together in both]
        gain = (sum(1 / s for s in slowed) - 1) / (len(slowed) - 1)
        found_out = Verdict(words=("as stored",), gain_range=(gain - 0.05, gain + 0.05))
        for k, (alone, together) in enumerate(both):
            (row,) = repeats(
                together, group="g", job=f"{k + 1} of {jobs}", group_id=f"g{n}", overlap_gain=gain
            )
            row = changed(row, config_id=f"c{k}", repeat=n, solo_epoch_time_s=alone, slowdown=slowed[k])
            row = changed(row, sharing="as stored", verdict=found_out, together={"jobs": jobs})
            found.append(changed(row, **more))
    return found


def test_slowdowns_and_gain_of_repeats_follow_from_the_times_of_their_rows():
    """Medians of each column by itself gave slowdowns of 7.6 and 6.6 beside an overlap gain of 2.1."""
    noisy = [((0.2, 1.7), (0.3, 2.1)), ((0.35, 1.6), (1.9, 0.6)), ((1.2, 0.4), (0.31, 2.0))]
    one, other = merge_repeats(of_group(*noisy))
    together, alone = (1.7 * 1.6 * 0.4) ** (1 / 3), (0.2 * 0.35 * 1.2) ** (1 / 3)
    assert (one.epoch_time_s, one.solo_epoch_time_s) == (pytest.approx(together), pytest.approx(alone))
    assert one.slowdown == pytest.approx(2.34846, rel=1e-5)  # the third root of 1.088 / 0.084
    assert other.slowdown == pytest.approx(2.42505, rel=1e-5)  # of 2.52 / 0.1767
    assert one.overlap_gain == other.overlap_gain == pytest.approx(1 / 2.34846 + 1 / 2.42505 - 1, rel=1e-4)
    assert one.verdict == other.verdict
    assert one.sharing is None, "half of the repeats were faster than alone by much"


seconds = st.floats(0.1, 50)


@given(st.lists(st.lists(st.tuples(seconds, seconds), min_size=3, max_size=3), min_size=2, max_size=4))
def test_whatever_the_times_a_merged_group_does_not_contradict_itself(times):
    merged = merge_repeats(of_group(*times, jobs=3))
    assert len(merged) == 3
    for row in merged:
        assert row.slowdown == row.epoch_time_s / row.solo_epoch_time_s
        assert row.overlap_gain == pytest.approx((sum(1 / r.slowdown for r in merged) - 1) / 2)
        if row.verdict.why_not is None:
            low, high = row.verdict.gain_range
            assert low - 1e-9 <= row.overlap_gain <= high + 1e-9


def test_a_group_that_was_not_repeated_stays_as_it_was_stored():
    rows = of_group(((2.0, 3.0), (2.0, 4.0)), slowdown=9.0, overlap_gain=0.7)
    for row in merge_repeats(rows):
        assert (row.slowdown, row.overlap_gain, row.sharing) == (9.0, 0.7, "as stored")


@pytest.mark.parametrize(("repeats_of_both", "sure"), [(2, "few processes"), (3, "yes")])
def test_a_group_of_few_processes_says_so(repeats_of_both, sure):
    rows = without_ranges(of_group(*[((2.0, 3.2), (2.0, 3.2))] * repeats_of_both))
    for row in merge_repeats(rows):
        assert row.sharing == "partly parallel"
        assert row.verdict.sure == sure
        assert (row.verdict.rests == "") == (repeats_of_both == 3)


@pytest.mark.parametrize("side", ["alone", "together"])
def test_three_repeats_spread_by_their_own_times_alone_and_together(side):
    """As rows of knees and scaling do: by `noise.half_width` of the merged times, not by what each saw of itself."""
    rows = [((2.0, 3.2), (2.0, 3.2))] * 3
    still = merge_repeats(of_group(*rows))
    assert {row.verdict.gain_range for row in still} == {(0.25, 0.25)}
    times = {"alone": ((1.8, 3.2), (2.2, 3.2)), "together": ((2.0, 2.9), (2.0, 3.6))}[side]
    wide = merge_repeats(of_group(rows[0], *((one, rows[0][1]) for one in times)))
    (low, high) = wide[0].verdict.gain_range
    assert low < 0.25 - 0.05
    assert high > 0.25 + 0.05
    assert wide[0].verdict == wide[1].verdict


@pytest.mark.parametrize("side", [0, 1])
def test_two_repeats_as_far_apart_as_they_last_allow_no_verdict(side):
    def both(one, other):
        pair = [(4.0, 8.0), (4.0, 8.0)]
        pair[0], pair[1] = ([(one, 8.0), (other, 8.0)], [(4.0, 2 * one), (4.0, 2 * other)])[side]
        return merge_repeats(of_group(*((first, (4.0, 8.0)) for first in pair)))

    assert {row.sharing for row in both(3.98, 4.02)} != {None}
    (why,) = {row.verdict.why_not for row in both(2.0, 6.0)}
    assert why.startswith("epoch times spread by as much as they last")


def test_repeats_of_which_none_had_all_of_its_jobs_have_the_range_of_their_merged_times():
    """No repeat has a gain; each job has two processes, which took equally long."""
    rows = [
        changed(row, overlap_gain=None, sharing=None, verdict=None)
        for row in of_group(*[((2.0, 3.2), (2.0, 3.2))] * 4)
    ]
    rows = [
        changed(row, status="failed", epoch_time_s=None, slowdown=None)
        if (row.job == "1 of 2") == (row.repeat < 2)
        else row
        for row in rows
    ]
    merged = merge_repeats(rows)
    assert [row.sharing for row in merged] == ["partly parallel"] * 2
    assert [row.verdict.gain_range for row in merged] == [pytest.approx((0.25, 0.25))] * 2


def test_one_job_that_ended_ok_but_once_has_the_gain_of_its_group():
    rows = of_group(((2.0, 3.0), (2.0, 4.0)), ((2.0, 5.0), (2.0, 8.0)))
    rows[3] = changed(rows[3], status="failed", slowdown=None, epoch_time_s=None, overlap_gain=None)
    one, other = merge_repeats(rows)
    slowed = 15**0.5 / 2  # 3 and 5 s against 2
    assert (one.slowdown, other.slowdown) == (pytest.approx(slowed), 2.0)
    assert one.overlap_gain == other.overlap_gain == pytest.approx(1 / slowed + 1 / 2 - 1)


def test_without_all_jobs_or_all_times_the_medians_stay():
    rows = [
        row for row in of_group(((2.0, 3.2), (2.0, 4.0)), ((2.0, 3.24), (2.0, 4.0))) if row.config_id == "c0"
    ]
    (alone,) = merge_repeats(rows)
    assert alone.overlap_gain == pytest.approx((2 / 3.2 + 2 / 4 - 1 + 2 / 3.24 + 2 / 4 - 1) / 2)
    assert alone.sharing == "between merely concurrent and partly parallel"
    rows = [changed(row, solo_epoch_time_s=None) for row in rows]
    assert merge_repeats(rows)[0].slowdown == pytest.approx(1.61)


def test_a_verdict_that_most_repeats_or_the_merged_figures_do_not_allow_is_none():
    rows = of_group(*[((2.0, 3.0), (2.0, 4.0))] * 3)
    rows[:2] = [changed(row, verdict=Verdict(why_not="noise")) for row in rows[:2]]
    assert {row.sharing for row in merge_repeats(rows)} == {"partly parallel"}, "one of three"
    rows[2:4] = [changed(row, verdict=Verdict(why_not="noise")) for row in rows[2:4]]
    of_one_run = (
        "at least half of its runs allow none by themselves, and of the first of these it is told: noise"
    )
    for row in merge_repeats(rows):
        assert (row.sharing, row.verdict.why_not) == (None, of_one_run)
    rows[4:] = [changed(row, verdict=Verdict(why_not="noise")) for row in rows[4:]]
    for row in merge_repeats(rows):
        assert row.verdict.why_not == of_one_run.replace("at least half", "all")
    for row in merge_repeats(of_group(*[((9.0, 3.0), (2.0, 4.0))] * 2)):
        assert row.sharing is None
        assert "job 1 of 2 took 0.33 times as long as alone" in row.verdict.why_not


def test_why_there_is_no_verdict_is_told_by_the_figures_of_the_table_where_these_allow_none():
    """3 s beside 9, 9 and 8 s alone."""
    rows = of_group(((9.0, 3.0), (2.0, 4.0)), ((9.0, 3.0), (2.0, 4.0)), ((8.0, 3.0), (2.0, 4.0)))
    rows = [changed(row, verdict=Verdict(why_not="job 1 of 2 took 0.10 times as long")) for row in rows]
    for row in merge_repeats(rows):
        assert row.verdict.why_not.startswith("job 1 of 2 took 0.35 times as long as alone")


def test_what_half_of_the_repeats_had_full_was_full():
    rows = [
        changed(row, full_together=full)
        for row, full in zip(in_group(1.6, 1.6, 1.6), ("cpu+gpu", "cpu", "gpu"), strict=True)
    ]
    assert merge_repeats(rows)[0].full_together == "cpu+gpu"
    assert merge_repeats([rows[1], changed(rows[2], full_together=None)])[0].full_together == "cpu"


def test_two_jobs_of_three_make_no_gain():
    """Of the third one there is no row: what the other two say would be another group's answer."""
    times = [((2.0, 3.0), (2.0, 4.0), (2.0, 5.0)), ((2.0, 5.0), (2.0, 8.0), (2.0, 9.0))]
    rows = [row for row in of_group(*times, jobs=3) if row.config_id != "c2"]
    median = sum({row.overlap_gain for row in rows}) / 2
    assert [row.overlap_gain for row in merge_repeats(rows)] == pytest.approx([median] * 2)
    noisy = [changed(row, verdict=Verdict(why_not="noise")) for row in rows]
    assert [row.sharing for row in merge_repeats(noisy)] == [None, None]


def test_where_one_job_has_no_slowdown_the_gain_of_the_others_stays():
    rows = of_group(((2.0, 3.0), (2.0, 4.0)), ((2.0, 5.0), (2.0, 8.0)))
    median = sum({row.overlap_gain for row in rows}) / 2
    unknown = {"slowdown": None, "solo_epoch_time_s": None}
    merged = merge_repeats([changed(row, **unknown) if row.config_id == "c1" else row for row in rows])
    assert [row.slowdown for row in merged] == [pytest.approx(15**0.5 / 2), None]
    assert [row.overlap_gain for row in merged] == pytest.approx([median] * 2)


def test_half_of_the_repeats_without_a_verdict_leave_none():
    rows = of_group(*[((2.0, 3.0), (2.0, 4.0))] * 2)
    rows[:2] = [changed(row, verdict=Verdict(why_not="noise")) for row in rows[:2]]
    assert {row.sharing for row in merge_repeats(rows)} == {None}


def test_words_that_repeats_do_not_agree_in_are_mixed():
    rows = repeats(1.0, 1.0, 1.0, energy_source="nvml-counter")
    assert merge_repeats(rows)[0].energy_source == "nvml-counter"
    rows[:2] = [changed(row, energy_source=None) for row in rows[:2]]
    assert merge_repeats(rows)[0].energy_source == "nvml-counter"
    rows[0] = changed(rows[0], energy_source="nvml-power-integral")
    assert merge_repeats(rows)[0].energy_source == "mixed"


@pytest.mark.parametrize("field", ["gpu_name", "cpus", "workers", "group", "job"])
def test_what_differs_in_place_or_company_is_no_repeat(field):
    rows = repeats(1.0, 9.0, gpu_name="H200", cpus=8, workers=8)
    rows[1] = changed(rows[1], **{field: "another"})
    assert [row.epoch_time_s for row in merge_repeats(rows)] == [1.0, 9.0]


def on_unlike_devices(rows, host="h1", gpu="H200", cpu="EPYC"):
    """The jobs of these rows, the first on a GPU, the second on the CPUs of its host."""
    return [
        changed(row, host=host, gpu_name=gpu, cpu_name=cpu, device="cuda" if row.job[0] == "1" else "cpu")
        for row in rows
    ]


def test_repeats_of_a_group_on_a_gpu_and_a_cpu_have_one_gain_and_one_verdict():
    times = [((2.0, 3.0), (2.0, 4.0)), ((2.0, 5.0), (2.0, 8.0))]
    merged = merge_repeats(on_unlike_devices(of_group(*times)))
    assert [row.repeats for row in merged] == [2, 2]
    assert [row.overlap_gain for row in merged] == pytest.approx([2 / 15**0.5 + 2 / 32**0.5 - 1] * 2)
    assert merged[0].verdict == merged[1].verdict


def test_repeats_of_such_a_group_on_hosts_of_which_one_part_is_alike_are_not_mixed():
    """The GPUs are of one model, so the first job alone would look as if it had been repeated."""
    one = of_group(((2.0, 3.0), (2.0, 4.0)))
    two = [changed(row, repeat=1, group_id="g1", epoch_time_s=9.0, slowdown=4.5) for row in one]
    rows = [*on_unlike_devices(one), *on_unlike_devices(two, host="h2", cpu="Xeon")]
    assert [(row.repeats, row.epoch_time_s) for row in merge_repeats(rows)] == [
        (1, 3.0), (1, 9.0), (1, 4.0), (1, 9.0)
    ]  # fmt: skip


@pytest.mark.parametrize("field", ["group", "group_id", "gpu_name"])
def test_jobs_of_two_groups_make_a_gain_each(field):
    times = [((2.0, 3.0), (2.0, 4.0)), ((2.0, 5.0), (2.0, 8.0))]
    both = of_group(*times, gpu_name="H200")
    other = [
        changed(row, **{"config_id": row.config_id + "x", field: "another"})
        for row in of_group(*times[:1] * 2, gpu_name="H200")
    ]
    one, two, *others = merge_repeats([*both, *other])
    assert one.overlap_gain == two.overlap_gain == pytest.approx(2 / 15**0.5 + 2 / 32**0.5 - 1)
    assert [row.overlap_gain for row in others] == pytest.approx([2 / 3 + 2 / 4 - 1] * 2)
