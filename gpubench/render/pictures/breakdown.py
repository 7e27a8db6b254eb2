"""The parts of a step, one behind the other."""

from __future__ import annotations

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Vega

ROW_HEIGHT = 40
PART_COLORS = (vega.COLORS[6], vega.COLORS[0], vega.LIGHT, vega.COLORS[2], vega.COLORS[3])
"""Parts that touch differ in lightness, too, for readers who see no colours; in the order of `words.PARTS`."""
WIDE = 0.07
"""Share of the longest step from which a part has room for its milliseconds."""


def draw(report: Report) -> Vega | None:
    """A bar a row whose steps were timed in parts, with the milliseconds in it, and behind it what is waited for
    gradients, be it ever so small. None where none was."""
    rows = [row for row, figures in report.figures.items() if any(figures[part] for part in words.PARTS)]
    if not rows:
        return None
    rows, left_out = vega.limit_rows(rows)
    names = words.name_rows_apart(report, rows)
    totals = [sum(report.figures[row][part] or 0.0 for part in words.PARTS) for row in rows]
    longest = max(totals)
    colors = dict(zip(words.PARTS.values(), PART_COLORS, strict=True))
    bars, ends = [], []
    for row, name, total in zip(rows, names, totals, strict=True):
        begin = 0.0
        for part, word in words.PARTS.items():
            value = report.figures[row][part]
            if value:
                bar = {"name": name, "part": word, "begin": begin, "end": begin + value}
                text = words.format_significant(value) if value > WIDE * longest else ""
                bars.append(
                    {**bar, "middle": begin + value / 2, "text": text, "is_light": colors[word] == vega.LIGHT}
                )
                begin += value
        waited = report.figures[row]["comm_ms"]
        wait = "" if waited is None else f", gradients {words.format_significant(waited, 2)} ms"
        wait += "" if waited is None else f" ({words.format_percent(waited / total)})"
        ends.append({"name": name, "end": total, "text": f"{words.format_significant(total)} ms{wait}"})
    y = vega.make_name_axis(names)
    x: Vega = vega.make_number_axis(
        "begin", {**vega.make_x_title("time of a step, ms"), "tickCount": 6}, [0, longest]
    )
    parts = [word for part, word in words.PARTS.items() if any(report.figures[row][part] for row in rows)]
    color = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": parts, "range": [colors[part] for part in parts]},
        "legend": {"title": None, "orient": "top", "symbolType": "square"},
    }
    letters = {"condition": {"test": "datum.is_light", "value": "black"}, "value": "white"}
    layers = [
        vega.make_layer("bar", {"x": x, "x2": {"field": "end"}, "y": y, "color": color}, bars, size=20),
        vega.make_text_layer({"x": {**x, "field": "middle"}, "y": y, "color": letters}, bars),
        vega.make_text_layer({"x": {**x, "field": "end"}, "y": y}, ends, align="left", dx=6),
    ]
    panel = vega.make_panel(layers, width=vega.NARROW - 60, height=ROW_HEIGHT * len(rows))
    slowest = rows[totals.index(longest)]
    title: tuple[str, list[str]] = (words.format_breakdown_title(report, slowest), [])
    key = left_out or "what is exchanged behind the backward pass lies within it"
    return vega.compose_picture(report, title, [panel], margin=vega.NAMES, key=key)
