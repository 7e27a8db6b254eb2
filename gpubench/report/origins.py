"""Where the fields of planned trials have their values from, as a table that fits a terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpubench.basics.words import UNKNOWN, clean
from gpubench.plan.origins import Explained
from gpubench.plan.values import as_text
from gpubench.report import layout
from gpubench.schema.trial_fields import FIELDS

WIDEST = 34
"""Signs of a cell: three of them, with the names of fields, stand in 80 columns."""


def text(trials: Sequence[Explained]) -> str:
    """One line a field; of values that differ between trials all, as far as there is room."""
    cells = []
    for name in FIELDS:
        told = [trial.fields[name] for trial in trials]
        found = dict.fromkeys(_value(one.value) for one in told)
        origins = dict.fromkeys(one.origin for one in told)
        cells.append([name, _short(list(found)), _short([clean(one) for one in origins])])
    head, body = layout.padded(["field", "value", "from"], cells, [False, False, False])
    rule = ["-" * len(one) for one in head[0]]
    return "\n".join(layout.GAP.join(row).rstrip() for row in (*head, rule, *body)) + "\n"


def as_json(trial: Explained) -> dict[str, Any]:
    """One trial as an object of JSON."""
    return {
        "trial_id": trial.trial_id,
        "group": trial.group or None,
        "job": trial.job or None,
        "fields": {name: {"value": one.value, "from": one.origin} for name, one in trial.fields.items()},
    }


def _value(value: Any) -> str:
    return UNKNOWN if value is None else clean(as_text(value))


def _short(found: Sequence[str]) -> str:
    """`16, 32, 64`; where that is too long, as many as there is room for, and how many they are."""
    whole = ", ".join(found)
    if len(whole) <= WIDEST or len(found) == 1:
        return whole
    count = f", … ({len(found)} values)"
    shown = found[0]
    for one in found[1:]:
        if len(shown) + len(one) + 2 + len(count) > WIDEST:
            break
        shown = f"{shown}, {one}"
    return f"{shown}{count}"
