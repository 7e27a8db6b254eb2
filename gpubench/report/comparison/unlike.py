"""What stands above two sides: what they are, and what is not alike in them."""

from __future__ import annotations

from gpubench.analysis.comparing import SideBySide
from gpubench.analysis.matching import DEFINITION, settled_apart, values_of
from gpubench.analysis.varied import values
from gpubench.basics.words import clean
from gpubench.report.comparison.side import (
    ENVIRONMENT,
    Side,
    cpus,
    each_once,
    gpus,
    machine_of,
    measured_rows,
)
from gpubench.schema.cell import cell
from gpubench.schema.record import ALLOTTED


def heading(a: Side, b: Side, of: SideBySide, field: str = "") -> list[str]:
    """Lines above: both sides, and what is not alike in them. `field`: the one that was asked to differ."""
    said = [f"A: {a.name}; {machine_of(a)}", f"B: {b.name}; {machine_of(b)}"]
    unlike = unlike_of(a, b, of, field)
    if both := [f"{name} {first} against {second}" for name, first, second in unlike if first and second]:
        said.append(f"Not alike, A against B: {'; '.join(both)}")
    for side, place in (("A", 1), ("B", 2)):
        if alone := [f"{one[0]} {one[place]}" for one in unlike if one[place] and not one[3 - place]]:
            said.append(f"Told by {side} alone: {'; '.join(alone)}")
    if of.matching.set_aside:
        said.append(
            "No trial of A is one of B in all its fields. Set beside each other are those that differ only in what "
            "is not alike in any of them: that they belong together is a guess."
        )
    return [clean(line) for line in said]


def unlike_of(a: Side, b: Side, of: SideBySide, field: str = "") -> list[tuple[str, str, str]]:
    """What is not alike in both: its name, A's value, B's value."""
    mine, others = ([pair[side] for pair in of.matching.pairs] for side in (0, 1))
    mine, others = mine or list(a.rows), others or list(b.rows)
    found = []
    for name, told in (("GPU", gpus), ("CPU", cpus)):
        first, second = (each_once(told(row) for row in rows) for rows in (mine, others))
        if first != second:
            found.append((name, first, second))
    for column, name in ENVIRONMENT.items():
        first, second = (
            each_once(cell(row.value(column)) for row in measured_rows(rows)) for rows in (mine, others)
        )
        if first != second:
            found.append((name, first, second))
    for name in of.matching.set_aside:
        if name == DEFINITION:
            found.append(("what the variant does", "one way", "another"))
        elif name != field:
            first, second = (each_once(cell(one) for one in values(rows, name)) for rows in (mine, others))
            if first == second:  # images of one name
                first, second = (
                    each_once(cell(one) for one in values_of(rows, name)) for rows in (mine, others)
                )
            found.append((name, first, second))
    for name in (*of.matching.followed, *settled_apart(of.matching.pairs)):
        first, second = (each_once(cell(one) for one in values(rows, name)) for rows in (mine, others))
        found.append((f"{name} by the machine" if name in ALLOTTED else name, first, second))
    return [(clean(name), clean(first), clean(second)) for name, first, second in found]
