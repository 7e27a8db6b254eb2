"""Top-1 over the time of training, and who reaches the target first: the picture of `TargetFinding`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpubench.core.findings import TargetFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.labels import LETTER_PIXELS, Box
from gpubench.render.pictures.vega import Vega

HEIGHT = 300
SHIFTS = (-30, -58, -86, -114)
"""Pixels from a point up to the first line of its text, the best first."""


def draw(report: Report, finding: TargetFinding) -> Vega | None:
    """A line a run that reached the target, with what it took at its end; runs that did not in grey. None where no
    run was judged twice."""
    traces = {row: trace for row, trace in report.training.items() if len(trace) > 1 and row in finding.rows}
    if not traces:
        return None
    rows, left_out = vega.limit_rows(list_runs(finding, traces), vega.MOST_SERIES)
    runs = name_runs(report, rows)
    reached = {row: name for row, name in runs.items() if row in finding.order}
    unreached = {row: name for row, name in runs.items() if row not in finding.order}
    x: Vega = vega.make_number(
        "seconds",
        {**vega.make_x_title("training time, s"), "tickCount": 8, "format": ",d"},
        [0, max(seconds for row in rows for seconds, _ in traces[row])],
    )
    highest = max(top1 for trace in traces.values() for _, top1 in trace)
    y: Vega = vega.make_number(
        "top1",
        {**vega.make_y_title("top-1 on the validation images, %"), "tickCount": 5, "format": "d"},
        [0, max(finding.target_pct, highest) * 1.3],
    )
    color = vega.make_color_scale([*reached.values()])
    layers: list[Vega] = [
        vega.layer(
            "line",
            {"x": x, "y": y, "detail": {"field": "run"}},
            [
                {"seconds": seconds, "top1": top1, "run": name}
                for row, name in unreached.items()
                for seconds, top1 in traces[row]
            ],
            color=vega.CONTEXT,
            strokeWidth=1.5,
        ),
        vega.layer("rule", {"y": y}, [{"top1": finding.target_pct}], strokeDash=[2, 3]),
        vega.layer(
            "line",
            {"x": x, "y": y, "color": color},
            [
                {"seconds": seconds, "top1": top1, "series": name}
                for row, name in reached.items()
                for seconds, top1 in traces[row]
            ],
            strokeWidth=2.5,
        ),
        *mark_ends(report, finding, reached, x, y, color),
        *name_unreached(report, unreached, x, y),
    ]
    panel = {"width": vega.WIDTH, "height": HEIGHT, "layer": layers}
    key = left_out or "first epoch included, evaluation not"
    return vega.compose(report, words.title_finding(report, finding), [panel], margin=vega.NUMBERS, key=key)


def list_runs(finding: TargetFinding, rows: Collection[int]) -> list[int]:
    """Rows in the order in which they reached the target, then those that did not."""
    return [
        *(row for row in finding.order if row in rows),
        *(row for row in rows if row not in finding.order),
    ]


def name_runs(report: Report, rows: Sequence[int]) -> dict[int, str]:
    """Each row's name, which no other one has."""
    names = words.number_equal([words.describe_target(report, row)[0] for row in rows])
    return dict(zip(rows, names, strict=True))


def mark_ends(
    report: Report, finding: TargetFinding, reached: Mapping[int, str], x: Vega, y: Vega, color: Vega
) -> list[Vega]:
    """A point where each run ended, filled where the order is sure, and what it took."""
    ends = []
    for row, name in reached.items():
        seconds, top1 = report.training[row][-1]
        _, cost = words.describe_target(report, row)
        end = {"seconds": seconds, "top1": top1, "series": name, "text": [name, cost]}
        ends.append({**end, "is_sure": finding.word == "sure"})
    return [
        vega.mark_dots(x, y, color, 110, ends),
        *(
            vega.layer(
                "text",
                {"x": x, "y": y, "text": {"field": "text"}, "color": color},
                [end],
                align="right",
                dx=4,
                dy=dy,
                lineHeight=14,
                fontSize=11,
            )
            for end, dy in zip(
                ends, place_texts(ends, x["scale"]["domain"][1], y["scale"]["domain"][1]), strict=True
            )
        ),
    ]


def place_texts(ends: Sequence[Mapping[str, Any]], last: float, highest: float) -> list[int]:
    """How far above its point, in pixels, the first of each two lines stands, so that no text covers another. `last`,
    `highest`: where the axes end."""
    taken: list[Box] = []
    shifts = []
    for end in ends:
        right = vega.WIDTH * end["seconds"] / last
        top = HEIGHT * (1 - end["top1"] / highest)
        width = LETTER_PIXELS * max(map(len, end["text"]))
        boxes = {dy: Box(right - width, top + dy - 7, right, top + dy + 21) for dy in SHIFTS}
        dy = next((dy for dy, box in boxes.items() if not any(map(box.covers, taken))), SHIFTS[0])
        taken.append(boxes[dy])
        shifts.append(dy)
    return shifts


def name_unreached(report: Report, runs: Mapping[int, str], x: Vega, y: Vega) -> list[Vega]:
    """The names of runs that did not reach the target, in grey behind their last point."""
    ends = [
        {"seconds": seconds, "top1": top1, "text": name}
        for row, name in runs.items()
        for seconds, top1 in report.training[row][-1:]
    ]
    return [
        vega.layer(
            "text",
            {"x": x, "y": y, "text": {"field": "text"}},
            ends,
            align="left",
            dx=6,
            color=vega.CONTEXT,
            fontSize=11,
        )
    ]
