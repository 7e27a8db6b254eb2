"""Cells: a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

from gpubench.plot import limits
from gpubench.plot.description import Picture
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.sheet import FINE, SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LABELS = 1.15
"""Inches that the names of rows may be wide."""


def draw(figure: Figure, picture: Picture, ink: Ink) -> float:
    """Draws the matrix, and says how many inches it takes from top to bottom. Its columns are told by the numbers of
    their rows, for names have no room there."""
    ax, panel = figure.subplots(), picture.panels[0]
    count = len(panel.places)
    ends = limits.of_cells(panel)
    colours = mpl.colormaps["Blues"]
    for cell in panel.cells:
        share = None if cell.value is None else 0.05 + 0.8 * ends.share(cell.value)
        fill = "white" if share is None else colours(share)
        ax.barh(
            cell.row, 1, left=cell.column - 0.5, height=1, color=fill, edgecolor="#888888", linewidth=0.5,
            hatch="////" if share is None and not cell.text else "",
        )  # fmt: skip
        ax.text(
            cell.column, cell.row, "\n".join(ink.wrapped(cell.text, SMALL, 2.0 / count)), ha="center", va="center",
            fontsize=SMALL if count < 7 else FINE, color="white" if share is not None and share > 0.55 else "black",
        )  # fmt: skip
    names = [
        "\n".join(ink.wrapped(f"{place + 1}: {name}", SMALL, LABELS))
        for place, name in enumerate(panel.places)
    ]
    ax.set_yticks(range(count), names, linespacing=1.0)
    ax.set_xticks(range(count), [str(place + 1) for place in range(count)])
    ax.set_xlim(-0.5, count - 0.5)
    ax.set_ylim(count - 0.5, -0.5)
    ax.set_xlabel(panel.x.title)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return count * max(0.3, min(0.55, 2.0 / count)) + 0.45
