"""Descriptions as plain text, as wide as a terminal: without matplotlib, without control codes."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpubench.basics.words import listed, number
from gpubench.plot import style
from gpubench.plot.description import (
    BARS,
    ENDINGS,
    FILLED,
    GO_ON,
    MARKED_DOUBTS,
    NUMBERS,
    SHADED,
    SOME_DOUBTS,
    Panel,
    Picture,
    PlottedAxis,
    PlottedPoint,
    PlottedSeries,
)

HEIGHT = 12
"""Lines of one panel."""
NARROWEST, WIDEST = 40, 160
"""Columns: in fewer nothing can be told apart, and more don't make it clearer."""
NAMES = 0.4
"""The share of the width that names of bars may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Signs:
    """What is drawn with."""

    markers: str
    line: str
    bars: str
    ideal: str
    ended: str
    rule: str
    edge: str
    corner: str


BLOCKS = Signs(
    markers="".join(one.sign for one in style.SHAPES),
    bars="".join(one.sign for one in style.HATCHES),
    line="·", ideal="-", ended="×", rule="─", edge="│", corner="└",
)  # fmt: skip
ASCII = Signs(
    markers="".join(one.ascii for one in style.SHAPES),
    bars="".join(one.ascii for one in style.HATCHES),
    line=".", ideal="-", ended="X", rule="-", edge="|", corner="+",
)  # fmt: skip


def signs_for(encoding: str | None) -> Signs:
    """Those that an encoding has."""
    try:
        "".join(_every(BLOCKS)).encode(encoding or "ascii")
    except (LookupError, UnicodeEncodeError):
        return ASCII
    return BLOCKS


def _every(signs: Signs) -> list[str]:
    """All that is drawn with."""
    return [
        signs.markers,
        signs.line,
        signs.bars,
        signs.ideal,
        signs.ended,
        signs.rule,
        signs.edge,
        signs.corner,
    ]


def text(picture: Picture, width: int, signs: Signs = BLOCKS) -> str:
    """The picture in so many columns, its caption below."""
    width = max(NARROWEST, min(width, WIDEST))
    draw = {"lines": _lines, "bars": _bars, "stacked": _stacked, "cells": _cells}[picture.panels[0].kind]
    lines = textwrap.wrap(picture.title, width)
    lines += _legend(picture, width, signs)
    for panel in picture.panels:
        lines += ["", *draw(panel, width, signs)]
    lines.append("")
    for said in _caption(picture):
        lines += textwrap.wrap(said, width)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _caption(picture: Picture) -> list[str]:
    """What stands below it, without the sentences on marks that text doesn't have."""
    first, *others = picture.caption or ("",)
    unseen = "|".join(re.escape(start) for start in (BARS, SHADED, FILLED, NUMBERS))
    first = first.replace(GO_ON, "")
    first = re.sub(rf"(^|(?<=\. ))(?:{unseen})[^.]*\.( |$)", "", first).rstrip()
    if picture.panels[0].kind != "bars":
        first = first.replace(MARKED_DOUBTS, SOME_DOUBTS, 1)
    return [first, *others]


def _legend(picture: Picture, width: int, signs: Signs) -> list[str]:
    kind = picture.panels[0].kind
    found = {
        one.name: _sign(one, signs) if kind == "lines" else _bar_sign(one, signs) for one in picture.entries
    }
    if not found:
        return []
    title = f"{picture.legend}: " if picture.legend else ""
    return textwrap.wrap(title + "   ".join(f"{sign} {name}" for name, sign in found.items()), width)


def _sign(one: PlottedSeries, signs: Signs) -> str:
    return signs.ideal if one.role != "measured" else style.of(signs.markers, one.look)


def _bar_sign(one: PlottedSeries, signs: Signs) -> str:
    return signs.ended if one.role == "predicted" else style.of(signs.bars, one.look)


# ---- lines ----


def _lines(panel: Panel, width: int, signs: Signs) -> list[str]:
    x_of, y_of = _scale(panel.x, [p.x for one in panel.series for p in one.points]), _y_scale(panel)
    top, bottom = y_of.high, y_of.low
    labels = {0: _label(top), HEIGHT // 2: _label(y_of.at(0.5)), HEIGHT - 1: _label(bottom)}
    left = max(len(label) for label in labels.values())
    columns = width - left - 3
    grid = [[" "] * columns for _ in range(HEIGHT)]

    def place(p: PlottedPoint) -> tuple[int, int]:
        row = (HEIGHT - 1) - round(y_of.share(p.y or 0) * (HEIGHT - 1))
        return round(x_of.share(p.x) * (columns - 1)), max(0, min(HEIGHT - 1, row))

    for one in panel.series:
        sign = signs.line if one.role == "measured" else signs.ideal
        for before, after in zip(one.points, one.points[1:], strict=False):
            if one.joined and before.y is not None and after.y is not None:
                _stroke(grid, place(before), place(after), sign)
    top_most: dict[tuple[int, int], str] = {}
    for one in panel.series:
        for p in one.points:
            if p.y is not None and one.role == "measured":
                column, row = place(p)
                grid[row][column] = _sign(one, signs) if one.marked else signs.line
                top_most[column, row] = one.name
    for one in panel.series:
        for p in one.points:
            if p.y is None and p.status in ENDINGS:
                _write(grid[0], round(x_of.share(p.x) * (columns - 1)), f"{signs.ended} {ENDINGS[p.status]}")
    made = [f"{panel.title}: {panel.y.title}" if panel.title else panel.y.title]
    for row, cells in enumerate(grid):
        made.append(f"{labels.get(row, ''):>{left}} {signs.edge}{''.join(cells)}")
    made.append(f"{'':>{left}} {signs.corner}{signs.rule * columns}")
    return [
        *made,
        f"{'':>{left}}  {_ticks(panel, x_of, columns)}",
        f"{'':>{left}}  {panel.x.title:^{columns}}",
        *_covered(panel, top_most, place, width),
    ]


def _covered(
    panel: Panel,
    top_most: Mapping[tuple[int, int], str],
    place: Callable[[PlottedPoint], tuple[int, int]],
    width: int,
) -> list[str]:
    """Which series nobody sees, because each of their points lies under one of another series."""
    said = []
    for one in panel.series:
        there = [top_most[place(p)] for p in one.points if p.y is not None and one.role == "measured"]
        if there and one.name not in there:
            said.append(f"{one.name} lies under {listed(list(dict.fromkeys(there)))}")
    return textwrap.wrap(f"Not seen here: {'; '.join(said)}.", width) if said else []


@dataclass(frozen=True, kw_only=True, slots=True)
class _Scale:
    low: float
    high: float
    logarithm: bool

    def share(self, value: float) -> float:
        """How far along the axis a value lies, from 0 to 1."""
        if self.logarithm:
            if value <= 0 or self.high <= self.low:
                return 0.0
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low) if self.high > self.low else 0.0

    def at(self, share: float) -> float:
        """The value that lies there."""
        if self.logarithm:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)


def _scale(axis: PlottedAxis, values: Sequence[float]) -> _Scale:
    logarithm = axis.steps != "linear"
    low = 0.0 if axis.from_zero and not logarithm else min(values)
    return _Scale(
        low=low,
        high=max([*values, *([axis.top] if axis.top and axis.from_zero else [])]),
        logarithm=logarithm,
    )


def _y_scale(panel: Panel) -> _Scale:
    values = [p.y for one in panel.series for p in one.points if p.y is not None]
    return _scale(panel.y, values or [1.0])


def _stroke(grid: list[list[str]], one: tuple[int, int], other: tuple[int, int], sign: str) -> None:
    (x0, y0), (x1, y1) = one, other
    steps = max(abs(x1 - x0), abs(y1 - y0), 1)
    for step in range(0, steps + 1, 2):  # every second place: a dotted line
        x, y = round(x0 + (x1 - x0) * step / steps), round(y0 + (y1 - y0) * step / steps)
        if grid[y][x] == " ":
            grid[y][x] = sign


def _write(cells: list[str], centre: int, words: str) -> None:
    first = max(0, min(len(cells) - len(words), centre - len(words) // 2))
    cells[first : first + len(words)] = list(words)


def _ticks(panel: Panel, scale: _Scale, columns: int) -> str:
    cells = [" "] * columns
    end = -2
    for value in panel.x.ticks or [scale.at(share) for share in (0.0, 0.25, 0.5, 0.75, 1.0)]:
        words = f"{value:.4g}"
        first = max(0, min(columns - len(words), round(scale.share(value) * (columns - 1)) - len(words) // 2))
        if first > end + 1:
            cells[first : first + len(words)] = list(words)
            end = first + len(words)
    return "".join(cells)


def _label(value: float) -> str:
    digits = 0 if abs(value) >= 100 or value == round(value) else 1 if abs(value) >= 10 else 2
    return number(value, digits)


# ---- bars ----


def _bars(panel: Panel, width: int, signs: Signs) -> list[str]:
    left = min(int(width * NAMES), max(len(part) for place in panel.places for part in place.split("\n")))
    values = [p.y for one in panel.series for p in one.points if p.y is not None]
    most = max([panel.line_at or 0.0, panel.y.top or 0.0, *values]) or 1.0
    room = width - left - 12 - (10 if any(one.role == "predicted" for one in panel.series) else 0)
    made = [panel.y.title]
    for place, name in enumerate(panel.places):
        names = [line for part in name.split("\n") for line in textwrap.wrap(part, left) or [""]]
        mine = [
            (one, p) for one in panel.series for p in one.points if p.x == place and one.role == "measured"
        ]
        foreseen = next(
            (p.y for one in panel.series for p in one.points if p.x == place and one.role == "predicted"),
            None,
        )
        for line in range(max(len(names), len(mine))):
            told = names[line] if line < len(names) else ""
            bar = ""
            if line < len(mine):
                one, p = mine[line]
                bar = ENDINGS.get(p.status, p.status) if p.y is None else _one_bar(one, p, most, room, signs)
                bar = "" if p.y is None and p.status == "ok" else bar
                bar += f"   {signs.ended} {_label(foreseen)}" if foreseen is not None else ""
            made.append(f"{told:<{left}} {bar}")
    return made


def _one_bar(one: PlottedSeries, p: PlottedPoint, most: float, room: int, signs: Signs) -> str:
    value = p.y or 0.0
    return f"{_bar_sign(one, signs) * max(1, round(value / most * room))} {_label(value)}{' !' if p.doubtful else ''}"


def _stacked(panel: Panel, width: int, signs: Signs) -> list[str]:
    left = min(int(width * NAMES), max(len(place) for place in panel.places))
    sums = [
        sum(p.y or 0 for one in panel.series for p in one.points if p.x == n)
        for n in range(len(panel.places))
    ]
    most, room = max(sums) or 1.0, width - left - 10
    made = [panel.y.title]
    for place, name in enumerate(panel.places):
        parts = [(one, p.y or 0.0) for one in panel.series for p in one.points if p.x == place]
        bar = "".join(_bar_sign(one, signs) * round(value / most * room) for one, value in parts)
        names = textwrap.wrap(name, left) or [""]
        made.append(f"{names[0]:<{left}} {bar} {_label(sums[place])}")
        made += names[1:]
    return made


def _cells(panel: Panel, width: int, signs: Signs) -> list[str]:  # noqa: ARG001 - figures need no signs
    names = [f"{place + 1}: {name}" for place, name in enumerate(panel.places)]
    left = min(int(width * NAMES), max(len(name) for name in names))
    wide = max(6, max(len(cell.text) for cell in panel.cells) + 2)
    made = [" " * left + "".join(f"{place + 1:>{wide}}" for place in range(len(names)))]
    for row, name in enumerate(names):
        told = {cell.column: cell.text for cell in panel.cells if cell.row == row}
        made.append(
            f"{name[:left]:<{left}}" + "".join(f"{told.get(n, ''):>{wide}}" for n in range(len(names)))
        )
    return [*made, f"{'':<{left}}  {panel.x.title}"]
