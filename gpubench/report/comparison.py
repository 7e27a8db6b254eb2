"""Two sides, compared, as text, Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpubench.analysis.certainty import accuracy
from gpubench.analysis.comparing import (
    FIGURES,
    MEMORY_SOURCE,
    MEMORY_SPREAD,
    Basis,
    Beside,
    FigureBeside,
    FigureName,
    SideBySide,
    Word,
    counted,
)
from gpubench.analysis.matching import DEFINITION, settled_apart, values_of
from gpubench.analysis.over_processes import MARGIN
from gpubench.analysis.settle import further
from gpubench.analysis.settle import sentence as settling
from gpubench.analysis.varied import FOLLOWS, label, values, varied
from gpubench.basics.finite import finite
from gpubench.basics.folding import folded
from gpubench.basics.rounding import half_up
from gpubench.basics.words import WORDS, clean, listed, many, signed
from gpubench.report import layout
from gpubench.report.markdown import escape, grid
from gpubench.schema.cell import cell
from gpubench.schema.row import Row, TableRow

MOST_NAMED = 8
"""Rows of a list that are named one by one; JSON has all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """One of two sides."""

    name: str
    """As its reader calls it."""
    rows: Sequence[TableRow]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """How a figure is told."""

    title: str
    unit: str
    words: Mapping[Word, str]
    digits: int
    scale: float = 1.0


_TOLD: Mapping[FigureName, _Told] = {
    "time": _Told(
        title="Time per image",
        unit="ms",
        words={"less": "faster", "more": "slower", "same": "same", "open": "open"},
        digits=4,
        scale=1000,
    ),
    "memory": _Told(
        title="GPU memory",
        unit="MiB",
        words={"less": "less", "more": "more", "same": "same", "open": "open"},
        digits=0,
    ),
    "energy": _Told(
        title="Energy per image",
        unit="J",
        words={"less": "less", "more": "more", "same": "same", "open": "open"},
        digits=4,
    ),
    "top1": _Told(
        title="Top-1",
        unit="%",
        words={"less": "lower", "more": "higher", "same": "equal", "open": "open"},
        digits=1,
    ),
}
_WHY_OPEN: Mapping[Basis, str] = {
    "one process": "open, one process",
    "too few seeds": "open, few seeds",
    "unlike": "open, unlike",
}
_ENVIRONMENT: Mapping[str, str] = {
    "driver": "driver",
    "cuda": "CUDA",
    "torch": "torch",
    "gpubench": "gpubench",
}


# ---- what is told, whatever the form ----


def fields_of(of: SideBySide) -> tuple[str, ...]:
    """The fields by which its pairs are told apart."""
    rows = [row for one in of.beside for row in (one.a, one.b)]
    rows += [row for pair in of.not_ok for row in pair]
    found = _varied(rows, of)
    if found:
        return found
    matching = of.matching
    rows += [*matching.only_a, *matching.only_b]
    return _varied(rows, of) or ("batch_size",)


def _varied(rows: Sequence[TableRow], of: SideBySide) -> tuple[str, ...]:
    left_out = {*of.matching.set_aside, *of.matching.free, *settled_apart(of.matching.pairs)}
    found = tuple(field for field in varied(rows) if field not in left_out and field != "gpu_ids")
    jobs = [name for name in ("group", "job") if any(row.value(name) for row in rows)]
    return (*jobs, *found)


def heading(a: Side, b: Side, of: SideBySide, field: str = "") -> list[str]:
    """Lines above: both sides, and what is not alike in them. `field`: the one that was asked to differ."""
    said = [f"A: {a.name}; {_on(a)}", f"B: {b.name}; {_on(b)}"]
    unlike = unlike_of(a, b, of, field)
    if both := [f"{name} {first} against {second}" for name, first, second in unlike if first and second]:
        said.append(f"Not alike, A against B: {'; '.join(both)}")
    for side, place in (("A", 1), ("B", 2)):
        if alone := [f"{one[0]} {one[place]}" for one in unlike if one[place] and not one[3 - place]]:
            said.append(f"Told by {side} alone: {'; '.join(alone)}")
    if of.matching.set_aside:
        said.append(
            "No trial of A is one of B in all its fields. Set beside each other are those that differ only in what "
            "is not alike in any of them: that they belong together is a guess."
        )
    return [clean(line) for line in said]


def unlike_of(a: Side, b: Side, of: SideBySide, field: str = "") -> list[tuple[str, str, str]]:
    """What is not alike in both: its name, A's value, B's value."""
    mine, others = ([pair[side] for pair in of.matching.pairs] for side in (0, 1))
    mine, others = mine or list(a.rows), others or list(b.rows)
    found = []
    for name, told in (("GPU", _gpus), ("CPU", _cpus)):
        first, second = (_listed(told(row) for row in rows) for rows in (mine, others))
        if first != second:
            found.append((name, first, second))
    for column, name in _ENVIRONMENT.items():
        first, second = (
            _listed(cell(row.value(column)) for row in _measured(rows)) for rows in (mine, others)
        )
        if first != second:
            found.append((name, first, second))
    for name in of.matching.set_aside:
        if name == DEFINITION:
            found.append(("what the variant does", "one way", "another"))
        elif name != field:
            first, second = (_listed(_value(one) for one in values(rows, name)) for rows in (mine, others))
            if first == second:  # images of one name
                first, second = (
                    _listed(_value(one) for one in values_of(rows, name)) for rows in (mine, others)
                )
            found.append((name, first, second))
    for name in settled_apart(of.matching.pairs):
        first, second = (_listed(_value(one) for one in values(rows, name)) for rows in (mine, others))
        found.append((f"{name} by the machine", first, second))
    return [(clean(name), clean(first), clean(second)) for name, first, second in found]


def answers(of: SideBySide) -> list[str]:
    """The first sentences: how many rows are faster, slower, the same or open."""
    pairs = of.beside
    said = []
    if not pairs:
        said.append("Nothing can be compared: no trial that ended ok in A matches one that did in B.")
    for name in FIGURES:
        found = [one.figures[name] for one in pairs if name in one.figures]
        if found:
            said.append(_counted(name, found, _title(name, pairs)))
    if of.threshold is not None:
        said.append(_judged(of))
    return [clean(one) for one in said]


def _title(name: FigureName, pairs: Sequence[Beside]) -> str:
    return "Epoch time" if _per_epoch(name, pairs) else _TOLD[name].title


def _per_epoch(name: FigureName, pairs: Sequence[Beside]) -> bool:
    """Whether epochs are told of, for in some row nobody knows how many images they have."""
    return name == "time" and any("time" in one.figures and _is_epoch(one) for one in pairs)


def _counted(name: FigureName, found: Sequence[FigureBeside], title: str) -> str:
    told, counts = _TOLD[name], counted(found)
    margin = f"inside {100 * MARGIN:g} %" if name != "top1" else f"inside {accuracy.MARGIN:g} point"
    why = [
        f"{many(number, 'trial')} {words}"
        for basis, words in _NO_TEST.items()
        if (number := sum(one.basis == basis for one in found))
    ]
    rests = f" ({'; '.join(why)})" if why else ""
    changes = [one.change for one in found]
    if counts["open"] == len(found):
        unit = "points" if name == "top1" else "%"
        ends = list(dict.fromkeys(_size(end) for end in (min(changes), max(changes))))
        all_of = f"all {len(found)} trials" if len(found) > 1 else "the only trial"
        seen = f"the change is {' to '.join(ends)} {unit} by the figures as they stand"
        return f"{title}: open in {all_of}; {seen}{rests}."
    parts = [
        f"{f'the same {margin}' if word == 'same' else told.words[word]} in {counts[word]}"
        for word in _WORDS
        if counts[word]
    ]
    return f"{title}: of {many(len(found), 'trial')} B is {', '.join(parts)}{rests}."


_WORDS: tuple[Word, ...] = ("less", "more", "same", "open")
_NO_TEST: Mapping[Basis, str] = {
    "one process": "of one process on a side, of which nothing is concluded",
    "noise": "by the machine's own noise, borrowed for one process",
    "too few seeds": "with fewer than three seeds on a side",
    "unlike": "whose figures are not of one kind",
}


_IN_SENTENCE: Mapping[FigureName, str] = {
    "time": "time",
    "memory": "GPU memory",
    "energy": "energy",
    "top1": "top-1",
}


GUESSED = "these pairs are a guess, so they can't fail a check"


def _judged(of: SideBySide) -> str:
    limit = f"{100 * (of.threshold or 0):g} %"
    if of.guessed:
        return f"Nothing was checked for a regression beyond {limit}: {GUESSED}."
    if not of.checked:
        return f"Nothing was checked for a regression beyond {limit}: no time, memory or energy could be compared."
    bad = [
        f"{_name(one, of)}: {_IN_SENTENCE[name]} {_change(one.figures[name], name)}"
        for one, name in of.regressions
    ]
    bad += [f"{_label(a, fields_of(of))}: {_ended(b)} in B" for a, b in of.broken]
    if bad:
        return f"Regression beyond {limit}: {'; '.join(bad)}."
    if of.undecided:
        return f"No regression beyond {limit} is shown, and not everywhere is one excluded."
    return f"No regression beyond {limit}: everywhere one is excluded."


def notes(of: SideBySide) -> list[str]:
    """Below: what was not compared, what answers rest on, and what may be wrong."""
    fields = fields_of(of)
    matching = of.matching
    said = []
    named = [f"{_label(a, fields)} ({_ended(a)} in A, {_ended(b)} in B)" for a, b in of.not_ok]
    said += _some(f"Not compared, for not both ended ok: {many(len(named), 'trial')}", named)
    named = [f"{_label(one.a[0], fields)} ({len(one.a)} in A, {len(one.b)} in B)" for one in matching.several]
    said += _some(f"Not compared, for several match: {many(len(named), 'place')}", named)
    for name, rows in (("A", matching.only_a), ("B", matching.only_b)):
        own = _named_fields(rows, fields)
        said += _some(f"Only in {name}: {many(len(rows), 'trial')}", [_label(row, own) for row in rows])
    said += _rests(of)
    return [clean(one) for one in said]


def _rests(of: SideBySide) -> list[str]:
    said = []
    every = [(name, found) for one in of.beside for name, found in one.figures.items()]
    if of.family:
        said.append(
            "Changes are of B against A; in brackets are 95 % intervals over processes. Answers are corrected for "
            f"{many(of.family, 'claim')} together, so one may be open though its interval leaves out 0."
        )
    said += _would_settle(of)
    if any(found.basis == "exact" for _, found in every):
        said.append(
            f"Memory is taken for exact: processes of one configuration differed by {100 * MEMORY_SPREAD:g} % at most "
            "where it was measured, on one GPU, by the driver's figure of the trial's own processes "
            f"({MEMORY_SOURCE})."
            + (" No more than that is no regression." if of.threshold is not None else "")
        )
    for why in dict.fromkeys(found.why for _, found in every if found.why):
        names = dict.fromkeys(_TOLD[name].title for name, found in every if found.why == why)
        said.append(
            f"{listed(list(names))}: {why}; the change is plain arithmetic, and says nothing by itself."
        )
    shared = sum(not _attempts(one.a).isdisjoint(_attempts(one.b)) for one in of.beside)
    if shared:
        said.append(
            f"{many(shared, 'trial')} rest on some of the same attempts on both sides: what these have in common "
            "tells nothing of a difference."
        )
    doubted = sum(bool(one.a.doubts or one.b.doubts) for one in of.beside)
    if doubted:
        said.append(
            f"{DOUBTED} marks {many(doubted, 'trial')} with doubts on a side; gpubench table says which."
        )
    return said


def _attempts(row: TableRow) -> set[tuple[object, ...]]:
    """What a row was measured in, so that one knows it again in another folder."""
    runs = row.runs or [row]
    return {(run.trial_id, run.round, run.started_at, run.host, run.epoch_time_s) for run in runs}


def _would_settle(of: SideBySide) -> list[str]:
    """What it would take to tell more of times that are open."""
    times = [(one, one.figures["time"]) for one in of.beside if "time" in one.figures]
    opened = [
        found.interval
        for _, found in times
        if found.word == "open" and found.interval and found.basis != "noise"
    ]
    said = []
    if opened:
        how = replace(further([row for one, _ in times for row in (one.a, one.b)]), round_s=None)
        said.append(f"Of times that are open: {settling(opened, of.family, how)}, on both sides.")
    if any(found.basis == "one process" for _, found in times):
        said.append("Of rows of one process gpubench sweep … --rounds 3, on both sides, would tell more.")
    return said


DOUBTED = "!"
INDENT = "  "


# ---- forms ----


def text(
    a: Side, b: Side, of: SideBySide, *, field: str = "", sort: str = "", width: int | None = None
) -> str:
    """As plain text. `width`: of the terminal, where there is one: sentences wrap there."""
    lines = [*heading(a, b, of, field), "", *answers(of)]
    screen = width or 80
    blocks = ["\n".join(_folded(lines, width))]
    for name, headings, cells, right in _grids(of, sort):
        head, body = layout.padded(headings, cells, right)
        widths = [len(one) for one in head[0]]
        keys = list(range(len(fields_of(of))))
        pieces = [[place] for place in range(len(keys), len(widths))]
        grid_lines = [name]
        for block in layout.split(keys, keys, pieces, widths, max(screen, 40)):
            rule = ["-" * one for one in widths]
            grid_lines += [layout.GAP.join(row[n] for n in block).rstrip() for row in (*head, rule, *body)]
        blocks.append("\n".join(grid_lines))
    if below := notes(of):
        blocks.append("\n".join(_folded(below, width)))
    return "\n\n".join(blocks) + "\n"


def as_markdown(a: Side, b: Side, of: SideBySide, *, field: str = "", sort: str = "") -> str:
    """As Markdown."""
    blocks = [f"## {escape(a.name)} and {escape(b.name)}"]
    blocks.append("  \n".join(map(escape, heading(a, b, of, field))))
    blocks.append("\n".join(f"- **{escape(one)}**" for one in answers(of)))
    for name, headings, cells, right in _grids(of, sort):
        marks = ["---:" if on_the_right else ":---" for on_the_right in right]
        blocks.append(f"### {escape(name)}\n\n{grid([headings, marks, *cells])}")
    blocks.append(
        "\n".join(f"{INDENT if one.startswith(INDENT) else ''}- {escape(one.strip())}" for one in notes(of))
    )
    return "\n\n".join(block for block in blocks if block) + "\n"


def as_json(a: Side, b: Side, of: SideBySide, *, field: str = "") -> dict[str, Any]:
    """As one object of JSON."""
    matching = of.matching
    return {
        "a": {"name": a.name, **_environment(a)},
        "b": {"name": b.name, **_environment(b)},
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


# ---- parts ----


def _grids(of: SideBySide, sort: str) -> list[tuple[str, list[str], list[list[str]], list[bool]]]:
    fields = fields_of(of)
    found = []
    for name in FIGURES:
        pairs = [one for one in _sorted(of.beside, fields, sort) if name in one.figures]
        if not pairs:
            continue
        told = _TOLD[name]
        per_epoch = _per_epoch(name, pairs)
        unit = "s/epoch" if per_epoch else told.unit
        headings = [*fields, f"A {unit}", f"B {unit}", "change", "B is"]
        cells = []
        for one in pairs:
            figure = one.figures[name]
            scale = _epoch_scale(one) if per_epoch else (told.scale, told.scale)
            mark = [f" {DOUBTED}" if row.doubts else "" for row in (one.a, one.b)]
            cells.append(
                [
                    *(clean(cell(one.b.value(field))) for field in fields),
                    f"{_number(figure.a * scale[0], told.digits)}{mark[0]}",
                    f"{_number(figure.b * scale[1], told.digits)}{mark[1]}",
                    _change(figure, name),
                    _word(figure, told),
                ]
            )
        right = [_is_number(pairs, field) for field in fields]
        found.append((_title(name, pairs), headings, cells, [*right, True, True, True, False]))
    return found


def _is_epoch(one: Beside) -> bool:
    return not (one.a.images_per_epoch and one.b.images_per_epoch)


def _epoch_scale(one: Beside) -> tuple[float, float]:
    """What makes epoch times of times per image, where only some pairs know their images."""
    if _is_epoch(one):
        return 1.0, 1.0
    return float(one.a.images_per_epoch or 1), float(one.b.images_per_epoch or 1)


def _sorted(pairs: Sequence[Beside], fields: Sequence[str], sort: str) -> list[Beside]:
    in_place = sorted(pairs, key=lambda one: [_sort_key(one.b.value(field)) for field in fields])
    if not sort:
        return in_place
    if sort in FIGURES:  # the worst first
        sign = -1 if sort == "top1" else 1
        return sorted(
            in_place,
            key=lambda one: -sign * one.figures[sort].change if sort in one.figures else math.inf,
        )
    return sorted(in_place, key=lambda one: _sort_key(one.b.value(sort)))


def _sort_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, (int, float)) else (2, cell(value))


def _word(found: FigureBeside, told: _Told) -> str:
    word = _WHY_OPEN.get(found.basis, told.words[found.word])
    word += " (borrowed)" if found.basis == "noise" else ""
    return f"{word}, regression" if found.beyond else word


def _change(found: FigureBeside, name: FigureName) -> str:
    unit = "points" if name == "top1" else "%"
    said = _size(found.change)
    if found.low is None or found.high is None:
        return f"{said} {unit}"
    return f"{said} ({_size(found.low)} to {_size(found.high)}) {unit}"


def _size(value: float) -> str:
    if value > 10_000:
        return ">+10,000"
    return signed(value, 1 if abs(value) < 99.95 else 0)


def _number(value: float, digits: int) -> str:
    """With as many digits as leave four that tell."""
    if digits and value:
        digits = max(0, min(digits, 3 - math.floor(math.log10(abs(value)))))
    return f"{half_up(value, digits):,}"


def _name(one: Beside, of: SideBySide) -> str:
    return _label(one.b, fields_of(of))


def _ended(row: TableRow) -> str:
    return WORDS.get(row.status, row.endings or row.status)


def _some(title: str, names: Sequence[str]) -> list[str]:
    """A line that says what is listed, and a line for each of the first; nothing for none."""
    if not names:
        return []
    more = len(names) - MOST_NAMED
    rest = [f"{INDENT}and {more} more, which --json lists"] if more > 0 else []
    return [f"{title}:", *(f"{INDENT}{name}" for name in names[:MOST_NAMED]), *rest]


def _label(row: TableRow, fields: Sequence[str]) -> str:
    return label(row, fields) or "the only one"


def _named_fields(rows: Sequence[TableRow], fields: Sequence[str]) -> list[str]:
    own = [field for field in varied(rows) if field not in FOLLOWS and field != "gpu_ids"]
    jobs = [name for name in ("group", "job") if any(row.value(name) for row in rows)]
    return list(dict.fromkeys([*jobs, *fields, *own]))


def _is_number(pairs: Sequence[Beside], field: str) -> bool:
    found = [one.b.value(field) for one in pairs]
    return all(value is None or isinstance(value, (int, float)) for value in found)


def _measured(rows: Sequence[TableRow]) -> list[TableRow]:
    return [row for row in rows if row.status not in ("missing", "skipped")] or list(rows)


def _on(side: Side) -> str:
    rows = _measured(side.rows)
    hardware = [_listed(told(row) for row in rows) for told in (_gpus, _cpus)]
    parts = [many(len(side.rows), "trial"), *filter(None, hardware)]
    for column, name in _ENVIRONMENT.items():
        found = _listed(cell(row.value(column)) for row in rows)
        parts += [f"{name} {found}"] if found else []
    sources = sorted({row.source for row in rows} - {"measured"})
    parts += [f"taken from a {source}" for source in sources]
    return "; ".join(parts)


def _environment(side: Side) -> dict[str, Any]:
    rows = _measured(side.rows)
    return {
        name: values_ if len(values_) != 1 else values_[0]
        for name in ("host", "gpu_name", "gpu_count", "cpu_name", "cpu_count", *_ENVIRONMENT)
        for values_ in [list(dict.fromkeys(row.value(name) for row in rows if row.value(name) is not None))]
    }


def _gpus(row: Row) -> str:
    if not row.gpu_name or row.device == "cpu":
        return ""
    return f"{row.gpu_count} × {row.gpu_name}" if row.gpu_count else str(row.gpu_name)


def _cpus(row: Row) -> str:
    count = f" ({many(row.cpu_count, 'CPU')})" if row.cpu_count else ""
    return f"{row.cpu_name}{count}" if row.cpu_name else ""


def _listed(texts: Any) -> str:
    found = list(dict.fromkeys(one for one in texts if one))
    # Where some rows tell how many and others don't, those that do tell both.
    return " and ".join(one for one in found if not any(other.endswith(f" × {one}") for other in found))


def _value(value: Any) -> str:
    return cell(value)


def _json_row(row: TableRow) -> dict[str, Any]:
    fields = {name: value for name, value in row.fields.items() if value is not None}
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
        "answer": _TOLD[name].words[found.word],
        "rests_on": found.basis,
        "regression": found.beyond,
    }


def _folded(lines: Sequence[str], width: int | None) -> list[str]:
    """Lines of a terminal; those of a list stay indented."""
    found = []
    for line in lines:
        found += folded(line.strip(), width, indent=INDENT if line.startswith(INDENT) else "")
    return found
