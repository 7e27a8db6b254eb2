"""Which rows of two sides are of one and the same trial, whatever machine each ran on.

Rows are of one trial where their trials ask for the same: fields that were left to the machine, ids of devices,
hardware and versions may differ, images are told by their content. Where no row of one side is one of the other, those
fields are set aside in which the sides have no value in common: that is a guess.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.grid import list_labelled_rows
from gpubench.analyze.series import (
    AUTO,
    CANDIDATES,
    FOLLOWS,
    OLD_DEFAULTS,
    Codes,
    combine_codes,
    encode_values,
)
from gpubench.analyze.versus import DERIVED_FIELDS
from gpubench.schema import catalog
from gpubench.schema.record import ALLOTTED
from gpubench.schema.trial import make_trial
from gpubench.schema.trial_fields import DEVICE_AXES

DEFINITION = "variant_definition"
"""What a variant does: two sides may mean different things by one name."""
LENGTH_FIELDS = ("window", "steps")
"""Fields in which steady rates may differ and still be compared."""
DERIVED_FROM: Mapping[str, tuple[str, ...]] = {**FOLLOWS, "strategy": DEVICE_AXES, DEFINITION: ("variant",)}
"""Field -> those from which it follows where nobody asked for it."""
FREE, LEFT_TO_MACHINE, NO_FILES = "free", "left to the machine", "no files"
"""Stand for what may differ, for what the machine chose, and for the images of a variant that reads none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowMatching:
    """The rows of two sides by label, each in one of the first four."""

    pairs: tuple[tuple[int, int], ...]
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
    pairs: list[tuple[int, int]] = []
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
