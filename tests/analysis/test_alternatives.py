"""Ways to do the same work side by side: which rows are compared, and in which words."""

from __future__ import annotations

import math
import re

import pytest
from gpubench.report.table import Table, build
from whole_rows import changed, row_with

from gpubench.schema.trial import make


def around(time: float, apart: float = 0.001) -> list[float]:
    """Five processes whose logarithms lie evenly about that of this time."""
    return [time * math.exp(apart * step) for step in (-2, -1, 0, 1, 2)]


def processes(name: str, times: list[float], **fields):
    """One row of a table: its processes, each a repeat."""
    values = {
        "model": "resnet34", "variant": "crop-resize", "strategy": "single", "batch_size": 64, "gpus": 1,
        "config_id": name, "status": "ok", "images_per_epoch": 10_240, "device": "cuda", "gpu_name": "H",
    }  # fmt: skip
    return [
        row_with(
            **{"trial_id": f"{name}-{number}"} | values | fields | {"epoch_time_s": time, "repeat": number}
        )
        for number, time in enumerate(times)
    ]


def said(rows, *axes: str) -> list[str]:
    """The sentences on ways to do the same work."""
    return [one for one in table(rows, *axes).answers if " against " in one]


def table(rows, *axes: str) -> Table:
    return build("one", [process for row in rows for process in row], axes=[(axis,) for axis in axes])


def test_each_is_set_against_the_one_named_first():
    rows = [
        processes("a", around(10), variant="pre-resized"),
        processes("b", around(5), variant="crop-resize"),
        processes("c", around(10.01), variant="cached"),
        processes("d", around(12), variant="synthetic"),
    ]
    assert said(rows, "variant") == [
        "Time per image with variant=crop-resize against variant=pre-resized: it falls 50 % (−50.1 to −49.9 %), "
        "faster.",
        "Time per image with variant=cached against variant=pre-resized: it grows 0.1 % (−0.1 to +0.3 %), the same "
        "inside 2 %.",
        "Time per image with variant=synthetic against variant=pre-resized: it grows 20 % (+19.7 to +20.3 %), slower.",
    ]


def test_at_each_place_of_the_other_axes():
    rows = [
        processes(f"{variant}{batch}", around(time), variant=variant, batch_size=batch)
        for variant, batch, time in [
            ("crop-resize", 32, 10),
            ("cached", 32, 8),
            ("crop-resize", 64, 7),
            ("cached", 64, 7),
        ]
    ]
    (one,) = said(rows, "batch_size", "variant")
    assert one == (
        "Time per image with variant=cached against variant=crop-resize: at batch_size=32 it falls 20 % "
        "(−20.2 to −19.8 %), faster; at batch_size=64 it changes by less than 0.1 % (−0.2 to +0.2 %), the same "
        "inside 2 %."
    )  # fmt: skip


def test_what_stands_beside_no_other_is_no_baseline():
    """`single` is named first and never runs on two GPUs: so dp and ddp are compared there."""
    rows = [
        processes(f"{strategy}{batch}", around(time), strategy=strategy, gpus=gpus, batch_size=batch)
        for strategy, gpus, times in [("single", 1, (9, 8)), ("dp", 2, (10, 8)), ("ddp", 2, (5, 6))]
        for batch, time in zip((32, 64), times, strict=True)
    ]
    assert said(rows, "strategy", "batch_size") == [
        "Time per image with strategy=ddp against strategy=dp: at batch_size=32 gpus=2 it falls 50 % (−50.1 to −49.9 "
        "%), faster; at batch_size=64 gpus=2 it falls 25 % (−25.2 to −24.8 %), faster."
    ]


def test_what_is_open_says_what_would_settle_it():
    rows = [processes("a", around(10, 0.1)), processes("b", around(9, 0.1), variant="cached")]
    (one,) = said(rows, "variant")
    assert ", open. Of so few processes only a difference of " in one


def test_what_is_said_of_open_ones_is_not_said_of_those_that_are_decided():
    """A fall of 78 % that is called faster did show: so few processes don't hide all that is below 200 %."""

    def told(*times: list[float]) -> str:
        rows = [
            processes(f"{variant}{place}", values, variant=variant, batch_size=16 << place)
            for place, both in enumerate(times)
            for variant, values in (("crop-resize", around(10)), ("cached", both))
        ]
        (one,) = said(rows, "batch_size", "variant")
        return one

    wide, wider, fast = around(9, 0.1), around(9, 0.2), around(2)
    least = r"only a difference of (\d+) % or more"
    one = re.search(rf"open\. The one that is open would have shown {least}; ", told(fast, wide))
    two = re.search(
        rf"open\. Of those that are open, the least sure would have shown {least}; ", told(fast, wide, wider)
    )
    of_all = re.search(rf"open\. Of so few processes {least} would show; ", told(wide, wider))
    assert one is not None
    assert two is not None
    assert of_all is not None
    assert int(one[1]) < int(two[1]) > int(of_all[1])
    assert "hardly any difference" not in told(fast)
    assert "Of those that are open, the least sure would have shown hardly any difference; " in told(
        fast, around(9, 2), around(9, 1)
    )


@pytest.mark.parametrize(
    ("field", "first", "second"),
    [
        ("strategy", "dp", "ddp"),
        ("precision", "fp32", "bf16"),
        ("memory_format", "channels_last", "contiguous"),
        ("execution", "eager", "compile"),
        ("optimizer", "sgd", "adam"),
    ],
)
def test_fields_whose_values_do_the_same_work(field: str, first: str, second: str):
    rows = [processes("a", around(10), **{field: first}), processes("b", around(5), **{field: second})]
    (one,) = said(rows, field)
    assert one.startswith(f"Time per image with {field}={second} against {field}={first}: it falls 50 %")


@pytest.mark.parametrize(
    "other",
    [{"model": "resnet18"}, {"batch_size": 128}, {"gpus": 2}, {"input_size": 64}, {"gpu_name": "another"}],
    ids=str,
)
def test_rows_that_differ_in_more_are_not_compared(other):
    rows = [processes("a", around(10)), processes("b", around(5), variant="cached", **other)]
    assert said(rows, "variant", *(other.keys() & {"model", "batch_size", "gpus", "input_size"})) == []


def test_networks_are_not_ways_to_do_the_same_work():
    rows = [processes("a", around(10)), processes("b", around(5), model="resnet18")]
    assert said(rows, "model") == []


def test_rows_of_one_process_are_in_no_claim_and_told_by_their_figures():
    rows = [
        processes(f"{variant}{batch}", [time], variant=variant, batch_size=batch, epochs_measured=3)
        for variant, batch, time in [
            ("crop-resize", 32, 10),
            ("cached", 32, 9.96),
            ("crop-resize", 64, 7),
            ("cached", 64, 14),
            ("crop-resize", 128, 7),
        ]
    ]
    found = table(rows, "batch_size", "variant")
    assert [one for one in found.answers if one.startswith("Time per image with")] == [
        "Time per image with variant=cached against variant=crop-resize: open, not decided: by these figures at "
        "batch_size=32 it falls 0.4 %; at batch_size=64 it grows 100 %; each row is of one process only."
    ]
    assert found.claims.count == 0


def test_by_the_figures_it_is_as_sure_as_its_rows():
    one, two = [10.0], [5.0, 5.1]
    mixed = [processes("a", two), processes("b", one, variant="cached")]
    (said_of,) = said(mixed, "variant")
    assert said_of.endswith(": by these figures it grows 98 %; some rows are of one process only.")
    logged = [
        processes(name, one, variant=name, source="published log") for name in ("crop-resize", "cached")
    ]
    (said_of,) = said(logged, "variant")
    assert said_of.endswith(
        ": by these figures it stays the same. How far chance moves these times is not known."
    )
    beside = [*mixed, processes("c", [6.0, 6.1], variant="synthetic")]
    claimed, by_figures = said(beside, "variant")
    assert claimed.startswith(
        "Time per image with variant=synthetic against variant=crop-resize: it grows 20 %"
    )
    assert by_figures.startswith("Time per image with variant=cached against variant=crop-resize: open, not")


def test_cpu_time_of_one_process_is_told_of_variants_that_know_it():
    def of(*spent: float | None, **fields) -> str:
        rows = [
            with_cpu(
                f"r{place}", [10.0 - place], [cpu], **{name: value[place] for name, value in fields.items()}
            )
            for place, cpu in enumerate(spent)
        ]
        (one,) = said(rows, *fields)
        return one

    variants = {"variant": ("crop-resize", "pre-resized")}
    assert of(100.0, 30.0, **variants) == (
        "Time per image with variant=pre-resized against variant=crop-resize: open, not decided: by these figures it "
        "falls 10 %. CPU time per image: it falls 70 %; each row is of one process only."
    )
    assert "CPU time" not in of(100.0, None, **variants)
    assert "CPU time" not in of(5.0, 9.0, optimizer=("sgd", "adam"))


def test_trials_that_jobs_are_compared_with_answer_what_was_asked_of_them():
    """Not what nobody asked: here optimizers differ as well, and are no axis."""
    alone = [
        processes(name, [time], trial_id=name, optimizer=optimizer, variant=variant)
        for name, time, optimizer, variant in [
            ("a", 10.0, "sgd", "crop-resize"),
            ("b", 5.0, "sgd", "cached"),
            ("c", 7.0, "adam", "cached"),
        ]
    ]
    jobs = [
        processes(f"g{name}", [12.0], group="g", job=job, group_id="g1", solo_id=name)
        for name, job in (("a", "1 of 3"), ("b", "2 of 3"), ("c", "3 of 3"))
    ]
    (one,) = said([*alone, *jobs], "variant")
    assert one.startswith("Time per image with variant=cached against variant=crop-resize: open, not decided")


def test_loaders_that_a_variant_settles_by_itself_may_differ():
    """A resident batch has none. Where they were asked for, they are another workload."""
    own = processes("a", around(10), variant="crop-resize", workers=6, asked={"workers": None})
    none = processes("b", around(5), variant="synthetic", workers=0, asked={"workers": None})
    assert len(said([own, none], "variant")) == 1
    asked = processes("b", around(5), variant="pre-resized", workers=2, asked={"workers": 2})
    assert said([own, asked], "variant") == []


def test_they_are_claims_of_their_table():
    """One family with all others: a chance that is small alone is not among many."""
    pair = [processes("a", around(10, 0.02)), processes("b", around(9.5, 0.02), variant="cached")]
    (alone,) = said(pair, "variant")
    assert alone.endswith(", faster.")
    more = [
        processes(f"{variant}{batch}", around(10, 0.02), variant=variant, batch_size=batch)
        for batch in (8, 16, 32)
        for variant in ("crop-resize", "cached")
    ]
    (among,) = said([*pair, *more], "batch_size", "variant")
    figures = alone[alone.index("it falls") : alone.index(", faster")]
    assert f"at batch_size=64 {figures}, open" in among


def test_a_learning_rate_that_comes_with_its_optimizer_may_differ():
    sgd = processes("a", around(10), optimizer="sgd", lr=make({"optimizer": "sgd"}).lr)
    adam = processes("b", around(11), optimizer="adam", lr=make({"optimizer": "adam"}).lr)
    (one,) = said([sgd, adam], "optimizer")
    assert one.startswith("Time per image with optimizer=adam against optimizer=sgd: it grows 10 %")
    other = processes("b", around(11), optimizer="adam", lr=0.77)
    assert said([sgd, other], "optimizer") == []


def test_every_place_is_named_and_none_has_another_baseline():
    """fp32 did not end well at 32: only 16 is compared, and says so; bf16 takes its place for no other."""
    times = {("fp32", 16): 10, ("bf16", 16): 6, ("fp16", 16): 5, ("bf16", 32): 6, ("fp16", 32): 5}
    rows = [
        processes(f"{precision}{batch}", around(time), precision=precision, batch_size=batch)
        for (precision, batch), time in times.items()
    ]
    found = said(rows, "batch_size", "precision")
    assert [one.partition(":")[0] for one in found] == [
        "Time per image with precision=bf16 against precision=fp32",
        "Time per image with precision=fp16 against precision=fp32",
    ]
    assert all("at batch_size=16 it falls" in one and "32 it" not in one for one in found)


def with_cpu(name: str, times: list[float], seconds: list[float], **fields):
    """Processes with their CPU time an epoch."""
    return [
        changed(one, cpu_s_per_epoch=spent)
        for one, spent in zip(processes(name, times, **fields), seconds, strict=True)
    ]


def test_variants_say_what_they_ask_of_the_cpu_beside_their_time():
    rows = [
        with_cpu("a", around(10), around(100), variant="crop-resize"),
        with_cpu("b", around(9), around(30), variant="pre-resized"),
        with_cpu("c", around(10.01), around(100.1), variant="cached"),
        with_cpu("d", around(12), around(100, 0.3), variant="synthetic"),
    ]
    first, second, third = said(rows, "variant")
    assert first == (
        "Time per image with variant=pre-resized against variant=crop-resize: it falls 10 % (−10.2 to −9.8 %), faster. "
        "CPU time per image: it falls 70 % (−70.1 to −69.9 %), less."
    )
    assert second.endswith("CPU time per image: it grows 0.1 % (−0.1 to +0.3 %), the same inside 2 %.")
    assert ", open. The one that is open would have shown only a difference of " in third
    assert table([one for row in rows for one in [row]], "variant").claims.count == 6


def test_cpu_time_is_told_of_variants_alone_and_where_each_process_has_it():
    strategies = [
        with_cpu(name, around(10), around(spent), strategy=name, gpus=2)
        for name, spent in (("dp", 5), ("ddp", 9))
    ]
    assert "CPU time" not in " ".join(said(strategies, "strategy"))
    lacking = with_cpu("b", around(9), [*around(30)[:4], None], variant="pre-resized")
    rows = [with_cpu("a", around(10), around(100), variant="crop-resize"), lacking]
    assert "CPU time" not in " ".join(said(rows, "variant"))


def test_top1_of_variants_needs_three_seeds_and_says_so():
    def rows(**more):
        return [
            [changed(one, **more) for one in processes(name, around(time), variant=name)]
            for name, time in (("crop-resize", 10), ("cached", 8))
        ]

    def seeds(count: int):
        return [
            [changed(one, repeat=min(number, count - 1), round=1 + number, top1_pct=50.0 + number)
             for number, one in enumerate(row)]
            for row in rows()
        ]  # fmt: skip

    text = (
        "Top-1 of the variants is not compared: that takes 3 seeds (--repeats 3), and some rows have 1 seed."
    )
    assert text in table(seeds(1), "variant").remarks
    assert "not compared" not in " ".join(table(rows(top1_pct=50.0), "variant").remarks)
    assert "not compared" not in " ".join(table(rows(), "variant").remarks)
