"""What a picture shows, before anybody draws it: on paper, in a terminal, on a web page. Frozen, without matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["lines", "bars", "stacked", "cells"]
"""`lines`: points over an axis of numbers, joined or not. `bars`: one beside the other for each place. `stacked`: one
on the other. `cells`: a matrix."""
Steps = Literal["linear", "log2", "log10"]
ENDINGS: Mapping[str, str] = {
    "oom": "oom",
    "failed": "failed",
    "timeout": "timeout",
    "interrupted": "stopped",
}
"""Endings of rows without figures that are marked in a picture, and with which words."""
BARS, SHADED, FILLED, NUMBERS = "Bars: ", "Shaded: ", "Filled: ", "Numbers: "
"""How sentences of captions begin that explain a mark. No full stop stands inside them: who has no such mark leaves
them out up to their end."""
MARKED_DOUBTS, SOME_DOUBTS = "!: doubts", "Some rows have doubts"
"""How the sentence on doubts begins where points are marked, and for whoever has no such mark."""
GO_ON = "Intervals that leave the picture go on."
"""Said where an axis ends before an interval does."""
DOUBTED = "!"
"""Marks what has doubts."""
IN_TABLE = "docs/measuring.md says what they mean."
"""How that sentence ends where the doubts themselves stand elsewhere."""
ALL_IN_TABLE = "gpubench table has them all, and --where chooses."
"""Where rows stand that a picture has no room for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlottedAxis:
    """One axis of numbers; of bars, that of their lengths."""

    title: str
    """With the unit: `epoch time (s)`."""
    steps: Steps = "linear"
    from_zero: bool = True
    """Whether it begins at 0; never where its steps are of a logarithm."""
    ticks: tuple[float, ...] = ()
    """Where it has labels; empty: where whoever draws it likes."""
    top: float | None = None
    """Where it ends at least."""

    @property
    def measure(self) -> str:
        """What its figures are of, without the unit: `epoch time`."""
        return self.title.partition(" (")[0]

    @property
    def unit(self) -> str:
        """Of its figures: `s`; empty where they have none."""
        return self.title.partition(" (")[2].removesuffix(")").removesuffix("log").removesuffix(", ")


@dataclass(frozen=True, kw_only=True, slots=True)
class PlottedPoint:
    """A figure of one row."""

    name: str
    """Which row: `batch_size=64 strategy=ddp`."""
    x: float
    """Of bars, the number of its place."""
    y: float | None
    """None: no figure. A line has a gap there, for it is never joined over it."""
    low: float | None = None
    """Lower end of the 95 % interval of y, over processes; None: there is none."""
    high: float | None = None
    x_low: float | None = None
    """Likewise of x."""
    x_high: float | None = None
    status: str = "ok"
    """How the row ended. One that ran out of memory is marked where its curve ends."""
    doubtful: bool = False
    """Whether the row has doubts, which the table marks with `!`."""
    label: str = ""
    """What stands beside it; empty for nothing."""
    written: str = ""
    """y as the table writes it; empty where it doesn't."""
    best: bool = False
    """Whether it is on the Pareto front: no other point is better both ways."""
    told: tuple[str, ...] = ()
    """What is told of it where somebody points at it, a line a fact; empty: nobody can."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlottedSeries:
    """Points that belong together, with one entry in the legend."""

    name: str
    points: tuple[PlottedPoint, ...]
    look: int = 0
    """The number of its colour, marker, line and hatch."""
    role: Literal["measured", "ideal", "target", "predicted"] = "measured"
    """`ideal` and `target`: a line to compare with, without marks. `predicted`: a mark beside a bar."""
    joined: bool = True
    """Whether a line runs through its points."""
    marked: bool = True
    """Whether its points have markers: not where there are hundreds of them."""

    @property
    def wholly_doubtful(self) -> bool:
        """Whether each of several figures has doubts."""
        measured = [p for p in self.points if p.y is not None]
        return len(measured) > 1 and all(p.doubtful for p in measured)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shade:
    """A part of the x axis that is shaded."""

    low: float
    high: float
    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One cell of a matrix."""

    row: int
    column: int
    value: float | None
    text: str
    """What stands in it: the value, or how it ended."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """One pair of axes."""

    kind: Kind
    x: PlottedAxis
    y: PlottedAxis
    """Of bars, `y` is the axis along which they lie; `x` has no scale, its places are `places`."""
    series: tuple[PlottedSeries, ...] = ()
    places: tuple[str, ...] = ()
    """Of bars: what each place is called. Of a matrix: what its rows and columns are called."""
    spans: tuple[Shade, ...] = ()
    cells: tuple[Cell, ...] = ()
    title: str = ""
    """Which rows it is of, where panels are of different ones."""
    line_at: float | None = None
    """A figure that all are compared with: a slowdown of 1, say."""

    @property
    def has_front(self) -> bool:
        """Whether some of its points are on a Pareto front: then all others are hollow, whatever their series."""
        return any(p.best for one in self.series for p in one.points)


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A whole picture."""

    name: str
    """That of its kind, a key of PICTURES."""
    part: str = ""
    """Which one, where a table gives several of its kind."""
    experiment: str
    of: str
    """What stands over the table that it is of."""
    shows: str
    """In a few words, as they go on after that: `epoch time over global batch size`."""
    panels: tuple[Panel, ...]
    """All of one kind. Lines stand below each other and share the x axis; bars stand beside each other and share their
    places."""
    legend: str = ""
    """What the series differ in, as a title of the legend; empty: their names say it."""
    caption: tuple[str, ...]
    """Paragraphs below: what is drawn and what its marks mean; what all rows have, on which hardware, with which
    versions. A page that tells the last elsewhere shows the first one."""

    @property
    def title(self) -> str:
        """What stands over it by itself."""
        return f"{self.of}: {self.shows}"

    @property
    def all_doubtful(self) -> bool:
        """Whether each figure's row has doubts: then the caption says so, and marks would tell nothing."""
        shown = [
            p for panel in self.panels for one in panel.series for p in one.points if one.role == "measured"
        ]
        return all(p.doubtful for p in shown if p.y is not None)

    @property
    def entries(self) -> tuple[PlottedSeries, ...]:
        """The entries of the legend, each name once; none where there is only one to be told."""
        found: dict[str, PlottedSeries] = {}
        for panel in self.panels:
            for one in panel.series:
                if one.name:
                    found.setdefault(one.name, one)
        return tuple(found.values()) if len(found) > 1 else ()

    def marks_points(self, panel: Panel, series: PlottedSeries) -> bool:
        """Whether each of its points with doubts is marked: in the first panel of the same rows, unless the caption or
        the legend says it of all."""
        if panel is not self.panels[0] and not panel.title:
            return False
        return not self.all_doubtful and not self.wholly_doubtful(series.name)

    def wholly_doubtful(self, name: str) -> bool:
        """Whether the legend marks a series as doubtful, and not each of its points: all have doubts, in all panels."""
        if not self.entries or self.all_doubtful or self.panels[0].kind == "stacked":
            return False
        series = [one for panel in self.panels for one in panel.series if one.name == name]
        told = [one for one in series if one.role == "measured" and any(p.y is not None for p in one.points)]
        return bool(told) and all(one.wholly_doubtful for one in told)

    @property
    def file_name(self) -> str:
        """`EXPERIMENT-PICTURE`, without an ending, and not yet a safe name."""
        return "-".join(part for part in (self.experiment, self.name, self.part) if part)
