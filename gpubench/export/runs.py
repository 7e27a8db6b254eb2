"""Attempts as experiment trackers know them: a run has parameters, figures, series over time, tags and a log."""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.analyze.folder import Folder
from gpubench.render.words import name_row
from gpubench.results.packed import is_stored
from gpubench.results.rows import row_of
from gpubench.results.samples_file import readings
from gpubench.results.store import Results
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import ENVIRONMENT, EPOCH_COLUMNS, MEASURED, TRIAL
from gpubench.schema.record import Record

FIGURES = tuple(column.name for column in MEASURED)
"""Columns that are figures of a run, where they are numbers."""
OF_EPOCHS = tuple(
    column.name
    for column in EPOCH_COLUMNS
    if column.name not in ("trial_id", "attempt", "round", "epoch", "warmup")
)
"""Columns that are a series over the epochs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One value of a series."""

    at: float
    """Seconds since 1970."""
    step: int
    """Its place in the series, of epochs their number."""
    value: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackedRun:
    """One attempt that counts."""

    key: str
    """`TRIAL_ID-ATTEMPT-…`: by which it is found again. Other machines may have measured the same trial."""
    experiment: str
    name: str
    """What tells it from the others of its experiment."""
    status: str
    began: float
    """Seconds since 1970."""
    ended: float
    parameters: Mapping[str, str | int | float | bool]
    """Trial field -> its value; those left to the machine with what it settled, those of no meaning left out."""
    figures: Mapping[str, float]
    series: Mapping[str, Sequence[Point]]
    tags: Mapping[str, str]
    log: Path | None


def list_runs(folders: Sequence[Folder], tell: Callable[[str], None]) -> Iterator[TrackedRun]:
    """A run for each attempt that counts, each round by itself, in the order of trials.csv.

    `tell`: is given a line for each samples file that is damaged; the readings that can be read are handed over.
    """
    for folder in folders:
        results = Results(folder.path)
        varied: dict[str, dict[str, None]] = {}
        for table in folder.tables:  # an experiment has one for each kind of time
            varied.setdefault(table.experiment, {}).update(dict.fromkeys(table.varied))
        for record in folder.records:
            yield _make_run(folder, results, record, varied.get(record.experiment, ()), tell)


def _make_run(
    folder: Folder, results: Results, record: Record, varied: Iterable[str], tell: Callable[[str], None]
) -> TrackedRun:
    row = row_of(record)
    began = _to_seconds(record.started_at)
    took = record.span.finished - record.span.launched if record.span else 0.0
    label = name_row({name: row.value(name) for name in varied}) or str(row.model)
    parts = [label, *([f"({row.group}, job {row.job})"] if row.job else [])]
    parts += [f"round {record.round}"] if record.round > 1 else []
    fields = {column.name: row.value(column.name) for column in TRIAL}
    facts = {column.name: row.value(column.name) for column in ENVIRONMENT}
    tags = {
        "trial_id": record.trial_id,
        "config_id": record.config_id,
        "attempt": record.attempt,
        "round": record.round,
        "status": record.status,
        "reason": record.reason,
        "group": record.group,
        "job": record.job,
        "doubts": row.doubts,
        "results": folder.name,
        **facts,
    }
    texts = {f"doubt {code}": text for code, text in record.doubts.items()}
    log = results.log(record.trial_id, record.attempt_name)
    return TrackedRun(
        key=_make_key(record),
        experiment=record.experiment,
        name=" ".join(parts),
        status=record.status,
        began=began,
        ended=began + took,
        parameters={
            name: value if isinstance(value, str | int | float | bool) else format_cell(value)
            for name, value in fields.items()
            if value is not None
        },
        figures={name: value for name in FIGURES if (value := _to_number(row.value(name))) is not None},
        series={**_list_epochs(record, began), **_list_samples(results, record, began, tell)},
        tags={name: format_cell(value) for name, value in tags.items() if value not in (None, "")} | texts,
        log=log if is_stored(log) else None,
    )


def _make_key(record: Record) -> str:
    """The trial, the attempt, and of which machine and time it is: no other folder has another attempt so called."""
    place = (record.machine_key, str(record.environment.get("host")), record.started_at)
    return f"{record.trial_id}-{record.attempt}-{hashlib.sha256(repr(place).encode()).hexdigest()[:8]}"


def _to_seconds(local: str) -> float:
    """Seconds since 1970 of a time as records have it; 0 where it is none."""
    try:
        return datetime.datetime.strptime(local, "%Y-%m-%d %H:%M:%S").timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _to_number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _list_epochs(record: Record, began: float) -> dict[str, list[Point]]:
    """Series over the epochs, the one that warms up included: as step 0, as a rule."""
    ends = {window.epoch: window.t1 for window in record.windows}
    series: dict[str, list[Point]] = {}
    for epoch in record.epochs:
        number = int(epoch["epoch"])
        after = ends[number] - record.span.launched if record.span and number in ends else 0.0
        for name in OF_EPOCHS:
            if (value := _to_number(epoch.get(name))) is not None:
                series.setdefault(f"epoch/{name}", []).append(
                    Point(at=began + after, step=number, value=value)
                )
    return series


def _list_samples(
    results: Results, record: Record, began: float, tell: Callable[[str], None]
) -> dict[str, list[Point]]:
    """The readings behind the record."""
    path = results.part("samples", record.trial_id, record.attempt_name, "csv")
    return {
        f"{metric}/{f'gpu{device}' if device.isdecimal() else device}": [
            Point(at=began + at, step=step, value=value) for step, (at, value) in enumerate(values)
        ]
        for (device, metric), values in readings(path, record, tell).items()
    }
