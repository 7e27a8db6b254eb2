"""Reports as HTML for notebooks: plain, so that it takes the notebook's own style."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from html import escape

from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.draw import draw_file_bytes, has_vl_convert
from gpubench.render.grid import Grid, make_grid
from gpubench.render.pictures.pictures import list_pictures


def format_html(reports: Sequence[Report]) -> str:
    """All reports: of each its name, its question, the answer, the table, the main picture where vl-convert is there to
    draw it, then other findings and warnings."""
    return "\n".join(map(_format_report, reports)) or f"<p>{words.NO_REPORT}</p>"


def _format_report(report: Report) -> str:
    name, *facts = words.list_heading_facts(report)
    lines = words.list_sentences(report)
    answers = [line.text for line in lines if line.kind == "answer"]
    items = [line.marked_text for line in lines if line.kind != "answer"]
    parts = [
        f"<h4>{escape(name)}</h4>",
        _format_paragraph(" · ".join(facts)),
        _format_paragraph(words.format_question(report)),
        *(f"<p><b>{escape(answer)}</b></p>" for answer in answers),
        format_table(make_grid(report)),
        _format_paragraph(words.format_legend(report)),
        _draw_main_picture(report),
        f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in items)}</ul>" if items else "",
    ]
    return "".join(parts)


def _draw_main_picture(report: Report) -> str:
    """The main picture as an image inside the page; empty where the report has none, or vl-convert is missing."""
    pictures = list_pictures(report) if has_vl_convert() else []
    if not pictures:
        return ""
    content = b64encode(draw_file_bytes(pictures[0].description, "svg")).decode("ascii")
    return f'<p><img alt="{escape(pictures[0].title)}" src="data:image/svg+xml;base64,{content}"></p>'


def _format_paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>" if text else ""


def format_table(grid: Grid) -> str:
    """The table, heads of groups as rows of their own."""
    sides = ["right" if is_number else "left" for is_number in grid.is_number]
    pairs = zip(grid.series, grid.headings, strict=True)
    head = _format_row("th", [f"{series} {heading}".strip() for series, heading in pairs], sides)
    body = []
    for group in grid.groups:
        if group.head:
            title = escape(group.head + " !" * group.is_warned)
            body.append(f'<tr><th colspan="{len(sides)}" style="text-align: left">{title}</th></tr>')
        for row in group.rows:
            name, *texts = row.list_texts_with_ending()
            body.append(
                _format_row("td", [name + " !" * row.is_warned, *texts], sides, is_bold=row.is_answer)
            )
    return f"<table><thead>{head}</thead><tbody>{''.join(body)}</tbody></table>"


def _format_row(tag: str, texts: Sequence[str], sides: Sequence[str], *, is_bold: bool = False) -> str:
    weight = "; font-weight: bold" if is_bold else ""
    cells = (
        f'<{tag} style="text-align: {side}{weight}">{escape(text)}</{tag}>'
        for text, side in zip(texts, sides, strict=True)
    )
    return f"<tr>{''.join(cells)}</tr>"
