"""Runs in MLflow: parameters, metrics, series over epochs and samples, tags and the log as an artifact."""

from __future__ import annotations

import datetime
import hashlib
import itertools
import logging
import math
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlflow.entities import Metric, Param, RunTag
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from gpubench.analyze.folder import Folder
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import format_count
from gpubench.render.words import name_row
from gpubench.results.packed import is_file_or_member, open_file_or_member
from gpubench.results.rows import make_row
from gpubench.results.samples_file import read_samples_file
from gpubench.results.store import Results
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import CPU_SPEED, ENVIRONMENT, EPOCH_COLUMNS, MEASURED, TRIAL
from gpubench.schema.record import Record
from gpubench.schema.row import Row

KEY = "gpubench.attempt"
"""The tag by which a run is found again, so that it is handed over once."""
ENDED = {"ok": "FINISHED", "oom": "FAILED", "failed": "FAILED", "timeout": "KILLED", "interrupted": "KILLED"}
"""How MLflow calls an ending; the tag `gpubench.status` has ours."""
MOST = {"metrics": 1000, "params": 100, "tags": 100}
"""What MLflow takes in one call."""
LONGEST_PARAM, LONGEST_TAG, LONGEST_NAME = 6000, 5000, 250
"""Characters of values, and of a name."""
FOLDER = "mlflow"
"""Where runs go if neither --out nor MLFLOW_TRACKING_URI says: a database and artifacts in it."""
_NO_SERIES = ("trial_id", "attempt", "round", "epoch", "warmup")
OF_EPOCHS = tuple(column.name for column in EPOCH_COLUMNS if column.name not in _NO_SERIES)
"""Columns that are a series over the epochs."""


def export_runs(folders: Sequence[Folder], place: str | None, warn: Callable[[str], None]) -> str:
    """Hands each attempt that counts over as a run, to a tracking server or database (an address with `://`), or to a
    folder with a database of its own. A run that is there already is left as it is. Returns what came of it.

    `warn`: is given a line for each samples file that is damaged; its other readings are handed over. Raises
    UnusableError.
    """
    for logger in ("mlflow", "alembic"):  # they tell of each table that is made
        logging.getLogger(logger).setLevel(logging.WARNING)
    address = place or os.environ.get("MLFLOW_TRACKING_URI") or FOLDER
    artifacts = None
    new = known = 0
    try:
        if "://" not in address:
            home = Path(address).resolve()
            home.mkdir(parents=True, exist_ok=True)
            address, artifacts = f"sqlite:///{home}/mlflow.db", (home / "artifacts").as_uri()
        client = MlflowClient(tracking_uri=address)
        records = [(folder, record) for folder in folders for record in folder.records]
        for name, members in itertools.groupby(records, key=lambda pair: pair[1].experiment):
            experiment = client.get_experiment_by_name(name)
            if experiment is None:
                number = str(client.create_experiment(name, artifact_location=artifacts))
            else:
                number = str(experiment.experiment_id)
            known_keys = list_exported_run_keys(client, number)
            for folder, record in members:
                if make_attempt_key(record) in known_keys:
                    known += 1
                else:
                    write_run(client, number, folder, record, warn)
                    new += 1
    except (MlflowException, OSError) as error:
        raise UnusableError(f"MLflow at {address}: {error}") from error
    there = f", {format_count(known, 'run')} there already" if known else ""
    is_server = address.startswith("http")
    without_password = re.sub("//[^/]*@", "//", address)
    where = without_password if is_server else f"mlflow ui --backend-store-uri {shlex.quote(address)}"
    return f"{format_count(new, 'run')} written{there}; to look at them: {where}"


def list_exported_run_keys(client: MlflowClient, experiment: str) -> set[str]:
    """The keys of the runs that were handed over already, whole: one that was broken off has not ended."""
    keys: set[str] = set()
    token = None
    while True:
        page = client.search_runs(
            [experiment], filter_string="attributes.status != 'RUNNING'", max_results=1000, page_token=token
        )
        keys.update(run.data.tags[KEY] for run in page if KEY in run.data.tags)
        token = page.token
        if not token:
            return keys


def make_attempt_key(record: Record) -> str:
    """The trial, the attempt, and of which machine and time it is: no other folder has another attempt so called."""
    place = (record.machine_key, str(record.environment.get("host")), record.started_at)
    return f"{record.trial_id}-{record.attempt}-{hashlib.sha256(repr(place).encode()).hexdigest()[:8]}"


def write_run(
    client: MlflowClient, experiment: str, folder: Folder, record: Record, warn: Callable[[str], None]
) -> None:
    """One attempt, each round by itself."""
    row = make_row(record)
    results = Results(folder.path)
    began = parse_local_time_s(record.started_at)
    ended = began + (record.span.finished - record.span.launched if record.span else 0.0)
    run = client.create_run(
        experiment, start_time=convert_to_ms(began), run_name=name_run(folder, record, row)
    )
    number = run.info.run_id
    figures = {column.name: getattr(row, column.name) for column in (*MEASURED, *CPU_SPEED)}
    fields = {column.name: getattr(row, column.name) for column in TRIAL}
    handed_over: Mapping[str, Iterable[Any]] = {
        "metrics": itertools.chain(
            list_finite_metrics(figures, convert_to_ms(ended), 0),
            list_epoch_metrics(record, began),
            list_sample_metrics(results, record, began, warn),
        ),
        "params": [Param(name, text[:LONGEST_PARAM]) for name, text in format_known_values(fields).items()],
        "tags": list_run_tags(folder, record, row),
    }
    for kind, entries in handed_over.items():
        rest = iter(entries)
        while batch := list(itertools.islice(rest, MOST[kind])):
            arguments: dict[str, Any] = {kind: batch}
            client.log_batch(number, **arguments)
    log = results.make_log_path(record.trial_id, record.attempt_name)
    if is_file_or_member(log):
        with open_file_or_member(log) as file:  # of a packed folder it is no file of its own
            client.log_text(number, file.read().decode("utf-8", errors="replace"), log.name)
    client.set_terminated(number, ENDED.get(record.status, "FAILED"), convert_to_ms(ended))


def name_run(folder: Folder, record: Record, row: Row) -> str:
    """What tells it from the others of its experiment."""
    varied = dict.fromkeys(
        name for table in folder.tables if table.experiment == record.experiment for name in table.varied
    )
    parts = [name_row({name: getattr(row, name) for name in varied}) or str(row.model)]
    parts += [f"({row.group}, job {row.job})"] if row.job else []
    parts += [f"round {record.round}"] if record.round > 1 else []
    return " ".join(parts)


def list_run_tags(folder: Folder, record: Record, row: Row) -> list[RunTag]:
    names = ("trial_id", "config_id", "attempt", "round", "status", "reason", "group", "job")
    tags = format_known_values(
        {
            **{name: getattr(record, name) for name in names},
            "doubts": row.doubts,
            "results": folder.name,
            **{column.name: getattr(row, column.name) for column in ENVIRONMENT},
        }
    ) | {f"doubt {code}": text for code, text in record.doubts.items()}
    return [
        *(RunTag(clean_mlflow_name(f"gpubench.{name}"), text[:LONGEST_TAG]) for name, text in tags.items()),
        RunTag(KEY, make_attempt_key(record)),
    ]


def format_known_values(values: Mapping[str, object]) -> dict[str, str]:
    """As text, without what is not known."""
    return {
        name: str(value) if isinstance(value, (str, bool, float)) else format_cell(value)
        for name, value in values.items()
        if value not in (None, "")
    }


def list_finite_metrics(
    values: Mapping[str, object], timestamp: int, step: int, prefix: str = ""
) -> Iterator[Metric]:
    """What of these values is a number."""
    for name, value in values.items():
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield Metric(prefix + name, float(value), timestamp, step)


def list_epoch_metrics(record: Record, began: float) -> Iterator[Metric]:
    """Series over the epochs, the one that warms up included: as step 0, as a rule."""
    ends = {window.epoch: window.t1 for window in record.windows}
    for epoch in record.epochs:
        number = int(epoch["epoch"])
        after = ends[number] - record.span.launched if record.span and number in ends else 0.0
        values = {name: epoch.get(name) for name in OF_EPOCHS}
        yield from list_finite_metrics(values, convert_to_ms(began + after), number, "epoch/")


def list_sample_metrics(
    results: Results, record: Record, began: float, warn: Callable[[str], None]
) -> Iterator[Metric]:
    """The readings behind the record."""
    path = results.make_attempt_file_path("samples", record.trial_id, record.attempt_name, "csv")
    for (device, metric), values in read_samples_file(path, warn).items():
        name = clean_mlflow_name(f"{metric}/{f'gpu{device}' if device.isdecimal() else device}")
        for step, (after, value) in enumerate(values):
            yield Metric(name, value, convert_to_ms(began + after), step)


def parse_local_time_s(local: str) -> float:
    """Seconds since 1970 of a time as records have it; 0 where it is none."""
    try:
        return datetime.datetime.strptime(local, "%Y-%m-%d %H:%M:%S").timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def convert_to_ms(seconds: float) -> int:
    return round(1000 * seconds)


def clean_mlflow_name(name: str) -> str:
    """A name with the signs alone that MLflow allows."""
    return re.sub(r"[^\w./ -]", "_", name)[:LONGEST_NAME]
