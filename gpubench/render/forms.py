"""The forms in which reports are written on request. Imports nothing heavy: every `--help` reads them.

A new form is an entry here, and a file with a function that makes one text of reports.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gpubench.core.report import Report

AnswerForm = Literal["text", "markdown", "json"]
"""How a command tells an answer that is no table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """One way to write reports down. Its function is named `module:function`, which is imported when it is needed."""

    suffix: str
    """How files in this form end."""
    help: str
    """What `--help` says of it, as an option of `gpubench table` and as a format of an export."""
    writer: str = ""
    """Makes one text of reports, ending in a newline; empty for CSV, which holds rows and no reports."""
    is_data: bool = False
    """Whether programs read it: then it is UTF-8 everywhere, whatever signs the terminal knows."""

    def write(self, reports: Sequence[Report]) -> str:
        """All reports in this form."""
        module, name = self.writer.split(":")
        function: Callable[[Sequence[Report]], str] = getattr(importlib.import_module(module), name)
        return function(reports)


FORMS: Mapping[str, Form] = {
    "csv": Form(suffix=".csv", help="As CSV.", is_data=True),
    "json": Form(
        suffix=".json",
        help="As JSON, with findings and typed values.",
        writer="gpubench.render.json:write",
        is_data=True,
    ),
    "markdown": Form(suffix=".md", help="As Markdown.", writer="gpubench.render.markdown:write"),
    "latex": Form(
        suffix=".tex", help="As LaTeX, with booktabs.", writer="gpubench.render.latex:write", is_data=True
    ),
}
"""Name -> form, in the order of the options of `gpubench table`."""
