"""What changed between two sides: figures, verdicts, regressions, exit codes."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import committed
import pandas as pd
import pytest
from compared_rows import STEADY, compare, make_sides, only, row
from made_up_tables import scatter

from gpubench.analyze.compare import (
    combine_folder_rows,
    compare_field_values,
    compare_folders,
    compare_matched_rows,
    match_rows,
)
from gpubench.analyze.folder import Folder, read_folder
from gpubench.basics.errors import UsageError
from gpubench.core.comparison import FIGURES, FigureChange
from gpubench.schema.row import KnownImages


def answer(change: FigureChange) -> tuple[str, str]:
    return change.direction, "" if change.verdict is None else change.verdict.word


def times(by: float) -> list[float]:
    return [by * time for time in STEADY]


def test_times_are_faster_slower_the_same_or_unknown() -> None:
    slower, faster = only(row(STEADY), row(times(1.3))), only(row(times(1.3)), row(STEADY))
    assert (answer(slower), slower.b / slower.a) == (("more", "sure"), pytest.approx(1.3))
    assert answer(faster) == ("less", "sure")
    assert slower.verdict.low == pytest.approx(1 / faster.verdict.high)  # type: ignore[union-attr,operator]
    assert answer(only(row([1.0, 1.001, 0.999]), row([1.002, 1.001, 1.0]))) == ("same", "sure")
    assert answer(only(row(STEADY), row(times(1.015)))) == ("unknown", "unknown")
    differing = only(row(scatter(1, 0, 1e-5, -1e-5)), row(scatter(1.01, 0, 1e-5, -1e-5)))
    assert [(claim.design, claim.decided.word) for claim in differing.claims] == [
        ("paired", "sure"),
        ("equal", "sure"),
    ]
    assert answer(differing) == ("same", "sure")


def test_of_one_process_nothing_is_sure() -> None:
    assert answer(only(row([1.0]), row([1.3, 1.3, 1.3]))) == ("unknown", "unknown")
    change = only(row([1.0]), row([5.0]), threshold=0.05)
    assert answer(change) == ("more", "likely")
    assert (change.is_regression, change.is_regression_excluded) == (False, False)
    assert not only(row([5.0]), row([1.0]), threshold=0.05).is_regression_excluded


def test_time_is_told_per_image_and_per_epoch_where_no_side_knows_its_images() -> None:
    assert answer(only(row([1.0] * 3), row([2.0] * 3, images_per_epoch=2000))) == ("same", "sure")
    change = only(row([1.0] * 3, images_per_epoch=None), row([2.0] * 3, images_per_epoch=None))
    assert (change.is_per_epoch, change.a, change.b) == (True, pytest.approx(1), pytest.approx(2))
    change = only(row([1.0] * 3), row([2.0] * 3, images_per_epoch=None))
    assert (change.reason, change.claims, answer(change)) == ("unlike-images", (), ("unknown", ""))


def test_rows_of_one_folder_are_compared_by_their_rounds_and_on_one_node() -> None:
    """Each round is slower than the one before: pair by pair that cancels, which two folders don't allow."""
    grown, more = [1.0, 2.0, 3.0], [1.1, 2.2, 3.3]
    assert answer(only(row(grown, rounds=(1, 2, 3)), row(more, rounds=(1, 2, 3)))) == ("more", "sure")
    assert answer(only(row(grown), row(more))) == ("unknown", "unknown")
    assert answer(only(row(STEADY, host="x"), row(times(1.3), host="y"))) == ("unknown", "unknown")


def test_memory_is_exact() -> None:
    def compare_with(*sizes: float, threshold: float) -> list[FigureChange]:
        facts: dict[str, Any] = {"gpu_mem_source": "nvml-process"}
        a = [row(gpu_mem_mib=1000, batch_size=n, **facts) for n, _ in enumerate(sizes, 1)]
        b = [row(gpu_mem_mib=mib, batch_size=n, **facts) for n, mib in enumerate(sizes, 1)]
        return [change for _, change in compare(a, b, threshold, ("memory",)).changes]

    changes = compare_with(980, 990, 1010, 1030, 1050, 1051, threshold=0.05)
    assert [change.direction for change in changes] == ["less", "same", "same", "more", "more", "more"]
    assert {answer(change)[1] for change in changes} == {"sure"}
    assert [change.is_regression for change in changes] == [False] * 5 + [True]
    assert [change.is_regression_excluded for change in changes] == [True] * 5 + [False]
    low = compare_with(1000, 1003, 1004, threshold=0.0005)
    assert [change.is_regression for change in low] == [False, False, True]
    assert [change.is_regression_excluded for change in low] == [True, False, False]
    a, b = (row(gpu_mem_mib=1000, gpu_mem_source=source) for source in ("nvml-process", "torch-reserved"))
    assert only(a, b, "memory").reason == "unlike-sources"


def test_energy_is_of_the_processes_that_measured_all_figures() -> None:
    a, b = (row([1.0] * 3, energy_j=times(joules)) for joules in (100, 120))
    change = only(a, b, "energy")
    assert (answer(change), change.a) == (("more", "sure"), pytest.approx(0.1, rel=1e-3))
    first = [{**each, "has_all_figures": [True, False, False]} for each in (a, b)]
    assert only(*first, "energy").claims[0].evidence.processes == (1, 1)
    assert only({**a, "energy_source": "x"}, {**b, "energy_source": "y"}, "energy").reason == "unlike-sources"


def test_cpu_time_is_a_question_of_its_own_and_no_regression() -> None:
    change = only(
        row(STEADY, cpu_s_per_epoch=times(3)), row(STEADY, cpu_s_per_epoch=times(6)), "cpu", threshold=0.05
    )
    assert (answer(change), change.is_regression) == (("more", "sure"), False)
    assert {claim.family for claim in change.claims} == {"compare:cpu"}


def test_top1_needs_three_seeds_and_is_the_same_inside_a_point() -> None:
    low = [50.0, 50.1, 49.9]

    def compare_with(b: list[float], seeds: int = 3, **facts: Any) -> FigureChange:
        repeat = list(range(seeds))
        first = row([1.0] * seeds, top1_pct=low[:seeds], repeat=repeat)
        return only(first, row([1.0] * seeds, top1_pct=b[:seeds], repeat=repeat, **facts), "top1")

    high = compare_with([60.0, 60.1, 59.9])
    assert (answer(high), high.b) == (("more", "sure"), pytest.approx(60))
    assert answer(compare_with([60.0, 60.1], seeds=2)) == ("unknown", "unknown")
    assert answer(compare_with([50.1, 50.2, 50.0])) == ("same", "sure")
    assert compare_with(low, val_images=200).reason == "unlike-images"
    aimed = [row(top1_pct=50.0, until_top1=60.0)]
    assert compare(aimed, aimed).trials[10, 11].keys() == {"time"}


def test_all_times_and_energies_are_one_family() -> None:
    a = [row(STEADY, batch_size=size) for size in range(16, 56)]
    b = [row(times(1.06), batch_size=size) for size in range(16, 56)]
    assert answer(only(a[0], b[0])) == ("more", "sure")
    assert {answer(change) for _, change in compare(a, b).changes} == {("more", "likely")}
    more = [{**each, "epoch_time_s": times(1.15)} for each in a]
    assert compare(a[:1], more[:1], 0.05).regressions
    assert not compare(a, more, 0.05).regressions  # that any is beyond the threshold is corrected for all


def test_a_regression_is_one_where_the_two_sided_interval_lies_beyond_the_threshold() -> None:
    """One-sided, this difference would be beyond 5 % (p = 0.028), and its printed interval begins below that."""
    a, b = row([1.0] * 3), row(scatter(1.09, 0.016, 0.0, -0.016))
    change = only(a, b, threshold=0.05)
    beyond = next(claim for claim in change.claims if claim.family == "compare:regression")
    assert beyond.decided.p is not None
    assert 0.05 < beyond.decided.p < 0.1
    assert change.verdict is not None
    assert change.verdict.low is not None
    assert 1.0 < change.verdict.low < 1.05
    assert (answer(change), change.is_regression) == (("more", "sure"), False)
    assert only(a, b, threshold=0.03).is_regression


def test_a_regression_lies_beyond_the_threshold_and_an_excluded_one_below_it() -> None:
    a, b = row(STEADY), row(times(1.1))
    for limit, is_regression, is_excluded in ((0.05, True, False), (0.09, False, False), (0.2, False, True)):
        change = only(a, b, threshold=limit)
        assert (change.is_regression, change.is_regression_excluded) == (is_regression, is_excluded)
    better = only(b, a, threshold=0.05)
    assert (better.is_regression, better.is_regression_excluded) == (False, True)


# ---- what both sides come to ----


def test_the_exit_code_tells_of_a_regression_and_strictly_of_what_is_not_excluded() -> None:
    a = [row(STEADY), row([1.0, 1.5, 0.7], batch_size=64)]
    b = [row(times(1.3)), row([0.7, 1.5, 1.0], batch_size=64)]
    worse, better = compare(a, b, 0.05), compare(b, a, 0.05)
    assert [(pair, change.figure) for pair, change in worse.regressions] == [((10, 12), "time")]
    assert (worse.compute_exit_code(), better.compute_exit_code()) == (3, 0)
    assert better.compute_exit_code(is_strict=True) == 3
    assert compare(a, b).compute_exit_code(is_strict=True) == 0
    assert compare(a[:1], [*a[:1], *b[1:]], 0.05).compute_exit_code(is_strict=True) == 0  # one is new
    gone = compare([*a[:1], row(STEADY, batch_size=8)], a[:1], 0.05)
    assert (gone.compute_exit_code(), gone.compute_exit_code(is_strict=True), gone.only_a) == (0, 3, (11,))


def test_a_trial_that_broke_is_a_regression() -> None:
    statuses = ("oom", "failed", "timeout", "missing")
    a = [row(STEADY, batch_size=size) for size, _ in enumerate(statuses, 1)]
    b = [row((), status=status, batch_size=size) for size, status in enumerate(statuses, 1)]
    comparison = compare(a, b, 0.05)
    assert comparison.not_ok == ((10, 14), (11, 15), (12, 16), (13, 17))
    assert comparison.broken_trials == [(10, 14), (11, 15), (12, 16)]
    assert (comparison.compute_exit_code(), comparison.obstacle) == (3, None)
    for sides, threshold in (((a[3:], b[3:]), 0.05), ((b, a), 0.05), ((a, b), None)):
        nothing = compare(*sides, threshold)
        assert (nothing.compute_exit_code(), nothing.obstacle) == (4, "none-ok")


def test_pairs_that_are_a_guess_are_compared_and_held_against_no_threshold() -> None:
    a = [row(STEADY), row(batch_size=32)]
    b = [row(times(2), precision="bf16"), row((), status="oom", batch_size=32, precision="bf16")]
    guess = compare(a, b, 0.05)
    assert (guess.is_matched_by_guess, guess.obstacle, guess.compute_exit_code()) == (True, "guess", 4)
    assert (guess.regressions, guess.broken_trials, answer(guess.trials[10, 12]["time"])) == (
        [],
        [],
        ("more", "sure"),
    )
    assert compare(a, b).compute_exit_code() == 0
    assert dict(guess.unlike) == {"precision": (("fp32",), ("bf16",))}
    sure = compare(a, [{**each, "precision": "fp32"} for each in b], 0.05)
    assert (len(sure.regressions), sure.broken_trials, sure.compute_exit_code()) == (1, [(11, 13)], 3)
    elsewhere = compare([row(STEADY)], [row(STEADY, gpu_name="H100", driver="550")])
    assert dict(elsewhere.unlike) == {"gpu_name": (("H200",), ("H100",))}, "of one side no driver is known"
    lower = compare([row(gpu_power_limit_w=700)], [row(gpu_power_limit_w=300)])
    assert dict(lower.unlike) == {"gpu_power_limit_w": ((700,), (300,))}


def test_where_nothing_can_be_compared_it_says_why() -> None:
    other = compare([row(STEADY)], [row(STEADY, model="resnet50")])
    assert (other.obstacle, other.is_incomparable, other.compute_exit_code()) == ("no-match", True, 4)
    kinds = compare([row(STEADY, kind="whole epochs", epochs=3)], [row(STEADY)])
    assert (kinds.obstacle, kinds.is_incomparable, kinds.a.kinds, kinds.b.kinds) == (
        "unlike-kinds", True, ("whole epochs",), ("steady rate",)
    )  # fmt: skip
    costless = compare([row(STEADY)], [row(STEADY)], 0.05, ("top1", "cpu"))
    assert (costless.obstacle, costless.compute_exit_code()) == ("none-ok", 4)
    cpu = [row(STEADY, cpu_s_per_epoch=3.0)]
    assert compare(cpu, cpu, 0.05, ("cpu",)).obstacle == "unchecked"
    assert compare(cpu, cpu, None, ("cpu",)).obstacle is None


# ---- folders ----


@pytest.fixture(scope="module")
def h200x2() -> Folder:
    return read_folder(committed.folder("h200x2-2026"), pytest.fail)


@pytest.fixture(scope="module")
def cpus() -> Folder:
    return read_folder(committed.folder("h200-cpus-2026"), pytest.fail)


def test_a_folder_against_itself_holds_the_same_processes(h200x2: Folder) -> None:
    comparison = compare_folders(h200x2, h200x2, threshold=0.05)
    assert (comparison.obstacle, comparison.compute_exit_code()) == ("same-processes", 4)
    assert (len(comparison.trials), comparison.shared) == (18, 18)


def test_a_copy_is_no_other_side_unless_a_trial_is_gone_or_ended_in_another_way() -> None:
    attempts = [("t", 1)], [("u", 1)]
    a = [row([1.0], batch_size=size) for size in (16, 32)]

    def compare_with(b: list[dict[str, Any]]) -> str | None:
        rows = make_sides(a, b)
        rows.runs["attempt"] = [attempts[n % 2][0] for n in range(len(rows.runs))]
        return compare_matched_rows(rows, match_rows(rows.summary), ("a", "b"), FIGURES, 0.05).obstacle

    assert compare_with(a) == "same-processes"
    assert compare_with(a[:1]) is None
    assert compare_with([a[0], row((), status="failed", batch_size=32)]) is None


def test_the_advice_is_rounds_not_processes_where_a_round_measures_each_trial_several_times() -> None:
    """By the same processes: in rounds of their own, or two rounds of two repeats each."""
    a, b = [1.0, 1.03, 0.97, 1.01], [1.05, 1.08, 1.02, 1.06]
    once = compare([row(a)], [row(b)]).remedy
    sides = [
        row(times, repeat=[0, 1, 0, 1], rounds=rounds)
        for times, rounds in ((a, [1, 1, 2, 2]), (b, [3, 3, 4, 4]))
    ]
    twice = compare([sides[0]], [sides[1]]).remedy
    assert once is not None
    assert twice is not None
    assert twice.rounds == math.ceil(once.rounds / 2)


def test_rounds_of_two_folders_have_nothing_in_common_and_nobody_asks_for_their_nodes(h200x2: Folder) -> None:
    rows = combine_folder_rows([h200x2, h200x2])
    sides = [
        rows.runs[rows.runs["row"].isin(rows.summary.index[rows.summary["is_b"] == is_b])]
        for is_b in (False, True)
    ]
    assert [set(side["round"]) for side in sides] == [{1, 2, 3}, {4, 5, 6}]
    assert rows.runs["host"].isna().all()
    assert rows.summary.index.is_unique
    assert set(combine_folder_rows([h200x2]).runs["round"]) == {1, 2, 3}


def test_a_trial_of_two_experiments_is_there_once_with_all_its_processes(h200x2: Folder) -> None:
    summary, members = h200x2.summary, h200x2.members
    once = members.drop_duplicates("row")
    tables = [once.assign(row=once["row"] + 18), members, once.assign(row=once["row"] + 36)]
    rows = [
        summary.assign(repeats=1).set_index(summary.index + 18),
        summary,
        summary.assign(repeats=1).set_index(summary.index + 36),
    ]
    twice = replace(
        h200x2, summary=pd.concat(rows).sort_index(), members=pd.concat(tables, ignore_index=True)
    )
    collected = combine_folder_rows([twice, twice]).summary
    assert (len(collected), set(collected["repeats"]), collected.index.is_unique) == (36, {3}, True)


def test_images_follow_from_a_variant_that_names_them(cpus: Folder) -> None:
    runs = cpus.runs.copy()
    is_small = runs["variant"] == "pre-resized"
    runs.loc[is_small, "images"] = pd.Series(
        [KnownImages(files="full", fingerprint="g")] * sum(is_small), runs.index[is_small]
    )
    folder = replace(cpus, runs=runs)
    values = ("crop-resize", "pre-resized")
    assert compare_field_values(folder, "variant", values).apart == ("data",)
    variants = {"pre-resized": SimpleNamespace(data="small"), "crop-resize": SimpleNamespace(data=None)}
    stored: Any = SimpleNamespace(plan=SimpleNamespace(experiment=SimpleNamespace(variants=variants)))
    assert not compare_field_values(replace(folder, plans=(stored,)), "variant", values).is_matched_by_guess


def test_two_values_of_a_field_in_one_folder(h200x2: Folder) -> None:
    comparison = compare_field_values(h200x2, "strategy", ("ddp", "dp"), threshold=0.05)
    assert (comparison.compute_exit_code(), len(comparison.trials), comparison.varied) == (
        3,
        6,
        ("batch_size",),
    )
    assert (comparison.a.value, comparison.b.value, comparison.a.trials) == ("ddp", "dp", 6)
    by_size = {
        comparison.rows[b].fields["batch_size"]: changes for (_, b), changes in comparison.trials.items()
    }
    time = by_size[16]["time"]
    assert time.verdict is not None
    assert [time.b / time.a, time.verdict.low, time.verdict.high] == pytest.approx(
        [4.451, 3.471, 5.707], rel=1e-3
    )
    assert {answer(changes["time"]) for changes in by_size.values()} == {("more", "sure")}
    assert answer(by_size[64]["memory"]) == ("less", "sure")
    sizes = h200x2.summary["batch_size"]
    unknown = h200x2.summary.assign(batch_size=sizes.where(h200x2.summary["strategy"] != "dp"))
    comparison = compare_field_values(replace(h200x2, summary=unknown), "batch_size", (16, 32))
    assert (comparison.a.trials, comparison.b.trials) == (2, 2)
    for wrong in (("ddp", "fsdp"), ("fsdp", "dp")):
        with pytest.raises(UsageError, match=r"has strategy=fsdp$"):
            compare_field_values(h200x2, "strategy", wrong)


def test_folders_that_have_half_of_their_trials_in_common(cpus: Folder) -> None:
    copies, rounds = (
        read_folder(committed.folder(f"h200-copies-{name}2026"), pytest.fail) for name in ("", "rounds-")
    )
    comparison = compare_folders(copies, rounds)
    assert (comparison.is_matched_by_guess, comparison.apart, len(comparison.trials), len(comparison.only_a)) == (
        True, ("epochs",), 12, 2
    )  # fmt: skip
    assert dict(comparison.unlike) == {"epochs": ((4,), (2,))}
    assert comparison.varied == ("group", "job", "batch_size")
    two = compare_field_values(cpus, "variant", ("crop-resize", "pre-resized"), threshold=0.05)
    assert (two.is_matched_by_guess, len(two.trials), dict(two.unlike)) == (False, 4, {})
    assert answer(list(two.trials.values())[1]["time"]) == ("less", "likely")
