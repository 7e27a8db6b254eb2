"""That rows were measured on several nodes of one kind: what intervals hold of it, and how such rows are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpubench.analysis.over_processes import epochs, is_apart
from gpubench.analysis.varied import machine
from gpubench.basics.words import listed
from gpubench.schema import hosts
from gpubench.schema.row import Row, TableRow

MANY = 2
NAMED = 4
"""How many nodes are named."""


def sentences(rows: Sequence[TableRow], which: Callable[[Sequence[TableRow]], str]) -> list[str]:
    """One for each kind of machine of which rows were measured on several nodes. `which`: names some of the rows."""
    kinds: dict[tuple[str | None, int], list[TableRow]] = {}
    for row in rows:
        if row.host:
            kinds.setdefault((machine(row), _together(row)), []).append(row)
    said = []
    for (_, together), mine in kinds.items():
        nodes = sorted({host for row in mine for host in _hosts(row)})
        if len(nodes) < MANY:
            continue
        on_one = [row for row in mine if len(_hosts(row)) == 1]
        held = (
            f"what nodes differ by is in no interval of an epoch time of one node alone ({which(on_one)})"
            if on_one
            else "each row was measured on several of them, so that the interval of its epoch time holds what these "
            "differ by, as if each process had had a node of its own"
        )
        what = "nodes" if together == 1 else f"sets of {together} nodes"
        told = f"Measured on {len(nodes)} {what} of one kind ({_named(nodes)}): {held}."
        samples = [found for row in mine if (found := epochs(row)) is not None]
        if any(is_apart(one, samples[0]) for one in samples):
            told += (
                " Rows of unlike nodes are compared by the rounds that both were measured in on the same node; where "
                "these are fewer than three, nobody knows what the nodes differ by, and the comparison is open."
            )
        said.append(told)
    return said


def _together(row: Row) -> int:
    """How many nodes its trials had."""
    return max((hosts.count(run.host) for run in row.runs if run.host), default=1)


def _named(nodes: Sequence[str]) -> str:
    return listed(nodes) if len(nodes) <= NAMED else f"{', '.join(nodes[:NAMED])} and others"


def _hosts(row: TableRow) -> set[str]:
    """On which nodes a row's processes ran."""
    return {run.host for run in row.runs if run.host and run.status == "ok"}
