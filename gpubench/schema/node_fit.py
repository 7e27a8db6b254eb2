"""How nodes of one kind of machine differ in one figure, as rows that were measured on several of them tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

Figure = Literal["epoch", "steady", "cpu"]
"""Which of a process: its epoch time, its steady step, its CPU time an epoch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """Rows that had as many processes on each node: what they leave open of the nodes' effects is of one form."""

    places: Mapping[int, int]
    """Number of a node among `NodeFit.nodes` -> processes of each row on it."""
    freedom: float
    """Degrees of freedom that each of these rows has left of its own noise; 0: it tells nothing of that."""
    variances: float
    """Sum of the variances of a process of each row, on the log scale."""
    squared: float
    """Sum of the squares of these."""
    rows: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Interaction:
    """Whether nodes differ by as much in every configuration, as those tell that were measured repeatedly on some."""

    chance: float
    """p-value of "they do": that of a spread between configurations as large as was seen, or larger."""
    variance: float
    """Of what a node does to one configuration beside what it does to all, on the log scale; 0 where none is shown."""
    freedom: float


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class NodeFit:
    """The effects of nodes on the logarithm of one figure, by least squares."""

    nodes: tuple[str, ...]
    """In the order of their names."""
    kin: tuple[int, ...]
    """Of each node a number that those have in common which rows connect: only these can be compared."""
    effects: tuple[float, ...]
    """Of each, against the first of its kin."""
    inverse: Array
    """Square, a line and a column for each node: times the variance of a process the covariance of `effects`, were all
    rows equally noisy."""
    patterns: Sequence[Pattern]
    """Of the rows that were measured on several nodes."""
    interaction: Interaction | None
    """None where too few rows tell."""
    without_one: Sequence[tuple[int, ...]]
    """For each row without which fewer nodes would be connected: what `kin` would be then. What only such a row tells,
    nothing else confirms."""

    @property
    def shared(self) -> int:
        """Rows that were measured on several nodes."""
        return sum(one.rows for one in self.patterns)
