"""The first sentences: in how many rows B is faster, slower, the same or open, and whether it regressed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.analysis.certainty import accuracy
from gpubench.analysis.comparing import FIGURES, Basis, FigureBeside, FigureName, SideBySide, Word, counted
from gpubench.analysis.over_processes import MARGIN
from gpubench.basics.words import clean, many
from gpubench.report.comparison.figure_words import TOLD, change, size, title
from gpubench.report.comparison.trial_names import ended, fields_of, trial_name
from gpubench.report.sources import why_empty


def answers(of: SideBySide) -> list[str]:
    """The first sentences: how many rows are faster, slower, the same or open."""
    pairs = of.beside
    said = []
    if not pairs:
        said.append("Nothing can be compared: no trial that ended ok in A matches one that did in B.")
    for name in FIGURES:
        found = [one.figures[name] for one in pairs if name in one.figures]
        if found:
            said.append(_counted(name, found, title(name, pairs)))
    said += [_lacking(of, name) for name in of.lacking]
    if of.threshold is not None:
        said.append(_judged(of))
    return [clean(one) for one in said]


def _counted(name: FigureName, found: Sequence[FigureBeside], title: str) -> str:
    told, counts = TOLD[name], counted(found)
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
        ends = list(dict.fromkeys(size(end) for end in (min(changes), max(changes))))
        all_of = f"all {len(found)} trials" if len(found) > 1 else "the only trial"
        seen = f"the change is {' to '.join(ends)} {unit} by the figures as they stand"
        return f"{title}: open in {all_of}; {seen}{rests}."
    parts = [
        f"{f'the same {margin}' if word == 'same' else told.words[word]} in {counts[word]}"
        for word in _WORDS
        if counts[word]
    ]
    return f"{title}: of {many(len(found), 'trial')} B is {', '.join(parts)}{rests}."


def _lacking(of: SideBySide, name: FigureName) -> str:
    """That no trial has a figure on both sides, and why, by the records."""
    column = _COLUMN[name]
    why: dict[str, list[str]] = {}
    for side in ("A", "B"):
        empty = [
            row for one in of.beside for row in [one.a if side == "A" else one.b] if row.value(column) is None
        ]
        for said in dict.fromkeys(why_empty(row, column) for row in empty):
            why.setdefault(said, []).append(side)
    reasons = [f"{said} ({' and '.join(sides)})" if said else "" for said, sides in why.items()]
    told = "; ".join(filter(None, reasons))
    return f"{TOLD[name].title}: no trial has it on both sides{f': {told}' if told else ''}."


_COLUMN: Mapping[FigureName, str] = {
    "time": "epoch_time_s",
    "memory": "gpu_mem_mib",
    "energy": "energy_j",
    "top1": "top1_pct",
}
"""Of the figures of a row, that which each rests on."""

_WORDS: tuple[Word, ...] = ("less", "more", "same", "open")

_NO_TEST: Mapping[Basis, str] = {
    "one process": "of one process on a side, of which nothing is concluded",
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
        f"{trial_name(one.b, fields_of(of))}: {_IN_SENTENCE[name]} {change(one.figures[name], name)}"
        for one, name in of.regressions
    ]
    bad += [f"{trial_name(a, fields_of(of))}: {ended(b)} in B" for a, b in of.broken]
    if bad:
        return f"Regression beyond {limit}: {'; '.join(bad)}."
    if of.undecided:
        return f"No regression beyond {limit} is shown, and not everywhere is one excluded."
    return f"No regression beyond {limit}: everywhere one is excluded."
