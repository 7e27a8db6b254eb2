"""Which stored rows stand for a job that would run beside others: those of the same trial alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.varied import known
from gpubench.basics.words import WORDS, listed
from gpubench.plan.groups import BARE, label
from gpubench.plan.plan import Job
from gpubench.plan.resolve import Resolved
from gpubench.results.rows import row_of
from gpubench.schema import catalog
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.record import ALLOTTED, Record
from gpubench.schema.row import Row, replace
from gpubench.schema.trial_fields import ABOUT

LIKE = tuple(name for name in FIELD_COLUMNS if ABOUT[name].pace)
"""What a row must have in common with a job for its seconds per epoch to be the job's; so, too, images and variant."""
SILENT = ("ranks", *catalog.OWN_FIELDS)
"""The fields among them that a row need not state."""
OUGHT = {name: ABOUT[name].heading for name in ALLOTTED}
"""What it should have in common; where it has not, that is said."""
MOST_TOLD = 2
"""Differences up to which a row is worth mentioning."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Alone:
    """A row that stands for a job."""

    row: Row
    notes: tuple[str, ...] = ()
    """What is to be said of that, without the job's name in front."""


def alone_rows(records: Iterable[Record]) -> list[Row]:
    """Rows of trials alone, repeats as their median; also of those that did not end ok.

    What a trial left open may have been filled differently under another allowance of CPUs: that is no repeat.
    """
    parts: dict[tuple[Any, ...], list[Row]] = {}
    for record in records:
        if not record.group:
            row = row_of(record)
            parts.setdefault(tuple(row.value(field) for field in OUGHT), []).append(row)
    return [merged for rows in parts.values() for merged in merge_repeats(rows)]


def find(job: Job, resolved: Resolved, fingerprint: str, rows: Sequence[Row]) -> Alone | str:
    """The row that stands for a job; else how its trial alone ended, or what the nearest row differs in.

    `fingerprint`: of the job's images.
    """
    assert job.membership is not None, "a job that runs beside others"
    own, wanted = job.membership.solo.config_id, vars(job.trial) | resolved.columns()

    def fit(row: Row) -> tuple[int, bool, bool, str]:
        agree = sum(row.value(field) == wanted[field] for field in OUGHT)
        return (
            agree,
            row.config_id == own,
            row.gpu_ids == wanted["gpu_ids"],
            row.started_at or "",
        )

    like = [row for row in rows if row.config_id == own or _is_like(row, job, wanted, fingerprint)]
    good = [row for row in like if row.status == "ok"]
    if not good:
        ended = max(like, key=fit, default=None)
        if ended is None:
            return _nearest(rows, job, wanted, fingerprint)
        return f"alone it ended as {WORDS.get(ended.status, ended.status)}"
    row = max(good, key=fit)
    row, more = _with_cpu_seconds(row, resolved)
    notes = [*_differences(row, job, wanted), *_caveats(row, is_same=row.config_id == own), *more]
    return Alone(row=row, notes=tuple(notes))


def _is_like(row: Row, job: Job, wanted: Mapping[str, Any], fingerprint: str) -> bool:
    """Whether a row tells of this job's work. What a row does not state does not part them."""
    if any(row.value(field) not in (None, wanted[field]) for field in LIKE):
        return False
    return not _is_of_another_variant(row, job) and not _is_of_other_images(row, job, fingerprint)


def _is_of_another_variant(row: Row, job: Job) -> bool:
    return bool(row.variant_definition) and row.variant_definition != job.variant.definition()


def _is_of_other_images(row: Row, job: Job, fingerprint: str) -> bool:
    known = row.images.fingerprint if row.images else None
    return job.variant.files != "none" and known not in (None, fingerprint)


def _nearest(rows: Sequence[Row], job: Job, wanted: Mapping[str, Any], fingerprint: str) -> str:
    """How the most similar row of that model and batch differs; empty where each does in too much to be told."""
    apart = [
        _apart(row, job, wanted, fingerprint)
        for row in rows
        if row.status == "ok" and all(row.value(field) == wanted[field] for field in ("model", "batch_size"))
    ]
    least = min(apart, key=len, default=[])
    return f"the nearest row has {listed(least)}" if 0 < len(least) <= MOST_TOLD else ""


def _apart(row: Row, job: Job, wanted: Mapping[str, Any], fingerprint: str) -> list[str]:
    """In what a row of another job's work differs, as one would ask for it where one can."""
    fields = [field for field in LIKE if row.value(field) not in (None, wanted[field])]
    found = []
    if _is_of_other_images(row, job, fingerprint):
        same = row.data == job.trial.data
        found.append(_other_images(row) if same else f"data={row.data}")
        fields = [field for field in fields if field != "train_images"]  # comes with them
    if "variant" not in fields and _is_of_another_variant(row, job):
        found.append("another variant of that name")
    return found + [f"{field}={row.value(field)}" for field in fields]


def _other_images(row: Row) -> str:
    """How images differ that are called the same."""
    if row.images and row.images.skipped:
        return "fewer images: those that can't be decoded were left out (--bad-images skip)"
    return "other images of that name"


def _differences(row: Row, job: Job, wanted: Mapping[str, Any]) -> list[str]:
    apart = [
        f"would have {wanted[field]} {word}, had {row.value(field)} alone"
        for field, word in OUGHT.items()
        if row.value(field) not in (None, wanted[field])
    ]
    unstated = [
        f"would have {wanted[field]} {word}; row alone does not state how many it had"
        for field, word in OUGHT.items()
        if row.value(field) is None and vars(job.trial)[field] is not None
    ]
    return apart + unstated


def _caveats(row: Row, *, is_same: bool) -> list[str]:
    """What makes a row that is there less than sure."""
    found = []
    unstated = [field for field in LIKE if known(row, field) is None and field not in SILENT]
    if row.source != "measured" and unstated:
        found.append(f"row alone does not state {listed([field.replace('_', ' ') for field in unstated])}")
    if ".py:" in (row.model or "") and not is_same:
        found.append("whether the model's file has changed since is not known")
    if row.doubts:
        found.append(f"row alone has doubts ({row.doubts.replace('+', ', ')})")
    return found


def _with_cpu_seconds(row: Row, resolved: Resolved) -> tuple[Row, list[str]]:
    """The row with CPU seconds per epoch: by the load of all CPUs, where its own were not measured."""
    load, time = row.cpu_util_pct, row.epoch_time_s
    if row.cpu_s_per_epoch is not None or load is None or not time:
        return row, []
    seconds = load / 100 * time * (row.cpus or resolved.cpus)
    return replace(row, cpu_s_per_epoch=seconds), ["CPU seconds are worked out from the load of all CPUs"]


def names(jobs: Sequence[Job]) -> list[str]:
    """What jobs that run together are called: by model, variant and batch, and by whatever tells them apart."""
    trials = [vars(job.trial) for job in jobs]
    follow = ("strategy", "lr", "gpus", "gpu_ids")  # from other fields, mostly
    apart = [
        field
        for field in trials[0]
        if field not in (*BARE, *follow) and any(t[field] != trials[0][field] for t in trials)
    ]
    found = []
    for own in trials:
        where = (
            {"gpu_ids": own["gpu_ids"]} if own["gpu_ids"] else {"gpus": own["gpus"]} if own["gpus"] else {}
        )
        found.append(label({field: own[field] for field in (*BARE, *apart)} | where))
    return found
