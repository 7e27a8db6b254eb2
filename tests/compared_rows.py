"""Rows of two sides, made by hand: only what a test is about is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from made_up_tables import make_table

from gpubench.analyze.compare import RowMatching, compare_matched_rows, match_rows
from gpubench.analyze.table_rows import TableRows
from gpubench.core.comparison import FIGURES, Comparison, FigureChange, FigureName
from gpubench.schema.columns import GPU_SETTINGS
from gpubench.schema.row import KnownImages

IMAGES = KnownImages(files="full", fingerprint="f", train_images=1000, val_images=100)
ASKED: Mapping[str, Any] = {
    "model": "lenet", "variant": "crop-resize", "data": "procedural", "gpus": 1, "device": "cuda", "strategy": "single",
    "precision": "fp32", "workers": None, "cpus": None,
}  # fmt: skip
FACTS: Mapping[str, Any] = {
    **ASKED, "batch_size": 16, "config_id": "", "kind": "steady rate", "table": 0, "images": IMAGES,
    "image_files": "full", "variant_definition": {"files": "full"}, "gpu_mem_mib": None, "gpu_mem_source": None,
    "energy_j": None, "energy_source": None, "has_all_figures": True, "endings": "ok", "doubts": None, "took_s": 1.0,
    "gpu_name": "H200", "gpu_count": 1, "cpu_name": None, "cpu_count": None, "driver": None, "cuda": None,
    "torch": None, "gpubench": None, "host": None, **{column.name: None for column in GPU_SETTINGS},
}  # fmt: skip
STEADY = [1.0, 1.01, 0.99]


def row(
    times: Sequence[float] = (1.0,), *, rounds: Sequence[int] | None = None, **given: Any
) -> dict[str, Any]:
    """A configuration of so many processes, which asked for what it has. `rounds`: one each; else none is shared."""
    asked = {name: given.get(name, value) for name, value in ASKED.items()} | {"workers": None, "cpus": None}
    asked |= {name: given[name] for name in ("lr", "optimizer") if name in given}
    facts = {**FACTS, "epoch_time_s": list(times) or None, "asked": asked, **given}
    return {**facts, "round": list(rounds) if rounds else None}


def make_sides(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], **facts: Any) -> TableRows:
    """Rows of both sides, A's labelled from 10, B's behind them."""
    number = count(1)
    rows = []
    for each, is_b in [*((each, False) for each in a), *((each, True) for each in b)]:
        processes = len(each["epoch_time_s"] or ())
        rounds = each["round"] or [next(number) for _ in range(processes)]
        attempts = [(str(each), next(number)) for _ in range(processes)]
        rows.append({**each, "is_b": is_b, "round": rounds or None, "attempt": attempts or None})
    table = make_table(rows, **facts)
    return replace(
        table, summary=table.summary.assign(repeats=table.runs.groupby("row").size()).fillna({"repeats": 0})
    )


def match(
    a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], free: Sequence[str] = ()
) -> RowMatching:
    return match_rows(make_sides(a, b).summary, free)


def compare(
    a: Sequence[Mapping[str, Any]],
    b: Sequence[Mapping[str, Any]],
    threshold: float | None = None,
    figures: Sequence[FigureName] = FIGURES,
    **facts: Any,
) -> Comparison:
    rows = make_sides(a, b, **facts)
    return compare_matched_rows(rows, match_rows(rows.summary), ("a", "b"), figures, threshold)


def only(a: Mapping[str, Any], b: Mapping[str, Any], figure: FigureName = "time", **how: Any) -> FigureChange:
    """The figure of the only pair."""
    (changes,) = compare([a], [b], **how).trials.values()
    return changes[figure]
