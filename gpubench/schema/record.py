"""The record of one attempt, as stored: the truth behind every table."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
)

from gpubench.schema.columns import (
    CpuSpeedColumns,
    GroupColumns,
    LaterColumns,
    MeasuredColumns,
    ModelColumns,
)
from gpubench.schema.trial_fields import those

RECORD_SCHEMA = 6
"""The form of records that this version writes: where figures come from stands once a source. It reads all earlier
ones."""

Status = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing"]
Ended = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped"]
"""How an attempt ends. `skipped`: another job of its group took it with it."""
FINAL: frozenset[str] = frozenset({"ok", "oom"})
"""Endings that a later sweep never repeats unasked."""


class _ByName:
    """Values by name, as attributes. `vars` has those that are stored, in their order, and of other versions, too."""

    def __init__(self, values: Mapping[str, Any] = MappingProxyType({})) -> None:
        vars(self).update(values)

    @classmethod
    def keeping(cls, values: dict[str, Any]) -> Self:
        """These values themselves, which nobody else has."""
        made = cls.__new__(cls)
        made.__dict__ = values
        return made

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({vars(self)})"


class ResultColumns(_ByName, ModelColumns, MeasuredColumns, GroupColumns, LaterColumns, CpuSpeedColumns):
    """What was measured: columns as attributes. None: not measured, the record's `missing` says why."""


class AskedFields(_ByName):
    """A trial's fields as asked for. Those that code names stand here; None for one that was left to the machine."""

    model: str | None = None
    data: str | None = None
    batch_size: int | None = None
    device: str | None = None
    repeat: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochWindow:
    """From when to when an epoch lasted, in seconds of the host's monotonic clock."""

    epoch: int
    t0: float
    t1: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """When the trial was launched and when its last process had ended, on the same clock: every window lies between."""

    launched: float
    """Times of samples count from it."""
    finished: float


def _as(made: type[_ByName]) -> tuple[Any, ...]:
    """How pydantic makes and writes it. What may stand in a stored one is checked in `results/stored_record.py`."""

    def of(told: object) -> _ByName:
        if isinstance(told, made):
            return told
        if not isinstance(told, Mapping):
            raise ValueError("must be values by name")
        return made(told)

    return PlainValidator(of), PlainSerializer(vars)


def _as_list(plain: Callable[[Any], Any] = lambda one: one) -> PlainSerializer:
    """How pydantic writes lines that may be a list, or text that is still to be parsed."""
    return PlainSerializer(lambda lines: [plain(one) for one in lines])


class Record(BaseModel):
    """One attempt at one unit, as stored: immutable, the truth behind every table."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    folder_id: str = Field(default="", exclude=True)
    """Of the results folder where it was measured; of an earlier version's that in which it lies."""
    round: int = 1
    """Of the sweep's rounds, from 1: each measures every trial once, in processes of its own."""
    reference: bool = Field(default=False, exclude=True)
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
    trial: Annotated[AskedFields, *_as(AskedFields)]
    variant_definition: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    """Facts of the images: fingerprint, counts, where they lay."""
    resolved: dict[str, Any] = Field(default_factory=dict)
    """The values that fields left to the machine got."""
    result: Annotated[ResultColumns, *_as(ResultColumns)] = Field(default_factory=ResultColumns)
    missing: dict[str, str] = Field(default_factory=dict)
    """Column -> why it is empty."""
    provenance: dict[str, Any] = Field(default_factory=dict)
    """Where sampled figures come from: source, period, samples, gaps."""
    epochs: Annotated[Sequence[dict[str, Any]], _as_list()] = Field(default_factory=list)
    """Rows of EPOCH_COLUMNS without the first two and the last. Besides, `steady_wait_s` (data wait of a steady step)
    and, where there are several ranks, `data_wait_s_by_rank` (seconds that each of them starved)."""
    windows: Annotated[Sequence[EpochWindow], _as_list(asdict)] = Field(default_factory=list)
    span: Annotated[
        Span | None,
        BeforeValidator(lambda told: None if told == {} else told),
        PlainSerializer(lambda span: asdict(span) if span else {}),
    ] = None
    """None, and an empty object in its file: the version that measured it did not keep it."""
    nodes: list[dict[str, Any]] = Field(default_factory=list)
    """Where the ranks were, under NODE_COLUMNS, with the `gpu_uuids` of each. Empty where all were on one node."""
    phases: dict[str, float] = Field(default_factory=dict)
    """Wall seconds that the trial spent in each phase of its life."""
    together: dict[str, Any] = Field(default_factory=dict)
    """For a job of a group: what was found out about the group, the same for all its jobs. See `record/together.py`."""
    doubts: dict[str, str] = Field(default_factory=dict)
    """Code -> one sentence with advice."""
    environment: dict[str, Any] = Field(default_factory=dict)
    started_at: str = ""
    source: str = "measured"
    """`measured` by gpubench, or where the figures were taken from."""

    @property
    def attempt_name(self) -> str:
        """By which its files are named: its id, or its number where it has none."""
        return self.attempt_id or str(self.attempt)

    def place(self, folder_id: str) -> None:
        """Notes in which results folder it lies, for one that does not say where it was measured."""
        object.__setattr__(self, "folder_id", folder_id)

    @classmethod
    def of_checked(cls, values: Mapping[str, Any]) -> Self:
        """The record of values that were checked already, which it keeps as they are.

        As `model_construct` makes it, which takes as long as to parse a record, and keeps 2 KB beside each.
        """
        record = cls.__new__(cls)
        object.__setattr__(record, "__dict__", {**_absent(), **values})
        object.__setattr__(record, "__pydantic_fields_set__", _names_of(frozenset(values)))
        object.__setattr__(record, "__pydantic_extra__", None)
        object.__setattr__(record, "__pydantic_private__", None)
        return record


@functools.cache
def _absent() -> dict[str, Any]:
    """What stands for each field that a stored record lacks, in the order of the fields. Nobody changes a value."""
    defaults = {
        name: info.get_default(call_default_factory=True) for name, info in Record.model_fields.items()
    }
    return {
        name: None if Record.model_fields[name].is_required() else told for name, told in defaults.items()
    }


@functools.cache
def _names_of(given: frozenset[str]) -> set[str]:
    """The names that a record was given, once for all records of these: nearly all are given the same."""
    return set(given)


class GroupRecord(BaseModel):
    """One attempt at a group, as stored: one file, so that its jobs are there together or not at all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: int = RECORD_SCHEMA
    group_id: str
    attempt: int
    attempt_id: str = ""
    jobs: list[Record]


def name_attempt(record: Record) -> dict[str, Any]:
    """How another record names this attempt."""
    of_folder = {"attempt_id": record.attempt_id} if record.attempt_id else {}
    return {"trial_id": record.trial_id, "attempt": record.attempt, **of_folder}


_WORST_FIRST: tuple[Status, ...] = ("interrupted", "timeout", "failed", "oom", "ok")


def ending(statuses: Collection[str]) -> Status:
    """How a unit ended whose jobs ended like this: a group as badly as the worst of them.

    Those that a neighbour took with it are `skipped`, and tell nothing themselves.
    """
    worst: Status = next((status for status in _WORST_FIRST if status in statuses), "missing")
    return "failed" if worst == "ok" and "skipped" in statuses else worst


ALLOTTED = those(lambda about: about.allotted)
"""Fields that a trial may leave to the machine, and that get other values with another allowance of CPUs."""


def given(record: Record) -> dict[str, Any]:
    """What the machine gave an attempt of the fields that its trial left to it. Old logs may not tell: None."""
    asked = vars(record.trial)
    return {field: record.resolved.get(field) for field in ALLOTTED if asked.get(field) is None}
