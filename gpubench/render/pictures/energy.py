"""Energy against time of an epoch, with the rows that no other beats in both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Row, Vega

POWERS = (50, 100, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 4000)
"""Watts of lines of equal power; those near the points are drawn."""
EPOCH_FIELDS = ("model", "width", "input_size", "train_images")
"""Fields that say what an epoch computes: of another network, or of fewer images, less energy is no saving."""
MOST_POINTS = 300
"""More make files large."""
HEIGHT = 320
FAR = 6.0
"""Times the least, from which on an axis from 0 would press most points together."""


def draw(report: Report) -> Vega | None:
    """A point a row that ran alone, one colour a strategy; the front joined, its ends named, lines of equal power in
    grey. None under two rows with energy, and where their epochs are unlike work."""
    rows = [
        row
        for row in vega.list_solo_rows(report)
        if report.figures[row]["energy_j"] and report.figures[row]["epoch_time_s"]
    ]
    works = {tuple(str(report.labels[row].get(name)) for name in EPOCH_FIELDS) for row in rows}
    if len(rows) < 2 or len(works) > 1:
        return None
    front = find_pareto_front(report.figures, rows)
    kept, left_out = vega.limit_rows([*front, *(row for row in rows if row not in front)], MOST_POINTS)
    names = dict(zip(kept, words.name_rows_apart(report, kept), strict=True))
    points = [
        {
            "seconds": report.figures[row]["epoch_time_s"],
            "joules": report.figures[row]["energy_j"],
            "series": name_devices_and_strategy(report, row),
            "name": names[row],
            "is_best": row in front,
        }
        for row in rows
        if row in kept
    ]
    best = sorted((point for point in points if point["is_best"]), key=lambda point: point["seconds"])
    is_log = any(
        max(point[field] for point in points) > FAR * min(point[field] for point in points)
        for field in ("seconds", "joules")
    )
    x, y = (make_linear_or_log_axis(field, points, is_log=is_log) for field in ("seconds", "joules"))
    ending = " (log)" * is_log
    x["axis"] = {**vega.make_x_title(f"time of an epoch, s{ending}"), "tickCount": 7, "format": "~g"}
    y["axis"] = {**vega.make_y_title(f"energy of an epoch, J{ending}"), "tickCount": 6, "format": ",d"}
    y["axis"]["grid"] = False
    series = list(dict.fromkeys(point["series"] for point in points))
    color, shape = (make(series) for make in (vega.make_color_scale, vega.make_shape_scale))
    if len(series) > 1:
        color["legend"] = shape["legend"] = {"title": None, "orient": "top"}
    marks = {
        "x": x,
        "y": y,
        "color": color,
        "shape": shape,
        "size": {"condition": {"test": "datum.is_best", "value": 110}, "value": 40},
        "opacity": {"condition": {"test": "datum.is_best", "value": 1}, "value": 0.6},
    }
    place = {"x": x, "y": y}
    name: Vega = {"field": "name", "align": "left", "color": vega.COLORS[6]}
    layers = [
        *draw_power_lines(points, x, y),
        vega.make_layer("line", place, best, color=vega.CONTEXT, strokeDash=[4, 3]),
        vega.make_layer("point", marks, filled=True),
        vega.make_text_layer(place, best[:1], dx=10, dy=-10, **name),
        vega.make_text_layer(place, best[1:][-1:], dx=4, dy=16, **name),
    ]
    title = words.format_energy_title(report, rows, front)
    panel = vega.make_panel(layers, points, height=HEIGHT)
    key = left_out or "large: beaten in both by no other"
    return vega.compose_picture(report, title, [panel], margin=vega.NUMBERS, key=key)


def find_pareto_front(figures: Mapping[int, Mapping[str, Any]], rows: Sequence[int]) -> list[int]:
    """The rows that no other beats, by being as good in both and better in one; the quickest first."""
    front: list[int] = []
    for row in sorted(rows, key=lambda row: (figures[row]["epoch_time_s"], figures[row]["energy_j"])):
        if not front or figures[row]["energy_j"] < figures[front[-1]]["energy_j"]:
            front.append(row)
    return front


def name_devices_and_strategy(report: Report, row: int) -> str:
    """Devices and strategy of a row, by which points are coloured."""
    names = ("gpus", "ranks", "nodes", "strategy")
    return words.name_row({name: report.labels[row].get(name) for name in names})


def make_linear_or_log_axis(field: str, points: Sequence[Row], *, is_log: bool) -> Vega:
    """From 0, or by a logarithm from below the least, to above the most."""
    values = [point[field] for point in points]
    low = min(values) / 1.25 if is_log else 0
    scale = {"type": "log" if is_log else "linear", "domain": [low, 1.15 * max(values)], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale}


def draw_power_lines(points: Sequence[Row], x: Vega, y: Vega) -> list[Vega]:
    """Lines of equal power through the picture, with their watts at the upper end."""
    watts_of_points = [point["joules"] / point["seconds"] for point in points]
    (left, right), (low, high) = x["scale"]["domain"], y["scale"]["domain"]
    lines = []
    for watts in POWERS:
        if min(watts_of_points) / 1.3 < watts < 1.3 * max(watts_of_points):
            ends = max(left, low / watts), min(right, high / watts)
            lines += [
                {"watts": watts, "seconds": at, "joules": watts * at, "text": f"{watts:,} W"} for at in ends
            ]
    detail = {"x": x, "y": y, "detail": {"field": "watts"}}
    return [
        vega.make_layer("line", detail, lines, strokeWidth=1, color="#d5d8dc"),
        vega.make_text_layer(
            {"x": x, "y": y}, lines[1::2], align="left", dx=3, dy=-4, fontSize=10, color=vega.CONTEXT
        ),
    ]
