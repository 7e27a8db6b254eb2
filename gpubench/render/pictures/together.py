"""What groups of jobs get done together, against one after the other: the picture of `SharingFinding`."""

from __future__ import annotations

from typing import Any

from gpubench.core.findings import SharingFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

ROW_HEIGHT = 44


def draw(report: Report, finding: SharingFinding) -> Vega | None:
    """A row a group: its work as a dot with the bound that its word rests on, a tick at no loss at all, what was
    predicted before as a hollow triangle above. None where no group's work is known."""
    groups, left_out = vega.limit_rows(list_group_rows(report, finding))
    if not groups:
        return None
    names = [group["name"] for group in groups]
    predicted = [group for group in groups if group["predicted"] is not None]
    works = [1.0, *(group["work"] for group in groups), *(group["predicted"] for group in predicted)]
    most = max(*works, *(group["jobs"] for group in groups))
    y = vega.make_name_axis(names)
    ticks = {"values": list(range(1, int(most) + 1)), "format": "d"}
    axis = vega.make_x_title("work done together (1: as one after the other)") | ticks
    x = vega.make_number_axis("work", axis, [0.9 * min(works), 1.05 * most])
    looks = [vega.COLORS[0], vega.COLORS[1], vega.CONTEXT]
    color = vega.make_category_scale("gains", ["gain", "none", "unknown"], looks)
    triangle: Vega = {
        "shape": "triangle-down",
        "size": 60,
        "yOffset": -15,
        "color": "#3A3F45",
        "filled": False,
    }
    jobs = {"x": {**x, "field": "jobs"}, "y": y}
    layers = [
        vega.make_layer("bar", {**vega.make_span("x", x, "alone", "jobs"), "y": y}, size=12, color="#e6e8eb"),
        vega.make_layer("tick", jobs, size=22, thickness=2, color=vega.CONTEXT),
        vega.make_layer("rule", {"x": x}, [{"work": 1}]),
        vega.make_layer("rule", {"x": x, "x2": {"field": "bound"}, "y": y, "color": color}, strokeWidth=3),
        vega.make_circle_layer(x, y, color, 120),
        vega.make_layer("point", {"x": {**x, "field": "predicted"}, "y": y}, predicted, **triangle),
        vega.make_text_layer(
            {"y": y, "color": color}, None, align="left", x="width", dx=10, fontWeight="bold", fontSize=12
        ),
    ]
    panel = vega.make_panel(layers, groups, width=vega.NARROW, height=ROW_HEIGHT * len(groups))
    gains = {group["gains"] for group in groups}
    key = left_out or words.format_gains_legend(gains, has_predictions=bool(predicted))
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NAMES, key=key)


def list_group_rows(report: Report, finding: SharingFinding) -> list[dict[str, Any]]:
    """A row a group whose work is known: its name, its work with the bound, and what was predicted."""
    known = [(group, group.work) for group in finding.groups if group.work is not None]
    names = words.number_equal_names([words.name_group(report, group) for group, _ in known])
    return [
        {
            "name": name,
            "alone": 1,
            "jobs": group.jobs,
            "work": work,
            "bound": work if group.bound is None else group.bound,
            "predicted": group.predicted_work,
            "text": f"{words.format_ratio(work)} times{words.format_work_bound(group)}",
            "is_sure": group.word == "sure",
            "gains": "unknown" if group.gains is None else "gain" if group.gains else "none",
        }
        for (group, work), name in zip(known, names, strict=True)
    ]
