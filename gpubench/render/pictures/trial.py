"""One trial over its life: GPU and CPU use, memory and power, with its phases."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from gpubench.core.report import Report
from gpubench.core.trace import TrialTrace
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

NAME_PIXELS = 80
"""From the beginning of one phase's name to that of the next, of which a column of a paper leaves 48: nearer ones would
run into each other."""
HEADINGS = {
    "gpu_util_pct": "GPU use, %",
    "cpu_util_pct": "CPU use, %",
    "gpu_mem_mib": "memory of a GPU, MiB",
    "power_w": "power of a GPU, W",
}


def draw(report: Report, trace: TrialTrace) -> Vega:
    """A panel a metric: the mean of the GPUs, a pale band from the least to the most of one, what was measured shaded
    and named."""
    ends = [point.seconds for points in trace.panels.values() for point in points]
    end = max([*ends, *(phase.end for phase in trace.phases)])
    columns = list(trace.panels)
    panels = [
        draw_metric_panel(trace, column, end, is_first=column == columns[0], is_last=column == columns[-1])
        for column in columns
    ]
    title = words.format_trial_title(report, trace)
    return vega.compose_picture(report, title, panels, margin=vega.NUMBERS, key=f"trial {trace.trial_id}")


def draw_metric_panel(trace: TrialTrace, column: str, end: float, *, is_first: bool, is_last: bool) -> Vega:
    points = trace.panels[column]
    is_share = column.endswith("_pct")
    top = 100.0 if is_share else 1.05 * max(point.high for point in points)
    x: Vega = vega.make_number_axis(
        "seconds",
        {**vega.make_x_title("seconds since its launch"), "format": "~g"} if is_last else None,
        [0, end],
    )
    y: Vega = vega.make_number_axis(
        "mean", {**vega.make_y_title(HEADINGS[column]), "tickCount": 3, "format": ",d"}, [0, top]
    )
    measured = [phase for phase in trace.phases if phase.is_measured]
    shades = [{"seconds": phase.begin, "end": phase.end, "name": phase.name} for phase in measured]
    detail = {"field": "piece"}
    spread = {"x": x, **vega.make_span("y", y, "low", "high"), "detail": detail}
    layers = [
        vega.make_layer("rect", vega.make_span("x", x, "seconds", "end"), shades, color=vega.BAND, opacity=0.1),
        vega.make_layer("area", spread, color=vega.BAND, opacity=0.25),
        vega.make_layer("line", {"x": x, "y": y, "detail": detail}, color=vega.BAND, strokeWidth=1.5),
    ]  # fmt: skip
    if is_first:
        names = list_phase_labels(trace, end)
        layers.append(vega.make_text_layer({"x": x}, names, "name", align="left", dx=3, y=-5, fontSize=10))
    return vega.make_panel(layers, list(map(asdict, points)), width=vega.WIDTH + 80, height=70)


def list_phase_labels(trace: TrialTrace, end: float) -> list[dict[str, Any]]:
    """The names of phases where they begin; of those that are too near to the last named one none."""
    names: list[dict[str, Any]] = []
    for phase in trace.phases:
        if not names or (phase.begin - names[-1]["seconds"]) / end * (vega.WIDTH + 80) >= NAME_PIXELS:
            names.append({"seconds": phase.begin, "name": phase.name})
    return names
