"""The record of one attempt: what `record/` makes, what is stored, and the check of what is read back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, structs

from gpubench.schema.attempt_ids import parse_folder_id
from gpubench.schema.columns import BY_NAME, EPOCH_COLUMNS, HUGE, NODE_COLUMNS, Amount, Count, Signed
from gpubench.schema.events import Finite
from gpubench.schema.trial_fields import FIELDS, TYPES, select_fields
from gpubench.schema.validation import convert_type_bounds

RECORD_SCHEMA = 6
"""The form of records that this version writes: where figures come from stands once a source. It reads all earlier
ones."""

Status = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing"]
Ended = Literal["ok", "oom", "failed", "timeout", "interrupted", "skipped"]
"""How an attempt ends. `skipped`: another job of its group took it with it."""
FINAL: frozenset[str] = frozenset({"ok", "oom"})
"""Endings that a later sweep never repeats unasked."""

MOST_ATTEMPTS = 1_000_000
"""Nobody makes more at one unit: a larger number has been damaged."""
MOST_WARNINGS = 1_000
"""Of one record: more are no work of gpubench."""

Version = Annotated[int, Meta(ge=1, le=RECORD_SCHEMA)]
Number = Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS)]


# ---- what its parts may hold ----

if TYPE_CHECKING:  # code has them as plain dicts
    Columns = dict[str, Any]
    Images = dict[str, Any]
    Definition = dict[str, Any]
    Reasons = dict[str, str]
    Sources = Mapping[str, Any]
    Epoch = dict[str, Any]
    Node = dict[str, Any]
    Together = dict[str, Any]
else:
    Integer = Annotated[int, Meta(ge=-int(HUGE), le=int(HUGE))]
    Coded = str | list[str]

    def define_part(name: str, kinds: dict[str, Any], needed: Collection[str] = ()) -> Any:
        """Values by name, each absent or null if need be, but for those that are `needed`.

        Names of other versions are let through: nobody reads them.
        """
        fields = [(key, kind) if key in needed else (key, kind | None, None) for key, kind in kinds.items()]
        return msgspec.defstruct(name, fields, kw_only=True, gc=False)

    _KINDS = {
        name: convert_type_bounds(TYPES[name]) if name in FIELDS else column.holds
        for name, column in BY_NAME.items()
    }
    Columns = define_part(
        "Columns", {**_KINDS, "cpu_ids": list[Count], "gpu_uuids": list[str], "printed": dict[str, Finite]}
    )
    Images = define_part(
        "Images",
        dict.fromkeys(("fingerprint", "name", "root"), str)
        | {"kind": Literal["folder", "named", "none"]}
        | dict.fromkeys(("train_images", "val_images", "num_classes", "size", "skipped_images"), Integer),
    )
    Definition = define_part("Definition", {"files": str, "cpu": list[Any], "gpu": list[Any]})
    Reasons = dict[str, Coded]
    Source = define_part(
        "Source", {"source": Coded, "period_s": Amount, "samples": Count, "gaps": Count, "columns": list[str]}
    )
    Sources = dict[str, str | Source | None]
    Epoch = define_part(
        "Epoch", {c.name: c.holds for c in EPOCH_COLUMNS[2:-1]}, needed=("epoch", "warmup", "epoch_time_s")
    )
    Node = define_part(
        "Node", {c.name: c.holds for c in NODE_COLUMNS} | {"gpu_uuids": list[str]}, needed=("node", "ranks")
    )

    Solo = define_part(
        "Solo", {"trial_id": str, "attempt": Count, "attempt_id": str}, needed=("trial_id", "attempt")
    )
    _RESOURCE = {
        **dict.fromkeys(("name", "column", "unit"), str),
        **dict.fromkeys(("alone", "together"), list[Signed | None]),
        "full_alone": list[bool],
        "full_together": bool,
    }
    Resource = define_part("Resource", _RESOURCE, needed=_RESOURCE)
    Together = define_part(
        "Together",
        {
            "jobs": Count,
            "no_prediction": str,
            "undecidable": str,
            "gain_range": tuple[Signed, Signed],
            "solos": list[Solo | None],
            "resources": list[Resource],
        },
    )


class EpochWindow(Struct, frozen=True, kw_only=True, gc=False):
    """From when to when an epoch lasted, in seconds of the host's monotonic clock."""

    epoch: Count
    t0: Signed
    t1: Signed


class TrialSpan(Struct, frozen=True, kw_only=True, gc=False):
    """When the trial was launched and when its last process had ended, on the same clock: every window lies between."""

    launched: Signed
    """Times of samples count from it."""
    finished: Signed


class Record(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt at one unit, as stored: immutable, the truth behind every table."""

    schema_version: Version = RECORD_SCHEMA
    trial_id: str
    config_id: str
    attempt: Number = 1
    """Its number among the attempts at its unit in the folder where it was measured, from 1."""
    attempt_id: str = ""
    """Unique in the world (`schema/attempt_ids.py`); empty for one of an earlier version."""
    claim: str = ""
    """The claim under which it was measured (`store/work_claims.py`), whose last part is its number; empty where the
    sweep made none."""
    folder_id: str = ""
    """Of the results folder where it was measured; of an earlier version's that in which it lies."""
    round: Number = 1
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
    trial: Columns
    """Its fields as asked for; None for one that was left to the machine."""
    variant_definition: Definition = {}
    data: Images = {}
    """Facts of the images: fingerprint, counts, where they lay."""
    resolved: Columns = {}
    """The values that fields left to the machine got."""
    result: Columns = {}
    """What was measured, by column. None, or absent: not measured, `missing` says why. Besides, `printed`: the last
    value of each figure that was looked for in a command's output, by name."""
    missing: Reasons = {}
    """Column -> why it is empty."""
    provenance: Sources = {}
    """Where sampled figures come from: source, period, samples, gaps. `schema/codes.py` says how it is stored."""
    epochs: list[Epoch] = []
    """Rows of EPOCH_COLUMNS without the first two and the last. Besides, `steady_wait_s` (data wait of a steady step)
    and, where there are several ranks, `data_wait_s_by_rank` (seconds that each of them starved)."""
    windows: list[EpochWindow] = []
    span: TrialSpan | None = None
    """None: the version that measured it did not keep it."""
    nodes: list[Node] = []
    """Where the ranks were, under NODE_COLUMNS, with the `gpu_uuids` of each. Empty where all were on one node."""
    phases: dict[str, Signed] = {}
    """Wall seconds that the trial spent in each phase of its life."""
    together: Together = {}
    """For a job of a group: what was found out about the group, the same for all its jobs. See `record/together.py`."""
    doubts: Annotated[dict[str, str], Meta(max_length=MOST_WARNINGS)] = {}
    """Code -> one sentence with advice."""
    environment: Columns = {}
    started_at: str = ""
    source: str = "measured"
    """`measured` by gpubench, or where the figures were taken from."""

    def __post_init__(self) -> None:
        if self.attempt_id:
            self.note_folder_id(parse_folder_id(self.attempt_id))

    @property
    def attempt_name(self) -> str:
        """By which its files are named: its id, or its number where it has none."""
        return self.attempt_id or str(self.attempt)

    def note_folder_id(self, folder_id: str) -> None:
        """Notes in which results folder it lies, for one that does not say where it was measured."""
        structs.force_setattr(self, "folder_id", folder_id)

    def to_stored(self) -> dict[str, Any]:
        """Its values by name, as its file has them."""
        values = structs.asdict(self) | msgspec.to_builtins({"windows": self.windows, "span": self.span})
        return {name: value for name, value in values.items() if name not in UNSTORED}


UNSTORED = ("folder_id", "reference")
"""Fields that no file of a record has."""


class GroupRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One attempt at a group, as stored: one file, so that its jobs are there together or not at all."""

    schema_version: Version = RECORD_SCHEMA
    group_id: str
    attempt: Number
    attempt_id: str = ""
    jobs: Annotated[list[Record], Meta(min_length=1)]

    def to_stored(self) -> dict[str, Any]:
        """Its values by name, as its file has them."""
        return structs.asdict(self) | {"jobs": [job.to_stored() for job in self.jobs]}


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
    return {field: record.resolved.get(field) for field in ALLOTTED if record.trial.get(field) is None}
