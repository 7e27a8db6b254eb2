"""How the trials of two sides are told apart."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.comparing import SideBySide
from gpubench.analysis.matching import settled_apart
from gpubench.analysis.varied import FOLLOWS, label, varied
from gpubench.basics.words import WORDS
from gpubench.schema.row import TableRow


def fields_of(of: SideBySide) -> tuple[str, ...]:
    """The fields by which its pairs are told apart."""
    rows = [row for one in of.beside for row in (one.a, one.b)]
    rows += [row for pair in of.not_ok for row in pair]
    found = _varied(rows, of)
    if found:
        return found
    matching = of.matching
    rows += [*matching.only_a, *matching.only_b]
    # A field that was asked to differ has a value a side, so that no pair is called by it.
    return _varied(rows, of) or tuple(one for one in ("batch_size",) if one not in of.matching.free)


def _varied(rows: Sequence[TableRow], of: SideBySide) -> tuple[str, ...]:
    left_out = {*of.matching.set_aside, *of.matching.free, *settled_apart(of.matching.pairs)}
    found = tuple(field for field in varied(rows) if field not in left_out and field != "gpu_ids")
    return (*_of_jobs(rows), *found)


def own_fields(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    """By which rows of one side alone are told apart: `fields`, and those that are their own."""
    own = [field for field in varied(rows) if field not in FOLLOWS and field != "gpu_ids"]
    return list(dict.fromkeys([*_of_jobs(rows), *fields, *own]))


def _of_jobs(rows: Sequence[TableRow]) -> list[str]:
    """The columns that tell jobs of groups apart, where there are some."""
    return [name for name in ("group", "job") if any(row.value(name) for row in rows)]


def trial_name(row: TableRow, fields: Sequence[str]) -> str:
    """A trial in a sentence."""
    return label(row, fields) or "the only one"


def ended(row: TableRow) -> str:
    """How a row ended, in a sentence."""
    return WORDS.get(row.status, row.endings or row.status)
