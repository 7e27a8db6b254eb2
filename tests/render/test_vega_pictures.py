"""Pictures of findings, of the committed folders: which figures they show, and which marks carry the answer."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import reports
from committed import load_reports
from made_up_folders import folder_of
from pages import row

from gpubench.analyze.questions import make_folder_reports
from gpubench.core.findings import Finding, SharingFinding
from gpubench.core.report import Report
from gpubench.core.trace import TracePoint, TrialPhase, TrialTrace
from gpubench.render import words
from gpubench.render.pictures import pictures
from gpubench.render.pictures.pictures import DRAWN, list_pictures
from gpubench.render.pictures.vega import ALARM, CONTEXT, MOST_ABOVE, limit_rows
from gpubench.schema.row import Row

RESULTS = Path(__file__).parents[2] / "results"


@functools.cache
def load_all(folder: str) -> list[Report]:
    return load_reports(RESULTS / folder, lambda _: None)


def load(folder: str, table: str, question: str) -> tuple[Report, Finding]:
    (report,) = [report for report in load_all(folder) if report.name == table]
    return report, next(finding for finding in report.findings if finding.question == question)


def draw(folder: str, table: str, question: str) -> dict[str, Any]:
    report, finding = load(folder, table, question)
    picture = draw_finding(report, finding)
    assert picture is not None
    assert " ".join(picture["title"]["text"]) == words.format_finding_title(report, finding)[0]
    assert 1 <= len(picture["title"]["text"]) <= 4
    assert json.loads(json.dumps(picture, allow_nan=False)) == picture
    return picture


def draw_finding(report: Report, finding: Finding) -> dict[str, Any] | None:
    return DRAWN[type(finding)][1](report, finding)


def walk(part: Any) -> Iterator[dict[str, Any]]:
    """All parts of a description that have a mark, with the data that they inherit."""
    if isinstance(part, dict):
        if "mark" in part:
            yield part
        for name in ("vconcat", "layer"):
            for child in part.get(name, []):
                yield from walk({"data": part.get("data"), **child})


def find_marks(picture: dict[str, Any], kind: str, **of_mark: Any) -> list[list[dict[str, Any]]]:
    """The data of each layer with such a mark."""
    return [
        layer["data"]["values"]
        for layer in walk(picture)
        if layer["mark"]["type"] == kind and of_mark.items() <= layer["mark"].items()
    ]


def test_growth_rings_the_choice_inside_the_band_of_the_best() -> None:
    picture = draw("h200x2-2026", "mobilenet_v2-2gpu", "batch_size")
    ((ring,),) = find_marks(picture, "point", size=320)
    assert (ring["size"], round(ring["rate"])) == ("128", 2948)
    ((band,),) = find_marks(picture, "rect")
    assert round(band["best"]) == 3003
    assert band["least"] == pytest.approx(0.95 * band["best"])
    assert band["least"] <= ring["rate"] <= band["best"]
    points = find_marks(picture, "point", size=60)[0]
    assert len(points) == 18
    point = next(point for point in points if point["series"] == "1 GPU" and point["size"] == "512")
    assert (round(point["rate"]), round(point["low"]), round(point["high"])) == (1356, 1210, 1521)
    assert point["memory"] == pytest.approx(42.3, abs=0.05)
    assert all(point["is_sure"] for point in points)


def test_growth_marks_the_first_size_that_ran_out_of_memory_at_the_cap_and_ends_there() -> None:
    picture = draw("h200x4-2026", "mobilenet_v2-4gpu", "batch_size")
    crosses = find_marks(picture, "text", color=ALARM)
    assert {"memory": 12.0, "text": "cap 12.0 GiB"} in crosses[0]
    assert [cross["text"] for cross in crosses[1]] == ["512: out of memory"] * 2
    assert [cross["memory"] for cross in crosses[1]] == [12.0, 12.0]
    sizes = picture["vconcat"][0]["layer"][-1]["encoding"]["x"]["scale"]["domain"]
    assert sizes == ["16", "32", "64", "128", "256", "512"]
    assert not any(point["is_sure"] for point in find_marks(picture, "point", size=60)[0])


def test_a_published_log_without_images_shows_epochs_an_hour() -> None:
    picture = draw("titan-xp-2021", "mobilenet_v2-4gpu", "batch_size")
    ((ring,),) = find_marks(picture, "point", size=320)
    assert ring["text"] == "128: 319 epochs an hour"


def test_limits_ring_the_answer_in_energy_and_in_time() -> None:
    report = reports.power_limits()
    picture = draw_finding(report, report.findings[0])
    assert picture is not None
    assert " ".join(picture["title"]["text"]) == "Take 150 W: 22 % less energy for 18 % more time (sure)"
    assert [[ring["text"] for ring in rings] for rings in find_marks(picture, "point", size=320)] == [
        ["150 W: 599,874 J"],
        ["150 W: 4,149 s"],
    ]
    energy, time = find_marks(picture, "line")
    assert energy == time
    assert [(point["limit"], point["energy_j"], point["epoch_time_s"]) for point in energy] == [
        (150, 599_874, 4149),
        (175, 640_896, 3852),
        (250, 774_177, 3515),
    ]
    assert [panel["layer"][0]["encoding"]["y"]["field"] for panel in picture["vconcat"][:2]] == [
        "energy_j",
        "epoch_time_s",
    ]
    assert all(point["is_sure"] for point in energy)
    unknown = replace(report.findings[0], word="unknown")
    assert not any(point["is_sure"] for point in find_marks(draw_finding(report, unknown), "line")[0])
    one = replace(report, labels={**report.labels, 0: {"power_limit_w": None}, 1: {"power_limit_w": None}})
    assert draw_finding(one, report.findings[0]) is None


def test_networks_are_above_or_below_one_and_the_turn_lies_before_the_first_that_is_faster() -> None:
    picture = draw("h200x2-network-size-2026", "network-size", "network_size")
    networks = {network["name"]: network for network in find_marks(picture, "point")[0]}
    assert len(networks) == 13
    assert networks["resnet50"]["ratio"] == pytest.approx(1.79, abs=0.005)
    assert (networks["resnet50"]["side"], networks["resnet50"]["is_sure"]) == ("more", True)
    assert (networks["lenet"]["side"], networks["mobilenet_v3_large"]["side"]) == ("less", "unknown")
    ((turn,),) = find_marks(picture, "rect", color=CONTEXT)
    assert turn["gmacs"] == networks["mobilenet_v3_large"]["gmacs"]
    assert turn["end"] == networks["mobilenet_v2"]["gmacs"]


def test_jobs_together_show_work_bound_and_what_was_predicted() -> None:
    picture = draw("h200-copies-rounds-2026", "mobilenet_v2-copies", "sharing")
    groups = {group["name"]: group for group in find_marks(picture, "point", shape="circle")[0]}
    three = groups["3 × batch 16"]
    assert three["work"] == pytest.approx(2.95, abs=0.005)
    assert three["bound"] == pytest.approx(2.48, abs=0.005)
    assert (three["jobs"], three["gains"], three["is_sure"]) == (3, "gain", True)
    assert groups["2 × batch 128"]["gains"] == "none"
    predicted = {group["name"]: group["predicted"] for group in find_marks(picture, "point")[1]}
    assert predicted["3 × batch 16"] == pytest.approx(3.0, abs=0.005)


def test_ways_show_both_times_and_the_ratio_of_their_rates() -> None:
    picture = draw("h200x4-2026", "resnet34-4gpu", "versus")
    rows = find_marks(picture, "rule")[0]
    assert [row["name"] for row in rows][:2] == ["batch 16", "batch 32"]
    for line in rows:
        assert line["ratio"] == f"{line['baseline'] / line['candidate']:.2f} times"
    assert not any(row["is_sure"] for row in rows)


def test_devices_show_speed_ups_with_intervals_and_efficiency() -> None:
    picture = draw("h200x2-2026", "mobilenet_v2-2gpu", "devices")
    same_batch, same_share = find_marks(picture, "point")
    assert [row["name"] for row in same_share] == [f"batch {size}" for size in (32, 64, 128, 256, 512)]
    row = same_batch[3]
    assert (row["name"], row["efficiency"], row["side"]) == ("batch 128", "82 % efficiency", "more")
    assert row["low"] < row["ratio"] < row["high"] < row["ideal"] == 2


def test_runs_to_a_target_end_where_they_reached_it_and_others_are_grey() -> None:
    picture = draw("h200-until-top1-2026", "mobilenet_v2-until-top1", "target")
    ends = {end["series"]: end for end in find_marks(picture, "point")[0]}
    assert list(ends) == ["batch 128", "batch 64", "batch 32"]
    assert (round(ends["batch 128"]["seconds"], 1), round(ends["batch 128"]["top1"], 1)) == (36.1, 63.1)
    name, cost = ends["batch 128"]["text"]
    assert (name, cost.split(", ")) == ("batch 128", ["36.1 s", "13 epochs", "11.7 kJ"])
    assert not ends["batch 128"]["is_sure"]
    ((target,),) = find_marks(picture, "rule")
    assert target == {"top1": 60.0}
    (grey,) = find_marks(picture, "line", color=CONTEXT)
    assert {point["series"] for point in grey} == {"batch 256"}


def test_energy_fills_the_rows_that_no_other_beats_and_leaves_jobs_together_out() -> None:
    (report,) = load_all("h200x2-2026")
    picture = pictures.draw_energy(report)
    assert picture is not None
    points = find_marks(picture, "point")[0]
    assert len(points) == 18
    front = [point for point in points if point["is_best"]]
    for point in points:
        beaten = [
            other
            for other in points
            if other["seconds"] < point["seconds"] and other["joules"] < point["joules"]
        ]
        assert bool(beaten) != (point in front)
    least = min(points, key=lambda point: point["joules"])
    assert (least["name"], round(least["joules"])) == ("batch 32 on 1 GPU", 1079)
    assert picture["title"]["text"] == [
        f"B{least['name'][1:]} needs the least energy: {least['joules']:,.0f} J an epoch"
    ]
    lines = find_marks(picture, "line", strokeWidth=1)[0]
    assert all(point["joules"] == pytest.approx(point["watts"] * point["seconds"]) for point in lines)
    for copies in load_all("h200-copies-2026"):
        alone = pictures.draw_energy(copies)
        jobs = {row for group in copies.findings[0].groups for row in group.rows}
        if alone is not None:
            assert len(find_marks(alone, "point")[0]) <= len(copies.labels) - len(jobs)


def test_parts_of_a_step_stand_one_behind_the_other_and_add_up() -> None:
    reports = load_all("h200x4-scaling-2026")
    picture = pictures.draw_breakdown(reports[0])
    assert picture is not None
    bars = [bar for bar in find_marks(picture, "bar")[0] if bar["name"] == "batch 512 on 4 GPUs (ddp)"]
    assert [bar["part"] for bar in bars] == [
        "copy",
        "forward",
        "backward",
        "waiting for gradients",
        "optimizer",
    ]
    assert all(before["end"] == pytest.approx(after["begin"]) for before, after in itertools.pairwise(bars))
    ends = {end["name"]: end["text"] for end in find_marks(picture, "text", align="left")[0]}
    assert ends[bars[0]["name"]].split(", ") == ["32.3 ms", "gradients 0.16 ms (0.5 %)"]


def test_a_trial_shades_what_was_measured_and_draws_the_mean_of_its_gpus() -> None:
    report = load_all("h200x4-2026")[0]
    points = (
        TracePoint(seconds=0.5, mean=50.0, low=40.0, high=60.0, piece=0),
        TracePoint(seconds=1.5, mean=90.0, low=80.0, high=100.0, piece=0),
    )
    trace = TrialTrace(
        row=0,
        trial_id="t0123456789ab",
        panels={"gpu_util_pct": points, "power_w": points},
        phases=(
            TrialPhase(name="warm-up", begin=0.0, end=1.0, is_measured=False),
            TrialPhase(name="window", begin=1.0, end=2.0, is_measured=True),
        ),
        figures={"gpu_util_pct": 90.0, "cpu_util_pct": None, "gpu_mem_mib": 2048.0, "power_w": 1926.0},
    )
    picture = pictures.draw_trial(report, trace)
    assert picture["title"]["text"] == ["batch 16 with ddp: GPU busy 90 % of the time measured"]
    assert picture["title"]["subtitle"][0].split(", ") == ["GPU memory 2.0 GiB", "1,926 W."]
    assert find_marks(picture, "rect") == [[{"seconds": 1.0, "end": 2.0, "name": "window"}]] * 2
    assert [point["mean"] for point in find_marks(picture, "line")[0]] == [50.0, 90.0]
    assert [name["name"] for name in find_marks(picture, "text", align="left")[0]] == ["warm-up", "window"]


def test_more_rows_than_can_be_read_are_counted() -> None:
    assert limit_rows(range(61)) == (list(range(60)), "60 of 61 drawn")
    assert limit_rows(range(60)) == (list(range(60)), "")


def test_names_of_phases_do_not_run_into_each_other() -> None:
    phases = tuple(
        TrialPhase(name=f"epoch {number}", begin=float(number), end=number + 1.0, is_measured=True)
        for number in range(20)
    )
    trace = TrialTrace(row=0, trial_id="t", panels={}, phases=phases, figures={})
    names = pictures.list_phase_labels(trace, 20.0)
    assert [name["seconds"] for name in names] == [0.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0]


def draw_rows(rows: Sequence[Row], axes: Sequence[Sequence[str]], kind: str) -> dict[str, Any]:
    """The first picture of a kind, of a table of these rows."""
    (report,) = make_folder_reports([folder_of(rows, name="by hand", axes=axes)])
    return next(picture.description for picture in list_pictures(report) if picture.kind == kind)


def test_rows_that_only_their_gpu_tells_apart_have_bars_and_marks_of_their_own() -> None:
    rows = [
        row(batch, trial_id=f"t{place}", config_id=f"c{place}", gpu_ids=(gpu,), variant=variant,
            epoch_time_s=2.0 + place, images_per_s=10_240 / (2.0 + place), forward_ms=1.0 + place)
        for place, (gpu, batch, variant) in enumerate(
            itertools.product((0, 1), (16, 32), ("synthetic", "crop-resize"))
        )
    ]  # fmt: skip
    axes = [["gpu_ids"], ["batch_size"], ["variant"]]
    bars = find_marks(draw_rows(rows, axes, "breakdown"), "bar")[0]
    assert sorted(bar["end"] for bar in bars) == [1.0 + place for place in range(8)]
    assert len({bar["name"] for bar in bars}) == 8
    dumbbells = find_marks(draw_rows(rows, axes, "ways"), "rule")[0]
    assert [line["name"] for line in dumbbells] == [
        "batch 16, GPU ids 0", "batch 32, GPU ids 0", "batch 16, GPU ids 1", "batch 32, GPU ids 1"
    ]  # fmt: skip


def test_series_and_rows_of_which_only_the_beginning_is_told_are_told_apart() -> None:
    rows = [
        row(batch, trial_id=f"t{model}{batch}", config_id=f"c{model}{batch}", model="m" * 100 + model,
            epoch_time_s=1.0 + batch / 10, images_per_s=10_240 / (1.0 + batch / 10), gpu_mem_mib=100.0, forward_ms=1.0)
        for batch, model in itertools.product((16, 32), "ab")
    ]  # fmt: skip
    points = find_marks(draw_rows(rows, [["batch_size"], ["model"]], "growth"), "line")[0]
    assert [point["series"] for point in points] == ["m" * 80, "m" * 80 + " (2)"] * 2
    bars = find_marks(draw_rows(rows, [["model"], ["batch_size"]], "breakdown"), "bar")[0]
    assert len({bar["name"] for bar in bars}) == 4


def test_steps_that_took_no_time_are_not_drawn() -> None:
    rows = [
        row(batch, forward_ms=share * batch, backward_ms=0.0, comm_ms=0.0)
        for batch, share in ((16, 0), (32, 1))
    ]
    bars = find_marks(draw_rows(rows, [["batch_size"]], "breakdown"), "bar")[0]
    assert [(bar["name"], bar["end"]) for bar in bars] == [("batch 32", 32.0)]


@pytest.mark.parametrize(
    ("axis", "kind", "field"), [("gpus", "devices", "ratio"), ("batch_size", "growth", "rate")]
)
def test_an_interval_of_two_processes_that_differ_much_does_not_press_all_others_together(
    axis: str, kind: str, field: str
) -> None:
    rows = [
        row(size if axis == "batch_size" else 64, gpus=size if axis == "gpus" else 1, trial_id=f"t{size}",
            config_id=f"c{size}", strategy="ddp" if axis == "gpus" and size > 1 else "single", round=number,
            epoch_time_s=seconds, images_per_s=10_240 / seconds)
        for size, times in {1: (4.0, 4.2), 2: (1.0, 3.0), 4: (1.5, 1.6)}.items()
        for number, seconds in enumerate(times, 1)
    ]  # fmt: skip
    marks = find_marks(draw_rows(rows, [[axis]], kind), "rule")
    whiskers = next(marks for marks in marks if "high" in marks[0] and field in marks[0])
    ends = [mark["high"] for mark in whiskers if mark["high"] is not None]
    highest = max(mark[field] for mark in whiskers)
    assert highest < max(ends) <= 1.02 * MOST_ABOVE * max(highest, 4 if axis == "gpus" else 0)


def test_energy_of_unlike_networks_is_not_compared() -> None:
    for report in load_all("h200x2-network-size-2026"):
        assert len({label["model"] for label in report.labels.values()}) > 1
        assert pictures.draw_energy(report) is None


def test_what_was_predicted_lies_inside_the_picture() -> None:
    report = reports.sharing()
    finding = report.findings[0]
    assert isinstance(finding, SharingFinding)
    groups = tuple(replace(group, predicted_work=0.5) for group in finding.groups)
    picture = draw_finding(report, replace(finding, groups=groups))
    assert picture is not None
    low, _ = picture["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low == 0.45


def test_groups_of_one_name_have_rows_of_their_own() -> None:
    report = reports.sharing()
    finding = report.findings[0]
    assert isinstance(finding, SharingFinding)
    groups = tuple(replace(group, name="n" * 90, label={}) for group in finding.groups)
    names = [group["name"] for group in pictures.list_group_rows(report, replace(finding, groups=groups))]
    assert names == ["n" * 80, *(f"{'n' * 80} ({number})" for number in range(2, len(names) + 1))]


def test_a_phase_that_ends_after_the_last_reading_lies_inside_its_panel() -> None:
    report = load_all("h200x4-2026")[0]
    points = (TracePoint(seconds=5.0, mean=50.0, low=40.0, high=60.0, piece=0),)
    phase = TrialPhase(name="window", begin=1.0, end=5.5, is_measured=True)
    figures = dict.fromkeys(("gpu_util_pct", "cpu_util_pct", "gpu_mem_mib", "power_w"))
    trace = TrialTrace(row=0, trial_id="t", panels={"power_w": points}, phases=(phase,), figures=figures)
    picture = pictures.draw_trial(report, trace)
    assert picture["vconcat"][0]["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0, 5.5]


def test_runs_that_missed_a_target_are_counted_where_not_all_are_drawn() -> None:
    report, finding = load("h200-until-top1-2026", "mobilenet_v2-until-top1", "target")
    (unreached,) = (row for row in report.training if row not in finding.order)
    many = {1000 + place: report.training[unreached] for place in range(20)}
    picture = draw_finding(
        replace(
            report,
            training={**report.training, **many},
            labels={**report.labels, **dict.fromkeys(many, report.labels[unreached])},
            figures={**report.figures, **dict.fromkeys(many, report.figures[unreached])},
        ),
        replace(finding, rows=(*finding.rows, *many)),
    )
    assert picture is not None
    footnote = picture["vconcat"][-1]["encoding"]["text"]["value"]
    assert footnote.startswith("12 of 24 drawn")
    assert len(find_marks(picture, "point")[0]) == 3
    (grey,) = find_marks(picture, "line", color=CONTEXT)
    assert len({point["series"] for point in grey}) == 9


def test_the_line_of_a_row_is_that_of_the_seed_with_the_median_time() -> None:
    report, _ = load("h200-target-2026", "mobilenet_v2-until-top1", "target")
    for label, trace in report.training.items():
        if report.figures[label]["time_to_top1_s"] is not None:
            assert trace[-1][0] == pytest.approx(report.figures[label]["time_to_top1_s"], rel=1e-9)
    assert len(report.training) == 4
