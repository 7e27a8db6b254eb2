"""Speed-up over the size of networks, and where it turns: the picture of `NetworkSizeFinding`."""

from __future__ import annotations

from typing import Any

from gpubench.core.findings import NetworkSizeFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Row, Vega

HEIGHT = 320


def draw(report: Report, finding: NetworkSizeFinding) -> Vega | None:
    """The picture; None where no network's size is known, or only one's. Above 1 more devices are faster, below they
    are slower; the ideal is a dashed line."""
    points, left_out = vega.limit_rows(list_network_points(report, finding))
    if len(points) < 2:
        return None
    powers = [10.0**power for power in range(-5, 5)]
    x: Vega = {
        "field": "gmacs",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 20},
        "axis": {**vega.make_x_title("GMACs an image (log)"), "format": "~g", "values": powers},
    }
    figures = [finding.devices, *(point["ratio"] for point in points)]
    points, top = vega.clip_intervals_to_axis(points, figures, room=1.05)
    bottom = 0.9 * min(0.5, *(point["low"] or point["ratio"] for point in points))
    y: Vega = vega.make_number_axis(
        "ratio", {**vega.make_y_title("times as fast"), "format": "~g", "tickCount": 6}, [bottom, top]
    )
    color = vega.make_direction_scale()
    devices = words.count_things(finding.devices, words.name_device_kind(report))
    ideal = [{"ratio": finding.devices, "text": f"ideal: {finding.devices} times"}]
    sides = [
        {"ratio": 1, "end": top, "shade": vega.FASTER},
        {"ratio": bottom, "end": 1, "shade": vega.SLOWER},
    ]
    shade = {"field": "shade", "type": "nominal", "scale": None}
    corner: dict[str, Any] = {"align": "right", "x": "width", "dx": -6}
    texts = [
        vega.make_text_layer(
            {"y": y}, [{"ratio": 1, "text": f"{devices} {text}"}], color=hue, dy=dy, **corner
        )
        for text, hue, dy in (("faster ↑", vega.FASTER, -10), ("slower ↓", vega.SLOWER, 12))
    ]
    place = {"x": x, "y": y}
    layers = [
        vega.make_layer("rect", {**vega.make_span("y", y, "ratio", "end"), "color": shade}, sides, opacity=0.07),
        vega.make_layer("rule", {"y": y}, ideal, strokeDash=[5, 3], color=vega.CONTEXT),
        vega.make_text_layer({"y": y}, ideal, align="left", x=8, dy=-8, color=vega.CONTEXT, fontSize=12),
        vega.make_layer("rule", {"y": y}, [{"ratio": 1}]),
        *texts,
        *draw_crossover_band(points, finding, x),
        vega.make_layer("rule", {"x": x, **vega.make_span("y", y, "low", "high"), "color": color}, strokeWidth=2),
        vega.make_circle_layer(x, y, color, 90),
        # Aslant, so that those of networks of about one size stand beside each other.
        vega.make_text_layer(place, None, "name", align="left", dx=9, dy=0, angle=-35, color=vega.COLORS[6]),
    ]  # fmt: skip
    panel = vega.make_panel(layers, points, height=HEIGHT)
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NUMBERS, key=left_out)


def list_network_points(report: Report, finding: NetworkSizeFinding) -> list[Row]:
    """A point a network: its size in GMACs, how many times as fast, the 95 % interval, how sure."""
    return [
        {
            "name": words.name_network(report, claim.candidate),
            "gmacs": report.figures[claim.candidate]["gmacs_per_image"],
            **vega.make_ratio_row(claim),
        }
        for claim in finding.claims
        if report.figures[claim.candidate]["gmacs_per_image"]
    ]


def draw_crossover_band(points: list[Row], finding: NetworkSizeFinding, x: Vega) -> list[Vega]:
    """A grey band between the largest network that is not faster for sure and the smallest from which all are."""
    if finding.first_faster is None or finding.gmacs is None:
        return []
    smaller = [point["gmacs"] for point in points if point["gmacs"] < finding.gmacs]
    if not smaller:
        return []
    data = [{"gmacs": max(smaller), "end": finding.gmacs}]
    turn = [{"gmacs": finding.gmacs, "text": "← it turns here"}]
    return [
        vega.make_layer("rect", {"x": x, "x2": {"field": "end"}}, data, color=vega.CONTEXT, opacity=0.25),
        vega.make_text_layer({"x": x}, turn, align="left", dx=6, y=HEIGHT - 8),
    ]
