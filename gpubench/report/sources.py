"""Why a row has no such figure, as far as its record says it. Pure."""

from __future__ import annotations

from gpubench.schema.columns import OF_GROUPS
from gpubench.schema.row import Row

NO_REASON = "the record, which is older than this column, gives no reason"


def why_empty(row: Row, column: str) -> str:
    """The reason; empty where the record has none and need not."""
    why = row.missing.get(column)
    if why is None and row.source != "measured":
        return ""
    if why is None and column in OF_GROUPS and not row.group:
        why = "the trial ran alone"  # in records that are older than the column, too
    return _by_whom(why, row.gpubench) if why else NO_REASON


def _by_whom(why: str, version: str | None) -> str:
    """A stored reason may say "this version", which was the one that measured, not the one that reads."""
    whose = f"gpubench {version}" if version else "the gpubench of that time"
    return why.replace("this version does not measure it", f"{whose} did not measure it").replace(
        "this version", whose
    )
