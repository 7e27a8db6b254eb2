"""The first sheet: of each table the question, the answers, charts and doubts in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from xlsxwriter import Workbook
from xlsxwriter.worksheet import Worksheet

from gpubench.basics.words import first_sentence
from gpubench.export.xlsx.charts import SIZE, Charts, NativeChart, native_charts
from gpubench.export.xlsx.grid import A4
from gpubench.plot.table import PlotTable
from gpubench.render import words

WIDTH = 142
"""Of the column, in signs: two charts fit beside each other."""
PER_LINE = 160
"""Signs of a sentence that surely fit into it: letters are narrower than digits."""
PRINTED_PCT = 76
"""Of its size, so that the column fits on a page in LibreOffice as well."""
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
        self._bold = book.add_format({"bold": True})
        self._plain = book.add_format(wrapped)
        here.set_column(0, 0, WIDTH)
        here.hide_gridlines(2)
        here.set_landscape()
        here.set_paper(A4)
        here.set_margins(left=0.4, right=0.4)
        here.set_print_scale(PRINTED_PCT)
        self._breaks: list[int] = []

    def of(self, table: PlotTable, sheet: str, charts: Charts) -> None:
        """All that a table says in words, with its charts. `sheet`: where its lines stand."""
        if self._row:
            self._breaks.append(self._row)
            self._here.set_h_pagebreaks(self._breaks)
        self._put(table.title, self._title)
        for line in (words.ask(table.report), table.facts):
            self._put(line, self._plain)
        self._put(f"The lines of this table are in the sheet {sheet}.", self._plain)
        self._block("Answers", table.answers, answers=True)
        self._draw(native_charts(table), table, charts)
        self._block("Doubts", table.warnings)
        self._row += 2

    def about(self, notes: Sequence[str]) -> None:
        """What is said of the workbook itself."""
        self._block("About this workbook", notes)

    def _block(self, title: str, lines: Sequence[str], *, answers: bool = False) -> None:
        """Sentences under a title; of `answers` the first sentence is bold."""
        if not lines:
            return
        self._row += 1
        self._put(title, self._part)
        for line in lines:
            self._put(line, self._plain, bold=first_sentence(line)[0] if answers else "")

    def _draw(self, found: Sequence[NativeChart], table: PlotTable, charts: Charts) -> None:
        if not found:
            return
        self._row += 1
        for number, drawn in enumerate(found):
            place = {"x_offset": 5 + number * (SIZE["width"] + 12), "y_offset": 4, "object_position": 2}
            self._here.insert_chart(self._row, 0, charts.made(drawn, table), place)
        self._row += math.ceil((SIZE["height"] + 8) / ROW_PIXELS)
        if left_out := found[0].left_out:
            what = "lines" if found[0].is_numeric else "rows"
            self._put(
                f"The charts leave out {left_out:,} more {what}, for which there is no room.", self._plain
            )

    def _put(self, text: str, style: object, bold: str = "") -> None:
        """One row of plain text, as high as it takes. `bold`: what it begins with, if that is to be bold."""
        height = 22.0 if style is self._title else LINE_POINTS * math.ceil(max(1, len(text)) / PER_LINE)
        self._here.set_row(self._row, height)
        rest = text[len(bold) :]
        if bold and rest:
            self._here.write_rich_string(self._row, 0, self._bold, bold, rest, style)
        else:
            self._here.write_string(self._row, 0, text, style)
        self._row += 1
