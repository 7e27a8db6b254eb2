"""What is said of top-1 below a table: which rows have an equal one, which a higher, what is open; over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpubench.analysis.alternatives import Alternative
from gpubench.analysis.certainty.accuracy import MARGIN, SEEDS
from gpubench.analysis.certainty.power import MOST
from gpubench.analysis.settle import IF_SEEN
from gpubench.analysis.top1 import Top1Comparison, top1_of_seeds
from gpubench.analysis.varied import label
from gpubench.basics.words import many, number, signed
from gpubench.report.notes import which
from gpubench.schema.row import Row, TableRow
from gpubench.schema.top1_crossing import CONFIRMED

SHOWN = 4
"""Pairs that a sentence names; of more it says how many."""


def sentences(compared: Sequence[Top1Comparison], fields: Sequence[str]) -> list[str]:
    """One for what is equal, one for what differs, one for what is open. `fields`: those that tell rows apart."""
    inside = f"inside {MARGIN:g} point"
    told = (
        (f"Top-1 is equal {inside}", ("equal",), _equal),
        ("Top-1 differs", ("higher", "lower"), _different),
        (f"Top-1 is open, neither equal {inside} nor different", ("open",), _open),
    )
    found = []
    for begin, words, say in told:
        if some := [one for one in compared if one.decision.word in words]:
            found.append(f"{begin}: {_listed(some, say, fields)}.")
    return found


def remark(compared: Sequence[Top1Comparison]) -> str:
    """What these sentences rest on; empty where there are none."""
    if not compared:
        return ""
    counts = {len(top1_of_seeds(row)) for one in compared for row in (one.row, one.against)}
    low, high = min(counts), max(counts)
    seeds = many(low, "seed") if low == high else f"{low} to {high} seeds"
    also = f" The tests are corrected for {len(compared)} comparisons." if len(compared) > 1 else ""
    return f"Top-1 is compared over {seeds} a row, with 95 % intervals of the difference.{also}"


def not_compared(side_by_side: Sequence[Alternative], compared: Sequence[Top1Comparison]) -> str:
    """That top-1 of variants whose times are compared rests on too few seeds; empty where that is not why."""
    rows = [row for one in side_by_side if one.field == "variant" for row in (one.row, one.baseline)]
    counts = {len(top1_of_seeds(row)) for row in rows}
    if not rows or not min(counts) or min(counts) >= SEEDS or any(one.row.until_top1 for one in side_by_side):
        return ""
    told = {id(row) for one in compared for row in (one.row, one.against)}
    if any(id(row) in told for row in rows):
        return ""
    seeds = many(min(counts), "seed")
    return (
        f"Top-1 of the variants is not compared: that takes {SEEDS} seeds (--repeats {SEEDS}), and some rows have "
        f"{seeds}."
    )


def of_crossings(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    """What the times at which top-1 was crossed are, and which of them no further evaluation has confirmed."""
    there = [row for row in rows if row.top1_crossing_s is not None]
    if not there:
        return []
    several = any(row.top1_crossing_low_s is not None for row in there)
    over = (
        "; of several seeds the geometric mean, in parentheses its 95 % interval over them" if several else ""
    )
    said = [
        f"s to crossing: when top-1 crossed its target, on a straight line between two evaluations{over}."
    ]
    if unsure := [row for row in there if row.top1_crossing != CONFIRMED]:
        said.append(
            "Not confirmed, for training ended with the first evaluation there, which may have been a lucky one "
            f"({which(unsure, rows, fields)}); --set confirm_top1=true trains on until two in a row are there"
        )
    return said


def _listed(
    some: Sequence[Top1Comparison], say: Callable[[Top1Comparison, str, str], str], fields: Sequence[str]
) -> str:
    """The pairs that lie farthest apart, and how many others there are."""
    first = sorted(some, key=lambda one: -abs(one.decision.difference))[:SHOWN]
    named = [say(one, _name(one.row, fields), _name(one.against, fields)) for one in some if one in first]
    rest = len(some) - len(named)
    return "; ".join([*named, f"and {rest} more, closer together"] if rest else named)


def _name(row: Row, fields: Sequence[str]) -> str:
    return label(row, fields) or "the other row"


def _equal(one: Top1Comparison, row: str, against: str) -> str:
    return f"{row} and {against} ({_points(one)})"


def _different(one: Top1Comparison, row: str, against: str) -> str:
    apart = one.decision
    by = number(abs(apart.difference), 1)
    return f"{row} is {by} points {apart.word} than {against} ({signed(apart.low, 1)} to {signed(apart.high, 1)})"


def _open(one: Top1Comparison, row: str, against: str) -> str:
    settles = (
        f"{many(one.settles, 'seed')} each, --repeats {one.settles}, would settle it {IF_SEEN}"
        if one.settles
        else f"{MOST:,} seeds would not settle it"
    )
    return f"{row} against {against} ({_points(one)}; {settles})"


def _points(one: Top1Comparison) -> str:
    """`−0.1 points, −0.5 to +0.3`."""
    center, low, high = (
        signed(value, 1) for value in (one.decision.difference, one.decision.low, one.decision.high)
    )
    return f"{center} points, {low} to {high}"
