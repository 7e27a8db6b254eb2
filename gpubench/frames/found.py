"""What `gpubench.load` gives a notebook: results folders, read, with frames made when they are first asked for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from gpubench.basics.errors import UsageError, unknown
from gpubench.frames import shown
from gpubench.frames.frame import Orders, frame, orders_of
from gpubench.frames.samples import samples
from gpubench.plot.draw import draw
from gpubench.report import sheets, terminal
from gpubench.report.reading import Reading, reading_all
from gpubench.report.table import Table
from gpubench.results.counting import counting
from gpubench.results.home import newest_results

if TYPE_CHECKING:
    from gpubench.plot.paper.figure import Drawing


class Found:
    """Results folders, read. Each frame has units and meanings of its columns in `attrs`."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self.readings = tuple(readings)

    @cached_property
    def trials(self) -> pd.DataFrame:
        """A row a trial, and a row for each further round of it: every column of trials.csv."""
        return frame(sheets.trials(self.readings), self._orders)

    @cached_property
    def epochs(self) -> pd.DataFrame:
        """A row an epoch or window, those that warm up marked: every column of epochs.csv."""
        return frame(sheets.epochs(self.readings), self._orders)

    @cached_property
    def environment(self) -> pd.DataFrame:
        """A row for each machine with its software."""
        return frame(sheets.environment(self.readings), self._orders)

    @cached_property
    def doubts(self) -> pd.DataFrame:
        """A row for each doubt of each trial: the doubt's code and sentence."""
        return frame(sheets.doubts(self.readings), self._orders)

    def table(self) -> pd.DataFrame:
        """The lines of the tables, repeats and rounds merged, with growth and intervals: the columns of table.csv."""
        return frame(sheets.table(self.readings), self._orders)

    @property
    def tables(self) -> list[Table]:
        """One an experiment, as `gpubench table` prints them."""
        return [table for one in self.readings for table in one.tables]

    @property
    def answers(self) -> list[str]:
        """What the tables answer, a sentence each."""
        return [answer for table in self.tables for answer in table.answers]

    def samples(self, trial_id: str, *, round: int = 1, results: str | None = None) -> pd.DataFrame:  # noqa: A002
        """The time series of a trial: each reading with its time, device, metric and the epoch in which it was taken.

        `round`: of the sweep's rounds. `results`: the name of the folder, where several hold the trial. Where a folder
        has measured it under several allowances of CPUs, the last one. Raises UsageError where there is no such trial.
        """
        of_all = [
            (title, one, record)
            for title, one in sheets.named(self.readings)
            for record in counting(one.records).values()
            if record.round == round and results in (None, title)
        ]
        mine = [(title, one, record) for title, one, record in of_all if record.trial_id == trial_id]
        if not mine:
            raise unknown("trial", trial_id, {record.trial_id for *_, record in of_all})
        holders = dict.fromkeys(title for title, *_ in mine)
        if len(holders) > 1:
            raise UsageError(f"{trial_id} is in {', '.join(holders)}; say which one: results={mine[0][0]!r}")
        _, one, record = max(mine, key=lambda found: (found[2].started_at, found[2].attempt))
        return samples(one.results, record)

    def plot(self, name: str | None = None) -> Drawing:
        """A picture as `gpubench plot` draws it, as a matplotlib Figure.

        `name`: growth, scaling, energy, … (docs/plots.md); None: the main one. Raises UsageError for another name, and
        UnusableError where there is none or matplotlib is missing.
        """
        return draw(self.readings, name)

    def text(self) -> str:
        """What `gpubench table` prints."""
        return "\n".join(terminal.text(table) for table in self.tables)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        folders = ", ".join(str(one.results.folder) for one in self.readings)
        return f"<gpubench results of {folders}: {sum(len(one.records) for one in self.readings)} records>"

    def _repr_html_(self) -> str:
        return shown.html(self.tables)

    @cached_property
    def _orders(self) -> Orders:
        titles = [title for title, _ in sheets.named(self.readings)]
        return {**orders_of(self.readings), sheets.RESULTS.name: titles}


def load(*folders: str | Path) -> Found:
    """Results folders (none: the newest one) for a notebook. What of them can't be read is a warning, and left out.

    Raises UnusableError where nothing can be read.
    """
    paths = [Path(folder) for folder in folders] or [newest_results()]
    told: list[str] = []
    try:
        return Found(reading_all(paths, told.append))
    finally:
        for line in told:  # as of the line that called `gpubench.load`, so that each run of it says so again
            warnings.warn(line, stacklevel=3)
