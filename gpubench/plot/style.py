"""How series look, wherever they are drawn: on paper, on a page, light or dark.

Colours that colour-blind readers tell apart, and shapes, dashes and hatches that do without colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True, kw_only=True, slots=True)
class Colour:
    """One colour, as it can be seen on each ground."""

    paper: str
    """Of lines in print."""
    fill: str
    """Of bars in print: lighter, but for the first, so that hatches show and greys differ."""
    light: str
    """On a light screen: dark enough to stand out from it by 3 to 1, which the pale ones in print don't."""
    dark: str
    """On a dark screen."""


COLOURS: Sequence[Colour] = (
    Colour(paper="#0072B2", fill="#0072B2", light="#0072B2", dark="#56B4E9"),
    Colour(paper="#D55E00", fill="#F4B183", light="#C24E00", dark="#F59A5B"),
    Colour(paper="#009E73", fill="#8FD3BF", light="#008060", dark="#3CCBA0"),
    Colour(paper="#CC79A7", fill="#EBC3DA", light="#A8447F", dark="#E59AC8"),
    Colour(paper="#E69F00", fill="#F6D98F", light="#8A6500", dark="#E0B13E"),
    Colour(paper="#56B4E9", fill="#BFE3F7", light="#5B5BD6", dark="#A5A5FF"),
    Colour(paper="#000000", fill="#BBBBBB", light="#3A3F45", dark="#D5D9DD"),
)
"""Okabe and Ito (2008), without the yellow, which is hard to see on white."""
BLACK = len(COLOURS) - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """One marker."""

    mpl: str
    """In matplotlib's letters."""
    corners: Sequence[tuple[float, float]] = ()
    """On a page: in units of its radius, to the right and down; none: a circle."""


SHAPES: Sequence[Shape] = (
    Shape(mpl="o"),
    Shape(mpl="s", corners=((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9))),
    Shape(mpl="^", corners=((0, -1.15), (1.1, 0.8), (-1.1, 0.8))),
    Shape(mpl="D", corners=((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0))),
    Shape(mpl="v", corners=((0, 1.15), (1.1, -0.8), (-1.1, -0.8))),
    Shape(mpl="P", corners=(
        (-0.4, -1.15), (0.4, -1.15), (0.4, -0.4), (1.15, -0.4), (1.15, 0.4), (0.4, 0.4), (0.4, 1.15), (-0.4, 1.15),
        (-0.4, 0.4), (-1.15, 0.4), (-1.15, -0.4), (-0.4, -0.4))),
    Shape(mpl="X", corners=(
        (0, -0.55), (0.65, -1.2), (1.2, -0.65), (0.55, 0), (1.2, 0.65), (0.65, 1.2), (0, 0.55), (-0.65, 1.2),
        (-1.2, 0.65), (-0.55, 0), (-1.2, -0.65), (-0.65, -1.2))),
    Shape(mpl="<", corners=((-1.15, 0), (0.8, -1.1), (0.8, 1.1))),
    Shape(mpl=">", corners=((1.15, 0), (-0.8, -1.1), (-0.8, 1.1))),
    Shape(mpl="*", corners=(
        (0, -1.4), (0.33, -0.45), (1.33, -0.43), (0.53, 0.17), (0.82, 1.13), (0, 0.56), (-0.82, 1.13), (-0.53, 0.17),
        (-1.33, -0.43), (-0.33, -0.45))),
    Shape(mpl="p", corners=((0, -1.2), (1.14, -0.37), (0.7, 0.97), (-0.7, 0.97), (-1.14, -0.37))),
)  # fmt: skip
"""One more than a multiple of the number of colours, so that eleven times seven series differ."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dash:
    """How a line is broken."""

    mpl: str
    """In matplotlib's words."""
    page: str
    """In those of SVG; empty: it is not."""


DASHES: Sequence[Dash] = (
    Dash(mpl="-", page=""),
    Dash(mpl="--", page="7 3"),
    Dash(mpl="-.", page="8 3 2 3"),
    Dash(mpl=":", page="2 2.5"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Hatch:
    """What a bar is filled with."""

    mpl: str
    """In matplotlib's letters; lines alone, for dots make files ten times as large."""
    angles: Sequence[int] = ()
    """On a page: lines at these angles, in degrees from the horizontal, clockwise."""


HATCHES: Sequence[Hatch] = (
    Hatch(mpl=""),
    Hatch(mpl="////", angles=(-45,)),
    Hatch(mpl="\\\\\\\\", angles=(45,)),
    Hatch(mpl="xxxx", angles=(-45, 45)),
    Hatch(mpl="----", angles=(0,)),
    Hatch(mpl="||||", angles=(90,)),
    Hatch(mpl="++++", angles=(0, 90)),
)

Look = TypeVar("Look")


def of(looks: Sequence[Look], look: int) -> Look:
    """The look of this number, beginning again behind the last one."""
    return looks[look % len(looks)]
