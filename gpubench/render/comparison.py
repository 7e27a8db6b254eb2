"""Two sides, compared, as text, Markdown and data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpubench.basics.encodable import encodable
from gpubench.basics.finite import finite
from gpubench.basics.quoted import to_json
from gpubench.core.comparison import FIGURES, Change, ComparedTrial, Comparison
from gpubench.render import words
from gpubench.render.grid import Grid, GridCell, GridGroup, GridRow, Tone
from gpubench.render.json import convert
from gpubench.render.markdown import escape, write_tables
from gpubench.render.terminal import HANG, TO_ASCII, WIDEST, WIDTH, fold, render_grid, render_sentence

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

VERSION = 1
"""Of the data; as that of reports."""


def show(comparison: Comparison, console: Console, *, sort: str | None = None) -> None:
    """Print a comparison to `console`, styled on a terminal, else as `write_text` has it."""
    if not console.is_terminal:
        console.file.write(encodable(write_text(comparison, sort=sort), console.encoding))
        return
    for line in _render_lines(comparison, sort, min(console.width, WIDEST), is_rich=True):
        line.plain = encodable(line.plain, console.encoding)
        console.print(line, soft_wrap=True, highlight=False)


def write_text(comparison: Comparison, *, sort: str | None = None) -> str:
    """A comparison as plain ASCII text (but for names that somebody else gave), ending in a newline."""
    lines = _render_lines(comparison, sort, WIDTH, is_rich=False)
    return "".join(f"{line.plain.translate(TO_ASCII).rstrip()}\n" for line in lines)


def _render_lines(comparison: Comparison, sort: str | None, width: int, *, is_rich: bool) -> list[Text]:
    from rich.text import Text

    lines = [Text(part, "dim") for line in words.describe_sides(comparison) for part in fold(line, width)]
    lines.append(Text())
    for line in words.write_comparison(comparison):
        lines += render_sentence(line, line.marked_text, width)
    if comparison.changes:
        lines += [Text(), *render_grid(lay_out_changes(comparison, sort), width, is_rich)]
    for head, *names in words.list_unmatched(comparison):
        lines += [Text(), Text(f"{head}:")]
        lines += [Text(HANG + part) for name in names for part in fold(name, width - len(HANG))]
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
        *(write_tables(lay_out_changes(comparison, sort)) if comparison.changes else []),
        *lists,
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def write_json(comparison: Comparison) -> str:
    """A comparison as one JSON document, ending in a newline: all of `Comparison`, and what follows from it.

    docs/json.md describes it, `comparison.schema.json` beside this file checks it.
    """
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
    return to_json(finite(data), indent=1) + "\n"


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


def lay_out_changes(comparison: Comparison, sort: str | None = None) -> Grid:
    """A table whose groups are the figures, a row a trial.

    `sort`: a figure, of which the worst comes first, or a field.
    """
    trials = sort_trials(comparison, sort)
    groups: dict[str, list[GridRow]] = {}
    for trial, change in ((trial, trial.changes.get(name)) for name in FIGURES for trial in trials):
        if change is None:
            continue
        a, b, answer, size = words.write_change(change)
        texts = (words.name_compared(comparison, trial.b), a, b)
        cells = (*map(GridCell, texts), GridCell(answer, tone=_find_tone(change)), GridCell(size))
        is_warned = any(comparison.rows[row].is_warned for row in (trial.a, trial.b))
        groups.setdefault(words.title_figure(change), []).append(GridRow(cells, is_warned=is_warned))
    return Grid(
        ("",) * len(words.CHANGE_HEADINGS),
        words.CHANGE_HEADINGS,
        (False, True, True, False, True),
        tuple(GridGroup(head, tuple(rows)) for head, rows in groups.items()),
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
    if change.direction not in ("less", "more"):
        return "plain"
    return "better" if (change.direction == "more") == (change.figure == "top1") else "worse"
