"""Workbooks, read back: the finding with its figures and its chart, and under it every value of the records."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import committed
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
from gpubench.analyze.questions import report_folders
from gpubench.core.report import Report
from gpubench.export import sheets, workbook
from gpubench.export.finding_sheet import FindingSheet
from gpubench.export.formats import FormatOptions
from gpubench.export.native_chart import ChartPoint, ChartSeries, NativeChart
from gpubench.export.sheets import Sheet
from gpubench.render import words
from gpubench.render.pictures.vega import MOST_ABOVE
from gpubench.schema.columns import COLUMNS, Column
from gpubench.schema.kinds import as_text, kind, moment

RAW = ("table", "trials", "epochs", "environment", "doubts", "columns")


@cache
def read(name: str) -> Folder:
    return read_folder(committed.folder(name), lambda line: pytest.fail(line))


def write(*folders: Folder) -> bytes:
    return workbook.write(folders, FormatOptions())


def open_book(content: bytes) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(content))


@cache
def export(name: str) -> openpyxl.Workbook:
    """The workbook of a committed folder, to be read alone."""
    return open_book(write(read(name)))


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
    if kind(column) == "moment" and (date := moment(value)):
        return date
    return as_text(value) if isinstance(value, (list, tuple)) else value


def assert_holds(book: openpyxl.Workbook, sheet: Sheet) -> None:
    """Each value of the sheet stands in the worksheet of its name."""
    header = [cell.value for cell in book[sheet.name][1]]
    assert header == [column.name for column in sheet.columns]
    lines = list_lines(book[sheet.name])
    wanted = list(sheet.lines())
    assert len(lines) == len(wanted)
    for line, values in zip(lines, wanted, strict=True):
        for cell, value, column in zip(line, values, sheet.columns, strict=True):
            assert cell == convert(column, value), column.name


@pytest.mark.slow
@pytest.mark.parametrize("name", ["titan-xp-2021", "h200-copies-2026"])
def test_every_value_is_that_of_the_records(name: str) -> None:
    folder, book = read(name), export(name)
    for make in sheets.SHEETS.values():
        assert_holds(book, make([folder]))
    names = [column.name for column in COLUMNS]
    for record, cells in zip(folder.records, book["trials"].iter_rows(min_row=2), strict=True):
        assert cells[names.index("gpu_mem_mib")].value == record.result.gpu_mem_mib
        assert cells[names.index("started_at")].is_date


def test_figures_and_dates_have_formats_of_their_own() -> None:
    book = export("h200-copies-2026")
    cells = {head.value: cell for head, cell in zip(*book["trials"]["1:2"], strict=True)}
    assert cells["epoch_time_s"].number_format == "#,##0.00"
    assert cells["gpu_mem_mib"].number_format == "#,##0"
    assert cells["started_at"].number_format == "yyyy-mm-dd hh:mm:ss"
    assert cells["breakdown"].data_type == "b"


def test_a_figure_that_its_column_s_digits_would_show_as_nothing_has_more_of_them() -> None:
    (column,) = (column for column in COLUMNS if column.name == "epoch_time_s")
    assert workbook.choose_format(column, [0.0042, 12.0]) == "#,##0.0000"


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
        st.fixed_dictionaries({c.name: DATES if kind(c) == "moment" else values_of(c) for c in COLUMNS}),
        min_size=1,
        max_size=3,
    )
)
def test_a_sheet_holds_what_it_is_given_whatever_is_missing(lines: list[dict[str, Any]]) -> None:
    # openpyxl skips empty lines, so each has an id
    lines = [{**line, "trial_id": f"t{number}"} for number, line in enumerate(lines)]
    values = tuple([line[column.name] for line in lines] for column in COLUMNS)
    sheet = Sheet(name="trials", columns=COLUMNS, values=values)
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True}) as book:
        workbook.write_lines(book, sheet, set(), lambda **look: book.add_format(look))
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
    odd = ["a\x00b", "line\r\nline", " spaces ", "_x0041_", "\ud800", "🙂" * 20_000, "x" * 40_000]
    rows = [
        row_with(trial_id=f"t{n}", status="failed", reason=text, batch_size=n) for n, text in enumerate(odd)
    ]
    book = open_book(write(folder_of(rows)))
    reasons = [column.name for column in COLUMNS].index("reason")
    found = [row[reasons] for row in list_lines(book["trials"])]
    assert found[2:] == [" spaces ", found[3], "\\ud800", "🙂" * 16_383, "x" * 32_767]


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


def test_what_is_too_long_for_one_sheet_goes_on_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MOST_ROWS", 4)
    folder = read("h200-copies-2026")
    book = open_book(write(folder))
    names = [name for name in book.sheetnames if re.fullmatch(r"trials( \d+)?", name)]
    assert names == ["trials", "trials 2", "trials 3", "trials 4", "trials 5"]
    assert [row[0] for name in names for row in list_lines(book[name])] == list(folder.runs["trial_id"])


def test_names_of_sheets_are_short_and_unlike() -> None:
    taken = {"history", "table"}
    long = "a name that is far longer than a sheet's may be"
    wanted = [long, long, long.upper(), "TABLE", "a/b:c*[d]?\\", "'x'", "", "\ud800", "🙂" * 20, "History"]
    found = [workbook.name_sheet(name, taken) for name in wanted]
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert 0 < len(name.encode("utf-16-le")) // 2 <= 31
        assert not set(name) & set("[]:*?/\\")
        assert name.strip("'") == name
    assert found[3] == "TABLE 2"


@pytest.mark.slow
def test_several_folders_stand_in_one_workbook() -> None:
    first, second = read("h200-copies-2026"), read("h200x4-2026")
    book = open_book(write(first, second))
    assert {row[0] for row in list_lines(book["trials"])} == {first.name, second.name}
    assert book.sheetnames[4:] == [*RAW, "chart data"]
    twice = open_book(write(first, first))
    assert len(set(twice.sheetnames)) == len(twice.sheetnames) == 4 + len(RAW) + 1


def test_the_same_folder_makes_the_same_file() -> None:
    folder = read("h200-copies-2026")
    assert write(folder) == write(folder)


def test_the_command_writes_the_file_that_is_named(tmp_path: Path, warm_command: WarmCommand) -> None:
    folder = swept(tmp_path / "part", "part", "16,32", stop_after=1).runner.results.folder
    ended = warm_command.run(
        ("export", str(folder), "--out", "x.xlsx"), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "x.xlsx\n", "")
    book = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert book.sheetnames == ["finding", *RAW, "chart data"]
    assert len(list_lines(book["trials"])) == 1
    assert "not run yet" in find_row(book["finding"], 32)[1].value


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
    assert {cell.font.color.rgb for cell in names[:7]} == {"FF6B7280"}
    answer = find_row(sheet, 256)
    assert [cell.value for cell in answer[1:4]] == pytest.approx([4970.0, 2.060, 4.16], rel=1e-2)
    assert [cell.value for cell in answer[4:7]] == pytest.approx([0.41, 0.262, 0.108], abs=5e-3)
    forms = ["#,##0", "#,##0", "#,##0.00", "#,##0.0", "+0 %;-0 %;0 %", "0.0 %", "0.0 %"]
    assert [cell.number_format for cell in answer[:7]] == forms
    assert answer[7].value == "◀"
    filled = {row[0].value for row in sheet.iter_rows() if row[0].fill.fgColor.rgb == "FFFFF2CC"}
    assert filled == {256}
    failed = find_row(sheet, 2048)
    assert failed[1].value.startswith("× out of memory")
    assert [cell.value for cell in failed[2:7]] == [None] * 5


@pytest.mark.slow
@pytest.mark.parametrize("path", committed.folders(), ids=lambda path: path.name)
def test_every_figure_of_a_report_is_a_number_with_its_interval(path: Path) -> None:
    reports = report_folders([read(path.name)])
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True}) as book:
        for number, report in enumerate(reports):
            FindingSheet(
                book.add_worksheet(str(number)), report, lambda **look: book.add_format(look)
            ).write()
    for report, sheet in zip(reports, openpyxl.load_workbook(out), strict=True):
        numbers = [
            cell.value * (100 if "%" in cell.number_format else 1)
            for row in sheet.iter_rows()
            for cell in row
            if cell.data_type == "n" and cell.value is not None
        ]
        assert numbers == pytest.approx(list_figures(report))


def list_figures(report: Report) -> list[float]:
    """The figures of a report, line by line, each before the ends of its interval."""
    figures = []
    for row in report.rows:
        values = [
            (cell.value if isinstance(cell.value, tuple) else (cell.value,), cell.low, cell.high)
            for cell in row.cells
        ]
        for job in range(max(len(value) for value, *_ in values)):
            for value, low, high in values:
                figures += [*value[job : job + 1], *((low, high) if job == 0 else ())]
    return [figure for figure in figures if isinstance(figure, (int, float)) and not isinstance(figure, bool)]


def test_ends_of_intervals_stand_behind_their_figure_under_their_names() -> None:
    sheet = export("h200x2-2026")["finding"]
    names = [cell.value for cell in find_row(sheet, "batch_size")]
    place = names.index("epoch_time_s")
    assert names[place : place + 3] == ["epoch_time_s", "epoch_time_low_s", "epoch_time_high_s"]
    value, low, high = (cell.value for cell in find_row(sheet, 128)[place : place + 3])
    assert low < value < high


def test_jobs_have_a_line_each_and_what_they_share_stands_in_the_first() -> None:
    sheet = export("h200-copies-rounds-2026")["mobilenet_v2-copies"[:31] if False else "finding"]
    first = find_row(sheet, "3 × batch 16")
    names = [cell.value for cell in find_row(sheet, "group")]
    times = names.index("epoch_time_s")
    lines = [[cell.value for cell in row] for row in sheet.iter_rows(first[0].row, first[0].row + 2)]
    assert all(11 < line[times] < 12 for line in lines)
    assert [line[0] for line in lines] == ["3 × batch 16", None, None]
    assert [line[3] for line in lines] == [pytest.approx(2.95, abs=0.01), None, None]


def test_the_first_sheet_says_what_a_terminal_says() -> None:
    folder, book = read("titan-xp-2021"), export("titan-xp-2021")
    for report, sheet in zip(report_folders([folder]), book, strict=False):
        texts = list_texts(sheet)
        answer, sentences = words.title_finding(report, report.findings[0])
        assert texts[0] == answer
        above = [" ".join(sentences), words.write_question(report), f"How sure: {report.findings[0].word}."]
        assert [text for text in above if text] == texts[1 : 1 + len(list(filter(None, above)))]
        places = [
            next(place for place, text in enumerate(texts) if text.endswith(line.text))
            for line in words.write_lines(report)
            if line.kind != "answer" and line.text not in sentences
        ]
        assert places == sorted(places)


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
    assert list_texts(book.worksheets[0])[-2:] == [f"! {line}" for line in problems]
    assert list_lines(book["doubts"])[-2:] == [[None] * 5 + [line] for line in problems]


# ---- its chart ----


def read_chart(book: openpyxl.Workbook, sheet: str) -> tuple[Any, dict[str, list[tuple[Any, ...]]]]:
    """The only chart of a sheet, and its series by name: x, y and the ways to the ends of intervals of each point."""
    (chart,) = book[sheet]._charts
    data = book["chart data"]
    series = {}
    for drawn in chart.series:
        name = data[drawn.tx.strRef.f.rpartition("!")[2].replace("$", "")].value
        values = (drawn.val or drawn.yVal).numRef.f.rpartition("!")[2].replace("$", "")
        rows = range(*(int(number) for number in re.findall(r"\d+", values)))
        series[name] = [tuple(cell.value for cell in data[row][2:6]) for row in (*rows, rows.stop)]
        assert all(data[row][1].value == name for row in rows)
    return chart, series


def test_growth_is_drawn_up_to_the_size_that_ran_out_of_memory_and_marks_it_and_the_answer() -> None:
    book = export("h200x4-2026")
    chart, series = read_chart(book, "mobilenet_v2-4gpu")
    assert chart.tagname == "lineChart"
    assert list(series) == ["ddp", "dp", "512: out of memory", "128: 6,097 images/s"]
    for points in series.values():
        assert [x for x, *_ in points] == ["16", "32", "64", "128", "256", "512"]
    rates = [y for _, y, *_ in series["ddp"]]
    sheet = book["mobilenet_v2-4gpu"]
    assert rates[:5] == [find_row(sheet, size)[1].value for size in (16, 32, 64, 128, 256)]
    assert rates[5] is None
    assert [y for _, y, *_ in series["512: out of memory"]] == [None] * 5 + [0]
    assert [y for _, y, *_ in series["128: 6,097 images/s"]] == [None, None, None, rates[3], None, None]
    symbols = [drawn.marker.symbol for drawn in chart.series]
    assert symbols[2:] == ["x", "circle"]
    assert [drawn.dLbls.showSerName for drawn in chart.series[2:]] == [True, True]


def test_a_series_that_runs_out_of_memory_before_the_others_is_named_at_its_cross() -> None:
    rows = [
        row_with(
            trial_id=f"{workers}-{batch}", status="ok" if batch < end else "oom", model="lenet", workers=workers,
            batch_size=batch, epoch_time_s=4.0 if batch < end else None, images_per_epoch=640,
        )
        for workers, end in ((2, 128), (4, 64))
        for batch in (16, 32, 64, 128)
        if batch <= end
    ]  # fmt: skip
    folder = folder_of(rows, name="sizes", axes=[["batch_size"]])
    _, series = read_chart(open_book(write(folder)), "finding")
    crosses = {
        name: [x for x, y, *_ in points if y == 0] for name, points in series.items() if "memory" in name
    }
    assert {name.partition(":")[0]: sizes for name, sizes in crosses.items()} == {
        "2 workers 128": ["128"],
        "4 workers 64": ["64"],
    }


def test_error_bars_reach_from_end_to_end_of_the_interval() -> None:
    book = export("h200x2-2026")
    chart, series = read_chart(book, "finding")
    assert all(drawn.errBars.minus.numRef.f.startswith("'chart data'!$E$") for drawn in chart.series[:3])
    _, rate, down, up = series["2 GPUs (ddp)"][3]
    row = find_row(book["finding"], 128, find_row(book["finding"], "2 GPUs (ddp)")[0].row)
    assert [rate, rate - down, rate + up] == pytest.approx([cell.value for cell in row[1:4]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "series", "first"),
    [
        ("h200-copies-rounds-2026", "bar", ["full overlap", "predicted before it ran", "measured"], 1.90),
        ("h200x4-scaling-2026", "bar", ["ideal", "measured"], 1.85),
        ("h200x2-network-size-2026", "bar", ["ideal", "measured"], 0.77),
    ],
)
def test_other_findings_are_drawn_as_bars(name: str, kind: str, series: list[str], first: float) -> None:
    chart, found = read_chart(export(name), "finding")
    assert chart.tagname == f"{kind}Chart"
    assert list(found) == series
    assert found["measured"][-1][1] == pytest.approx(first, abs=0.01)  # the uppermost bar


def test_ways_are_drawn_by_their_times() -> None:
    book = export("titan-xp-2021")
    _, series = read_chart(book, "mobilenet_v2-v7-v11")
    assert {name: points[-1][1] for name, points in series.items()} == {
        "crop-resize": 18.1,
        "pre-resized": 16.5,
    }


def test_runs_to_a_target_are_drawn_over_their_time() -> None:
    chart, series = read_chart(export("h200-until-top1-2026"), "finding")
    (report,) = report_folders([read("h200-until-top1-2026")])
    assert chart.tagname == "scatterChart"
    assert [name.partition(",")[0] for name in series] == [
        "batch 128",
        "batch 64",
        "batch 32",
        "batch 256",
        "60 % top-1",
    ]
    for row, label in report.labels.items():
        points = next(
            points for name, points in series.items() if name.startswith(f"batch {label['batch_size']}")
        )
        assert [point[:2] for point in points] == [pytest.approx(point) for point in report.training[row]]


def test_nothing_to_compare_draws_nothing() -> None:
    folder = folder_of([row_with(trial_id="t", experiment="x", status="failed", batch_size=16)])
    book = open_book(write(folder))
    assert book["finding"]._charts == []
    assert list_lines(book["chart data"]) == []


@given(st.floats(1e-6, 1e9), st.floats(1, 50))
def test_the_axis_reaches_the_ends_of_intervals_unless_these_dwarf_the_figures(
    y: float, times: float
) -> None:
    point = ChartPoint(x="1", y=y, low=y / 2, high=y * times)
    chart = NativeChart(kind="line", title="", x_title="", series=(ChartSeries(name="", points=(point,)),))
    assert max(y, min(y * times, MOST_ABOVE * y)) < chart.top < 2 * MOST_ABOVE * y


def test_a_chart_holds_no_more_bars_than_can_be_read() -> None:
    rows = [
        row_with(
            trial_id=f"t{variant}{number}", config_id=f"c{variant}{number}", status="ok", batch_size=16,
            model="lenet", variant=variant, lr=0.001 * number, epoch_time_s=1.0 + number,
        )
        for variant in ("synthetic", "crop-resize")
        for number in range(1, 101)
    ]  # fmt: skip
    book = open_book(write(folder_of(rows, name="many", axes=[["variant"], ["lr"]])))
    chart, series = read_chart(book, "finding")
    colors = [drawn.spPr.solidFill.srgbClr for drawn in chart.series]
    assert dict(zip(series, colors, strict=True)) == {"synthetic": "D55E00", "crop-resize": "0072B2"}
    assert [len(points) for points in series.values()] == [60, 60]
    title = "".join(run.t for run in chart.title.tx.rich.p[0].r)
    assert title.endswith(words.count_drawn(60, 100))
