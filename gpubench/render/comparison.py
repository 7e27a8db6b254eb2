"""Two sides, compared, as text, Markdown and data."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpubench.basics.encodable import encodable
from gpubench.basics.finite import finite
from gpubench.core.comparison import FIGURES, Change, Comparison, ComparedTrial
from gpubench.render import words
from gpubench.render.grid import Grid, GridCell, GridGroup, GridRow, Tone
from gpubench.render.json import convert
from gpubench.render.markdown import escape, write_tables
from gpubench.render.terminal import ASCII, HANG, WARNED, WIDEST, WIDTH, fold, set_grid

if TYPE_CHECKING:
    from rich.console import Console

VERSION = 1
"""Of the data; as that of reports."""


def show(comparison: Comparison, console: Console, *, sort: str | None = None) -> None:
    """Print a comparison to `console`, styled on a terminal, else as `write_text` has it."""
    if not console.is_terminal:
        console.file.write(write_text(comparison, sort=sort))
        return
    for line in _set_lines(comparison, sort, min(console.width, WIDEST), is_rich=True):
        console.print(encodable(line, console.encoding), soft_wrap=True, highlight=False, markup=False)


def write_text(comparison: Comparison, *, sort: str | None = None) -> str:
    """A comparison as plain ASCII text (but for names that somebody else gave), ending in a newline."""
    lines = _set_lines(comparison, sort, WIDTH, is_rich=False)
    return "".join(f"{line.translate(ASCII).rstrip()}\n" for line in lines)


def _set_lines(comparison: Comparison, sort: str | None, width: int, *, is_rich: bool) -> list[str]:
    lines = [part for line in words.describe_sides(comparison) for part in fold(line, width)]
    lines.append("")
    for line in words.write_comparison(comparison):
        lines += fold(f"{WARNED} {line.text}" if line.kind == "warning" else line.text, width)
    if comparison.trials:
        lines += ["", *(text.plain for text in set_grid(make_grid(comparison, sort), width, is_rich))]
    for head, *names in words.list_unmatched(comparison):
        lines += ["", f"{head}:", *(part for name in names for part in fold(HANG + name, width))]
    return lines


def write_markdown(comparison: Comparison, *, sort: str | None = None) -> str:
    """A comparison as Markdown, for a pull request."""
    items = [
        f"- **{escape(line.text)}**" if line.kind == "answer" else f"- {escape(line.text)}"
        for line in words.write_comparison(comparison)
    ]
    lists = [
        "\n".join([f"{escape(head)}:", "", *(f"- {escape(name)}" for name in names)])
        for head, *names in words.list_unmatched(comparison)
    ]
    blocks = [
        "  \n".join(map(escape, words.describe_sides(comparison))),
        "\n".join(items),
        *(write_tables(make_grid(comparison, sort)) if comparison.trials else []),
        *lists,
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def write_json(comparison: Comparison) -> str:
    """A comparison as one JSON document, ending in a newline: all of `Comparison`, and what follows from it."""
    data: dict[str, Any] = {
        "version": VERSION,
        **convert(comparison),
        "trials": [
            {
                "a": trial.a,
                "b": trial.b,
                **{name: change_to_data(change) for name, change in trial.changes.items()},
            }
            for trial in comparison.trials
        ],
        "regressions": [{"b": trial.b, "figure": change.figure} for trial, change in comparison.regressions]
        + [{"b": b, "figure": "status"} for _, b in comparison.broken],
        "is_excluded": comparison.is_excluded if comparison.threshold is not None else None,
        "obstacle": comparison.obstacle,
        "text": [line.text for line in words.write_comparison(comparison)],
    }
    return json.dumps(finite(data), ensure_ascii=False, indent=1) + "\n"


def change_to_data(change: Change) -> dict[str, Any]:
    """A figure of one trial: both sides' and the change in per cent (top-1: points), with what is known of it."""
    return {
        **convert(change),
        "change": words.measure_change(change),
        "answer": words.name_direction(change),
        "verdict": "unknown" if change.verdict is None else change.verdict.word,
        "is_regression": change.is_regression,
        "is_excluded": change.is_excluded,
    }


def make_grid(comparison: Comparison, sort: str | None = None) -> Grid:
    """A table whose groups are the figures, a row a trial.

    `sort`: a figure, of which the worst comes first, or a field.
    """
    groups: dict[str, list[GridRow]] = {}
    for trial in sort_trials(comparison, sort):
        is_warned = any(comparison.rows[row].is_warned for row in (trial.a, trial.b))
        for change in trial.changes.values():
            *cells, answer = words.write_change(change)
            texts = [GridCell(text) for text in (words.name_compared(comparison, trial.b), *cells)]
            row = GridRow((*texts, GridCell(answer, tone=_find_tone(change))), is_warned=is_warned)
            groups.setdefault(words.title_change(change), []).append(row)
    order = {name: place for place, name in enumerate(words.CHANGES)}
    heads = sorted(
        groups, key=lambda head: next(order[n] for n in order if head.startswith(words.CHANGES[n][0][:4]))
    )
    return Grid(
        ("",) * len(words.CHANGE_HEADINGS),
        words.CHANGE_HEADINGS,
        (False, True, True, True, False),
        tuple(GridGroup(head, tuple(groups[head])) for head in heads),
    )


def sort_trials(comparison: Comparison, sort: str | None) -> Sequence[ComparedTrial]:
    """The trials in their order, or by a figure or a field."""
    if sort in FIGURES:
        sign = 1 if sort == "top1" else -1
        return sorted(
            comparison.trials,
            key=lambda trial: (
                sign * words.measure_change(trial.changes[sort]) if sort in trial.changes else math.inf
            ),
        )
    if sort is None:
        return comparison.trials

    def rank(trial: ComparedTrial) -> tuple[int, Any]:
        value = comparison.rows[trial.b].fields.get(sort)
        return (0, 0) if value is None else (1, value) if isinstance(value, (int, float)) else (2, str(value))

    return sorted(comparison.trials, key=rank)


def _find_tone(change: Change) -> Tone:
    if change.figure == "top1":
        return {"less": "worse", "more": "better"}.get(change.direction, "plain")  # type: ignore[return-value]
    return {"less": "better", "more": "worse"}.get(change.direction, "plain")  # type: ignore[return-value]
