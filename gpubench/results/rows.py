"""A stored record as the rows that tables are made of, and a row as a line of JSON."""

from __future__ import annotations

import functools
import re
import statistics
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from gpubench.results.file_names import format_log_path
from gpubench.schema.codes import ENDED, format_ending
from gpubench.schema.columns import COLUMNS, EPOCH_COLUMNS
from gpubench.schema.doubts import describe_speedup_doubt, find_doubt
from gpubench.schema.epoch_times import FEWEST_TIMES, NO_SPREAD
from gpubench.schema.record import Record
from gpubench.schema.row import KnownImages, Row


def make_row(record: Record, allowance: Hashable = None) -> Row:
    """The record's row. Of a field that was left to the machine it has what that settled.

    What earlier versions stored reads as this one would have it: fewer than FEWEST_TIMES epochs have no spread, nor the
    doubt about one, and a job that was faster than alone has the doubt about that.
    """
    measured = record.source == "measured"
    values = {**record.environment, **record.trial}
    values.update({name: value for name, value in record.resolved.items() if value is not None})
    values.update(record.result)
    missing, doubts = record.missing, dict(record.doubts)
    if ENDED in missing.values():
        ending = format_ending(record.status, record.reason)
        missing = {column: ending if reason == ENDED else reason for column, reason in missing.items()}
    few = (values.get("epochs_measured") or 0) < FEWEST_TIMES
    if measured and few and values.get("epoch_time_iqr_s") is not None:
        values["epoch_time_iqr_s"], missing = None, {**missing, "epoch_time_iqr_s": NO_SPREAD}
        doubts.pop("spread", None)
    if measured and (faster := describe_speedup_doubt(values.get("slowdown"))):
        doubts.setdefault("faster-together", faster)
    steady = [
        float(step_s)
        for epoch in record.epochs
        if not epoch["warmup"] and epoch.get("steady_steps") and (step_s := epoch.get("steady_step_s"))
    ]
    device, kept = record.resolved.get("device"), record.environment.get("gpu_reserved_mib")
    values.update(
        trial_id=record.trial_id,
        config_id=record.config_id,
        experiment=record.experiment,
        group=record.group,
        job=record.job,
        group_id=record.group_id,
        repeat=record.trial.get("repeat"),
        status=record.status,
        reason=record.reason or None,
        started_at=record.started_at or None,
        doubts="+".join(sorted(doubts)) or None,
        skipped_images=record.data.get("skipped_images"),
        round=record.round,
    )
    return Row.make_from_columns(
        values,
        source=record.source,
        doubt_texts={code: (text,) for code, text in doubts.items()},
        missing=missing,
        together=record.together,
        printed=record.result.get("printed") or {},
        asked=record.trial,
        images=_make_known_images(record),
        variant_definition=record.variant_definition,
        log=format_log_path(record.trial_id, record.attempt_name) if measured else None,
        allowance=allowance,
        # The time of a steady step: the median over the epochs that tell one, and of how many steps it is the mean.
        steady_step_s=statistics.median(steady) if steady else None,
        gpu_total_mib=_find_least_gpu_mib(record.machine_key) if device != "cpu" else None,
        gpu_reserved_mib=float(kept) if isinstance(kept, (int, float)) and kept >= 0 else None,
        took_s=record.span.finished - record.span.launched if record.span else None,
    )


_known_images = functools.lru_cache(KnownImages)
"""What is known of images, once: few sets of images lie behind many records."""


def _make_known_images(record: Record) -> KnownImages:
    facts = {name: record.data.get(name) for name in ("fingerprint", "train_images", "val_images", "size")}
    return _known_images(files=record.variant_definition.get("files"), **facts)


@functools.lru_cache
def _find_least_gpu_mib(machine_key: str) -> float | None:
    """The least memory that a machine's key tells of a GPU: on none of several models does a larger batch fit."""
    return min(map(float, re.findall(r", (\d+) MiB", machine_key)), default=None)


def list_epoch_rows(records: Iterable[Record]) -> Iterator[list[Any]]:
    """The values of epochs.csv, a line an epoch."""
    names = [column.name for column in EPOCH_COLUMNS]
    for record in records:
        attempt = {"trial_id": record.trial_id, "attempt": record.attempt, "round": record.round}
        for epoch in record.epochs:
            yield [*map((epoch | attempt).get, names)]


def make_row_json_object(row: Row) -> dict[str, Any]:
    """What a line of JSON tells of a measured row: its columns that are not empty, its source, its doubts."""
    values = {name: value for column in COLUMNS if (value := getattr(row, name := column.name)) is not None}
    return {
        **values,
        "source": row.source,
        "doubt_texts": {
            code: row.doubt_texts[code][0] if code in row.doubt_texts else find_doubt(code).says
            for code in filter(None, (row.doubts or "").split("+"))
        },
    }
