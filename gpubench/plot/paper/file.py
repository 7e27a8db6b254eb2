"""A drawing as the bytes of a file: of the same picture always the same."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from gpubench.plot.files import CREATOR
from gpubench.plot.paper.sheet import own_settings

DPI = 300


def written(figure: Figure, form: str) -> bytes:
    """As svg, png or pdf."""
    told: dict[str, dict[str, Any]] = {
        "svg": {"Creator": CREATOR, "Date": None},
        "png": {"Software": CREATOR},
        "pdf": {"Creator": CREATOR, "Producer": None, "CreationDate": None},
    }
    out = io.BytesIO()
    with own_settings(), mpl.rc_context({"svg.hashsalt": f"{CREATOR} {figure.get_gid()}"}):
        figure.savefig(out, format=form, metadata=told[form], dpi=DPI)
    made = out.getvalue()
    if form == "svg":  # lines of paths end in spaces
        made = b"\n".join(line.rstrip() for line in made.splitlines()) + b"\n"
    return made
