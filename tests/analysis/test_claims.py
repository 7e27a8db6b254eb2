"""What a table claims over processes: words, corrections and sentences. Chances are worked out by scipy here."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from gpubench.analysis.knee import knees
from gpubench.report.table import Table, build
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from simulated_processes import mean_times
from whole_rows import changed, row_with

AXES = [("batch_size",)]


def process(batch: int, time: float, number: int, memory: float | None = 1000.0, **others):
    """One process of a batch size: a repeat of its own, so that no two processes are of one round."""
    values = {
        "model": "resnet34",
        "config_id": f"c{batch}{others.get('precision', '')}",
        "batch_size": batch,
        "epoch_time_s": time,
        "status": "ok",
        "gpu_mem_mib": memory,
        "gpu_mem_source": "nvml-process",
        "repeat": number,
        "trial_id": f"t{batch}-{number}",
        "images_per_epoch": 10_240,
        "device": "cuda",
        "gpu_name": "H",
        "epochs_measured": 3,
        "epoch_time_source": "measured",
        "epoch_time_iqr_s": 0.0,
    }
    return row_with(**values | others)


def sizes(*rows: tuple[float, list[float]], first: int = 16, **others):
    """Processes of batch sizes 16, 32, …: memory, and the time of each process."""
    return [
        process(first << place, time, number, memory, **others)
        for place, (memory, times) in enumerate(rows)
        for number, time in enumerate(times)
    ]


def knee_of(*rows, **others):
    (found,) = knees(sizes(*rows, **others))
    return found


def around(time: float, apart: float = 0.001) -> list[float]:
    """Five processes whose logarithms lie evenly about that of this time."""
    return [time * math.exp(apart * step) for step in (-2, -1, 0, 1, 2)]


def welch(over: list[float], under: list[float]) -> tuple[float, float]:
    """Two-sided p-value by scipy, and half the width of the 95 % interval, of the ratio on the log scale."""
    found = stats.ttest_ind(np.log(over), np.log(under), equal_var=False)
    low, high = found.confidence_interval(0.95)
    return float(found.pvalue), float(high - low) / 2


def test_a_larger_batch_stops_paying_with_the_interval_of_the_step_that_refuses():
    knee = knee_of((1000, around(20)), (1100, around(10)), (1700, around(9)))
    _, half = welch(around(9), around(10))
    cost = math.log(1.7 / 1.1 * 0.9)
    low, high = (round(100 * (math.exp(cost + sign * half) - 1), 1) for sign in (-1, 1))
    assert (knee.verdict, knee.best, knee.refused, knee.firm) == ("stops", 32, 64, True)
    assert (low, high) == (38.8, 39.4)
    assert knee.sentence == (
        "A larger batch stops paying after 32: from 32 to 64 memory grows 55 % while time per image falls 10 % "
        "(−10.2 to −9.8 %), so that memory × time grows 39 % (+38.8 to +39.4 %); each row is of 5 processes."
    )


def test_every_larger_batch_pays_by_the_least_of_its_steps():
    knee = knee_of((1000, around(20)), (1100, around(10)), (1200, around(8)))
    assert (knee.verdict, knee.best, knee.firm) == ("always", 64, True)
    assert knee.sentence == (
        "Every larger batch pays, up to 64: memory × time per image falls 13 % (−12.9 to −12.5 %) from 32 to 64, and "
        "more at each other step; each row is of 5 processes."
    )


def test_never_pays_and_the_same_inside_the_margin():
    knee = knee_of((1000, around(10)), (2000, around(5.005)))
    assert (knee.verdict, knee.best, knee.refused) == ("never", 16, 32)
    assert "memory × time grows 0.1 % (−0.1 to +0.3 %), the same inside 2 %" in knee.sentence
    assert knee.sentence.startswith(
        "A larger batch never pays: already from 16 to 32 memory grows 100 % while "
    )


@pytest.mark.parametrize(("count", "guess"), [(3, True), (4, True), (5, False)])
def test_what_would_settle_an_open_step_is_told_with_its_chance_and_of_few_processes_as_a_guess(count, guess):
    spread = [10 * (1 + 0.02 * (place - (count - 1) / 2)) for place in range(count)]
    knee = knee_of(
        (1000, spread), (1100, [0.88 * time * (1.01 if n else 0.99) for n, time in enumerate(spread[::-1])])
    )
    assert knee.verdict == "open"
    assert " settles it in four of five cases, if the truth is what was seen" in knee.sentence
    assert (f" (a guess from {count} processes);" in knee.sentence) == guess
    assert "probably" not in knee.sentence


def test_what_few_processes_leave_open_says_what_they_could_have_shown_and_what_would_settle_it():
    over, under = around(8.8, 0.02), around(10, 0.02)
    chance, _ = welch([1.1 * time for time in over], under)
    assert chance > 0.05
    knee = knee_of((1000, under), (1100, over))
    assert (knee.verdict, knee.firm, knee.best) == ("open", False, None)
    assert knee.sentence.startswith(
        "Open whether 32 pays after 16. From 16 to 32 memory × time per image falls 3.2 % (−7.6 to +1.4 %); that may "
        "be chance. Of so few processes only a difference of "
    )
    assert "gpubench sweep … --rounds " in knee.sentence
    assert knee.sentence.endswith(
        " settles it in four of five cases, if the truth is what was seen; each row is of 5 processes."
    )
    hopeless = knee_of((1000, under), (1100, around(9, 0.02)))
    assert "; more than 100 rounds would be needed to settle it; each" in hopeless.sentence


def test_what_an_open_step_would_have_shown_is_not_said_of_steps_that_are_decided():
    only = "would have shown only a difference of "
    one = knee_of((1000, around(20)), (1100, around(10)), (1100, around(9, 0.1))).sentence
    assert f"may be chance. The one that is open {only}" in one
    two = knee_of(
        (1000, around(20)), (1100, around(10)), (1100, around(9, 0.1)), (1100, around(8, 0.1))
    ).sentence
    assert f"may be chance. Of those that are open, the least sure {only}" in two


def test_the_answer_is_over_all_steps_and_not_the_first_refusal():
    knee = knee_of((1000, around(20)), (2100, around(10)), (2200, around(4)))
    assert (knee.firm, knee.best) == (True, 64)
    assert knee.sentence.startswith(
        "A larger batch pays from 32 to 64 and does not pay from 16 to 32; from 16 straight to 64 pays (memory × time "
        "per image falls 56 % "
    )
    dear = knee_of((1000, around(20)), (3000, around(10)), (3200, around(9)))
    assert (dear.firm, dear.best) == (True, 16)
    assert "; from 16 straight to 64 does not pay (memory × time per image grows 44 % " in dear.sentence


def test_a_range_that_does_not_pay_says_where_it_is_only_the_same():
    same = knee_of((1000, around(20)), (2000, around(10.005)), (2200, around(4)))
    assert (
        " and does not pay from 16 to 32 (the same inside 2 %); from 16 straight to 64 pays" in same.sentence
    )
    both = knee_of((1000, around(20)), (2000, around(10.005)), (4000, around(9)), (4100, around(3)))
    assert " and does not pay from 16 to 64 (the same inside 2 % from 16 to 32); from 16 str" in both.sentence
    figures = ((None, around(time)) for time in (10, 10.005, 12, 6))
    by_time = knees(sizes(*figures, device="cpu", gpus=0))[0]
    assert (
        "is faster from 64 to 128 and is not faster from 16 to 64 (the same inside 2 % from 16 to 32)"
        in by_time.sentence
    )
    slower = knees(sizes(*((None, around(time)) for time in (10, 12, 6)), device="cpu", gpus=0))[0]
    assert slower.sentence.startswith(
        "A larger batch is faster from 32 to 64 and is slower from 16 to 32; from 16 "
    )


def test_claims_of_one_table_are_corrected_for_by_holm():
    """A step that pays alone is open beside another one, and beside a leap that might have been claimed."""
    under, over = around(10, 0.01), around(9.75, 0.01)
    chance, _ = welch(over, under)
    assert 0.05 / 10 < chance < 0.05
    (alone,) = knees(sizes((1000, under), (1000, over)))
    assert alone.firm
    others = sizes(*[(1000, around(10, 0.05)) for _ in range(9)], precision="bf16")
    mine = sizes((1000, under), (1000, over), precision="fp32")
    table = build("one", [*mine, *others], axes=[("batch_size",), ("precision",)])
    (sentence,) = [one for one in table.answers if one.startswith("precision=fp32: open")]
    assert sentence.startswith("precision=fp32: open whether 32 pays after 16. ")


def test_only_rows_of_several_processes_are_decided_so():
    rows = sizes((1000, around(20)), (1100, [10.0]))
    (knee,) = knees(rows)
    assert knee.sentence.startswith(
        "By one process of some rows, every larger batch pays, up to 32. Every difference is larger than"
    )


def test_two_processes_say_that_they_are_two():
    knee = knee_of((1000, [10.0, 10.001]), (1000, [5.0, 5.001]))
    assert knee.sentence.endswith("; each row is of two processes only.")


def test_a_size_without_figures_leaves_the_steps_beside_it_open():
    rows = [
        row for row in sizes((1000, around(20)), (1000, around(9)), (1000, around(5)), (1100, around(2)))
        if row.batch_size != 32
    ]  # fmt: skip
    lost = row_with(
        config_id="c32", model="resnet34", batch_size=32, status="failed", device="cuda", gpu_name="H"
    )
    (knee,) = knees([*rows, lost])
    assert not knee.firm
    assert knee.sentence.startswith(
        "A larger batch pays from 64 to 128; it is open from 16 to 64. 32 failed, so it"
    )


@pytest.mark.parametrize(
    ("single", "said"),
    [
        (
            0,
            "Every larger batch pays, up to 128: memory × time per image falls 45 % (−46 to −45 %) from 32 to 64, and",
        ),
        (1, "A larger batch pays from 64 to 128; it is open from 16 to 64. 32 is of one process, so it"),
        (2, "A larger batch pays from 16 to 32; it is open from 32 to 128. 64 is of one process, so it"),
        (3, "Every larger batch pays, up to 64 (128 is of one process, so it"),
    ],
)
def test_a_size_that_stayed_at_one_process_takes_no_claim_from_the_others(single: int, said: str):
    every = [(1000, around(40)), (1100, around(20)), (1200, around(10)), (1300, around(5))]
    memory, times = every[single]
    every[single] = (memory, times[:1])
    (knee,) = knees(sizes(*every))
    assert knee.sentence.startswith(said)
    assert f"{16 << single} is of one process, so it can't be compared" in knee.sentence
    assert "each row is of 5 processes" in knee.sentence
    assert knee.firm is (single == 3)


def test_while_a_second_round_is_under_way_all_sizes_are_in_the_answer():
    knee = knee_of((1000, [40.0, 41.0]), (1100, [20.0, 20.1]), (1700, [19.0]))
    said = "By one process of some rows, a larger batch stops paying after 32: from 32 to 64 memory grows"
    assert knee.sentence.startswith(said)


def test_rows_of_common_rounds_are_compared_round_by_round():
    """A machine that gets slower from round to round slows both alike."""
    drift = [1.0, 1.2, 1.4, 1.6]
    rows = [
        process(batch, time * slow * math.exp(0.001 * step), 0, round=number)
        for batch, time, noise in ((16, 10.0, (0, 1, -1, 0)), (32, 9.5, (1, -1, 0, 0)))
        for number, (slow, step) in enumerate(zip(drift, noise, strict=True), start=1)
    ]
    (paired,) = knees(rows)
    assert paired.firm
    assert paired.sentence.startswith(
        "Every larger batch pays, up to 32: memory × time per image falls 5.0 % (−5.2 to"
    )
    unpaired = [process(row.batch_size, row.epoch_time_s, row.round) for row in rows]
    (welch_only,) = knees(unpaired)
    assert not welch_only.firm


def test_steady_steps_judge_and_whole_epochs_are_told_where_they_say_otherwise():
    rows = [
        process(batch, epoch, number, memory, steady_step_s=step * batch)
        for batch, memory, epoch, step in ((16, 1000, 10, 10e-3), (32, 1100, 8, 5e-3), (64, 1200, 8.1, 3e-3))
        for number in range(3)
    ]
    table = build("one", rows, axes=AXES)
    by = "By steady steps (growth in the table: whole epochs, with their fill)"
    assert table.answers[0].startswith(f"{by} every larger batch pays, up to 64: ")
    assert table.answers[1] == (
        "By whole epochs, the fill of their loaders included, a larger batch stops paying after 32 by these figures."
    )


def test_of_one_process_whole_epochs_judge_and_steady_steps_are_told():
    rows = [
        process(batch, epoch, 0, memory, steady_step_s=step * batch)
        for batch, memory, epoch, step in ((16, 1000, 10, 10e-3), (32, 1100, 8, 5e-3), (64, 1200, 8.1, 3e-3))
    ]
    table = build("one", rows, axes=AXES)
    assert table.answers[0].startswith("By one process each, a larger batch stops paying after 32: ")
    assert table.answers[1] == (
        "By the steady steps alone, without the fill of each epoch, every larger batch pays, up to 64, by these "
        "figures."
    )


def test_the_allocators_answer_is_told_where_it_is_another():
    def rows(allocated):
        memory, times = (1000, 1100, 1700), (20, 10, 9)
        return [
            process(16 << n, times[n], 0, memory[n], gpu_mem_allocated_mib=allocated[n]) for n in range(3)
        ]

    moved = build("one", rows((100, 250, 900)), axes=AXES)
    assert moved.answers[1] == (
        "By the allocator's peak, which is of tensors alone, no larger batch pays by these figures."
    )
    alike = build("one", rows((100, 150, 900)), axes=AXES)
    assert not any("allocator" in one for one in alike.answers)


def test_most_of_the_rate_and_the_pareto_front_stand_in_one_line():
    table = build("one", sizes((1000, [20]), (1100, [10]), (1700, [9.8]), (1800, [11])), axes=AXES)
    assert table.remarks[0] == (
        "By one process each, 32 is the smallest of these sizes that reaches 95 % of the best rate; by these figures "
        "on the Pareto front of time and memory, beaten in both by no other: 16, 32 and 64."
    )


def test_shares_of_the_best_rate_have_intervals_and_are_open_where_these_hold_the_border():
    clear = build("one", sizes((1000, around(20)), (1100, around(10)), (1700, around(9.8))), axes=AXES)
    assert clear.remarks[0].startswith(
        "32 is the smallest of these sizes that reaches 95 % of the best rate: 98 % of it (97.8 to 98.2 %) and 16 "
        "reaches 49 % of it (48.9 to 49.1 %); by these figures "
    )
    noisy = build(
        "one", sizes((1000, around(20)), (1100, around(10, 0.02)), (1700, around(9.8, 0.02))), axes=AXES
    )
    assert noisy.remarks[0].startswith(
        "Open, by these figures 32 is the smallest of these sizes that reaches 95 % "
    )
    best = build("one", sizes((1000, around(20)), (1100, around(10))), axes=AXES)
    assert "best rate: 16 reaches 50 % of it (49.9 to 50.1 %); " in best.remarks[0]


MOST = "is the smallest of these sizes that reaches 95 % of the best rate"


def test_the_best_rate_is_open_where_another_size_may_have_it():
    """The size with the best rate has no share of it to test, but another may be faster in truth."""
    rows = sizes((1000, around(20)), (1100, around(10, 0.02)), (1700, around(10.2, 0.1)), (1800, around(12)))
    (line,) = build("one", rows, axes=AXES).remarks[:1]
    may = "16 reaches 50 % of it (48 to 52 %) and 64 may be faster than 32; "
    assert line.startswith(f"Open, by these figures 32 {MOST}: {may}")
    clear = sizes((1000, around(20)), (1100, around(10)), (1700, around(10.2)), (1800, around(12)))
    assert build("one", clear, axes=AXES).remarks[0].startswith(f"32 {MOST}: 16 reaches 50 % of it ")


def test_the_smallest_that_reaches_most_of_the_rate_is_open_where_one_below_the_next_may():
    rows = sizes((1000, around(11, 0.05)), (1100, around(13)), (1700, around(10)), (1800, around(10.1)))
    (line,) = build("one", rows, axes=AXES).remarks[:1]
    may = "32 reaches 77 % of it (76.7 to 77.1 %) and 16 may reach it, too; "
    assert line.startswith(f"Open, by these figures 64 {MOST}: {may}")


@pytest.mark.parametrize(("fill", "differs"), [(0.0, False), (2.0, True)])
def test_where_whole_epochs_grow_otherwise_than_steady_steps_it_says_why(fill, differs):
    rows = [
        process(batch, time + fill, number, 1000, steady_step_s=1e-4 * time * batch)
        for batch, center in ((16, 10), (32, 8))
        for number, time in enumerate(around(center))
    ]
    told = knees(rows)[0].sentence
    why = "By steady steps (growth in the table: whole epochs, with their fill) every larger batch pays, up to 32"
    assert told.startswith(why) == differs
    assert told.startswith("Every larger batch pays, up to 32: ") != differs
    assert ("; times are of steady steps, without the fill of each epoch" in told) != differs


def test_an_open_answer_stays_open_first_where_whole_epochs_grow_otherwise():
    rows = [
        process(batch, time + 2, number, 1000, steady_step_s=1e-4 * time * batch)
        for batch, center in ((16, 10), (32, 9))
        for number, time in enumerate(around(center, 0.2))
    ]
    assert knees(rows)[0].sentence.startswith(
        "Open, by steady steps (growth in the table: whole epochs, with their fill), whether 32 pays after 16. "
    )


def test_a_size_that_reaches_most_of_the_rate_of_steady_steps_alone_says_so():
    rows = [
        process(batch, epoch * (1 + number / 1e4), number, steady_step_s=step * batch * (1 + number / 1e4))
        for batch, epoch, step in ((16, 10, 0.00100), (32, 9, 0.00099))
        for number in range(3)
    ]
    said = "16 is the smallest of these sizes that reaches 95 % of the best rate of steady steps (of whole epochs: 32)"
    assert build("one", rows, axes=AXES).remarks[0].startswith(said)


def scaling_table(*rows: tuple[int, list[float]], batch: int = 64) -> Table:
    made = [
        process(batch, time, number, gpus=gpus, config_id=f"g{gpus}", strategy="ddp" if gpus > 1 else "single",
                trial_id=f"g{gpus}-{number}")
        for gpus, times in rows
        for number, time in enumerate(times)
    ]  # fmt: skip
    return build("one", made, axes=[("gpus",)])


def test_speedups_are_faster_slower_the_same_or_open_with_their_efficiencies():
    table = scaling_table((1, around(10)), (2, around(5.3)), (4, around(10.01)), (8, around(12)))
    _, half = welch(around(10), around(5.3))
    low, high = (math.exp(math.log(10 / 5.3) + sign * half) for sign in (-1, 1))
    assert (round(low, 2), round(high, 2)) == (1.88, 1.89)
    (said,) = [one for one in table.answers if one.startswith("Against")]
    assert said == (
        "Against single on 1 GPU, batch size 64 (strong scaling): gpus=2 is faster, 1.89 times (1.88 to "
        "1.89), an efficiency of 94 % (94 to 95 %); "
        "gpus=4 is the same inside 2 %, 1.00 times (1.00 to 1.00), an efficiency of 25 % (25 to 25 %); "
        "gpus=8 is slower, 0.83 times (0.83 to 0.84), an efficiency of 10 % (10 to 10 %)."
    )
    row = next(row for row in table.rows if row.gpus == 2)
    assert (row.speedup_low, row.speedup_high) == (pytest.approx(low), pytest.approx(high))
    assert row.strong_efficiency_low_pct == pytest.approx(50 * low)
    opened = scaling_table((1, around(10, 0.1)), (2, around(9, 0.1)))
    (said,) = [one for one in opened.answers if one.startswith("Against")]
    assert " is open, 1.11 times (" in said
    assert ". Of so few processes only a difference of " in said
    some = scaling_table((1, around(10, 0.1)), (2, around(9, 0.1)), (4, around(1, 0.1)))
    (said,) = [one for one in some.answers if one.startswith("Against")]
    assert "gpus=4 is faster" in said
    assert ". The one that is open would have shown only a difference of " in said


def test_values_along_another_axis_are_compared_with_the_one_before():
    rows = [
        process(64, time, number, workers=workers, config_id=f"w{workers}", trial_id=f"w{workers}-{number}")
        for workers, center in ((1, 10), (2, 6), (4, 6.01), (8, 7))
        for number, time in enumerate(around(center))
    ]
    table = build("one", rows, axes=[("workers",)])
    assert table.answers == (
        "Time per image: from workers=1 to 2 it falls 40 % (−40.1 to −39.9 %), faster; from workers=2 to 4 it grows "
        "0.2 % (−0.1 to +0.4 %), the same inside 2 %; from workers=4 to 8 it grows 16 % (+16 to +17 %), slower.",
    )


def group_rows(alone: list[float], together: list[float]):
    """Two copies, each of as many runs, and their trial alone."""
    solo = [process(16, time, number, solo_id=None) for number, time in enumerate(alone)]
    jobs = [
        process(
            16, time, number, group="2 copies", job=f"{job} of 2", group_id=f"g{number}", config_id=f"j{job}",
            trial_id=f"j{job}-{number}", solo_id=f"t16-{number}", slowdown=time / 10, overlap_gain=0.5,
            solo_epoch_time_s=10.0,
        )
        for number, time in enumerate(together)
        for job in (1, 2)
    ]  # fmt: skip
    return [*solo, *jobs]


def verdict_of(alone, together):
    table = build("one", group_rows(alone, together))
    (said,) = [one for one in table.answers if one.startswith("2 copies")]
    return said, next(row for row in table.rows if row.group)


def on_nodes(alone, together, of_alone, of_jobs):
    """The same, each run on the node whose letter stands at its place."""
    rows = group_rows(alone, together)
    return [changed(row, host=(of_jobs if row.group else of_alone)[row.repeat]) for row in rows]


def test_a_group_on_the_nodes_of_its_trial_alone_is_compared_as_it_is():
    rows = on_nodes(around(10), around(14), "aabbb", "aabbb")
    assert verdict_of(around(10), around(14))[0] in build("one", rows).answers


def test_a_group_on_other_nodes_than_its_trial_alone_is_open():
    (said,) = build("one", on_nodes(around(10), around(14), "aaaaa", "bbbbb")).answers
    assert said.startswith(
        "2 copies: open, merely concurrent or partly parallel or parallel (overlap gain 0.43). It is"
    )
    assert "it is not known what nodes differ by" in said.lower()


@pytest.mark.parametrize(
    ("together", "cell", "said"),
    [
        (10.2, "parallel", "2 copies: parallel (overlap gain 0.96, 0.95 to 0.97)"),
        (14.0, "partly parallel", "2 copies: partly parallel (overlap gain 0.43, 0.42 to 0.43)"),
        (19.8, "merely concurrent", "2 copies: merely concurrent (overlap gain 0.01, 0.01 to 0.01)"),
    ],
)
def test_jobs_are_parallel_partly_or_merely_concurrent(together, cell, said):
    sentence, row = verdict_of(around(10), around(together))
    assert (row.sharing, sentence.partition(".")[0][:3]) == (cell, said[:3])
    assert sentence.startswith(said[: said.index("(")])
    # By hand: both jobs ran in the same runs, so the sum's logarithm is log 2 plus a difference of two means.
    _, half = welch(around(10), around(together))
    center = math.log(2 * 10 / together)
    assert row.overlap_gain_low == pytest.approx(math.exp(center - half) - 1)
    assert row.overlap_gain_high == pytest.approx(math.exp(center + half) - 1)


def test_a_gain_across_a_border_is_open_and_says_what_would_settle_it():
    sentence, row = verdict_of(around(10, 0.03), around(10.3, 0.03))
    assert row.sharing == "open"
    assert sentence.startswith("2 copies: open, partly parallel or parallel (overlap gain 0.94, ")
    assert "So few runs tell the gain to ± 0.1" in sentence
    assert "gpubench sweep … --repeats" in sentence


TIMES = st.lists(st.floats(1, 100), min_size=2, max_size=5)


@settings(max_examples=40, deadline=None)
@given(st.lists(TIMES, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_answers_do_not_depend_on_the_order_of_records(times: list[list[float]], chance: random.Random):
    rows = sizes(*[(1000 + 100 * place, one) for place, one in enumerate(times)])
    mixed = rows[:]
    chance.shuffle(mixed)
    assert build("one", rows, axes=AXES).answers == build("one", mixed, axes=AXES).answers


@settings(max_examples=40, deadline=None)
@given(TIMES, TIMES, st.floats(1, 100), st.randoms(use_true_random=False))
def test_where_a_further_process_stands_does_not_make_a_claim_firmer(before, after, more, chance):
    """As the first, the last or any record between, with its place in the round taken by any: the claim is one."""
    rows = sizes((1000, before), (1100, after))
    found = set()
    for place in (0, len(rows), chance.randrange(len(rows))):
        extended = rows[:]
        extended.insert(place, process(32, more, len(after)))
        (knee,) = knees(extended)
        found.add((knee.firm, knee.sentence))
    assert len(found) == 1


def test_a_process_like_the_others_does_not_turn_what_was_decided():
    """The mean as one more process leaves the figure where it was, and narrows what is known of it."""
    before, after = around(10), around(8)
    center = math.exp(sum(map(math.log, after)) / len(after))
    fewer = knee_of((1000, before), (1000, after))
    (more,) = knees(sizes((1000, before), (1000, [*after, center])))
    assert fewer.firm
    assert more.firm
    assert (fewer.verdict, more.verdict) == ("always", "always")


def test_tables_of_equal_rows_seldom_say_that_any_differ():
    """Ten equal rows in a table, through the code that tables are made by: a difference in 5 % of tables at most."""
    draw = np.random.default_rng(12)
    tables = 150
    times = mean_times(draw, 10 * tables, 5, between=1.0).reshape(tables, 10, 5)
    said = 0
    for one in times:
        rows = [
            process(64, float(time), number, workers=place + 1, config_id=f"w{place}", trial_id=f"w{place}-{number}")
            for place, row in enumerate(one)
            for number, time in enumerate(row)
        ]  # fmt: skip
        (answer,) = build("one", rows, axes=[("workers",)]).answers
        said += ", slower" in answer or ", faster" in answer
    # Of 150 tables at a rate of 5 %, 13 or more would be chance of one in twenty.
    assert said <= stats.binom.ppf(0.95, tables, 0.05)


def test_batch_sizes_that_cost_the_same_seldom_are_said_to_pay():
    draw = np.random.default_rng(7)
    tables = 100
    times = mean_times(draw, 10 * tables, 4, between=1.0).reshape(tables, 10, 4)
    said = 0
    for one in times:
        (knee,) = knees(sizes(*[(1000, [float(time) for time in row]) for row in one]))
        said += " pays from" in knee.sentence or "Every larger" in knee.sentence
    assert said <= stats.binom.ppf(0.95, tables, 0.05)


def test_the_minutes_are_those_of_further_rounds():
    rows = [
        process(batch, time, 0, round=number + 1, took_s=30.0 if number else 90.0)
        for batch, center, apart in ((16, 10.0, 0.02), (32, 9.6, -0.02))
        for number, time in enumerate(around(center, apart))
    ]
    (answer, *_) = build("one", rows, axes=AXES).answers
    asked = int(answer.partition("--rounds ")[2].split()[0])
    assert f"in about {round((asked - 5) * 60 / 60)} min more" in answer


def rounds_of(batch: int, times: list[float], **others):
    """One process a round."""
    return [process(batch, time, 0, round=number, **others) for number, time in enumerate(times, start=1)]


def drifting(rounds: int, *apart: float, drift: float = 0.05, time: float = 10.0) -> list[float]:
    """Times of a machine that is slower by so much each round; `apart`: noise, over and over."""
    return [time * math.exp(drift * number + apart[number % len(apart)]) for number in range(rounds)]


def test_a_growth_is_of_the_rounds_that_its_interval_is_of():
    """A row that was sure enough early knows nothing of how slow the machine became later."""
    rows = [
        *rounds_of(16, drifting(3, 0.001, -0.001, 0)),
        *rounds_of(32, drifting(9, 0, 0.001, -0.001)),
    ]
    table = build("one", rows, axes=AXES)
    after = table.rows[1]
    low, high = after.epoch_time_growth_low_pct, after.epoch_time_growth_high_pct
    assert low <= after.epoch_time_growth_pct <= high
    assert (low, high) == (pytest.approx(0, abs=1), pytest.approx(0, abs=1))
    said = "Rows that were not measured in all the same rounds are compared by the rounds that both have"
    assert any(one.startswith(said) for one in table.remarks)
    same = build("one", [*rows[:3], *rows[3:6]], axes=AXES)
    assert not any(one.startswith(said) for one in same.remarks)


def test_a_speedup_is_of_the_rounds_that_its_interval_is_of():
    rows = [
        *rounds_of(64, drifting(3, 0.001, -0.001, 0), gpus=1, strategy="single", config_id="g1"),
        *rounds_of(64, drifting(9, 0, 0.001, -0.001), gpus=2, strategy="ddp", config_id="g2"),
    ]
    table = build("one", rows, axes=[("gpus",)])
    row = table.rows[1]
    assert row.speedup_low <= row.speedup <= row.speedup_high
    assert row.strong_efficiency_low_pct <= row.strong_efficiency_pct <= row.strong_efficiency_high_pct
    assert f"{row.speedup:.2f} times" in table.answers[0]


def test_a_slowdown_lies_in_its_interval_where_the_trial_alone_has_fewer_rounds():
    alone = rounds_of(16, drifting(3, 0.001, -0.001, 0), trial_id="t16")
    jobs = [
        row
        for job in (1, 2)
        for row in rounds_of(
            16, drifting(9, 0, 0.001, -0.001), group="2 copies", job=f"{job} of 2", group_id="g",
            config_id=f"j{job}", trial_id=f"j{job}", solo_id="t16", slowdown=1.0, solo_epoch_time_s=10.0,
        )
    ]  # fmt: skip
    row = next(row for row in build("one", [*alone, *jobs]).rows if row.group)
    assert row.slowdown == pytest.approx(row.epoch_time_s / row.solo_epoch_time_s)
    assert row.slowdown_low <= row.slowdown <= row.slowdown_high


def asked_for(answer: str, option: str = "--rounds") -> int:
    return int(answer.partition(f"{option} ")[2].split()[0])


def test_rounds_that_settle_it_are_foretold_by_pairs_where_pairs_decide():
    """Each row drifts by 50 %, which its pairs know nothing of: fewer rounds are needed than its spread would tell."""
    noise = (0.02, -0.02, 0.02, -0.02, 0)
    rows = [
        *rounds_of(16, drifting(5, 0, drift=0.1)),
        *rounds_of(32, drifting(5, *noise, drift=0.1, time=9.85)),
    ]
    (answer, *_) = build("one", rows, axes=AXES).answers
    assert answer.startswith("Open whether 32 pays after 16.")
    center, sd = math.log(0.985), float(np.std(noise, ddof=1))
    enough = next(
        n for n in range(6, 100)
        if stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, -center * math.sqrt(n) / sd) >= 0.8
        or 2 * stats.nct.sf(stats.t.ppf(0.95, n - 1), n - 1, (math.log(1.02) + center) * math.sqrt(n) / sd) - 1 >= 0.8
    )  # fmt: skip
    assert abs(asked_for(answer) - enough) <= 3


def test_rounds_of_rows_with_repeats_bring_as_many_processes_each():
    def answer(repeats: int, rounds: int) -> str:
        rows = [
            process(batch, time, number % repeats, round=1 + number // repeats, took_s=60.0)
            for batch, center in ((16, 10.0), (32, 9.5))
            for number, time in enumerate([*around(center, 0.03), center])
        ]
        assert max(row.round for row in rows) == rounds
        return build("one", rows, axes=AXES).answers[0]

    processes = asked_for(answer(6, 1), "--repeats")
    found = answer(3, 2)
    assert asked_for(found) == math.ceil(processes / 3)
    # A round takes three processes of both rows, a minute each.
    assert f"in about {6 * (asked_for(found) - 2)} min more" in found


def test_rows_that_are_further_than_others_need_fewer_rounds_more():
    """Of 36 and 9 processes each is counted from there on; both were counted from 9 on."""
    few = [10 * math.exp(0.03 * (place - 4)) for place in range(9)]
    many = [9.5 * math.exp(0.0001 * (place - 17.5)) for place in range(36)]
    rows = [
        process(batch, time, 0, round=number + 1, took_s=seconds if number else 500.0)
        for batch, times, seconds in ((16, few, 60.0), (32, many, 120.0))
        for number, time in enumerate(times)
    ]
    answer = build("one", rows, axes=AXES).answers[0]
    asked = asked_for(answer)
    assert asked > 9
    left = asked - 9 + 2 * max(0, asked - 36)
    assert (
        f" settles it in four of five cases, if the truth is what was seen, in about {left} min more"
        in answer
    )


def test_a_gain_needs_more_rounds_where_much_is_known_already_of_the_noisier_side():
    """20 processes alone are not halved in variance by four more."""
    alone = [10 * math.exp(0.1 * (-1) ** number) for number in range(20)]
    rows = group_rows(alone, [])
    rows += [row for row in group_rows([], around(10.6, 0.0001)[:3]) if row.group]
    (said,) = [one for one in build("one", rows).answers if one.startswith("2 copies")]
    assert "open" in said
    assert "more than 100 repeats would be needed" in said or asked_for(said, "--repeats") > 20


def test_a_gain_is_of_the_runs_that_its_interval_is_of():
    """What a job took in a run that the other one lost says nothing of both together."""
    rows = group_rows(around(10), [*around(11), 30.0])
    rows = [row for row in rows if not (row.job == "2 of 2" and row.epoch_time_s == 30.0)]
    (job, _) = [row for row in build("one", rows).rows if row.group]
    assert job.overlap_gain_low <= job.overlap_gain <= job.overlap_gain_high
    assert job.overlap_gain == pytest.approx(2 * 10 / 11 - 1)


def test_an_interval_of_energy_is_of_the_rounds_that_its_figure_is_of():
    """What a further round of an earlier version tells of energy is not in the figure; each process of now is."""
    rows = [
        process(16, 10 + 0.01 * number, 0, round=number, energy_j=joules,
                epoch_time_source="measured" if number == 1 else "extrapolated")
        for number, joules in ((1, 100.0), (2, 140.0), (3, 141.0))
    ]  # fmt: skip
    (row,) = build("one", rows).rows
    assert (row.images_per_joule, row.images_per_joule_low) == (102.4, None)
    (row,) = build("one", [changed(one, epoch_time_source="steady") for one in rows]).rows
    assert row.images_per_joule == pytest.approx(10_240 / 140)
    assert row.images_per_joule_low < 10_240 / 140 < row.images_per_joule_high
    repeated = [
        process(16, 10.0, number, energy_j=joules) for number, joules in enumerate((99.0, 100.0, 101.0))
    ]
    (row,) = build("one", [*repeated, *rows[1:]]).rows
    assert row.images_per_joule_low < 102.4 < row.images_per_joule_high
    assert row.images_per_joule_low > 97


def test_what_does_not_vary_at_all_is_told_without_digits_of_nothing():
    knee = knee_of((1000, [10.0] * 3), (1000, [10.0 * (1 + 1e-15)] * 3))
    assert (
        "time per image changes by less than 0.1 % (within 0.001 %), so that memory × time changes by less than 0.1 %"
        in knee.sentence
    )


def test_ends_that_nobody_could_read_are_more_than_ten_thousand():
    table = scaling_table((1, [1.0, 100.0]), (2, [0.5, 90.0]))
    said = table.answers[0]
    assert "1.49 times (0.00 to more than 10,000), an efficiency of 75 % (0 to more than 10,000 %)" in said
    knee = knee_of((1000, [1.0, 100.0]), (1000, [1.0, 100.0]))
    assert "changes by less than 0.1 % (−100 to more than +10,000 %)" in knee.sentence


def test_an_answer_by_steady_steps_says_so():
    """The growth of whole epochs stands above it, and is another figure."""

    def rows(**others):
        return [
            process(
                batch, time, number, 1000, **{name: time * share * batch for name, share in others.items()}
            )
            for batch, center in ((16, 10), (32, 8))
            for number, time in enumerate(around(center))
        ]

    said = "; times are of steady steps, without the fill of each epoch"
    assert said in knees(rows(steady_step_s=1e-4))[0].sentence
    assert said not in knees(rows())[0].sentence


def test_an_answer_by_steady_steps_and_by_whole_epochs_says_which_is_which():
    """16 to 32 pays by steady steps, 0.9 × 1.05, where by the growth of the table, −5 %, it would not. 64 has none."""
    rows = [
        process(
            batch,
            time * center,
            number,
            memory,
            **({"steady_step_s": 1e-4 * steps * time * batch} if steps else {}),
        )
        for batch, center, memory, steps in ((16, 10, 1000, 10), (32, 9.5, 1050, 9), (64, 9.4, 2000, None))
        for number, time in enumerate(around(1))
    ]
    told = knees(rows)[0].sentence
    assert told.startswith("A larger batch stops paying after 32: "), told
    assert told.endswith("; times are of steady steps, but from and to 64, which have none, of whole epochs.")
