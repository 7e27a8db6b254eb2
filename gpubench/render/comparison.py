"""Two sides, compared, as text, Markdown and data, with all its English."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from gpubench.analyze.table_rows import group_by
from gpubench.basics.finite import replace_non_finite
from gpubench.basics.folding import HANG
from gpubench.basics.quoted import clean_line, format_readable_json
from gpubench.core.comparison import FIGURES, Comparison, FigureChange, FigureName, RowPair
from gpubench.render.grid import Grid, GridCell, GridGroup, GridRow
from gpubench.render.json import value_to_data
from gpubench.render.markdown import escape_markdown, format_tables
from gpubench.render.terminal import TO_ASCII, WIDTH, render_grid, wrap_text
from gpubench.render.words import (
    count_things,
    format_axis_value,
    format_remedy_advice,
    format_signed,
    format_significant,
    join_words,
    name_ending,
    name_row,
    name_value,
)

VERSION = 1
"""Of the data; as that of reports."""
FIGURE_WORDS: Mapping[FigureName, tuple[str, str, float, str, str]] = {
    "time": ("Time per image", "ms", 1000, "faster", "slower"),
    "memory": ("GPU memory", "MiB", 1, "less", "more"),
    "cpu": ("CPU time per image", "ms", 1000, "less", "more"),
    "energy": ("Energy per image", "J", 1, "less", "more"),
    "top1": ("Top-1", "%", 1, "lower", "higher"),
}
"""Figure -> its name, its unit, how many of these the figure has for each of its own, and words for less and more."""
OBSTACLES: Mapping[str, str] = {
    "same-processes": "A and B hold the same processes: name two folders that were measured apart.",
    "unlike-kinds": "A holds times of {a}, B of {b}, which are never compared: measure both alike (whole epochs are "
    "measured by --epochs).",
    "no-match": "No trial of A is one of B ({apart}): sweep the same experiment into both.",
    "none-ok": "No trial ended ok on both sides with a figure to compare: gpubench table tells why.",
    "guess": "Nothing was checked for a regression: no trial of A is one of B in all its fields, so pairs are a guess.",
    "unchecked": "Nothing was checked for a regression: no trial has time, memory or energy on both sides.",
}
REASONS: Mapping[str, str] = {"unlike-images": "other images", "unlike-sources": "other sources"}
UNLIKE: Mapping[str, str] = {
    "gpu_name": "GPU", "gpu_count": "GPUs", "cpu_name": "CPU", "cpu_count": "CPUs", "cuda": "CUDA",
    "variant_definition": "what the variant does",
}  # fmt: skip
HEADINGS = ("", "A", "B", "B is", "change")
MOST_NAMED = 8
"""Rows of a list that are named one by one; JSON has all."""


def format_text(
    comparison: Comparison, *, sort: str | None = None, width: int = WIDTH, is_rich: bool = False
) -> str:
    """A comparison as lines, ending in a newline. `is_rich`: for a terminal, which shows more than ASCII."""
    grid = make_changes_grid(comparison, sort)
    uncompared = [
        ["", f"{head}:", *(HANG + part for name in names for part in wrap_text(name, width - len(HANG)))]
        for head, *names in list_uncompared_trials(comparison)
    ]
    lines = [
        *(part for line in describe_sides(comparison) for part in wrap_text(line, width)),
        "",
        *(part for line in list_conclusion_lines(comparison) for part in wrap_text(line, width)),
        *(["", *(line.plain for line in render_grid(grid, width, is_rich))] if grid.groups else []),
        *(line for part in uncompared for line in part),
    ]
    return "".join(f"{(line if is_rich else line.translate(TO_ASCII)).rstrip()}\n" for line in lines)


def format_markdown(comparison: Comparison, *, sort: str | None = None) -> str:
    """A comparison as Markdown, for a pull request."""
    answer, *others = map(escape_markdown, list_conclusion_lines(comparison))
    blocks = [
        "  \n".join(map(escape_markdown, describe_sides(comparison))),
        "\n".join([f"- **{answer}**", *(f"- {line}" for line in others)]),
        *(format_tables(make_changes_grid(comparison, sort)) if comparison.changes else []),
        *(
            "\n".join([f"{escape_markdown(head)}:", "", *(f"- {escape_markdown(name)}" for name in names)])
            for head, *names in list_uncompared_trials(comparison)
        ),
    ]
    return "\n\n".join(blocks) + "\n"


def format_json(comparison: Comparison) -> str:
    """A comparison as one JSON document, ending in a newline: all of `Comparison`, and what follows from it.

    docs/json.md describes it, `comparison.schema.json` beside this file checks it.
    """
    data: dict[str, Any] = {
        "version": VERSION,
        **value_to_data(comparison),
        "trials": [
            {"a": a, "b": b} | {name: change_to_data(change) for name, change in changes.items()}
            for (a, b), changes in comparison.trials.items()
        ],
        "regressions": [{"b": b, "figure": change.figure} for (_, b), change in comparison.regressions]
        + [{"b": b, "figure": "status"} for _, b in comparison.broken_trials],
        "is_excluded": comparison.is_regression_excluded if comparison.threshold is not None else None,
        "obstacle": comparison.obstacle,
        "text": list_conclusion_lines(comparison),
    }
    return format_readable_json(replace_non_finite(data), indent=1) + "\n"


def change_to_data(change: FigureChange) -> dict[str, Any]:
    """A figure of one trial: both sides' and the change in per cent (top-1: points), with what is known of it."""
    return {
        **value_to_data(change),
        "change": compute_change_pct(change),
        "answer": name_direction(change),
        "verdict": "unknown" if change.verdict is None else change.verdict.word,
        "is_regression": change.is_regression,
        "is_excluded": change.is_regression_excluded,
    }


# ---- what stands above ----


def describe_sides(comparison: Comparison) -> list[str]:
    """What stands above two sides: what each is, and what is not alike in them."""
    lines = []
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        name = clean_line(side.name, 200)
        name = f"{name_value(comparison.field, side.value)} in {name}" if comparison.field else name
        machines = join_words(map(clean_line, side.machines or ("nothing measured",)))
        lines.append(f"{letter}: {name}; {count_things(side.trials, 'trial')}; {machines}")
    unlike = []
    for column, sides in comparison.unlike.items():
        values = [join_words(map(format_axis_value, side or ("not known",))) for side in sides if any(sides)]
        unlike.append(f"{UNLIKE.get(column, column)} {' against '.join(values)}".strip())
    if unlike:
        lines.append(f"Not alike: {'; '.join(unlike)}.")
    if comparison.is_matched_by_guess:
        lines.append("No trial of A is one of B in all its fields, so the pairs are a guess.")
    return lines


def name_compared_trial(comparison: Comparison, row: int, varied: Sequence[str] = ()) -> str:
    """A trial by what tells it apart from others: `batch 16`, `batch 16 (1 of 2, 2 copies)`.

    `varied`: the fields that do; those of the trials that were compared where none are given.
    """
    fields = comparison.rows[row].fields
    known = {name: fields[name] for name in varied or comparison.varied if name in fields}
    job = ", ".join(clean_line(str(known[name]), 80) for name in ("job", "group") if name in known)
    parts = (name_row(known, without=("job", "group")), f"({job})" if job else "")
    return " ".join(filter(None, parts)) or "the only trial"


# ---- what both sides come to ----


def list_conclusion_lines(comparison: Comparison) -> list[str]:
    """What two sides come to: whether B regressed, then a line a figure, then what weakens the answers."""
    lines = [explain_obstacle(comparison)] if comparison.obstacle else []
    if comparison.is_incomparable:
        return lines
    if comparison.threshold is not None and not comparison.obstacle:
        lines.append(_describe_regression(comparison, f"{100 * comparison.threshold:g} %"))
    changes = [change for _, change in comparison.changes]
    for name in FIGURES:
        titles = group_by((change for change in changes if change.figure == name), _name_figure)
        for title, members in titles.items():
            words = Counter(map(describe_change, members))
            lines.append(f"{title} of B: {'; '.join(f'{count} {word}' for word, count in words.items())}.")
    if any(change.claim and change.claim.decided.p is None for change in changes):
        lines.append(
            "Times and energy of one process on a side (top-1: under three seeds) are never sure: --rounds 3 on both "
            "sides."
        )
    if comparison.remedy:
        lines.append(f"{format_remedy_advice(comparison.remedy).strip(' .')} more of times, on both sides.")
    if comparison.shared:
        count = count_things(comparison.shared, "trial")
        lines.append(f"{count}: some processes are the same on both sides, and tell of no difference.")
    if warned := sum(_is_warned(comparison, pair) for pair in comparison.trials):
        lines.append(f"{count_things(warned, 'trial')}: warnings on a side, see gpubench table.")
    return lines


def _is_warned(comparison: Comparison, pair: RowPair) -> bool:
    return any(comparison.rows[row].is_warned for row in pair)


def explain_obstacle(comparison: Comparison) -> str:
    """Why nothing can be compared or checked, and what to do."""
    return OBSTACLES[comparison.obstacle or ""].format(
        a=join_words(comparison.a.kinds or ("none",)),
        b=join_words(comparison.b.kinds or ("none",)),
        apart=join_words([UNLIKE.get(name, name) for name in comparison.apart] or ["each differs"]),
    )


def _describe_regression(comparison: Comparison, limit: str) -> str:
    worse = Counter(_name_figure(change) for _, change in comparison.regressions)
    worse.update(f"{name_ending(comparison.rows[b].status)} in B" for _, b in comparison.broken_trials)
    if worse:
        counts = "; ".join(f"{what} of {count_things(count, 'trial')}" for what, count in worse.items())
        return f"Regression beyond {limit}: {counts}."
    if comparison.is_regression_excluded:
        return f"No regression beyond {limit}: it is excluded everywhere."
    return f"No regression beyond {limit} is shown, and it is not excluded everywhere."


def make_changes_grid(comparison: Comparison, sort: str | None = None) -> Grid:
    """A table whose groups are the figures, a row a trial.

    `sort`: a figure, of which the worst comes first, or a field.
    """
    groups: dict[str, list[GridRow]] = {}
    pairs = sort_trials(comparison, sort)
    for pair, name in ((pair, name) for name in FIGURES for pair in pairs):
        if (change := comparison.trials[pair].get(name)) is None:
            continue
        scale = 1 if change.is_per_epoch else FIGURE_WORDS[change.figure][2]
        texts = (
            name_compared_trial(comparison, pair[1]),
            *(format_significant(value * scale, 4) for value in (change.a, change.b)),
            describe_change(change) + (", regression" if change.is_regression else ""),
            format_figure_change(change),
        )
        row = GridRow(tuple(map(GridCell, texts)), is_warned=_is_warned(comparison, pair))
        groups.setdefault(format_figure_title(change), []).append(row)
    return Grid(
        ("",) * len(HEADINGS),
        HEADINGS,
        (False, True, True, False, True),
        tuple(GridGroup(head, tuple(rows)) for head, rows in groups.items()),
    )


def sort_trials(comparison: Comparison, sort: str | None) -> list[RowPair]:
    """The trials in their order, or by a figure, the worst first, or by a field."""

    def rank(pair: RowPair) -> tuple[bool, Any]:
        if sort in FIGURES:
            change = comparison.trials[pair].get(sort)
            return change is None, change and compute_change_pct(change) * (1 if sort == "top1" else -1)
        value = comparison.rows[pair[1]].fields.get(sort or "")
        is_number = isinstance(value, (int, float))
        return not is_number, value if is_number else str(value)

    return list(comparison.trials) if sort is None else sorted(comparison.trials, key=rank)


def list_uncompared_trials(comparison: Comparison) -> list[list[str]]:
    """What was not compared: for each reason its head, and a line a trial."""
    rows = comparison.rows
    name = partial(name_compared_trial, comparison)
    lists = {
        "Not both ended ok": [
            f"{name(b)} ({name_ending(rows[a].endings)} in A, {name_ending(rows[b].endings)} in B)"
            for a, b in comparison.not_ok
        ],
        "Several match": [f"{name(a[0])} ({len(a)} in A, {len(b)} in B)" for a, b in comparison.several],
        "Only in A": [name(row, comparison.varied_alone) for row in comparison.only_a],
        "Only in B": [name(row, comparison.varied_alone) for row in comparison.only_b],
    }
    parts = []
    for head, names in lists.items():
        if names:
            rest = len(names) - MOST_NAMED
            more = [f"and {rest} more, which --json lists"] if rest > 0 else []
            parts.append([f"{head}: {count_things(len(names), 'trial')}", *names[:MOST_NAMED], *more])
    return parts


# ---- one figure of one trial ----


def _name_figure(change: FigureChange) -> str:
    name = FIGURE_WORDS[change.figure][0]
    return name.replace("image", "epoch") if change.is_per_epoch else name


def format_figure_title(change: FigureChange) -> str:
    """The head of a figure's rows: `Time per image (ms)`."""
    unit = FIGURE_WORDS[change.figure][1]
    return f"{_name_figure(change)} ({unit.removeprefix('m') if change.is_per_epoch else unit})"


def name_direction(change: FigureChange) -> str:
    """What B is: `faster`, `the same`, `unknown`."""
    *_, less, more = FIGURE_WORDS[change.figure]
    return {"less": less, "more": more, "same": "the same", "unknown": "unknown"}[change.direction]


def describe_change(change: FigureChange) -> str:
    """What B is, or why that can't be told: `slower, likely`, `other images`."""
    word = REASONS[change.reason] if change.reason else name_direction(change)
    is_likely = change.verdict is not None and change.verdict.word == "likely"
    return f"{word}, likely" if is_likely else word


def compute_change_pct(change: FigureChange) -> float:
    """In per cent of A's figure; of top-1 in points."""
    return change.b - change.a if change.figure == "top1" else 100 * (change.b / change.a - 1)


def format_figure_change(change: FigureChange) -> str:
    """The change with its interval: `+10.0 (+9.6 to +10.4) %`; of top-1 in points."""
    verdict, is_points = change.verdict, change.figure == "top1"
    text = _format_signed_number(compute_change_pct(change))
    if verdict and verdict.low is not None and verdict.high is not None:
        ends = (end if is_points else 100 * (end - 1) for end in (verdict.low, verdict.high))
        low, high = map(_format_signed_number, ends)
        text += f" ({low} to {high})" if low != high else ""
    return text if is_points else f"{text} %"


def _format_signed_number(value: float) -> str:
    return format_signed(value, 1 if abs(value) < 99.95 else 0)
