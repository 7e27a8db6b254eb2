"""Reports as data, as docs/json.md describes them and `report.schema.json` beside this file checks them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from gpubench.basics.finite import replace_non_finite
from gpubench.basics.quoted import format_readable_json
from gpubench.core.claims import Claim
from gpubench.core.findings import Finding
from gpubench.core.report import Report, ReportRow
from gpubench.render import words

VERSION = 1
"""Goes up where a name changes its meaning or goes; what is added leaves it."""


def format_text(reports: Sequence[Report]) -> str:
    """All reports as one JSON document, ending in a newline."""
    return (
        format_readable_json({"version": VERSION, "reports": list(map(report_to_data, reports))}, indent=1)
        + "\n"
    )


def report_to_data(report: Report) -> dict[str, Any]:
    """A report in values that JSON can say: what is not known is null."""
    data = {
        "name": report.name,
        "question": words.format_question(report),
        "facts": value_to_data(report.facts),
        "findings": [finding_to_data(report, finding) for finding in report.findings],
        "warnings": [
            {**value_to_data(warned), "text": words.format_warning(report, warned)}
            for warned in report.warnings
        ],
        "table": [
            {"head": value_to_data(group.head), "rows": [_row_to_data(report, row) for row in group.rows]}
            for group in report.groups
        ],
        "selection": value_to_data(report.selection),
        "problems": list(report.problems),
        "rows": [
            {
                "row": row,
                "fields": value_to_data(label),
                "figures": value_to_data(report.figures.get(row, {})),
                "missing": dict(report.missing.get(row, {})),
            }
            for row, label in report.labels.items()
        ],
    }
    return replace_non_finite(data)  # type: ignore[no-any-return]


def finding_to_data(report: Report, finding: Finding) -> dict[str, Any]:
    """A finding: what is common to all questions, then under `details` what only its own question has."""
    details = value_to_data(finding)
    common = {field.name: details.pop(field.name) for field in fields(Finding)}
    return {
        "question": finding.question,
        "verdict": finding.word,
        "text": words.format_finding_lines(report, finding),
        "choice": common["choice"],
        "effect": _compute_effect_range(finding.claims),
        "claims": common["claims"],
        "rows": common["rows"],
        "warnings": common["warnings"],
        "remedy": common["remedy"],
        "details": details,
    }


def _compute_effect_range(claims: Sequence[Claim]) -> dict[str, Any] | None:
    """Between what the figures of a finding's claims lie, and the ends of their intervals; of its first metric."""
    alike = [claim for claim in claims if claim.metric == claims[0].metric]
    if not alike:
        return None
    figures = [words.compute_claim_figure(claim) for claim in alike]
    lows = [claim.decided.low for claim in alike]
    highs = [claim.decided.high for claim in alike]
    return {
        "metric": alike[0].metric,
        "is_ratio": alike[0].evidence.is_log,
        "least": min(figures),
        "most": max(figures),
        "low": None if None in lows else min(low for low in lows if low is not None),
        "high": None if None in highs else max(high for high in highs if high is not None),
    }


def _claim_to_data(claim: Claim) -> dict[str, Any]:
    verdict, evidence = claim.decided, claim.evidence
    limit = math.exp(claim.limit) if evidence.is_log else claim.limit
    return {
        "metric": claim.metric,
        "candidate": claim.candidate,
        "baseline": claim.baseline,
        "is_ratio": evidence.is_log,
        "figure": words.compute_claim_figure(claim),
        "low": verdict.low,
        "high": verdict.high,
        "p": verdict.p,
        "verdict": verdict.word,
        "direction": verdict.direction,
        "test": claim.design,
        "limit": limit if claim.design in ("above", "below", "equal") else None,
        "processes": list(evidence.processes),
        "noise": evidence.noise,
    }


def _row_to_data(report: Report, row: ReportRow) -> dict[str, Any]:
    data = value_to_data(row)
    cells = [
        {"column": column.name, "series": value_to_data(column.series), **cell}
        for column, cell in zip(report.columns, data.pop("cells"), strict=True)
    ]
    return {"rows": data.pop("labels"), "cells": cells, **data}


def value_to_data(value: Any) -> Any:
    """Dataclasses and mappings as objects, sequences as lists; a claim inside a finding as a claim."""
    if isinstance(value, Claim):
        return _claim_to_data(value)
    if is_dataclass(value):
        return {field.name: value_to_data(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): value_to_data(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [value_to_data(part) for part in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return value.item() if hasattr(value, "item") else str(value)  # numpy's numbers
