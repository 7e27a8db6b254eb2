"""How nodes of one kind of machine differ: each row is told it, so that comparisons reckon with it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gpubench.analysis.certainty import node_effects
from gpubench.analysis.varied import machine
from gpubench.schema import hosts
from gpubench.schema.node_fit import Figure, NodeFit
from gpubench.schema.row import Row, TableRow, replace

Kind = tuple[str | None, int]
"""A kind of machine, and how many nodes of it."""
FIGURES: Mapping[Figure, Callable[[Row], float | None]] = {
    "epoch": lambda run: run.epoch_time_s,
    "steady": lambda run: run.steady_step_s,
    "cpu": lambda run: run.cpu_s_per_epoch,
}


def with_nodes(rows: Sequence[TableRow]) -> Sequence[TableRow]:
    """The rows, repeats merged, with how the nodes of their kind of machine differ; as they are where it has one node.

    It is told by the processes of trials alone: jobs of a group make each other slow or fast in each run. Nodes that a
    trial had together count as one, which is set beside those of trials over as many nodes.
    """
    kinds: dict[Kind, list[TableRow]] = {}
    for row in rows:
        kinds.setdefault(kind(row), []).append(row)
    several = {name: mine for name, mine in kinds.items() if _several(mine)}
    if not several:
        return rows
    fits = {name: _fits(mine) for name, mine in several.items()}
    return [replace(row, node_fits=found) if (found := fits.get(kind(row))) else row for row in rows]


def kind(row: Row) -> Kind:
    """The machine that a row's figures depend on, and how many of them it had: a node is compared with those alike."""
    return machine(row), max((hosts.count(run.host) for run in row.runs if run.host), default=1)


def _several(rows: Sequence[TableRow]) -> bool:
    return len({run.host for row in rows for run in row.runs} - {None}) > 1


def _fits(rows: Sequence[TableRow]) -> dict[Figure, NodeFit]:
    found = {}
    for name, figure in FIGURES.items():
        told = []
        for row in rows:
            each = [(run.host or "", value) for run in row.runs if (value := figure(run))]
            # Of jobs together only on which nodes they ran.
            told += [[one] for one in each] if row.group else [each]
        if (fit := node_effects.fit([one for one in told if one])) is not None:
            found[name] = fit
    return found
