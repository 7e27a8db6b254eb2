"""One definition of how series look: on paper, on a light and on a dark page."""

from __future__ import annotations

import itertools

import pytest

from gpubench.export.page import page
from gpubench.export.page.pictures import colours
from gpubench.plot import style

GROUNDS = {"light": "#ffffff", "dark": "#14171b"}


def luminance(colour: str) -> float:
    """As WCAG has it."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("ground", GROUNDS)
def test_each_colour_of_a_page_stands_out_from_its_ground(ground: str) -> None:
    """By 3 to 1, as WCAG 1.4.11 asks of graphics."""
    css = (page.files("gpubench.export.page") / "assets" / "page.css").read_text("utf-8")
    assert f"--paper: {'#fff' if ground == 'light' else GROUNDS[ground]};" in css
    for one in style.COLOURS:
        bright, dim = sorted((luminance(getattr(one, ground)), luminance(GROUNDS[ground])), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 3, one


def test_a_page_has_all_colours_light_and_dark() -> None:
    for at, one in enumerate(style.COLOURS):
        assert colours().count(f"--s{at}:{one.light};") == 1
        assert colours().count(f"--s{at}:{one.dark};") == 2  # as the browser asks, and as the reader does


@pytest.mark.parametrize("of", ["mpl", "corners"])
def test_shapes_differ_wherever_they_are_drawn(of: str) -> None:
    found = [getattr(one, of) for one in style.SHAPES]
    assert all(a != b for a, b in itertools.combinations(found, 2))
