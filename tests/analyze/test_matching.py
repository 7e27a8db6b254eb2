"""Which rows of two sides are of one trial. A's rows are labelled from 10, B's behind them."""

from __future__ import annotations

from typing import Any

import pytest
from compared_rows import ASKED, match, row

from gpubench.schema.row import KnownImages

OTHERS = KnownImages(files="full", fingerprint="g", train_images=900, val_images=100)
NONE = KnownImages(files="none", fingerprint="none", train_images=1000)


def test_rows_match_by_what_their_trials_ask_for_whatever_machine_they_ran_on() -> None:
    a = row(host="x", workers=4, cpus=4)
    b = row(machine="A100", host="y", workers=64, cpus=64, gpu_ids=(3,))
    matching = match([a, row(batch_size=32)], [row(batch_size=64), b])
    assert matching.pairs == ((10, 13),)
    assert (matching.only_a, matching.only_b, matching.several, matching.apart) == ((11,), (12,), (), ())
    asked = row(workers=4, asked={**ASKED, "workers": 4})
    assert match([asked], [row(workers=4)]).apart == ("workers",)


def test_other_images_under_one_name_are_another_trial_and_so_is_another_variant_of_one_name() -> None:
    for other in ({"images": OTHERS}, {"variant_definition": {"files": "full", "cpu": ["Flip"]}}):
        matching = match([row(), row(batch_size=32)], [row(**other), row(batch_size=32)])
        assert matching.pairs == ((11, 13),)


def test_the_images_that_a_variant_names_are_no_part_of_what_it_does() -> None:
    assert match([row()], [row(variant_definition={"files": "full", "data": "x"})]).pairs == ((10, 11),)


def test_where_nothing_matches_what_differs_in_all_rows_is_set_aside_as_a_guess() -> None:
    b = [row(batch_size=32, precision="bf16"), row(batch_size=64, precision="bf16")]
    matching = match([row(), row(batch_size=32)], b)
    assert (matching.pairs, matching.apart) == (((11, 12),), ("precision",))


def test_no_guess_takes_one_network_for_another_but_a_users_own_may_be_two_versions() -> None:
    matching = match([row(model="lenet")], [row(model="resnet50")])
    assert (matching.pairs, matching.apart, matching.only_a, matching.only_b) == (
        (),
        ("model",),
        (10,),
        (11,),
    )
    matching = match([row(model="mine.py:old")], [row(model="mine.py:new")])
    assert (matching.pairs, matching.apart) == (((10, 11),), ("model",))
    assert not match([row(model="mine.py:old")], [row(model="lenet")]).pairs


def test_rates_match_whatever_their_window_and_whole_epochs_by_their_number() -> None:
    assert match([row(window=3.0)], [row(steps=50)]).pairs == ((10, 11),)
    three, five = (row(kind="whole epochs", epochs=number) for number in (3, 5))
    assert match([three], [five]).apart == ("epochs",)
    both = match([row(window=3.0), three], [three, row(steps=50)])
    assert both.pairs == ((10, 13), (11, 12))
    assert not match([row(epochs=None)], [three]).pairs


def test_of_several_rows_those_are_compared_that_are_alone_on_their_machine_or_by_what_it_gave() -> None:
    two = [row(machine="G"), row(machine="H")]
    matching = match(two, [row(machine="H")])
    assert (matching.pairs, matching.only_a, matching.several) == (((11, 12),), (10,), ())
    matching = match(two, [row(machine="I")])
    assert (matching.pairs, matching.several) == ((), (((10, 11), (12,)),))
    matching = match([row(cpus=4), row(cpus=8)], [row(cpus=8), row(cpus=16)])
    assert (matching.pairs, matching.several) == (((11, 12),), (((10,), (13,)),))


def group(name: str, unit: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [
        row(batch_size=size, group=name, job=f"{place} of {len(sizes)}", unit=unit)
        for place, size in enumerate(sizes, 1)
    ]


def test_a_job_of_a_group_matches_the_same_job_beside_the_same_neighbours() -> None:
    assert match(group("x", 1, (16, 32)), group("y", 5, (16, 32))).pairs == ((10, 12), (11, 13))
    assert match(group("x", 1, (16, 32)), group("x", 1, (16, 64))).pairs == ()
    assert match(group("x", 1, (16, 16)), group("x", 1, (16, 16))).pairs == ((10, 12), (11, 13)), (
        "copies in order"
    )
    assert match(group("x", 1, (16, 16)), group("x", 1, (16, 16, 16))).pairs == ()
    assert match(group("x", 1, (16,)), [row()]).pairs == ()


@pytest.mark.parametrize(("other", "apart"), [({"lr": 0.001}, ()), ({"lr": 0.3}, ("lr",))])
def test_what_follows_from_the_field_that_is_compared_may_differ(
    other: dict[str, Any], apart: tuple[str, ...]
) -> None:
    a, b = row(optimizer="sgd", lr=0.05), row(optimizer="adam", **other)
    assert (match([a], [b], ["optimizer"]).pairs, match([a], [b], ["optimizer"]).apart) == (
        ((10, 11),),
        apart,
    )
    assert match([a], [b]).apart == (("optimizer", "lr"))
    old = row(optimizer=None, lr=0.05)
    assert match([old], [b], ["optimizer"]).apart == apart


def test_a_strategy_follows_from_how_many_devices_there_are_unless_it_was_asked_for() -> None:
    two = {"gpus": 2, "strategy": "ddp"}
    assert match([row()], [row(**two)], ["gpus"]).apart == ()
    assert match([row()], [row(**two | {"strategy": "dp"})], ["gpus"]).apart == ("strategy",)
    assert match([row()], [row(**two)], ["precision"]).apart == ("gpus", "strategy")


def test_two_variants_match_whatever_they_do_and_one_that_reads_no_image_with_those_that_do() -> None:
    resident = {
        "variant": "synthetic",
        "variant_definition": {"files": "none"},
        "images": NONE,
        "image_files": "none",
    }
    reads, none = row(workers=8), row(**resident, workers=0)
    assert (match([reads], [none], ["variant"]).pairs, match([reads], [none], ["variant"]).apart) == (
        ((10, 11),),
        (),
    )
    assert match([reads], [none]).apart == ("variant", "data", "variant_definition")
    assert match([reads], [row(**resident, data="birds")], ["variant"]).apart == ("data",)
    assert match([none], [row(**resident, data="birds")]).apart == (), "neither reads any"
    left = {**ASKED, "device": None}
    matching = match([row(workers=8, asked=left)], [row(**resident, device="cpu", asked=left)], ["variant"])
    assert matching.apart == ("device",)  # a CPU never stands in for a GPU


def test_what_images_settle_follows_from_them_unless_it_was_asked_for() -> None:
    settled = {"input_size": 28, "num_classes": 10, "train_images": 900}
    left = {**ASKED, **dict.fromkeys(settled)}
    a = row(input_size=224, num_classes=2, train_images=1000, asked=left)
    b = row(data="mnist", images=OTHERS, asked=left, **settled)
    assert (match([a], [b], ["data"]).pairs, match([a], [b], ["data"]).apart) == (((10, 11),), ())
    assert match([a], [{**b, "asked": {**left, "input_size": 28}}], ["data"]).apart == ("input_size",)


def test_a_side_without_rows_matches_nothing() -> None:
    assert match([row()], []).only_a == (10,)
    assert match([], [row()]).only_b == (10,)
