"""A whole drawing: title, legend, panels and caption, as high as they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from gpubench.plot.description import Kind, Picture
from gpubench.plot.paper import bars, cells, legend, lines
from gpubench.plot.paper.file import written
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.sheet import FINE, MARGIN, SIZE, SMALL, WIDTH, inches, own_settings

PANELS: Mapping[Kind, Callable[[Figure, Picture, Ink], float]] = {
    "lines": lines.draw,
    "bars": bars.draw,
    "stacked": bars.draw,
    "cells": cells.draw,
}
"""What draws the panels of each kind, and says how many inches they take."""


class Drawing(Figure):
    """A figure that a notebook shows without any set-up."""

    def _repr_png_(self) -> bytes:
        return written(self, "png")


def drawn(picture: Picture) -> Drawing:
    """The picture, drawn."""
    with own_settings():
        figure = Drawing(figsize=(WIDTH, 1.0), layout="constrained")
        FigureCanvasAgg(figure)
        ink = Ink(figure)
        above = ink.wrapped(picture.title, SIZE, WIDTH - 2 * MARGIN, bold=True)
        below = [line for said in picture.caption for line in ink.wrapped(said, FINE, WIDTH - 2 * MARGIN)]
        entries = legend.handles(picture, ink)
        columns, rows = ink.columns([str(one.get_label()) for one in entries])
        named = bool(picture.legend and entries)
        head = len(above) * inches(SIZE) + (rows + named) * inches(SMALL) * 1.03 + (0.1 if entries else 0.0)
        foot = len(below) * inches(FINE)
        body = PANELS[picture.panels[0].kind](figure, picture, ink)
        height = MARGIN + head + 0.04 + body + 0.04 + foot + MARGIN
        figure.set_size_inches(WIDTH, height)
        figure.set_gid(picture.file_name)
        engine: Any = figure.get_layout_engine()
        engine.set(
            rect=(0, (MARGIN + foot + 0.04) / height, 1, body / height),
            w_pad=MARGIN,
            h_pad=0.03,
            hspace=0.02,
            wspace=0.02,
        )
        figure.text(
            MARGIN / WIDTH, 1 - MARGIN / height, "\n".join(above), va="top", ha="left", fontweight="bold",
            linespacing=1.15,
        ).set_in_layout(False)  # fmt: skip
        if below:
            figure.text(
                MARGIN / WIDTH, MARGIN / height, "\n".join(below), va="bottom", ha="left", fontsize=FINE,
                color="#333333", linespacing=1.15,
            ).set_in_layout(False)  # fmt: skip
        if entries:
            top = 1 - (MARGIN + len(above) * inches(SIZE)) / height
            legend.put(figure, entries, picture.legend, top, columns)
        if picture.panels[0].kind == "lines":
            lines.label(figure, picture, ink)
        return figure
