"""What the product says of a results folder, in the words of the net: the only file here that knows the product.

Whoever builds the product anew replaces this file, and nothing else beside it.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from held import Figures, IntervalOf

from gpubench.analyze.folder import Folder, epochs_csv, read_folder, table_csv, trials_csv

METRICS = (
    ("epoch_time", "_s"), ("epoch_time_growth", "_pct"), ("cost_growth", "_pct"), ("speedup", ""),
    ("strong_efficiency", "_pct"), ("weak_efficiency", "_pct"), ("slowdown", ""), ("overlap_gain", ""),
    ("images_per_joule", ""), ("top1_crossing", "_s"),
)  # fmt: skip
"""Columns that have a low and a high end: name and unit."""


def write_csvs(folder: Folder) -> dict[str, str]:
    """The texts of the folder's CSVs."""
    return {
        "trials.csv": trials_csv(folder),
        "epochs.csv": epochs_csv(folder),
        "table.csv": table_csv(folder),
    }


def read(path: Path) -> Folder:
    """A folder, its problems untold."""
    return read_folder(path, lambda _: None)


def analyze(folder: Folder) -> Figures:
    """The intervals of the folder's tables, without counts of processes."""
    figures = Figures()
    names = name_rows(folder)
    for label, row in folder.summary.iterrows():
        table = folder.tables[row["table"]].name
        for metric, unit in METRICS:
            value, low, high = (_figure(row[f"{metric}{end}{unit}"]) for end in ("", "_low", "_high"))
            if low is not None or high is not None:
                key = (table, names[label], f"{metric}{unit}")
                figures.intervals.append(IntervalOf(*key, value, low, high, ()))
    return figures


def name_rows(folder: Folder) -> dict[int, str]:
    """The name that the net has for each row of the summary: the first of its attempts."""
    logs = (
        folder.runs["log"].map(lambda log: Path(log).stem, na_action="ignore").fillna(folder.runs["trial_id"])
    )
    members = folder.members.assign(name=logs.loc[folder.members["run"]].to_numpy())
    return dict(members.groupby("row")["name"].min().items())  # type: ignore[arg-type]


def _figure(value: object) -> float | None:
    return None if pd.isna(value) else float(value)  # type: ignore[call-overload, arg-type]
