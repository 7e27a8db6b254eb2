"""Rate and memory along the batch size, with the size to take: the picture of `BatchSizeFinding`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.core.findings import BatchSizeFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

MIB_PER_GIB = 1024
SECONDS_PER_HOUR = 3600
UNKNOWN_HEIGHT = 1.15
"""Times the most memory that was measured: where a size that ran out stands if nobody knows what there was."""
TOLERANCE = 0.05
"""The recommended size is within this share of the best rate (`stats.choice`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A batch size of a series. Rates in images/s with their 95 % interval, memory in GiB; None: not known."""

    series: str
    size: int
    row: int
    rate: float | None
    low: float | None
    high: float | None
    memory: float | None
    is_out_of_memory: bool


def draw(report: Report, finding: BatchSizeFinding) -> Vega | None:
    """The picture; None where fewer than two sizes have a rate."""
    points = list_points(report)
    if len({point.size for point in points if point.rate is not None}) < 2:
        return None
    points, left_out = limit_series(points, finding)
    sizes = sorted({point.size for point in points})
    has_memory = any(point.memory is not None for point in points)
    panels = [draw_rates(report, points, place_sizes(sizes, is_labelled=not has_memory), finding)]
    if has_memory:
        panels.append(draw_memory(report, points, place_sizes(sizes, is_labelled=True), finding))
    return vega.compose(
        report, words.title_finding(report, finding), panels, margin=vega.NUMBERS, key=left_out
    )


def list_points(report: Report) -> list[Point]:
    """The sizes of each series that ran alone, in their order; of those that were skipped after one ran out of memory
    that one stands."""
    endings = {
        label: row.status if not place else "skipped"
        for row in report.rows
        for place, label in enumerate(row.labels)
    }
    rows = [row for row in vega.list_alone(report) if endings.get(row, "ok") in ("ok", "oom")]
    series, knows_images = find_series(report, rows), has_images(report)
    points = [
        make_point(report, row, series[row], endings.get(row, "ok"), knows_images=knows_images)
        for row in rows
    ]
    return sorted(points, key=lambda point: point.size)


def find_series(report: Report, rows: Sequence[int]) -> dict[int, str]:
    """The name of each row's series, which is all of its fields but the batch size; unlike series have unlike names."""
    fields = {
        row: {name: value for name, value in report.labels[row].items() if name != "batch_size"}
        for row in rows
    }
    distinct = {str(label): label for label in fields.values()}
    names = words.number_equal([words.name_row(label) for label in distinct.values()])
    by_label = dict(zip(distinct, names, strict=True))
    return {row: by_label[str(label)] for row, label in fields.items()}


def limit_series(points: Sequence[Point], finding: BatchSizeFinding) -> tuple[list[Point], str]:
    """The points of as many series as can be read, that of the choice among them; and the footnote's words for it."""
    rows = {finding.choice.row} if finding.choice else set()
    chosen = [point.series for point in points if point.row in rows]
    names, left_out = vega.limit_rows(
        list(dict.fromkeys([*chosen, *(point.series for point in points)])), vega.MOST_SERIES
    )
    return [point for point in points if point.series in names], left_out


def make_point(report: Report, row: int, series: str, status: str, *, knows_images: bool) -> Point:
    """Where images are not known (a published log) the rate is in epochs an hour."""
    fields, figures = report.labels[row], report.figures[row]
    seconds, low, high, memory = (
        figures[name] for name in ("epoch_time_s", "epoch_time_low_s", "epoch_time_high_s", "gpu_mem_mib")
    )
    work = figures["images_per_s"] * seconds if knows_images and seconds else SECONDS_PER_HOUR
    return Point(
        series=series,
        size=fields["batch_size"],
        row=row,
        rate=work / seconds if seconds else None,
        low=work / high if high else None,
        high=work / low if low else None,
        memory=None if memory is None else memory / MIB_PER_GIB,
        is_out_of_memory=status == "oom",
    )


def has_images(report: Report) -> bool:
    return all(figures["images_per_s"] for figures in report.figures.values() if figures["epoch_time_s"])


def name_unit(report: Report) -> str:
    """What the rates are in."""
    return "images/s" if has_images(report) else "epochs an hour"


def name_rate(point: Point, unit: str) -> str:
    """A point's size with its rate: `128: 2,948 images/s`."""
    return f"{words.format_axis(point.size)}: {words.format_significant(point.rate or 0.0)} {unit}"


def to_values(points: Sequence[Point], finding: BatchSizeFinding) -> Vega:
    rates = [point.rate for point in points if point.rate is not None]
    end = vega.find_end(rates, [point.high for point in points]) if rates else 0.0
    return vega.embed(
        [
            {
                "series": point.series,
                "size": str(point.size),
                "rate": point.rate,
                "low": point.low,
                "high": vega.cut_interval(point.high, end),
                "memory": point.memory,
                "is_sure": finding.word == "sure" and point.low is not None,
            }
            for point in points
        ]
    )


def draw_rates(report: Report, points: Sequence[Point], x: Vega, finding: BatchSizeFinding) -> Vega:
    """Images/s from 0, a line a series, the band that the choice was made from, and a ring around the choice."""
    measured = [point for point in points if point.rate is not None]
    names = name_series(points)
    unit = name_unit(report)
    y = {
        "field": "rate",
        "type": "quantitative",
        "axis": {**vega.make_y_title(unit), "format": ",d", "tickCount": 6},
    }
    layers: list[Vega] = []
    choice = finding.choice
    if choice is not None:
        best = max(point.rate for point in measured if point.rate is not None and point.row in choice.series)
        layers.append(
            vega.layer(
                "rect",
                {"y": {"field": "least", "type": "quantitative"}, "y2": {"field": "best"}},
                [{"least": (1 - TOLERANCE) * best, "best": best}],
                color=vega.BAND,
                opacity=0.12,
            )
        )
    color = vega.make_color_scale(names)
    layers += [
        vega.layer(
            "rule", {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": color}, opacity=0.7
        ),
        vega.layer("line", {"x": x, "y": y, "color": color}, strokeWidth=2.5),
        mark_points(x, y, names),
        label_ends(measured, x, y, names, "rate"),
    ]
    if choice is not None:
        chosen = next(point for point in measured if point.row == choice.row)
        layers += mark_choice(chosen, unit, x, y)
    return {"data": to_values(measured, finding), "width": vega.WIDTH, "height": 240, "layer": layers}


def name_series(points: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(point.series for point in points))


def place_sizes(sizes: Sequence[int], *, is_labelled: bool) -> Vega:
    """Batch sizes as equal steps; only the lowest panel says their numbers."""
    domain = list(map(str, sizes))
    return {
        "field": "size",
        "type": "ordinal",
        "sort": domain,
        "scale": {"domain": domain, "type": "point"},
        "axis": {**vega.make_x_title("batch size, images")} if is_labelled else None,
    }


def mark_points(x: Vega, y: Vega, names: Sequence[str]) -> Vega:
    """Filled points are sure; hollow ones likely or unknown."""
    return vega.layer(
        "point",
        {
            "x": x,
            "y": y,
            "color": vega.make_color_scale(names),
            "shape": vega.make_shape_scale(names),
            "fill": vega.fill_if_sure(vega.make_color_scale(names)),
        },
        size=60,
        strokeWidth=2,
        opacity=1,
    )


def label_ends(points: Sequence[Point], x: Vega, y: Vega, names: Sequence[str], field: str) -> Vega:
    """The name of each series behind its last point, where there is more than one."""
    ends = {point.series: point for point in points}
    return vega.layer(
        "text",
        {
            "x": x,
            "y": y,
            "text": {"field": "series", "type": "nominal"},
            "color": vega.make_color_scale(names),
        },
        [
            {"series": name, "size": str(point.size), field: getattr(point, field)}
            for name, point in ends.items()
            if len(names) > 1
        ],
        align="left",
        dx=10,
        fontWeight="bold",
    )


def mark_choice(chosen: Point, unit: str, x: Vega, y: Vega) -> list[Vega]:
    """A ring around the chosen point, and its figures beside it."""
    text = name_rate(chosen, unit)
    is_left = x["sort"].index(str(chosen.size)) >= len(x["sort"]) / 2
    data = [{"size": str(chosen.size), "rate": chosen.rate, "text": text}]
    return [
        vega.layer("point", {"x": x, "y": y}, data, size=320, strokeWidth=2, color="black", shape="circle"),
        vega.layer(
            "text",
            {"x": x, "y": y, "text": {"field": "text"}},
            data,
            align="right" if is_left else "left",
            dx=-14 if is_left else 14,
            dy=-16,
            color="black",
        ),
    ]


def draw_memory(report: Report, points: Sequence[Point], x: Vega, finding: BatchSizeFinding) -> Vega:
    """GiB from 0, the cap as a red line, and a dotted way to the size that ran out of memory."""
    names = name_series(points)
    y = {
        "field": "memory",
        "type": "quantitative",
        "axis": {**vega.make_y_title("memory of the fullest GPU, GiB"), "tickCount": 4},
    }
    measured = [point for point in points if point.memory is not None and not point.is_out_of_memory]
    color = vega.make_color_scale(names)
    layers: list[Vega] = [
        vega.layer("line", {"x": x, "y": y, "color": color}, strokeWidth=2.5),
        mark_points(x, y, names),
    ]
    cap = find_cap(report.facts.fixed)
    if cap is not None:
        layers.insert(0, draw_cap(cap, y))
    layers += mark_out_of_memory(points, x, y, cap)
    return {"data": to_values(measured, finding), "width": vega.WIDTH, "height": 110, "layer": layers}


def find_cap(fixed: Mapping[str, Any]) -> float | None:
    """The memory that the trials might take, in GiB."""
    cap = fixed.get("gpu_mem_cap_mib")
    return None if cap is None else float(cap) / MIB_PER_GIB


def draw_cap(cap: float, y: Vega) -> Vega:
    data = vega.embed([{"memory": cap, "text": f"cap {words.format_gib(cap * MIB_PER_GIB)} GiB"}])
    return {
        "data": data,
        "layer": [
            vega.layer("rule", {"y": y}, color=vega.ALARM, strokeWidth=2),
            vega.layer(
                "text", {"y": y, "text": {"field": "text"}}, align="left", x=6, dy=10, color=vega.ALARM
            ),
        ],
    }


def mark_out_of_memory(points: Sequence[Point], x: Vega, y: Vega, cap: float | None) -> list[Vega]:
    """Of each series the first size that ran out of memory: a cross, and a dotted line from the last that ran.

    It stands at the cap, else above all that ran: how much it wanted is not known."""
    highest = max((point.memory for point in points if point.memory is not None), default=0.0)
    layers: list[Vega] = []
    for series in dict.fromkeys(point.series for point in points):
        members = [point for point in points if point.series == series]
        last = max(
            (point for point in members if point.memory is not None and not point.is_out_of_memory),
            key=lambda point: point.size,
            default=None,
        )
        failed = min(
            (point for point in members if point.is_out_of_memory), key=lambda point: point.size, default=None
        )
        if last is None or failed is None:
            continue
        height = cap if cap is not None else UNKNOWN_HEIGHT * highest
        at_end: dict[str, Any] = {"size": str(failed.size), "memory": height}
        way = [{"size": str(last.size), "memory": last.memory}, at_end]
        cross = [{**at_end, "text": f"{failed.size:,}: out of memory"}]
        layers += [
            vega.layer("line", {"x": x, "y": y}, way, strokeDash=[2, 3], color=vega.CONTEXT),
            vega.layer(
                "point",
                {"x": x, "y": y},
                cross,
                shape="M-1,-1L1,1M-1,1L1,-1",
                size=60,
                strokeWidth=3,
                color=vega.ALARM,
            ),
            vega.layer(
                "text",
                {"x": x, "y": y, "text": {"field": "text"}},
                cross,
                align="right",
                dx=12,
                dy=-14,
                color=vega.ALARM,
            ),
        ]
    return layers
