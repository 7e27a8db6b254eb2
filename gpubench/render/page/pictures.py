"""Pictures of a report as a page draws them: their words as text of the page, their colours by the page's style."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.render.pictures import vega
from gpubench.render.pictures.pictures import Picture
from gpubench.render.pictures.vega import Vega

COLORS: Mapping[str, tuple[str, str, str]] = {
    "white": ("paper", "#ffffff", "#14171b"),
    "black": ("ink", "#1b1f24", "#e4e7ea"),
    vega.COLORS[0]: ("blue", "#0072b2", "#56b4e9"),
    vega.COLORS[1]: ("orange", "#c24e00", "#f59a5b"),
    vega.COLORS[2]: ("green", "#008060", "#3ccba0"),
    vega.COLORS[3]: ("pink", "#a8447f", "#e59ac8"),
    vega.COLORS[4]: ("ochre", "#8a6500", "#e0b13e"),
    vega.COLORS[5]: ("violet", "#5b5bd6", "#a5a5ff"),
    vega.COLORS[6]: ("slate", "#3a3f45", "#d5d9dd"),
    vega.LIGHT: ("amber", "#f0b27a", "#8a5a20"),
    vega.CONTEXT: ("context", "#6b7280", "#9aa3ad"),
    vega.ALARM: ("alarm", "#b00020", "#ff8a90"),
    vega.CONFIG["axis"]["labelColor"]: ("soft", "#57606a", "#a8b1ba"),
    vega.CONFIG["axis"]["domainColor"]: ("axis", "#9aa0a6", "#6b737c"),
    vega.CONFIG["axis"]["gridColor"]: ("line", "#e1e4e8", "#30363d"),
    "#d5d8dc": ("faint", "#d5d8dc", "#4a525b"),
    "#cccfd4": ("span", "#cccfd4", "#4a525b"),
}
"""Colour of a description -> its name on the page, and what it is in light and in dark: so a picture follows the page
without being drawn anew, on paper, too."""
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
INK = "var(--ink)"
PADDING = {"left": 0, "right": 2, "top": 2, "bottom": 6}
SOMEBODYS = frozenset({"data", "domain", "sort", "text"})
"""Parts of a description in which `black` may be somebody's name for something."""
ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PagePicture:
    """A picture, taken apart."""

    title: str
    sentences: str
    """What goes with the title."""
    footnote: str
    description: str
    """Vega-Lite without these words, as JSON that may stand in a script element."""


def separate_picture_text(picture: Picture) -> PagePicture:
    """The words of a picture's frame (`vega.compose_picture`), and a description of its panels alone."""
    *panels, footnote = picture.description["vconcat"]
    plain = {name: part for name, part in picture.description.items() if name != "title"}
    config = {
        **vega.CONFIG,
        "background": None,
        "font": FONT,
        "padding": PADDING,
        "legend": {"labelColor": INK, "titleColor": INK},
        "rule": {"color": INK},
        "text": {**vega.CONFIG["text"], "color": INK},
    }
    description = {**plain, "vconcat": panels, "config": config}
    return PagePicture(
        title=picture.title,
        sentences=" ".join(picture.description["title"]["subtitle"]),
        footnote=footnote["encoding"]["text"]["value"],
        description=format_safe_json(replace_colors(description)),
    )


def replace_colors(part: Any, *, has_names: bool = True) -> Any:
    """A part of a description with the page's colours in place of its own. `has_names`: whether a colour may be told by
    its name, as `black`."""
    if isinstance(part, Mapping):
        return {
            name: replace_colors(value, has_names=has_names and name not in SOMEBODYS)
            for name, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [replace_colors(value, has_names=has_names) for value in part]
    if isinstance(part, str) and part in COLORS and (has_names or part.startswith("#")):
        return f"var(--{COLORS[part][0]})"
    return part


def format_safe_json(description: Vega) -> str:
    """ASCII in which nothing can end the element that it stands in."""
    return json.dumps(description, allow_nan=False, separators=(",", ":")).translate(ESCAPED)


def format_color_css() -> str:
    """The colours as CSS: light, on paper, too; dark where the browser or the reader asks for it."""
    light, dark = (
        "".join(f"--{colors[0]}:{colors[place]};" for colors in COLORS.values()) for place in (1, 2)
    )
    dark = f"color-scheme:dark;--tint:#1d3346;--bar:#24496a;--shade:#1c2025;{dark}"
    return (
        f":root{{color-scheme:light;--tint:#eaf3fa;--bar:#b9dbf2;--shade:#f4f5f7;{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
    )
