"""Rows of two sides, matched and compared."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from whole_rows import changed, row_with

from gpubench.analysis.comparing import compared
from gpubench.analysis.matching import matched
from gpubench.analysis.repeats import merge_repeats
from gpubench.schema.row import KnownImages

IMAGES = KnownImages(files="full", fingerprint="f", train_images=1000, val_images=100)
FIELDS = {
    "model": "lenet",
    "variant": "crop-resize",
    "data": "procedural",
    "gpus": 1,
    "device": "cuda",
    "strategy": "single",
    "precision": "fp32",
}


def line(times=(1.0,), *, batch_size=16, memory=None, energies=None, top1=None, rounds=False, **more):
    """One line of a folder: a configuration of so many processes."""
    values = {"status": "ok", "images_per_epoch": 1000.0, "images": IMAGES, "gpu_name": "G", **FIELDS, **more}
    asked = {name: values[name] for name in (*FIELDS, "optimizer", "lr") if name in values}
    asked |= {"batch_size": batch_size, "workers": None}
    runs = [
        row_with(
            **{
                "config_id": "c",
                "trial_id": f"t{number}",
                "asked": asked,
                "batch_size": batch_size,
                "epoch_time_s": time,
                "gpu_mem_mib": memory,
                "gpu_mem_source": "nvml-process" if memory else None,
                "energy_j": energies[number] if energies else None,
                "top1_pct": top1[number] if top1 else None,
                "repeat": 0 if rounds else number,
                "round": number + 1 if rounds else 1,
                **values,
            }
        )
        for number, time in enumerate(times)
    ]
    (merged,) = merge_repeats(runs)
    return merged


def only(a, b, figure="time", **how):
    """The figure of the only pair."""
    (one,) = compared(matched([a], [b]), **how).beside
    return one.figures[figure]


# ---- which rows belong together ----


def test_rows_match_by_what_their_trials_ask_for_whatever_machine_they_ran_on():
    a = line(batch_size=16, host="one", workers=4, cpus=4)
    b = line(batch_size=16, gpu_name="H", host="two", workers=64, cpus=64, gpu_ids=(3,))
    found = matched([a, line(batch_size=32)], [line(batch_size=64), b])
    assert found.pairs == [(a, b)]
    assert not found.set_aside
    assert [row.batch_size for row in found.only_a] == [32]
    assert [row.batch_size for row in found.only_b] == [64]


def test_other_images_under_one_name_are_another_trial():
    other = KnownImages(files="full", fingerprint="g", train_images=1000, val_images=100)
    found = matched([line(), line(batch_size=32)], [line(images=other), line(batch_size=32)])
    assert [row.batch_size for row, _ in found.pairs] == [32]


def test_where_nothing_matches_what_differs_in_all_rows_is_set_aside_as_a_guess():
    a = [line(batch_size=16), line(batch_size=32)]
    b = [line(batch_size=32, precision="bf16"), line(batch_size=64, precision="bf16")]
    found = matched(a, b)
    assert found.pairs == [(a[1], b[0])]
    assert found.set_aside == ("precision",)


def test_rates_match_whatever_the_length_of_their_window_and_whole_epochs_by_their_number():
    short, long = (
        {"window": 3.0, "epoch_time_source": "steady"},
        {"steps": 50, "epoch_time_source": "steady"},
    )
    found = matched([line(**short)], [line(**long)])
    assert (len(found.pairs), found.set_aside) == (1, ())
    three, five = ({"epochs": number, "epoch_time_source": "measured"} for number in (3, 5))
    assert matched([line(**three)], [line(**five)]).set_aside == ("epochs",)
    both = matched([line(**short), line(**three)], [line(**three), line(**long)])
    assert [(a.kind, b.kind) for a, b in both.pairs] == [(k, k) for k in ("steady rate", "whole epochs")]


def test_no_guess_takes_a_rate_for_whole_epochs():
    rate = line(epoch_time_source="steady")
    found = matched([rate, line(epochs=1, batch_size=64)], [line(epochs=3, epoch_time_source="measured")])
    assert [(a.kind, b.kind) for a, b in found.pairs] == []


def test_no_guess_takes_one_network_for_another_but_a_users_own_may_be_two_versions():
    assert not matched([line(model="lenet")], [line(model="resnet50")]).pairs
    found = matched([line(model="mine.py:old")], [line(model="mine.py:new")])
    assert len(found.pairs) == 1
    assert found.set_aside == ("model",)


def test_rows_of_which_several_match_are_compared_by_their_machine_or_not_at_all():
    two = [line(gpu_name="G"), line(gpu_name="H")]
    found = matched(two, [line(gpu_name="H")])
    assert found.pairs[0][0] is two[1]
    assert found.only_a == [two[0]]
    found = matched(two, [line(gpu_name="I")])
    assert not found.pairs
    assert [(len(one.a), len(one.b)) for one in found.several] == [(2, 1)]


def test_a_job_of_a_group_matches_the_same_job_beside_the_same_neighbours():
    def group(name, sizes, group_id):
        return [
            line(batch_size=size, group=name, job=f"{place} of 2", group_id=group_id)
            for place, size in enumerate(sizes, 1)
        ]

    found = matched(group("x", (16, 32), "g1"), group("y", (16, 32), "g2"))
    assert [(a.batch_size, b.batch_size) for a, b in found.pairs] == [(16, 16), (32, 32)]
    assert not matched(group("x", (16, 32), "g1"), group("x", (16, 64), "g2")).pairs


def test_two_values_of_a_field_match_with_what_follows_from_it():
    a, b = line(optimizer="sgd", lr=0.05), line(optimizer="adam", lr=0.001)
    assert len(matched([a], [b], free=("optimizer",)).pairs) == 1
    assert not matched([a], [b], free=("optimizer",)).set_aside
    assert matched([a], [b], free=("optimizer",)).followed == ("lr",)
    asked = line(optimizer="adam", lr=0.3)
    assert matched([a], [asked], free=("optimizer",)).set_aside == ("lr",)


RESIDENT = {"variant": "synthetic", "variant_definition": {"files": "none"}}
READ = {"variant_definition": {"files": "full"}, "workers": 8}
OTHERS = KnownImages(files="full", fingerprint="g", train_images=900, val_images=100)


def test_two_variants_match_whatever_they_do_and_one_that_reads_no_image_with_those_that_do():
    """What a variant does is what was asked to differ, and a resident batch has no loaders and reads no image."""
    none = KnownImages(files="none", fingerprint="none", train_images=1000)
    reads = [line(**READ), line(**READ, batch_size=32)]
    resident = [
        line(**RESIDENT, images=none, workers=0),
        line(**RESIDENT, images=none, workers=0, batch_size=32),
    ]
    found = matched(reads, resident, free=("variant",))
    assert found.pairs == list(zip(reads, resident, strict=True))
    assert (found.set_aside, found.followed) == ((), ())
    assert matched(reads, resident).set_aside, "of two folders, of which nobody asked for that, it is a guess"
    elsewhere = [line(**RESIDENT, images=none, data="birds", workers=0)]
    assert matched(reads[:1], elsewhere, free=("variant",)).set_aside == ("data",)


def test_images_follow_from_a_variant_only_where_that_names_them():
    own = line(variant="small", variant_definition={"files": "full"}, data="birds", images=OTHERS)
    found = matched([line(**READ)], [own], free=("variant",), with_own_images={"small"})
    assert (len(found.pairs), found.set_aside, found.followed) == (1, (), ("data",))
    assert matched([line(**READ)], [own], free=("variant",)).set_aside == ("data",)
    assert matched([line(**READ)], [own], with_own_images={"small"}).set_aside


def test_what_images_settle_follows_from_them_unless_it_was_asked_for():
    settled = {"input_size": 28, "num_classes": 10, "train_images": 900}
    left = dict.fromkeys(settled)

    def of(asked, **more):
        made = line(**more)
        return changed(made, asked={**made.asked, **asked})

    a = of(left, input_size=224, num_classes=2, train_images=1000)
    b = of(left, data="mnist", images=OTHERS, **settled)
    found = matched([a], [b], free=("data",))
    assert (len(found.pairs), found.set_aside, found.followed) == (1, (), tuple(settled))
    asked = of({**left, "input_size": 28}, data="mnist", images=OTHERS, **settled)
    assert matched([a], [asked], free=("data",)).set_aside == ("input_size",)


def test_a_strategy_follows_from_how_many_devices_there_are_unless_it_was_asked_for():
    two = {"gpus": 2, "strategy": "ddp"}
    found = matched([line()], [line(**two)], free=("gpus",))
    assert (len(found.pairs), found.set_aside, found.followed) == (1, (), ("strategy",))
    assert matched([line()], [line(**two | {"strategy": "dp"})], free=("gpus",)).set_aside == ("strategy",)
    assert matched([line()], [line(**two)], free=("precision",)).set_aside == ("gpus", "strategy")


def test_a_cpu_never_follows_from_another_field():
    on_cpu = line(**RESIDENT, device="cpu")
    left = changed(on_cpu, asked={**on_cpu.asked, "device": None})
    assert matched([line(**READ)], [left], free=("variant",)).set_aside == ("device",)


# ---- what may be said ----


def test_what_takes_longer_in_every_process_is_slower_and_the_other_way_round_faster():
    a, b = line((1.0, 1.01, 0.99)), line((1.3, 1.31, 1.29))
    found = only(a, b)
    assert (found.word, found.basis) == ("more", "processes")
    assert found.low < 30 < found.high
    assert only(b, a).word == "less"


def test_what_is_as_long_in_all_processes_is_the_same():
    assert only(line((1.0, 1.001, 0.999)), line((1.002, 1.001, 1.0))).word == "same"


def test_of_one_process_nothing_is_concluded():
    found = only(line((1.0,)), line((5.0, 5.0, 5.0)))
    assert (found.word, found.basis, found.low) == ("open", "one process", None)
    assert found.change == pytest.approx(400)


def test_rounds_of_two_folders_have_nothing_in_common():
    """Each round is slower than the one before: pair by pair that cancels, which two folders don't allow."""
    a, b = line((1.0, 2.0, 3.0), rounds=True), line((1.1, 2.2, 3.3), rounds=True)
    assert (only(a, b, by_rounds=True).word, only(a, b, by_rounds=True).basis) == ("more", "rounds")
    assert (only(a, b).word, only(a, b).basis) == ("open", "processes")


def test_time_is_told_per_image():
    found = only(line((1.0, 1.0, 1.0)), line((2.0, 2.0, 2.0), images_per_epoch=2000.0))
    assert (found.word, found.change) == ("same", pytest.approx(0))


def test_memory_is_exact_and_the_same_inside_the_margin():
    words = [only(line(memory=1000), line(memory=m), "memory").word for m in (980, 990, 1010, 1030, 900)]
    assert words == ["less", "same", "same", "more", "less"]
    unlike = only(line(memory=1000), line(memory=2000, gpu_mem_source="torch-reserved"), "memory")
    assert (unlike.word, unlike.basis) == ("open", "unlike")


def test_top1_needs_three_seeds():
    three = (50.0, 50.1, 49.9), (60.0, 60.1, 59.9)
    found = only(line((1.0,) * 3, top1=three[0]), line((1.0,) * 3, top1=three[1]), "top1")
    assert (found.word, found.change) == ("more", pytest.approx(10))
    found = only(line((1.0,) * 2, top1=three[0][:2]), line((1.0,) * 2, top1=three[1][:2]), "top1")
    assert (found.word, found.basis) == ("open", "too few seeds")


def test_energy_is_of_the_processes_that_measured_all_figures():
    a = line((1.0,) * 3, energies=(100.0, 101.0, 99.0))
    b = line((1.0,) * 3, energies=(120.0, 121.0, 119.0))
    assert only(a, b, "energy").word == "more"
    for source, basis in (
        ("extrapolated", "one process"),
        ("steady", "processes"),
        ("measured", "processes"),
    ):
        a, b = (
            line((1.0,) * 3, energies=(e,) * 3, rounds=True, epoch_time_source=source) for e in (100.0, 120.0)
        )
        assert only(a, b, "energy").basis == basis


def test_all_claims_are_one_family():
    a = [line((1.0, 1.01, 0.99), batch_size=size) for size in range(16, 56)]
    b = [changed(row, epoch_times_s=[1.03, 1.04, 1.02], epoch_time_s=1.03, runs=()) for row in a]
    assert only(a[0], b[0]).word == "more"
    many = compared(matched(a, b))
    assert many.family == 40
    assert {one.figures["time"].word for one in many.beside} == {"open"}


# ---- a threshold ----


def test_a_regression_is_shown_only_where_the_interval_lies_beyond_the_threshold():
    a, b = line((1.0, 1.01, 0.99)), line((1.1, 1.11, 1.09))
    assert only(a, b, threshold=0.05).beyond
    assert not only(a, b, threshold=0.09).beyond  # 10 % +- 2
    assert not only(a, b, threshold=0.09).within
    assert only(a, b, threshold=0.2).within


def test_memory_that_differs_as_equal_processes_do_is_no_regression():
    figures = [
        only(line(memory=1000), line(memory=m), "memory", threshold=0.0005) for m in (1000, 1003, 1004)
    ]
    assert [one.beyond for one in figures] == [False, False, True]
    assert [one.within for one in figures] == [True, False, False]
    above = [only(line(memory=1000), line(memory=m), "memory", threshold=0.05).beyond for m in (1050, 1051)]
    assert above == [False, True]


def test_pairs_that_are_a_guess_are_not_held_against_a_threshold():
    a = [line((1.0, 1.01, 0.99), memory=100), line(batch_size=32)]
    more = [
        line((2.0, 2.01, 1.99), memory=200, precision="bf16"),
        line(batch_size=32, status="oom", epoch_time_s=None, precision="bf16"),
    ]
    found = compared(matched(a, more), threshold=0.05)
    assert found.guessed
    assert {name: one.word for name, one in found.beside[0].figures.items()} == {
        "time": "more",
        "memory": "more",
    }
    assert not found.regressions
    assert not found.broken
    assert found.undecided
    same = [changed(row, precision="fp32", asked=first.asked) for first, row in zip(a, more, strict=True)]
    sure = compared(matched(a, same), threshold=0.05)
    assert {name for _, name in sure.regressions} == {"time", "memory"}
    assert len(sure.broken) == 1


def test_what_ended_ok_and_does_so_no_more_is_broken_and_what_is_gone_is_undecided():
    ended = line(status="oom", epoch_time_s=None)
    found = compared(matched([line()], [ended]), threshold=0.05)
    assert len(found.broken) == 1
    assert not compared(matched([ended], [line()]), threshold=0.05).broken
    a = [line((1.0, 1.001, 0.999)), line((1.0, 1.001, 0.999), batch_size=32)]
    assert compared(matched(a, a[:1]), threshold=0.05).undecided
    assert not compared(matched(a[:1], a), threshold=0.05).undecided


# ---- properties ----

TIMES = st.lists(st.floats(0.01, 100), min_size=1, max_size=4)
MEMORY = st.none() | st.floats(100, 1e5)
SIDE = st.dictionaries(st.sampled_from([16, 32, 64, 128]), st.tuples(TIMES, MEMORY), max_size=4)
MIRRORED = {"less": "more", "more": "less", "same": "same", "open": "open"}


def side(drawn):
    return [line(tuple(times), batch_size=size, memory=memory) for size, (times, memory) in drawn.items()]


def told(found):
    return {
        (frozenset((one.a.batch_size, one.b.batch_size)), name): (figure.word, figure.basis)
        for one in found.beside
        for name, figure in one.figures.items()
    }


@settings(max_examples=40, deadline=None)
@given(SIDE, SIDE)
def test_the_other_way_round_every_answer_is_mirrored(first, second):
    a, b = side(first), side(second)
    forth, back = told(compared(matched(a, b))), told(compared(matched(b, a)))
    assert back == {place: (MIRRORED[word], basis) for place, (word, basis) in forth.items()}


@settings(max_examples=40, deadline=None)
@given(SIDE)
def test_a_side_against_itself_never_differs(drawn):
    rows = side(drawn)
    found = compared(matched(rows, rows), threshold=0.01)
    assert not found.regressions
    assert len(found.matching.pairs) == len(rows)
    assert {word for word, _ in told(found).values()} <= {"same", "open"}


def test_of_equal_machines_at_most_one_comparison_in_twenty_says_that_they_differ():
    """600 comparisons of eight trials of three processes: 5 % are 30, give or take 5."""
    chance = np.random.default_rng(13)
    rows = [line((1.0, 1.0, 1.0), batch_size=16 + place) for place in range(8)]

    def measured():
        times = np.exp(chance.normal(0, 0.05, (8, 3)))
        return [
            changed(row, runs=(), epoch_times_s=t.tolist(), epoch_time_s=float(t.mean()))
            for row, t in zip(rows, times, strict=True)
        ]

    wrong = 0
    for _ in range(600):
        a, b = measured(), measured()
        found = compared(matched(a, b), of=("time",), threshold=0.001)
        wrong += any(one.figures["time"].word in ("less", "more") for one in found.beside)
    assert wrong / 600 < 0.065
