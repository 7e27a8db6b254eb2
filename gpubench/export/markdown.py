"""Markdown: what table.md holds, of all folders."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.export.formats import Asked
from gpubench.report import markdown
from gpubench.report.reading import Reading


def made(readings: Sequence[Reading], asked: Asked) -> bytes:  # noqa: ARG001 - there is one Markdown
    """UTF-8."""
    return markdown.text([table for one in readings for table in one.tables]).encode()
