"""What pictures show, from rows by hand: every figure, gap, interval and mark, before anybody draws it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from made_up_folders import table_of as table
from whole_records import FULL
from whole_rows import row_with

from gpubench.plot import limits, trial
from gpubench.plot.description import Cell, Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries, Shade
from gpubench.plot.pictures import PICTURES, described
from gpubench.plot.subject import Subject
from gpubench.results.samples_end import without_end
from gpubench.results.samples_file import read
from gpubench.results.store import Results
from gpubench.schema.record import EpochWindow, Span
from gpubench.schema.row import Row, replace
from gpubench.schema.samples import SAMPLE_HEADER

FIXED = {
    "model": "mobilenet_v2", "params_m": 3.5, "input_size": 224, "variant": "crop-resize", "gpus": 1, "device": "cuda",
    "strategy": "single", "precision": "bf16", "gpu_name": "NVIDIA H200", "gpu_count": 4, "cpu_name": "Xeon",
    "cpu_count": 64, "torch": "2.11.0", "experiment": "sizes", "images_per_epoch": 1000, "epochs_measured": 1,
}  # fmt: skip
NUMBERS = itertools.count()


def row(status: str = "ok", **values: Any) -> Row:
    number = next(NUMBERS)
    told = FIXED | {"trial_id": f"t{number}", "config_id": f"c{number}", "status": status} | values
    if told.get("epoch_time_s"):
        told.setdefault("images_per_s", told["images_per_epoch"] / told["epoch_time_s"])
    return row_with(**told)


def of(rows: Sequence[Row], name: str, **options: Any) -> Picture:
    """The only picture of this kind."""
    (found,) = PICTURES[name].pictures(Subject(table=table(rows, **options)))
    return found


SIZES = (
    {"batch_size": 16, "epoch_time_s": 8.0, "gpu_mem_mib": 1000},
    {"batch_size": 32, "epoch_time_s": 5.0, "gpu_mem_mib": 1500, "doubts": "stranger+spread"},
    {"batch_size": 64, "epoch_time_s": 4.0, "gpu_mem_mib": 2500},
)


def sizes() -> list[Row]:
    return [row(**values) for values in SIZES] + [row("oom", batch_size=128), row("skipped", batch_size=256)]


def test_growth_is_told_to_the_last_field() -> None:
    found = of(sizes(), "growth")
    x = PlottedAxis(
        title="global batch size (images)",
        steps="log2",
        from_zero=False,
        ticks=(16.0, 32.0, 64.0, 128.0, 256.0),
    )

    def points(measure: str, unit: str, digits: int, *figures: float) -> tuple[PlottedPoint, ...]:
        ended = [
            PlottedPoint(
                name=f"batch_size={v['batch_size']}",
                x=float(str(v["batch_size"])),
                y=y,
                doubtful="doubts" in v,
                written=f"{y:,.{digits}f}",
                told=(
                    f"batch size {v['batch_size']}",
                    f"{measure} {y:,.{digits}f} {unit}",
                    *(["doubts: spread, stranger"] if "doubts" in v else []),
                ),
            )
            for v, y in zip(SIZES, figures, strict=True)
        ]
        return (
            *ended,
            PlottedPoint(
                name="batch_size=128",
                x=128.0,
                y=None,
                status="oom",
                told=("batch size 128", "out of memory"),
            ),
            PlottedPoint(
                name="batch_size=256", x=256.0, y=None, status="skipped", told=("batch size 256", "skipped")
            ),
        )

    assert found == Picture(
        name="growth",
        experiment="sizes",
        of="sizes",
        shows="epoch time and memory over global batch size",
        panels=(
            Panel(
                kind="lines",
                x=x,
                y=PlottedAxis(title="epoch time (s)", top=8.0),
                series=(PlottedSeries(name="", points=points("epoch time", "s", 2, 8.0, 5.0, 4.0)),),
            ),
            Panel(
                kind="lines",
                x=x,
                y=PlottedAxis(title="GPU memory (MiB)", top=2500.0),
                series=(
                    PlottedSeries(name="", points=points("GPU memory", "MiB", 0, 1000.0, 1500.0, 2500.0)),
                ),
            ),
        ),
        caption=(
            "Epoch time and memory over global batch size. One process each: no interval. No figures: "
            "batch_size=128 (oom: out of memory); batch_size=256 (skipped). !: doubts (spread, stranger); "
            "docs/measuring.md says what they mean.",
            "sizes · 4 × H200, 64 CPUs · 1 process a row · mobilenet_v2 · 224 px · crop-resize · bf16 · 1,000 images · "
            "torch 2.11.0.",
        ),
    )


def test_small_figures_beside_large_ones_get_a_logarithm_and_the_title_says_so() -> None:
    rows = [row(batch_size=16, epoch_time_s=30.0), row(batch_size=32, epoch_time_s=2.0)]
    (panel,) = of(rows, "growth").panels
    assert (panel.y.steps, panel.y.from_zero, panel.y.title) == ("log10", False, "epoch time (s, log)")


def test_each_series_has_a_line_and_the_legend_says_in_what_they_differ() -> None:
    rows = [
        row(strategy=strategy, batch_size=batch, gpus=2, epoch_time_s=batch / 10)
        for strategy in ("ddp", "dp")
        for batch in (16, 32)
    ]
    found = of(rows, "growth")
    assert found.legend == "strategy"
    assert [one.name for one in found.panels[0].series] == ["ddp", "dp"]
    assert len({one.look for one in found.panels[0].series}) == 2


def test_a_row_that_is_missing_leaves_a_gap() -> None:
    rows = [row(batch_size=b, epoch_time_s=4.0) for b in (16, 32, 128, 256)] + [row("missing", batch_size=64)]
    (panel,) = of(rows, "growth").panels
    assert [p.y for p in panel.series[0].points] == [4.0, 4.0, None, 4.0, 4.0]
    assert "batch_size=64 (not measured yet)" in of(rows, "growth").caption[0]


def test_rows_of_several_processes_have_their_interval_and_the_caption_their_number() -> None:
    rows = [
        row(batch_size=batch, config_id=f"r{batch}", epoch_time_s=time * wobble, round=number)
        for batch, time in ((16, 8.0), (32, 5.0))
        for number, wobble in enumerate((0.99, 1.0, 1.01), 1)
    ]
    found = of(rows, "growth")
    for p in found.panels[0].series[0].points:
        assert p.y is not None
        assert p.low is not None
        assert p.high is not None
        assert p.low < p.y < p.high
    assert "Bars: 95 % intervals over 3 processes." in found.caption[0]


def in_rounds(*, wide: float) -> list[Row]:
    """Two sizes with energy; the slow one's times differ by so much from process to process."""
    return [
        row(
            batch_size=batch, config_id=f"r{batch}", round=number, energy_j=100.0 + batch,
            epoch_time_s=time * (1 + (number - 2) * (wide if batch == 16 else 0.01)),
        )
        for batch, time in ((16, 8.0), (32, 5.0))
        for number in (1, 2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize(("wide", "fits"), [(0.1, True), (0.5, False)])
def test_the_axis_of_times_is_long_enough_for_intervals_or_the_caption_says_that_they_go_on(
    wide: float, *, fits: bool
) -> None:
    (found,) = described(Subject(table=table(in_rounds(wide=wide))), ["energy"])
    ends = limits.across(found.panels[0])
    highs = [p.x_high for one in found.panels[0].series for p in one.points if p.x_high is not None]
    assert max(highs) > 8.0 * 1.06, "it would leave an axis that ends at the largest figure"
    assert all(high < ends.high for high in highs) == fits
    assert ("Intervals that leave the picture go on." in found.caption[0]) != fits
    assert ends.high < 8.0 * limits.WIDEST * 1.2, "the points stay told apart"


def test_a_log_s_rows_say_that_nobody_knows_their_processes() -> None:
    rows = [row(batch_size=b, epoch_time_s=4.0, source="published log") for b in (16, 32)]
    assert "No intervals: nobody knows" in of(rows, "growth").caption[0]


def test_scaling_has_an_ideal_line_through_its_baseline() -> None:
    rows = [
        row(batch_size=64, gpus=1, epoch_time_s=8.0),
        row(batch_size=128, gpus=2, strategy="ddp", epoch_time_s=5.0),
        row(batch_size=256, gpus=4, strategy="ddp", epoch_time_s=2.5),
    ]
    found = of(rows, "scaling", axes=[("batch_size", "gpus", "strategy")])
    measured, ideal = found.panels[0].series
    assert [(p.x, p.y) for p in measured.points] == [(1, 125.0), (2, 200.0), (4, 400.0)]
    assert measured.name == "weak, ddp, 64 a GPU, against single on 1 GPU"
    assert (ideal.role, [(p.x, p.y) for p in ideal.points]) == ("ideal", [(1, 125.0), (4, 500.0)])
    assert found.panels[0].y.title == "throughput (images/s)"


NETWORKS = (("resnet18", 1.81, 4.0, 2.5), ("lenet", 0.0006, 2.0, 3.0), ("mobilenet_v2", 0.3, 8.0, 5.0))
"""Each with its GMACs an image, and its epoch times on one GPU and on two."""


def on_one_and_two(count: int = 3, **values: Any) -> list[Row]:
    return [
        row(
            model=model, gmacs_per_image=gmacs, gpus=gpus, strategy="ddp" if gpus > 1 else "single", batch_size=64,
            **{"epoch_time_s": time} | values,
        )
        for model, gmacs, *times in NETWORKS[:count]
        for gpus, time in zip((1, 2), times, strict=True)
    ]  # fmt: skip


def test_networks_stand_by_size_with_what_more_gpus_bring_each() -> None:
    found = of(on_one_and_two(), "networks", axes=[("model",), ("gpus", "strategy")])
    (panel,) = found.panels
    (series,) = panel.series
    assert panel.places == ("lenet (0.0006)", "mobilenet_v2 (0.3)", "resnet18 (1.8)")
    assert [p.y for p in sorted(series.points, key=lambda p: p.x)] == pytest.approx([2 / 3, 1.6, 1.6])
    assert (panel.line_at, panel.y.title) == (1.0, "speedup")
    assert found.caption[0].startswith("Speedup: ddp on 2 GPUs against single on 1 GPU, strong scaling. ")


def test_networks_of_several_ways_have_a_bar_each_and_few_have_no_picture() -> None:
    more = [
        row(
            model=model, gmacs_per_image=gmacs, gpus=2, strategy="fsdp", batch_size=64,
            epoch_time_s=time if model != "lenet" else 4.0,
        )
        for model, gmacs, time, _ in NETWORKS
    ]  # fmt: skip
    more += [
        row(
            model="mlp", gmacs_per_image=0.0001, gpus=gpus, strategy=strategy, batch_size=64, epoch_time_s=time,
        )
        for gpus, strategy, time in ((1, "single", 2.0), (2, "fsdp", 4.0))
    ]  # fmt: skip
    (panel,) = of([*on_one_and_two(), *more], "networks", axes=[("model",), ("gpus", "strategy")]).panels
    assert panel.places[:2] == ("mlp (0.0001)", "lenet (0.0006)"), "the smallest, which one way alone has"
    assert {one.name: min(p.y or 0 for p in one.points) for one in panel.series} == {
        "ddp on 2 GPUs against single on 1 GPU, strong scaling": pytest.approx(2 / 3),
        "fsdp on 2 GPUs against single on 1 GPU, strong scaling": pytest.approx(0.5),
    }
    few = Subject(table=table(on_one_and_two(2), axes=[("model",), ("gpus", "strategy")]))
    assert PICTURES["networks"].pictures(few) == ()


def test_the_speedup_of_a_network_has_its_interval() -> None:
    rows = [
        row(
            model=model, gmacs_per_image=gmacs, gpus=gpus, strategy="ddp" if gpus > 1 else "single", batch_size=64,
            epoch_time_s=time * apart, trial_id=f"{model}{gpus}-{number}", config_id=f"{model}{gpus}", repeat=number,
        )
        for model, gmacs, *times in NETWORKS
        for gpus, time in zip((1, 2), times, strict=True)
        for number, apart in enumerate((0.99, 1.0, 1.01))
    ]  # fmt: skip
    (panel,) = of(rows, "networks", axes=[("model",), ("gpus", "strategy")]).panels
    for one in panel.series[0].points:
        assert one.low is not None
        assert one.high is not None
        assert one.low < (one.y or 0) < one.high


def test_lines_of_several_networks_are_speedups_and_have_one_ideal() -> None:
    """Their images a second are a hundred times apart."""
    found = of(on_one_and_two(), "scaling", axes=[("model",), ("gpus", "strategy")])
    (panel,) = found.panels
    assert found.shows == "speedup over GPUs"
    assert [[p.y for p in one.points] for one in panel.series] == [
        pytest.approx([1, 1.6]), pytest.approx([1, 2 / 3]), pytest.approx([1, 1.6]), [1, 2]
    ]  # fmt: skip


def on_two_in_two_ways() -> list[Row]:
    """Four batch sizes on one GPU and, under dp and ddp, on two, in three processes each."""
    return [
        row(
            batch_size=batch, gpus=gpus, strategy=strategy, epoch_time_s=time * (100 / batch) * apart, repeat=number,
            trial_id=f"{strategy}{batch}-{number}", config_id=f"{strategy}{batch}",
            doubts="spread" if (strategy, batch) == ("ddp", 16) else None,
        )
        for batch in (16, 32, 64, 128)
        for gpus, strategy, time in ((1, "single", 4.0), (2, "dp", 3.5), (2, "ddp", 2.5))
        for number, apart in enumerate((0.99, 1.0, 1.01))
    ]  # fmt: skip


def test_many_lines_have_a_panel_for_each_way_and_one_ideal_each() -> None:
    found = of(on_two_in_two_ways(), "scaling", axes=[("gpus", "strategy"), ("batch_size",)])
    assert [panel.title for panel in found.panels] == ["strong, ddp", "strong, dp", "weak, ddp", "weak, dp"]
    sizes = ["batch 16", "batch 32", "batch 64", "batch 128"]
    assert [one.name for one in found.entries] == [*sizes, "ideal: as much from each"]
    assert found.legend == "against single on 1 GPU"
    looks: dict[str, set[int]] = {}
    for panel, gain in zip(found.panels, (4 / 2.5, 4 / 3.5, 8 / 2.5, 8 / 3.5), strict=True):
        *measured, ideal = panel.series
        assert [one.name for one in measured] == sizes[: len(measured)]
        assert [(p.x, p.y) for p in ideal.points] == [(1, 1), (2, 2)]
        for one in measured:
            looks.setdefault(one.name, set()).add(one.look)
            first, second = one.points
            assert (first.y, second.y) == (1, pytest.approx(gain, rel=0.01))
            assert second.low is not None, "weak ones, too, which the table has no interval of"
            assert second.high is not None
            assert second.low < second.y < second.high
        assert limits.upward(panel) == limits.upward(found.panels[0]), "they can be compared"
    assert all(len(same) == 1 for same in looks.values()), "one look in all panels"
    assert len(set(map(str, looks.values()))) == 4
    marked = [
        [p.doubtful and found.marks_points(panel, one) for one in panel.series for p in one.points]
        for panel in found.panels
    ]
    assert [any(marks) for marks in marked] == [True, False, False, False]


def test_doubts_are_marked_in_each_panel_of_rows_of_its_own() -> None:
    rows = [
        replace(one, doubts="spread") if one.strategy == "dp" and one.batch_size == 32 else one
        for one in on_two_in_two_ways()
    ]
    found = of(rows, "scaling", axes=[("gpus", "strategy"), ("batch_size",)])
    doubted = [
        (panel.title, one.name)
        for panel in found.panels
        for one in panel.series
        for p in one.points
        if p.doubtful and found.marks_points(panel, one)
    ]
    assert doubted == [("strong, ddp", "batch 16"), ("strong, dp", "batch 32"), ("weak, dp", "batch 16")]


def test_of_more_lines_than_colours_some_are_drawn_and_the_caption_says_of_how_many() -> None:
    rows = [
        row(model=f"net{n}", gmacs_per_image=n, gpus=gpus, strategy="ddp" if gpus > 1 else "single", batch_size=64,
            width=float(n), epoch_time_s=10.0 / gpus + n)
        for n in range(1, 14)
        for gpus in (1, 2)
    ]  # fmt: skip
    found = of(rows, "scaling", axes=[("model", "width"), ("gpus", "strategy")])
    (panel,) = found.panels
    names = [f"net{n}" for n in (1, 3, 5, 7, 9, 11, 13)]
    assert [one.name for one in panel.series] == [*names, "ideal: as much from each"], (
        "no field more than needed"
    )
    assert (panel.title, found.legend) == ("strong, ddp", "against single on 1 GPU, batch 64")
    assert found.caption[0].startswith(
        "Drawn: 7 of 13 lines, evenly chosen; gpubench table has them all, and --where chooses. "
    )


def test_variants_stand_side_by_side_with_what_is_known_of_them() -> None:
    rows = [
        row(batch_size=batch, variant=variant, epoch_time_s=time, cpu_util_pct=cpu, top1_pct=50.0)
        for batch in (16, 32)
        for variant, time, cpu in (("crop-resize", 8.0, 90.0), ("pre-resized", 6.0, 40.0))
    ]
    found = of(rows, "alternatives")
    assert (found.file_name, found.legend) == ("sizes-alternatives-variant", "variant")
    assert [panel.y.title for panel in found.panels] == ["epoch time (s)", "CPU use (%)", "top-1 (%)"]
    assert found.panels[0].places == ("batch_size=16", "batch_size=32")
    assert [(one.name, [p.y for p in one.points]) for one in found.panels[1].series] == [
        ("crop-resize", [90.0, 90.0]),
        ("pre-resized", [40.0, 40.0]),
    ]


def pair(one: int, other: int, slowdowns: tuple[float, float] | None) -> list[Row]:
    name = f"{one} & {other}"
    return [
        row(
            "ok" if slowdowns else "oom", batch_size=batch, group=name, group_id=f"g{name}", job=f"{place} of 2",
            slowdown=slowdowns[place - 1] if slowdowns else None, predicted_slowdown=1.5,
            epoch_time_s=4.0 if slowdowns else None,
        )
        for place, batch in ((1, one), (2, other))
    ]  # fmt: skip


PAIRS = (((16, 32), (1.25, 1.5)), ((16, 64), (1.75, 2.0)), ((32, 64), None))


def pairs() -> list[Row]:
    return [one for jobs, slowdowns in PAIRS for one in pair(*jobs, slowdowns)]


def test_slowdowns_stand_job_by_job_beside_what_was_predicted() -> None:
    (panel,) = of(pairs(), "slowdowns").panels
    measured, predicted = panel.series
    assert [p.y for p in measured.points] == [1.25, 1.5, 1.75, 2.0, None, None]
    assert [p.status for p in measured.points][-2:] == ["oom", "oom"]
    assert {p.y for p in predicted.points} == {1.5}
    assert panel.places[:2] == ("16 & 32\n1 of 2: 16", "2 of 2: 32")
    assert panel.line_at == 1.0


def test_the_matrix_of_pairs_says_who_slows_whom() -> None:
    (panel,) = of(pairs(), "pairs").panels
    assert panel.places == ("16", "32", "64")
    told = {(cell.row, cell.column): cell for cell in panel.cells}
    assert told[0, 1] == Cell(row=0, column=1, value=1.25, text="1.25")
    assert told[1, 0].value == 1.5
    assert told[2, 0].value == 2.0
    assert (told[1, 2].value, told[1, 2].text) == (None, "out of memory")
    assert told[1, 1].text == ""


def test_the_front_is_what_no_other_row_beats_in_time_and_energy() -> None:
    figures = ((16, 8.0, 100.0), (32, 5.0, 120.0), (64, 6.0, 150.0), (128, 4.0, 130.0))
    rows = [row(batch_size=b, epoch_time_s=t, energy_j=j) for b, t, j in figures]
    measured, front = of(rows, "energy").panels[0].series
    assert [(p.label, p.best) for p in measured.points] == [
        ("16", True), ("32", True), ("64", False), ("128", True)
    ]  # fmt: skip
    assert [(p.x, p.y) for p in front.points] == [(4.0, 130.0), (5.0, 120.0), (8.0, 100.0)]
    assert not measured.joined


@pytest.mark.parametrize("far", ["time", "energy", "nothing"])
def test_energy_against_time_is_by_logarithms_where_either_is_far_apart(far: str) -> None:
    time, energy = (40.0 if far == "time" else 8.0), (1200.0 if far == "energy" else 150.0)
    rows = [
        row(batch_size=16, epoch_time_s=time, energy_j=energy),
        row(batch_size=32, epoch_time_s=4.0, energy_j=100.0),
    ]
    (panel,) = of(rows, "energy").panels
    if far == "nothing":
        assert {panel.x.steps, panel.y.steps} == {"linear"}
        assert limits.across(panel).low == 0
        return
    assert {panel.x.steps, panel.y.steps} == {"log10"}
    assert (panel.x.title, panel.x.unit) == ("epoch time (s, log)", "s")
    ends = limits.across(panel)
    assert 0 < ends.low < 4 < time < ends.high


def test_networks_of_their_own_share_no_front() -> None:
    rows = [row(model=model, epoch_time_s=4.0, energy_j=100.0) for model in ("resnet34", "lenet")]
    assert PICTURES["energy"].pictures(Subject(table=table(rows))) == ()


def test_time_and_energy_to_a_top1() -> None:
    rows = [
        row(batch_size=16, epoch_time_s=4.0, until_top1=60.0, time_to_top1_s=40.0, energy_to_top1_j=900.0),
        row(batch_size=32, epoch_time_s=3.0, until_top1=60.0, time_to_top1_s=30.0, energy_to_top1_j=800.0),
        row(batch_size=64, epoch_time_s=2.0, until_top1=60.0),
    ]
    found = of(rows, "to-top1")
    assert [[p.y for p in panel.series[0].points] for panel in found.panels] == [
        [40.0, 30.0, None], [900.0, 800.0, None]
    ]  # fmt: skip
    assert "Never reached: batch_size=64." in found.caption[0]


def test_of_several_seeds_the_crossings_have_their_intervals() -> None:
    figures = {16: (40.0, 44.0, 38.0), 32: (30.0, 31.0, 29.0), 64: (25.0, 26.0, None)}
    rows = [
        row(
            batch_size=batch, config_id=f"seeds{batch}", repeat=number, seed=number, epoch_time_s=4.0, until_top1=60.0,
            time_to_top1_s=crossed and crossed + 3, top1_crossing_s=crossed,
            top1_crossing="confirmed" if batch == 16 else "unconfirmed", energy_to_top1_j=900.0,
        )
        for batch, crossings in figures.items()
        for number, crossed in enumerate(crossings, 1)
    ]  # fmt: skip
    found = of(rows, "to-top1")
    assert found.panels[0].y.title == "training until top-1 was crossed (s)"
    first, second, third = found.panels[0].series[0].points
    for p, crossings in ((first, figures[16]), (second, figures[32])):
        assert p.y is not None
        assert p.low is not None
        assert p.high is not None
        assert p.low < min(filter(None, crossings)) < p.y < max(filter(None, crossings)) < p.high
    assert third.y is None  # those seeds that did are the quick ones
    assert "with 95 % intervals over 3 seeds; 1 of 2 not confirmed" in found.caption[0]
    assert "Not reached by every seed: batch_size=64." in found.caption[0]
    assert "training until top-1 was crossed 40.6 s (95 %: 33.74 to 48.83)" in first.told


def test_rows_without_an_order_stand_side_by_side() -> None:
    rows = [
        row(model=model, epoch_time_s=time, gpu_mem_mib=1000, cpu_util_pct=50.0)
        for model, time in (("resnet34", 4.0), ("lenet", 2.0))
    ]
    found = of([*rows, row("oom", model="vgg16")], "rows")
    assert [panel.y.title for panel in found.panels] == ["epoch time (s)", "GPU memory (MiB)", "CPU use (%)"]
    assert found.panels[0].places == ("model=resnet34", "model=lenet", "model=vgg16")
    assert [(p.y, p.status) for p in found.panels[0].series[0].points] == [
        (4.0, "ok"), (2.0, "ok"), (None, "oom")
    ]  # fmt: skip
    assert PICTURES["rows"].pictures(Subject(table=table(sizes()))) == (), "these have an order"


def test_parts_of_a_step_are_stacked_and_those_too_small_to_see_are_named() -> None:
    rows = [
        row(batch_size=b, epoch_time_s=4.0, breakdown=True, copy_ms=0.01, forward_ms=10.0, backward_ms=20.0)
        for b in (16, 32)
    ]
    found = of(rows, "breakdown")
    assert [(one.name, [p.y for p in one.points]) for one in found.panels[0].series] == [
        ("forward", [10.0, 10.0]), ("backward", [20.0, 20.0])
    ]  # fmt: skip
    assert "left out: copy." in found.caption[0]
    assert found.panels[0].y.top == 30.0


def test_top1_over_training_time_epoch_by_epoch() -> None:
    epochs = [
        {"epoch": n, "epoch_time_s": 10.0, "top1_pct": top1} for n, top1 in enumerate((20.0, None, 61.328125))
    ]
    record = FULL.model_copy(update={"trial_id": "t-learning", "epochs": epochs})
    rows = [row(batch_size=16, trial_id="t-learning", epoch_time_s=10.0, until_top1=60.0)]
    (found,) = PICTURES["learning"].pictures(Subject(table=table(rows), records=(record,)))
    curve, target = found.panels[0].series
    assert [(p.x, p.y) for p in curve.points] == [(10.0, 20.0), (20.0, None), (30.0, 61.328125)]
    assert [p.told[2] for p in curve.points] == ["top-1 20 %", "not evaluated", "top-1 61.33 %"]
    assert (target.role, {p.y for p in target.points}) == ("target", {60.0})


def test_a_training_that_was_stopped_has_its_curve_and_the_caption_says_so() -> None:
    epochs = [{"epoch": n, "epoch_time_s": 10.0, "top1_pct": 20.0 + n} for n in range(3)]
    records = [FULL.model_copy(update={"trial_id": f"t-{n}", "epochs": epochs}) for n in (16, 32)]
    rows = [
        row(batch_size=16, trial_id="t-16", epoch_time_s=10.0, until_top1=60.0, doubts="spread"),
        row("interrupted", batch_size=32, trial_id="t-32", until_top1=60.0),
    ]
    (found,) = PICTURES["learning"].pictures(Subject(table=table(rows), records=records))
    assert [one.name for one in found.panels[0].series[:2]] == ["batch_size=16", "batch_size=32"]
    assert "Ended before its time: batch_size=32 (interrupted)." in found.caption[0]
    assert "No figures" not in found.caption[0]
    assert "!: doubts (spread)" in found.caption[0]
    assert not found.all_doubtful


def test_a_trial_s_samples_with_its_measured_epochs_shaded() -> None:
    record = FULL.model_copy(
        update={
            "trial_id": "t-samples",
            "resolved": {"cpus": 2},
            "epochs": [{"epoch": 0, "warmup": True}, {"epoch": 1, "warmup": False}],
            "windows": [
                EpochWindow(epoch=0, t0=101.0, t1=103.0),
                EpochWindow(epoch=1, t0=103.0, t1=106.0),
            ],
            "span": Span(launched=100.0, finished=107.0),
        }
    )
    samples = {
        ("0", "gpu_util_pct"): [(0.0, 0.0), (1.0, 50.0), (2.0, 100.0)],
        ("host", "cpu_busy_s"): [(0.0, 10.0), (1.0, 11.0), (2.0, 13.0)],
    }
    rows = [row(batch_size=16, trial_id="t-samples", epoch_time_s=3.0)]
    found = trial.described(table(rows), record, samples)
    assert found is not None
    gpu, cpu = found.panels
    assert gpu.spans == (Shade(low=3.0, high=6.0, name="epoch 1"),)
    assert [(p.x, p.y) for p in gpu.series[0].points] == [(0.0, 0.0), (1.0, 50.0), (2.0, 100.0)]
    assert [(p.x, p.y) for p in cpu.series[0].points] == [(1.0, 50.0), (2.0, 100.0)]
    assert cpu.y.ticks == (0.0, 50.0, 100.0)


def test_readings_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    """They would take the picture from the whole trial, and the trial from the web page."""
    path = tmp_path / "samples.csv"
    lines = [
        "t_s,device,metric,value",
        "0,0,power_w,100",
        "1,0,power_w,nan",
        "inf,0,power_w,1",
        "2,0,power_w,120",
    ]
    path.write_text("\n".join([*lines, "3,0,power_w,-inf", "4,0,power_w,1e308", "5,0,power_w,110", ""]))
    told: list[str] = []
    assert read(path, told.append) == {("0", "power_w"): [(0.0, 100.0), (2.0, 120.0), (5.0, 110.0)]}
    assert told == [f"{path} is damaged: 4 of its 7 readings can't be read, and are left out"]


def test_the_last_reading_of_a_file_that_was_cut_off_is_none(tmp_path: Path) -> None:
    """What is left of its figure may look like a whole one."""
    path = tmp_path / "samples.csv"
    path.write_text("t_s,device,metric,value\n0,0,power_w,100\n1,0,power_w,1")
    told: list[str] = []
    assert read(path, told.append) == {("0", "power_w"): [(0.0, 100.0)]}
    assert told == [f"{path} is damaged: 1 of its 2 readings can't be read, and is left out"]


def test_a_file_that_was_cut_off_between_two_lines_is_told_by_its_record(tmp_path: Path) -> None:
    results = Results(tmp_path)
    epochs = [
        {"epoch": number, "epoch_time_s": 1.0, "warmup": number == 0, "steps": steps}
        for number, steps in enumerate((9, 2))
    ]
    record = FULL.model_copy(update={"status": "ok", "epochs": epochs})
    results.create()
    results.save([record], [[]], SAMPLE_HEADER)
    path = results.part("samples", record.trial_id, record.attempt, "csv")
    lines = ["t_s,device,metric,value", "0,0,power_w,100", "1,rank0,step_time_ms,9", "2,rank0,step_time_ms,9"]
    for left, told in ((4, []), (3, [1]), (2, [0])):
        path.write_text("\n".join([*lines[:left], ""]))
        said: list[str] = []
        rows = [row(batch_size=16, trial_id=record.trial_id, epoch_time_s=3.0)]
        trial.of_record(Subject(table=table(rows), results=results, tell=said.append), record)
        assert said == [
            f"{path} is damaged: it holds {steps} of 2 measured steps, so it was cut off; what it lacks at its end is "
            "not known"
            for steps in told
        ]
    of_another = record.model_copy(update={"status": "interrupted"})
    assert without_end(path, 0, of_another) is None
    assert without_end(path, 0, record.model_copy(update={"epochs": [{"warmup": False}]})) is None


def test_where_samples_are_missing_the_line_has_a_gap() -> None:
    values = [(n / 10, 50.0) for n in range(20)] + [(10 + n / 10, 60.0) for n in range(20)]
    rows = [row(batch_size=16, trial_id="t-gap", epoch_time_s=3.0)]
    record = FULL.model_copy(update={"trial_id": "t-gap", "windows": [], "epochs": []})
    found = trial.described(table(rows), record, {("0", "gpu_util_pct"): values})
    assert found is not None
    points = found.panels[0].series[0].points
    assert [round(p.x, 2) for p in points if p.y is None] == [5.95]


@pytest.mark.parametrize("status", ["oom", "failed", "missing", "skipped", "interrupted"])
def test_nothing_is_drawn_of_a_table_without_figures(status: str) -> None:
    rows = [
        row(status, batch_size=batch, variant=v) for batch in (16, 32) for v in ("crop-resize", "pre-resized")
    ]
    assert described(Subject(table=table(rows))) == []


def test_nor_of_a_single_row() -> None:
    assert described(Subject(table=table([row(batch_size=16, epoch_time_s=4.0, gpu_mem_mib=100)]))) == []


def test_more_lines_than_can_be_read_are_left_out_and_the_caption_says_so() -> None:
    rows = [
        row(batch_size=b, seed=seed, lr=seed / 100, epoch_time_s=4.0)
        for seed in range(1, 31)
        for b in (16, 32)
    ]
    (found,) = described(Subject(table=table(rows)), ["growth"])
    assert len(found.panels[0].series) == 20
    assert found.caption[0].startswith("Only the first 20 of 30 series are drawn. ")


def test_more_bars_than_can_be_read_are_left_out_and_the_caption_says_so() -> None:
    rows = [
        row(batch_size=b, variant=variant, epoch_time_s=4.0)
        for b in range(16, 116)
        for variant in ("crop-resize", "pre-resized")
    ]
    (found,) = described(Subject(table=table(rows)), ["alternatives"])
    assert len(found.panels[0].places) == 60
    assert all(p.x < 60 for one in found.panels[0].series for p in one.points)
    assert found.caption[0].startswith("Only the first 60 of 100 places are drawn. ")
