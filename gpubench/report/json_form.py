"""Tables as JSON: their typed values, what each column means, why figures are empty, and the sentences below.

One object `{"tables": [...]}`, a line a row, so that two of them can be compared line by line.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gpubench.basics.finite import finite
from gpubench.report import spreadsheet
from gpubench.report.table import COLUMN, Table
from gpubench.schema.row import TableRow


def text(tables: Sequence[Table]) -> str:
    """Valid JSON, which knows no NaN: what is no number is null, as all that is not known."""
    return '{"tables": [\n' + ",\n".join(map(_one, tables)) + "\n]}\n"


def _one(table: Table) -> str:
    names = spreadsheet.names([table])
    rows = [_dumped(_row(row, names)) for row in spreadsheet.lines([table])]
    parts = [
        {"label": label, "rows": end - first} for label, first, end in table.parted() if label
    ]  # in the order of the rows
    told = {
        "results": table.folder or None,
        "name": table.name,
        "title": table.title,
        "heading": [*table.heading],
        "columns": [
            {"name": one.name, "unit": one.unit, "meaning": one.meaning, "heading": one.heading or one.name}
            for one in (COLUMN[name] for name in names)
        ],
        "varied": table.varied,
        **({"rows_in_all": table.whole} if table.whole is not None else {}),
        **({"parts": parts} if parts else {}),
        "answers": table.answers,
        "remarks": [*table.remarks],
        "doubts": table.doubts,
        "matrices": [
            {"title": one.title, "headings": one.headings, "cells": one.cells} for one in table.matrices
        ],
    }
    lines = [f" {_dumped(name)}: {_dumped(value)}" for name, value in told.items()]
    lines.append(' "rows": [' + ",".join(f"\n  {row}" for row in rows) + "\n ]")
    return "{\n" + ",\n".join(lines) + "\n}"


def _row(row: TableRow, names: Sequence[str]) -> dict[str, Any]:
    """`values` of all columns by name; `missing`: why some are null, where it is known; `doubts`: code -> sentences."""
    values = dict(zip(names, row.values(names), strict=True))
    missing = {name: row.missing[name] for name in names if values[name] is None and name in row.missing}
    return {"values": finite(values), "missing": missing, "doubts": dict(row.doubt_texts)}


def _dumped(value: Any) -> str:
    # Half of a sign that takes two, from a file's name that is no UTF-8, is nothing that UTF-8 can say.
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode(errors="replace").decode()
