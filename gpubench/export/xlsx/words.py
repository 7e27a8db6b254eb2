"""The first sheet: of each table the question, the answers, charts, remarks and doubts in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from gpubench.export.xlsx.charts import SIZE, Charts, Picture, pictures
from gpubench.report.table import Table

WIDTH = 140
"""Of the column, in signs."""
PER_LINE = 150
"""Signs of a sentence that surely fit into it: letters are narrower than digits."""
LINE_POINTS = 15.5
ROW_PIXELS = 20


class Words:
    """Writes text row by row, and charts between it."""

    def __init__(self, book: Workbook, here: Worksheet) -> None:
        self._here = here
        self._row = 0
        wrapped = {"text_wrap": True, "valign": "top"}
        self._title = book.add_format({"bold": True, "font_size": 14})
        self._part = book.add_format({"bold": True, "font_color": "#44546A"})
        self._answer = book.add_format({"bold": True} | wrapped)
        self._plain = book.add_format(wrapped)
        here.set_column(0, 0, WIDTH)
        here.hide_gridlines(2)
        here.set_landscape()
        here.fit_to_pages(1, 0)

    def of(self, table: Table, sheet: str, charts: Charts) -> None:
        """All that a table says in words, with its charts. `sheet`: where its lines stand."""
        self._put(table.title, self._title)
        for line in table.heading:
            self._put(line, self._plain)
        self._put(f"The lines of this table are in the sheet {sheet}.", self._plain)
        self._block("Answers", table.answers, self._answer)
        self._draw(pictures(table), table, charts)
        self._block("Remarks", table.remarks, self._plain)
        self._block("Doubts", table.doubts, self._plain)
        self._row += 2

    def about(self, notes: Sequence[str]) -> None:
        """What is said of the workbook itself."""
        self._block("About this workbook", notes, self._plain)

    def _block(self, title: str, lines: Sequence[str], style: object) -> None:
        if not lines:
            return
        self._row += 1
        self._put(title, self._part)
        for line in lines:
            self._put(line, style)

    def _draw(self, found: Sequence[Picture], table: Table, charts: Charts) -> None:
        if not found:
            return
        self._row += 1
        for number, picture in enumerate(found):
            place = {"x_offset": 5 + number * (SIZE["width"] + 12), "y_offset": 4, "object_position": 2}
            self._here.insert_chart(self._row, 0, charts.made(picture, table), place)
        self._row += math.ceil((SIZE["height"] + 8) / ROW_PIXELS)
        if left_out := found[0].left_out:
            what = "lines" if found[0].is_numeric else "rows"
            self._put(
                f"The charts leave out {left_out:,} more {what}, for which there is no room.", self._plain
            )

    def _put(self, text: str, style: object) -> None:
        """One row of plain text, as high as it takes."""
        if style in (self._plain, self._answer):
            lines = sum(math.ceil(max(1, len(part)) / PER_LINE) for part in text.split("\n"))
            self._here.set_row(self._row, LINE_POINTS * lines)
        else:
            self._here.set_row(self._row, 22 if style is self._title else LINE_POINTS)
        self._here.write_string(self._row, 0, text.encode("utf-8", "replace").decode(), style)
        self._row += 1
