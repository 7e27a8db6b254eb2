"""CSV: the tables, the trials or the epochs of results folders."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.export.formats import Asked
from gpubench.report import spreadsheet
from gpubench.report.reading import Reading


def made(
    readings: Sequence[Reading],
    asked: Asked,  # noqa: ARG001 - so far the plain table alone
) -> bytes:
    """UTF-8, with commas."""
    return spreadsheet.text([table for one in readings for table in one.tables]).encode()
