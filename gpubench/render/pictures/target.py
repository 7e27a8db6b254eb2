"""Top-1 over the time of training, and who reaches the target first: the picture of `TargetFinding`."""

from __future__ import annotations

from gpubench.core.findings import TargetFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Row, Vega

HEIGHT = 300
SHIFTS = (-30, -63, -96, -129)
"""Pixels from a point up to the first line of its text; those of neighbours are unlike."""


def draw(report: Report, finding: TargetFinding) -> Vega | None:
    """A line a run that reached the target, with what it took at its end; runs that did not in grey. None where no
    run was judged twice."""
    traces = {row: trace for row, trace in report.training.items() if len(trace) > 1 and row in finding.rows}
    if not traces:
        return None
    ordered = [row for row in finding.order if row in traces]
    ordered += [row for row in traces if row not in finding.order]
    rows, left_out = vega.limit_rows(ordered, vega.MOST_SERIES)
    texts = [words.describe_run_to_target(report, row) for row in rows]
    names = dict(zip(rows, words.number_equal_names([name for name, _ in texts]), strict=True))
    points: list[Row] = []
    ends: list[Row] = []
    for row, (_, cost) in zip(rows, texts, strict=True):
        run: Row = {"series": names[row], "is_reached": row in finding.order}
        points += [{"seconds": seconds, "top1": top1, **run} for seconds, top1 in traces[row]]
        ends.append(
            {**points[-1], "text": [names[row], cost], "name": names[row], "is_sure": finding.word == "sure"}
        )
    reached, missed = (
        [[point for point in part if point["is_reached"] == is_reached] for part in (points, ends)]
        for is_reached in (True, False)
    )
    x: Vega = vega.make_number_axis(
        "seconds",
        {**vega.make_x_title("training time, s"), "tickCount": 8, "format": ",d"},
        [0, max(point["seconds"] for point in points)],
    )
    highest = max(finding.target_pct, *(point["top1"] for point in points))
    y: Vega = vega.make_number_axis(
        "top1",
        {**vega.make_y_title("top-1 on the validation images, %"), "tickCount": 5, "format": "d"},
        [0, 1.3 * highest],
    )
    color = vega.make_color_scale([end["series"] for end in reached[1]])
    place, series = {"x": x, "y": y}, {"field": "series"}
    layers = [
        vega.make_layer("line", {**place, "detail": series}, missed[0], color=vega.CONTEXT, strokeWidth=1.5),
        vega.make_layer("rule", {"y": y}, [{"top1": finding.target_pct}], strokeDash=[2, 3]),
        vega.make_layer("line", {**place, "color": color}, reached[0], strokeWidth=2.5),
        vega.make_circle_layer(x, y, color, 110, reached[1]),
        *(
            vega.make_text_layer({**place, "color": color}, some, align="right", dx=4, dy=dy, lineHeight=14)
            for some, dy in ((reached[1][n :: len(SHIFTS)], dy) for n, dy in enumerate(SHIFTS))
        ),
        vega.make_text_layer(place, missed[1], "name", align="left", dx=6, color=vega.CONTEXT),
    ]
    panel = vega.make_panel(layers, height=HEIGHT)
    key = left_out or "first epoch included, evaluation not"
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NUMBERS, key=key)
