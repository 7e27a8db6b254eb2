"""Scales of axes, and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from gpubench.plot import limits
from gpubench.plot.description import Panel, PlottedAxis
from gpubench.plot.paper.ink import Ink
from gpubench.plot.paper.sheet import SMALL, WIDTH

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = (1, 2, 5, 10)
"""Between labels of an axis."""


def scale_x(ax: Axes, panel: Panel, ink: Ink) -> None:
    """The x axis of lines."""
    axis, ends = panel.x, limits.across(panel)
    if axis.steps != "linear":
        ax.set_xscale("log", base=2 if axis.steps == "log2" else 10)
    ax.set_xlim(ends.low, ends.high)
    if axis.steps != "linear":
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
    if axis.ticks:
        ax.xaxis.set_major_locator(FixedLocator(_thinned(ax, axis.ticks, ink)))
    elif axis.steps == "log10":
        ax.xaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    else:
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=STEPS))
    told = _text if axis.ticks else figure
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: told(value)))


def _thinned(ax: Axes, ticks: Sequence[float], ink: Ink) -> list[float]:
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


def scale_y(ax: Axes, panel: Panel) -> None:
    """The y axis of lines."""
    ends = limits.upward(panel)
    if panel.y.steps == "log10":
        ax.set_yscale("log")
    ax.set_ylim(ends.low, ends.high)
    if panel.y.steps == "log10":
        ax.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(MaxNLocator(4 if panel.spans else 5, steps=STEPS))
    if panel.y.ticks:
        ax.yaxis.set_major_locator(FixedLocator(list(panel.y.ticks)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(value)))


def scale_bars(ax: Axes, panel: Panel) -> None:
    """The axis along which bars lie."""
    ax.set_xlim(0, limits.along_bars(panel).high)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(
        FixedLocator(list(panel.y.ticks)) if panel.y.ticks else MaxNLocator(4, steps=STEPS)
    )
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: figure(value)))


def title_x(ax: Axes, axis: PlottedAxis, ink: Ink, width: float) -> None:
    """What stands along the x axis, no wider than so many inches."""
    ax.set_xlabel("\n".join(ink.wrapped(axis.title, SMALL, width)), fontsize=SMALL)


def _text(value: float) -> str:
    """The value of a field at an axis, as tables have it."""
    return str(round(value)) if abs(value - round(value)) < 1e-9 else f"{value:.4g}"


def figure(value: float) -> str:
    """A figure at an axis."""
    return f"{round(value):,}" if abs(value - round(value)) < 1e-9 else f"{value:.4g}"
