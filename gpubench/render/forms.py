"""The forms in which reports are written on request. Imports nothing heavy: every `--help` reads them.

A new form is an entry here, and a file of its name with a function `format_text` that makes one text of reports.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpubench.core.report import Report

FORMS: Mapping[str, str] = {
    "csv": "As CSV.",
    "json": "As JSON, with findings and typed values.",
    "markdown": "As Markdown.",
    "latex": "As LaTeX, with booktabs.",
}
"""Name -> what `--help` says of it, in the order of the options of `gpubench table`."""


def format_reports(name: str, reports: Sequence[Report]) -> str:
    """Reports in one of FORMS, but for CSV, which holds rows and no reports; ends in a newline."""
    text: str = importlib.import_module(f"gpubench.render.{name}").format_text(reports)
    return text
