"""Tables of equal rows that were measured on several nodes, whose effects are known: for tests of what is promised."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from whole_rows import row_with

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import decided
from gpubench.analysis.over_processes import between_nodes, time_ratio
from gpubench.analysis.repeats import merge_repeats
from gpubench.schema.row import Row, TableRow

Dealt = Literal["at random", "one node each", "one node each, 1 reference", "one node each, 3 references"]
"""How rows are dealt over nodes. A reference is measured on every node in each round."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Equal rows on nodes that are not equal."""

    dealt: Dealt
    rows: int = 10
    rounds: int = 3
    nodes: int = 2
    effect: float = 0.05
    """Standard deviation of what nodes differ by, on the log scale."""
    noises: tuple[float, ...] = (0.02,)
    """Standard deviations between processes, of which each row has one."""
    interaction: float = 0.0
    """Standard deviation of what a node does to one row beside what it does to all."""

    def draw(self, draw: np.random.Generator) -> list[TableRow]:
        """The rows of one table."""
        effects = draw.normal(0, self.effect, self.nodes)
        found: list[Row] = []
        for row in range(self.rows):
            noise = draw.choice(self.noises)
            own = draw.normal(0, 1, self.nodes) * self.interaction
            for number in range(1, self.rounds + 1):
                for repeat, node in enumerate(self._nodes(row, draw)):
                    time = math.exp(effects[node] + own[node] + draw.normal(0, noise))
                    found.append(process(row, time, number, f"n{node}", repeat))
        return merge_repeats(found)

    def _nodes(self, row: int, draw: np.random.Generator) -> Sequence[int]:
        if self.dealt == "at random":
            return [int(draw.integers(self.nodes))]
        references = {"one node each": 0, "one node each, 1 reference": 1, "one node each, 3 references": 3}
        return range(self.nodes) if row < references[self.dealt] else [row % self.nodes]


def process(row: int, time: float, number: int, node: str, repeat: int = 0) -> Row:
    """One process of a row, in a round, on a node."""
    return row_with(
        config_id=f"c{row}", trial_id=f"t{row}-{repeat}", status="ok", round=number, repeat=repeat, host=node,
        epoch_time_s=time, images_per_epoch=100, gpu_name="G", device="cuda",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What came of many such tables, each row compared with the next."""

    holds: float
    """Share of known intervals that hold the truth, which is no difference."""
    corrected: float
    """Share of comparisons between unlike nodes."""
    holds_corrected: float
    """Share of those, with a known interval, that hold it."""
    open: float
    """Share of comparisons of which nothing is known."""
    wrong: float
    """Share of tables with any false `slower` or `faster`."""


def seen(of: Tables, draw: np.random.Generator, samples: int) -> Seen:
    """Of so many tables."""
    every: list[tuple[bool, Interval]] = []
    wrong = 0
    for _ in range(samples):
        rows = of.draw(draw)
        pairs = [(b, a) for a, b in itertools.pairwise(rows)]
        ratios = [ratio for pair in pairs if (ratio := time_ratio(*pair)) is not None]
        wrong += any(one.word in ("slower", "faster") for one in decided(ratios).ratios)
        every += [(between_nodes(*pair), ratio) for pair, ratio in zip(pairs, ratios, strict=True)]
    known = [(apart, one.low <= 1 <= one.high) for apart, one in every if one.is_known]
    between = [held for apart, held in known if apart]
    return Seen(
        holds=_share([held for _, held in known]),
        corrected=_share([apart for apart, _ in every]),
        holds_corrected=_share(between),
        open=_share([not one.is_known for _, one in every]),
        wrong=wrong / samples,
    )


def _share(found: Sequence[bool]) -> float:
    return float(np.mean(found)) if found else math.nan
