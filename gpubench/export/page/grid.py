"""The rows of a table as an HTML table whose cells tell what they are sorted by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpubench.basics.words import UNKNOWN
from gpubench.export.page.markup import Markup, element
from gpubench.plot.table import PlotTable
from gpubench.schema.columns import Column
from gpubench.schema.row import TableRow


def lines(table: PlotTable, room: int) -> tuple[list[Markup], int]:
    """The table's rows as HTML, as many as there is room for, and the bytes that they take."""
    found: list[Markup] = []
    taken = 0
    for line in _lines(table):
        size = len(line.encode(errors="replace"))
        if found and taken + size > room:
            break
        found.append(line)
        taken += size
    return found, taken


def grid(table: PlotTable, shown: Sequence[Markup], number: int) -> Markup:
    """The table with these lines. `number`: its place on the page."""
    heads = [
        element(
            "th",
            name,
            scope="col",
            class_="n" if right else None,
            title=_about(column),
        )
        for name, column, right in zip(table.headings, table.columns, table.right, strict=True)
    ]
    total = len(table.rows)
    left_out = (
        f" This page shows the first {len(shown):,} of {total:,} rows; gpubench export --format csv writes them all."
        if len(shown) < total
        else ""
    )
    caption = f"{table.title}: {total:,} row{'s' if total != 1 else ''}.{left_out}"
    return element(
        "div",
        _filter(number),
        # In a box of its own: a wide table scrolls there, and the keyboard can get at it.
        element(
            "div",
            element(
                "table",
                element("caption", caption),
                element("thead", element("tr", heads)),
                element("tbody", shown),
                class_="rows",
            ),
            class_="box",
            role="region",
            aria_label=caption,
            tabindex="0",
        ),
        class_="grid",
    )


def _filter(number: int) -> Markup:
    """Shown by the page's script: without one it would do nothing."""
    name = f"filter-{number}"
    return element(
        "div",
        element("label", "Show rows with", for_=name),
        element("input", type="search", id=name, autocomplete="off", spellcheck="false"),
        element("output", for_=name, aria_live="polite"),
        class_="filter",
        hidden=True,
    )


def _about(column: Column) -> str | None:
    unit = f" ({column.unit})" if column.unit else ""
    return f"{column.meaning}{unit}" if column.meaning else None


def _lines(table: PlotTable) -> Iterator[Markup]:
    names = [column.name for column in table.columns]
    named_by = next((at for at, name in enumerate(names) if name in table.varied), 0)
    for row, texts in zip(table.rows, table.cells, strict=True):
        cells = []
        for at, (name, shown) in enumerate(zip(names, texts, strict=True)):
            right = table.right[at]
            known = _sorted_by(row, name) if right and name != "status" else None
            beside = _doubts(row) if name == "status" and row.doubts else Markup("")
            cells.append(
                element(
                    "th" if at == named_by else "td",
                    shown,
                    beside,
                    scope="row" if at == named_by else None,
                    class_="n" if right else None,
                    data_v=known,
                    title=row.missing.get(name) if shown == UNKNOWN else None,
                )
            )
        yield element("tr", cells, class_=None if row.status == "ok" else "not-ok")


def _sorted_by(row: TableRow, name: str) -> str:
    """The figure behind a cell, with all the digits that tell rows apart; empty where there is none."""
    value: Any = row.value(name)
    if isinstance(value, float):
        return f"{value:.9g}"
    return str(int(value)) if isinstance(value, int) else ""


def _doubts(row: TableRow) -> Markup:
    """What the mark of a row with doubts stands for, for those who don't see it."""
    return element("span", f" doubts: {row.doubts}", class_="unseen")
