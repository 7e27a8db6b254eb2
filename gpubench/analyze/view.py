"""One table of a folder, as questions look at it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from gpubench.analyze.folder import Folder, Table
from gpubench.analyze.frames import Runs, Summary
from gpubench.schema.hosts import first

Samples = Mapping[Hashable, float]
"""A figure of each process of a row, by its round and node: those of one round are pairs."""


@dataclass(frozen=True, kw_only=True)
class View:
    """A table with its rows and the processes behind them."""

    folder: Folder
    table: Table

    @cached_property
    def summary(self) -> Summary:
        """The rows of this table, in their order; index: labels of the folder's summary."""
        return self.folder.table_frame(self.table)

    @cached_property
    def alone(self) -> Summary:
        """Those of trials that ran alone."""
        return self.summary[self.summary["group"].isna()]

    @cached_property
    def runs(self) -> Runs:
        """The processes of these rows that ended ok; `row`: the label of the row that each is of."""
        members = self.folder.members
        mine = members[members["is_ok"] & members["row"].isin(self.table.rows)]
        runs = self.folder.runs.loc[mine["run"]].assign(row=mine["row"].to_numpy())
        return runs.reset_index(drop=True)

    @cached_property
    def round_minutes(self) -> float | None:
        """What a further round of all rows takes; None where records do not tell."""
        taken = self.runs.groupby("row")["took_s"].median()
        return None if taken.empty or taken.isna().any() else float(taken.sum() / 60)

    def samples(self, figure: pd.Series[float]) -> dict[int, Samples]:
        """A figure of each process, by the label of its row; processes without it are left out.

        `figure`: a value a line of `runs`.
        """
        values: dict[int, dict[Hashable, float]] = {}
        runs = self.runs
        keys = zip(runs["row"], runs["round"], runs["repeat"], runs["host"], figure, strict=True)
        for row, number, repeat, host, value in keys:
            if pd.notna(value) and value > 0:
                node = first(host) if isinstance(host, str) else ""
                values.setdefault(int(row), {})[number, repeat, node] = float(value)
        return {**values}

    @cached_property
    def image_s(self) -> dict[int, Samples]:
        """Seconds of training an image, of each process; of an epoch, where a row does not know its images."""
        runs = self.runs
        images = runs["images_per_epoch"].astype("float64").fillna(1.0)
        return self.samples(runs["epoch_time_s"].astype("float64") / images)

    @cached_property
    def memory_mib(self) -> dict[int, Samples]:
        """GPU memory of each process."""
        return self.samples(self.runs["gpu_mem_mib"].astype("float64"))
