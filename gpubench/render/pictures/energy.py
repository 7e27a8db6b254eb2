"""Energy against time of an epoch, with the rows that no other beats in both."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.labels import label_points
from gpubench.render.pictures.vega import Vega

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
    """A point a row that ran alone, one colour a strategy; the front joined and named, lines of equal power in grey.
    None under two rows with energy, and where their epochs are unlike work."""
    rows = [
        row
        for row in vega.list_alone(report)
        if report.figures[row]["energy_j"] and report.figures[row]["epoch_time_s"]
    ]
    works = {tuple(str(report.labels[row].get(name)) for name in EPOCH_FIELDS) for row in rows}
    if len(rows) < 2 or len(works) > 1:
        return None
    front = find_front(report.figures, rows)
    kept, left_out = vega.limit_rows([*front, *(row for row in rows if row not in front)], MOST_POINTS)
    rows = sorted(kept, key=rows.index)
    series = {row: name_strategy(report, row) for row in rows}
    colors = list(dict.fromkeys(series.values()))
    names = dict(zip(rows, words.name_apart(report, rows), strict=True))
    points = [
        {
            "seconds": report.figures[row]["epoch_time_s"],
            "joules": report.figures[row]["energy_j"],
            "series": series[row],
            "name": names[row],
            "is_best": row in front,
        }
        for row in rows
    ]
    best = [points[rows.index(row)] for row in front]
    seconds, joules = ([point[name] for point in points] for name in ("seconds", "joules"))
    is_log = max(max(values) / min(values) for values in (seconds, joules)) > FAR
    x = make_axis("seconds", seconds, is_log=is_log)
    y = make_axis("joules", joules, is_log=is_log)
    x["axis"] = {
        **vega.make_x_title(f"time of an epoch, s{' (log)' * is_log}"),
        "tickCount": 7,
        "format": "~g",
    }
    y["axis"] = {
        **vega.make_y_title(f"energy of an epoch, J{' (log)' * is_log}"),
        "tickCount": 6,
        "format": ",d",
        "grid": False,
    }
    color = vega.make_color_scale(colors)
    layers: list[Vega] = [
        *draw_powers(points, x, y),
        vega.layer("line", {"x": x, "y": y}, best, color=vega.CONTEXT, strokeDash=[4, 3]),
        vega.layer(
            "point",
            {
                "x": x,
                "y": y,
                "color": color,
                "size": {"condition": {"test": "datum.is_best", "value": 110}, "value": 40},
                "opacity": {"condition": {"test": "datum.is_best", "value": 1}, "value": 0.6},
            },
            shape="circle",
            filled=True,
        ),
        *label_ends(points, best, x, y, color, is_named=len(colors) > 1),
    ]
    panel = {"data": vega.embed(points), "width": vega.WIDTH, "height": HEIGHT, "layer": layers}
    key = left_out or "large: beaten in both by no other"
    title = words.title_energy(report, rows, front)
    return vega.compose(report, title, [panel], margin=vega.NUMBERS, key=key)


def find_front(figures: Mapping[int, Mapping[str, Any]], rows: Sequence[int]) -> list[int]:
    """The rows that no other beats, by being as good in both and better in one; the quickest first."""
    front: list[int] = []
    for row in sorted(rows, key=lambda row: (figures[row]["epoch_time_s"], figures[row]["energy_j"])):
        if not front or figures[row]["energy_j"] < figures[front[-1]]["energy_j"]:
            front.append(row)
    return front


def name_strategy(report: Report, row: int) -> str:
    """Devices and strategy of a row, by which points are coloured."""
    names = ("gpus", "ranks", "nodes", "strategy")
    return words.name_row({name: report.labels[row].get(name) for name in names})


def make_axis(field: str, values: Sequence[float], *, is_log: bool) -> Vega:
    """From 0, or by a logarithm from below the least, to above the most."""
    low = min(values) / 1.25 if is_log else 0
    scale = {"type": "log" if is_log else "linear", "domain": [low, 1.15 * max(values)], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale}


def draw_powers(points: Sequence[Mapping[str, Any]], x: Vega, y: Vega) -> list[Vega]:
    """Lines of equal power through the picture, with their watts at the upper end."""
    watts_of_points = [point["joules"] / point["seconds"] for point in points]
    (left, right), (low, high) = x["scale"]["domain"], y["scale"]["domain"]
    lines: list[dict[str, Any]] = []
    ends: list[dict[str, Any]] = []
    for watts in POWERS:
        if min(watts_of_points) / 1.3 < watts < 1.3 * max(watts_of_points):
            begin, end = max(left, low / watts), min(right, high / watts)
            lines += [{"watts": watts, "seconds": at, "joules": watts * at} for at in (begin, end)]
            ends.append({"seconds": end, "joules": watts * end, "text": f"{watts:,} W"})
    grey = {"color": "#d5d8dc"}
    return [
        vega.layer("line", {"x": x, "y": y, "detail": {"field": "watts"}}, lines, strokeWidth=1, **grey),
        vega.layer(
            "text",
            {"x": x, "y": y, "text": {"field": "text"}},
            ends,
            align="left",
            dx=3,
            dy=-4,
            fontSize=10,
            color=vega.CONTEXT,
        ),
    ]


def label_ends(
    points: Sequence[Mapping[str, Any]],
    front: Sequence[Mapping[str, Any]],
    x: Vega,
    y: Vega,
    color: Vega,
    *,
    is_named: bool,
) -> list[Vega]:
    """The names of the quickest and the most frugal, and, where there are several colours (`is_named`), that of each
    beside its highest point."""
    named = [front[0], front[-1]][: len(front)]
    if is_named:
        for series in dict.fromkeys(point["series"] for point in points):
            highest = max((p for p in points if p["series"] == series), key=lambda p: p["joules"])
            if highest not in named:
                named.append({**highest, "name": series})
    rest = [point for point in points if not any(point["joules"] == label["joules"] for label in named)]
    return label_points(
        named,
        [place_point(point, x, y) for point in named],
        {"x": x, "y": y, "color": color},
        unnamed=[place_point(point, x, y) for point in rest],
    )


def place_point(point: Mapping[str, Any], x: Vega, y: Vega) -> tuple[float, float]:
    """Where Vega draws a point, in pixels from the upper left of the panel."""
    shares = []
    for axis in (x, y):
        value, (low, high) = point[axis["field"]], axis["scale"]["domain"]
        if axis["scale"]["type"] == "log":
            value, low, high = math.log(value), math.log(low), math.log(high)
        shares.append((value - low) / (high - low))
    return vega.WIDTH * shares[0], HEIGHT * (1 - shares[1])
