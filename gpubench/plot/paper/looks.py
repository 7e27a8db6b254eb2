"""How series look, in matplotlib's words."""

from __future__ import annotations

from typing import Any

from gpubench.plot import style
from gpubench.plot.description import PlottedSeries

PREDICTED: dict[str, Any] = {
    "color": "black", "marker": "D", "markersize": 3.6, "markerfacecolor": "white", "linestyle": "none", "zorder": 5,
}  # fmt: skip


def line_of(one: PlottedSeries) -> dict[str, Any]:
    """A line, or markers alone."""
    if one.role == "ideal":
        return {"color": "#555555", "linestyle": (0, (4, 2)), "linewidth": 0.9, "zorder": 1.5}
    if one.role == "target":
        return {"color": "black", "linestyle": (0, (1, 1)), "linewidth": 1.0, "zorder": 1.5}
    return {
        "color": colour_of(one),
        "linestyle": "none" if not one.joined else style.of(style.DASHES, one.look).mpl if one.name else "-",
        "marker": style.of(style.SHAPES, one.look).mpl if one.marked else None,
        "linewidth": 1.1 if one.marked else 0.8,
        "markeredgewidth": 0.6,
    }


def fill_of(one: PlottedSeries) -> dict[str, Any]:
    """A bar."""
    return {
        "facecolor": style.of(style.COLOURS, one.look).fill,
        "hatch": style.of(style.HATCHES, one.look).mpl,
        "edgecolor": "black",
        "linewidth": 0.5,
    }


def colour_of(one: PlottedSeries) -> str:
    """Of its line and markers."""
    return style.of(style.COLOURS, one.look).paper
