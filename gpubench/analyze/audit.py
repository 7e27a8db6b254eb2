"""How honest a results folder is: T. Hoefler's twelve ways to make deep-learning performance look good (2018), each
turned into a rule that figures can keep or break, and one more on uncertainty (T. Hoefler and R. Belli, 2015).

A rule is a function from what was read to what it observes; an observation that breaks it outweighs one that leaves it
undecidable, which outweighs one that it is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder, Table, make_table_rows
from gpubench.analyze.frames import Runs, Summary
from gpubench.analyze.grid import split_doubt_codes, to_python_value
from gpubench.analyze.series import (
    CANDIDATES,
    DEVICES,
    MAY_MOVE_ALONG,
    EncodedFields,
    Mask,
    combine_codes,
    count_devices,
    encode_values,
    find_movable_fields,
    find_tied_fields,
    list_asked_fields,
)
from gpubench.analyze.top1 import MARGIN, collect_top1_by_seed
from gpubench.core.claims import Claim
from gpubench.plan.groups import MOST_JOBS
from gpubench.results.counting import list_superseded_records
from gpubench.results.file_names import AttemptFile, parse_file_name
from gpubench.results.packed import list_files_and_members
from gpubench.results.status import make_status
from gpubench.results.store import Results
from gpubench.schema.catalog import LOADS, PROCEDURAL
from gpubench.schema.doubts import find_doubt, rank_doubt
from gpubench.schema.epoch_times import FEWEST_TIMES
from gpubench.schema.trial import derive_job_ids
from gpubench.schema.trial_fields import select_fields
from gpubench.stats.decisions import decide_claims
from gpubench.stats.estimates import FEWEST_SEEDS, estimate_top1_difference
from gpubench.store.work_claims import list_claims

RuleVerdict = Literal["kept", "broken", "not decidable"]
VERDICTS: tuple[RuleVerdict, ...] = ("kept", "broken", "not decidable")
SCALED = ("gpus", "ranks", "batch_size")
"""Axes along which rows of one workload may be compared."""
SCALES = frozenset({*SCALED, "batch_per_gpu", "gpu_ids"})
"""Fields in which rows are scaled."""
FEEDING = frozenset({*select_fields(lambda about: about.feeds), "lr"})
"""Fields that rows may differ in which show what reading the images takes. The learning rate takes no time."""
BAD_ENDINGS = ("failed", "timeout", "interrupted", "missing")
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
WORKLOAD_COLUMNS = [*CANDIDATES, "machine", "group", "is_asked_known", "is_gpu_ids_auto", "is_workers_auto"]
"""Columns that tell whether rows are of one workload."""
ANY_ROW = {"count": 1}
"""Of what is observed of no rows in particular."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing that the data show."""

    verdict: RuleVerdict
    """What the rule comes to by this alone."""
    code: str
    """A key of `render.audit.SENTENCES`."""
    figures: Mapping[str, Any]
    """What the sentence names: numbers, texts, values (tuples), and `rows`, so many of so many."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one rule finds."""

    number: int
    """From 1: a key of `render.audit.RULES`."""
    verdict: RuleVerdict
    observations: tuple[Observation, ...]
    """Those that the verdict rests on."""


Observations: TypeAlias = Iterator[Observation]


# ---- what the rules look at ----


@dataclass(frozen=True, kw_only=True)
class AuditedTable:
    """The rows of one table that ended ok."""

    table: Table
    runs: Runs
    ended: Summary
    """Jobs of groups among them."""
    comparable: Summary
    """Those that ran alone and may be meant to be compared with each other.

    Where no axis varies batch sizes or devices, a trial that a job of a group is compared with is there for that job
    alone: the jobs of a group differ as they like.
    """


@dataclass(frozen=True, kw_only=True)
class AuditData:
    """What the rules look at. Tries of the largest batch size stand in no table here.

    Rows have two further columns: `key` is equal in those of one trial on one allocation, whatever table and round they
    are of; `devices` counts GPUs, on a CPU ranks.
    """

    folder: Folder
    tables: tuple[AuditedTable, ...]
    rows: Runs
    """Each trial on each allocation once, by its first round; planned ones without a record among them.
    `is_measured_in_part`: a further round measured it by less than the first, as versions before 0.2 did."""
    ok: Runs
    """Those that ended ok."""
    alone: Runs
    """Those of them that shared the machine with no other job."""


def audit_folder(folder: Folder) -> list[RuleFinding]:
    """What each rule finds, in their order: the verdict that weighs most, with all observations that come to it."""
    audited = make_audit_data(folder)
    trainings = select_trainings(audited)
    findings = []
    for number, check in enumerate(RULES, start=1):
        if check is not check_runs_kept and not len(audited.ok):
            observations = [observe("not decidable", "nothing-ok")]
        elif check in ABOUT_TRAININGS and not len(trainings.ok):
            observations = [observe("not decidable", "no-trainings")]
        elif check in ABOUT_ROWS_ALONE and not len(trainings.alone):
            observations = [observe("not decidable", "none-alone")]
        else:  # what is of no row was not observed
            rows = trainings if check in ABOUT_TRAININGS else audited
            observations = [seen for seen in check(rows) if seen.figures.get("rows", ANY_ROW)["count"]]
        verdict = max((seen.verdict for seen in observations), key=("kept", "not decidable", "broken").index)
        findings.append(
            RuleFinding(number, verdict, tuple(seen for seen in observations if seen.verdict == verdict))
        )
    return findings


def make_audit_data(folder: Folder) -> AuditData:
    """What the rules need of a folder."""
    runs, summary = map(_add_key_and_devices, (folder.runs[~folder.runs["elsewhere"]], folder.summary))
    runs["round"] = runs["round"].fillna(1)
    in_part = runs.loc[(runs["status"] == "ok") & ~runs["has_all_figures"], "key"]
    runs["is_measured_in_part"] = runs["key"].isin(in_part)
    tables = []
    for table in (table for table in folder.tables if not table.is_of_tries):
        runs_of_table = runs[runs.index.isin(table.runs)]
        ended = summary.loc[table.rows[0] : table.rows[-1]]
        ended = ended[ended["repeats"] > 0]
        comparable = ended[ended["group"].isna()]
        if not SCALES & set(list_asked_fields(table.axes)):
            comparable = comparable[~comparable["trial_id"].isin(runs_of_table["solo_id"].dropna())]
        ok = runs_of_table[runs_of_table["status"] == "ok"]
        tables.append(AuditedTable(table=table, runs=ok, ended=ended, comparable=comparable))
    shown = runs[runs.index.isin({label for audited in tables for label in audited.table.runs})]
    rows = shown.sort_values("round", kind="stable").drop_duplicates("key").sort_index()
    ok = rows[rows["status"] == "ok"]
    return AuditData(folder=folder, tables=tuple(tables), rows=rows, ok=ok, alone=ok[ok["group"].isna()])


def select_trainings(audited: AuditData) -> AuditData:
    """The same without known loads and users' own commands: of what these train nothing is known."""

    def select(rows: pd.DataFrame) -> Any:
        return rows[rows["command"].isna() & ~rows["model"].isin(LOADS)]

    tables = [
        replace(
            table, runs=select(table.runs), ended=select(table.ended), comparable=select(table.comparable)
        )
        for table in audited.tables
    ]
    rows, ok, alone = map(select, (audited.rows, audited.ok, audited.alone))
    return replace(audited, tables=tuple(tables), rows=rows, ok=ok, alone=alone)


def _add_key_and_devices(rows: pd.DataFrame) -> pd.DataFrame:
    codes = [encode_values(rows[name]) for name in ("trial_id", "machine", "allowance")]
    return rows.assign(key=combine_codes(len(rows), codes), devices=count_devices(rows).astype("int64"))


def observe(verdict: RuleVerdict, code: str, **figures: Any) -> Observation:
    """What the data show. `figures`: what its sentence names."""
    return Observation(verdict, code, figures)


def observe_rows(
    verdict: RuleVerdict, code: str, rows: Any, whole: int | None = None, **figures: Any
) -> Observation:
    """What so many of `whole` rows show, or those that a mask of all rows marks."""
    share = {"count": int(np.sum(rows)), "whole": len(rows) if whole is None else whole}
    return observe(verdict, code, rows=share, **figures)


def list_known_values(column: Iterable[Any]) -> tuple[Any, ...]:
    """What is known of a column, each value once, in order."""
    return tuple(sorted({to_python_value(value) for value in column} - {None}))


# ---- accuracy ----


def check_accuracy_while_scaling(audited: AuditData) -> Observations:
    """Rule 1: a larger batch or more devices cost no top-1, by tests that know how far seeds differ.

    Each row is compared with the one that its table sets it against: a smaller batch, else fewer devices. Kept where
    each falls by less than MARGIN: an equivalence test towards one side, for more top-1 is no loss; all must pass, so
    it needs no correction. Broken where the mean top-1 differs and is lower (corrected by Holm for all rows), but for a
    fall that was shown to be less than MARGIN.
    """
    steps = unknown = few = 0
    has_learned = True
    claims: list[Claim] = []
    for table in audited.tables:
        rows, seeds = table.comparable, collect_top1_by_seed(make_table_rows(audited.folder, table.table))
        names = [*(["before"] if table.table.axis in SCALES else []), "strong_baseline", "weak_baseline"]
        baselines = rows[names].bfill(axis="columns").iloc[:, 0]
        baselines = baselines[baselines.isin(rows.index) & (baselines != rows.index)].astype("int64")
        for row, before in baselines.items():
            steps += 1
            sides = rows.loc[[row, before]]
            if sides["time_to_top1_s"].notna().all() and sides["until_top1"].nunique() == 1:
                continue  # both trained until they reached one and the same top-1
            if row not in seeds or before not in seeds:
                unknown += 1
                continue
            has_learned &= _has_learned(sides)
            if min(len(seeds[row]), len(seeds[before])) < FEWEST_SEEDS:
                few += 1
                continue
            images = to_python_value(sides["val_images"].min())
            evidence = estimate_top1_difference(seeds[row], seeds[before], images=images)
            claims.append(
                Claim(metric="top1_pct", candidate=row, baseline=before, design="paired", evidence=evidence)
            )
    if not steps:
        sizes = [table.comparable[["batch_size", "devices"]].drop_duplicates() for table in audited.tables]
        if any(len(different) > 1 for different in sizes):
            yield observe("not decidable", "scaled-with-others")
        else:
            yield observe("kept", "nothing-scaled")
        return
    holds = decide_claims([replace(claim, design="above", limit=-MARGIN) for claim in claims])
    losing = [
        claim for claim, hold in zip(decide_claims(claims), holds, strict=True) if hold.decided.word != "sure"
    ]
    lost = [c for c in losing if c.decided.word == "sure" and c.decided.direction == "less"]
    if lost:
        worst = min(lost, key=lambda claim: claim.evidence.center)
        ends = worst.evidence.center, worst.decided.high, worst.decided.low
        fall, low, high = (-(end or 0.0) for end in ends)
        yield observe_rows("broken", "top1-falls", len(lost), steps, fall=fall, low=low, high=high)
    yield observe_rows("not decidable", "no-top1-to-compare", unknown, steps)
    yield observe_rows("not decidable", "few-seeds", few, steps, seeds=FEWEST_SEEDS)
    yield observe_rows("not decidable", "seeds-differ", len(losing) - len(lost), steps, margin=MARGIN)
    if not has_learned:
        yield observe("not decidable", "unlearned")
    yield observe_rows("kept", "top1-holds", steps, steps, margin=MARGIN)


def _has_learned(sides: pd.DataFrame) -> bool:
    """Whether top-1 of any of these rows lies above chance, as far as that can be told."""
    classes, images, top1 = (
        sides[name].astype("float64") for name in ("num_classes", "val_images", "top1_pct")
    )
    chance = 1 / classes
    return not (top1 <= 100 * (chance + 2 * np.sqrt(chance * (1 - chance) / images))).all()


def check_accuracy_reported(audited: AuditData) -> Observations:
    """Rule 2: every row that ran alone has a top-1 on held-out images. A steady rate judges no network."""
    alone = audited.alone
    is_rate = alone["kind"] == "steady rate"
    lacks = ~is_rate & alone["top1_pct"].isna()
    reasons = dict.fromkeys(missing.get("top1_pct") for missing in alone.loc[lacks, "missing"])
    yield observe_rows("broken", "no-top1", lacks, why=tuple(reasons))
    yield observe_rows("not decidable", "rates-alone", is_rate)
    yield observe_rows("kept", "top1", ~lacks, images=list_known_values(alone["val_images"]))


def check_same_run_accuracy(audited: AuditData) -> Observations:
    """Rule 8: speed and accuracy of a row come from one run with one set of options."""
    is_timed, is_judged = (audited.alone[name].notna() for name in ("epoch_time_s", "top1_pct"))
    if not is_timed.any():
        yield observe("not decidable", "untimed")
    if (is_timed & ~is_judged).any() and (~is_timed & is_judged).any():
        yield observe("broken", "apart")
    yield observe_rows("not decidable", "time-without-top1", ~is_judged[is_timed])
    yield observe_rows("kept", "one-run", is_judged[is_timed])


# ---- runs ----


def check_runs_kept(audited: AuditData) -> Observations:
    """Rule 3: every attempt is stored.

    An attempt gets the number after the highest that is there, so one whose record is stored shows that there was
    something under the number before. A log, samples or a damaged file show only what their names say: that an attempt
    was begun. A claim says whether an attempt was stored for it.
    """
    folder, records = audited.folder, audited.folder.attempts
    results = Results(folder.path)
    stored = {AttemptFile(record.trial_id, record.attempt_name) for record in records}
    files = (path for kind in ("logs", "samples") for path in list_files_and_members(folder.path, kind))
    begun = {name for path in files if (name := parse_file_name(path))}
    damaged = results.find_damaged_attempts(records)
    of_damaged = {
        AttemptFile(trial, file.attempt_name)
        for file in damaged
        for trial in list_possible_trial_ids(file.unit_id)
    }

    def count(files: Iterable[AttemptFile]) -> set[tuple[str, str, int]]:
        """Trial, folder and number: each folder counts its attempts by itself."""
        return {(file.unit_id, file.folder_id or results.folder_id, file.number) for file in files}

    counted = count(stored)
    before = {(trial, folder_id, number - 1) for trial, folder_id, number in counted if number > 1}
    if gone := before - counted - count(begun | of_damaged):
        attempts = _format_attempt_names((trial, number) for trial, _, number in gone)
        yield observe("broken", "attempts-gone", attempts=attempts)
    known = {record.claim for record in records}
    unreadable = {file.unit_id for file in damaged}
    claims = tuple(
        entry.name
        for entry in list_claims(folder.path)
        if entry.claim.outcome == "stored" and entry.unit_id not in unreadable and entry.name not in known
    )
    if claims:
        yield observe("broken", "records-gone", claims=claims)
    if unread := damaged | (begun - stored - of_damaged):
        attempts = _format_attempt_names((file.unit_id, file.number) for file in unread)
        yield observe("not decidable", "no-record", attempts=attempts)
    if foreign := list_known_values({record.source for record in records} - {"measured"}):
        yield observe("not decidable", "foreign", sources=foreign)
    yield observe("kept", "runs-kept", attempts=len(stored))
    if superseded := list_superseded_records(records):
        kept = [AttemptFile(record.trial_id, record.attempt_name) for record in superseded]
        attempts = _format_attempt_names((file.unit_id, file.number) for file in kept)
        yield observe("kept", "superseded", attempts=attempts)


def list_possible_trial_ids(unit: str) -> list[str]:
    """The ids that its trials can have: of a group, whose record can't be read, of as many jobs as there may be."""
    if unit.startswith("g"):
        return [derive_job_ids("", unit, number)[1] for number in range(MOST_JOBS)]
    return [unit]


def _format_attempt_names(attempts: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    return tuple(f"{unit}-{number}" for unit, number in sorted(set(attempts)))


def check_ended_by_epochs(audited: AuditData) -> Observations:
    """Rule 10: training ends after so many epochs, fixed beforehand, or at an accuracy; not by the clock."""
    for table in audited.tables:
        # A job of a group trains as long as what it is compared with; another job may train longer.
        rows, axes = table.comparable, table.table.axes
        has_steps = rows["steps"].fillna(0) > 0
        for field, is_meant in (("epochs", ~has_steps), ("steps", has_steps)):
            is_meant &= rows["until_top1"].isna() & (rows[field] > 0)
            lengths = list_known_values(rows.loc[is_meant, field])
            own_axes = [axis for axis in axes if field in axis]
            is_scaled = any(SCALES & set(axis) for axis in own_axes)
            is_free = any(not SCALES & set(axis) for axis in own_axes)
            if len(lengths) > 1 and (is_scaled or not is_free):
                yield observe(
                    "broken", "unlike-lengths", table=table.table.name, lengths=lengths, field=field
                )
    ok = audited.ok
    is_known = (ok["kind"] == "steady rate") | (ok["epochs"].fillna(0) > 0) | (ok["steps"].fillna(0) > 0)
    yield observe_rows("not decidable", "unknown-length", ~is_known)
    yield observe_rows("kept", "ended-as-fixed", is_known)


# ---- comparisons ----


def check_like_hardware(audited: AuditData) -> Observations:
    """Rule 4: rows that are compared ran on the same model of GPU (or CPU)."""
    for table in audited.tables:
        if len(machines := list_known_values(table.runs["machine"])) > 1:
            yield observe("broken", "unlike-hardware", table=table.table.name, machines=machines)
    yield observe_rows("not decidable", "unknown-hardware", audited.ok["machine"].isna())
    yield observe("kept", "like-hardware", machines=list_known_values(audited.ok["machine"]))


def check_strong_or_weak(audited: AuditData) -> Observations:
    """Rule 11: where the number of devices varies, rows share their global batch or their batch a device."""
    yield observe("kept", "devices-compared")
    for table in audited.tables:
        rows = table.comparable
        kinds = tuple(kind for kind in ("strong", "weak") if rows[f"{kind}_baseline"].isin(rows.index).any())
        if kinds:
            yield observe("kept", "strong-or-weak", table=table.table.name, kinds=kinds)
        elif rows["devices"].nunique() > 1:
            yield observe("broken", "neither-strong-nor-weak", table=table.table.name)


def check_no_trials_left_out(audited: AuditData) -> Observations:
    """Rule 12: all that was planned is there, with the baselines that a reader would want."""
    statuses = Counter(audited.rows["status"])
    for status in BAD_ENDINGS:
        if statuses[status]:
            yield observe("broken", "unended", trials=statuses[status], status=status)
    folder = audited.folder
    rounds = make_status(Results(folder.path), folder.attempts, folder.plans).rounds
    if lacking := sum(counts.failed + counts.remaining for counts in rounds if counts.number > 1):
        yield observe("broken", "rounds-lack", measurements=lacking)
    for table in audited.tables:
        for field in SOFTWARE:
            if len(versions := list_known_values(table.runs[field])) > 1:
                yield observe(
                    "broken", "unlike-versions", table=table.table.name, field=field, versions=versions
                )
        yield from _check_like_breakdowns(table)
        yield _check_single_device_baselines(table, audited.alone)
    several = audited.alone[(audited.alone["devices"] > 1) & (audited.alone["device"] != "cpu")]
    is_dp = several["strategy"] == "dp"
    if models := tuple(sorted(set(several["model"][is_dp]) - set(several["model"][~is_dp]))):
        if is_field_inferred(several[is_dp], "strategy").all():
            yield observe("not decidable", "dp-inferred", models=models)
        else:
            yield observe("broken", "dp-alone", models=models)
    yield from _check_doubts(audited)
    planned = {stored.plan.experiment.name for stored in folder.plans}
    if unplanned := [table.table.name for table in audited.tables if table.table.experiment not in planned]:
        yield observe("not decidable", "unplanned", tables=tuple(unplanned))
    yield observe(
        "kept", "all-shown", trials=len(audited.rows), oom=statuses["oom"], skipped=statuses["skipped"]
    )


def _check_like_breakdowns(table: AuditedTable) -> Observations:
    """Rows that bear the breakdown's cost beside rows that don't, or beside such as bear less of it.

    Where one side has a row for every row of the other side, it can be read without the other.
    """
    rows, name = table.comparable, table.table.name
    is_timed = rows["breakdown"].fillna(False).to_numpy(dtype=bool)
    codes = EncodedFields.from_frame(rows).codes
    work = combine_codes(len(rows), [codes[name] for name in (*CANDIDATES, "machine") if name != "breakdown"])
    timed, untimed = set(work[is_timed]), set(work[~is_timed])
    if timed - untimed and untimed - timed:
        yield observe_rows("broken", "unlike-breakdowns", is_timed, table=name)
    baselines = pd.concat([rows["strong_baseline"], rows["weak_baseline"]]).dropna()
    baselines = baselines[baselines.isin(rows.index)]
    cost = rows["breakdown_cost_pct"].astype("float64")
    apart = np.abs(cost[baselines.index].to_numpy() - cost[baselines].to_numpy())
    if (apart > UNLIKE_COST_PCT).any():
        yield observe("broken", "unlike-costs", table=name, points=float(np.nanmax(apart)))


def _check_single_device_baselines(table: AuditedTable, alone: Runs) -> Observation:
    """Rows on several devices whose work no row of one machine does on one device.

    Only a table that varies the devices claims what several of them bring. Batch size and devices may differ, and what
    may move along them where the experiment put it on one axis with them; without axes the learning rate and the length
    of training move with the batch size, and GPU ids, strategy and loaders left to the machine with the devices.
    """
    rows = table.comparable
    several, single = rows[rows["devices"] > 1], alone[alone["devices"] == 1]
    both = pd.concat([side[WORKLOAD_COLUMNS] for side in (several, single)], ignore_index=True)
    fields = EncodedFields.from_frame(both)
    may_move = {*find_tied_fields(table.table.axes, *SCALED), *MAY_MOVE_ALONG["batch_size"], *DEVICES}
    free = set(SCALED).union(*(find_movable_fields(axis, may_move) for axis in SCALED))
    compared = [fields.encode_workload_field(name, free) for name in CANDIDATES if name not in free]
    alike = combine_codes(len(both), [*compared, fields.codes["machine"]])
    lacks_single = ~np.isin(alike[: len(several)], alike[len(several) :])
    verdict: RuleVerdict = "broken" if rows["devices"].nunique() > 1 else "not decidable"
    return observe_rows(verdict, "no-single", lacks_single, table=table.table.name)


def is_field_inferred(runs: Runs, field: str) -> Mask:
    """Whether each record calls this field a guess at what a published log left out."""
    return np.array([field in str(texts.get("inferred", "")) for texts in runs["doubt_texts"]], dtype=bool)


def _check_doubts(audited: AuditData) -> Observations:
    """Doubts about rows that stand beside others, whatever varies between them, and the worst of them."""
    if tables := [table.ended for table in audited.tables if len(table.ended) > 1]:
        rows = pd.concat(tables)
        rows = rows.assign(code=rows["doubts"].map(split_doubt_codes)).explode("code")
        doubted = rows[rows["code"].map(lambda code: isinstance(code, str) and find_doubt(code).serious)]
        worst = min(doubted["code"], key=rank_doubt, default=None)
        yield observe_rows(
            "not decidable", "doubts", doubted["key"].nunique(), rows["key"].nunique(), worst=worst
        )


# ---- the work that was timed ----


def check_whole_epochs(audited: AuditData) -> Observations:
    """Rule 5: whole epochs over all images, with every part of training in them."""
    ok = audited.ok
    is_extrapolated = ok["epoch_time_source"] == "extrapolated"
    used, whole = ok["train_images"].astype("float64"), _collect_image_facts(ok, "train_images")
    is_known = ok["images_per_epoch"].fillna(0) > 0
    yield observe_rows("broken", "extrapolated", is_extrapolated)
    yield observe_rows("broken", "windows-of-steps", ok["is_measured_in_part"] & ~is_extrapolated)
    yield observe_rows("broken", "subset", (used > 0) & (used < whole))
    yield observe_rows("not decidable", "unknown-images", ~is_known)
    yield observe_rows("kept", "whole-epochs", is_known, images=list_known_values(ok["images_per_epoch"]))


def _collect_image_facts(runs: Runs, name: str) -> pd.Series[float]:
    facts = [known and getattr(known, name) for known in runs["images"]]
    return pd.Series(facts, runs.index, dtype="float64")


def check_input_included(audited: AuditData) -> Observations:
    """Rule 6: images are read, decoded and transformed within the time; what leaves that out stands beside it."""
    ok = audited.ok
    files = ok["image_files"].mask(is_field_inferred(ok, "variant"))
    codes = EncodedFields.from_frame(ok).codes
    work = combine_codes(len(ok), [codes[name] for name in CANDIDATES if name not in FEEDING])
    is_resident = (files == "none").to_numpy()
    is_loaded = files.notna().to_numpy() & ~is_resident
    yield observe_rows("broken", "resident-alone", is_resident & ~np.isin(work, work[is_loaded]))
    yield observe_rows("not decidable", "unknown-feeding", files.isna())
    yield observe_rows("kept", "input-included", is_loaded)


def check_time_to_solution(audited: AuditData) -> Observations:
    """Rule 7: times to a solution, not rates of operations. One that was never reached has no time."""
    ok = audited.ok
    is_reached, is_aimed = ok["time_to_top1_s"].notna(), ok["until_top1"].notna()
    yield observe_rows("broken", "rate-without-time", ok["epoch_time_s"].isna() & ok["images_per_s"].notna())
    if not is_reached.any():
        yield observe("not decidable", "none-reached" if is_aimed.any() else "epoch-times-only")
    elif is_reached.sum() < is_aimed.sum() or is_aimed.sum() < len(audited.alone):
        yield observe_rows("not decidable", "some-reached", is_reached)
    yield observe_rows("kept", "times-to-accuracy", is_reached)


def check_sensible_sizes(audited: AuditData) -> Observations:
    """Rule 9: images are not blown up, and a batch is a small part of the epoch.

    The tool's own images are drawn in any number and of any size, and stand for photographs: a usual side is not blown
    up of them, and of a rate over them nobody takes the length of an epoch for that of a training.
    """
    ok = audited.ok
    is_procedural = ok["data"].astype(str).str.partition(":")[0] == PROCEDURAL
    side, native = ok["input_size"].astype("float64"), _collect_image_facts(ok, "size")
    is_blown_up = (side >= ENLARGED * native) & ~(is_procedural & (side <= USUAL_PX))
    is_known = side.notna() & (native.notna() | (side <= USUAL_PX))
    steps = (ok["images_per_epoch"].astype("float64") / ok["batch_size"].astype("float64")).replace(0, np.nan)
    is_short = (steps < FEW_STEPS) & ~(is_procedural & (ok["kind"] == "steady rate"))
    sides, natives = (list_known_values(sizes[is_blown_up]) for sizes in (side, native))
    yield observe_rows("broken", "blown-up", is_blown_up, sides=sides, natives=natives)
    yield observe_rows("broken", "few-steps", is_short, few=FEW_STEPS, steps=steps.min())
    yield observe_rows("not decidable", "unknown-size", ~is_known)
    yield observe_rows("not decidable", "unknown-steps", steps.isna())
    yield observe("kept", "sensible-sizes", sides=list_known_values(side), steps=steps.min())


# ---- uncertainty ----


def check_uncertainty(audited: AuditData) -> Observations:
    """Rule 13: every time is of several processes, with an interval over them, and so is what is concluded.

    Processes of one configuration differ, and nothing that one of them saw tells by how much. Two have an interval, and
    one so wide that next to nothing can be concluded. How many processes a figure from elsewhere is of, nobody knows.
    """
    rows = pd.concat([table.ended for table in audited.tables])
    rows = rows[rows["epoch_time_s"].notna()].drop_duplicates("key")
    if not len(rows):
        yield observe("not decidable", "untimed")
        return
    members, times = audited.folder.members, audited.folder.runs["epoch_time_s"]
    is_timed = members["is_ok"] & times.loc[members["run"]].notna().to_numpy()
    processes = members["row"][is_timed].value_counts().reindex(rows.index, fill_value=0)
    is_own = rows["source"].fillna("measured") == "measured"
    yield observe_rows("broken", "one-process", is_own & (processes < 2), fewest=FEWEST_TIMES)
    yield observe_rows("not decidable", "two-processes", is_own & (processes == 2), fewest=FEWEST_TIMES)
    yield observe_rows("not decidable", "unknown-processes", ~is_own)
    yield observe_rows("kept", "intervals", len(rows), len(rows), processes=int(processes.min()))


RULES: tuple[Callable[[AuditData], Observations], ...] = (
    check_accuracy_while_scaling, check_accuracy_reported, check_runs_kept, check_like_hardware, check_whole_epochs,
    check_input_included, check_time_to_solution, check_same_run_accuracy, check_sensible_sizes, check_ended_by_epochs,
    check_strong_or_weak, check_no_trials_left_out, check_uncertainty,
)  # fmt: skip
"""In the order of T. Hoefler's list; the last is of T. Hoefler and R. Belli."""
ABOUT_TRAININGS = (
    check_accuracy_while_scaling, check_accuracy_reported, check_whole_epochs, check_input_included,
    check_same_run_accuracy, check_sensible_sizes, check_ended_by_epochs,
)  # fmt: skip
"""Known loads and users' own commands are not asked for these."""
ABOUT_ROWS_ALONE = (check_accuracy_while_scaling, check_accuracy_reported, check_same_run_accuracy)
