"""Stored plans: when each was stored, in which order, and what it asked for. Times of files tell nothing."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import shown
from gpubench.basics.regular_file import read_regular
from gpubench.datasets.facts import DataFacts
from gpubench.plan import experiment_file, shards
from gpubench.plan.plan import Plan, expand
from gpubench.plan.rounds import MOST, Rounds
from gpubench.plan.shards import Parts
from gpubench.plan.skips import Room
from gpubench.plan.sources import StoredSources
from gpubench.results.store import Results
from gpubench.schema.columns import Devices
from gpubench.schema.record import Record
from gpubench.schema.validation import InvalidValueError, convert, toml_error_message

MOST_PLANS = 1_000_000
"""No folder holds more: a larger number has been damaged, and counts as none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPlan:
    """A plan as it was when it was stored."""

    name: str
    """The name of its file."""
    plan: Plan
    room: Room | None
    """What the machine had that it was stored on; None for plans that don't tell."""
    stamp: Stamp
    rounds: int | None = None
    """How many its sweep goes through at most; None for plans that don't tell."""
    parts: Parts = ()
    """Those that this folder is asked for (`--shard`); none: the whole plan."""
    share: Plan
    """The plan with the units of these alone."""

    def place(self, first_start: Mapping[str, str]) -> tuple[int, str, str]:
        """Sorts the plans of a folder as they were stored. `first_start`: trial id -> when it was first begun.

        Those without a number are older than all that have one; among them the trials that were measured tell, then
        names.
        """
        known = [first_start[job.trial_id] for job in self.plan.jobs if job.trial_id in first_start]
        return self.stamp.number, self.stamp.stored_at or min(known, default=""), self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """When a plan was stored. Older plans have none: 0 and empty."""

    stored_at: str = ""
    """UTC, ISO 8601 with microseconds."""
    number: int = 0
    """The plan's number in the folder, from 1. Clocks may be set back; numbers only go up."""

    def local(self) -> str:
        """`stored_at` as local time, written as records write theirs; empty where it is not known."""
        try:
            moment = datetime.datetime.fromisoformat(self.stored_at).astimezone()
        except (ValueError, OverflowError):  # no time, or one beyond the calendar in this time zone
            return ""
        return moment.strftime("%Y-%m-%d %H:%M:%S")


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan rests on besides its experiment; what older plans don't tell is as it was then."""

    device: Literal["cuda", "cpu"] = "cuda"
    cpus: Annotated[int, Meta(ge=1, le=1 << 16)] = 1
    gpus: Devices | None = None
    rounds: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    shards: str = ""
    order: Literal["given", "random"] = "given"
    """Of its trials, on which the parts depend."""
    data: dict[str, DataFacts] = {}
    models: dict[str, str] = {}


class _PlanFile(msgspec.Struct, frozen=True, kw_only=True):
    """A plan's file, as far as it is looked at here."""

    plan: _Facts = _Facts()


def stamp_of(resolved: Mapping[str, Any]) -> Stamp:
    """The stamp in a plan's [plan]; what is no stamp counts as none."""
    stored_at, number = resolved.get("stored_at"), resolved.get("number")
    return Stamp(
        stored_at=stored_at if isinstance(stored_at, str) else "",
        number=number if type(number) is int and 0 < number < MOST_PLANS else 0,
    )


def next_stamp(results: Results) -> Stamp:
    """For a plan that is stored now."""
    taken = max((stamp.number for stamp in _read_stamps(results).values()), default=0)
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")
    return Stamp(stored_at=now, number=taken + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanRequest:
    """What a folder was asked for besides a plan's trials, when that was stored."""

    rounds: Rounds
    most: int | None
    """Rounds that its sweep goes through at most; None for plans that don't tell."""
    parts: Parts


def find_request(results: Results, name: str, plan_id: str) -> PlanRequest | None:
    """What a folder was asked for of this plan; None where it is not stored, or can't be read."""
    try:
        text = _read_text(results.plan(name, plan_id))
        facts = _parse_facts(_parse_plan(text))
        experiment = experiment_file.parse(text, "its experiment")
        return PlanRequest(
            rounds=experiment.rounds, most=facts.rounds, parts=shards.parse_parts(facts.shards)
        )
    except (OSError, UsageError, ValueError, TypeError):
        return None


def is_newest(results: Results, name: str, plan_id: str) -> bool:
    """Whether a plan is stored, and no other of its experiment was stored later. What can't be read is not stored.

    Of plans without numbers it is not known which was the last: none is.
    """
    stamps = _read_stamps(results)
    stamp = stamps.pop(results.plan(name, plan_id), None)
    numbers = [other.number for path, other in stamps.items() if path.stem.rpartition("-")[0] == name]
    return stamp is not None and all(number < stamp.number for number in numbers)


def whole_epochs_before(results: Results, name: str) -> dict[str, Any]:
    """`epochs`, and `warmup_epochs` if given, of the newest plan of an experiment that a version before 0.2 stored.

    Empty where there is none, or its epochs vary. Plans that can't be read are left out.
    """
    stamps = {
        path: stamp for path, stamp in _read_stamps(results).items() if path.stem.rpartition("-")[0] == name
    }
    for path in sorted(stamps, key=lambda path: stamps[path].number, reverse=True):
        try:
            text = _read_text(path)
            fixed = experiment_file.parse(text, "its experiment").fixed
        except (OSError, UsageError, ValueError):
            continue
        if experiment_file.PROTOCOL not in _parse_plan(text):
            names = ("epochs", "warmup_epochs")
            return {field: fixed[field] for field in names if field in fixed} if "epochs" in fixed else {}
    return {}


def find_last_use(results: Results) -> str:
    """When a plan was last stored in a folder, or a trial last begun there: local time; empty where nothing tells."""
    return max([results.last_start(), *(stamp.local() for stamp in _read_stamps(results).values())])


def read_stamp(content: bytes) -> Stamp:
    """The stamp in a plan's file; none where it is damaged."""
    try:
        return stamp_of(_parse_plan(_decode(content)))
    except (ValueError, TypeError):
        return Stamp()


def read_parts(content: bytes) -> Parts:
    """The parts that a plan's file asks for; none, the whole plan, where it is damaged."""
    try:
        return shards.parse_parts(_parse_facts(_parse_plan(_decode(content))).shards)
    except (UsageError, ValueError, TypeError):
        return ()


def _read_stamps(results: Results) -> dict[Path, Stamp]:
    """The stamps of the plans that can be read; `stored_plans` says which can't."""
    stamps = {}
    for path in results.plans():
        try:
            stamps[path] = stamp_of(_parse_plan(_read_text(path)))
        except (OSError, ValueError, TypeError):
            continue
    return stamps


def _read_text(path: Path) -> str:
    """Raises OSError, and ValueError for what is no text."""
    return _decode(read_regular(path))


def _decode(content: bytes) -> str:
    """Raises ValueError for what is no text."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is no text in UTF-8 from byte {error.start + 1} on") from None


def _parse_plan(text: str) -> Mapping[str, Any]:
    """What a plan's file says of itself. Raises TypeError where that is no table, ValueError for what is no TOML."""
    try:
        resolved = tomllib.loads(text).get("plan", {})
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML: {toml_error_message(error)}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:  # which Python raises for a number of more than 4,300 digits
        raise ValueError("it holds a number that is too long") from None
    if not isinstance(resolved, dict):
        raise TypeError("plan must be a table")
    return resolved


def stored_plans(results: Results, records: Iterable[Record]) -> tuple[list[StoredPlan], list[str]]:
    """The folder's plans, expanded as they were when they were stored, oldest first; and why any can't be.

    `records`: all of the folder's, by which plans of older versions are ordered.

    A plan that can't be read (damaged, or of a version with other names) closes no folder: records are the truth.
    """
    plans, problems = [], []
    for path in results.plans():
        try:
            plans.append(_read_plan(path))
        except KeyError as error:
            problems.append(_describe_problem(path, f"it lacks the facts of {shown(error.args[0])}"))
        except OSError as error:
            problems.append(_describe_problem(path, f"it can't be read ({error.strerror})"))
        except (UsageError, ValueError, TypeError) as error:
            problems.append(_describe_problem(path, str(error)))
    first_start = _find_first_starts(records)
    return sorted(plans, key=lambda plan: plan.place(first_start)), problems


def _describe_problem(path: Path, why: str) -> str:
    return f"plan {path} is left out: {why}; the sweep that it is of stores it anew"


def _read_plan(path: Path) -> StoredPlan:
    text = _read_text(path)
    resolved = _parse_plan(text)
    facts = _parse_facts(resolved)
    experiment = experiment_file.parse(text, "its experiment")
    sources = StoredSources(facts.data, facts.models)
    parts = shards.parse_parts(facts.shards)
    # Only of parts the order matters: tables have an order of their own.
    order = facts.order if parts else "given"
    plan = expand(experiment, device=facts.device, sources=sources, order=order, cpus=facts.cpus)
    return StoredPlan(
        name=path.name,
        plan=plan,
        room=Room(facts.gpus, facts.cpus) if facts.gpus is not None else None,
        stamp=stamp_of(resolved),
        rounds=facts.rounds,
        parts=parts,
        share=shards.select_parts(plan, parts),
    )


def _parse_facts(resolved: Mapping[str, Any]) -> _Facts:
    """Raises ValueError for what is none."""
    try:
        return convert({"plan": resolved}, _PlanFile).plan
    except InvalidValueError as error:
        raise ValueError(str(error)) from None


def _find_first_starts(records: Iterable[Record]) -> Mapping[str, str]:
    """Trial id -> when the first attempt at it began."""
    first_start: dict[str, str] = {}
    for record in records:
        if record.started_at:
            first_start[record.trial_id] = min(
                record.started_at, first_start.get(record.trial_id, record.started_at)
            )
    return first_start
