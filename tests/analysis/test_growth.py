"""Growth columns against the published log, and what must hold for any rows."""

import csv
import itertools

import committed
import pytest
from gpubench.analysis.growth import growth, moves_with, ordered_axis, series
from gpubench.analysis.knee import knees
from gpubench.analysis.repeats import iqr, merge_repeats
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import changed, everything, row_with

# The two columns of this table were copied from the table before it; these are worked out by hand.
MISPRINTED = {"mobilenet_v2-gpus": ([76.8, 82.7, 1.4], [-10.5, -4.9, -26.6])}


def row(**values):
    base = {"status": "ok", "model": "mobilenet_v2", "experiment": "x"}
    return row_with(**base | {"config_id": f"c{sorted(values.items())}", "trial_id": "t"} | values)


def batches(**figures):
    """Rows of batch size 16, 32, 64 … with these columns; None for a row that ran out of memory."""
    name, values = next(iter(figures.items()))
    return [
        row(batch_size=16 << n, **({name: v} if v is not None else {"status": "oom"}))
        for n, v in enumerate(values)
    ]


def column(rows, name):
    return [r.value(name) for r in rows]


def published(table):
    with (committed.folder("titan-xp-2021") / "logs.csv").open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if line["table"] == table]
    rows = [
        row(
            batch_size=int(line["batch_size"]),
            gpus=int(line["gpus"]),
            status=line["status"],
            gpu_mem_mib=float(line["gpu_mem_mib"]) if line["gpu_mem_mib"] else None,
            epoch_time_s=float(line["epoch_time_s"]) if line["epoch_time_s"] else None,
        )
        for line in lines
    ]
    return lines, growth(rows, "batch_size", tied=("gpus",))


@pytest.mark.parametrize("table", ["resnet34-4gpu", "mobilenet_v2-4gpu"])
def test_growth_is_what_the_log_printed(table):
    lines, rows = published(table)
    for line, grown in zip(lines, rows, strict=True):
        memory, time = line["printed_mem_growth_pct"], line["printed_epoch_growth_pct"]
        assert (
            grown.gpu_mem_growth_pct is None
            if memory == ""
            else round(grown.gpu_mem_growth_pct) == int(memory)
        )
        assert (
            grown.epoch_time_growth_pct is None
            if time == ""
            else round(grown.epoch_time_growth_pct) == int(time)
        )


def test_resnet34_growth_figure_by_figure():
    _, rows = published("resnet34-4gpu")
    assert [round(v) for v in column(rows, "gpu_mem_growth_pct")[1:]] == [22, 33, 58, 71, 79]
    assert [round(v) for v in column(rows, "epoch_time_growth_pct")[1:]] == [-43, -26, -7, 0, 12]


@pytest.mark.parametrize("table", MISPRINTED)
def test_misprinted_growth_is_as_it_should_have_been(table):
    _, rows = published(table)
    memory, time = MISPRINTED[table]
    assert column(rows, "gpu_mem_growth_pct") == [None, *(pytest.approx(v, abs=0.05) for v in memory)]
    assert column(rows, "epoch_time_growth_pct") == [None, *(pytest.approx(v, abs=0.05) for v in time)]


def test_growth_never_bridges_a_row_without_figures():
    rows = growth(batches(gpu_mem_mib=[100, None, 400, 800]), "batch_size")
    assert column(rows, "gpu_mem_growth_pct") == [None, None, None, pytest.approx(100)]


def test_a_figure_of_a_trial_that_did_not_end_ok_counts_for_nothing():
    full = {"status": "oom", "gpu_mem_mib": 900, "epoch_time_s": 9.0}
    for table in ([{}, full], [full, {}]):
        rows = [
            row(batch_size=16 << n, **({"gpu_mem_mib": 100, "epoch_time_s": 1.0} | one))
            for n, one in enumerate(table)
        ]
        grown = growth(rows, "batch_size")
        assert column(grown, "gpu_mem_growth_pct") == column(grown, "epoch_time_growth_pct") == [None, None]


@pytest.mark.parametrize("images", [{}, {"images_per_epoch": 1000}])
def test_where_one_row_does_not_know_its_images_epoch_times_are_compared(images):
    rows = [row(batch_size=16, epoch_time_s=10.0, **images), row(batch_size=32, epoch_time_s=5.0)]
    assert growth(rows, "batch_size")[1].epoch_time_growth_pct == pytest.approx(-50)
    rows = [row(batch_size=16, epoch_time_s=10.0), row(batch_size=32, epoch_time_s=5.0, **images)]
    assert growth(rows, "batch_size")[1].epoch_time_growth_pct == pytest.approx(-50)


def test_two_rows_at_one_place_have_no_growth_and_none_has_any_against_them():
    rows = [
        row(batch_size=b, epoch_time_s=t) for b, t in [(16, 9.0), (32, 5.0), (32, 6.0), (64, 4.0), (128, 2.0)]
    ]
    grown = growth(rows, "batch_size")
    assert column(grown, "batch_size") == [16, 32, 32, 64, 128]
    assert column(grown, "epoch_time_growth_pct") == [None, None, None, None, pytest.approx(-50)]


def test_a_row_whose_place_is_not_known_stands_last():
    rows = [
        row(gpus=g, batch_size=64, strategy="ddp", epoch_time_s=t)
        for g, t in [(None, 9.0), (2, 5.0), (1, 8.0)]
    ]
    grown = growth(rows, "gpus")
    assert column(grown, "gpus") == [1, 2, None]
    assert column(grown, "epoch_time_growth_pct") == [None, pytest.approx(-37.5), None]


def test_time_growth_is_per_image_where_images_are_known():
    # 1,000 images in batches of 300 leave 100 out: 900 in 9 s are exactly as fast as 1,000 in 10 s.
    rows = [
        row(batch_size=100, epoch_time_s=10.0, images_per_epoch=1000),
        row(batch_size=300, epoch_time_s=9.0, images_per_epoch=900),
    ]
    assert growth(rows, "batch_size")[1].epoch_time_growth_pct == pytest.approx(0)


def test_other_fields_make_series_of_their_own():
    rows = [
        row(batch_size=b, variant=v, gpu_mem_mib=m)
        for b, v, m in [(32, "a", 200), (16, "b", 1000), (16, "a", 100), (32, "b", 1100)]
    ]
    grown = growth(rows, "batch_size")
    assert [(r.variant, r.batch_size) for r in grown] == [("a", 16), ("a", 32), ("b", 16), ("b", 32)]
    assert column(grown, "gpu_mem_growth_pct") == [None, pytest.approx(100), None, pytest.approx(10)]


def test_memory_of_different_sources_and_machines_is_not_compared():
    rows = [row(batch_size=16, gpu_mem_mib=100, gpu_mem_source="nvml-process", epoch_time_s=2.0)]
    other = row(batch_size=32, gpu_mem_mib=150, gpu_mem_source="torch-reserved", epoch_time_s=1.0)
    grown = growth([*rows, other], "batch_size")[1]
    assert grown.gpu_mem_growth_pct is None
    assert grown.epoch_time_growth_pct == pytest.approx(-50)
    same = growth([rows[0], changed(other, gpu_mem_source="nvml-process")], "batch_size")[1]
    assert same.gpu_mem_growth_pct == pytest.approx(50)
    cards = [
        row(batch_size=16 << n, gpu_mem_mib=100, gpu_name=name) for n, name in enumerate(["A40", "H200"])
    ]
    assert growth(cards, "batch_size")[1].gpu_mem_growth_pct is None


def test_jobs_of_a_group_have_no_growth():
    rows = [row(batch_size=b, group="g", job=str(b), epoch_time_s=1.0) for b in (16, 32)]
    assert column(growth(rows, "batch_size"), "epoch_time_growth_pct") == [None, None]


def test_the_axis_is_the_batch_size_then_the_gpus_then_the_first_number():
    grid = [row(batch_size=b, gpus=g, workers=w) for b in (1, 2) for g in (1, 2) for w in (0, 4)]
    assert ordered_axis((), grid) == "batch_size"
    assert ordered_axis((), [r for r in grid if r.batch_size == 1]) == "gpus"
    assert (
        ordered_axis((), [row(prefetch=p, precision=n) for p, n in [(2, "fp32"), (4, "bf16")]]) == "prefetch"
    )
    assert ordered_axis((), [row(precision=p) for p in ("fp32", "bf16")]) is None
    assert ordered_axis([["gpus"]], grid) == "gpus"
    sizes = [row(gpus=g, input_size=s) for g in (1, 2) for s in (96, 224)]
    assert ordered_axis((), sizes) == "gpus", "though the input size is named before"


def test_what_was_asked_for_is_an_axis_though_it_follows_another_field():
    rows = [row(optimizer=o, lr=lr) for o, lr in [("sgd", 0.1), ("adam", 0.001)]]
    assert ordered_axis([["optimizer", "lr"]], rows) == "lr"
    assert ordered_axis((), rows) is None


def test_a_strategy_that_the_devices_do_not_determine_does_not_move_with_them():
    rows = [row(gpus=g, strategy=s) for g, s in [(1, "single"), (2, "ddp"), (2, "dp")]]
    assert moves_with("gpus", [["gpus"]], rows) == ()
    assert moves_with("gpus", [["gpus"]], rows[:2]) == ("strategy",)


def test_weak_scaling_moves_the_batch_with_the_gpus():
    rows = [
        row(gpus=g, batch_size=64 * g, strategy=s, gpu_mem_mib=m)
        for g, s, m in [(1, "single", 100), (2, "ddp", 110), (4, "ddp", 110)]
    ]
    assert ordered_axis([["gpus"]], rows) == "gpus"
    assert moves_with("gpus", [["gpus"]], rows) == ("batch_size", "strategy")
    grown = growth(rows, "gpus", ("batch_size", "strategy"))
    assert column(grown, "gpu_mem_growth_pct") == [None, pytest.approx(10), pytest.approx(0)]


def test_a_field_that_was_asked_for_never_moves_with_the_axis():
    rows = [row(batch_size=b, variant=v) for b, v in [(16, "a"), (32, "b")]]
    assert moves_with("batch_size", [["batch_size"], ["variant"]], rows) == ()
    assert moves_with("batch_size", (), rows) == ()


GROWTH = ("gpu_mem_growth_pct", "epoch_time_growth_pct")


@pytest.mark.parametrize(
    "unlike",
    [
        {"model": "resnet50"}, {"width": 0.5}, {"input_size": 112}, {"num_classes": 10}, {"variant": "cached"},
        {"data": "cifar10"}, {"train_images": 512}, {"precision": "bf16"}, {"execution": "graph"},
        {"memory_format": "contiguous"}, {"cudnn_benchmark": True}, {"optimizer": "adam"}, {"accumulate": 2},
        {"device": "cpu"}, {"gpu_mem_cap_mib": 12288}, {"breakdown": True}, {"until_top1": 60.0}, {"prefetch": 4},
        {"workers": 8}, {"cpus": 4}, {"strategy": "dp"}, {"gpu_ids": (1,)},
    ],
    ids=str,
)  # fmt: skip
def test_what_makes_another_workload_never_moves_with_the_batch_size(unlike):
    base = {"workers": 4, "cpus": 2, "device": "cuda", "gpus": 1, "gpu_ids": (0,), "strategy": "ddp"}
    base |= {"input_size": 224, "num_classes": 100, "train_images": 10240}
    rows = [
        row(batch_size=16, epoch_time_s=2.0, gpu_mem_mib=10, **base),
        row(batch_size=32, epoch_time_s=1.0, gpu_mem_mib=20, **base | unlike),
    ]
    axes = [["batch_size", *unlike]]
    assert moves_with("batch_size", axes, rows) == ()
    assert moves_with("batch_size", [["batch_size"]], rows) == (), "nor where the batch size determines it"
    grown = growth(rows, "batch_size", ["batch_size", *unlike])
    assert [r.value(name) for r in grown for name in GROWTH] == [None] * 4
    assert knees(rows, tuple(unlike)) == []
    alike = growth([rows[0], changed(rows[0], batch_size=32, config_id="other")], "batch_size")
    assert None not in [alike[1].value(name) for name in GROWTH]


def test_the_learning_rate_and_the_length_of_training_may_move_with_the_batch_size():
    rows = [
        row(batch_size=b, lr=b / 1000, epochs=e, epoch_time_s=t) for b, e, t in [(16, 3, 2.0), (32, 5, 1.0)]
    ]
    tied = moves_with("batch_size", [["batch_size", "lr", "epochs"]], rows)
    assert tied == ("epochs", "lr")
    assert growth(rows, "batch_size", tied)[1].epoch_time_growth_pct == pytest.approx(-50)
    assert growth(rows, "batch_size")[1].epoch_time_growth_pct is None


@pytest.mark.parametrize(
    ("unlike", "compared"),
    [
        ({"gpus": 2, "strategy": "ddp"}, True),  # 32 a GPU in both
        ({"gpus": 2, "strategy": "ddp", "workers": 8, "cpus": 16}, True),
        ({"gpus": 4, "strategy": "ddp"}, False),  # 32 a GPU, then 16
        ({"gpus": 1, "strategy": "ddp"}, False),
        ({"gpus": 1, "workers": 8}, False),
        ({"gpus": 2, "strategy": "ddp", "precision": "bf16"}, False),
    ],
    ids=str,
)
def test_devices_move_with_the_batch_size_where_each_keeps_its_batch(unlike, compared):
    base = {"gpus": 1, "strategy": "single", "workers": 4, "cpus": 8}
    rows = [
        row(batch_size=32, epoch_time_s=2.0, **base),
        row(batch_size=64, epoch_time_s=1.0, **base | unlike),
    ]
    tied = moves_with("batch_size", [["batch_size", *unlike]], rows)
    assert (growth(rows, "batch_size", tied)[-1].epoch_time_growth_pct is not None) == compared


@pytest.mark.parametrize(
    ("batch", "strategies", "compared"),
    [
        (64, ("single", "ddp"), True),
        (128, ("single", "ddp"), True),
        (96, ("single", "ddp"), False),
        (64, ("dp", "ddp"), False),
        (64, ("ddp", "ddp"), True),
    ],
    ids=str,
)
def test_along_the_devices_only_the_batch_or_the_batch_a_device_stays(batch, strategies, compared):
    rows = [
        row(gpus=g, batch_size=b, strategy=s, epoch_time_s=1.0)
        for g, b, s in zip((1, 2), (64, batch), strategies, strict=True)
    ]
    tied = moves_with("gpus", [["gpus", "batch_size", "strategy"]], rows)
    assert (growth(rows, "gpus", tied)[-1].epoch_time_growth_pct is not None) == compared


def test_cpus_are_told_apart_though_the_devices_determine_them():
    """`cpus` and `workers` were left to the machine, which once gave 8 CPUs and once 16."""
    auto = {"asked": {"cpus": None, "workers": None}}
    rows = [
        row(gpus=g, cpus=c, workers=c, epoch_time_s=1.0, batch_size=64, strategy="ddp", **auto)
        for g, c in [(2, 8), (4, 16)]
    ]
    assert moves_with("gpus", [["gpus"]], rows) == ()
    assert growth(rows, "gpus")[1].epoch_time_growth_pct is None
    zipped = moves_with("gpus", [["gpus", "cpus"]], rows)
    assert zipped == ("cpus",)
    assert growth(rows, "gpus", zipped)[1].epoch_time_growth_pct == pytest.approx(0)


def test_a_planned_row_stands_in_the_series_that_it_will_be_of():
    """Two variants, of which one takes no loaders; a planned row does not know yet how many it gets."""
    rows = [
        row(batch_size=b, variant=v, workers=w, status="ok" if w is not None else "missing")
        for v, b, w in [("cached", 16, 8), ("cached", 32, None), ("synthetic", 16, 0), ("cached", 64, 8)]
    ]
    grown = growth(rows, "batch_size")
    assert [(r.variant, r.batch_size) for r in grown] == [
        ("cached", 16), ("cached", 32), ("cached", 64), ("synthetic", 16),
    ]  # fmt: skip


def test_series_are_named_by_what_tells_them_apart_and_not_by_what_follows_it():
    rows = [
        row(batch_size=b, variant=v, workers=w)
        for v, w in [("cached", 8), ("synthetic", 0)]
        for b in (16, 32)
    ]
    assert list(series(rows, "batch_size")) == [
        (("variant", "cached"),),
        (("variant", "synthetic"),),
    ]
    machines = [row(batch_size=16, gpu_name=name) for name in ("A40", "H200")]
    assert list(series(machines, "batch_size")) == [(("machine", "A40"),), (("machine", "H200"),)]
    assert list(series(machines[:1], "batch_size")) == [()]
    split = [row(batch_size=16, cpus=c) for c in (1, 2)]
    assert list(series(split, "batch_size")) == [(("cpus", 1),), (("cpus", 2),)]
    chosen = [
        row(batch_size=16, variant=v, workers=w) for v, w in [("cached", 4), ("cached", 8), ("full", 8)]
    ]
    assert list(series(chosen, "batch_size")) == [
        (("variant", "cached"), ("workers", 4)),
        (("variant", "cached"), ("workers", 8)),
        (("variant", "full"), ("workers", 8)),
    ]


def test_repeats_become_one_row_with_their_geometric_mean_spread_and_count():
    rows = [
        row(config_id="c", repeat=n, epoch_time_s=t, images_per_epoch=100)
        for n, t in enumerate([1.0, 5.0, 2.0])
    ]
    bad = row(config_id="c", repeat=3, status="failed", reason="killed")
    (merged,) = merge_repeats([bad, *rows])
    assert merged.epoch_time_s == pytest.approx(10 ** (1 / 3))
    assert (merged.repeats, merged.endings) == (3, "3 ok, 1 failed")
    assert merged.images_per_s * merged.epoch_time_s == pytest.approx(merged.images_per_epoch)
    assert merged.epoch_time_iqr_s == pytest.approx(2.0)
    assert merged.reason == "killed"


def test_the_same_configuration_on_two_machines_is_two_rows():
    rows = [row(config_id="c", epoch_time_s=t, gpu_name=name) for t, name in [(1.0, "A40"), (9.0, "H200")]]
    planned = row(config_id="c", status="missing")
    merged = merge_repeats([planned, *rows])
    assert [(r.gpu_name, r.epoch_time_s, r.endings) for r in merged] == [
        ("A40", 1.0, "1 ok, 1 missing"),
        ("H200", 9.0, "ok"),
    ]


def test_the_spread_of_one_number_is_unknown():
    assert iqr([3.0]) is None


figures = st.lists(st.floats(1, 1e5) | st.none(), min_size=1, max_size=8)


@given(figures)
def test_growth_multiplied_up_gives_the_last_figure(found):
    rows = growth(batches(gpu_mem_mib=found), "batch_size")
    assert column(rows, "gpu_mem_mib") == found
    for before, after in itertools.pairwise(rows):
        known = before.gpu_mem_mib is not None and after.gpu_mem_mib is not None
        assert (after.gpu_mem_growth_pct is not None) == known
        if known:
            back = before.gpu_mem_mib * (1 + after.gpu_mem_growth_pct / 100)
            assert back == pytest.approx(after.gpu_mem_mib)


@given(st.permutations(range(5)))
def test_growth_does_not_depend_on_the_order_of_rows(order):
    rows = batches(gpu_mem_mib=[100, 120, None, 300, 310])
    shuffled, ordered = growth([rows[n] for n in order], "batch_size"), growth(rows, "batch_size")
    assert list(map(everything, shuffled)) == list(map(everything, ordered))
