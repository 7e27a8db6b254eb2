"""The time series behind a trial's figures, as a frame."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from gpubench.basics.errors import UnusableError
from gpubench.frames.frame import told
from gpubench.results.samples_end import without_end
from gpubench.results.store import Results
from gpubench.schema.columns import SAMPLE_COLUMNS
from gpubench.schema.record import Record
from gpubench.schema.samples import SAMPLE_HEADER, STEP_TIME, damaged


def samples(results: Results, record: Record) -> pd.DataFrame:
    """All readings of one attempt in order of time, each with the epoch in which it was taken.

    Those that can't be read are left out, with a warning.

    Raises UnusableError where none are stored, or their file can't be read.
    """
    path = results.part("samples", record.trial_id, record.attempt, "csv")
    try:
        made = pd.read_csv(
            path,
            dtype={"t_s": "float64", "device": "category", "metric": "category", "value": "float64"},
            usecols=list(SAMPLE_HEADER),
        )[list(SAMPLE_HEADER)]
    except FileNotFoundError:
        raise UnusableError(f"{path} does not exist: no time series is stored of this attempt") from None
    except (OSError, ValueError) as error:  # pandas's own errors of parsing are ValueErrors
        why = error.strerror if isinstance(error, OSError) else f"it is no CSV of {', '.join(SAMPLE_HEADER)}"
        raise UnusableError(f"{path} can't be read: {why}") from None
    made = _whole(made, path, record)
    made = made.sort_values("t_s", kind="stable", ignore_index=True)
    made["epoch"] = pd.array([pd.NA] * len(made), dtype="Int64")
    made["measured"] = pd.array([False if record.span else pd.NA] * len(made), dtype="boolean")
    made = told(made, SAMPLE_COLUMNS)
    if record.span is None:
        return made
    warm_up = {one["epoch"]: bool(one.get("warmup")) for one in record.epochs}
    made.attrs["windows"] = []
    for window in record.windows:
        t0, t1 = window.t0 - record.span.launched, window.t1 - record.span.launched
        measured = not warm_up.get(window.epoch, False)
        inside = np.asarray((made["t_s"] >= t0) & (made["t_s"] <= t1))
        made.loc[inside, "epoch"] = window.epoch
        made.loc[inside, "measured"] = measured
        made.attrs["windows"].append({"epoch": window.epoch, "measured": measured, "from_s": t0, "to_s": t1})
    return made


def _whole(made: pd.DataFrame, path: Path, record: Record) -> pd.DataFrame:
    """The readings without those that lack a value. The last one of a file that was cut off may have lost digits."""
    kept = made.notna().all(axis="columns")
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        if file.read() != b"\n" and len(kept):
            kept.iloc[-1] = False
    line = without_end(path, int((made["metric"] == STEP_TIME).sum()), record)
    if not kept.all() or not len(made):
        line = damaged(path, int((~kept).sum()), len(made))
    if line:
        warnings.warn(line, stacklevel=4)  # as of the line that called `found.samples`
    return made[kept]
