"""One way against another, row by row: the picture of `VersusFinding` (strategies, variants, precisions, ...)."""

from __future__ import annotations

from typing import Any

from gpubench.core.findings import VersusFinding
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

ROW_HEIGHT = 34


def draw(report: Report, finding: VersusFinding) -> Vega | None:
    """A dumbbell a row: both times of an epoch (log), the ratio at the right. None where nothing is compared."""
    rows, left_out = vega.limit_rows(list_versus_rows(report, finding))
    if not rows:
        return None
    names = [row["name"] for row in rows]
    ways = [words.name_value(finding.field, finding.value), words.name_value(finding.field, finding.baseline)]
    y = vega.make_name_axis(names)
    x: Vega = {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 16},
        "axis": {**vega.make_x_title("epoch time, s (log)"), "grid": True, "tickCount": 6, "format": "~g"},
    }
    ends = [
        {"name": row["name"], "series": way, "seconds": row[side], "is_sure": row["is_sure"]}
        for row in rows
        for way, side in zip(ways, ("candidate", "baseline"), strict=True)
    ]
    heads = ends[:2]
    color = vega.make_color_scale(ways)
    shape = vega.make_shape_scale(ways)
    marks = {"x": x, "y": y, "color": color, "fill": vega.make_certainty_fill(color), "shape": shape}
    is_left = rows[0]["candidate"] <= rows[0]["baseline"]
    bold: Vega = {"fontWeight": "bold", "fontSize": 12}
    layers = [
        vega.make_layer(
            "rule", {**vega.make_span("x", x, "candidate", "baseline"), "y": y}, rows, strokeWidth=5, color="#cccfd4"
        ),
        vega.make_layer("point", marks, ends, size=110, strokeWidth=2, opacity=1),
    ]  # fmt: skip
    for head, is_right_aligned in zip(heads, (is_left, not is_left), strict=True):
        side = {"align": "right", "dx": -2} if is_right_aligned else {"align": "left", "dx": 2}
        layers.append(
            vega.make_text_layer({"x": x, "y": y, "color": color}, [head], "series", dy=-16, **side, **bold)
        )
    layers.append(vega.make_text_layer({"y": y}, rows, "ratio", align="left", x="width", dx=16, **bold))
    panel = vega.make_panel(layers, width=vega.NARROW, height=ROW_HEIGHT * len(rows))
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NAMES, key=left_out)


def list_versus_rows(report: Report, finding: VersusFinding) -> list[dict[str, Any]]:
    """A row a claim: its name without what differs, the seconds of both, the ratio of their rates in words."""
    rows = []
    compared = [claim.candidate for claim in finding.claims]
    if len(compared) == 1:  # there is nothing to tell it apart from
        names = [words.name_row(report.labels[compared[0]], without={finding.field})]
    else:
        names = words.name_rows_apart(report, compared, without=(finding.field,))
    for claim, name in zip(finding.claims, names, strict=True):
        candidate, baseline = (
            report.figures[row]["epoch_time_s"] for row in (claim.candidate, claim.baseline)
        )
        if candidate and baseline:
            rows.append(
                {
                    "name": name,
                    "candidate": candidate,
                    "baseline": baseline,
                    "ratio": f"{words.format_ratio(words.compute_claim_figure(claim))} times",
                    "is_sure": claim.decided.word == "sure",
                }
            )
    return rows
