"""What all pictures have in common: the frame around the marks, colours, and how certain marks look.

A picture is a Vega-Lite description (https://vega.github.io/vega-lite/docs/) with all of its data inside. Nothing here
draws: a page hands it to Vega, `gpubench plot` to vl-convert.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from gpubench.core.findings import SharingFinding
from gpubench.core.report import Report
from gpubench.render import words

Vega = dict[str, Any]
"""A description, or a part of one."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
WIDTH = 520
"""Of a panel behind numbers, in CSS pixels: with labels at both sides a picture is 7 inches (672 pixels) wide."""
NARROW = 370
"""Of a panel behind names."""
TITLE_LETTERS = 64
SUBTITLE_LETTERS = 98
FOOTNOTE_LETTERS = 118
"""In a line of the width of a picture."""
NUMBERS = 48
NAMES = 190
"""How wide the labels of a vertical axis are, in pixels."""

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8A6500", "#5B5BD6", "#3A3F45")
"""Okabe and Ito (2008), without yellow and with darker ends, so that lines stand out from white by 3 to 1."""
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
CONTEXT = "#8a8f98"
"""Grey, of what is there for comparison alone."""
ALARM = "#B00020"
"""Of what ran out of memory, and of the memory that there is."""
BAND = COLORS[0]
FASTER, SLOWER = COLORS[2], COLORS[1]

CONFIG: Vega = {
    "background": "white",
    "font": "DejaVu Sans",
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
    "axisX": {"grid": False, "labelAngle": 0},
    "axisY": {"domain": False, "ticks": False, "titleAlign": "left", "titleAnchor": "start"},
    "title": {
        "anchor": "start",
        "fontSize": 15,
        "frame": "group",
        "offset": 14,
        "subtitleColor": "#4a4f57",
        "subtitleFontSize": 12,
        "subtitlePadding": 6,
    },
    "text": {"fontSize": 12},
}


def frame(
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
        "encoding": {"text": {"value": words.write_footnote(report, FOOTNOTE_LETTERS, key)}},
        "height": 12,
        "width": 20,
    }
    return {
        "$schema": SCHEMA,
        "title": {
            "text": textwrap.wrap(answer, TITLE_LETTERS),
            "subtitle": textwrap.wrap(" ".join(sentences), SUBTITLE_LETTERS),
            "dx": -margin,
        },
        "vconcat": [*panels, note],
        "spacing": 16,
        "config": CONFIG,
    }


def list_alone(report: Report) -> list[int]:
    """The rows of trials that had their GPUs for themselves."""
    together = {
        row
        for finding in report.findings
        if isinstance(finding, SharingFinding)
        for group in finding.groups
        for row in group.rows
    }
    return [row for row in report.labels if row not in together]


def axis_title(text: str) -> Vega:
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


def name_axis(names: Sequence[str]) -> Vega:
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
            "labelLimit": NAMES - 10,
            "minExtent": NAMES,
            "maxExtent": NAMES,
        },
    }


def x_title(text: str) -> Vega:
    """The title of a horizontal axis, at its left end."""
    return {"title": text, "titleAlign": "left", "titleAnchor": "start"}


def color_scale(names: Sequence[str]) -> Vega:
    """The colours of series, in their order; a line's end is labelled, so that there is no legend."""
    colors = [COLORS[place % len(COLORS)] for place in range(len(names))]
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(names), "range": colors},
        "legend": None,
    }


def shape_scale(names: Sequence[str]) -> Vega:
    """The shapes of series, for readers who see no colours."""
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(names))]
    return {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": list(names), "range": shapes},
        "legend": None,
    }


def side_scale() -> Vega:
    """Green is faster, orange slower, grey unknown. The data has `side`."""
    return {
        "field": "side",
        "type": "nominal",
        "scale": {
            "domain": ["more", "less", "same", "unknown"],
            "range": [FASTER, SLOWER, CONTEXT, CONTEXT],
        },
        "legend": None,
    }


def fill(color: Vega) -> Vega:
    """Filled marks are sure; hollow ones likely or unknown. The data has `is_sure`."""
    return {"condition": {"test": "!datum.is_sure", "value": "white"}, **color}


def values(rows: Sequence[Mapping[str, Any]]) -> Vega:
    """Data of a layer, inside the description."""
    return {"values": [dict(row) for row in rows]}
