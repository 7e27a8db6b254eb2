"""Descriptions, drawn by matplotlib: at the width of a paper's column, with the same bytes each time."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation, blended_transform_factory

from gpubench.plot import style
from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.files import CREATOR
from gpubench.plot.shared import WIDEST, marked_whole
from gpubench.report.cells import DOUBTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 3.4
"""Inches: a column of most papers."""
DPI = 300
SIZE, SMALL, FINE = 8.0, 7.0, 6.0
"""Points: titles of axes; labels and legends; the caption."""
LINE = 1.25
"""Height of a line of text over that of its letters."""
MARGIN = 0.05
"""Inches around everything."""
PANEL = {"lines": 1.45, "trial": 0.85}
"""Inches a panel is high, at the least."""
STEPS = (1, 2, 5, 10)
"""Between labels of an axis."""
BAR = 0.11
FEW = 8
"""Bars with more places have smaller letters."""
LABELS = 1.15
"""Inches that the names of places may be wide; a little more beside a single panel."""
RC: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": SIZE,
    "axes.labelsize": SIZE,
    "axes.titlesize": SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.5,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": SMALL,
    "legend.title_fontsize": SMALL,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.5,
    "text.parse_math": False,  # a name may hold two dollar signs
    "axes.formatter.use_locale": False,
    "svg.fonttype": "none",  # text stays text: it can be searched, and set in the reader's own letters
    "pdf.fonttype": 42,
    "figure.dpi": 150,
}


class Drawing(Figure):
    """A figure that a notebook shows without any set-up."""

    def _repr_png_(self) -> bytes:
        return written(self, "png")


def drawn(picture: Picture) -> Drawing:
    """The picture, drawn."""
    with _quiet():
        figure = Drawing(figsize=(WIDTH, 1.0), layout="constrained")
        FigureCanvasAgg(figure)
        ink = _Ink(figure)
        above = ink.wrapped(picture.title, SIZE, WIDTH - 2 * MARGIN, bold=True)
        below = [line for said in picture.caption for line in ink.wrapped(said, FINE, WIDTH - 2 * MARGIN)]
        handles = _handles(picture, ink)
        columns, rows = ink.columns([str(one.get_label()) for one in handles])
        named = bool(picture.legend and handles)
        head = len(above) * _inches(SIZE) + (rows + named) * _inches(SMALL) * 1.03 + (0.1 if handles else 0.0)
        foot = len(below) * _inches(FINE)
        body = _draw_panels(figure, ink, picture, told=bool(handles))
        height = MARGIN + head + 0.04 + body + 0.04 + foot + MARGIN
        figure.set_size_inches(WIDTH, height)
        figure.set_gid(picture.file_name)
        engine: Any = figure.get_layout_engine()
        engine.set(
            rect=(0, (MARGIN + foot + 0.04) / height, 1, body / height),
            w_pad=MARGIN,
            h_pad=0.03,
            hspace=0.02,
            wspace=0.02,
        )
        figure.text(
            MARGIN / WIDTH, 1 - MARGIN / height, "\n".join(above), va="top", ha="left", fontweight="bold",
            linespacing=1.15,
        ).set_in_layout(False)  # fmt: skip
        if below:
            figure.text(
                MARGIN / WIDTH, MARGIN / height, "\n".join(below), va="bottom", ha="left", fontsize=FINE,
                color="#333333", linespacing=1.15,
            ).set_in_layout(False)  # fmt: skip
        if handles:
            legend = figure.legend(
                handles=handles,
                title=picture.legend or None,
                loc="upper left",
                bbox_to_anchor=(0, 1 - (MARGIN + len(above) * _inches(SIZE)) / height),
                ncols=columns,
                alignment="left",
                borderaxespad=0.2,
                borderpad=0.2,
                handlelength=2.2,
                columnspacing=1.0,
                labelspacing=0.25,
                handletextpad=0.5,
            )
            legend.set_in_layout(False)
        return figure


def written(figure: Figure, form: str) -> bytes:
    """The bytes of a file: of the same picture always the same."""
    told: dict[str, dict[str, Any]] = {
        "svg": {"Creator": CREATOR, "Date": None},
        "png": {"Software": CREATOR},
        "pdf": {"Creator": CREATOR, "Producer": None, "CreationDate": None},
    }
    out = io.BytesIO()
    with _quiet(), mpl.rc_context({"svg.hashsalt": f"{CREATOR} {figure.get_gid()}"}):
        figure.savefig(out, format=form, metadata=told[form], dpi=DPI)
    made = out.getvalue()
    if form == "svg":  # lines of paths end in spaces
        made = b"\n".join(line.rstrip() for line in made.splitlines()) + b"\n"
    return made


@contextmanager
def _quiet() -> Iterator[None]:
    """Our settings, whatever the user's are; and letters that the font lacks are no reason to say so."""
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore", UserWarning)
        mpl.rcdefaults()
        mpl.rcParams.update(RC)  # type: ignore[arg-type, unused-ignore]
        yield


def _inches(points: float) -> float:
    return points * LINE / 72


_PIECE = re.compile(r"[^ =&+_,-]*[=&+_,-]* *")
"""Where a word that is wider than a line may be broken: behind a sign in it."""


class _Ink:
    """How wide texts are."""

    def __init__(self, figure: Figure) -> None:
        self._renderer: Any = figure.canvas.get_renderer()  # type: ignore[attr-defined]
        self._dpi = figure.dpi
        self._known: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """In inches."""
        key = (text, size, bold)
        if key not in self._known:
            self._known[key] = self._measured(text, size, bold=bold)
        return self._known[key]

    def _measured(self, text: str, size: float, *, bold: bool) -> float:
        font = FontProperties(family=["DejaVu Sans"], size=size, weight="bold" if bold else "normal")
        wide, _, _ = self._renderer.get_text_width_height_descent(text, font, False)
        return float(wide) / self._dpi

    def wrapped(self, text: str, size: float, width: float, *, bold: bool = False) -> list[str]:
        """The text in lines that are no wider; a word that is wider by itself is broken."""
        lines: list[str] = []
        space = self.width("x x", size, bold=bold) - self.width("xx", size, bold=bold)
        for paragraph in text.split("\n"):
            line, used = "", 0.0
            pieces = [
                piece
                for word in re.findall(r"[^ ]+ ?", paragraph)
                for piece in (
                    [word] if self.width(word.rstrip(" "), size, bold=bold) <= width else _PIECE.findall(word)
                )
            ]
            for piece in pieces:
                wide = self.width(piece.rstrip(" "), size, bold=bold)
                if used + wide <= width:
                    line += piece
                    used += wide + (space if piece.endswith(" ") else 0.0)
                    continue
                lines.append(line)
                line = piece
                while line and self.width(line.rstrip(" "), size, bold=bold) > width:
                    fits = max(1, int(len(line) * width / self.width(line, size, bold=bold)))
                    lines.append(line[:fits])
                    line = line[fits:]
                used = self.width(line.rstrip(" "), size, bold=bold) + (space if line.endswith(" ") else 0.0)
            lines.append(line)
        return [line.strip(" ") for line in lines if line.strip(" ")]

    def columns(self, names: Sequence[str]) -> tuple[int, int]:
        """In how many columns a legend of these names is no wider than the picture, and how many lines it has then."""
        for columns in range(min(len(names), 6), 0, -1):
            rows = -(-len(names) // columns)
            split = [
                names[place : place + rows] for place in range(0, len(names), rows)
            ]  # filled column by column
            wide = sum(max(self._widest(name) for name in column) + 0.42 for column in split)
            if wide <= WIDTH - 2 * MARGIN or columns == 1:
                lines = max(sum(name.count("\n") + 1 for name in column) for column in split)
                return len(split), lines
        return 1, 0

    def _widest(self, text: str) -> float:
        return max(self.width(line, SMALL) for line in text.split("\n"))


def _handles(picture: Picture, ink: _Ink) -> list[Any]:
    """The entries of the legend; none where there is only one series to be told."""
    found: dict[str, Any] = {}
    kind = picture.panels[0].kind
    for panel in picture.panels:
        for one in panel.series:
            if not one.name or one.name in found:
                continue
            marked = kind != "stacked" and not picture.all_doubtful and _wholly_doubtful(picture, one.name)
            name = f"{one.name} {DOUBTED}" if marked else one.name
            found[one.name] = _handle(
                one, "\n".join(ink.wrapped(name, SMALL, WIDTH - 0.6)), bars=kind != "lines"
            )
    return list(found.values()) if len(found) > 1 else []


def _wholly_doubtful(picture: Picture, name: str) -> bool:
    same = [
        one for panel in picture.panels for one in panel.series if one.name == name and one.role == "measured"
    ]
    return bool(same) and all(marked_whole(one) for one in same if any(p.y is not None for p in one.points))


def _handle(one: PlottedSeries, name: str, *, bars: bool) -> Any:
    if one.role == "predicted":
        return Line2D([], [], label=name, **_PREDICTED)
    if one.role != "measured":
        return Line2D([], [], label=name, **_lines_of(one))
    if bars:
        return Patch(label=name, **_fill_of(one))
    return Line2D([], [], label=name, **_lines_of(one))


_PREDICTED: dict[str, Any] = {
    "color": "black", "marker": "D", "markersize": 3.6, "markerfacecolor": "white", "linestyle": "none", "zorder": 5,
}  # fmt: skip


def _lines_of(one: PlottedSeries) -> dict[str, Any]:
    if one.role == "ideal":
        return {"color": "#555555", "linestyle": (0, (4, 2)), "linewidth": 0.9, "zorder": 1.5}
    if one.role == "target":
        return {"color": "black", "linestyle": (0, (1, 1)), "linewidth": 1.0, "zorder": 1.5}
    return {
        "color": style.of(style.COLOURS, one.look),
        "linestyle": "none" if not one.joined else style.of(style.LINES, one.look) if one.name else "-",
        "marker": style.of(style.MARKERS, one.look) if one.marked else None,
        "linewidth": 1.1 if one.marked else 0.8,
        "markeredgewidth": 0.6,
    }


def _fill_of(one: PlottedSeries) -> dict[str, Any]:
    return {
        "facecolor": style.of(style.FILLS, one.look),
        "hatch": style.of(style.HATCHES, one.look),
        "edgecolor": "black",
        "linewidth": 0.5,
    }


# ---- panels ----


def _draw_panels(figure: Figure, ink: _Ink, picture: Picture, *, told: bool) -> float:
    """Draws them all, and says how many inches they take from top to bottom. `told`: whether there is a legend, which
    marks series all of whose figures have doubts. Points are marked in the first panel only."""
    kind = picture.panels[0].kind
    count = len(picture.panels)
    if kind == "lines":
        axes = figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0]
        one = PANEL["trial"] if count > 2 else PANEL["lines"] + (0.55 if count == 1 else 0)
        for place, (ax, panel) in enumerate(zip(axes, picture.panels, strict=True)):
            ax.set_ylabel("\n".join(ink.wrapped(panel.y.title, SIZE, one - 0.05)))
            marks = None if place or picture.all_doubtful else told
            _lines(ax, panel, ink, bottom=place == count - 1, told=marks)
        figure.align_ylabels(list(axes))
        return count * one + 0.35
    if kind == "cells":
        (panel,) = picture.panels
        return _cells(figure.subplots(), panel, ink)
    axes = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    room = LABELS + (0.25 if count == 1 else 0)
    size = FINE if len(picture.panels[0].places) > FEW else SMALL
    names = [ink.wrapped(place, size, room) or [""] for place in picture.panels[0].places]
    side = 1 if kind == "stacked" else sum(one.role == "measured" for one in picture.panels[0].series)
    steps = [max(side * BAR + 0.07, len(lines) * _inches(size) + 0.03) for lines in names]
    centres = [sum(steps[:place]) + step / 2 for place, step in enumerate(steps)]
    for place, (ax, panel) in enumerate(zip(axes, picture.panels, strict=True)):
        _bars(ax, panel, centres, side, told=None if place or picture.all_doubtful else told)
        _title_x(ax, panel.y, ink, (WIDTH - room) / count)
        ax.set_yticks(centres, ["\n".join(lines) for lines in names], fontsize=size, linespacing=1.0)
        ax.set_ylim(sum(steps), 0)
    return sum(steps) + 0.55


def _title_x(ax: Axes, axis: PlottedAxis, ink: _Ink, width: float) -> None:
    ax.set_xlabel("\n".join(ink.wrapped(axis.title, SMALL, width)), fontsize=SMALL)


def _lines(ax: Axes, panel: Panel, ink: _Ink, *, bottom: bool, told: bool | None) -> None:
    for span in panel.spans:
        ax.axvspan(span.low, span.high, color="#000000", alpha=0.09, linewidth=0, zorder=0)
    _scale_x(ax, panel, ink)
    _scale_y(ax, panel)
    if bottom:
        ax.set_xlabel(panel.x.title)
    measured = [one for one in panel.series if one.role == "measured"]
    crowded = len(measured) > 1 and any(p.low is not None for one in measured for p in one.points)
    for place, one in enumerate(panel.series):
        shift = 0.0
        if crowded and one.role == "measured":
            shift = (place - (len(measured) - 1) / 2) * min(2.5, 12 / len(measured))
        _line(ax, one, shift)
    _words(ax, panel, ink, told=told)
    _marks(ax, measured)


def _line(ax: Axes, one: PlottedSeries, shift: float) -> None:
    moved = ax.transData + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
    look = _lines_of(one)
    xs = [p.x for p in one.points]
    ys = [math.nan if p.y is None else p.y for p in one.points]
    if any(p.best for p in one.points):
        look["markerfacecolor"] = "white"
    ax.plot(xs, ys, transform=moved, clip_on=not one.marked, **look)
    best = [p for p in one.points if p.best and p.y is not None]
    if best:
        filled = look | {"markerfacecolor": look["color"]}
        ax.plot([p.x for p in best], [p.y or 0 for p in best], transform=moved, **filled)
    for p in one.points:
        _error(ax, p, moved, str(look["color"]))


CROWDED = 16
"""Points from which marks stand at the edge of a panel, for there is no room beside each."""
PLACES = (
    (3.5, 3.5),
    (-3.5, 3.5),
    (3.5, -3.5),
    (-3.5, -3.5),
    (0.0, 5.0),
    (0.0, -5.0),
    (12.0, 0.0),
    (-12.0, 0.0),
)
"""Where words may stand from their point, in points, the first choice first."""


def _words(ax: Axes, panel: Panel, ink: _Ink, *, told: bool | None) -> None:
    """What stands beside points: their labels, and `!` where their rows have doubts (`told` None: no such mark)."""
    measured = [one for one in panel.series if one.role == "measured" and one.marked]
    shown = [p for one in measured for p in one.points if p.y is not None]
    there = [_inches_of(ax, p.x, p.y or 0) for p in shown]
    taken = [(x - 0.03, x + 0.03, y - 0.03, y + 0.03) for x, y in there]
    crowded = len(shown) > CROWDED and not any(p.label for p in shown)
    over = blended_transform_factory(ax.transData, ax.transAxes)
    for place, one in enumerate(measured):
        whole = told and marked_whole(one)
        for p in one.points:
            mark = DOUBTED if p.doubtful and told is not None and not whole else ""
            words = " ".join(part for part in (p.label, mark) if part)
            if p.y is None or not words:
                continue
            style_of: dict[str, Any] = {
                "textcoords": "offset points", "fontsize": FINE, "annotation_clip": False, "zorder": 6,
                "color": style.of(style.COLOURS, one.look) if crowded else "black",
            }  # fmt: skip
            if crowded:
                shift = (place - (len(measured) - 1) / 2) * 3
                ax.annotate(
                    words, (p.x, 0.02), xycoords=over, xytext=(shift, 0), ha="center", **style_of
                ).set_in_layout(False)
                continue
            x, y = _inches_of(ax, p.x, p.y)
            box, (dx, dy) = _free(x, y, ink.width(words, FINE), taken)
            taken.append(box)
            side = "left" if dx > 0 else "right" if dx < 0 else "center"
            level = "bottom" if dy > 0 else "top" if dy < 0 else "center"
            ax.annotate(words, (p.x, p.y), xytext=(dx, dy), ha=side, va=level, **style_of).set_in_layout(
                False
            )


Box = tuple[float, float, float, float]
"""Left, right, bottom, top."""


def _inches_of(ax: Axes, x: float, y: float) -> tuple[float, float]:
    """About where a point lies in its panel: how large that will be is known only when all is laid out."""
    across, up = (ax.transData + ax.transAxes.inverted()).transform((x, y))
    return float(across) * (WIDTH - 0.65), float(up) * PANEL["lines"]


def _free(x: float, y: float, wide: float, taken: Sequence[Box]) -> tuple[Box, tuple[float, float]]:
    """Where words that are so wide have room beside a point, and how far from it; the first choice if nowhere."""
    high, found = FINE / 72, []
    for dx, dy in PLACES:
        left = x + dx / 72 - (wide if dx < 0 else 0 if dx > 0 else wide / 2)
        low = y + dy / 72 - (high if dy < 0 else 0 if dy > 0 else high / 2)
        box = (left, left + wide, low, low + high)
        inside = left > 0 and left + wide < WIDTH - 0.6 and low > 0
        if inside and not any(_overlap(box, other) for other in taken):
            return box, (dx, dy)
        found.append(box)
    return found[0], PLACES[0]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[1] and other[0] < one[1] and one[2] < other[3] and other[2] < one[3]


def _error(ax: Axes, p: PlottedPoint, moved: Any, colour: str) -> None:
    if p.y is None:
        return
    drawn: dict[str, Any] = {
        "color": colour, "linewidth": 0.8, "transform": moved, "marker": "_", "markersize": 4, "zorder": 1.8,
    }  # fmt: skip
    if p.low is not None and p.high is not None:
        ax.plot([p.x, p.x], [p.low, p.high], **drawn)
    if p.x_low is not None and p.x_high is not None:
        ax.plot([p.x_low, p.x_high], [p.y, p.y], **(drawn | {"marker": "|"}))


def _marks(ax: Axes, measured: Sequence[PlottedSeries]) -> None:
    """How rows without figures ended, at the top of the panel, where no figure is."""
    over = blended_transform_factory(ax.transData, ax.transAxes)
    places: dict[float, list[tuple[PlottedSeries, PlottedPoint]]] = {}
    for one in measured:
        for p in one.points:
            if p.y is None and p.status in ENDINGS:
                places.setdefault(p.x, []).append((one, p))
    for x, found in places.items():
        for place, (one, _) in enumerate(found):
            shift = (place - (len(found) - 1) / 2) * 5
            moved = over + ScaledTranslation(shift / 72, 0, ax.figure.dpi_scale_trans)
            ax.plot(
                [x], [0.97], transform=moved, marker="x", markersize=4.5, markeredgewidth=1.2, clip_on=False,
                color=style.of(style.COLOURS, one.look), linestyle="none",
            )  # fmt: skip
        words = "/".join(dict.fromkeys(ENDINGS[p.status] for _, p in found))
        ax.annotate(
            words, (x, 0.97), xycoords=over, xytext=(0, -4), textcoords="offset points", fontsize=FINE, ha="center",
            va="top", zorder=6,
        ).set_in_layout(False)  # fmt: skip


ENDINGS = {"oom": "oom", "failed": "failed", "timeout": "timeout", "interrupted": "stopped"}
"""Endings that are marked in a picture, and with which words."""


def _scale_x(ax: Axes, panel: Panel, ink: _Ink) -> None:
    axis = panel.x
    xs = [p.x for one in panel.series for p in one.points]
    low, high = min(xs), max(xs)
    if axis.steps == "log2":
        ax.set_xscale("log", base=2)
        ax.set_xlim(low / 2**0.3, high * 2**0.3)
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
    elif axis.from_zero:
        ax.set_xlim(0, max(axis.top or 0, high) * 1.06 or 1)
    else:
        edge = (high - low) * 0.06 or 1
        ax.set_xlim(low - edge, high + edge)
    if axis.ticks:
        ax.xaxis.set_major_locator(FixedLocator(_thinned(ax, axis.ticks, ink)))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    told = _text if axis.ticks else _figure
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told(value)))


def _thinned(ax: Axes, ticks: Sequence[float], ink: _Ink) -> list[float]:
    """As many of these as have room, evenly."""
    to_axes = (ax.transData + ax.transAxes.inverted()).transform
    wide = WIDTH - 0.75
    for step in range(1, len(ticks) + 1):
        kept = list(ticks[::step])
        places = [float(to_axes((one, 1))[0]) * wide for one in kept]
        halves = [ink.width(_text(one), SMALL) / 2 + 0.02 for one in kept]
        if all(b - a >= x + y for a, b, x, y in zip(places, places[1:], halves, halves[1:], strict=False)):
            return kept
    return list(ticks[:1])


def _scale_y(ax: Axes, panel: Panel) -> None:
    axis = panel.y
    values = [p.y for one in panel.series for p in one.points if p.y is not None]
    most = max([axis.top or 0.0, *values], default=1.0) or 1.0
    ends = any(p.y is None and p.status in ENDINGS for one in panel.series for p in one.points)
    if axis.steps == "log10":
        least = min(v for v in values if v > 0)
        lows = [p.low for one in panel.series for p in one.points if p.low is not None and p.low > 0]
        least = min([least, *(max(low, least / WIDEST) for low in lows)])
        ax.set_yscale("log")
        span = most / least
        ax.set_ylim(least / span**0.08, most * span ** (0.3 if ends else 0.08))
        ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.set_ylim(0, most * (1.3 if ends else 1.08))
        ax.yaxis.set_major_locator(MaxNLocator(4 if panel.spans else 5, steps=STEPS))
    if axis.ticks:
        ax.yaxis.set_major_locator(FixedLocator(list(axis.ticks)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _figure(value)))


def _text(value: float) -> str:
    """The value of a field at an axis, as tables have it."""
    return str(round(value)) if abs(value - round(value)) < 1e-9 else f"{value:.4g}"


def _figure(value: float) -> str:
    """A figure at an axis."""
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 else f"{value:.4g}"


def _bars(ax: Axes, panel: Panel, centres: Sequence[float], side: int, *, told: bool | None) -> None:
    """Bars, each BAR thick. `centres`: how many inches below the top each place lies; `side`: bars of a place."""
    stacked = panel.kind == "stacked"
    ends = [0.0] * len(centres)
    most = max([panel.y.top or 0.0, panel.line_at or 0.0, 1e-9])
    ax.set_xlim(0, most * 1.16)
    for one in panel.series:
        for p in one.points:
            place = int(p.x)
            if one.role == "predicted":
                ax.plot([p.y or 0], [centres[place]], clip_on=False, **_PREDICTED)
                continue
            at = centres[place] + (0 if stacked else (one.look - (side - 1) / 2) * BAR)
            if p.y is None:
                if p.status != "ok":
                    _beside(ax, most * 0.01, at, ENDINGS.get(p.status, p.status))
                continue
            ax.barh(at, p.y, height=BAR, left=ends[place] if stacked else 0, **_fill_of(one))
            end = p.y
            if p.low is not None and p.high is not None:
                ax.plot([p.low, p.high], [at, at], color="black", linewidth=0.8, marker="|", markersize=3.5)
                end = max(p.y, min(p.high, most * 1.1))
            ends[place] += p.y
            if p.doubtful and told is not None and not stacked and not (told and marked_whole(one)):
                _beside(ax, end + most * 0.015, at, DOUBTED)
    if stacked and told is not None:
        for place in {int(p.x) for one in panel.series for p in one.points if p.doubtful}:
            _beside(ax, ends[place] + most * 0.015, centres[place], DOUBTED)
    if panel.line_at is not None:
        ax.axvline(panel.line_at, color="black", linewidth=0.8, linestyle=(0, (4, 2)), zorder=1.5)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(
        FixedLocator(list(panel.y.ticks)) if panel.y.ticks else MaxNLocator(4, steps=STEPS)
    )
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _figure(value)))


def _beside(ax: Axes, x: float, y: float, words: str) -> None:
    ax.text(x, y, words, fontsize=FINE, va="center", ha="left", zorder=6).set_in_layout(False)


def _cells(ax: Axes, panel: Panel, ink: _Ink) -> float:
    """A matrix; its columns are told by the numbers of their rows, for names have no room there."""
    count = len(panel.places)
    known = [cell.value for cell in panel.cells if cell.value is not None]
    low, high = min([1.0, *known]), max([2.0, *known])
    colours = mpl.colormaps["Blues"]
    for cell in panel.cells:
        share = None if cell.value is None else 0.05 + 0.8 * (cell.value - low) / (high - low)
        fill = "white" if share is None else colours(share)
        ax.barh(
            cell.row, 1, left=cell.column - 0.5, height=1, color=fill, edgecolor="#888888", linewidth=0.5,
            hatch="////" if share is None and not cell.text else "",
        )  # fmt: skip
        ax.text(
            cell.column, cell.row, "\n".join(ink.wrapped(cell.text, SMALL, 2.0 / count)), ha="center", va="center",
            fontsize=SMALL if count < 7 else FINE, color="white" if share is not None and share > 0.55 else "black",
        )  # fmt: skip
    names = [
        "\n".join(ink.wrapped(f"{place + 1}: {name}", SMALL, LABELS))
        for place, name in enumerate(panel.places)
    ]
    ax.set_yticks(range(count), names, linespacing=1.0)
    ax.set_xticks(range(count), [str(place + 1) for place in range(count)])
    ax.set_xlim(-0.5, count - 0.5)
    ax.set_ylim(count - 0.5, -0.5)
    ax.set_xlabel(panel.x.title)
    ax.grid(visible=False)
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return count * max(0.3, min(0.55, 2.0 / count)) + 0.45
