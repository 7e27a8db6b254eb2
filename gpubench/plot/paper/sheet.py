"""What all parts of a drawing share: its width, its letters, and matplotlib's settings."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl

WIDTH = 3.4
"""Inches: a column of most papers."""
SIZE, SMALL, FINE = 8.0, 7.0, 6.0
"""Points: titles of axes; labels and legends; the caption."""
LINE = 1.25
"""Height of a line of text over that of its letters."""
MARGIN = 0.05
"""Inches around everything."""
FONT = "DejaVu Sans"
RC: dict[str, Any] = {
    "font.family": [FONT],
    "font.size": SIZE,
    "axes.labelsize": SIZE,
    "axes.titlesize": SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,  # a name may hold two dollar signs
    "axes.formatter.use_locale": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and set in the reader's own letters
    "pdf.fonttype": 42,
    "figure.dpi": 150,
}


def inches(points: float) -> float:
    """The height of a line of letters of this size."""
    return points * LINE / 72


@contextmanager
def own_settings() -> Iterator[None]:
    """Our settings, whatever the user's are; and letters that the font lacks are no reason to say so."""
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(RC)  # type: ignore[arg-type, unused-ignore]
        yield
