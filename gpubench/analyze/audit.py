"""How honest a results folder is: T. Hoefler's twelve ways to make deep-learning performance look good (2018), each
turned into a rule that figures can keep or break, and one more on uncertainty (T. Hoefler and R. Belli, 2015).

A rule is a function from what was read to what it observes; an observation that breaks it outweighs one that leaves it
undecidable, which outweighs one that it is kept.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder, Table
from gpubench.analyze.frames import Runs, Summary
from gpubench.analyze.grid import plain, split_codes
from gpubench.analyze.series import (
    CANDIDATES,
    COUNTS,
    DEVICES,
    MOVES,
    Codes,
    Fields,
    Mask,
    asked_fields,
    combine,
    encode,
    movable,
    tied_fields,
)
from gpubench.analyze.table_rows import collect_rows
from gpubench.analyze.top1 import MARGIN, find_seeds
from gpubench.core.audit import Observation, RuleFinding, RuleVerdict, Share
from gpubench.core.claims import Claim, Design
from gpubench.plan.groups import MOST_JOBS
from gpubench.results.file_names import Numbered, numbered
from gpubench.results.status import status_by
from gpubench.results.store import Results
from gpubench.schema.catalog import PROCEDURAL
from gpubench.schema.doubts import doubt_of, rank
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.record import FINAL
from gpubench.schema.trial import job_ids
from gpubench.schema.trial_fields import those
from gpubench.stats.decisions import decide
from gpubench.stats.estimates import FEWEST_SEEDS, compare_percentages, mean

SCALES = frozenset({"batch_size", "batch_per_gpu", "gpus", "gpu_ids", "ranks"})
"""Fields in which rows are scaled."""
SCALED = ("gpus", "ranks", "batch_size")
"""Axes along which rows of one workload may be compared."""
FEEDING = frozenset({*those(lambda about: about.feeds), "lr"})
"""Fields that rows may differ in which show what reading the images takes. The learning rate takes no time."""
UNENDED = ("failed", "timeout", "interrupted", "missing")
SOFTWARE = ("torch", "driver", "cuda")
"""Columns of which rows that are compared must agree."""
ENLARGED = 2.0
"""Times an image's own side from which an input counts as blown up."""
USUAL_PX = 256
"""Sides up to this are usual for photographs: of those whose own size is not on record, and of procedural images,
which stand for any photographs."""
FEW_STEPS = 20
"""Steps of an epoch below which a batch is an unreasonable share of the images."""
UNLIKE_COST_PCT = 2.0
"""Points by which `breakdown_cost_pct` may differ within a comparison. Every other step bears that cost, so from there
on it moves an efficiency by one per cent or more, which is what a table shows."""
LIKENESS = (
    *CANDIDATES, "machine", "group", "is_asked_known", "is_gpu_ids_auto", "is_workers_auto",
)  # fmt: skip
"""Columns that tell whether rows are of one workload."""


@dataclass(frozen=True, kw_only=True)
class AuditedTable:
    """The rows of one table that ended ok."""

    table: Table
    runs: Runs
    beside: Summary
    """Jobs of groups among them."""
    solo_ids: frozenset[str]
    """Ids of the trials that jobs of its groups are compared with."""
    seeds: Mapping[int, Sequence[float]]
    """Row -> the top-1 of each of its seeds, in per cent."""

    @property
    def name(self) -> str:
        """Its title."""
        return self.table.name

    @cached_property
    def alone(self) -> Summary:
        """Those that ran alone."""
        return self.beside[self.beside["group"].isna()]

    @cached_property
    def comparable(self) -> Summary:
        """Those of `alone` that may be meant to be compared with each other.

        Where no axis varies batch sizes or devices, a trial that a job of a group is compared with is there for that
        job alone: the jobs of a group differ as they like.
        """
        if SCALES & set(asked_fields(self.table.axes)):
            return self.alone
        return self.alone[~self.alone["trial_id"].isin(self.solo_ids)]

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """Rows on several devices (`row`) with what they are set against (`baseline`), `strong` or `weak` (`kind`)."""
        rows = self.comparable
        parts = []
        for kind in ("strong", "weak"):
            baseline = rows[f"{kind}_baseline"].dropna().astype("int64")
            baseline = baseline[baseline.isin(rows.index)]
            parts.append(pd.DataFrame({"row": baseline.index, "baseline": baseline.to_numpy(), "kind": kind}))
        return pd.concat(parts, ignore_index=True)

    def tied(self, *fields: str) -> set[str]:
        """The fields that are on one axis with any of `fields`."""
        return tied_fields(self.table.axes, *fields)

    def describe(self, row: int) -> dict[str, Any]:
        """A row's name: its group and job, and the fields that differ between rows."""
        named = [*(("group", "job") if pd.notna(self.beside.at[row, "group"]) else ()), *self.table.varied]
        return {field: plain(self.beside.at[row, field]) for field in named}


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What the rules look at. Tries of the largest batch size stand in no table here."""

    folder: Folder
    tables: tuple[AuditedTable, ...]
    rows: Runs
    """Each trial on each allocation once, by its first round; planned ones without a record among them. `key`: equal in
    rows of one trial on one allocation."""
    runs: Runs
    """All that ended ok, of all rounds, with the same `key`."""

    @cached_property
    def ok(self) -> Runs:
        """Rows that ended ok."""
        return self.rows[self.rows["status"] == "ok"]

    @cached_property
    def alone(self) -> Runs:
        """Rows that ended ok and shared the machine with no other job."""
        return self.ok[self.ok["group"].isna()]


Observations = Iterator[Observation]


def audit_folder(folder: Folder) -> list[RuleFinding]:
    """What each rule finds, in their order."""
    audited = read_audited(folder)
    return [conclude(number, list(check(audited))) for number, check in enumerate(RULES, start=1)]


def conclude(number: int, observations: Sequence[Observation]) -> RuleFinding:
    """The verdict of the observation that weighs most, with all that come to the same."""
    present = {observation.verdict for observation in observations}
    verdict = next(verdict for verdict in WEIGHTS if verdict in present)
    return RuleFinding(number, verdict, tuple(each for each in observations if each.verdict == verdict))


WEIGHTS: tuple[RuleVerdict, ...] = ("broken", "not decidable", "kept")


def read_audited(folder: Folder) -> Audited:
    """What the rules need of a folder."""
    runs = folder.runs
    key = combine(len(runs), [encode(runs[name]) for name in ("trial_id", "machine", "allowance")])
    runs = runs.assign(key=key)[~runs["elsewhere"]]
    tables = []
    for table in folder.tables:
        if table.is_of_tries:
            continue
        mine = runs[runs.index.isin(table.runs)]
        summary = folder.table_frame(table)
        tables.append(
            AuditedTable(
                table=table,
                runs=mine[mine["status"] == "ok"],
                beside=summary[summary["repeats"] > 0],
                solo_ids=frozenset(mine["solo_id"].dropna()),
                seeds=find_seeds(collect_rows(folder, table)),
            )
        )
    labels = {label for each in tables for label in each.table.runs}
    shown = runs[runs.index.isin(labels)]
    first = shown.assign(round=shown["round"].fillna(1)).sort_values("round", kind="stable")
    rows = shown.loc[first.drop_duplicates("key").index.sort_values()]
    return Audited(folder=folder, tables=tuple(tables), rows=rows, runs=shown[shown["status"] == "ok"])


def needs_rows(check: Callable[[Audited], Observations]) -> Callable[[Audited], Observations]:
    """A rule that can't be decided where no trial ended ok."""

    def checked(audited: Audited) -> Observations:
        return check(audited) if len(audited.ok) else iter((_unclear("nothing-ok"),))

    return checked


def _broken(code: str, **figures: Any) -> Observation:
    return Observation("broken", code, figures)


def _unclear(code: str, **figures: Any) -> Observation:
    return Observation("not decidable", code, figures)


def _kept(code: str, **figures: Any) -> Observation:
    return Observation("kept", code, figures)


def _share(some: pd.DataFrame | Collection[Any], whole: pd.DataFrame | Collection[Any]) -> Share:
    return Share(len(some), len(whole))


def _values(column: Iterable[Any]) -> tuple[Any, ...]:
    """What is known of a column, each value once, in order."""
    return tuple(sorted({plain(value) for value in column} - {None}))


def _count_devices(rows: pd.DataFrame) -> Codes:
    return Fields.of(rows).devices.astype("int64")


# ---- accuracy ----


@dataclass(frozen=True, kw_only=True, slots=True)
class ScaledStep:
    """A row beside the next smaller one."""

    table: AuditedTable
    row: int
    before: int

    @property
    def seeds(self) -> tuple[Sequence[float], Sequence[float]]:
        """The top-1 of the larger and of the smaller one's seeds; empty where it is not known."""
        return self.table.seeds.get(self.row, ()), self.table.seeds.get(self.before, ())

    @property
    def is_testable(self) -> bool:
        """Whether both sides have seeds enough."""
        return min(map(len, self.seeds)) >= FEWEST_SEEDS

    @property
    def fall(self) -> float:
        """By how many points the mean top-1 falls."""
        larger, smaller = self.seeds
        return mean(smaller) - mean(larger)

    def figures(self) -> dict[str, Any]:
        """What a sentence names of it."""
        larger, smaller = self.seeds
        return {
            "fall": self.fall, "before_pct": mean(smaller), "after_pct": mean(larger),
            "before": self.table.describe(self.before), "after": self.table.describe(self.row),
        }  # fmt: skip


def check_accuracy_while_scaling(audited: Audited) -> Observations:
    """Rule 1: a larger batch or more devices cost no top-1, by tests that know how far seeds differ.

    Each row is compared with the next smaller one. Kept where each falls by less than MARGIN: an equivalence test
    towards one side, for more top-1 is no loss; all must pass, so it needs no correction. Broken where the mean top-1
    differs and is lower (corrected by Holm for all rows), but for a fall that was shown to be less than MARGIN.
    """
    steps, aimed, is_unlearned = list_steps(audited)
    compared = len(steps) + aimed
    if not compared:
        yield from _say_nothing_scaled(audited)
        return
    known = [step for step in steps if all(step.seeds)]
    tested = [step for step in known if step.is_testable]
    decided = decide(
        [claim for design in ("above", "paired") for claim in _claim_top1(tested, design)]  # type: ignore[arg-type]
    )
    holds, differs = decided[: len(tested)], decided[len(tested) :]
    losing = [
        (step, claim)
        for step, hold, claim in zip(tested, holds, differs, strict=True)
        if hold.decided.word != "sure"
    ]
    lost = [
        (step, claim)
        for step, claim in losing
        if claim.decided.word == "sure" and claim.decided.direction == "less"
    ]
    if lost:
        worst, claim = max(lost, key=lambda each: each[0].fall)
        low, high = -(claim.decided.high or 0.0), -(claim.decided.low or 0.0)
        yield _broken("top1-falls", rows=Share(len(lost), compared), low=low, high=high, **worst.figures())
    if steps and not known:
        yield _unclear("no-scaled-top1")
    elif len(known) < len(steps):
        yield _unclear("some-without-top1", rows=Share(len(steps) - len(known), compared))
    if known and is_unlearned:
        yield _unclear("unlearned")
    few = [step for step in known if not step.is_testable]
    if few:
        worst = max(few, key=lambda step: step.fall)
        rows = Share(len(few), compared)
        if worst.fall > 0:
            yield _unclear("few-seeds-fall", rows=rows, seeds=FEWEST_SEEDS, **worst.figures())
        else:
            yield _unclear("few-seeds", rows=rows, seeds=FEWEST_SEEDS)
    if len(losing) > len(lost):
        yield _unclear("seeds-differ", rows=Share(len(losing) - len(lost), compared), margin=MARGIN)
    if steps:
        yield _kept("top1-holds", rows=Share(len(steps), compared), margin=MARGIN, seeds=FEWEST_SEEDS)
    if aimed:
        yield _kept("same-target", rows=Share(aimed, compared))


def _claim_top1(steps: Sequence[ScaledStep], design: Design) -> list[Claim]:
    """Of each step: that it holds its top-1 but for MARGIN (`above`), or that both differ (`paired`)."""
    images = [step.table.beside.loc[[step.row, step.before], "val_images"].min() for step in steps]
    return [
        Claim(
            metric="top1_pct", candidate=step.row, baseline=step.before, design=design, family=design,
            limit=-MARGIN if design == "above" else 0.0,
            evidence=compare_percentages(*step.seeds, images=plain(count)),
        )
        for step, count in zip(steps, images, strict=True)
    ]  # fmt: skip


def list_steps(audited: Audited) -> tuple[list[ScaledStep], int, bool]:
    """Rows to compare in top-1; how many others aimed at one; whether of some series no row has learned anything."""
    steps: list[ScaledStep] = []
    aimed, is_unlearned = 0, False
    for table in audited.tables:
        sized = table.comparable[table.comparable["batch_size"].fillna(0) > 0]
        if len(sized) < 2:
            continue
        fields = Fields.of(sized)
        named, _ = fields.series("batch_size", {*DEVICES, *table.tied("batch_size", "gpus", "ranks")})
        has_target = (sized["until_top1"].notna() & sized["time_to_top1_s"].notna()).to_numpy()
        target = encode(sized["until_top1"])
        learned = has_learned(sized)
        for places in (np.flatnonzero(named == series) for series in np.unique(named)):
            if len(places) < 2:
                continue
            is_one_target = bool(has_target[places].all()) and len(set(target[places])) == 1
            is_unlearned |= not is_one_target and not learned[places].any()
            for place, before in find_next_smaller(fields.take(places)).items():
                pair = places[[place, before]]
                if has_target[pair].all() and target[pair[0]] == target[pair[1]]:
                    aimed += 1
                else:
                    row, smaller = (int(label) for label in sized.index[pair])
                    steps.append(ScaledStep(table=table, row=row, before=smaller))
    return steps, aimed, is_unlearned


def find_next_smaller(fields: Fields) -> dict[int, int]:
    """Place of a row -> place of the one it was scaled from: of those, the one with most devices, then largest batch.

    A row is scaled from one of its own strategy, or `single`, with no more devices and no larger batch, not both the
    same. One baseline that its size alone chooses: the best of several noisy figures would flatter the baseline.
    """
    devices, batch, way = fields.devices, fields.frame["batch_size"].to_numpy("float64"), fields.way
    is_single = (fields.frame["strategy"] == "single").to_numpy()
    next_smaller = {}
    for place in range(len(fields)):
        is_smaller = (devices <= devices[place]) & (batch <= batch[place])
        is_smaller &= (devices < devices[place]) | (batch < batch[place])
        smaller = np.flatnonzero(is_smaller & (is_single | (way == way[place])))
        if len(smaller):
            order = np.lexsort((-smaller, way[smaller] == way[place], batch[smaller], devices[smaller]))
            next_smaller[place] = int(smaller[order[-1]])
    return next_smaller


def has_learned(rows: Summary) -> Mask:
    """Whether top-1 lies above chance; True where that can't be told, which is another rule's business."""
    classes, images, top1 = (rows[name].astype("float64") for name in ("num_classes", "val_images", "top1_pct"))
    chance = 1 / classes
    bound = 100 * (chance + 2 * np.sqrt(chance * (1 - chance) / images))
    return ~(top1 <= bound).to_numpy()


def _say_nothing_scaled(audited: Audited) -> Observations:
    def varies(rows: Summary) -> bool:
        return len(set(zip(rows["batch_size"].fillna(0), _count_devices(rows), strict=True))) > 1

    if not len(audited.alone):
        yield _unclear("none-alone" if len(audited.ok) else "nothing-ok")
    elif any(varies(table.comparable) for table in audited.tables):
        yield _unclear("scaled-with-others")
    elif any(varies(table.alone) for table in audited.tables):
        yield _kept("only-jobs-scaled")
    else:
        yield _kept("nothing-scaled")


@needs_rows
def check_accuracy_reported(audited: Audited) -> Observations:
    """Rule 2: every row that ran alone has a top-1 on held-out images. A steady rate judges no network."""
    alone = audited.alone
    is_rate = alone["kind"] == "steady rate"
    without = alone[~is_rate & alone["top1_pct"].isna()]
    if not len(alone):
        yield _unclear("none-alone")
    elif len(without):
        reasons = [missing.get("top1_pct") for missing in without["missing"]]
        yield _broken("no-top1", rows=_share(without, alone), why=tuple(dict.fromkeys(reasons)))
    elif is_rate.any():
        yield _unclear("rates-alone", rows=_share(alone[is_rate], alone))
    else:
        yield _kept("top1", rows=_share(alone, alone), images=_values(alone["val_images"]))
        if alone["time_to_top1_s"].notna().any():
            yield _kept("top1-chose-the-moment")


def check_same_run(audited: Audited) -> Observations:
    """Rule 8: speed and accuracy of a row come from one run with one set of options."""
    alone = audited.alone
    is_timed, is_judged = alone["epoch_time_s"].notna(), alone["top1_pct"].notna()
    timed, without, untimed = alone[is_timed], alone[is_timed & ~is_judged], alone[~is_timed & is_judged]
    if not len(timed):
        yield _unclear("untimed" if len(alone) else "none-alone" if len(audited.ok) else "nothing-ok")
        return
    if len(without) and len(untimed):
        yield _broken("apart", untimed=len(untimed), without=len(without))
    if len(without):
        yield _unclear("time-without-top1", rows=_share(without, timed))
    is_in_rounds = timed["key"].isin(audited.runs.loc[audited.runs["round"].fillna(1) > 1, "key"])
    if not is_in_rounds.all():
        yield _kept("one-run", rows=_share(timed[~is_in_rounds], timed))
    if is_in_rounds.any():
        yield _kept("first-round", rows=_share(timed[is_in_rounds], timed))


# ---- runs ----


def check_runs_kept(audited: Audited) -> Observations:
    """Rule 3: every attempt is stored.

    An attempt gets the number after the highest that is there, so one whose record is stored shows that there was
    something under the number before. A log, samples or a damaged file show only what their names say: that an attempt
    was begun.
    """
    folder = audited.folder
    attempts = folder.attempts
    if not attempts:
        yield _unclear("nothing-ok")
        return
    rounds: dict[str, dict[int, int]] = {}  # trial -> number of an attempt -> its round
    for record in attempts:
        rounds.setdefault(record.trial_id, {})[record.attempt] = record.round
    damaged = {
        (unit, number): _list_possible_trials(unit)
        for unit, number in sorted(Results(folder.path).damaged(attempts))
    }
    traces = list_traces(folder)
    begun = {trial: set(numbers) for trial, numbers in rounds.items()}
    for trial, number in traces:
        begun.setdefault(trial, set()).add(number)
    for (_, number), trials in damaged.items():
        for trial in trials & begun.keys():  # a group may have fewer jobs than ids are possible
            begun[trial].add(number)
    gaps = [
        (trial, before + 1, after)
        for trial, numbers in sorted(begun.items())
        for before, after in itertools.pairwise([0, *sorted(numbers)])
        if after > before + 1
    ]
    gone = [gap for gap in gaps if gap[2] in rounds.get(gap[0], ())]
    if gone:
        yield _broken("attempts-gone", attempts=_name_gaps(gone))
    is_repeated = {
        f"{unit}-{number}": _is_measured_later(number, [rounds[trial] for trial in trials & rounds.keys()])
        for (unit, number), trials in damaged.items()
    }
    for code, expected in (("damaged", False), ("damaged-and-repeated", True)):
        names = tuple(sorted(name for name, repeated in is_repeated.items() if repeated is expected))
        if names:
            yield _unclear(code, attempts=names)
    of_damaged = {(trial, number) for (_, number), trials in damaged.items() for trial in trials}
    recordless = sorted(
        f"{trial}-{number}"
        for trial, number in traces - of_damaged
        if number > 0 and number not in rounds.get(trial, ())
    )
    if recordless:
        yield _unclear("no-record", attempts=tuple(recordless))
    if len(gone) < len(gaps):
        yield _unclear("gaps-before-files", attempts=_name_gaps(gap for gap in gaps if gap not in gone))
    if foreign := _values({record.source for record in attempts} - {"measured"}):
        yield _unclear("foreign", sources=foreign)
    yield _kept("runs-kept", attempts=len(attempts), trials=len(rounds))
    if len(attempts) > len(rounds):
        yield _kept("repeated", attempts=len(attempts) - len(rounds))
    tried = {label for table in folder.tables if table.is_of_tries for label in table.runs}
    tries = folder.runs["trial_id"][folder.runs.index.isin(tried)].unique()
    if count := sum(record.trial_id in tries for record in attempts):
        yield _kept("tries", attempts=count)
    for status, count in sorted(Counter(r.status for r in attempts if r.status not in FINAL).items()):
        yield _kept("not-final", attempts=count, status=status)
    superseded = folder.runs["trial_id"][folder.runs["superseded"]]
    if hidden := len(set(superseded) & rounds.keys()):
        yield _kept("superseded", trials=hidden)


def _list_possible_trials(unit: str) -> frozenset[str]:
    """The ids that its trials can have: of a group, whose record can't be read, of as many jobs as there may be."""
    if not unit.startswith("g"):
        return frozenset([unit])
    return frozenset(job_ids("", unit, number)[1] for number in range(MOST_JOBS))


def list_traces(folder: Folder) -> set[Numbered]:
    """(trial id, attempt number) of each log and each file of samples."""
    files = (path for kind in ("logs", "samples") for path in (folder.path / kind).glob("*/*-*.*"))
    return {name for path in files if (name := numbered(path))}


def _is_measured_later(number: int, rounds: Iterable[Mapping[int, int]]) -> bool:
    """Whether a record of a later attempt at the same trial can be read that may stand for this one.

    Those of other rounds don't where a round is missing: then this one was of it.
    """
    return any(
        max(known) > number and {*range(1, max(known.values()) + 1)} <= {*known.values()} for known in rounds
    )


def _name_gaps(gaps: Iterable[tuple[str, int, int]]) -> tuple[str, ...]:
    """`t0-2`, or `t0-2…9`: the numbers that are missing, of each trial."""
    return tuple(
        f"{trial}-{first}" + (f"…{after - 1}" if after > first + 1 else "") for trial, first, after in gaps
    )


@needs_rows
def check_ended_by_epochs(audited: Audited) -> Observations:
    """Rule 10: training ends after so many epochs, fixed beforehand, or at an accuracy; not by the clock."""
    for table in audited.tables:
        for field in ("epochs", "steps"):
            # A job of a group trains as long as what it is compared with; another job may train longer.
            lengths = _list_lengths(table.comparable, field)
            is_with_scale = any(field in group and SCALES & set(group) for group in table.table.axes)
            if len(lengths) > 1 and is_with_scale:
                yield _broken("length-with-scale", table=table.name, lengths=lengths, field=field)
            elif len(lengths) > 1 and field not in asked_fields(table.table.axes):
                yield _broken("unasked-lengths", table=table.name, lengths=lengths, field=field)
    ok = audited.ok
    is_rate = ok["kind"] == "steady rate"
    unknown = ok[~is_rate & ~(ok["epochs"].fillna(0) > 0) & ~(ok["steps"].fillna(0) > 0)]
    if len(unknown):
        yield _unclear("unknown-length", rows=_share(unknown, ok))
    yield _kept("ended-as-fixed", rows=_share(ok, ok))
    for field in ("epochs", "steps"):
        if lengths := _list_lengths(ok, field):
            yield _kept(f"after-{field}", lengths=lengths)
    if is_rate.any():
        yield _kept("after-windows")
    aimed = ok[ok["until_top1"].notna()]
    for code, is_wanted in (("at-top1", True), ("short-of-top1", False)):
        mine = aimed[aimed["time_to_top1_s"].notna() == is_wanted]
        if len(mine):
            yield _kept(code, epochs=_values(mine["epochs"]))
    if late := int((audited.rows["status"] == "timeout").sum()):
        yield _kept("deadline", trials=late)


def _list_lengths(rows: pd.DataFrame, field: str) -> tuple[int, ...]:
    """How long rows were to train: those that measured steps by their steps, the others by their epochs."""
    has_steps = rows["steps"].fillna(0) > 0
    chosen = rows[rows["until_top1"].isna() & (has_steps if field == "steps" else ~has_steps)]
    return tuple(length for length in _values(chosen[field]) if length)


# ---- comparisons ----


@needs_rows
def check_like_hardware(audited: Audited) -> Observations:
    """Rule 4: rows that are compared ran on the same model of GPU (or CPU)."""
    for table in audited.tables:
        if len(names := _values(table.runs["machine"])) > 1:
            yield _broken("unlike-hardware", table=table.name, machines=names)
    ok = audited.ok
    unknown = ok[ok["machine"].isna()]
    if len(unknown):
        yield _unclear("unknown-hardware", rows=_share(unknown, ok))
    yield _kept("like-hardware", machines=_values(ok["machine"]))
    if caps := _values(ok["gpu_mem_cap_mib"]):
        yield _kept("cap", caps=caps)


@needs_rows
def check_strong_or_weak(audited: Audited) -> Observations:
    """Rule 11: where the number of devices varies, rows share their global batch or their batch a device."""
    varying = [table for table in audited.tables if len(set(_count_devices(table.comparable))) > 1]
    for table in varying:
        if table.comparisons.empty:
            yield _broken("neither-strong-nor-weak", table=table.name)
            continue
        neither = (~table.comparable.index.isin(table.comparisons["row"])).sum()
        kinds = _values(table.comparisons["kind"])
        yield _kept("strong-or-weak", table=table.name, kinds=kinds, neither=int(neither))
    if not varying:
        is_of_jobs = any(len(set(_count_devices(table.alone))) > 1 for table in audited.tables)
        yield _kept("devices-of-jobs" if is_of_jobs else "same-devices")


@needs_rows
def check_nothing_flattered(audited: Audited) -> Observations:
    """Rule 12: all that was planned is there, with the baselines that a reader would want."""
    statuses = Counter(audited.rows["status"])
    endings = {status: statuses[status] for status in UNENDED if statuses[status]}
    if endings:
        yield _broken("unended", trials=sum(endings.values()), endings=endings)
    yield from _check_further_rounds(audited.folder)
    for table in audited.tables:
        for field in SOFTWARE:
            if len(versions := tuple(table.runs[field].dropna().unique())) > 1:
                yield _broken("unlike-versions", table=table.name, field=field, versions=versions)
        yield from _check_breakdowns(table)
    yield from _check_dp(audited)
    for table in audited.tables:
        yield from _check_single(table, audited.alone)
    yield from _check_doubts(audited)
    planned = {stored.plan.experiment.name for stored in audited.folder.plans}
    unplanned = tuple(table.name for table in audited.tables if table.table.experiment not in planned)
    if unplanned:
        yield _unclear("unplanned", tables=unplanned)
    yield _kept("all-shown", rows=_share(audited.rows, audited.rows))
    if parts := dict.fromkeys(str(part) for stored in audited.folder.plans for part in stored.parts):
        yield _kept("parts", parts=tuple(parts))
    for status in ("oom", "skipped"):
        if statuses[status]:
            yield _kept(status, trials=statuses[status])


def _check_further_rounds(folder: Folder) -> Observations:
    """What further rounds lack of what was planned."""
    further = status_by(Results(folder.path), list(folder.attempts), list(folder.plans)).rounds
    done, failed, left = (
        sum(getattr(each, name) for each in further if each.number > 1) for name in ("done", "failed", "left")
    )
    if failed + left:
        yield _broken(
            "rounds-lack", rows=Share(failed + left, done + failed + left), failed=failed, left=left
        )


def _check_breakdowns(table: AuditedTable) -> Observations:
    """Rows that bear the breakdown's cost beside rows that don't, or beside such as bear less of it.

    Where one side has a row for every row of the other side, it can be read without the other.
    """
    rows, pairs = table.comparable, table.comparisons
    has_breakdown = rows["breakdown"].fillna(False).to_numpy(dtype=bool)
    codes = Fields.of(rows).codes
    work = combine(len(rows), [codes[name] for name in (*CANDIDATES, "machine") if name != "breakdown"])
    timed, untimed = set(work[has_breakdown]), set(work[~has_breakdown])
    if timed - untimed and untimed - timed:
        yield _broken("unlike-breakdowns", table=table.name, rows=_share(rows[has_breakdown], rows))
    pairs = pairs[pairs["row"] != pairs["baseline"]]
    cost = rows["breakdown_cost_pct"].astype("float64")
    mine, others = (cost.loc[pairs[side]].to_numpy() for side in ("row", "baseline"))
    apart = np.abs(mine - others)
    if (is_unlike := apart > UNLIKE_COST_PCT).any():
        worst = int(np.nanargmax(apart))
        row, baseline = (int(pairs[side].iloc[worst]) for side in ("row", "baseline"))
        yield _broken(
            "unlike-costs", table=table.name, rows=Share(int(is_unlike.sum()), len(pairs)),
            cost=mine[worst], baseline_cost=others[worst],
            row=table.describe(row), baseline=table.describe(baseline),
        )  # fmt: skip
    sides = rows.index.isin([*pairs["row"], *pairs["baseline"]])
    if (sides & has_breakdown & cost.isna().to_numpy()).any():
        yield _unclear("unknown-costs", table=table.name)


def _check_dp(audited: Audited) -> Observations:
    """Models of which some workload ran on several GPUs under DataParallel and nothing else."""
    rows = audited.alone
    several = rows[(_count_devices(rows) > 1) & (rows["device"] != "cpu").to_numpy()]
    is_dp = (several["strategy"] == "dp").to_numpy()
    alike = find_likeness(several)
    lonely = several[is_dp & ~np.isin(alike, alike[~is_dp])]
    if not len(lonely):
        return
    is_guess = all(is_inferred(rows[rows["strategy"] == "dp"], "strategy"))
    models = tuple(lonely["model"].astype(str).unique())
    yield _unclear("dp-inferred", models=models) if is_guess else _broken("dp-alone", models=models)


def _check_single(table: AuditedTable, alone: Runs) -> Observations:
    """Rows on several devices whose work no row on one device does.

    Only a table that varies the devices claims what several of them bring.
    """
    devices = _count_devices(table.comparable)
    several, single = table.comparable[devices > 1], alone[_count_devices(alone) == 1]
    if not len(several):
        return
    both = pd.concat([several[list(LIKENESS)], single[list(LIKENESS)]], ignore_index=True)
    alike = find_likeness(both, tied=table.tied(*SCALED))
    bare = several[~np.isin(alike[: len(several)], alike[len(several) :])]
    if len(bare):
        flag = "--ranks" if bare["device"].iloc[0] == "cpu" else "--gpus"
        verdict: RuleVerdict = "broken" if len(set(devices)) > 1 else "not decidable"
        figures = {"table": table.name, "rows": _share(bare, several), "flag": flag}
        yield Observation(verdict, "no-single", figures)


def find_likeness(rows: pd.DataFrame, tied: Collection[str] = ()) -> Codes:
    """Equal in rows of one machine that differ in nothing but SCALED and what may move along these.

    `tied`: the fields that the experiment put on one axis with those; without, only the learning rate and the length of
    training move with the batch size, and GPU ids, strategy and loaders left to the machine with the devices.
    """
    fields = Fields.of(rows)
    may_move = {*tied, *MOVES["batch_size"], *DEVICES}
    free = set(SCALED).union(*(movable(axis, may_move) for axis in SCALED))
    told = [fields.told_apart(name, free) for name in CANDIDATES if name not in free]
    return combine(len(rows), [*told, fields.codes["machine"]])


def is_inferred(runs: Runs, field: str) -> list[bool]:
    """Whether each record calls this field a guess at what a published log left out."""
    return [field in str(texts.get("inferred", "")) for texts in runs["doubt_texts"]]


def _check_doubts(audited: Audited) -> Observations:
    """Doubts about rows that stand beside others, whatever varies between them: the worst, and where."""
    tables = [table for table in audited.tables if len(table.beside) > 1]
    doubts = [
        (rank(code), code, table, int(label))
        for table in tables
        for label, codes in table.beside["doubts"].items()
        for code in split_codes(codes)
        if doubt_of(code).serious
    ]
    if not doubts:
        return
    doubts.sort(key=lambda doubt: doubt[:2])
    _, worst, table, row = doubts[0]
    compared = pd.concat([each.beside for each in tables])
    doubtful = compared[compared.index.isin([label for *_, label in doubts])]
    others = tuple(dict.fromkeys(code for _, code, *_ in doubts if code != worst))
    yield _unclear(
        "doubts-and-others" if others else "doubts", rows=_share(_list_once(doubtful), _list_once(compared)),
        worst=worst, table=table.name, row=table.describe(row), others=others,
    )  # fmt: skip


def _list_once(rows: Summary) -> Summary:
    """Rows of several tables, each trial on each allocation once."""
    return rows.drop_duplicates(["trial_id", "machine", "allowance"])


# ---- the work that was timed ----


@needs_rows
def check_whole_epochs(audited: Audited) -> Observations:
    """Rule 5: whole epochs over all images, with every part of training in them."""
    ok = audited.ok
    is_part = ok["epoch_time_source"] == "extrapolated"
    again = audited.runs.loc[~audited.runs["has_all_figures"], "key"]  # as versions before 0.2 measured
    is_window = ok["key"].isin(again) & ~is_part
    whole = pd.Series([known and known.train_images for known in ok["images"]], ok.index, dtype="float64")
    used = ok["train_images"].astype("float64")
    subset = ok[(used > 0) & (used < whole)]
    is_silent = ~(ok["images_per_epoch"].fillna(0) > 0)
    if is_part.any():
        yield _broken("extrapolated", rows=_share(ok[is_part], ok))
    if is_window.any():
        yield _broken("windows-of-steps", rows=_share(ok[is_window], ok))
    if len(subset):
        first = subset.index[0]
        yield _broken("subset", rows=_share(subset, ok), used=int(used[first]), whole=int(whole[first]))
    if is_silent.any():
        yield _unclear("unknown-images", rows=_share(ok[is_silent], ok))
    rates = ok[ok["kind"] == "steady rate"]
    for code, mine in (("rates", rates), ("epochs", ok.drop(rates.index))):
        if len(mine):
            yield _kept(f"whole-{code}", rows=_share(mine, ok), images=_values(mine["images_per_epoch"]))


@needs_rows
def check_input_included(audited: Audited) -> Observations:
    """Rule 6: images are read, decoded and transformed within the time; what leaves that out stands beside it."""
    ok = audited.ok
    files = ok["image_files"].where([not guess for guess in is_inferred(ok, "variant")])
    codes = Fields.of(ok).codes
    work = combine(len(ok), [codes[name] for name in CANDIDATES if name not in FEEDING])
    is_resident = (files == "none").to_numpy()
    is_loaded = files.notna().to_numpy() & ~is_resident
    lonely = ok[is_resident & ~np.isin(work, work[is_loaded])]
    if len(lonely):
        yield _broken("resident-alone", rows=_share(lonely, ok))
    if files.isna().any():
        yield _unclear("unknown-feeding", rows=_share(ok[files.isna()], ok))
    yield _kept("input-included", rows=_share(ok[is_loaded], ok))
    if is_resident.any():
        yield _kept("resident-beside", rows=_share(ok[is_resident], ok))
    if (is_decoded := files.isin(["decoded", "memory"])).any():
        yield _kept("decoded", rows=_share(ok[is_decoded], ok))
    if foreign := _values(set(ok["source"].dropna()) - {"measured"}):
        yield _kept("as-told", sources=foreign)


@needs_rows
def check_time_to_solution(audited: Audited) -> Observations:
    """Rule 7: times to a solution, not rates of operations. One that was never reached has no time."""
    ok = audited.ok
    rates = ok[ok["epoch_time_s"].isna() & ok["images_per_s"].notna()]
    reached, aimed = ok[ok["time_to_top1_s"].notna()], ok[ok["until_top1"].notna()]
    if len(rates):
        yield _broken("rate-without-time", rows=_share(rates, ok))
    if not len(reached):
        yield _unclear("none-reached", aimed=len(aimed)) if len(aimed) else _unclear("epoch-times-only")
    elif len(reached) < len(aimed) or len(aimed) < len(audited.alone):
        yield _unclear("some-reached", rows=_share(reached, ok))
        if missed := len(aimed) - len(reached):
            yield _unclear("some-missed", missed=missed)
    yield _kept("times-to-accuracy", rows=_share(reached, ok))


@needs_rows
def check_sensible_sizes(audited: Audited) -> Observations:
    """Rule 9: images are not blown up, and a batch is a small part of the epoch.

    The tool's own images are drawn in any number and of any size, and stand for photographs: a usual side is not blown
    up of them, and of a rate over them nobody takes the length of an epoch for that of a training.
    """
    ok = audited.ok
    is_procedural = ok["data"].astype(str).str.partition(":")[0] == PROCEDURAL
    side = ok["input_size"].astype("float64")
    native = pd.Series([known and known.size for known in ok["images"]], ok.index, dtype="float64")
    is_known = native.notna() | (side <= USUAL_PX)
    blown = ok[(side >= ENLARGED * native) & ~(is_procedural & (side <= USUAL_PX))]
    steps = (ok["images_per_epoch"].astype("float64") / ok["batch_size"].astype("float64")).replace(0, np.nan)
    is_unit = is_procedural & (ok["kind"] == "steady rate")
    few = ok[(steps < FEW_STEPS) & ~is_unit]
    if len(blown):
        first = blown.index[0]
        yield _broken(
            "blown-up", rows=_share(blown, ok), sides=_values(blown["input_size"]), native=int(native[first])
        )
    if len(few):
        most = few["batch_size"].astype("int64").idxmax()
        batch = int(few["batch_size"][most])
        yield _broken("few-steps", rows=_share(few, ok), few=FEW_STEPS, batch=batch, steps=round(steps[most]))
    if not (is_known & side.notna()).all():
        yield _unclear("unknown-size", rows=_share(ok[~is_known | side.isna()], ok))
    if steps.isna().any():
        yield _unclear("unknown-steps", rows=_share(ok[steps.isna()], ok))
    yield _kept("sensible-sides", sides=_values(ok["input_size"]))
    if not is_unit.all():
        least = steps[~is_unit].min()
        yield _kept("steps", steps=None if math.isnan(least) else round(least))


# ---- uncertainty ----


def check_uncertainty(audited: Audited) -> Observations:
    """Rule 13: every time is of several processes, with an interval over them, and so is what is concluded.

    Processes of one configuration differ, and nothing that one of them saw tells by how much. Two have an interval, and
    one so wide that next to nothing can be concluded. How many processes a figure from elsewhere is of, nobody knows.
    """
    beside = pd.concat([table.beside for table in audited.tables]) if audited.tables else audited.ok
    rows = _list_once(beside[beside["epoch_time_s"].notna()])
    if not len(rows):
        yield _unclear("nothing-ok")
        return
    timed = audited.folder.members.query("is_ok")
    timed = timed[audited.folder.runs["epoch_time_s"].loc[timed["run"]].notna().to_numpy()]
    processes = timed["row"].value_counts().reindex(rows.index, fill_value=0)
    is_own = rows["source"].isna() | (rows["source"] == "measured")
    single, two = rows[is_own & (processes < 2)], rows[is_own & (processes == 2)]
    if len(single):
        compared = {row for table in audited.tables if len(table.beside) > 1 for row in table.beside.index}
        code = "one-process-beside" if compared & set(single.index) else "one-process"
        yield _broken(code, rows=_share(single, rows), fewest=FEWEST_TIMES)
    if len(two):
        yield _unclear("two-processes", rows=_share(two, rows), fewest=FEWEST_TIMES)
    if not is_own.all():
        yield _unclear("unknown-processes", rows=_share(rows[~is_own], rows))
    fewest = int(processes[is_own].min()) if is_own.any() else 0
    yield _kept("intervals", rows=_share(rows, rows), processes=fewest)


RULES: tuple[Callable[[Audited], Observations], ...] = (
    check_accuracy_while_scaling,
    check_accuracy_reported,
    check_runs_kept,
    check_like_hardware,
    check_whole_epochs,
    check_input_included,
    check_time_to_solution,
    check_same_run,
    check_sensible_sizes,
    check_ended_by_epochs,
    check_strong_or_weak,
    check_nothing_flattered,
    check_uncertainty,
)
"""In the order of T. Hoefler's list; the last is of T. Hoefler and R. Belli."""
