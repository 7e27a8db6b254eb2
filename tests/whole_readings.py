"""Results folders by hand, as they are when they were read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpubench.report.contents import Contents
from gpubench.report.reading import Reading
from gpubench.report.table import tables
from hypothesis import strategies as st

from gpubench.results.store import Results
from gpubench.schema.columns import Column
from gpubench.schema.kinds import kind
from gpubench.schema.record import Record
from gpubench.schema.row import Row

WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
"""What names and reasons are made of, formulas among them."""


def reading_of(rows: Sequence[Row], records: Sequence[Record] = (), folder: str = "by-hand") -> Reading:
    """A folder with these rows and records, and the tables of the rows."""
    found = Contents(rows=list(rows), made=lambda: tables(rows))
    return Reading(results=Results(Path("/nowhere") / folder), records=records, contents=found, name=folder)


def values_of(column: Column) -> st.SearchStrategy[Any]:
    """Anything that may stand in a column, and nothing."""
    found: dict[str, st.SearchStrategy[Any]] = {
        "text": WORDS
        | st.sampled_from(["=1+1", "@SUM(A1)", "-2", "+x", "7", "1e5", "TRUE", "a\nb", "'quoted"]),
        "whole": st.integers(0, 10**15),
        "number": st.floats(-1e15, 1e15, allow_nan=False),
        "yes or no": st.booleans(),
        "list": st.lists(st.integers(0, 7), max_size=3),
        "moment": st.datetimes().map(lambda at: at.isoformat(" ", "seconds")),
    }
    return st.none() | found[kind(column)]
