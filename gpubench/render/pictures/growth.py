"""Rate and memory along the batch size, with the size to take: the picture of `BatchSizeFinding`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.core.findings import BatchSizeFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Row, Vega

MIB_PER_GIB = 1024
SECONDS_PER_HOUR = 3600
UNKNOWN_HEIGHT = 1.15
"""Times the most memory that was measured: where a size that ran out stands if nobody knows what there was."""
TOLERANCE = 0.05
"""The recommended size is within this share of the best rate (`stats.choice`)."""


def draw(report: Report, finding: BatchSizeFinding) -> Vega | None:
    """The picture; None where fewer than two sizes have a rate."""
    points = list_batch_size_points(report)
    if len({point["size"] for point in points if point["rate"] is not None}) < 2:
        return None
    choice = finding.choice.row if finding.choice else None
    points.sort(key=lambda point: point["row"] != choice)  # so that its series is among those that are drawn
    names, left_out = vega.limit_rows(list(dict.fromkeys(p["series"] for p in points)), vega.MOST_SERIES)
    points = sorted((p for p in points if p["series"] in names), key=lambda point: point["number"])
    names = list(dict.fromkeys(point["series"] for point in points))
    for point in points:
        point["is_sure"] = finding.word == "sure" and point["low"] is not None
    has_memory = any(point["memory"] is not None for point in points)
    panels = [draw_rates_by_batch_size(report, points, names, finding, is_labelled=not has_memory)]
    if has_memory:
        cap = report.facts.fixed.get("gpu_mem_cap_mib")
        cap = None if cap is None else float(cap) / MIB_PER_GIB
        panels.append(draw_memory_by_batch_size(points, names, cap))
    return vega.compose_finding_picture(report, finding, panels, margin=vega.NUMBERS, key=left_out)


def list_batch_size_points(report: Report) -> list[Row]:
    """The sizes of each series that ran alone, in their order; of those that were skipped after one ran out of memory
    that one stands. Rates are in images/s, of a published log, whose images are not known, in epochs an hour."""
    endings = {
        label: row.status if not place else "skipped"
        for row in report.rows
        for place, label in enumerate(row.labels)
    }
    rows = [row for row in vega.list_solo_rows(report) if endings.get(row, "ok") in ("ok", "oom")]
    fields = {
        row: {name: value for name, value in report.labels[row].items() if name != "batch_size"}
        for row in rows
    }
    distinct = {str(label): label for label in fields.values()}
    names = words.number_equal_names([words.name_row(label) for label in distinct.values()])
    series = dict(zip(distinct, names, strict=True))
    knows_images = has_image_rates(report)
    points = []
    for row in rows:
        figures, size = report.figures[row], report.labels[row]["batch_size"]
        seconds, low, high, memory = (
            figures[name] for name in ("epoch_time_s", "epoch_time_low_s", "epoch_time_high_s", "gpu_mem_mib")
        )
        work = figures["images_per_s"] * seconds if knows_images and seconds else SECONDS_PER_HOUR
        points.append(
            {
                "series": series[str(fields[row])],
                "size": str(size),
                "number": size,
                "row": row,
                "rate": work / seconds if seconds else None,
                "low": work / high if high else None,
                "high": work / low if low else None,
                "memory": None if memory is None else memory / MIB_PER_GIB,
                "is_oom": endings.get(row) == "oom",
            }
        )
    return sorted(points, key=lambda point: point["number"])


def has_image_rates(report: Report) -> bool:
    return all(figures["images_per_s"] for figures in report.figures.values() if figures["epoch_time_s"])


def make_batch_size_axis(points: Sequence[Row], *, is_labelled: bool) -> Vega:
    """Batch sizes as equal steps; only the lowest panel says their numbers."""
    domain = list(dict.fromkeys(point["size"] for point in points))
    return {
        "field": "size",
        "type": "ordinal",
        "sort": domain,
        "scale": {"domain": domain, "type": "point"},
        "axis": {**vega.make_x_title("batch size, images")} if is_labelled else None,
    }


def draw_rates_by_batch_size(
    report: Report,
    points: Sequence[Row],
    names: Sequence[str],
    finding: BatchSizeFinding,
    *,
    is_labelled: bool,
) -> Vega:
    """Rates from 0, a line a series named at its end, the band that the choice was made from, and a ring around it."""
    unit = "images/s" if has_image_rates(report) else "epochs an hour"
    x = make_batch_size_axis(points, is_labelled=is_labelled)
    y = {
        "field": "rate",
        "type": "quantitative",
        "axis": {**vega.make_y_title(unit), "format": ",d", "tickCount": 6},
    }
    measured = [point for point in points if point["rate"] is not None]
    measured, _ = vega.clip_intervals_to_axis(measured, [point["rate"] for point in measured])
    color = vega.make_color_scale(names)
    ends = list({point["series"]: point for point in measured}.values()) if len(names) > 1 else []
    place = {"x": x, "y": y, "color": color}
    whiskers = {"x": x, **vega.make_span("y", y, "low", "high"), "color": color}
    layers = [
        vega.make_layer("rule", whiskers, opacity=0.7),
        vega.make_layer("line", place, strokeWidth=2.5),
        vega.make_series_point_layer(x, y, names),
        vega.make_text_layer(place, ends, "series", align="left", dx=10, fontWeight="bold", fontSize=12),
    ]
    choice = finding.choice
    if choice is not None:
        best = max(point["rate"] for point in measured if point["row"] in choice.series)
        band = [{"least": (1 - TOLERANCE) * best, "best": best}]
        heights: Vega = {"y": {"field": "least", "type": "quantitative"}, "y2": {"field": "best"}}
        layers.insert(0, vega.make_layer("rect", heights, band, color=vega.BAND, opacity=0.12))
        (chosen,) = (point for point in measured if point["row"] == choice.row)
        layers += draw_choice_ring(chosen, unit, x, y)
    return vega.make_panel(layers, measured, height=240)


def draw_choice_ring(chosen: Row, unit: str, x: Vega, y: Vega) -> list[Vega]:
    """A ring around the chosen point, and its figures beside it."""
    text = f"{words.format_axis_value(chosen['number'])}: {words.format_significant(chosen['rate'])} {unit}"
    side = -1 if x["sort"].index(chosen["size"]) >= len(x["sort"]) / 2 else 1
    data = [{"size": chosen["size"], "rate": chosen["rate"], "text": text}]
    align = "right" if side < 0 else "left"
    place = {"x": x, "y": y}
    return [
        vega.make_layer("point", place, data, size=320, strokeWidth=2, color="black", shape="circle"),
        vega.make_text_layer(place, data, align=align, dx=14 * side, dy=-16, color="black", fontSize=12),
    ]


def draw_memory_by_batch_size(points: Sequence[Row], names: Sequence[str], cap: float | None) -> Vega:
    """GiB from 0, the cap as a red line, and of each series a dotted way to a cross at the first size that ran out of
    memory: at the cap, else above all that ran, for how much it wanted is not known."""
    x = make_batch_size_axis(points, is_labelled=True)
    y = {
        "field": "memory",
        "type": "quantitative",
        "axis": {**vega.make_y_title("memory of the fullest GPU, GiB"), "tickCount": 4},
    }
    measured = [point for point in points if point["memory"] is not None and not point["is_oom"]]
    highest = max((point["memory"] for point in points if point["memory"] is not None), default=0.0)
    crosses: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []
    for name in names:
        last = [point for point in measured if point["series"] == name][-1:]
        for failed in [point for point in points if point["series"] == name and point["is_oom"]][: len(last)]:
            height = UNKNOWN_HEIGHT * highest if cap is None else cap
            cross = {"size": failed["size"], "memory": height, "series": name}
            crosses.append({**cross, "text": f"{failed['number']:,}: out of memory"})
            ways += [{"size": last[0]["size"], "memory": last[0]["memory"], "series": name}, cross]
    line = [] if cap is None else [{"memory": cap, "text": f"cap {words.format_gib(cap * MIB_PER_GIB)} GiB"}]
    shape = "M-1,-1L1,1M-1,1L1,-1"
    place = {"x": x, "y": y}
    alarm: Vega = {"color": vega.ALARM, "fontSize": 12}
    layers = [
        vega.make_layer("rule", {"y": y}, line, color=vega.ALARM, strokeWidth=2),
        vega.make_text_layer({"y": y}, line, align="left", x=6, dy=10, **alarm),
        vega.make_layer("line", {**place, "color": vega.make_color_scale(names)}, strokeWidth=2.5),
        vega.make_series_point_layer(x, y, names),
        vega.make_layer("line", {**place, "detail": {"field": "series"}}, ways, strokeDash=[2, 3], color=vega.CONTEXT),
        vega.make_layer("point", place, crosses, shape=shape, size=60, strokeWidth=3, color=vega.ALARM),
        vega.make_text_layer(place, crosses, align="right", dx=12, dy=-14, **alarm),
    ]  # fmt: skip
    return vega.make_panel(layers, measured, height=110)
