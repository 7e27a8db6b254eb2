"""The record of one attempt, as stored: the truth behind every table."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal, Self

from gpubench.schema.columns import (
    Count,
    CpuSpeedColumns,
    GroupColumns,
    LaterColumns,
    MeasuredColumns,
    ModelColumns,
    Signed,
)
from gpubench.schema.trial_fields import select_fields

RECORD_SCHEMA = 6
"""The form of records that this version writes: where figures come from stands once a source. It reads all earlier
ones."""

Status = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing"]
Ended = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped"]
"""How an attempt ends. `skipped`: another job of its group took it with it."""
FINAL: frozenset[str] = frozenset({"ok", "oom"})
"""Endings that a later sweep never repeats unasked."""


class _NamedValues:
    """Values by name, as attributes. `vars` has those that are stored, in their order, and of other versions, too."""

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        vars(self).update(values)

    @classmethod
    def wrap_values(cls, values: dict[str, Any]) -> Self:
        """These values themselves, which nobody else has."""
        instance = cls.__new__(cls)
        instance.__dict__ = values
        return instance

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


class ResultColumns(_NamedValues, ModelColumns, MeasuredColumns, GroupColumns, LaterColumns, CpuSpeedColumns):
    """What was measured: columns as attributes. None: not measured, the record's `missing` says why."""


class AskedFields(_NamedValues):
    """A trial's fields as asked for. Those that code names stand here; None for one that was left to the machine."""

    model: str | None = None
    data: str | None = None
    batch_size: int | None = None
    device: str | None = None
    repeat: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochWindow:
    """From when to when an epoch lasted, in seconds of the host's monotonic clock."""

    epoch: Count
    t0: Signed
    t1: Signed


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """When the trial was launched and when its last process had ended, on the same clock: every window lies between."""

    launched: Signed
    """Times of samples count from it."""
    finished: Signed


@dataclass(frozen=True, kw_only=True)
class Record:
    """One attempt at one unit, as stored: immutable, the truth behind every table.

    What may stand in a stored one is checked in `results/stored_record.py`."""

    schema_version: int = RECORD_SCHEMA
    trial_id: str
    config_id: str
    attempt: int = 1
    """Its number among the attempts at its unit in the folder where it was measured, from 1."""
    attempt_id: str = ""
    """Unique in the world (`schema/attempt_ids.py`); empty for one of an earlier version."""
    claim: str = ""
    """The claim under which it was measured (`store/work_claims.py`), whose last part is its number; empty where the
    sweep made none."""
    folder_id: str = ""
    """Of the results folder where it was measured; of an earlier version's that in which it lies."""
    round: int = 1
    """Of the sweep's rounds, from 1: each measures every trial once, in processes of its own."""
    reference: bool = False
    """Whether an earlier version measured it for its node alone, beside the measurement of this round: it counts
    nowhere."""
    experiment: str
    group: str | None = None
    job: str | None = None
    group_id: str | None = None
    """The unit that this is a part of, for a job of a group: all its jobs are stored in one file."""
    status: Status
    reason: str = ""
    machine_key: str
    """GPU model and memory, or the CPU model where the device is the CPU."""
    trial: AskedFields
    variant_definition: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    """Facts of the images: fingerprint, counts, where they lay."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """The values that fields left to the machine got."""
    result: ResultColumns = field(default_factory=ResultColumns)
    missing: dict[str, str] = field(default_factory=dict)
    """Column -> why it is empty."""
    provenance: dict[str, Any] = field(default_factory=dict)
    """Where sampled figures come from: source, period, samples, gaps."""
    epochs: list[dict[str, Any]] = field(default_factory=list)
    """Rows of EPOCH_COLUMNS without the first two and the last. Besides, `steady_wait_s` (data wait of a steady step)
    and, where there are several ranks, `data_wait_s_by_rank` (seconds that each of them starved)."""
    windows: list[EpochWindow] = field(default_factory=list)
    span: Span | None = None
    """None, and an empty object in its file: the version that measured it did not keep it."""
    nodes: list[dict[str, Any]] = field(default_factory=list)
    """Where the ranks were, under NODE_COLUMNS, with the `gpu_uuids` of each. Empty where all were on one node."""
    phases: dict[str, float] = field(default_factory=dict)
    """Wall seconds that the trial spent in each phase of its life."""
    together: dict[str, Any] = field(default_factory=dict)
    """For a job of a group: what was found out about the group, the same for all its jobs. See `record/together.py`."""
    doubts: dict[str, str] = field(default_factory=dict)
    """Code -> one sentence with advice."""
    environment: dict[str, Any] = field(default_factory=dict)
    started_at: str = ""
    source: str = "measured"
    """`measured` by gpubench, or where the figures were taken from."""

    @property
    def attempt_name(self) -> str:
        """By which its files are named: its id, or its number where it has none."""
        return self.attempt_id or str(self.attempt)

    def note_folder_id(self, folder_id: str) -> None:
        """Notes in which results folder it lies, for one that does not say where it was measured."""
        object.__setattr__(self, "folder_id", folder_id)

    def share_parts(self, known: dict[tuple[str, str], Any]) -> None:
        """Keeps each part that equals one of `known` once. Most of a record is what others of its folder say, too: the
        machine, the variant, why columns are empty."""
        for name in SHARED:
            part = vars(self)[name]
            vars(self)[name] = known.setdefault((name, repr(part)), part)

    def to_stored(self) -> dict[str, Any]:
        """Its values by name, as its file has them."""
        values = {name: value for name, value in vars(self).items() if name not in UNSTORED}
        return values | {
            "trial": vars(self.trial),
            "result": vars(self.result),
            "windows": list(map(asdict, self.windows)),
            "span": asdict(self.span) if self.span else {},
        }

    @classmethod
    def make_checked(cls, values: Mapping[str, Any]) -> Self:
        """The record of values that were checked already, which it keeps as they are. In a tenth of the time that its
        own `__init__` takes."""
        record = cls.__new__(cls)
        object.__setattr__(record, "__dict__", {**_make_absent_values(), **values})
        return record


SHARED = ("variant_definition", "data", "resolved", "missing", "provenance", "doubts", "environment")
"""Parts that many records have in common."""
UNSTORED = ("folder_id", "reference")
"""Fields that no file of a record has."""


@functools.cache
def _make_absent_values() -> dict[str, Any]:
    """What stands for each field that a stored record lacks, in the order of the fields. Nobody changes a value."""
    return {
        info.name: None
        if is_needed_field(info)
        else info.default
        if info.default_factory is MISSING
        else info.default_factory()
        for info in fields(Record)
    }


def is_needed_field(info: Field[Any]) -> bool:
    """Whether no record lacks a field."""
    return info.default is MISSING and info.default_factory is MISSING


@dataclass(frozen=True, kw_only=True)
class GroupRecord:
    """One attempt at a group, as stored: one file, so that its jobs are there together or not at all."""

    schema_version: int = RECORD_SCHEMA
    group_id: str
    attempt: int
    attempt_id: str = ""
    jobs: list[Record]

    def to_stored(self) -> dict[str, Any]:
        """Its values by name, as its file has them."""
        return vars(self) | {"jobs": [job.to_stored() for job in self.jobs]}


def make_attempt_reference(record: Record) -> dict[str, Any]:
    """How another record names this attempt."""
    of_folder = {"attempt_id": record.attempt_id} if record.attempt_id else {}
    return {"trial_id": record.trial_id, "attempt": record.attempt, **of_folder}


_WORST_FIRST: tuple[Status, ...] = ("interrupted", "timeout", "failed", "oom", "ok")


def decide_group_ending(statuses: Collection[str]) -> Status:
    """How a unit ended whose jobs ended like this: a group as badly as the worst of them.

    Those that a neighbour took with it are `skipped`, and tell nothing themselves.
    """
    worst: Status = next((status for status in _WORST_FIRST if status in statuses), "missing")
    return "failed" if worst == "ok" and "skipped" in statuses else worst


ALLOTTED = select_fields(lambda about: about.allotted)
"""Fields that a trial may leave to the machine, and that get other values with another allowance of CPUs."""


def find_allotted_values(record: Record) -> dict[str, Any]:
    """What the machine gave an attempt of the fields that its trial left to it. Old logs may not tell: None."""
    trial_fields = vars(record.trial)
    return {field: record.resolved.get(field) for field in ALLOTTED if trial_fields.get(field) is None}
