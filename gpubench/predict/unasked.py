"""What jobs are taken to be where nobody says it: what all stored rows of trials alone are. Pure.

Whoever asks about copies or jobs on a folder of one network means that network, not the built-in experiment's. Only
fields of the work are taken so, never those of where it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpubench.plan.experiment import Experiment
from gpubench.plan.options import Options, job_option
from gpubench.plan.values import as_text
from gpubench.schema import trial
from gpubench.schema.catalog import VARIANTS
from gpubench.schema.record import Record

OF_THE_WORK = (
    "model", "width", "input_size", "num_classes", "variant", "data", "train_images", "precision", "memory_format",
    "execution", "cudnn_benchmark", "optimizer", "accumulate", "prefetch",
)  # fmt: skip


def filled(options: Options, records: Sequence[Record], plain: Experiment) -> tuple[Options, str]:
    """The options with what all rows alone that fit them agree in, and that in words; empty where nothing was taken.

    `plain`: what is taken of a field otherwise. Of copies whose batch size nobody gives it is those of the rows.
    """
    given = {*options.fields, *(name for text in options.jobs for name in job_option(text))}
    rows = [
        {
            name: getattr(one.trial, name, None) for name in (*OF_THE_WORK, "batch_size")
        }  # a log states few of them
        for one in records
        if one.status == "ok" and not one.group and _fits(one, options)
    ]
    usual = {**vars(trial.make({})), **plain.fixed}
    taken: dict[str, Any] = {}
    for name in OF_THE_WORK:
        values = {row[name] for row in rows}
        if name not in given and len(values) == 1 and not values & {None, usual[name]}:
            taken[name] = values.pop()
    if taken.get("variant") not in (None, *VARIANTS):
        del taken["variant"]  # a user's own one, which only their file defines
    words = {name: as_text(value) for name, value in taken.items()}
    for name in OF_THE_WORK:
        alike = [row for row in rows if row[name] in (None, taken.get(name, usual[name]))]
        rows = alike if alike and name not in given else rows
    sizes = sorted({size for row in rows if (size := row["batch_size"])})
    if sizes and "batch_size" not in given and not options.jobs:
        words["batch_size"] = ",".join(map(str, sizes))
    said = ", ".join(f"{name}={value}" for name, value in words.items())
    return replace(options, fields={**options.fields, **words}), said


def _fits(record: Record, options: Options) -> bool:
    """Whether a row is of the values that were asked for, as far as they are fields of the work."""
    return all(
        as_text(value) in asked.split(",")
        for name, asked in options.fields.items()
        if name in OF_THE_WORK and (value := getattr(record.trial, name, None)) is not None
    )
