"""The rows of two sides beside each other: a grid a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.comparing import FIGURES, Beside, SideBySide
from gpubench.basics.rounding import half_up
from gpubench.basics.words import clean
from gpubench.report.comparison.figure_words import TOLD, answer_word, change, is_epoch, per_epoch, title
from gpubench.report.comparison.notes import DOUBTED
from gpubench.report.comparison.trial_names import fields_of
from gpubench.schema.cell import cell


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureGrid:
    """A figure of all pairs that have it."""

    title: str
    headings: Sequence[str]
    cells: Sequence[Sequence[str]]
    right: Sequence[bool]
    """Which columns stand on the right."""


def grids(of: SideBySide, sort: str) -> list[FigureGrid]:
    """One for each figure that some pair has."""
    fields = fields_of(of)
    found = []
    for name in FIGURES:
        pairs = [one for one in _sorted(of.beside, fields, sort) if name in one.figures]
        if not pairs:
            continue
        told = TOLD[name]
        in_epochs = per_epoch(name, pairs)
        unit = "s/epoch" if in_epochs else told.unit
        headings = [*fields, f"A {unit}", f"B {unit}", "change", "B is"]
        cells = []
        for one in pairs:
            figure = one.figures[name]
            scale = _epoch_scale(one) if in_epochs else (told.scale, told.scale)
            mark = [f" {DOUBTED}" if row.doubts else "" for row in (one.a, one.b)]
            cells.append(
                [
                    *(clean(cell(one.b.value(field))) for field in fields),
                    f"{_number(figure.a * scale[0], told.digits)}{mark[0]}",
                    f"{_number(figure.b * scale[1], told.digits)}{mark[1]}",
                    change(figure, name),
                    answer_word(figure, told),
                ]
            )
        right = [_is_number(pairs, field) for field in fields]
        found.append(
            FigureGrid(
                title=title(name, pairs),
                headings=headings,
                cells=cells,
                right=[*right, True, True, True, False],
            )
        )
    return found


def _epoch_scale(one: Beside) -> tuple[float, float]:
    """What makes epoch times of times per image, where only some pairs know their images."""
    if is_epoch(one):
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


def _number(value: float, digits: int) -> str:
    """With as many digits as leave four that tell."""
    if digits and value:
        digits = max(0, min(digits, 3 - math.floor(math.log10(abs(value)))))
    return f"{half_up(value, digits):,}"


def _is_number(pairs: Sequence[Beside], field: str) -> bool:
    found = [one.b.value(field) for one in pairs]
    return all(value is None or isinstance(value, (int, float)) for value in found)
