"""That rows were measured on several nodes of one kind: what intervals hold of it, and what comparisons do with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gpubench.analysis.certainty import node_effects
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import MeanEstimate
from gpubench.analysis.decided import change
from gpubench.analysis.nodes_apart import Kind, kind
from gpubench.analysis.noise import processes
from gpubench.basics.rounding import half_up
from gpubench.basics.words import listed, many
from gpubench.schema.node_fit import NodeFit
from gpubench.schema.row import TableRow

MANY = 2
NAMED = 4
"""How many nodes are named."""
SEVERAL = 2
"""Processes from which a row is compared with its interval."""


def sentences(rows: Sequence[TableRow], which: Callable[[Sequence[TableRow]], str]) -> list[str]:
    """One for each kind of machine of which rows were measured on several nodes. `which`: names some of the rows."""
    kinds: dict[Kind, list[TableRow]] = {}
    for row in rows:
        if row.host:
            kinds.setdefault(kind(row), []).append(row)
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
        told = [f"Measured on {len(nodes)} {what} of one kind ({_named(nodes)}): {held}."]
        compared = [row for row in mine if processes(row) >= SEVERAL]
        fit = next((fit for row in compared if (fit := row.node_fits.get("epoch")) is not None), None)
        if fit is not None and len(compared) > 1:
            told += _compared(fit, together)
        said.append(" ".join(told))
    return said


def _compared(fit: NodeFit, together: int) -> list[str]:
    """What comparisons between these nodes do. `together`: how many of them a trial had."""
    kin: dict[int, list[str]] = {}
    for node, first in zip(fit.nodes, fit.kin, strict=True):
        kin.setdefault(first, []).append(node)
    found = [one for own in kin.values() for node in own[1:] if (one := _effect(fit, node, own[0]))]
    said = []
    if found:
        more = f", and on {len(found) - NAMED} more" if len(found) > NAMED else ""
        rows = "the only row that was" if fit.shared == 1 else f"the {many(fit.shared, 'row')} that were"
        said.append(
            f"{'; '.join(found[:NAMED])}{more}, by {rows} measured on several of them. Rows of unlike nodes are "
            f"compared after this is taken away, with its error in their intervals, so a growth, a speedup or a "
            f"slowdown need not be that of the epoch times shown. {_as_much(fit)}"
        )
    if len(kin) > 1:
        apart = [_named(own) for own in kin.values()]
        # A reference is a trial on one node.
        helps = ": gpubench sweep … --join --reference measures one row on each" if together == 1 else ""
        said.append(
            f"No row connects {listed(apart) if len(apart) <= NAMED else 'all of these nodes'}, so nobody knows what "
            f"these differ by, and comparisons between them are open{helps}."
        )
    return said


def _effect(fit: NodeFit, node: str, first: str) -> str:
    """`Against n1, epoch time grows 4.1 % (+3.0 to +5.2 %) on n2`; empty where too few processes tell."""
    weights = {node: 1.0, first: -1.0}
    parts = node_effects.parts(fit, weights, 1)
    if parts is None:
        return ""
    log = MeanEstimate(center=node_effects.effect(fit, weights), parts=parts)
    return f"Against {first}, epoch time {change(Interval(log=log, processes=()))} on {node}"


def _as_much(fit: NodeFit) -> str:
    """Whether nodes differ by as much in every row."""
    if fit.without_one:
        what = "that" if fit.shared == 1 else "that of some of these nodes"
        return (
            f"One row alone tells {what}. Others may differ by something else, so as much again counts as an error of "
            "comparisons between nodes, until more rows are measured on several of them."
        )
    if fit.interaction is None:
        return "That it is as much in every row is taken for granted: too few rows tell."
    if not fit.interaction.variance:
        return "From row to row it differs by no more than chance explains."
    much = f"{half_up(100 * fit.interaction.variance**0.5, 1)} %"
    return (
        f"From row to row it seems to differ by more than chance, by a standard deviation of {much}, which is in "
        "these intervals, too."
    )


def _named(nodes: Sequence[str]) -> str:
    named = [node or "a node that is not on record" for node in nodes[:NAMED]]
    return listed(named) if len(nodes) <= NAMED else f"{', '.join(named)} and others"


def _hosts(row: TableRow) -> set[str]:
    """On which nodes a row's processes ran."""
    return {run.host for run in row.runs if run.host and run.status == "ok"}
