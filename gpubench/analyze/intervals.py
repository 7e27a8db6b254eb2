"""95 % intervals of the columns of table.csv, over processes, on the log scale. All pairs of rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.schema import hosts
from gpubench.stats.distributions import t_quantile
from gpubench.stats.estimates import ALPHA

FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""
Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Processes:
    """The processes that ended ok, of rows that have several: an entry a process in each array."""

    size: int
    """Rows of the summary."""
    row: Indices
    run: Indices
    """Labels of `Runs`."""
    place: Indices
    """A number for each round on each node."""
    first_place: Indices
    """Likewise of the first node of a process that is on several."""
    node: npt.NDArray[np.object_]
    first_node: npt.NDArray[np.object_]
    width: Indices
    """On how many nodes it was."""
    figures: Mapping[str, npt.NDArray[Any]]
    """Columns of `Runs`."""

    @classmethod
    def from_members(
        cls, repeats: Indices, members: pd.DataFrame, runs: pd.DataFrame, names: Iterable[str]
    ) -> Processes:
        """Those of these members. `repeats`: processes of each row."""
        row, is_ok = members["row"].to_numpy(), members["is_ok"].to_numpy()
        several = is_ok & (repeats[row] > 1)
        run = members["run"].to_numpy()[several]
        ended = runs.loc[run]
        hosts_of_runs = ended["host"].fillna("").to_numpy(dtype=object)
        codes, host_names = pd.factorize(hosts_of_runs)
        firsts = np.array([hosts.find_first_node(host) for host in host_names], dtype=object)
        rounds = ended["round"].to_numpy("int64")
        numbers = [rounds * (len(host_names) + 1) + node for node in (codes, pd.factorize(firsts)[0][codes])]
        return cls(
            size=len(repeats), row=row[several], run=run, place=numbers[0], first_place=numbers[1],
            node=hosts_of_runs, first_node=firsts[codes],
            width=np.array([hosts.count_nodes(host) for host in host_names], dtype=np.int64)[codes],
            figures={name: _as_numbers(ended[name]) for name in names},
        )  # fmt: skip

    def logs(self, figure: str) -> Floats:
        """The logarithm of a figure; NaN where it is not above 0."""
        values = self.figures[figure]
        return np.log(np.where(values > 0, values, np.nan))

    @cached_property
    def is_placed(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Of each row whether each process was in a round of its own on its node; and likewise on its first node."""
        placed = [~self._has_duplicates(place) for place in (self.place, self.first_place)]
        return placed[0], placed[0] & placed[1]

    def _has_duplicates(self, place: Indices) -> npt.NDArray[np.bool_]:
        is_duplicate = pd.DataFrame({"row": self.row, "place": place}).duplicated().to_numpy()
        return np.bincount(self.row, is_duplicate, self.size) > 0


def _as_numbers(values: pd.Series[Any]) -> npt.NDArray[Any]:
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return values.to_numpy("float64", na_value=np.nan)
    return values.to_numpy()


@dataclass(frozen=True, kw_only=True)
class Means:
    """Means of logarithms under each number: an entry a number in each array."""

    count: Indices
    mean: Floats
    variance: Floats
    """Of a sample, NaN under two values; 0 where all are the same, whatever their sums come to."""

    @classmethod
    def from_groups(cls, number: Indices, logs: Floats, size: int) -> Means:
        """Of the known values under each number."""
        known = ~np.isnan(logs)
        number, logs = number[known], logs[known]
        count = np.bincount(number, minlength=size)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.bincount(number, logs, size) / count
            variance = np.bincount(number, (logs - mean[number]) ** 2, size) / np.where(
                count > 1, count - 1, np.nan
            )
        least, most = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(least, number, logs)
        np.maximum.at(most, number, logs)
        return cls(count=count, mean=mean, variance=np.where((least == most) & (count > 1), 0.0, variance))

    def compute_half_width(self) -> Floats:
        """Half the width of the 95 % interval of each mean; NaN under two values."""
        return _compute_half_width(self.variance / np.maximum(self.count, 1), self.count - 1)


def _compute_half_width(variance: Floats, degrees: Any) -> Floats:
    """Half the width of Student's interval; 0 where nothing varies."""
    half: Floats = np.where(variance == 0, 0.0, np.nan)
    varies = variance > 0
    if varies.any():
        half[varies] = t_quantile(1 - ALPHA / 2, np.broadcast_to(degrees, half.shape)[varies]) * np.sqrt(
            variance[varies]
        )
    return half


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """Ratios of geometric means of two rows each, on the log scale; NaN where a row is of one process."""

    log: Floats
    half: Floats
    """Half the width of the 95 % interval: infinite between unlike nodes, of which nobody knows what they differ by."""
    is_by_some_rounds: npt.NDArray[np.bool_]
    """Whether they are compared by the rounds that both have, and one has others, too."""

    def compute_ends(self, factor: Any = 1.0, shift: float = 0.0) -> tuple[Floats, Floats]:
        """Low and high end of `factor` × (ratio - `shift`), NaN where one is infinite."""
        with np.errstate(over="ignore"):
            ends = [factor * (np.exp(self.log + sign * self.half) - shift) for sign in (-1, 1)]
        low, high = (np.where(np.isfinite(end), end, np.nan) for end in ends)
        return low, high

    def scale(self, factor: Floats) -> Ratios:
        """The ratios times exact factors."""
        return replace(self, log=self.log + np.log(factor))

    def where(self, known: npt.NDArray[np.bool_], fallback: Ratios | None = None) -> Ratios:
        """These where they are known, else fallback, or none."""
        log, half, some = (
            (fallback.log, fallback.half, fallback.is_by_some_rounds) if fallback else (np.nan, np.nan, False)
        )
        return Ratios(
            log=np.where(known, self.log, log),
            half=np.where(known, self.half, half),
            is_by_some_rounds=np.where(known, self.is_by_some_rounds, some),
        )


def compare_rows(
    processes: Processes,
    machine: Indices,
    numerator: Indices,
    denominator: Indices,
    figure: str,
    *,
    by_processes: bool = False,
) -> Ratios:
    """The ratio of the geometric means of a figure over the processes of two rows, for each pair.

    `machine`: a code for each row of the summary. `numerator`, `denominator`: its rows. Rows that were measured in
    FEWEST_ROUNDS or more in common, each on the same node, are compared round by round, others by all their processes
    with Welch's standard error, never narrower than either side alone would leave it. A trial over several nodes is set
    beside one over fewer by its first node. `by_processes`: all by their processes, with the fewest degrees of freedom,
    which is how jobs are tested against their trials alone.
    """
    logs = processes.logs(figure)
    size = processes.size
    sides = Means.from_groups(processes.row, logs, size)
    members = np.bincount(processes.row, minlength=size)
    is_known = (members > 1) & (sides.count == members)
    known = is_known[numerator] & is_known[denominator]
    width = np.zeros(size, dtype=np.int64)
    np.maximum.at(width, processes.row, processes.width)
    is_first = (
        np.zeros(len(numerator), dtype=bool)
        if by_processes
        else known & (width[numerator] != width[denominator])
    )

    log, variance, common = (np.full(len(numerator), np.nan) for _ in range(3))
    is_on_other_nodes = np.zeros(len(numerator), dtype=bool)
    is_same_rounds = np.zeros(len(numerator), dtype=bool)
    for by_first in {*is_first.tolist()}:
        chosen = np.flatnonzero(is_first == by_first)
        place = processes.first_place if by_first else processes.place
        is_placed = processes.is_placed[by_first]
        pairs = _pair_rounds(processes.row, place, logs, is_placed, numerator[chosen], denominator[chosen])
        log[chosen], variance[chosen], common[chosen] = pairs.mean, pairs.variance, pairs.count
        rounds_of_row = np.where(is_placed, members, 0)
        is_same_rounds[chosen] = (rounds_of_row[numerator[chosen]] == pairs.count) & (
            rounds_of_row[denominator[chosen]] == pairs.count
        )
        nodes = processes.first_node if by_first else processes.node
        is_on_other_nodes[chosen] = _has_other_nodes(
            processes.row, nodes, size, numerator[chosen], denominator[chosen]
        )
    is_on_other_nodes &= machine[numerator] == machine[denominator]
    by_rounds = known & (common >= FEWEST_ROUNDS) & (not by_processes)

    parts = [sides.variance[side] / sides.count[side] for side in (numerator, denominator)]
    degrees = [sides.count[side] - 1 for side in (numerator, denominator)]
    total = parts[0] + parts[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        welch_degrees = total**2 / (parts[0] ** 2 / degrees[0] + parts[1] ** 2 / degrees[1])
    if by_processes:
        welch = _compute_half_width(total, np.minimum(*degrees))
    else:
        welch = _compute_half_width(total, welch_degrees)
        for part, degree in zip(parts, degrees, strict=True):
            welch = np.fmax(welch, _compute_half_width(part, degree))
    welch = np.where(is_on_other_nodes, np.inf, welch)
    return Ratios(
        log=np.where(by_rounds, log, sides.mean[numerator] - sides.mean[denominator]),
        half=np.where(by_rounds, _compute_half_width(variance / np.maximum(common, 1), common - 1), welch),
        is_by_some_rounds=by_rounds & ~is_same_rounds,
    ).where(known)


def _pair_rounds(
    row: Indices,
    place: Indices,
    logs: Floats,
    is_placed: npt.NDArray[np.bool_],
    numerator: Indices,
    denominator: Indices,
) -> Means:
    """The differences of both sides' logarithms in the rounds that a pair has in common, for each pair."""
    usable = is_placed[row] & ~np.isnan(logs)
    row, place, logs = row[usable], place[usable], logs[usable]
    stride = place.max(initial=0) + 1
    keys = row * stride + place
    order = np.argsort(keys)
    keys, row, place, logs = keys[order], row[order], place[order], logs[order]
    begin, end = np.searchsorted(row, numerator, "left"), np.searchsorted(row, numerator, "right")
    pair = np.repeat(np.arange(len(numerator)), end - begin)
    first = (
        np.arange(len(pair)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin) + begin[pair]
    )
    wanted = denominator[pair] * stride + place[first]
    partner = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    is_common = keys[partner] == wanted if len(keys) else np.zeros(0, dtype=bool)
    return Means.from_groups(pair[is_common], (logs[first] - logs[partner])[is_common], len(numerator))


def _has_other_nodes(
    row: Indices, nodes: npt.NDArray[np.object_], size: int, numerator: Indices, denominator: Indices
) -> npt.NDArray[np.bool_]:
    """Whether two rows had unlike shares of their processes on their nodes, for each pair."""
    node, names = pd.factorize(nodes)
    if len(names) < 2:
        return np.zeros(len(numerator), dtype=bool)
    count = np.bincount(row * len(names) + node, minlength=size * len(names)).reshape(size, -1)
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1)
    unlike: npt.NDArray[np.bool_] = (share[numerator] != share[denominator]).any(axis=1)
    return unlike
