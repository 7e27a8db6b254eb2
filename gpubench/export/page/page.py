"""The page: everything that it needs stands in it, so that it opens without a network, from a mail or a disk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from string import Template

import gpubench
import gpubench.export.page
from gpubench.analyze.folder import Folder
from gpubench.basics.words import listed, many
from gpubench.export.formats import Asked
from gpubench.export.page.grid import lines
from gpubench.export.page.markup import Markup, data, element, inline, joined, text
from gpubench.export.page.pictures import colours, looks
from gpubench.export.page.section import Fitted, figures, section, short_answer
from gpubench.export.page.section import asked as question_of
from gpubench.plot.subject import Subject, subjects
from gpubench.plot.table import PlotTable

ROOM = 1_300_000
PICTURE_ROOM = 600_000
"""Bytes that the rows of all tables and all pictures may take: with the charting library, which takes 0.5 MB, and all
that is said, a page stays below 3 MB."""
WIDE = 9
"""From so many columns on a page is printed across."""
LIBRARIES = ("d3-7.9.2.min.js", "plot-0.6.17.umd.min.js")
SCRIPTS = ("page.js", "pictures.js")
LICENCES = (("D3 7.9.2", "d3-LICENSE.txt"), ("Observable Plot 0.6.17", "plot-LICENSE.txt"))


def write(folders: Sequence[Folder], asked: Asked) -> bytes:  # noqa: ARG001 - there is one page
    """UTF-8."""
    found = [subject for folder in folders for subject in subjects(folder, is_named=len(folders) > 1)]
    alone = len(found) == 1
    tables = [subject.table for subject in found]
    sections = [
        section(table, fitted, number, alone=alone)
        for number, (table, fitted) in enumerate(zip(tables, _fitted(found, alone=alone), strict=True), 1)
    ]
    title = question_of(tables[0]) if alone else _title(folders, len(found))
    page = Template(_asset("page.html")).substitute(
        title=text(title),
        wide="@page { size: landscape }" if any(len(table.columns) >= WIDE for table in tables) else "",
        style=inline(colours() + _asset("page.css")),
        head=Markup("") if alone else joined(element("h1", title), _contents(folders, tables)),
        sections=joined(sections),
        version=text(gpubench.__version__),
        licences=_licences(),
        libraries=joined([element("script", inline(_vendored(name))) for name in LIBRARIES]),
        looks=data(looks()),
        scripts=joined([element("script", inline(_asset(name))) for name in SCRIPTS]),
    )
    return page.encode(errors="replace")


def _fitted(subjects: Sequence[Subject], *, alone: bool) -> list[Fitted]:
    """What there is room for of each table."""
    found = []
    left = PICTURE_ROOM
    rows = _rows([subject.table for subject in subjects])
    for number, (subject, shown) in enumerate(zip(subjects, rows, strict=True), 1):
        drawn = figures(subject, number, alone=alone)
        kept = []
        for one in drawn:
            if (size := len(one.encode(errors="replace"))) <= left:
                kept.append(one)
                left -= size
        found.append(Fitted(lines=shown, figures=kept, left_out=len(drawn) - len(kept)))
    return found


def _rows(tables: Sequence[PlotTable]) -> list[list[Markup]]:
    """The lines of each table. What small ones leave of the room, larger ones get."""
    found: dict[int, list[Markup]] = {}
    left = ROOM
    by_size = sorted(range(len(tables)), key=lambda at: len(tables[at].rows))
    for done, at in enumerate(by_size):
        found[at], taken = lines(tables[at], left // (len(tables) - done))
        left -= taken
    return [found[at] for at in range(len(tables))]


def _title(folders: Sequence[Folder], count: int) -> str:
    return f"{many(count, 'experiment')} of {listed([folder.name for folder in folders])}"


def _contents(folders: Sequence[Folder], tables: Sequence[PlotTable]) -> Markup:
    """The list of what is on the page, with each answer in short."""
    entries: dict[int, list[Markup]] = {id(folder): [] for folder in folders}
    for number, table in enumerate(tables, 1):
        answer = short_answer(table)
        entries[id(table.folder)].append(
            element(
                "li",
                element("a", question_of(table), href=f"#e{number}"),
                element("span", answer, class_="short") if answer else "",
            )
        )
    if len(folders) == 1:
        (lines,) = entries.values()
    else:
        lines = [
            element("li", element("span", folder.name, class_="folder"), element("ol", entries[id(folder)]))
            for folder in folders
        ]
    return element("nav", element("ol", lines), aria_label="Contents")


def _licences() -> Markup:
    """Those of the libraries that stand in the page, as they ask for."""
    return joined(
        [
            element(
                "details",
                element("summary", f"Licence of {name}"),
                element("pre", _vendored(file), tabindex="0"),
            )
            for name, file in LICENCES
        ]
    )


@cache
def _asset(name: str) -> str:
    return files(gpubench.export.page).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _vendored(name: str) -> str:
    return files(gpubench.export.page).joinpath("vendor", name).read_text(encoding="utf-8")
