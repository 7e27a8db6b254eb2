"""Two sides, compared, as one object of JSON."""

from __future__ import annotations

from typing import Any

from gpubench.analysis.certainty import accuracy
from gpubench.analysis.comparing import Beside, FigureBeside, FigureName, SideBySide
from gpubench.analysis.over_processes import MARGIN
from gpubench.basics.finite import finite
from gpubench.report.comparison.figure_words import TOLD
from gpubench.report.comparison.side import Side, environment
from gpubench.report.comparison.unlike import unlike_of
from gpubench.schema.row import TableRow
from gpubench.schema.trial_fields import FIELDS


def as_json(a: Side, b: Side, of: SideBySide, *, field: str = "") -> dict[str, Any]:
    """As one object of JSON."""
    matching = of.matching
    return {
        "a": {"name": a.name, **environment(a)},
        "b": {"name": b.name, **environment(b)},
        "field": field or None,
        "unlike": [
            {"name": name, "a": first, "b": second} for name, first, second in unlike_of(a, b, of, field)
        ],
        "guessed": of.guessed,
        "claims": of.family,
        "margin": MARGIN,
        "top1_margin_points": accuracy.MARGIN,
        "threshold": of.threshold,
        "trials": [_json_pair(one) for one in of.beside],
        "not_ok": [{"a": _json_row(first), "b": _json_row(second)} for first, second in of.not_ok],
        "only_a": [_json_row(row) for row in matching.only_a],
        "only_b": [_json_row(row) for row in matching.only_b],
        "several": [
            {"a": [_json_row(row) for row in one.a], "b": [_json_row(row) for row in one.b]}
            for one in matching.several
        ],
        "regressions": [
            *({"trial_id": one.b.trial_id, "figure": name} for one, name in of.regressions),
            *({"trial_id": second.trial_id, "figure": "status"} for _, second in of.broken),
        ],
        "undecided": of.undecided if of.threshold is not None else None,
    }


def _json_row(row: TableRow) -> dict[str, Any]:
    fields = {name: value for name in FIELDS if (value := row.fields.get(name)) is not None}
    return {
        "trial_id": row.trial_id,
        "group": row.group,
        "job": row.job,
        "status": row.endings,
        "fields": fields,
    }


def _json_pair(one: Beside) -> dict[str, Any]:
    return {
        "a": _json_row(one.a),
        "b": _json_row(one.b),
        **{name: _json_figure(name, found) for name, found in one.figures.items()},
    }


def _json_figure(name: FigureName, found: FigureBeside) -> dict[str, Any]:
    unit = "points" if name == "top1" else "pct"
    return {
        "a": found.a,
        "b": found.b,
        f"change_{unit}": finite(found.change),
        f"low_{unit}": finite(found.low),
        f"high_{unit}": finite(found.high),
        "answer": TOLD[name].words[found.word],
        "rests_on": found.basis,
        "regression": found.beyond,
    }
