"""95 % intervals of the columns of table.csv, over processes, on the log scale."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.schema import hosts
from gpubench.stats.distributions import compute_t_quantile
from gpubench.stats.estimates import ALPHA, compute_interval_half_width, estimate_log_ratio

FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""
Floats: TypeAlias = npt.NDArray[np.float64]
Indices: TypeAlias = npt.NDArray[np.int64]
Sample: TypeAlias = tuple[int, str, float]
"""Round and host of a process, and its figure."""


@dataclass(frozen=True, kw_only=True)
class ProcessFigures:
    """The processes that ended ok, of rows that have several: an entry a process in each array."""

    row: Indices
    node: npt.NDArray[np.object_]
    """Its host; `n1 + n2` of one on several."""
    figures: Mapping[str, npt.NDArray[Any]]
    """Columns of `Runs`."""

    @classmethod
    def from_members(
        cls, repeats: Indices, members: pd.DataFrame, runs: pd.DataFrame, names: Iterable[str]
    ) -> ProcessFigures:
        """Those of these members. `repeats`: processes of each row."""
        row, is_ok = members["row"].to_numpy(), members["is_ok"].to_numpy()
        several = is_ok & (repeats[row] > 1)
        ended = runs.loc[members["run"].to_numpy()[several]]
        return cls(
            row=row[several],
            node=ended["host"].fillna("").to_numpy(dtype=object),
            figures={name: _convert_to_array(ended[name]) for name in names},
        )

    def compute_logs(self, figure: str) -> Floats:
        """The logarithm of a figure; NaN where it is not above 0."""
        values = self.figures[figure]
        return np.log(np.where(values > 0, values, np.nan))

    def collect(self, figure: str) -> dict[int, list[Sample]]:
        """Row -> its samples, of rows all of whose processes have this figure."""
        columns = (self.row, self.figures["round"], self.node, self.figures[figure])
        samples: dict[int, list[Sample]] = {}
        for row, turn, node, value in zip(*(values.tolist() for values in columns), strict=True):
            samples.setdefault(row, []).append((turn, node, value))
        return {
            row: members
            for row, members in samples.items()
            if all(0 < value < np.inf for *_, value in members)
        }


def _convert_to_array(values: pd.Series[Any]) -> npt.NDArray[Any]:
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        return values.to_numpy("float64", na_value=np.nan)
    return values.to_numpy()


@dataclass(frozen=True, kw_only=True)
class LogMeans:
    """Means of logarithms under each number: an entry a number in each array."""

    count: Indices
    mean: Floats
    variance: Floats
    """Of a sample, NaN under two values; 0 where all are the same, whatever their sums come to."""

    @classmethod
    def from_groups(cls, number: Indices, logs: Floats, size: int) -> LogMeans:
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
        half, has_several = np.full(len(self.count), np.nan), self.count > 1
        count, variance = self.count[has_several], self.variance[has_several]
        half[has_several] = compute_t_quantile(1 - ALPHA / 2, count - 1) * np.sqrt(variance / count)
        return half


@dataclass(frozen=True, kw_only=True)
class LogRatios:
    """Ratios of geometric means of two rows each, on the log scale; NaN where a row is of one process."""

    log: Floats
    half: Floats
    """Half the width of the 95 % interval: infinite between unlike nodes, of which nobody knows what they differ by."""

    def compute_ends(self, factor: Any = 1.0, shift: float = 0.0) -> tuple[Floats, Floats]:
        """Low and high end of `factor` × (ratio - `shift`), NaN where one is infinite."""
        with np.errstate(over="ignore"):
            ends = [factor * (np.exp(self.log + sign * self.half) - shift) for sign in (-1, 1)]
        low, high = (np.where(np.isfinite(end), end, np.nan) for end in ends)
        return low, high

    def scale(self, factor: Floats) -> LogRatios:
        """The ratios times exact factors."""
        return replace(self, log=self.log + np.log(factor))

    def where(self, known: npt.NDArray[np.bool_], fallback: LogRatios | None = None) -> LogRatios:
        """These where they are known, else fallback, or none."""
        log, half = (fallback.log, fallback.half) if fallback else (np.nan, np.nan)
        return LogRatios(log=np.where(known, self.log, log), half=np.where(known, self.half, half))


def compute_row_ratios(
    processes: ProcessFigures,
    machine: Indices,
    numerator: Indices,
    denominator: Indices,
    figure: str,
    *,
    by_processes: bool = False,
) -> LogRatios:
    """The ratio of the geometric means of a figure over the processes of two rows, for each pair.

    `machine`: a code for each row of the summary. `numerator`, `denominator`: its rows. Rows that were measured in
    FEWEST_ROUNDS or more in common, each on the same node, are compared round by round, others by all their processes
    with Welch's standard error, never narrower than either side alone would leave it. A trial over several nodes is set
    beside one over fewer by its first node. `by_processes`: all by their processes, with the fewest degrees of freedom,
    which is how jobs are tested against their trials alone.
    """
    samples = processes.collect(figure)
    compared = [
        _compare_samples(
            samples[a], samples[b], is_one_machine=bool(machine[a] == machine[b]), by_processes=by_processes
        )
        if samples.keys() >= {a, b}
        else (np.nan, np.nan)
        for a, b in zip(numerator.tolist(), denominator.tolist(), strict=True)
    ]
    log, half = zip(*compared, strict=True) if compared else ((), ())
    return LogRatios(log=np.array(log, dtype=float), half=np.array(half, dtype=float))


def _compare_samples(
    numerator: list[Sample], denominator: list[Sample], *, is_one_machine: bool, by_processes: bool
) -> tuple[float, float]:
    """The logarithm of a ratio, and half its interval."""
    sides = [numerator, denominator]
    if not by_processes and len({max(hosts.count_nodes(node) for _, node, _ in side) for side in sides}) > 1:
        sides = [[(turn, hosts.find_first_node(node), value) for turn, node, value in side] for side in sides]
    by_place = [{(turn, node): value for turn, node, value in side} for side in sides]
    common = by_place[0].keys() & by_place[1].keys()
    has_own_rounds = [len(places) for places in by_place] == [len(side) for side in sides]
    if has_own_rounds and len(common) >= FEWEST_ROUNDS and not by_processes:
        pairs = estimate_log_ratio(*by_place).pairs
        assert pairs is not None, "there are several"
        return pairs.center, compute_interval_half_width(pairs, ALPHA / 2)
    evidence = estimate_log_ratio(*(dict(enumerate(value for *_, value in side)) for side in sides))
    welch = evidence.welch
    assert welch is not None, "each row has several processes"
    shares = [compute_node_shares([node for _, node, _ in side]) for side in sides]
    if is_one_machine and shares[0] != shares[1]:
        half = math.inf
    elif by_processes:
        half = float(compute_t_quantile(1 - ALPHA / 2, min(map(len, sides)) - 1)) * welch.error
    else:
        half = compute_interval_half_width(welch, ALPHA / 2)
    return evidence.center, half


def compute_node_shares(nodes: Collection[str]) -> dict[str, float]:
    """The share of processes on each node."""
    return {node: count / len(nodes) for node, count in Counter(nodes).items()}
