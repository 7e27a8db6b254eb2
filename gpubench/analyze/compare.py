"""What changed between two results folders, or between two values of a field in one, trial by trial.

Of each trial that both sides have: time, CPU time and energy of an image over processes, memory, which is exact, and
top-1 over seeds. Rounds of two folders have nothing in common, and their rows are compared whatever nodes they ran on;
rows of one folder by the rounds that both have.

Rows are of one trial where their trials ask for the same: fields that were left to the machine, ids of devices,
hardware and versions may differ, images are told by their content. Where no row of one side is one of the other, those
fields are set aside in which the sides have no value in common: that is a guess.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder
from gpubench.analyze.grid import list_labelled_rows, split_doubt_codes, to_python_value
from gpubench.analyze.report import describe_machine
from gpubench.analyze.series import (
    AUTO,
    CANDIDATES,
    FOLLOWS,
    OLD_DEFAULTS,
    Codes,
    EncodedFields,
    combine_codes,
    encode_values,
)
from gpubench.analyze.table_rows import Figures, TableRows, estimate_noise_by_row, find_claims_remedy
from gpubench.analyze.top1 import MARGIN as TOP1_MARGIN
from gpubench.analyze.top1 import collect_top1_by_seed
from gpubench.analyze.versus import DERIVED_FIELDS
from gpubench.basics.errors import UsageError
from gpubench.core.claims import Claim, Evidence, StudentEstimate
from gpubench.core.comparison import (
    COSTS,
    DIFFERENCE,
    FIGURES,
    MEMORY_SPREAD,
    REGRESSION,
    SAME_WITHIN,
    ComparedRow,
    ComparedSide,
    Comparison,
    FigureChange,
    FigureName,
    RowPair,
)
from gpubench.schema import catalog
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import GPU_SETTINGS
from gpubench.schema.record import ALLOTTED
from gpubench.schema.trial import make_trial
from gpubench.schema.trial_fields import DEVICE_AXES
from gpubench.stats.decisions import decide_claims
from gpubench.stats.estimates import estimate_top1_difference, mean

HARDWARE = ("gpu_name", "gpu_count", "cpu_name", "cpu_count")
SOFTWARE = ("driver", "cuda", "torch", "gpubench")
LAST_DIGIT = 1e-9
"""Of logarithms of exact figures."""
SOURCES: Mapping[FigureName, str] = {
    "energy": "energy_source",
    "memory": "gpu_mem_source",
    "top1": "val_images",
}
"""Figure -> the column that says of what it is: rows that differ there are not compared."""
PLANNED = ("missing", "skipped")
"""Endings of trials that never ran. They are on no side."""
ATTEMPT = ("trial_id", "round", "started_at", "host", "epoch_time_s")
"""By which an attempt is known again in another folder."""
DEFINITION = "variant_definition"
"""What a variant does: two sides may mean different things by one name."""
LENGTH_FIELDS = ("window", "steps")
"""Fields in which steady rates may differ and still be compared."""
DERIVED_FROM: Mapping[str, tuple[str, ...]] = {**FOLLOWS, "strategy": DEVICE_AXES, DEFINITION: ("variant",)}
"""Field -> those from which it follows where nobody asked for it."""
FREE, LEFT_TO_MACHINE, NO_FILES = "free", "left to the machine", "no files"
"""Stand for what may differ, for what the machine chose, and for the images of a variant that reads none."""


def compare_folders(
    a: Folder, b: Folder, *, figures: Sequence[FigureName] = FIGURES, threshold: float | None = None
) -> Comparison:
    """Folder B against folder A.

    `figures`: those that are compared, chosen before they are seen. `threshold`: 0.05: more than 5 % more time, memory
    or energy is a regression.
    """
    rows = combine_folder_rows([a, b])
    names = str(a.path), str(b.path)
    return compare_matched_rows(rows, match_rows(rows.summary), names, figures, threshold)


def compare_field_values(
    folder: Folder,
    field: str,
    values: tuple[Any, Any],
    *,
    figures: Sequence[FigureName] = FIGURES,
    threshold: float | None = None,
) -> Comparison:
    """The second of two values of a field against the first, inside one folder; what follows from it may differ, too.

    Raises UsageError where no row has one of the values.
    """
    rows = combine_folder_rows([folder])
    column = rows.summary[field]
    is_side = [column.map(lambda known, value=value: known == value).fillna(False) for value in values]
    for value, is_there in zip(values, is_side, strict=True):
        if not is_there.any():
            raise UsageError(f"no row of {folder.path} has {field}={format_cell(value)}")
    summary = rows.summary.assign(is_b=is_side[1])[is_side[0] | is_side[1]]
    rows = replace(rows, summary=summary)
    free = {field}
    variants = [stored.plan.experiment.variants for stored in folder.plans]
    with_images = {name for named in variants for name, variant in named.items() if variant.data is not None}
    if field == "variant" and set(summary["variant"]) & with_images:
        free.add("data")
    matching = match_rows(summary, free)
    return compare_matched_rows(rows, matching, (str(folder.path),) * 2, figures, threshold, field, values)


def combine_folder_rows(folders: Sequence[Folder]) -> TableRows:
    """The rows of folders as those of one table, each once, with `is_b` and the objects of a run of each.

    Labels and rounds of the second folder come behind those of the first, and nobody asks on which node a process was.
    """
    summaries: list[pd.DataFrame] = []
    processes: list[pd.DataFrame] = []
    noise: dict[int, float] = {}
    for place, folder in enumerate(folders):
        behind = place * len(folders[0].summary)
        members = folder.members
        first = members.drop_duplicates("row").set_index("row")["run"]
        summary = folder.summary.assign(run=first, is_b=place == 1)
        summary = summary.join(folder.runs[["asked", "images", DEFINITION]], on="run")
        summary = summary[~summary["status"].isin(PLANNED)]
        # A trial of two experiments is in the tables of both.
        summary = summary.sort_values("repeats", ascending=False, kind="stable").drop_duplicates("run")
        summaries.append(summary.set_axis(summary.index + behind).sort_index())
        processes.append(folder.runs.loc[members["run"]].assign(row=members["row"].to_numpy() + behind))
        noise |= {row + behind: value for row, value in estimate_noise_by_row(folder.summary).items()}
    runs = pd.concat(processes, ignore_index=True)
    runs["attempt"] = combine_codes(len(runs), [encode_values(runs[name]) for name in ATTEMPT])
    if len(folders) > 1:
        first_rounds = folders[0].runs["round"].max()
        runs["round"] += first_rounds * (runs["row"] >= len(folders[0].summary)).astype("int64")
        runs["host"] = None
    return TableRows(summary=pd.concat(summaries), runs=runs, noise=noise)


# ---- which rows are of one trial ----


@dataclass(frozen=True, kw_only=True, slots=True)
class RowMatching:
    """The rows of two sides by label, each in one of the first four."""

    pairs: tuple[RowPair, ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    several: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    """Rows that match each other, of which a side has more than one, on each side."""
    apart: tuple[str, ...] = ()
    """Fields that were set aside; where there is nothing to match all the same, those that keep the sides apart."""


def match_rows(rows: pd.DataFrame, free: Collection[str] = ()) -> RowMatching:
    """The rows of two sides by their trials.

    `rows`: of a summary, with `is_b`, and with `asked`, `images` and `variant_definition` of a run of each. `free`: the
    fields whose values are the sides; what follows from them may differ, too.
    """
    identity = make_trial_identities(rows, free)
    exact = pair_rows(rows, number_matched_trials(rows, identity))
    if exact.pairs or exact.several:
        return exact
    is_b = rows["is_b"].to_numpy(dtype=bool)
    codes = {str(name): encode_values(identity[name]) for name in identity}
    apart = tuple(name for name, values in codes.items() if not np.isin(values[is_b], values[~is_b]).any())
    # Of two networks nobody would guess that they are meant to be one; a user's own may be two versions of one.
    if "model" in apart and not all(map(catalog.is_user_model, map(str, identity["model"]))):
        return replace(exact, apart=apart)
    guess = pair_rows(rows, number_matched_trials(rows, identity.drop(columns=list(apart))))
    return replace(guess, apart=apart)


def make_trial_identities(rows: pd.DataFrame, free: Collection[str] = ()) -> pd.DataFrame:
    """What each row's trial asks for: a column a field, of values that are equal where trials are."""
    columns = {
        field: fill_missing(rows[field], OLD_DEFAULTS.get(field))
        for field in CANDIDATES
        if field != "gpu_ids"  # which GPUs a trial ran on is none of it, only how many
    }
    for field in LENGTH_FIELDS:
        columns[field] = columns[field].mask(rows["kind"] == "steady rate", None)
    for field in ALLOTTED:
        values = columns[field].mask(is_left_to_machine(rows, field), LEFT_TO_MACHINE)
        columns[field] = values.fillna(LEFT_TO_MACHINE)
    fingerprints = rows["images"].map(
        lambda known: known.fingerprint if known and known.files != "none" else None
    )
    if "variant" in free:  # one that reads no image stands beside those that do
        fingerprints = fingerprints.fillna(fingerprints.groupby(rows["data"]).transform("first"))
    columns["data"] = fill_missing(fingerprints).fillna(rows["data"])
    if "variant" not in free:
        columns["data"] = columns["data"].mask(rows["image_files"] == "none", NO_FILES)
    columns[DEFINITION] = fill_missing(rows[DEFINITION].map(_format_definition))
    return pd.DataFrame(
        {field: values.mask(is_free_to_differ(rows, field, free), FREE) for field, values in columns.items()}
    )


def fill_missing(values: pd.Series[Any], default: Any = None) -> pd.Series[Any]:
    """The values as plain objects, `default` in place of missing ones."""
    return values.astype(object).where(values.notna(), default)


def is_left_to_machine(rows: pd.DataFrame, field: str) -> pd.Series[bool]:
    """Whether each trial left a field to the machine, as far as records tell."""
    return rows["asked"].map(lambda fields: bool(fields) and fields.get(field) is None).astype(bool)


def is_free_to_differ(rows: pd.DataFrame, field: str, free: Collection[str]) -> pd.Series[bool]:
    """Whether a row's value of a field may differ: it was asked to, or follows from what was, and nobody asked for it.

    In one folder the images and the other fields fill what is left to the machine; but a CPU never stands in for a GPU.
    """
    if field in free or (field == DEFINITION and "variant" in free):
        return pd.Series(True, index=rows.index)
    follows = set(DERIVED_FROM.get(field, ())) & set(free)
    if not free or field == "device" or not (follows or field in AUTO):
        return pd.Series(False, index=rows.index)
    is_left = is_left_to_machine(rows, field)
    if field not in (*DERIVED_FIELDS, "strategy"):
        return is_left
    is_usual = [
        row.pop(field)
        == getattr(make_trial({name: value for name, value in row.items() if value is not None}), field)
        for _, row in list_labelled_rows(rows[[field, *DERIVED_FROM[field]]])
    ]
    return is_left | np.array(is_usual, dtype=bool)


def number_matched_trials(rows: pd.DataFrame, identity: pd.DataFrame) -> Codes:
    """A number for each row, equal in rows of one trial; of a job of a group: of one job beside the same neighbours."""
    trial = combine_codes(
        len(rows), [encode_values(rows["kind"]), *(encode_values(identity[name]) for name in identity)]
    )
    group = combine_codes(len(rows), [encode_values(rows[name]) for name in ("is_b", "table", "unit")])
    jobs = pd.DataFrame({"trial": trial, "group": group})[rows["group"].notna().to_numpy()]
    neighbours = jobs.groupby("group")["trial"].transform(lambda trials: str(sorted(trials)))
    number = jobs.groupby(["group", "trial"]).cumcount()
    of_jobs = (encode_values(column.reindex(range(len(rows)))) for column in (neighbours, number))
    return combine_codes(len(rows), [trial, *of_jobs])


def pair_rows(rows: pd.DataFrame, trial: Codes) -> RowMatching:
    """Rows of one trial, one a side; of several, those that are the only ones on their machine, or by what it gave."""
    unpaired = rows.assign(trial=trial).sort_values("is_b", kind="stable")
    pairs: list[RowPair] = []
    for names in (["trial"], ["trial", "machine"], ["trial", "machine", *ALLOTTED]):
        place = combine_codes(len(unpaired), [encode_values(unpaired[name]) for name in names])
        is_b = unpaired["is_b"].groupby(place)
        is_pair = (is_b.transform("size") == 2) & (is_b.transform("sum") == 1)
        pairs += ((int(a), int(b)) for a, b in unpaired[is_pair].groupby(place[is_pair]).groups.values())
        unpaired = unpaired[~is_pair]
    sides = [unpaired[unpaired["is_b"] == is_b].groupby("trial", sort=False).groups for is_b in (False, True)]
    a, b = ({place: tuple(map(int, index)) for place, index in groups.items()} for groups in sides)
    return RowMatching(
        pairs=tuple(sorted(pairs)),
        only_a=tuple(row for place, members in a.items() if place not in b for row in members),
        only_b=tuple(row for place, members in b.items() if place not in a for row in members),
        several=tuple((members, b[place]) for place, members in a.items() if place in b),
    )


def _format_definition(definition: Mapping[str, Any] | None) -> str | None:
    """What a variant does as one text, without the images that it names."""
    definitions = {name: value for name, value in (definition or {}).items() if name != "data"}
    return json.dumps(definitions, sort_keys=True, default=str) if definitions else None


# ---- figures ----


def _collect_figures(rows: TableRows) -> dict[FigureName, Figures]:
    """Figures of processes: of an image, or of an epoch where images are not known; memory of rows, top-1 of seeds."""
    ended, summary = rows.ended_processes, rows.summary
    images = ended["images_per_epoch"].astype("float64").fillna(1.0)
    seconds, cpu, energy = (
        ended[name].astype("float64") / images for name in ("epoch_time_s", "cpu_s_per_epoch", "energy_j")
    )
    memory = summary.loc[summary["gpu_mem_mib"] > 0, "gpu_mem_mib"].astype("float64")
    aimless = set(summary.index[summary["until_top1"].isna()])
    return {
        "time": rows.collect(seconds),
        "cpu": rows.collect(cpu),
        "energy": rows.collect(energy.where(ended["has_all_figures"])),
        "memory": {row: {(0, 0, "", 0): mib} for row, mib in zip(memory.index, memory, strict=True)},
        "top1": {
            row: {(0, seed, "", 0): top1 for seed, top1 in enumerate(values)}
            for row, values in collect_top1_by_seed(rows).items()
            if row in aimless
        },
    }


def make_claims(
    name: FigureName, pair: RowPair, evidence: Evidence, threshold: float | None
) -> tuple[Claim, ...]:
    """That both differ, and that they are equal; with a threshold that B lies beyond it, and that it does not.

    That any lies beyond is one of many claims, so these are corrected, and two-sided, for the printed interval has to
    lie beyond it. That all lie below is claimed only where each does, so none is.
    """
    is_exact = name == "memory"
    difference = Claim(
        metric=name, candidate=pair[1], baseline=pair[0], evidence=evidence, design="paired",
        family=f"{DIFFERENCE}:{name}" if name in ("memory", "cpu") else DIFFERENCE,
    )  # fmt: skip
    limit = math.log1p(SAME_WITHIN) if evidence.is_log else TOP1_MARGIN
    equal = replace(difference, design="equal", limit=limit)
    if threshold is None or name not in COSTS:
        return difference, equal
    beyond = _round_log_ratio(math.log1p(max(threshold, MEMORY_SPREAD) if is_exact else threshold))
    pairs, welch = (
        estimate and replace(estimate, center=estimate.center - beyond)
        for estimate in (evidence.pairs, evidence.welch)
    )
    shifted = replace(evidence, center=evidence.center - beyond, pairs=pairs, welch=welch)
    # Exactly as much as the threshold is not beyond it.
    below = _round_log_ratio(math.log1p(threshold)) + is_exact * LAST_DIGIT / 2
    return (
        difference,
        equal,
        replace(difference, evidence=shifted, family=REGRESSION),
        replace(difference, design="below", limit=below),
    )


def _round_log_ratio(logarithm: float) -> float:
    """Without its last digits: 1,050 are 5 % more than 1,000, and not a trifle above it."""
    return round(logarithm / LAST_DIGIT) * LAST_DIGIT


def make_change(
    name: FigureName, rows: TableRows, figures: Figures, pair: RowPair, threshold: float | None
) -> FigureChange:
    """A figure that both rows of a trial have, with undecided claims of their ratio (of top-1: their difference).

    No claims: the figures are of unlike things.
    """
    a, b = pair
    values = [list(figures[row].values()) for row in pair]
    first, second = (
        mean(each) if name == "top1" else math.exp(mean([math.log(value) for value in each]))
        for each in values
    )
    is_of_work = name in ("time", "cpu", "energy")
    knows_images = [pd.notna(rows.get(row, "images_per_epoch")) for row in pair]
    change = FigureChange(figure=name, a=first, b=second, is_per_epoch=is_of_work and not any(knows_images))
    source = SOURCES.get(name)
    if is_of_work and knows_images[0] != knows_images[1]:
        return replace(change, reason="unlike-images")
    if source and to_python_value(rows.get(a, source)) != to_python_value(rows.get(b, source)):
        return replace(change, reason="unlike-images" if name == "top1" else "unlike-sources")
    if name == "top1":
        images = to_python_value(rows.get(a, "val_images"))
        evidence = estimate_top1_difference(values[1], values[0], images=images)
    elif name == "memory":
        center = _round_log_ratio(math.log(second / first))
        exact = StudentEstimate(center=center, error=0.0, degrees=1.0)
        processes = int(rows.get(b, "repeats")), int(rows.get(a, "repeats"))
        evidence = Evidence(center=center, processes=processes, pairs=exact)
    else:
        evidence = rows.compare(figures, b, a)
    return replace(change, claims=make_claims(name, pair, evidence, threshold))


def compare_trials(
    rows: TableRows, pairs: Sequence[RowPair], wanted: Collection[FigureName], threshold: float | None
) -> dict[RowPair, dict[FigureName, FigureChange]]:
    """Trials whose rows, A's and B's, both ended ok, with all claims decided together."""
    figures = {name: by_row for name, by_row in _collect_figures(rows).items() if name in wanted}
    changes = {
        pair: [
            make_change(name, rows, by_row, pair, threshold)
            for name, by_row in figures.items()
            if by_row.keys() >= {*pair}
        ]
        for pair in pairs
    }
    claims = [claim for members in changes.values() for change in members for claim in change.claims]
    decided = iter(decide_claims(claims))
    return {
        pair: {
            change.figure: replace(change, claims=tuple(islice(decided, len(change.claims))))
            for change in members
        }
        for pair, members in changes.items()
    }


def compare_matched_rows(
    rows: TableRows, matching: RowMatching, names: tuple[str, str], figures: Sequence[FigureName],
    threshold: float | None, field: str | None = None, values: tuple[Any, Any] = (None, None),
) -> Comparison:  # fmt: skip
    """The rows of two sides that were matched, compared. Pairs that are a guess are held against no threshold.

    `names`: of both sides' folders; `field`, `values`: where these are the sides.
    """
    summary = rows.summary
    statuses = summary["status"]
    ended = [(a, b) for a, b in matching.pairs if statuses[a] == statuses[b] == "ok"]
    trials = compare_trials(rows, ended, figures, None if matching.apart else threshold)
    changes = [change for by_figure in trials.values() for change in by_figure.values()]
    family = [claim for change in changes for claim in change.claims if claim.family == DIFFERENCE]
    open_times = [
        change.claim
        for change in changes
        if change.figure == "time" and change.claim and change.direction == "unknown"
    ]
    processes = rows.ended_processes.groupby("row")["attempt"].agg(set)
    matched = summary.loc[[row for pair in matching.pairs for row in pair]]
    left_out = (*matching.apart, field)
    varied_alone = _find_varied_fields(summary, left_out) or (() if field else ("batch_size",))
    return Comparison(
        a=_make_side(summary[~summary["is_b"]], names[0], values[0]),
        b=_make_side(summary[summary["is_b"]], names[1], values[1]),
        field=field,
        figures=tuple(name for name in FIGURES if name in figures),
        threshold=threshold,
        rows={label: _make_compared_row(row) for label, row in list_labelled_rows(summary)},
        trials=trials,
        not_ok=tuple(pair for pair in matching.pairs if pair not in ended),
        only_a=matching.only_a,
        only_b=matching.only_b,
        several=matching.several,
        apart=matching.apart,
        unlike=_find_unlike_fields(summary, matching, field),
        varied=_find_varied_fields(matched, left_out) or varied_alone,
        varied_alone=varied_alone,
        shared=sum(bool(processes[a] & processes[b]) for a, b in ended),
        is_same=bool(ended)
        and not (matching.only_a or matching.only_b)
        and all(statuses[a] == statuses[b] for a, b in matching.pairs)
        and all(processes[a] == processes[b] for a, b in ended),
        remedy=find_claims_remedy(open_times, family, rows.round_minutes, rows.seeds),
    )


# ---- what is told of sides and rows ----


def _make_side(rows: pd.DataFrame, name: str, value: Any) -> ComparedSide:
    timed = rows[rows["epoch_time_s"].notna()]
    machines = (describe_machine(row) for _, row in list_labelled_rows(rows.drop_duplicates([*HARDWARE])))
    return ComparedSide(
        name=name,
        value=value,
        trials=len(rows),
        machines=tuple(dict.fromkeys(machines)),
        kinds=tuple(timed["kind"].unique()),
        epochs=to_python_value(timed["epochs"].max()),
    )


def _make_compared_row(row: Mapping[str, Any]) -> ComparedRow:
    return ComparedRow(
        trial_id=row["trial_id"],
        status=row["status"],
        endings=row["endings"],
        fields={name: row[name] for name in ("group", "job", *CANDIDATES) if row[name] is not None},
        is_warned=bool(split_doubt_codes(row["doubts"])),
    )


def _find_unlike_fields(
    rows: pd.DataFrame, matching: RowMatching, field: str | None
) -> dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """What is not alike in trials that were matched, with its values in A and in B; where none was, what is apart.

    Without values: what is told by more than them, as images of one name and what variants of one name do.
    """
    unlike: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {}
    # Of a limit that was asked for its field tells.
    settings = [column.name for column in GPU_SETTINGS if column.name != f"gpu_{field}"]
    for name in (*HARDWARE, *settings, *SOFTWARE, *CANDIDATES):
        is_apart = name in matching.apart
        if name in ("gpu_ids", field) or not (is_apart or matching.pairs):
            continue
        values = {row: to_python_value(value) for row, value in rows[name].items()}
        if matching.pairs:
            both = [(values[a], values[b]) for a, b in matching.pairs]
            apart = [pair for pair in both if pair[0] != pair[1] and (is_apart or None not in pair)]
            sides = [*zip(*apart, strict=True)]
        else:
            sides = [tuple(values[row] for row in rows.index[rows["is_b"] == is_b]) for is_b in (False, True)]
        if sides:
            known = [tuple(value for value in dict.fromkeys(side) if value is not None) for side in sides]
            unlike[name] = (known[0], known[1])
    return unlike | {name: ((), ()) for name in matching.apart if name not in unlike and matching.pairs}


def _find_varied_fields(rows: pd.DataFrame, left_out: Collection[str | None]) -> tuple[str, ...]:
    """The fields that tell rows apart, but for what the machine chose."""
    if not len(rows):
        return ()
    settled = [name for name in ALLOTTED if is_left_to_machine(rows, name).all()]
    jobs = [name for name in ("group", "job") if rows[name].notna().any()]
    varied = EncodedFields.from_frame(rows).list_varied_fields()
    return (*jobs, *(name for name in varied if name not in (*left_out, *settled, "gpu_ids")))
