"""What more devices bring: the picture of `DevicesFinding`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.core.findings import DevicesFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

ROW_HEIGHT = 26


def draw(report: Report, finding: DevicesFinding) -> Vega | None:
    """Dots with whiskers, a row a batch size, lines at 1 and at as many times as there are devices, efficiency at the
    margin; one panel for the same batch in all, one for the same batch a device. None without a comparison."""
    rows, left_out = vega.limit_rows(list_speed_up_rows(report, finding))
    figures = [max(row["ideal"], row["ratio"]) for row in rows]
    rows, end = vega.clip_intervals_to_axis(rows, [1.0, *figures], room=1.02)
    headings = {False: "times as fast, same batch in all", True: "times as fast, same batch a device"}
    panels = [
        draw_scaling_panel(some, heading, end)
        for is_weak, heading in headings.items()
        if (some := [row for row in rows if row["is_weak"] == is_weak])
    ]
    if not panels:
        return None
    return vega.compose_finding_picture(report, finding, panels, margin=vega.NAMES, key=left_out)


def list_speed_up_rows(report: Report, finding: DevicesFinding) -> list[dict[str, Any]]:
    names = words.name_rows_apart(report, [speed_up.claim.candidate for speed_up in finding.speed_ups])
    return [
        {
            "name": name,
            **vega.make_ratio_row(speed_up.claim),
            "ideal": speed_up.devices / speed_up.baseline_devices,
            "efficiency": f"{words.format_percent(speed_up.efficiency)} efficiency",
            "is_weak": speed_up.same_batch_a_device,
        }
        for speed_up, name in zip(finding.speed_ups, names, strict=True)
    ]


def draw_scaling_panel(rows: Sequence[dict[str, Any]], heading: str, end: float) -> Vega:
    """One kind of scaling. `end`: where the axis ends, which both kinds have in common."""
    y = vega.make_name_axis([row["name"] for row in rows])
    x: Vega = vega.make_number_axis("ratio", {**vega.make_x_title(heading), "grid": True}, [0, end])
    color = vega.make_direction_scale()
    ideals = sorted({row["ideal"] for row in rows})
    whiskers = {**vega.make_span("x", x, "low", "high"), "y": y, "color": color}
    layers = [
        vega.make_layer("rule", {"x": x}, [{"ratio": 1}]),
        vega.make_layer(
            "rule", {"x": x}, [{"ratio": ideal} for ideal in ideals], strokeDash=[5, 3], color=vega.CONTEXT
        ),
        vega.make_layer("rule", whiskers, strokeWidth=2),
        vega.make_circle_layer(x, y, color, 90),
        vega.make_text_layer(
            {"y": y}, None, "efficiency", align="left", x="width", dx=10, color=vega.CONTEXT
        ),
    ]
    return vega.make_panel(layers, rows, width=vega.NARROW, height=ROW_HEIGHT * len(rows) + 10)
