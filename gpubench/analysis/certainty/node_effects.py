"""By how much nodes of one kind differ: least squares over rows that were measured on several of them. Pure.

The logarithm of a process's time is taken for row + node + chance: an incomplete block design, whose blocks are rows
(Yates 1940). The effects rest on what processes of one row differ by alone, so chance in them is independent of the
mean of any row. Each row's own noise counts, for rows are not equally noisy: of what is left of its processes after
both are taken away, with the degrees of freedom that are left.

That a node does the same to all configurations is tested where rows have several processes on some node: if what is
left differs between a row's nodes by more than inside them (an F test), the variance of that counts in each comparison
between nodes. Where a single row connects nodes, nothing tells whether others differ by as much on them. Then what a
node does to one row beside what it does to all is taken to be as large as what nodes differ by in that row.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.analysis.certainty.distributions import f_above
from gpubench.analysis.certainty.mean_estimate import LEVEL, Part, mean
from gpubench.schema.node_fit import Interaction, NodeFit, Pattern

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpubench.schema.node_fit import Array

Processes = Sequence[tuple[str, float]]
"""Of one row: of each process its node, and its time."""
NOTHING = 1e-9
"""Degrees of freedom, and shares of them, below which there are none but for rounding."""
NO_SPREAD = 1e-20
"""A variance on the log scale that is none but for rounding."""


def fit(rows: Sequence[Processes]) -> NodeFit | None:
    """The nodes' effects; None where all was measured on one node. Times are above 0."""
    nodes = tuple(sorted({node for row in rows for node, _ in row}))
    if len(nodes) < 2:
        return None
    number = {node: place for place, node in enumerate(nodes)}
    own = [[(number[node], math.log(time)) for node, time in sorted(row)] for row in rows]
    shared = sorted(row for row in own if row[0][0] != row[-1][0])
    kin = _kin(len(nodes), shared)
    counts = Counter(_pattern(row) for row in shared)
    inverse = _inverse(kin, counts)
    sums: list[list[float]] = [[] for _ in nodes]
    for row in shared:
        middle = mean([value for _, value in row])
        for node, value in row:
            sums[node].append(value - middle)
    told = inverse @ [math.fsum(one) for one in sums]
    effects = tuple(float(one) for one in told)
    return NodeFit(
        nodes=nodes,
        kin=kin,
        effects=effects,
        inverse=inverse,
        patterns=_patterns(shared, effects, inverse),
        interaction=_interaction(shared, effects, inverse),
        without_one=_without_one(len(nodes), shared),
    )


def connected(of: NodeFit, weights: Mapping[str, float]) -> bool:
    """Whether rows connect the nodes that such a comparison is between. `weights`: of nodes, 0 in sum."""
    return _connected(of, of.kin, weights)


def rests_on_one(of: NodeFit, weights: Mapping[str, float]) -> bool:
    """Whether without a certain row such a comparison would be between nodes that nothing connects."""
    return not all(_connected(of, kin, weights) for kin in of.without_one)


def _connected(of: NodeFit, kin: Sequence[int], weights: Mapping[str, float]) -> bool:
    sums: dict[int, list[float]] = {}
    for node, weight in weights.items():
        sums.setdefault(kin[of.nodes.index(node)], []).append(weight)
    return all(abs(math.fsum(one)) < NOTHING for one in sums.values())


def effect(of: NodeFit, weights: Mapping[str, float]) -> float:
    """The sum of the nodes' effects with these weights, on the log scale."""
    return math.fsum(weight * of.effects[of.nodes.index(node)] for node, weight in weights.items())


def parts(of: NodeFit, weights: Mapping[str, float], processes: int) -> tuple[Part, ...] | None:
    """What the error of that sum adds to the variance of a comparison; None where it is not known.

    `processes`: of a side of the comparison, with whose number that error falls, for further rounds tell more of the
    nodes, too.
    """
    if not connected(of, weights):
        return None
    return _parts(of, tuple(sorted(weights.items())), processes)


@functools.lru_cache(maxsize=4096)
def _parts(of: NodeFit, weights: tuple[tuple[str, float], ...], processes: int) -> tuple[Part, ...] | None:
    import numpy as np

    cells = _cells(of)
    if not len(cells.rows):
        return None
    # By how much the sum with these weights moves with one process on each node; then with each of a row's processes.
    places = [of.nodes.index(node) for node, _ in weights]
    moved = (of.inverse[:, places] @ [weight for _, weight in weights])[cells.node]
    middle = np.bincount(cells.pattern, cells.count * moved) / np.bincount(cells.pattern, cells.count)
    apart = moved - middle[cells.pattern]
    bears = np.bincount(cells.pattern, cells.count * apart**2)
    bearing = bears > NOTHING * bears.max()
    if (cells.freedom[bearing] < NOTHING).any():
        return None
    # By Satterthwaite. The squares of estimated variances are too large by (f + 2) / f in the mean; it is taken off, as
    # otherwise many rows of two or three processes would count for a third of the freedom that they have.
    variance = float(cells.variances @ bears)
    squares = float(cells.squared @ (bears**2 / (cells.freedom + 2)))
    freedom = float(cells.freedom[bearing] @ cells.rows[bearing])
    found = [Part(variance, min(freedom, variance**2 / squares - 2) if squares else freedom, processes)]
    between = of.interaction
    own = math.fsum(weight**2 for _, weight in weights)
    if between is not None and between.variance:
        others = float(cells.rows @ np.bincount(cells.pattern, (cells.count * apart) ** 2))
        found.append(Part(between.variance * (own + others), between.freedom, processes))
    if rests_on_one(of, dict(weights)):
        # Each of both rows, and the one that tells, had something from each node that no other row has.
        variance, freedom = _spread(of)
        found.append(Part(2 * own * variance, freedom, processes))
    return tuple(found)


def _spread(of: NodeFit) -> tuple[float, float]:
    """The variance of nodes' effects among those that rows connect, and its degrees of freedom."""
    kin: dict[int, list[float]] = {}
    for first, one in zip(of.kin, of.effects, strict=True):
        kin.setdefault(first, []).append(one)
    freedom = len(of.nodes) - len(kin)
    squares = math.fsum((one - mean(ones)) ** 2 for ones in kin.values() for one in ones)
    return squares / freedom, float(freedom)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cells:
    """The patterns of rows, in arrays: of each of its nodes a line, and of each pattern."""

    pattern: npt.NDArray[np.intp]
    node: npt.NDArray[np.intp]
    count: Array
    freedom: Array
    variances: Array
    squared: Array
    rows: Array


@functools.lru_cache(maxsize=64)
def _cells(of: NodeFit) -> _Cells:
    import numpy as np

    each = [
        (number, node, count) for number, one in enumerate(of.patterns) for node, count in one.places.items()
    ]
    pattern, node, count = zip(*each, strict=True) if each else ((), (), ())
    return _Cells(
        pattern=np.array(pattern, dtype=np.intp),
        node=np.array(node, dtype=np.intp),
        count=np.array(count, dtype=float),
        freedom=np.array([one.freedom for one in of.patterns]),
        variances=np.array([one.variances for one in of.patterns]),
        squared=np.array([one.squared for one in of.patterns]),
        rows=np.array([one.rows for one in of.patterns], dtype=float),
    )


def own_part(of: NodeFit, processes: Processes) -> tuple[float, Part | None]:
    """The mean logarithm of a row's times without its nodes' effects, and what its own noise adds to the variance.

    None where what is left of its processes tells nothing of their noise, as of two on two nodes that no other row was
    measured on.
    """
    own = [(of.nodes.index(node), math.log(time)) for node, time in sorted(processes)]
    left = [value - of.effects[node] for node, value in own]
    middle = mean(left)
    places = dict(Counter(node for node, _ in own))
    freedom = _freedom(places, of.inverse)
    if freedom < NOTHING:
        return middle, None
    spread = math.fsum((value - middle) ** 2 for value in left) / freedom
    return middle, Part(spread / len(own), freedom, len(own))


# ---- the design ----


def _pattern(row: Sequence[tuple[int, float]]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted(Counter(node for node, _ in row).items()))


Shared = Sequence[Sequence[tuple[int, float]]]
"""Rows that were measured on several nodes: of each process the number of its node, and what it told."""


def _kin(count: int, shared: Shared) -> tuple[int, ...]:
    """Of each node the least of those that rows connect with it."""
    return _joined(count, shared)[0]


def _joined(count: int, shared: Shared) -> tuple[tuple[int, ...], list[int]]:
    """The same, with the places of the rows that have connected something that those before had not."""
    found, useful = list(range(count)), []

    def least(node: int) -> int:
        while found[node] != node:
            found[node] = node = found[found[node]]
        return node

    for place, row in enumerate(shared):
        for node, _ in row[1:]:
            one, other = sorted((least(row[0][0]), least(node)))
            if one != other:
                found[other] = one
                useful.append(place)
    return tuple(least(node) for node in range(count)), list(dict.fromkeys(useful))


def _without_one(count: int, shared: Shared) -> list[tuple[int, ...]]:
    """As of `NodeFit`. Rows that connect nothing anew are not needed; of these, as few are looked through as do the
    same as all of them."""
    kin, needed = _joined(count, shared)
    rest = [row for place, row in enumerate(shared) if place not in set(needed)]
    spare = [rest[place] for place in _joined(count, rest)[1]]
    first = [shared[place] for place in needed]
    left = {_kin(count, [*first[:place], *first[place + 1 :], *spare]) for place in range(len(first))}
    return sorted(left - {kin})


def _inverse(kin: Sequence[int], counts: Mapping[tuple[tuple[int, int], ...], int]) -> Array:
    """A generalised inverse of the information on the nodes, in which the first of each kin has the effect 0."""
    import numpy as np

    told = np.zeros((len(kin), len(kin)))
    for pattern, rows in sorted(counts.items()):
        size = sum(count for _, count in pattern)
        for node, count in pattern:
            told[node, node] += rows * count
            for other, also in pattern:
                told[node, other] -= rows * count * also / size
    free = [node for node, first in enumerate(kin) if node != first]
    found = np.zeros_like(told)
    if free:
        found[np.ix_(free, free)] = np.linalg.inv(told[np.ix_(free, free)])
    return found


def _freedom(places: Mapping[int, int], inverse: Array) -> float:
    """Degrees of freedom of what is left of a row's processes without its mean and the nodes' effects."""
    size = sum(places.values())
    used = math.fsum(count * inverse[node, node] for node, count in places.items())
    used -= math.fsum(
        count * also * inverse[node, other] / size
        for node, count in places.items()
        for other, also in places.items()
    )
    return size - 1 - float(used)


def _left(row: Sequence[tuple[int, float]], effects: Sequence[float]) -> list[float]:
    """What is left of a row's processes without its mean and the nodes' effects."""
    values = [value - effects[node] for node, value in row]
    middle = mean(values)
    return [value - middle for value in values]


def _patterns(
    shared: Sequence[Sequence[tuple[int, float]]], effects: Sequence[float], inverse: Array
) -> list[Pattern]:
    by_pattern: dict[tuple[tuple[int, int], ...], list[float]] = {}
    for row in shared:
        squares = math.fsum(one**2 for one in _left(row, effects))
        by_pattern.setdefault(_pattern(row), []).append(squares)
    found = []
    for pattern, squares_of in sorted(by_pattern.items()):
        places = dict(pattern)
        freedom = _freedom(places, inverse)
        known = [one / freedom for one in squares_of] if freedom > NOTHING else []
        found.append(
            Pattern(
                places=places,
                freedom=max(0.0, freedom),
                variances=math.fsum(known),
                squared=math.fsum(one**2 for one in known),
                rows=len(squares_of),
            )
        )
    return found


def _interaction(
    shared: Sequence[Sequence[tuple[int, float]]], effects: Sequence[float], inverse: Array
) -> Interaction | None:
    """By the rows that have several processes on one of their nodes: what they differ by inside nodes and between."""
    inside: list[float] = []
    between: list[float] = []
    freedom_inside, freedom_between, sizes, cells = 0, 0.0, 0.0, 0
    for row in shared:
        places = Counter(node for node, _ in row)
        if len(places) == len(row):
            continue
        left = _left(row, effects)
        by_node: dict[int, list[float]] = {}
        for (node, _), one in zip(row, left, strict=True):
            by_node.setdefault(node, []).append(one)
        middles = {node: mean(ones) for node, ones in by_node.items()}
        inside += [(one - middles[node]) ** 2 for node, ones in by_node.items() for one in ones]
        between += [len(ones) * middles[node] ** 2 for node, ones in by_node.items()]
        freedom_inside += len(row) - len(places)
        freedom_between += _freedom(places, inverse) - (len(row) - len(places))
        sizes += len(row) - sum(count**2 for count in places.values()) / len(row)
        cells += len(places) - 1
    if not freedom_inside or freedom_between < NOTHING:
        return None
    of_chance = math.fsum(inside) / freedom_inside
    seen = math.fsum(between) / freedom_between
    if seen < NO_SPREAD:
        return Interaction(chance=1.0, variance=0.0, freedom=freedom_between)
    chance = f_above(seen / of_chance, freedom_between, freedom_inside) if of_chance > NO_SPREAD else 0.0
    more = max(0.0, seen - of_chance) * cells / sizes
    return Interaction(chance=chance, variance=more if chance <= LEVEL else 0.0, freedom=freedom_between)
