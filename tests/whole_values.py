"""Any value that a column may hold, for hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from gpubench.schema.columns import Column
from gpubench.schema.kinds import find_column_kind

WORDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
"""What names and reasons are made of, formulas among them."""


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
    return st.none() | found[find_column_kind(column)]
