"""The folder's trials.csv and epochs.csv as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from gpubench.results.csv_text import csv_text
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.record import Record
from gpubench.schema.row import Row


def trials_csv(rows: Iterable[Row]) -> str:
    """The text of trials.csv."""
    names = [column.name for column in COLUMNS]
    return csv_text(names, (row.values(names) for row in rows))


def epochs_csv(records: Iterable[Record]) -> str:
    """The text of epochs.csv."""
    return csv_text([column.name for column in EPOCH_COLUMNS], epoch_rows(records))


def epoch_rows(records: Iterable[Record]) -> Iterator[list[Any]]:
    """The values of epochs.csv, a line an epoch."""
    names = [column.name for column in EPOCH_COLUMNS]
    for record in records:
        attempt = {"trial_id": record.trial_id, "attempt": record.attempt, "round": record.round}
        for epoch in record.epochs:
            yield [*map((epoch | attempt).get, names)]
