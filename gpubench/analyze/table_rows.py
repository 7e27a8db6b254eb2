"""The rows of one table and what their processes tell: where every question takes its figures from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from gpubench.core.claims import Claim, Evidence, Word
from gpubench.schema.hosts import first as first_host
from gpubench.stats.estimates import compare_rounds

Samples: TypeAlias = Mapping[Hashable, float]
"""A figure of each process of a row, by its round, repeat and node: what two rows have in common there makes a pair."""
Figures: TypeAlias = Mapping[int, dict[Hashable, float]]
"""Row -> its samples; a row without any is left out."""


@dataclass(frozen=True, kw_only=True)
class TableRows:
    """The rows of one table, as a question needs them."""

    summary: pd.DataFrame
    """A line a row, in the table's order; index: labels."""
    runs: pd.DataFrame
    """A line a process; `row`: the label of its row."""
    noise: Mapping[int, float] = field(default_factory=dict)
    """Row -> the logarithm of the largest ratio that two processes of such rows were seen to differ by."""
    varied: tuple[str, ...] = ()
    axes: tuple[tuple[str, ...], ...] = ()
    """As the experiment asked for them."""

    @cached_property
    def ended(self) -> pd.DataFrame:
        """The processes that ended ok."""
        return self.runs[(self.runs["status"] == "ok") & self.runs["row"].isin(self.summary.index)]

    @cached_property
    def alone(self) -> pd.DataFrame:
        """The rows of trials that ran alone and have a rate."""
        is_timed = self.summary.index.isin(list(self.rates))
        return self.summary[self.summary["group"].isna() & is_timed]

    @cached_property
    def rates(self) -> Figures:
        """Images a second; epochs a second where a row does not know its images."""
        times = self.ended["epoch_time_s"].astype("float64")
        images = self.ended["images_per_epoch"].astype("float64")
        return self.collect((1.0 if images[times.notna()].isna().any() else images) / times)

    def collect(self, values: pd.Series[Any]) -> Figures:
        """A figure of processes that ended ok, a line each, by row; those that are not known or 0 are left out."""
        runs = self.ended.loc[values.index[np.isfinite(values.astype("float64")) & (values > 0)]]
        keys = runs[["row", "round", "repeat"]].astype("float64").fillna(-1).astype("int64")
        keys["host"] = [first_host(host) if isinstance(host, str) else "" for host in runs["host"]]
        keys["number"] = keys.groupby(list(keys)).cumcount()
        figures: dict[int, dict[Hashable, float]] = {}
        for (row, *key), value in zip(
            keys.itertuples(index=False), values.loc[runs.index].astype("float64"), strict=True
        ):
            figures.setdefault(row, {})[tuple(key)] = value
        return figures

    def find_noise(self, *rows: int) -> float | None:
        """The most that any of these rows was seen to vary by."""
        return max((self.noise[row] for row in rows if row in self.noise), default=None)

    def compare(self, figures: Figures, candidate: int, baseline: int) -> Evidence:
        """The logarithm of the ratio of two rows' figures.

        Of rows that were measured on unlike nodes, or unlike often on them, only common rounds tell: nobody knows what
        nodes differ by.
        """
        over, under = figures[candidate], figures[baseline]
        evidence = compare_rounds(over, under, noise=self.find_noise(candidate, baseline))
        return evidence if _list_nodes(over) == _list_nodes(under) else replace(evidence, welch=None, noise=None)


def find_word(claims: Iterable[Claim]) -> Word:
    """How sure several claims are together: the least sure word of those that are decided; unknown where none is."""
    words = {claim.decided.word for claim in claims} - {"unknown"}
    return "likely" if "likely" in words else "sure" if words else "unknown"


def list_rows(claims: Sequence[Claim]) -> tuple[int, ...]:
    """The rows that claims are about, each once."""
    return tuple(dict.fromkeys(row for claim in claims for row in (claim.candidate, claim.baseline)))


def find_label(value: Any) -> int | None:
    """A label of a row out of a column of labels; None where it is missing."""
    return None if pd.isna(value) else int(value)


def _list_nodes(samples: Samples) -> dict[Any, float]:
    """The share of processes on each node."""
    nodes = Counter(key[2] for key in samples if isinstance(key, tuple))
    return {node: count / len(samples) for node, count in nodes.items()}
