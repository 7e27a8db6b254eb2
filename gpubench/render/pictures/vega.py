"""What all pictures have in common: the frame around the marks, colours, and how certain marks look.

A picture is a Vega-Lite description (https://vega.github.io/vega-lite/docs/) with all of its data inside. Nothing here
draws: a page hands it to Vega, `gpubench plot` to vl-convert.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from gpubench.core.claims import Claim
from gpubench.core.findings import Finding, collect_job_groups
from gpubench.core.report import Report
from gpubench.render import words

T = TypeVar("T")

Vega = dict[str, Any]
"""A description, or a part of one."""
Row = dict[str, Any]
"""A row of its data."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
VEGA_LITE = "5.21"
"""The version that draws them, as files and on pages."""
WIDTH = 520
"""Of a panel behind numbers, in CSS pixels: with labels at both sides a picture is 7 inches (672 pixels) wide."""
NARROW = 370
"""Of a panel behind names."""
TITLE_LETTERS = 70
SUBTITLE_LETTERS = 98
FOOTNOTE_LETTERS = 118
"""In a line of the width of a picture."""
MOST_ROWS, MOST_SERIES = 60, 12
"""More rows below each other, or lines, nobody can read in one picture, and files grow without end."""
MOST_ABOVE = 2.5
"""How many times as high as the highest figure the end of an interval may move the end of an axis."""
NUMBERS = 48
NAMES = 190
"""How wide the labels of a vertical axis are, in pixels."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6500", "#5B5BD6", "#3A3F45")
"""Okabe and Ito (2008), without yellow and with darker ends, so that lines stand out from white by 3 to 1."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
LIGHT = "#F0B27A"
"""Light enough to stand beside the others where no colours are seen; letters on it are black."""
CONTEXT = "#8a8f98"
"""Grey, of what is there for comparison alone."""
ALARM = "#B00020"
"""Of what ran out of memory, and of the memory that there is."""
BAND = COLORS[0]
FASTER, SLOWER = COLORS[2], COLORS[1]

CONFIG: Vega = {
    "aria": False,  # what a reader of screens needs stands around the picture; each mark would say its numbers
    "background": "white",
    "font": "DejaVu Sans, Verdana, sans-serif",
    "view": {"stroke": None},
    "axis": {
        "domainColor": "#9aa0a6",
        "gridColor": "#e6e8eb",
        "labelColor": "#4a4f57",
        "labelFontSize": 12,
        "tickColor": "#9aa0a6",
        "titleColor": "#4a4f57",
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "axisX": {"grid": False, "labelAngle": 0, "labelFlush": False},
    "axisY": {"domain": False, "ticks": False, "titleAlign": "left", "titleAnchor": "start"},
    "title": {
        "anchor": "start",
        "fontSize": 14,
        "frame": "group",
        "offset": 14,
        "subtitleColor": "#4a4f57",
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
    },
    "text": {"fontSize": 12},
}


def compose_picture(
    report: Report, title: tuple[str, Sequence[str]], panels: Sequence[Vega], *, margin: int, key: str = ""
) -> Vega:
    """A whole picture: the answer above, panels below one another, one line of footnote, which begins with `key`.

    `title`: the answer, and the sentences below it. `margin`: how wide the labels at the left are, in pixels: title
    and footnote begin at their left edge.
    """
    answer, sentences = title
    note = {
        "data": {"values": [{}]},
        "mark": {"type": "text", "align": "left", "color": CONTEXT, "fontSize": 10, "x": -margin, "y": 8},
        "encoding": {"text": {"value": words.format_footnote(report, FOOTNOTE_LETTERS, key)}},
        "height": 12,
        "width": 20,
    }
    return {
        "$schema": SCHEMA,
        "title": {
            "text": textwrap.wrap(answer, TITLE_LETTERS, break_on_hyphens=False),
            "subtitle": textwrap.wrap(" ".join(sentences), SUBTITLE_LETTERS),
            "dx": -margin,
        },
        "vconcat": [*panels, note],
        "spacing": 16,
        "config": CONFIG,
    }


def compose_finding_picture(
    report: Report, finding: Finding, panels: Sequence[Vega], *, margin: int, key: str = ""
) -> Vega:
    """A whole picture of a finding, as `compose_picture` makes it."""
    return compose_picture(
        report, words.format_finding_title(report, finding), panels, margin=margin, key=key
    )


def make_panel(
    layers: Sequence[Vega],
    rows: Sequence[Mapping[str, Any]] | None = None,
    *,
    height: float,
    width: int = WIDTH,
) -> Vega:
    """One panel. `rows`: the data of those layers that have none of their own."""
    data = {} if rows is None else {"data": embed_rows(rows)}
    return {**data, "width": width, "height": height, "layer": layers}


COLUMN_SCALE = 0.75
"""Letters in a picture for a column of a paper have 6.75 points."""
COLUMN_LESS = 240
"""How many pixels narrower panels behind numbers are: what was 7 inches wide is about 3.4."""
COLUMN_NARROW = 130
"""Of panels behind names."""


def fit_to_paper_column(picture: Vega) -> Vega:
    """The picture for a column of a paper, whose caption says what is found: no title, no footnote, narrower panels. It
    is to be drawn at COLUMN_SCALE."""
    *panels, _ = picture["vconcat"]
    widths = [COLUMN_NARROW if panel["width"] <= NARROW else panel["width"] - COLUMN_LESS for panel in panels]
    narrow = [{**panel, "width": width} for panel, width in zip(panels, widths, strict=True)]
    return {**{key: part for key, part in picture.items() if key != "title"}, "vconcat": narrow}


def list_solo_rows(report: Report) -> list[int]:
    """The rows of trials that had their GPUs for themselves."""
    together = {row for group in collect_job_groups(report.findings) for row in group.rows}
    return [row for row in report.labels if row not in together]


def limit_rows(rows: Sequence[T], most: int = MOST_ROWS) -> tuple[list[T], str]:
    """As many rows as can be read in one picture, and what its footnote says where these are not all."""
    return list(rows[:most]), words.describe_drawn_count(most, len(rows)) if len(rows) > most else ""


def clip_intervals_to_axis(
    rows: Sequence[Row], figures: Sequence[float], room: float = 1.0
) -> tuple[list[Row], float]:
    """Where an axis must reach, and rows whose intervals end there: it reaches to the highest figure, and to the
    highest end of an interval unless that is far higher, as of two processes that differ much. `room`: for more."""
    highest = max(figures)
    ends = [row["high"] for row in rows if row["high"] is not None]
    end = room * max(highest, min(max(ends, default=highest), MOST_ABOVE * highest))
    return [{**row, "high": None if row["high"] is None else min(row["high"], end)} for row in rows], end


def make_y_title(text: str) -> Vega:
    """The title of a vertical axis: above its upper end, to be read without turning one's head."""
    return {
        "title": text,
        "titleAngle": 0,
        "titleX": -NUMBERS,
        "titleY": -12,
        "titleBaseline": "bottom",
        "minExtent": NUMBERS,
        "maxExtent": NUMBERS,
    }


def make_name_axis(names: Sequence[str]) -> Vega:
    """A vertical axis of names in their order, NAMES pixels wide."""
    return {
        "field": "name",
        "type": "ordinal",
        "sort": list(names),
        "axis": {
            "title": None,
            "grid": False,
            "domain": False,
            "ticks": False,
            # Vega breaks a label into lines, between words or behind a hyphen.
            "labelExpr": r"split(trim(replace(datum.label, /(.{1,26}$|.{1,26}[ -])/g, '$1\n')), '\n')",
            "labelLimit": NAMES - 10,
            "minExtent": NAMES,
            "maxExtent": NAMES,
        },
    }


def make_x_title(text: str) -> Vega:
    """The title of a horizontal axis, at its left end."""
    return {"title": text, "titleAlign": "left", "titleAnchor": "start"}


def make_category_scale(field: str, domain: Sequence[str], looks: Sequence[str]) -> Vega:
    """What each of these values looks like. Whatever is drawn is labelled, so that there is no legend."""
    scale = {"domain": list(domain), "range": list(looks)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": None}


def make_color_scale(names: Sequence[str]) -> Vega:
    """The colours of series, in their order."""
    return make_category_scale("series", names, [COLORS[place % len(COLORS)] for place in range(len(names))])


def make_shape_scale(names: Sequence[str]) -> Vega:
    """The shapes of series, for readers who see no colours."""
    return make_category_scale("series", names, [SHAPES[place % len(SHAPES)] for place in range(len(names))])


def make_direction_scale() -> Vega:
    """Green is faster, orange slower, grey unknown. The data has `side`."""
    return make_category_scale(
        "side", ["more", "less", "same", "unknown"], [FASTER, SLOWER, CONTEXT, CONTEXT]
    )


def make_certainty_fill(color: Vega) -> Vega:
    """Filled marks are sure; hollow ones likely or unknown. The data has `is_sure`."""
    return {"condition": {"test": "!datum.is_sure", "value": "white"}, **color}


def make_layer(
    mark: str, encoding: Vega, rows: Sequence[Mapping[str, Any]] | None = None, **look: Any
) -> Vega:
    """Marks of this type. `rows`: their own data, where these are not those of the panel. `look`: of the mark."""
    data = {} if rows is None else {"data": embed_rows(rows)}
    return {**data, "mark": {"type": mark, **look}, "encoding": encoding}


def make_text_layer(
    encoding: Vega, rows: Sequence[Mapping[str, Any]] | None, field: str = "text", **look: Any
) -> Vega:
    """A field of rows as text. `encoding`: where."""
    return make_layer("text", {**encoding, "text": {"field": field}}, rows, **{"fontSize": 11, **look})


def make_series_point_layer(x: Vega, y: Vega, names: Sequence[str]) -> Vega:
    """The points of series; filled ones are sure, hollow ones likely or unknown."""
    color = make_color_scale(names)
    encoding = {
        "x": x,
        "y": y,
        "color": color,
        "shape": make_shape_scale(names),
        "fill": make_certainty_fill(color),
    }
    return make_layer("point", encoding, size=60, strokeWidth=2, opacity=1)


def make_ratio_row(claim: Claim) -> Row:
    """How many times as fast a claim says something is, with its interval and how sure it is."""
    verdict = claim.decided
    return {
        "ratio": words.compute_claim_figure(claim),
        "low": verdict.low,
        "high": verdict.high,
        "is_sure": verdict.word == "sure",
        "side": "unknown" if verdict.word == "unknown" else verdict.direction,
    }


def make_circle_layer(
    x: Vega, y: Vega, color: Vega, size: int, rows: Sequence[Mapping[str, Any]] | None = None
) -> Vega:
    """Round points, filled where they are sure."""
    encoding = {"x": x, "y": y, "color": color, "fill": make_certainty_fill(color)}
    return make_layer("point", encoding, rows, shape="circle", size=size, strokeWidth=2, opacity=1)


def make_number_axis(field: str, axis: Vega | None, domain: Sequence[float]) -> Vega:
    """A number along an axis with exactly these ends."""
    scale = {"domain": list(domain), "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}


def make_span(channel: str, axis: Vega, low: str, high: str) -> Vega:
    """From one field to another along an axis. `channel`: `x` or `y`."""
    return {channel: {**axis, "field": low}, f"{channel}2": {"field": high}}


def embed_rows(rows: Sequence[Mapping[str, Any]]) -> Vega:
    """Data of a layer, inside the description."""
    return {"values": [dict(row) for row in rows]}
