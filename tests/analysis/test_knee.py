"""Where a larger batch stops paying."""

import itertools

import pytest
from gpubench.analysis.knee import knees
from gpubench.analysis.noise import half_width
from hypothesis import assume, given
from hypothesis import strategies as st
from whole_rows import changed, row_with


def rows(memory, times, **others):
    """Batch sizes 16, 32, 64 …; a time of None is out of memory, a memory of None was not measured.

    Five measured epochs that took equally long, so that nothing is open for its noise.
    """
    base = {
        "model": "resnet34",
        "epochs_measured": 5,
        "epoch_time_iqr_s": 0.0,
    }
    return [
        row_with(
            **base
            | {"batch_size": 16 << n, "gpu_mem_mib": m, "epoch_time_s": t, "status": "ok" if t else "oom"}
            | {"config_id": f"c{n}{others}"}
            | others
        )
        for n, (m, t) in enumerate(zip(memory, times, strict=True))
    ]


START = "By one process each, "
CLEAR = ". Every difference is larger than the epochs of one process spread"


def test_resnet34_of_the_published_log():
    (knee,) = knees(rows([1259, 1539, 2047, 3233, 5527, 9905], [29.1, 16.7, 12.3, 11.4, 11.4, 12.8]))
    assert (knee.verdict, knee.best, knee.refused) == ("stops", 64, 128)
    assert knee.sentence == (
        f"{START}a larger batch stops paying after 64: "
        f"from 64 to 128 memory grows 58 % while time per image falls 7 %{CLEAR}."
    )
    assert knee.firm


def test_a_time_that_stays_or_rises_is_said_so():
    (stays,) = knees(rows([10, 11, 20], [9, 5, 5]))
    assert stays.sentence.endswith(
        "from 32 to 64 memory grows 82 % while time per image stays the same" + CLEAR + "."
    )
    (rises,) = knees(rows([10, 11, 20], [9, 5, 6]))
    assert rises.sentence.endswith("while time per image grows 20 %" + CLEAR + ".")
    (little,) = knees(rows([10, 11, 20], [9, 5, 5.04]))
    assert little.sentence.endswith("while time per image grows 0.8 %" + CLEAR + ".")


@pytest.mark.parametrize(
    ("time", "said"),
    [
        (5.0001, "grows less than 0.1 %"),
        (4.98, "falls 0.4 %"),
        (5.049, "grows 1 %"),
        (5.06, "grows 1 %"),
        (5.08, "grows 2 %"),
    ],
)
def test_only_what_is_exactly_the_same_is_called_so(time, said):
    (knee,) = knees(rows([100, 201], [5, time]))
    assert f" while time per image {said}{CLEAR}." in knee.sentence
    (memory,) = knees(rows([100, 20 * time], [5, 6]))
    assert f" memory {said} while " in memory.sentence


def test_never_and_always():
    (never,) = knees(rows([2361, 4175, 7627], [18.1, 16.2, 15.4]))
    assert never.verdict == "never"
    assert never.sentence.startswith(
        f"{START}a larger batch never pays: already from 16 to 32 memory grows 77 %"
    )
    (always,) = knees(rows([100, 110, 120, None], [40, 20, 10, None]))
    assert (always.verdict, always.best) == ("always", 64)
    assert always.sentence == f"{START}every larger batch pays, up to 64 (128 ran out of memory){CLEAR}."


def test_a_later_batch_that_pays_after_all_is_named():
    (knee,) = knees(rows([100, 150, 160], [10, 9, 2]))
    assert knee.verdict == "never"
    assert knee.sentence == (
        f"{START}from 16 the next larger batch doesn't pay: to 32 memory grows 50 % while time per image falls 10 %, "
        f"though from 16 straight to 64 would pay{CLEAR}."
    )
    (first,) = knees(rows([100] * 5, [10, 5, 6, 4, 3]))
    assert first.sentence.endswith(f", though from 32 straight to 128 would pay{CLEAR}."), "the first of them"


def test_a_cost_that_stays_does_not_pay():
    (knee,) = knees(rows([100, 200], [10, 5]))
    assert (knee.verdict, knee.best, knee.refused) == ("never", 16, 32)


def hole(table, batch, **how):
    """The table with one batch size that has no figures."""
    lost = {"gpu_mem_mib": None, "epoch_time_s": None, "status": "failed"} | how
    return [changed(row, **lost) if row.batch_size == batch else row for row in table]


NOT_ALL = "Open, not decided: by these figures "
ONE = "; each row is of one process only."


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({}, "32 failed"),
        ({"status": "oom"}, "32 ran out of memory"),
        ({"status": "missing"}, "32 has no result yet"),
        ({"status": "interrupted"}, "32 was interrupted"),
        ({"status": "timeout"}, "32 timed out"),
        ({"status": "skipped"}, "32 was skipped"),
        ({"status": "ok"}, "32 has no epoch time"),
        ({"status": "ok", "epoch_time_s": 9.0}, "32 has no memory figure"),
    ],
    ids=str,
)
def test_no_step_leads_over_a_size_without_figures(how, why):
    (knee,) = knees(hole(rows([100, 110, 120, 130], [40, 20, 10, 9]), 32, **how))
    assert (knee.verdict, knee.best, knee.refused, knee.firm) == ("hole", 16, None, False)
    assert knee.sentence == (
        f"{NOT_ALL}no batch larger than 16 is known to pay, though from 16 straight to 64 would pay. "
        f"{why}, so it can't be compared{ONE}"
    )


def test_a_hole_ends_what_is_known_to_pay():
    table = hole(hole(rows([100, 110, 1, 1, 120], [40, 20, 1, 1, 10]), 64), 128, status="timeout")
    (knee,) = knees(table)
    assert (knee.verdict, knee.best, knee.firm) == ("hole", 32, False)
    assert knee.sentence == (
        f"{NOT_ALL}every larger batch pays, up to 32, and from 32 straight to 256 would pay. "
        f"64 failed and 128 timed out, so they can't be compared{ONE}"
    )
    (dearer,) = knees(hole(rows([100, 110, 300, 900], [40, 20, 15, 10]), 64))
    assert (
        dearer.sentence
        == f"{NOT_ALL}every larger batch pays, up to 32. 64 failed, so it can't be compared{ONE}"
    )
    (nothing,) = knees(hole(rows([100, 110, 900], [40, 20, 35]), 32))
    assert nothing.sentence.startswith(f"{NOT_ALL}no batch larger than 16 is known to pay. 32 failed")


def test_a_hole_below_all_figures_leaves_the_answer_open():
    table = hole(rows([100, 110, 120, 300], [40, 20, 10, 9]), 16)
    (stops,) = knees(table)
    assert (stops.verdict, stops.best, stops.firm) == ("stops", 64, False)
    assert stops.sentence.startswith(f"{NOT_ALL}a larger batch stops paying after 64: ")
    assert stops.sentence.endswith(f". 16 failed, so it can't be compared{ONE}")
    (always,) = knees(table[:3])
    assert (always.verdict, always.best, always.firm) == ("always", 64, False)


@pytest.mark.parametrize(
    ("endings", "said"),
    [
        (("interrupted",), " (64 was interrupted, so it can't be compared)"),
        (("failed", "failed"), " (64 and 128 failed, so they can't be compared)"),
        (("oom", "skipped"), " (64 ran out of memory)"),
        (("failed", "oom", "skipped"), " (64 failed, so it can't be compared, and 128 ran out of memory)"),
        ((), ""),
    ],
    ids=str,
)
def test_what_became_of_the_largest_sizes_is_told(endings, said):
    table = rows([100, 110, *endings], [40, 20, *([10] * len(endings))])
    for number, ending in enumerate(endings):
        table = hole(table, 64 << number, status=ending)
    (knee,) = knees(table)
    assert knee.firm
    assert knee.sentence == f"{START}every larger batch pays, up to 32{said}{CLEAR}."
    (time,) = knees([changed(row, gpu_mem_mib=None) for row in table])
    assert time.sentence.startswith(
        f"{START}time per image is least at 32, of 16 to 32{said}{CLEAR}. Whether"
    )


def test_never_is_said_only_where_every_larger_size_is_known():
    dear = rows([100, 200, 1], [10, 9, 1])
    (failed,) = knees(hole(dear, 64))
    assert failed.sentence == (
        f"{START}from 16 the next larger batch doesn't pay: to 32 memory grows 100 % while time per image falls 10 % "
        f"(64 failed, so it can't be compared){CLEAR}."
    )
    (full,) = knees(hole(dear, 64, status="oom"))
    assert full.sentence.startswith(
        f"{START}a larger batch never pays: already from 16 to 32 memory grows 100 %"
    )
    assert "64" not in full.sentence
    above = hole(rows([100, 110, 300, 1, 900], [40, 20, 18, 1, 17]), 128)
    (stops,) = knees(above)
    assert stops.firm
    assert " falls 10 % (128 failed, so it can't be compared). Every" in stops.sentence


def test_of_time_alone_a_size_between_others_may_be_the_least():
    table = hole(rows([None] * 4, [10, 5, 4, 6]), 32)
    (knee,) = knees(table)
    assert (knee.verdict, knee.best, knee.firm) == ("time-only", 64, False)
    assert knee.sentence == (
        f"{NOT_ALL}time per image is least at 64, of 16 to 128. 32 failed, so it can't be compared{ONE} "
        "Whether a larger batch pays can't be said: GPU memory was not measured."
    )


def test_a_larger_batch_that_pays_after_all_rests_on_its_processes_too():
    table = [
        changed(row, epoch_time_s=row.epoch_time_s * (1 + n / 1e5), repeat=n)
        for row in rows([100, 150, 160], [10, 9, 2])
        for n in range(1 if row.batch_size == 64 else 2)
    ]
    assert "straight to 64" in knees(table)[0].sentence
    assert knees(table)[0].sentence.startswith("By one process of some rows, from 16 the next")


def test_without_memory_only_time_is_judged_and_the_missing_figure_named():
    (knee,) = knees(rows([None] * 3, [10, 5, 6]))
    assert (knee.verdict, knee.best) == ("time-only", 32)
    assert knee.sentence == (
        f"{START}time per image is least at 32, of 16 to 64{CLEAR}. "
        "Whether a larger batch pays can't be said: GPU memory was not measured."
    )


def test_a_wobble_on_the_way_does_not_hide_the_least_time():
    (knee,) = knees(rows([None] * 4, [4.72, 5.0, 3.07, 2.49]))
    assert "least at 128, of 16 to 128" in knee.sentence


def test_the_least_time_may_be_the_first_and_of_equal_ones_is_the_first():
    (first,) = knees(rows([None] * 3, [5.0, 5.02, 9.0], variant="cached"))
    assert (first.best, first.series) == (16, ())
    (equal,) = knees(rows([None] * 3, [9.0, 5.0, 5.0]))
    assert equal.best == 32
    both = rows([None] * 2, [5.0, 5.02], variant="cached") + rows([None] * 2, [5.0, 4.0], variant="full")
    assert [(one.series, one.best) for one in knees(both)] == [
        ((("variant", "cached"),), 16),
        ((("variant", "full"),), 32),
    ]


def test_memory_of_two_sources_is_not_weighed():
    sources = ("nvml-process", "torch-reserved")
    mixed = [
        changed(row, gpu_mem_source=source)
        for row, source in zip(rows([100, 100], [10, 5]), sources, strict=True)
    ]
    assert knees(mixed)[0].sentence.endswith(
        "Whether a larger batch pays can't be said: memory figures come from different sources."
    )


def test_too_few():
    (knee,) = knees(rows([100, None], [10, None]))
    assert knee.verdict == "too-few"
    assert "only 16 has an epoch time" in knee.sentence
    assert knees(rows([100], [10])) == []


def test_one_sentence_a_series_and_none_across_gpu_counts():
    both = rows([100, 110], [10, 5], variant="crop-resize") + rows([100, 200], [10, 9], variant="cached")
    both += rows([100, 90, 200], [10, 5, 9], variant="full")
    first, second, third = knees(both)
    assert [(one.verdict, one.series) for one in (first, second, third)] == [
        ("always", (("variant", "crop-resize"),)),
        ("never", (("variant", "cached"),)),
        ("stops", (("variant", "full"),)),
    ]
    assert first.sentence.startswith("variant=crop-resize: by one process each, every larger batch pays")
    assert second.sentence.startswith("variant=cached: by one process each, a larger batch never pays")
    unlike = rows([100, 110, 60], [10, 5, 1])
    zipped = [changed(row, gpus=gpus) for row, gpus in zip(unlike, (1, 1, 2), strict=True)]
    (knee,) = knees(zipped, tied=("gpus",))
    assert knee.best == 32


series = st.lists(st.tuples(st.floats(1, 1e5), st.floats(0.01, 1e3)), min_size=2, max_size=8)


@given(series)
def test_every_step_up_to_the_knee_pays_and_the_next_does_not(points):
    products = [memory * time for memory, time in points]
    assume(all(abs(a / b - 1) > 1e-9 for a, b in itertools.pairwise(products)))
    (knee,) = knees(rows([m for m, _ in points], [t for _, t in points]))
    falls = [b < a for a, b in itertools.pairwise(products)]
    paid = falls.index(False) if False in falls else len(falls)
    assert knee.best == 16 << paid
    assert knee.verdict == ("always" if all(falls) else "stops" if paid else "never")
    assert (knee.refused is None) == all(falls)


@given(series, st.floats(0.01, 100), st.floats(0.01, 100))
def test_units_do_not_matter(points, of_memory, of_time):
    products = [memory * time for memory, time in points]
    assume(all(abs(a / b - 1) > 1e-6 for a, b in itertools.pairwise(products)))
    (one,) = knees(rows([m for m, _ in points], [t for _, t in points]))
    (other,) = knees(rows([m * of_memory for m, _ in points], [t * of_time for _, t in points]))
    assert (one.verdict, one.best) == (other.verdict, other.best)


def test_a_knee_says_the_growth_that_it_rests_on():
    (knee,) = knees(rows([100, 200], [10, 9]))
    assert knee.memory_growth_pct == pytest.approx(100)
    assert knee.time_growth_pct == pytest.approx(-10)


def spread(table, *widths):
    """The rows with so much noise: half of what chance may do to their epoch time, in s."""
    whole = half_width(row_with(epoch_time_s=1.0, epoch_time_iqr_s=1.0, epochs_measured=5))
    return [
        changed(row, epoch_time_iqr_s=None if half is None else half / whole)
        for row, half in zip(table, widths, strict=True)
    ]


def test_what_noise_cannot_tell_apart_is_open():
    (time,) = knees(spread(rows([None] * 4, [9, 6, 5.0, 5.08]), 0.05, 0.05, 0.06, 0.06))
    assert not time.firm
    assert time.sentence.startswith(
        "Open, not decided: by these figures time per image is least at 64, of 16 to 128. "
        "That time per image grows 2 % from 64 to 128 may be chance; "
    )
    (before,) = knees(spread(rows([None] * 4, [9, 5.08, 5.0, 6]), 0.05, 0.06, 0.06, 0.05))
    assert (
        "least at 64, of 16 to 128. That time per image falls 2 % from 32 to 64 may be chance; "
        in before.sentence
    )
    (clear,) = knees(spread(rows([None] * 4, [9, 6, 5.0, 5.3]), 0.05, 0.05, 0.05, 0.05))
    assert clear.firm
    (stops,) = knees(spread(rows([100, 101, 103], [10, 5, 4.95]), 0.5, 0.1, 0.1))
    assert not stops.firm
    assert stops.sentence == (
        "Open, not decided: by these figures a larger batch stops paying after 32: "
        "from 32 to 64 memory grows 2 % while time per "
        "image falls 1 %. That memory × time per image grows 1 % from 32 to 64 may be chance; "
        "each row is of one process only."
    )
    (always,) = knees(spread(rows([100, 101, 103, None], [10, 5, 4.8, None]), 0.5, 0.1, 0.1, None))
    assert always.sentence == (
        "Open, not decided: by these figures every larger batch pays, up to 64 (128 ran out of memory). "
        "That memory × time per image falls 2 % from 32 to 64 may be chance; each row is of one process only."
    )


def test_a_step_before_the_knee_that_may_be_noise_leaves_it_open():
    """Each step up to it must be clear: 64 -> 128 has a cost of 0.992, which chance may have made."""
    table = rows([100, 110, 120, 200, 400], [40, 20, 10, 5.952, 5.9])
    (knee,) = knees(spread(table, 0.05, 0.05, 0.05, 0.05, 0.05))
    assert (knee.verdict, knee.best, knee.firm) == ("stops", 128, False)
    assert "That memory × time per image falls 0.8 % from 64 to 128 may be chance; " in knee.sentence
    assert knee.sentence.startswith(
        "Open, not decided: by these figures a larger batch stops paying after 128: "
    )
    (noisier,) = knees(spread(table, 0.05, 15.0, 6.0, 0.05, 6.0))
    for step in ("from 32 to 64", "from 64 to 128", "from 128 to 256"):
        assert (
            step
            in noisier.sentence.partition("That memory × time per image")[2].partition(" may be chance")[0]
        )


def test_the_second_figure_spreads_in_proportion():
    """Cost halves: 1 ± 0.1 against 0.5 ± 0.3 do not touch; a noise of 0.6 of it, not scaled, would."""
    (knee,) = knees(spread(rows([100, 50], [10, 10]), 1.0, 6.0))
    assert knee.firm
    (grows,) = knees(spread(rows([100, 300], [10, 10]), 1.0, 6.8))  # 1 ± 0.1 against 3 ± 2.04
    assert not grows.firm


@pytest.mark.parametrize(("time", "firm"), [(10.59, True), (10.54, False)])
def test_chance_seldom_moves_both_times_apart_at_once(time, firm):
    """10 ± 0.4 and 10.6 ± 0.4 overlap; of their difference chance makes up to 0.57."""
    (knee,) = knees(spread(rows([None] * 2, [10.0, time]), 0.4, 0.4))
    assert knee.firm is firm


def test_each_figure_spreads_by_its_own_share_of_its_own_time():
    (halves,) = knees(spread(rows([100, 100], [10, 5]), 3.0, 0.0))  # 1 ± 0.3 against 0.5; 3 s are 60 % of 5 s
    assert halves.firm
    (near,) = knees(
        spread(rows([100, 160], [10, 5]), 0.0, 1.5)
    )  # 1 against 0.8 ± 0.24; 1.5 s are 15 % of 10 s
    assert not near.firm


@pytest.mark.parametrize(
    ("unknown", "said"),
    [
        ({"epochs_measured": 1, "epoch_time_iqr_s": None}, "of one process (and one epoch) only."),
        ({"epochs_measured": 2, "epoch_time_iqr_s": 0.001}, "of one process (and two epochs) only."),
        ({"epochs_measured": None, "epoch_time_iqr_s": None}, "of one process only."),
    ],
    ids=str,
)
@pytest.mark.parametrize("memory", [[100, 110, 300], [100, 110, 115], [None] * 3], ids=str)
def test_unknown_noise_counts_as_unknown_not_as_none(memory, unknown, said):
    (knee,) = knees([changed(row, **unknown) for row in rows(memory, [10, 5, 4])])
    assert not knee.firm
    assert knee.sentence.startswith("Open, not decided: by these figures ")
    assert ". How far chance moves these times is not known; each row is " + said in knee.sentence


def test_only_the_noise_of_some_rows_is_unknown():
    table = rows([100, 110, 300], [10, 5, 4])
    table[1] = changed(table[1], epochs_measured=2)
    (knee,) = knees(table)
    assert (
        ". How far chance moves the times at 32 is not known; each row is of one process only."
        in knee.sentence
    )
    beyond = rows([100, 110, 300, 900], [10, 5, 4, 3])
    beyond[3] = changed(beyond[3], epochs_measured=1)
    assert knees(beyond)[0].firm, "nothing rests on the row after the refused one"


def test_three_repeats_speak_for_more_than_one_process():
    table = [
        changed(row, epoch_time_s=row.epoch_time_s * (1 + n / 1000), repeat=n)
        for row in rows([100, 110, 300], [10, 5, 4])
        for n in range(3)
    ]
    (knee,) = knees(table)
    assert knee.firm
    assert knee.sentence.endswith("; each row is of 3 processes.")


def test_what_would_pay_after_all_but_for_its_noise_might():
    (knee,) = knees(spread(rows([100, 150, 160], [10, 9, 6.0]), 0.1, 0.1, 1.0))
    assert "though from 16 straight to 64 might pay" in knee.sentence


def test_a_step_that_its_memory_decides_is_not_open_for_times_alike():
    (knee,) = knees(spread(rows([100, 180], [5.0, 4.9]), 0.3, 0.3))
    assert knee.firm


@pytest.mark.parametrize(
    ("doubts", "weak"),
    [("dp+other-load", True), ("short-steps", True), ("short-window", False), (None, False)],
)
def test_a_verdict_on_doubtful_rows_says_so(doubts, weak):
    for memory in ([100, 180], [100, 50], [None, None]):
        table = rows(memory, [5.0, 4.0])
        table[1] = changed(table[1], doubts=doubts)
        (knee,) = knees(table)
        assert ("; some of these rows have doubts about their times." in knee.sentence) is weak


def test_rows_that_decide_nothing_may_be_doubtful():
    table = rows([100, 110, 300, 500], [10, 5, 4, 3])
    table[3] = changed(table[3], doubts="stranger")
    assert "doubts" not in knees(table)[0].sentence


@pytest.mark.parametrize(("time", "verdict"), [(499, "always"), (501, "never")])
def test_a_cost_near_one_is_weighed_as_it_is(time, verdict):
    (knee,) = knees(rows([1000, 2000], [1000, time]))
    assert knee.verdict == verdict


def test_what_would_pay_after_all_but_for_unknown_noise_might():
    table = rows([100, 150, 160], [10, 9, 2])
    table[2] = changed(table[2], epochs_measured=1)
    assert "though from 16 straight to 64 might pay" in knees(table)[0].sentence


def test_steps_that_may_be_noise_and_rows_whose_noise_is_not_known():
    table = spread(rows([None] * 4, [9, 5.08, 5.0, 5.08]), 0.05, 0.06, 0.06, 0.06)
    steps = ". That time per image falls 2 % from 32 to 64 and grows 2 % from 64 to 128 may be chance"
    assert f"{steps}; " in knees(table)[0].sentence
    table[0] = changed(table[0], epochs_measured=1)
    assert f"{steps}. How far chance moves the times at 16 is not known; " in knees(table)[0].sentence


def test_why_there_is_nothing_to_weigh():
    (none,) = knees([changed(row, status="failed") for row in rows([100, 100], [10, 5], variant="cached")])
    assert none.sentence == (
        "Too few figures to say where a larger batch stops paying: no row has an epoch time."
    )
    (cpu,) = knees(rows([None] * 2, [10, 5], device="cpu"))
    assert cpu.sentence.endswith("Whether a larger batch pays can't be said: a CPU has no GPU memory.")


def test_what_moves_with_the_batch_size_makes_no_series_of_its_own():
    table = [changed(row, lr=row.batch_size / 100) for row in rows([100, 110], [10, 5])]
    assert knees(table) == []
    (knee,) = knees(table, tied=("lr",))
    assert knee.best == 32


def test_a_series_is_named_by_all_that_tells_it_apart():
    table = [row for p in ("fp32", "bf16") for v in ("cached", "full") for row in rows(
        [100, 110], [10, 5], variant=v, precision=p
    )]  # fmt: skip
    assert [knee.sentence.split(":")[0] for knee in knees(table)] == [
        "variant=cached precision=fp32",
        "variant=full precision=fp32",
        "variant=cached precision=bf16",
        "variant=full precision=bf16",
    ]
