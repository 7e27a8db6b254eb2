"""Descriptions of pictures become files: SVG, PNG or PDF, by vl-convert, which needs no browser.

The only place that imports vl-convert. The same description gives the same bytes as SVG and PNG; in a PDF the order of
the parts is chosen anew each time.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Mapping
from html import escape
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import gpubench.render
from gpubench.basics.errors import UnusableError
from gpubench.render.pictures.vega import VEGA_LITE, Vega

if TYPE_CHECKING:
    from types import ModuleType

MODULE, PACKAGE = "vl_convert", "vl-convert-python"
PDF_SCALE = 0.75
"""Points of a pixel: 96 pixels are an inch, and so are 72 points."""
PNG_SCALE = 2.0
"""Points of the file a pixel, so that it is sharp where it is printed or shown larger."""


FOR_PAGES = re.compile(r' (class|role|aria-[a-z]+|pointer-events)="[^"]*"')
"""Attributes that Vega writes for pages on which a picture is alive: a quarter of a file that is only looked at."""


def has_vl_convert() -> bool:
    """Whether vl-convert is installed."""
    return importlib.util.find_spec(MODULE) is not None


def check_vl_convert() -> None:
    """Raises UnusableError where vl-convert is not installed."""
    if not has_vl_convert():
        raise UnusableError(f"pictures need vl-convert, which is not installed: pip install {PACKAGE}")


def draw_file_bytes(description: Vega, form: str, scale: float = 1.0) -> bytes:
    """The picture as a file. `form`: a key of FORMS. `scale`: of its size. Raises UnusableError where vl-convert is
    missing."""
    check_vl_convert()
    import vl_convert

    with as_file(files(gpubench.render).joinpath("fonts")) as folder:
        vl_convert.register_font_directory(str(folder))
        return FORMS[form](vl_convert, description, scale)


def draw_svg_bytes(converter: ModuleType, description: Vega, scale: float) -> bytes:
    """UTF-8. Its title, which screen readers read, is the answer."""
    return convert_to_svg(converter, description, scale).encode(errors="replace")


def convert_to_svg(converter: ModuleType, description: Vega, scale: float) -> str:
    svg: str = converter.vegalite_to_svg(description, vl_version=VEGA_LITE, allowed_base_urls=[])
    head, end, body = svg.partition(">")
    body = re.sub("<[^<>]+>", lambda tag: FOR_PAGES.sub("", tag[0]), body)
    head = re.sub(
        r'(width|height)="([\d.]+)"', lambda size: f'{size[1]}="{float(size[2]) * scale:g}"', head, count=2
    )
    title = escape(" ".join(description["title"]["text"])) if "title" in description else ""
    about = f"<title>{title}</title>" * bool(title)
    return f"{head}{end}{about}{body}\n"


def draw_png_bytes(converter: ModuleType, description: Vega, scale: float) -> bytes:
    png: bytes = converter.vegalite_to_png(
        description, vl_version=VEGA_LITE, scale=PNG_SCALE * scale, allowed_base_urls=[]
    )
    return png


def draw_pdf_bytes(converter: ModuleType, description: Vega, scale: float) -> bytes:
    pdf: bytes = converter.svg_to_pdf(convert_to_svg(converter, description, PDF_SCALE * scale))
    return pdf


FORMS: Mapping[str, Callable[[ModuleType, Vega, float], bytes]] = {
    "svg": draw_svg_bytes,
    "png": draw_png_bytes,
    "pdf": draw_pdf_bytes,
}
"""Ending of a file -> what draws it."""
