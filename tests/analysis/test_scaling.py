"""Speedup and efficiency: against what, and what must hold for any rows."""

import pytest
from gpubench.analysis.scaling import comparisons, devices, scale, sentence
from hypothesis import given
from hypothesis import strategies as st
from whole_rows import changed, table_row_with


def row(gpus, batch, time, strategy=None, **more):
    strategy = strategy or ("ddp" if gpus > 1 else "single")
    base = {"status": "ok", "model": "resnet34", "device": "cuda"}
    base |= {"gpus": gpus, "batch_size": batch, "epoch_time_s": time, "strategy": strategy}
    return table_row_with(**base | {"images_per_epoch": 10240 // batch * batch} | more)


def figures(rows, *names, **options):
    scaled, _ = scale(rows, **options)
    return [tuple(r.value(name) and pytest.approx(r.value(name)) for name in names) for r in scaled]


def test_strong_scaling():
    rows = [row(1, 64, 8.0), row(2, 64, 5.0), row(4, 64, 4.0)]
    assert figures(rows, "speedup", "strong_efficiency_pct", "weak_efficiency_pct") == [
        (1.0, 100.0, None), (1.6, 80.0, None), (2.0, 50.0, None),
    ]  # fmt: skip
    said = sentence(rows, comparisons(rows))
    assert said == (
        "Scaling: strong (same global batch, against single on 1 GPU), all other fields equal; "
        "each row is of one process only."
    )


def test_weak_scaling():
    rows = [row(1, 64, 8.0), row(4, 256, 2.5)]
    assert figures(rows, "speedup", "strong_efficiency_pct", "weak_efficiency_pct") == [
        (1.0, None, 100.0), (3.2, None, 80.0),
    ]  # fmt: skip
    assert "weak (same batch a GPU" in sentence(rows, comparisons(rows))


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ((0.04, 5.7, 5.3), "5.7 % of every other step of ddp on 2 GPUs, 0.0 % of single on 1 GPU"),
        ((9.0, 7.5, 4.1), "4.1 % of every other step of ddp on 4 GPUs, 9.0 % of single on 1 GPU"),
        ((-1.2, 0.0, 1.0), "1.0 % of every other step of ddp on 4 GPUs, −1.2 % of single on 1 GPU"),
        ((5.0, 7.0, 3.0), None),  # half of two points: one per cent of an efficiency
        ((None, 5.7, 5.3), None),
        ((5.7, None, None), None),
    ],
)
def test_what_a_breakdown_cost_one_side_more_is_said(costs, said):
    rows = [
        row(gpus, 64 * gpus, 8 / gpus, breakdown=True, breakdown_cost_pct=cost)
        for gpus, cost in zip((1, 2, 4), costs, strict=True)
    ]
    told = sentence(rows, comparisons(rows))
    end = "; each row is of one process only."
    assert told.endswith(f"equal; the cost of --breakdown is in it: {said}{end}" if said else f"equal{end}")


def test_a_row_with_both_shows_the_strong_speedup_and_both_efficiencies():
    rows = [row(1, 64, 8.0), row(1, 256, 6.0), row(4, 256, 2.0)]
    assert figures(rows, "speedup", "strong_efficiency_pct", "weak_efficiency_pct")[2] == (3.0, 75.0, 100.0)
    assert sentence(rows, comparisons(rows)) == (
        "Scaling: strong (same global batch, against single on 1 GPU) and weak (same batch a GPU, against single on "
        "1 GPU), all other fields equal; speedup is the strong one where a row has both; each row is of one process "
        "only."
    )


def test_what_moves_with_the_batch_moves_in_weak_scaling_only():
    rows = [row(1, 64, 8.0, lr=0.1), row(2, 64, 5.0, lr=0.2), row(2, 128, 4.0, lr=0.2)]
    found = figures(
        rows, "speedup", "strong_efficiency_pct", "weak_efficiency_pct", tied_to_batch=("batch_size", "lr")
    )
    assert found == [(1.0, None, 100.0), (None, None, None), (2.0, None, 100.0)]


def test_where_one_row_does_not_know_its_images_epoch_times_are_compared():
    rows = [row(1, 64, 8.0), row(2, 64, 5.0, images_per_epoch=None)]
    assert figures(rows, "speedup") == [(1.0,), (1.6,)]
    assert figures(rows[::-1], "speedup") == [(1.6,), (1.0,)]


def test_neither_is_said():
    rows = [row(1, 64, 8.0), row(4, 128, 2.0)]
    assert figures(rows, "speedup") == [(None,), (None,)]
    assert sentence(rows, comparisons(rows)).startswith("Neither strong nor weak")


def test_devices_that_do_not_vary_need_no_sentence():
    rows = [row(4, 64, 8.0), row(4, 128, 2.0)]
    assert figures(rows, "speedup") == [(None,), (None,)]
    assert sentence(rows, comparisons(rows)) is None


def test_single_is_the_baseline_of_every_strategy():
    rows = [row(1, 64, 4.0, "ddp"), row(1, 64, 3.0), row(2, 64, 2.0), row(2, 64, 6.0, "dp")]
    assert figures(rows, "speedup") == [(0.75,), (1.0,), (1.5,), (0.5,)]


def test_without_one_device_the_fewest_of_the_same_strategy():
    rows = [row(2, 64, 4.0), row(4, 64, 2.0), row(2, 64, 8.0, "dp"), row(4, 64, 8.0, "dp")]
    assert figures(rows, "speedup", "strong_efficiency_pct") == [(1, 100), (2, 100), (1, 100), (1, 50)]
    assert "ddp on 2 GPUs or dp on 2 GPUs" in sentence(rows, comparisons(rows))


def test_what_belongs_to_a_strategy_tells_its_rows_apart_and_not_their_baseline():
    more = [row(n, 64, 4.0 / n, "local", sync_every=k) for n in (2, 4) for k in (2, 8)]
    assert figures([row(1, 64, 3.0), *more], "speedup") == [(1,), (1.5,), (1.5,), (3,), (3,)]
    assert figures(more, "speedup") == [(1,), (1,), (2,), (2,)]
    one_each = [row(2, 64, 4.0, "local", sync_every=2), row(4, 64, 2.0, "local", sync_every=8)]
    assert comparisons(one_each) == [], "more devices and fewer exchanges: which of them it was is not known"


@pytest.mark.parametrize(
    "other",
    [{"precision": "bf16"}, {"variant": "cached"}, {"model": "lenet"}, {"status": "failed"}, {"group": "g"},
     {"gpu_name": "A40"}, {"epoch_time_s": None}],
    ids=str,
)  # fmt: skip
def test_only_rows_that_are_otherwise_equal_are_compared(other):
    rows = [row(1, 64, 8.0, gpu_name="H200"), changed(row(2, 64, 4.0, gpu_name="H200"), **other)]
    assert comparisons(rows) == []


def test_two_candidates_are_no_baseline():
    rows = [row(1, 64, 8.0, gpu_ids=(0,)), row(1, 64, 9.0, gpu_ids=(1,)), row(2, 64, 4.0)]
    assert comparisons(rows) == []


def test_fields_on_the_axis_of_the_devices_move_along():
    rows = [row(1, 64, 8.0, lr=0.1), row(2, 64, 4.0, lr=0.2)]
    assert comparisons(rows) == []
    assert len(comparisons(rows, tied={"lr"})) == 2
    rows = [row(1, 64, 8.0, lr=0.1), row(2, 128, 4.0, lr=0.2)]
    assert len(comparisons(rows, tied_to_batch={"lr"})) == 2


UNLIKE = [
    {"model": "mobilenet_v2"}, {"width": 0.5}, {"input_size": 112}, {"num_classes": 10}, {"variant": "cached"},
    {"data": "cifar10"}, {"train_images": 512}, {"precision": "bf16"}, {"execution": "graph"},
    {"memory_format": "contiguous"}, {"cudnn_benchmark": True}, {"optimizer": "adam"}, {"accumulate": 2},
    {"gpu_mem_cap_mib": 12288}, {"breakdown": True}, {"until_top1": 60.0}, {"prefetch": 4},
]  # fmt: skip


@pytest.mark.parametrize("unlike", UNLIKE, ids=str)
def test_rows_of_another_workload_are_never_compared_whatever_axis_it_is_on(unlike):
    """`--zip model,batch_size=resnet50/256,mobilenet_v2/512 --gpus 1,2`."""
    base = {"model": "resnet50", "input_size": 224, "num_classes": 100, "train_images": 10240}
    rows = [row(1, 256, 8.0, **base), row(2, 512, 5.0, **base | unlike)]
    tied = set(unlike)
    assert comparisons(rows, tied, tied) == []
    both = [*rows, row(2, 512, 4.0, **base)]
    assert [(one.row.epoch_time_s, one.kind) for one in comparisons(both, tied, tied)] == [
        (8.0, "weak"),
        (4.0, "weak"),
    ]


def test_cpus_that_merely_follow_the_devices_are_another_allowance():
    rows = [row(1, 64, 8.0, cpus=8, workers=8), row(2, 64, 4.0, cpus=16, workers=8)]
    assert comparisons(rows) == []
    made = comparisons(rows, tied={"cpus"})
    assert len(made) == 2, "asked for together"
    assert "all other fields equal but cpus, which moved along" in sentence(rows, made)


def test_loaders_move_with_the_devices_where_their_number_was_left_to_the_machine():
    auto, four = {"asked": {"workers": None}}, {"asked": {"workers": 4}}
    rows = [row(1, 64, 8.0, workers=64, **auto), row(3, 64, 4.0, workers=63, **auto)]
    assert len(comparisons(rows)) == 2
    assert "equal but workers, which moved along" in sentence(rows, comparisons(rows))
    assert comparisons([row(1, 64, 8.0, workers=4, **four), rows[1]]) == []
    assert comparisons([changed(r, asked=None) for r in rows]) == [], "nobody knows"


def test_on_a_cpu_ranks_are_the_devices():
    rows = [row(0, 64, 8.0, "single", device="cpu", ranks=1), row(0, 64, 4.0, "ddp", device="cpu", ranks=2)]
    assert [devices(r) for r in rows] == [1, 2]
    assert figures(rows, "strong_efficiency_pct") == [(100.0,), (100.0,)]
    assert "single on 1 rank" in sentence(rows, comparisons(rows))


def test_remainders_do_not_bias():
    """100 images: batches of 30 leave ten out, batches of 10 none."""
    rows = [row(1, 10, 10.0, images_per_epoch=100), row(3, 30, 3.0, images_per_epoch=90)]
    assert figures(rows, "speedup", "weak_efficiency_pct")[1] == (pytest.approx(3.0), pytest.approx(100.0))


times = st.floats(0.01, 1e4)


@given(st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, 8]), st.sampled_from([16, 48, 64, 128]), times),
                unique_by=lambda t: t[:2], min_size=2, max_size=12))  # fmt: skip
def test_what_holds_for_any_rows(found):
    rows = [row(gpus, batch, time) for gpus, batch, time in found]
    scaled, made = scale(rows)
    for one in made:
        more = devices(one.row) / devices(one.baseline)
        assert more >= 1
        assert one.efficiency_pct * more == pytest.approx(100 * one.speedup)
        if one.row is one.baseline:
            assert (one.speedup, one.efficiency_pct) == (1.0, 100.0)
        else:
            assert devices(one.row) > devices(one.baseline)
        if one.kind == "strong":
            assert one.row.batch_size == one.baseline.batch_size
            assert one.speedup == pytest.approx(one.baseline.epoch_time_s / one.row.epoch_time_s)
        else:
            assert one.row.batch_size * devices(one.baseline) == one.baseline.batch_size * devices(one.row)
    compared = [any(one.row is r for one in made) for r in rows]
    assert [r.speedup is not None for r in scaled] == compared
