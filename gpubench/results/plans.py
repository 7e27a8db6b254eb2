"""Stored plans: when each was stored, in which order, and what it asked for. Times of files tell nothing."""

from __future__ import annotations

import contextlib
import datetime
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import quote_value
from gpubench.basics.regular_file import read_regular_file
from gpubench.datasets.facts import DataFacts
from gpubench.plan import experiment_file, shards
from gpubench.plan.experiment import Experiment
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.rounds import MOST
from gpubench.plan.shards import Parts
from gpubench.plan.skips import NodeCapacity
from gpubench.plan.sources import StoredSources
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole
from gpubench.schema.columns import Devices
from gpubench.schema.record import Record
from gpubench.schema.validation import InvalidValueError, convert_value

MOST_PLANS = 1_000_000
"""No folder holds more: a larger number has been damaged, and counts as none."""


class PlanFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan's file says in [plan], besides its experiment; what older plans don't tell is as it was then."""

    stored_at: str = ""
    """When it was stored: UTC, ISO 8601 with microseconds; empty in older plans."""
    number: Annotated[int, Meta(ge=0, lt=MOST_PLANS)] = 0
    """The plan's number in the folder, from 1; 0 in older plans. Clocks may be set back; numbers only go up."""
    device: Literal["cuda", "cpu"] = "cuda"
    cpus: Annotated[int, Meta(ge=1, le=1 << 16)] = 1
    gpus: Devices | None = None
    rounds: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    """How many rounds its sweep goes through at most; None for plans that don't tell."""
    shards: str = ""
    order: Literal["given", "random"] = "given"
    """Of its trials, on which the parts depend."""
    protocol: str = ""
    """Empty in plans of versions before 0.2."""
    data: dict[str, DataFacts] = {}
    models: dict[str, str] = {}

    @property
    def parts(self) -> Parts:
        """Those that the folder is asked for (`--shard`); none: the whole plan."""
        return shards.parse_shards(self.shards)

    def format_stored_at_local(self) -> str:
        """`stored_at` as local time, written as records write theirs; empty where it is not known."""
        try:
            moment = datetime.datetime.fromisoformat(self.stored_at).astimezone()
        except (ValueError, OverflowError):  # no time, or one beyond the calendar in this time zone
            return ""
        return moment.strftime("%Y-%m-%d %H:%M:%S")


class _PlanToml(msgspec.Struct, frozen=True, kw_only=True):
    """A plan's file, as far as it is looked at here."""

    plan: PlanFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFile:
    """A plan's file, read."""

    path: Path
    text: str
    facts: PlanFacts

    @property
    def experiment_name(self) -> str:
        return self.path.stem.rpartition("-")[0]

    def parse_experiment(self) -> Experiment:
        """Raises UsageError."""
        return experiment_file.parse_experiment(self.text, "its experiment")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlan:
    """A plan as it was when it was stored."""

    name: str
    """The name of its file."""
    plan: Plan
    room: NodeCapacity | None
    """What the machine had that it was stored on, or a larger one to which the folder was taken since; None for plans
    that don't tell."""
    facts: PlanFacts
    share: Plan
    """The plan with the units alone of the parts that the folder is asked for."""

    def make_sort_key(self, first_start: Mapping[str, str]) -> tuple[int, str, str]:
        """Sorts the plans of a folder as they were stored. `first_start`: trial id -> when it was first begun.

        Those without a number are older than all that have one; among them the trials that were measured tell, then
        names.
        """
        known = [first_start[job.trial_id] for job in self.plan.jobs if job.trial_id in first_start]
        return self.facts.number, self.facts.stored_at or min(known, default=""), self.name


def read_plan_file(path: Path) -> PlanFile:
    """Raises OSError, and UsageError where it is damaged."""
    content = read_regular_file(path)
    try:
        text = content.decode("utf-8")
        plan = tomllib.loads(text).get("plan", {})
        facts = convert_value({"plan": plan}, _PlanToml).plan
        shards.parse_shards(facts.shards)
        return PlanFile(path=path, text=text, facts=facts)
    except UnicodeDecodeError as error:
        raise UsageError(f"it is no text in UTF-8 from byte {error.start + 1} on") from None
    except InvalidValueError as error:
        raise UsageError(str(error)) from None
    except (RecursionError, ValueError) as error:  # also of a number of more than 4,300 digits
        raise UsageError(f"it is not TOML: {error}") from None


def list_plan_files(results: Results) -> list[PlanFile]:
    """The plans that can be read; `read_stored_plans` says which can't."""
    files = []
    for path in results.list_plan_paths():
        with contextlib.suppress(OSError, UsageError):
            files.append(read_plan_file(path))
    return files


def make_plan_stamp(files: Sequence[PlanFile]) -> dict[str, Any]:
    """Time and number of a plan that is stored now, beside these."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    return {"stored_at": now, "number": 1 + max((file.facts.number for file in files), default=0)}


def is_newest_plan(file: PlanFile, files: Sequence[PlanFile]) -> bool:
    """Whether no other plan of its experiment was stored later; of plans without numbers that is not known."""
    others = [other for other in files if other.experiment_name == file.experiment_name and other is not file]
    return all(other.facts.number < file.facts.number for other in others)


def find_epochs_of_old_version(results: Results, name: str) -> dict[str, Any]:
    """`epochs`, and `warmup_epochs` if given, of the newest plan of an experiment that a version before 0.2 stored.

    Empty where there is none, or its epochs vary. Plans that can't be read are left out.
    """
    files = [file for file in list_plan_files(results) if file.experiment_name == name]
    for file in sorted(files, key=lambda file: file.facts.number, reverse=True):
        if not file.facts.protocol:
            with contextlib.suppress(UsageError):
                fixed = file.parse_experiment().fixed
                names = ("epochs", "warmup_epochs")
                return {field: fixed[field] for field in names if field in fixed} if "epochs" in fixed else {}
    return {}


def find_last_folder_use(results: Results) -> str:
    """When a plan was last stored in a folder, or a trial last begun there: local time; empty where nothing tells."""
    stored = [file.facts.format_stored_at_local() for file in list_plan_files(results)]
    return max([results.find_last_start(), *stored])


def read_stored_plans(results: Results, records: Collection[Record]) -> tuple[list[StoredPlan], list[str]]:
    """The folder's plans, expanded as they were when they were stored, oldest first; and why any can't be.

    `records`: all of the folder's, by which plans of older versions are ordered, and larger machines known.

    A plan that can't be read (damaged, or of a version with other names) closes no folder: records are the truth.
    """
    plans, problems = [], []
    most_gpus = max((int(record.environment.get("gpu_count") or 0) for record in records), default=0)
    for path in results.list_plan_paths():
        try:
            plans.append(_expand_plan_file(read_plan_file(path), most_gpus))
            continue
        except KeyError as error:
            why = f"it lacks the facts of {quote_value(error.args[0])}"
        except OSError as error:
            why = f"it can't be read ({error.strerror})"
        except UsageError as error:
            why = str(error)
        problems.append(f"plan {path} is left out: {why}; the sweep that it is of stores it anew")
    first_start: dict[str, str] = {}
    for record in sorted(records, key=lambda record: record.started_at):
        if record.started_at:
            first_start.setdefault(record.trial_id, record.started_at)
    return sorted(plans, key=lambda plan: plan.make_sort_key(first_start)), problems


def _expand_plan_file(file: PlanFile, most_gpus: int) -> StoredPlan:
    facts, parts = file.facts, file.facts.parts
    plan = expand_experiment(
        file.parse_experiment(),
        device=facts.device,
        sources=StoredSources(facts.data, facts.models),
        # Only of parts the order matters: tables have an order of their own.
        order=facts.order if parts else "given",
        cpus=facts.cpus,
    )
    return StoredPlan(
        name=file.path.name,
        plan=plan,
        room=None if facts.gpus is None else NodeCapacity(max(facts.gpus, most_gpus), facts.cpus),
        facts=facts,
        share=shards.select_shards(plan, parts),
    )


# ---- plans of several folders as those of one ----


_NUMBER = re.compile(r"(?m)(?<=^number = )\d+$")
_SHARDS = re.compile(r'(?m)^shards = ".*"\n')


def unite_plans(folders: Sequence[Results], target: Results, tell: Callable[[str], None]) -> None:
    """Each plan once, as it was stored last, numbered in the order in which they were stored. Of parts of a plan
    (`--shard`) it asks for all that any folder was asked for.

    `tell`: of those that can't be read, which stay where they are. Those of the target are told by whoever reads it.
    """
    versions: dict[str, list[PlanFile]] = {}
    unreadable: set[str] = set()
    for folder in folders:
        for path in folder.list_plan_paths():
            try:
                file = read_plan_file(path)
                versions.setdefault(path.name, []).append(file)
            except (OSError, UsageError) as error:
                if folder is target:
                    unreadable.add(path.name)
                else:
                    tell(f"{path} is left out: {getattr(error, 'strerror', None) or error}")
    last = [max(files, key=_make_plan_sort_key) for name, files in versions.items() if name not in unreadable]
    number = 0
    for file in sorted(last, key=lambda file: (*_make_plan_sort_key(file), file.path.name)):
        path = target.folder / "plans" / file.path.name
        if not file.facts.number:  # of a version that knew none: it stays older than all others
            if not path.exists():
                write_whole(path, file.text)
            continue
        number += 1
        head, mark, tail = file.text.partition("\n[plan]\n")
        parts = shards.join_shards(other.facts.parts for other in versions[file.path.name])
        shards_line = f'\nshards = "{",".join(map(str, parts))}"' if parts else ""
        text = head + mark + _NUMBER.sub(f"{number}{shards_line}", _SHARDS.sub("", tail, count=1), count=1)
        if file.path != path or text != file.text:
            write_whole(path, text)


def _make_plan_sort_key(file: PlanFile) -> tuple[str, int]:
    """When it was stored, among all."""
    return file.facts.stored_at, file.facts.number
