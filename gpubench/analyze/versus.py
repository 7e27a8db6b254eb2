"""One way to do the same work against another: strategies, variants, precisions, executions, optimizers …

Both rows of a pair are equal in all else, but for what follows from the field by itself, as each optimizer has a
learning rate of its own. A field is a question of its own, whatever many values it has. Of variants the CPU time of an
image is compared, too, as a further question: what variants differ in is work of the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from gpubench.analyze.series import CANDIDATES, FOLLOWS, Codes, EncodedFields, combine_codes, encode_values
from gpubench.analyze.table_rows import TableRows, group_by
from gpubench.core.claims import Claim
from gpubench.core.findings import VersusFinding
from gpubench.schema import catalog
from gpubench.schema.trial import make_trial
from gpubench.schema.trial_fields import DEFAULTS, select_fields

FIELDS = select_fields(lambda about: about.alternatives)
"""Fields whose values are ways to do the same work."""
CPU_FIELD = "variant"
"""The field whose values are asked for their CPU time, too."""
DERIVED_FIELDS = ("lr", *catalog.OWN_FIELDS)
"""Fields that, where nobody asks for a value, have one that follows from such a field in the trial itself."""
RATE, CPU = "images_per_s", "cpu_s_per_epoch"


def make_claims(rows: TableRows) -> list[Claim]:
    """Each row against the one that differs from it in one field alone, field by field.

    Claims are of `images_per_s`, and of variants of `cpu_s_per_epoch`, which is taken by image. The candidate has the
    value that is faster by the mean of the estimates.
    """
    claims = []
    cpu_s, shares, times = (
        rows.ended_processes[name].astype("float64") for name in (CPU, "cpu_util_pct", "epoch_time_s")
    )
    # Where nobody counted CPU seconds, as in a published log, the share of all CPUs times the time tells.
    seconds = rows.collect((cpu_s if cpu_s.notna().any() else shares * times) / rows.images)
    for field in (name for name in FIELDS if name in rows.varied):
        for pairs in list_pairs_by_value(rows, field):
            centers = [rows.compare(rows.rates, *pair).center for pair in pairs]
            if math.fsum(centers) < 0:
                pairs = [(baseline, candidate) for candidate, baseline in pairs]
            claims += [rows.make_claim(RATE, rows.rates, *pair, family=f"versus:{field}") for pair in pairs]
            if field == CPU_FIELD:
                claims += [
                    rows.make_claim(CPU, seconds, *pair, family=f"versus:{field}:cpu")
                    for pair in pairs
                    if seconds.keys() >= {*pair}
                ]
    return claims


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[VersusFinding]:
    """What the decided claims come to: a finding for each two values of a field that stand beside each other."""

    def list_sides(claim: Claim) -> tuple[str, object, object]:
        field = claim.family.split(":")[1]
        return field, rows.get(claim.candidate, field), rows.get(claim.baseline, field)

    findings = []
    for (field, value, baseline), members in group_by(claims, list_sides).items():
        rates = [claim for claim in members if claim.metric == RATE]
        findings.append(
            VersusFinding(
                **rows.summarize_claims(rates, claims),
                cpu_claims=tuple(claim for claim in members if claim.metric == CPU),
                field=field,
                value=value,
                baseline=baseline,
            )
        )
    return findings


def list_pairs_by_value(rows: TableRows, field: str) -> Iterator[list[tuple[int, int]]]:
    """For each value of a field but the first its rows, each with that of the first value at the same place.

    The first value is that which stands first in the table of those that stand beside another one: `single` never does
    on two devices. Jobs of groups are in no pair, nor are rows of which several are at one place.
    """
    fields = rows.fields.take(rows.has_solo_rate)
    if len(np.unique(fields.codes[field])) < 2:
        return
    frame = pd.DataFrame(
        {
            "place": encode_other_fields(fields, field),
            "value": encode_values(fields.frame[field]),
            "label": fields.frame.index,
        }
    )
    frame = frame[~frame.duplicated(["place", "value"], keep=False)]
    frame = frame[frame.duplicated("place", keep=False)]
    first = frame["value"].min()
    baselines = frame[frame["value"] == first].set_index("place")["label"]
    candidates = frame[(frame["value"] != first) & frame["place"].isin(baselines.index)]
    for _, members in candidates.groupby("value", sort=False):
        yield list(zip(members["label"], members["place"].map(baselines), strict=True))


def encode_other_fields(fields: EncodedFields, field: str) -> Codes:
    """A number for each row, equal in rows that differ in nothing but `field` and what follows from it by itself."""
    following = [name for name in CANDIDATES if field in FOLLOWS.get(name, ())]
    free = {field, *following}
    codes = [fields.encode_workload_field(name, free) for name in CANDIDATES if name not in free]
    codes += [
        np.where(_has_default_value(fields.frame, name, field), -1, fields.codes[name]) for name in following
    ]
    return combine_codes(len(fields), [*codes, fields.codes["machine"]])


def _has_default_value(frame: pd.DataFrame, name: str, field: str) -> pd.Series[bool]:
    """Whether rows have the value of `name` that comes with their value of `field` where nobody asks for another."""
    if name == "workers":
        return frame["is_workers_auto"]
    if name not in DERIVED_FIELDS:
        return pd.Series(False, index=frame.index)
    # A damaged record may lack a field that every trial has.
    values = frame[field] if DEFAULTS[field] is None else frame[field].dropna()
    usual = {value: getattr(make_trial({field: value}), name) for value in values.unique()}
    expected = frame[field].map(usual)
    return (frame[name] == expected).fillna(False) | (frame[name].isna() & expected.isna())
