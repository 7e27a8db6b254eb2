"""Workbooks, read back: the finding with its figures and its chart, and under it every value of the records."""

from __future__ import annotations

import io
import shutil
import zipfile
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import committed
import numpy as np
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_folders import folder_of
from openpyxl.cell import Cell
from openpyxl.worksheet.worksheet import Worksheet
from swept import swept
from warm_command import WarmCommand
from whole_rows import row_with
from whole_values import values_of
from xlsxwriter import Workbook

from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.basics.errors import UnusableError
from gpubench.core.report import Report
from gpubench.export import sheets, workbook
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import Sheet
from gpubench.render import words
from gpubench.schema.columns import COLUMNS, Column
from gpubench.schema.kinds import find_column_kind, format_value_text, parse_moment

RAW = ("table", "trials", "epochs", "environment", "doubts", "columns")


@cache
def read(name: str) -> Folder:
    return read_folder(committed.folder(name), lambda line: pytest.fail(line))


def write(*folders: Folder) -> bytes:
    return workbook.make_workbook(folders, FormatOptions())


def open_book(content: bytes) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(content))


@cache
def content_of(name: str) -> bytes:
    return write(read(name))


@cache
def export(name: str) -> openpyxl.Workbook:
    """The workbook of a committed folder, to be read alone."""
    return open_book(content_of(name))


def list_lines(sheet: Worksheet) -> list[list[Any]]:
    """All that stands under the header."""
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]


def find_row(sheet: Worksheet, first: Any, after: int = 0) -> Sequence[Cell]:
    """The first row below `after` whose first cell holds this."""
    return next(row for row in sheet.iter_rows(min_row=after + 1) if row[0].value == first)


def list_texts(sheet: Worksheet) -> list[str]:
    """What stands in the first column."""
    return [str(cell.value) for cell in sheet["A"] if cell.value is not None]


# ---- lines under the names of their columns ----


def convert(column: Column, value: Any) -> Any:
    """What a spreadsheet holds of a value."""
    if isinstance(value, float):  # XlsxWriter writes 16 digits
        return pytest.approx(value, rel=1e-15, abs=0)
    if find_column_kind(column) == "moment" and (date := parse_moment(value)):
        return date
    return format_value_text(value) if isinstance(value, (list, tuple)) else value


def assert_holds(book: openpyxl.Workbook, sheet: Sheet) -> None:
    """Each value of the sheet stands in the worksheet of its name."""
    header = [cell.value for cell in book[sheet.name][1]]
    assert header == [column.name for column in sheet.columns]
    lines = list_lines(book[sheet.name])
    assert len(lines) == len(sheet.lines)
    for line, values in zip(lines, sheet.lines, strict=True):
        for cell, value, column in zip(line, values, sheet.columns, strict=True):
            assert cell == convert(column, value), column.name


@pytest.mark.slow
def test_every_value_is_that_of_the_records() -> None:
    folder, book = read("h200-copies-2026"), export("h200-copies-2026")
    for make in sheets.SHEETS.values():
        assert_holds(book, make([folder]))
    names = [column.name for column in COLUMNS]
    for record, cells in zip(folder.records, book["trials"].iter_rows(min_row=2), strict=True):
        assert cells[names.index("gpu_mem_mib")].value == record.result.get("gpu_mem_mib")
        assert cells[names.index("started_at")].is_date


def test_headers_stay_in_view_and_filter() -> None:
    book = export("h200-copies-2026")
    for name in RAW:
        assert book[name].freeze_panes == "B2"
        assert book[name].auto_filter.ref == book[name].dimensions


DATES = st.none() | st.datetimes(datetime(2000, 1, 1)).map(lambda date: date.isoformat(" ", "seconds"))


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {c.name: DATES if find_column_kind(c) == "moment" else values_of(c) for c in COLUMNS}
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_sheet_holds_what_it_is_given_whatever_is_missing(lines: list[dict[str, Any]]) -> None:
    # openpyxl skips empty lines, so each has an id
    lines = [{**line, "trial_id": f"t{number}"} for number, line in enumerate(lines)]
    values = [[line[column.name] for column in COLUMNS] for line in lines]
    sheet = Sheet(name="trials", columns=COLUMNS, lines=values)
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True}) as book:
        workbook.write_sheet(book, sheet, lambda **look: book.add_format(look))
    assert_holds(openpyxl.load_workbook(out), sheet)


def test_text_that_would_run_as_a_formula_is_text() -> None:
    bad = ["=1+1", "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "{=1}", "https://example.com", "<r>x</r>"]
    rows = [
        row_with(
            trial_id=f"t{n}-{batch}", status="ok", batch_size=batch, model=text, reason=text, host=text,
            epoch_time_s=1.0 + n, doubts="spread", doubt_texts={"spread": text},
        )
        for n, text in enumerate(bad)
        for batch in (16, 32)
    ]  # fmt: skip
    content = write(folder_of(rows, question="=1+1", name="=HYPERLINK(1)", axes=[["batch_size"]]))
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        for name in whole.namelist():
            text = whole.read(name).decode()
            assert "<f>" not in text.replace("<c:f>", "")
            assert "<hyperlink " not in text
    book = open_book(content)
    reasons = [column.name for column in COLUMNS].index("reason")
    assert [row[reasons] for row in list_lines(book["trials"])][::2] == [*bad[:-1], " <r>x</r>"]
    assert "=1+1" in list_texts(book["finding"])
    assert all(cell.data_type != "f" for sheet in book for row in sheet.iter_rows() for cell in row)


def test_odd_characters_and_long_texts_are_kept_as_far_as_excel_can() -> None:
    odd = ["a\x00b", "line\r\nline", " spaces ", "_x0041_", "\ud800", "x" * 40_000]
    rows = [
        row_with(trial_id=f"t{n}", status="failed", reason=text, batch_size=n) for n, text in enumerate(odd)
    ]
    book = open_book(write(folder_of(rows)))
    reasons = [column.name for column in COLUMNS].index("reason")
    found = [row[reasons] for row in list_lines(book["trials"])]
    assert found[2:] == [" spaces ", found[3], "\\ud800", "x" * 16_000]


def test_names_with_odd_characters_spoil_no_part_of_the_file() -> None:
    odd = "a\x01b\ud800=<&>\n"
    rows = [
        row_with(
            trial_id=f"t{n}-{batch}", experiment=odd, status="ok", model=odd, variant=f"{odd}{n}",
            epoch_time_s=1.0 + n, batch_size=batch,
        )
        for n in range(3)
        for batch in (16, 32)
    ]  # fmt: skip
    content = write(folder_of(rows, folder="odd\x01\udcff"))
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        assert "xl/charts/chart1.xml" in whole.namelist()
        for name in whole.namelist():
            ElementTree.fromstring(whole.read(name))  # raises where it is no XML


def test_more_rows_than_excel_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MOST_ROWS", 4)
    with pytest.raises(UnusableError, match="--format parquet"):
        write(read("h200-copies-2026"))


def test_names_of_sheets_are_short_and_unlike() -> None:
    taken = {"history", "table"}
    long = "a name that is far longer than a sheet's may be"
    wanted = [long, long, long.upper(), "TABLE", "a/b:c*[d]?\\", "'x'", "", "\ud800", "History"]
    found = [workbook.make_sheet_name(name, taken) for name in wanted]
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert 0 < len(name) <= 31
        assert not set(name) & set("[]:*?/\\")
        assert name.strip("'") == name
    assert found[3] == "TABLE 2"


@pytest.mark.slow
def test_several_folders_stand_in_one_workbook() -> None:
    first, second = read("h200-batch-size-2026"), read("h200-copies-2026")
    book = open_book(write(first, second, second))
    assert {row[0] for row in list_lines(book["trials"])} == {first.name, second.name}
    count = len(first.tables) + 2 * len(second.tables)
    assert book.sheetnames[count:] == [*RAW]
    assert len(set(book.sheetnames)) == count + len(RAW)


def test_the_same_folder_makes_the_same_file() -> None:
    assert write(read("h200-copies-2026")) == content_of("h200-copies-2026")


def test_the_command_writes_the_file_that_is_named(tmp_path: Path, warm_command: WarmCommand) -> None:
    folder = swept(tmp_path / "part", "part", "16,32", stop_after=1).runner.results.folder
    ended = warm_command.run(
        ("export", str(folder), "--out", "x.xlsx"), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "x.xlsx\n", "")
    book = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert book.sheetnames == ["finding", *RAW]
    assert len(list_lines(book["trials"])) == 1
    assert any("not run yet" in str(cell.value) for cell in find_row(book["finding"], 32))


# ---- the finding ----


def test_the_first_sheet_has_figures_under_two_rows_of_headings_and_marks_the_answer() -> None:
    sheet = export("h200x4-2026")["resnet34-4gpu"]
    headings = find_row(sheet, "batch")
    names = find_row(sheet, "batch_size")
    assert names[0].row == headings[0].row + 1
    assert [cell.value for cell in headings[:7]] == [
        "batch",
        "images/s",
        "epoch s",
        "GiB",
        "growth",
        "CPU",
        "wait",
    ]
    assert [cell.value for cell in names[3:7]] == [
        "gpu_mem_mib",
        "gpu_mem_growth_pct",
        "cpu_util_pct",
        "data_wait_pct",
    ]
    answer = find_row(sheet, 256)
    assert [cell.value for cell in answer[1:4]] == pytest.approx([4970.0, 2.060, 4.16], rel=1e-2)
    assert [cell.value for cell in answer[4:7]] == pytest.approx([0.41, 0.262, 0.108], abs=5e-3)
    forms = ["#,##0", "#,##0", "#,##0.00", "#,##0.0", "+0 %;-0 %;0 %", "0.0 %", "0.0 %"]
    assert [cell.number_format for cell in answer[:7]] == forms
    assert answer[7].value == "◀"
    filled = {row[0].value for row in sheet.iter_rows() if row[0].fill.fgColor.rgb == "FFFFF2CC"}
    assert filled == {256}
    failed = find_row(sheet, 2048)
    assert failed[7].value.startswith("× out of memory")
    assert [cell.value for cell in failed[1:7]] == [None] * 6


def test_ends_of_intervals_stand_behind_their_figure_under_their_names() -> None:
    sheet = export("h200x2-2026")["finding"]
    names = [cell.value for cell in find_row(sheet, "batch_size")]
    place = names.index("epoch_time_s")
    assert names[place : place + 3] == ["epoch_time_s", "epoch_time_low_s", "epoch_time_high_s"]
    value, low, high = (cell.value for cell in find_row(sheet, 128)[place : place + 3])
    assert low < value < high


@pytest.mark.parametrize("name", committed.cases([*committed.DIFFERENT, "titan-xp-2021"]))
def test_the_first_sheets_have_every_figure_and_sentence_of_the_reports(name: str) -> None:
    reports, book = make_folder_reports([read(name)]), export(name)
    for report, sheet in zip(reports, book, strict=False):
        numbers = [
            cell.value * (100 if "%" in cell.number_format else 1)
            for row in sheet.iter_rows()
            for cell in row
            if cell.data_type == "n" and cell.value is not None
        ]
        figures = np.array(list_figures(report))
        assert np.isclose(figures[:, None], numbers, rtol=1e-6, atol=1e-12).any(axis=1).all()
        text = " ".join(list_texts(sheet))
        for line in words.list_sentences(report)[1:]:
            assert line.text in text
        assert words.format_question(report) in text


def list_figures(report: Report) -> list[float]:
    """The figures of a report, with the ends of their intervals."""
    figures = [
        figure for row in report.rows for cell in row.cells for figure in (cell.value, cell.low, cell.high)
    ]
    return [figure for figure in figures if isinstance(figure, (int, float)) and not isinstance(figure, bool)]


def test_the_workbook_names_the_record_and_the_plan_that_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "x"
    shutil.copytree(committed.folder("h200-copies-2026"), folder)
    record = min((folder / "records").glob("*/*.json"))
    record.write_bytes(record.read_bytes()[:200])
    plan = min((folder / "plans").glob("*.toml"))
    plan.write_text("[")
    problems: list[str] = []
    damaged = read_folder(folder, problems.append)
    assert [record.name in problems[0], plan.name in problems[1]] == [True, True]
    book = open_book(write(damaged))
    text = "".join(list_texts(book.worksheets[0])).replace(" ", "")
    assert all(f"! {line}".replace(" ", "") in text for line in problems)
    assert list_lines(book["doubts"])[-2:] == [[None] * 5 + [line] for line in problems]


# ---- its chart ----


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("h200-copies-rounds-2026", "work done"),
        ("h200x2-2026", "images/s"),
        ("h200-until-top1-2026", "s to 60 %"),
    ],
)
def test_the_chart_draws_the_main_column_with_its_intervals(name: str, heading: str) -> None:
    sheet = export(name)["finding"]
    (chart,) = sheet._charts
    assert chart.tagname == "barChart"
    names = next(row for row in sheet.iter_rows() if heading in [cell.value for cell in row])
    (place,) = (cell.column for cell in names if cell.value == heading)
    (drawn,) = chart.series
    values = [row[0] for row in sheet[range_of(drawn.val.numRef.f)]]
    assert {cell.column for cell in values} == {place}
    assert values[0].row == names[0].row + 2
    below = sheet.cell(values[-1].row + 1, place).value
    assert below is None
    if sheet.cell(names[0].row, place + 1).value == "from":
        ways = [sheet[range_of(way.numRef.f)] for way in (drawn.errBars.minus, drawn.errBars.plus)]
        for cell, (down,), (up,) in zip(values, *ways, strict=True):
            low, high = (sheet.cell(cell.row, place + n).value for n in (1, 2))
            for end, way, sign in ((low, down.value, -1), (high, up.value, 1)):
                assert end is None or cell.value + sign * way == pytest.approx(end)


def range_of(formula: str) -> str:
    return formula.rpartition("!")[2].replace("$", "")


def test_one_row_or_too_many_draw_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MOST_BARS", 3)
    for count, is_drawn in ((1, False), (3, True), (4, False)):
        rows = [
            row_with(trial_id=f"t{n}", config_id=f"c{n}", status="ok", batch_size=n + 1, epoch_time_s=1.0 + n)
            for n in range(count)
        ]
        book = open_book(write(folder_of(rows, axes=[["batch_size"]])))
        assert bool(book["finding"]._charts) == is_drawn
