"""The media of a report, each with what writes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpubench.core.report import Report
from gpubench.render import json, latex, markdown, terminal

FORMS: Mapping[str, Callable[[Sequence[Report]], str]] = {
    "text": terminal.write,
    "md": markdown.write,
    "tex": latex.write,
    "json": json.write,
}
"""Name, which is the end of a file's name, too -> reports as text that ends in a newline."""
