"""Descriptions of pictures become files: SVG, PNG or PDF, by vl-convert, which needs no browser.

The only place that imports vl-convert. The same description gives the same bytes as SVG and PNG; in a PDF the order of
the parts is chosen anew each time.
"""

from __future__ import annotations

import importlib.util
import re
from html import escape
from importlib.resources import as_file, files

import gpubench.render
from gpubench.basics.errors import UnusableError
from gpubench.render.pictures.vega import VEGA_LITE, Vega

FORMS = ("svg", "png", "pdf")
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
    """The picture as a file. `form`: one of FORMS. `scale`: of its size. Raises UnusableError where vl-convert is
    missing."""
    check_vl_convert()
    import vl_convert

    with as_file(files(gpubench.render).joinpath("fonts")) as folder:
        vl_convert.register_font_directory(str(folder))
        if form == "png":
            png: bytes = vl_convert.vegalite_to_png(
                description, vl_version=VEGA_LITE, scale=PNG_SCALE * scale, allowed_base_urls=[]
            )
            return png
        svg: str = vl_convert.vegalite_to_svg(description, vl_version=VEGA_LITE, allowed_base_urls=[])
        if form == "pdf":
            pdf: bytes = vl_convert.svg_to_pdf(finish_svg(svg, description, PDF_SCALE * scale))
            return pdf
    return finish_svg(svg, description, scale).encode(errors="replace")


def finish_svg(svg: str, description: Vega, scale: float) -> str:
    """Vega's SVG in its size and without what only pages need. Its title, which screen readers read, is the answer."""
    head, end, body = svg.partition(">")
    body = re.sub("<[^<>]+>", lambda tag: FOR_PAGES.sub("", tag[0]), body)
    head = re.sub(
        r'(width|height)="([\d.]+)"', lambda size: f'{size[1]}="{float(size[2]) * scale:g}"', head, count=2
    )
    title = escape(" ".join(description["title"]["text"])) if "title" in description else ""
    about = f"<title>{title}</title>" * bool(title)
    return f"{head}{end}{about}{body}\n"
