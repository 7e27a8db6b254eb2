"""Speed-up over the size of networks, and where it turns: the picture of `NetworkSizeFinding`."""

from __future__ import annotations

import math
from typing import Any

from gpubench.core.findings import NetworkSizeFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.labels import label_points
from gpubench.render.pictures.vega import Vega

HEIGHT = 320
PADDING = 20
"""Pixels on either side of the points."""


def place_points(points: list[dict[str, Any]], lowest: float, highest: float) -> list[tuple[float, float]]:
    """Where Vega draws the points in a panel of WIDTH x HEIGHT pixels whose vertical axis has these ends."""
    logs = [math.log(point["gmacs"]) for point in points]
    scale = (vega.WIDTH - 2 * PADDING) / ((max(logs) - min(logs)) or 1.0)
    return [
        (PADDING + (log - min(logs)) * scale, HEIGHT * (highest - point["ratio"]) / (highest - lowest))
        for log, point in zip(logs, points, strict=True)
    ]


def draw(report: Report, finding: NetworkSizeFinding) -> Vega | None:
    """The picture; None where no network's size is known, or only one's."""
    points, left_out = vega.limit_rows(list_networks(report, finding))
    if len(points) < 2:
        return None
    x: Vega = {
        "field": "gmacs",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": PADDING},
        "axis": {
            **vega.make_x_title("GMACs an image (log)"),
            "format": "~g",
            "values": [10.0**power for power in range(-5, 5)],
        },
    }
    figures = [finding.devices, *(point["ratio"] for point in points)]
    top = 1.05 * vega.find_end(figures, [point["high"] for point in points])
    bottom = 0.9 * min(0.5, *(point["low"] or point["ratio"] for point in points))
    points = [{**point, "high": vega.cut_interval(point["high"], top)} for point in points]
    y: Vega = vega.make_number(
        "ratio", {**vega.make_y_title("times as fast"), "format": "~g", "tickCount": 6}, [bottom, top]
    )
    layers = [
        *shade_sides(report, finding, bottom, top, y),
        *mark_turn(points, finding, x),
        vega.layer(
            "rule",
            {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": vega.make_side_scale()},
            strokeWidth=2,
        ),
        vega.mark_dots(x, y, vega.make_side_scale(), 90),
        *label_points(points, place_points(points, bottom, top), {"x": x, "y": y}),
    ]
    panel = {"data": vega.embed(points), "width": vega.WIDTH, "height": HEIGHT, "layer": layers}
    return vega.compose(
        report, words.title_finding(report, finding), [panel], margin=vega.NUMBERS, key=left_out
    )


def list_networks(report: Report, finding: NetworkSizeFinding) -> list[dict[str, Any]]:
    """A point a network: its size in GMACs, how many times as fast, the 95 % interval, how sure."""
    return [
        {
            "name": words.name_network(report, claim.candidate),
            "gmacs": report.figures[claim.candidate]["gmacs_per_image"],
            "ratio": words.measure_claim(claim),
            "low": claim.decided.low,
            "high": claim.decided.high,
            "is_sure": claim.decided.word == "sure",
            "side": "unknown" if claim.decided.word == "unknown" else claim.decided.direction,
        }
        for claim in finding.claims
        if report.figures[claim.candidate]["gmacs_per_image"]
    ]


def shade_sides(
    report: Report, finding: NetworkSizeFinding, lowest: float, highest: float, y: Vega
) -> list[Vega]:
    """Above 1 more devices are faster, below they are slower; the ideal is a dashed line."""
    devices = words.count_things(finding.devices, words.name_device(report))
    ideal = vega.embed([{"ratio": finding.devices, "text": f"ideal: {finding.devices} times"}])
    sides = [
        {"ratio": 1, "end": highest, "shade": vega.FASTER},
        {"ratio": lowest, "end": 1, "shade": vega.SLOWER},
    ]
    texts = [
        {"ratio": 1, "text": f"{devices} faster ↑", "shade": vega.FASTER, "shift": -10},
        {"ratio": 1, "text": f"{devices} slower ↓", "shade": vega.SLOWER, "shift": 12},
    ]
    shade = {"field": "shade", "type": "nominal", "scale": None}
    return [
        vega.layer("rect", {"y": y, "y2": {"field": "end"}, "color": shade}, sides, opacity=0.07),
        {
            "data": ideal,
            "layer": [
                vega.layer("rule", {"y": y}, strokeDash=[5, 3], color=vega.CONTEXT),
                vega.layer(
                    "text", {"y": y, "text": {"field": "text"}}, align="left", x=8, dy=-8, color=vega.CONTEXT
                ),
            ],
        },
        vega.layer("rule", {"y": y}, [{"ratio": 1}]),
        *(
            vega.layer(
                "text",
                {"y": y, "text": {"field": "text"}, "color": shade},
                [value],
                align="right",
                x="width",
                dx=-6,
                dy=value["shift"],
                fontSize=11,
            )
            for value in texts
        ),
    ]


def mark_turn(points: list[dict[str, Any]], finding: NetworkSizeFinding, x: Vega) -> list[Vega]:
    """A grey band between the largest network that is not faster for sure and the smallest from which all are."""
    if finding.first_faster is None or finding.gmacs is None:
        return []
    smaller = [point["gmacs"] for point in points if point["gmacs"] < finding.gmacs]
    if not smaller:
        return []
    data = [{"gmacs": max(smaller), "end": finding.gmacs}]
    return [
        vega.layer("rect", {"x": x, "x2": {"field": "end"}}, data, color=vega.CONTEXT, opacity=0.25),
        vega.layer(
            "text",
            {"x": x, "text": {"value": "← it turns here"}},
            [{"gmacs": finding.gmacs}],
            align="left",
            dx=6,
            y=312,
            fontSize=11,
        ),
    ]
