"""Excel workbooks, read back: every number is that of the records, text is text, charts show what the table says."""

from __future__ import annotations

import io
import itertools
import re
import shutil
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import committed
import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_folders import folder_of
from openpyxl.worksheet.worksheet import Worksheet
from swept import swept
from warm_command import WarmCommand
from whole_rows import row_with
from whole_values import values_of
from xlsxwriter import Workbook
from xlsxwriter.utility import cell_autofit_width

from gpubench.analyze.folder import Folder, read_folder
from gpubench.export import sheets
from gpubench.export.formats import Asked
from gpubench.export.sheets import Sheet
from gpubench.export.xlsx import charts, grid
from gpubench.export.xlsx import file as workbook
from gpubench.export.xlsx.charts import native_charts
from gpubench.export.xlsx.names import SheetNames
from gpubench.plot.table import lay_out
from gpubench.render import words
from gpubench.schema.columns import COLUMNS, DERIVED, EPOCH_COLUMNS, Column
from gpubench.schema.kinds import as_text, kind, moment

FIXED = ("trials", "epochs", "environment", "doubts")


def written(*folders: Folder) -> bytes:
    return workbook.write(folders, Asked())


def book_of(*folders: Folder) -> openpyxl.Workbook:
    return openpyxl.load_workbook(io.BytesIO(written(*folders)))


def of_folder(name: str) -> Folder:
    return read_folder(committed.folder(name), lambda line: pytest.fail(line))


def lines(sheet: Worksheet) -> list[list[Any]]:
    """All that stands under the header."""
    return [[cell.value for cell in row] for row in sheet.iter_rows(min_row=2)]


def plain(column: Column, value: Any) -> Any:
    """What a spreadsheet is to hold of a value."""
    if kind(column) == "moment" and (found := moment(value)):
        return found
    return as_text(value) if isinstance(value, (list, tuple)) else value


def assert_holds(book: openpyxl.Workbook, sheet: Sheet) -> None:
    """Each value of the sheet stands in the worksheet of its name, to the last digit."""
    here = book[sheet.name]
    assert [str(cell.value).partition(" (")[0] for cell in here[1]] == [
        column.name for column in sheet.columns
    ]
    wanted = list(sheet.lines())
    found = lines(here)
    assert len(found) == len(wanted)
    for row, values in zip(found, wanted, strict=True):
        for cell, value, column in zip(row, values, sheet.columns, strict=True):
            assert cell == plain(column, value), column.name


@pytest.mark.parametrize("name", ["titan-xp-2021", "h200-copies-2026"])
def test_every_value_is_that_of_the_records(name: str) -> None:
    one = of_folder(name)
    book = book_of(one)
    for what in FIXED:
        assert_holds(book, sheets.SHEETS[what]([one]))
    trials = book["trials"]
    names = [column.name for column in COLUMNS]
    (began,) = (trials.cell(2, names.index("started_at") + 1),)
    assert began.is_date
    assert isinstance(began.value, datetime)
    for record, cells in zip(one.records, trials.iter_rows(min_row=2), strict=True):
        assert cells[names.index("epoch_time_s")].value == record.result.epoch_time_s
        assert cells[names.index("gpu_mem_mib")].value == record.result.gpu_mem_mib


def test_the_workbook_names_the_record_and_the_plan_that_are_left_out(tmp_path: Path) -> None:
    """In the words in which they are told on stderr, under the doubts of its table and in the sheet of doubts."""
    folder = tmp_path / "x"
    shutil.copytree(committed.folder("h200-copies-2026"), folder)
    record = min((folder / "records").glob("*/*.json"))
    record.write_bytes(record.read_bytes()[:200])
    plan = min((folder / "plans").glob("*.toml"))
    plan.write_text("[")
    told: list[str] = []
    one = read_folder(folder, told.append)
    assert [record.name in told[0], plan.name in told[1]] == [True, True]
    book = book_of(one)
    answers = [row[0] for row in lines(book["answers"])]
    assert [line for line in answers if line in told] == told * len(one.tables)
    above = [line for line in answers[: answers.index(told[0])] if line in ("Answers", "Doubts")]
    assert above[-1] == "Doubts"
    (*_, last_but_one, last) = lines(book["doubts"])
    assert [last_but_one, last] == [[None] * 5 + [line] for line in told]


def test_a_table_has_a_sheet_of_its_own_without_empty_columns() -> None:
    one = of_folder("titan-xp-2021")
    book = book_of(one)
    assert book.sheetnames[0] == "answers"
    assert len(one.tables) > 1
    for table, name in zip(lay_out(one), book.sheetnames[1:], strict=False):
        assert table.name.startswith(name.removesuffix(" 2"))  # cut where Excel takes no more
        here = book[name]
        names = [str(cell.value).partition(" (")[0] for cell in here[1]]
        assert "experiment" not in names
        assert names[: len(table.varied)] == list(table.varied) or "job" in names
        if "epoch_time_s" not in names:
            assert not any(row.epoch_time_s for row in table.rows)
            continue
        times = [row[names.index("epoch_time_s")] for row in lines(here)]
        assert times == [row.epoch_time_s for row in table.rows]
        assert [row[names.index("status")] for row in lines(here)] == [row.endings for row in table.rows]
        for column in zip(*lines(here), strict=True):
            assert any(value is not None for value in column)


def test_the_only_table_stands_in_the_sheet_table() -> None:
    book = book_of(folder_of(with_intervals()))
    assert book.sheetnames == ["answers", "table", *FIXED, "chart data", "columns"]


def test_headers_stay_in_view_and_filter() -> None:
    one = of_folder("h200-copies-2026")
    book = book_of(one)
    for name in (one.tables[0].name, *FIXED):
        here = book[name]
        assert here.freeze_panes is not None
        assert here.freeze_panes[-1] == "2"
        assert here.auto_filter.ref == here.dimensions
        assert all(here.column_dimensions[letter].width >= 7 for letter in "ABC")


def test_headings_have_room_beside_the_arrow_of_their_filter() -> None:
    """One of many an m, which is wider than a digit, was cut: by its length it had room."""
    looks = grid.Grids(Workbook(io.BytesIO()), SheetNames())
    for column in (*COLUMNS, *EPOCH_COLUMNS, *DERIVED):
        heading = grid.header_of(column)
        _, width = looks._look(column, [None])
        assert 7 * width + 5 >= 1.05 * cell_autofit_width(heading) + 18, heading
        assert grid._header_lines(heading, width) == 1


def test_numbers_are_shown_with_the_digits_of_their_columns() -> None:
    book = book_of(of_folder("h200-copies-2026"))
    formats = {cell.value: below.number_format for cell, below in zip(*book["trials"]["1:2"], strict=True)}
    assert formats["epoch_time_s"] == "#,##0.00"
    assert formats["gpu_mem_mib"] == "#,##0"
    assert formats["started_at"] == "yyyy-mm-dd hh:mm:ss"
    cells = {cell.value: below for cell, below in zip(*book["trials"]["1:3"][:2], strict=True)}
    assert cells["batch_size (images)"].number_format == "0"
    assert cells["breakdown"].data_type == "b"


def test_a_heading_has_the_unit_where_the_name_of_the_column_does_not_tell_it() -> None:
    headings = [cell.value for cell in book_of(of_folder("h200-copies-2026"))["trials"][1]]
    told = ("epoch_time_s", "gpu_util_pct", "gpu_mem_mib", "sm_clock_mhz", "temperature_c", "images_per_s")
    assert {*told, "batch_size (images)", "input_size (px)", "params_m (million)"} <= set(headings)


def test_sheets_are_printed_as_wide_as_a_page_under_their_header() -> None:
    book = book_of(of_folder("h200-copies-2026"))
    for name in book.sheetnames[1:]:
        here = book[name]
        assert (here.page_setup.orientation, here.page_setup.fitToWidth) == ("landscape", None), name
        assert (here.sheet_properties.pageSetUpPr.fitToPage, here.page_setup.fitToHeight) == (True, 0), name
        assert (here.print_title_rows, here.print_title_cols) == ("$1:$1", "$A:$A"), name


@pytest.mark.parametrize(
    ("sizes", "ends"), [((16, 32, 64), ("8", "128")), ((1, 2), ("0.5", "4")), ((10, 20, 30), None)]
)
def test_values_that_are_doublings_have_ticks_of_their_own(
    sizes: tuple[int, ...], ends: tuple[str, str] | None
) -> None:
    rows = [
        row_with(
            trial_id=f"t{size}", experiment="x", status="ok", model="lenet", batch_size=size,
            epoch_time_s=2.0 + 1 / size, images_per_epoch=640,
        )
        for size in sizes
    ]  # fmt: skip
    chart = chart_xml(written(folder_of(rows)))[0]
    axis = chart.split("<c:valAx>")[1]
    assert ('<c:logBase val="2"/>' in axis) is (ends is not None)
    if ends:
        assert re.findall('<c:(?:max|min) val="(.*?)"', axis)[:2] == [ends[1], ends[0]]


def test_answers_and_doubts_stand_first_in_words() -> None:
    one = of_folder("titan-xp-2021")
    book = book_of(one)
    said = [str(cell.value) for cell in book["answers"]["A"] if cell.value is not None]
    for table in lay_out(one):
        lines_below = words.write_lines(table.report)
        for sentence in (
            table.title,
            words.ask(table.report),
            table.facts,
            *(line.text for line in lines_below),
        ):
            assert sentence in said
        part = said[said.index(table.title) :]
        places = [part.index(line.text) for line in lines_below]
        assert places == sorted(places), "the answer, other findings, warnings"


def test_text_that_would_run_as_a_formula_is_text() -> None:
    bad = ["=1+1", "=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1", "{=1}", "https://example.com", "<r>x</r>"]
    rows = [
        row_with(
            trial_id=f"t{n}", experiment="=HYPERLINK(1)", status="ok", batch_size=n, model=text, reason=text,
            host=text, epoch_time_s=1.0 + n, doubts="spread", doubt_texts={"spread": text},
        )
        for n, text in enumerate(bad, start=1)
    ]  # fmt: skip
    made = written(folder_of(rows))
    with zipfile.ZipFile(io.BytesIO(made)) as whole:
        for name in whole.namelist():
            text = whole.read(name).decode()
            assert "<f>" not in text.replace("<c:f>", "")
            assert "<hyperlink " not in text
    book = openpyxl.load_workbook(io.BytesIO(made))
    reasons = [column.name for column in COLUMNS].index("reason")
    assert [row[reasons] for row in lines(book["trials"])] == bad
    assert all(cell.data_type != "f" for here in book for row in here.iter_rows() for cell in row)


@settings(max_examples=12, deadline=None)
@given(st.lists(st.fixed_dictionaries({c.name: values_of(c) for c in COLUMNS}), min_size=1, max_size=3))
def test_a_sheet_holds_what_it_is_given_whatever_is_missing(told: list[dict[str, Any]]) -> None:
    # openpyxl skips empty lines, so each has an id
    told = [{**line, "trial_id": f"t{number}"} for number, line in enumerate(told)]
    values = tuple([line[column.name] for line in told] for column in COLUMNS)
    sheet = Sheet(name="trials", columns=COLUMNS, values=values)
    out = io.BytesIO()
    with Workbook(out, {"constant_memory": True}) as book:
        grid.Grids(book, SheetNames()).write(sheet)
    assert_holds(openpyxl.load_workbook(out), sheet)


def test_odd_characters_and_long_texts_are_kept_as_far_as_excel_can() -> None:
    odd = ["a\x00b", "line\r\nline", " spaces ", "_x0041_", "\ud800", "🙂", "x" * 40_000]
    rows = [
        row_with(trial_id=f"t{n}", status="failed", reason=text, batch_size=n)
        for n, text in enumerate(odd, 1)
    ]
    book = book_of(folder_of(rows))
    reasons = [column.name for column in COLUMNS].index("reason")
    found = [row[reasons] for row in lines(book["trials"])]
    assert found[2] == odd[2]
    assert found[5] == odd[5]
    assert found[6] == "x" * 32_767
    assert found[4] == "\\ud800"


def test_names_with_odd_characters_spoil_no_part_of_the_file() -> None:
    odd = "a\x01b\ud800=<&>\n"
    for batches in ((16,), (16, 32)):
        rows = [
            row_with(
                trial_id=f"t{n}-{batch}", experiment=odd, status="ok", model=odd, variant=f"{odd}{n}",
                epoch_time_s=1.0 + n, batch_size=batch,
            )
            for n in range(3)
            for batch in batches
        ]  # fmt: skip
        made = written(folder_of(rows, folder="odd\x01\udcff"))
        assert len(chart_xml(made)) == 1
        with zipfile.ZipFile(io.BytesIO(made)) as whole:
            for name in whole.namelist():
                ElementTree.fromstring(whole.read(name))  # raises where it is no XML
        assert openpyxl.load_workbook(io.BytesIO(made)).sheetnames[0] == "answers"


def test_what_is_too_long_for_one_sheet_goes_on_in_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "MOST_ROWS", 4)
    one = of_folder("h200-copies-2026")
    book = book_of(one)
    names = [name for name in book.sheetnames if re.fullmatch(r"trials( \d+)?", name)]
    assert names == ["trials", "trials 2", "trials 3", "trials 4", "trials 5"]
    assert [row[0] for name in names for row in lines(book[name])] == list(one.runs["trial_id"])
    said = [str(cell.value) for cell in book["answers"]["A"]]
    assert any(line.startswith("The sheet trials has more lines than Excel takes") for line in said)


def test_names_of_sheets_are_short_and_unlike() -> None:
    names = SheetNames(("table",))
    long = "a name that is far longer than a sheet's may be"
    found = [
        names.of(name) for name in (long, long, long.upper(), "TABLE", "a/b:c*[d]?\\", "'x'", "", "\ud800")
    ]
    found += [names.of("🙂" * 20), names.of("History")]
    assert len({name.lower() for name in found}) == len(found)
    for name in found:
        assert 0 < len(name.encode("utf-16-le")) // 2 <= 31
        assert not set(name) & set("[]:*?/\\")
        assert name.strip("'") == name
    assert found[3] == "TABLE 2"


def test_several_folders_stand_in_one_workbook() -> None:
    first, second = of_folder("h200-copies-2026"), of_folder("h200x4-2026")
    book = book_of(first, second)
    column = [row[0] for row in lines(book["trials"])]
    assert set(column) == {first.name, second.name}
    assert book["trials"]["A1"].value == "results"
    assert len(book.sheetnames) == len(FIXED) + 3 + len(first.tables) + len(second.tables)
    twice = book_of(first, first)
    assert len(set(twice.sheetnames)) == len(twice.sheetnames)


def with_intervals(**more: Any) -> list[Any]:
    """Rows over batch sizes, the last of which ran out of memory."""
    rows = [
        row_with(
            trial_id=f"t{batch}", experiment="x", status="ok", model="lenet", batch_size=batch,
            epoch_time_s=time, gpu_mem_mib=50.0 * batch, images_per_epoch=640, **more,
        )
        for batch, time in ((16, 4.0), (32, 3.0), (64, 2.5))
    ]  # fmt: skip
    return [
        *rows,
        row_with(trial_id="t128", experiment="x", status="oom", model="lenet", batch_size=128, **more),
    ]


def test_a_chart_names_its_lines_as_pictures_do_and_by_their_field_where_a_value_says_nothing() -> None:
    def names(**varied: Any) -> list[str]:
        fields = [dict(zip(varied, values, strict=True)) for values in itertools.product(*varied.values())]
        plain = {"status": "ok", "experiment": "one", "model": "lenet", "epoch_time_s": 1.0}
        rows = [
            row_with(**plain, **one, trial_id=f"t{number}-{batch}", batch_size=batch)
            for number, one in enumerate(fields)
            for batch in (16, 32)
        ]
        (time, *_) = native_charts(lay_out(folder_of(rows))[0])
        return [name for name, _ in time.lines]

    assert names(variant=("cached", "synthetic")) == ["cached", "synthetic"]
    assert names(workers=(2, 4)) == ["workers 2", "workers 4"]
    assert names(variant=("cached",), workers=(2, 4)) == ["workers 2", "workers 4"]
    assert names(variant=("cached", "synthetic"), workers=(2, 4))[0] == "variant=cached workers=2"


def test_charts_show_time_and_memory_over_the_axis_with_a_gap_where_memory_ran_out() -> None:
    one = folder_of(with_intervals())
    book = book_of(one)
    drawn = book["answers"]._charts
    assert len(drawn) == 2
    data = lines(book["chart data"])
    time = [row for row in data if row[0].endswith("Epoch time over global batch size")]
    assert [row[2:4] for row in time] == [[16, 4.0], [32, 3.0], [64, 2.5], [128, None]]
    memory = [row for row in data if row[0].endswith("GPU memory over global batch size")]
    assert [row[3] for row in memory] == [800.0, 1600.0, 3200.0, None]
    for chart in drawn:
        (line,) = chart.series
        assert re.fullmatch(r"'chart data'!\$C\$\d+:\$C\$\d+", line.xVal.numRef.f)
    for xml in chart_xml(written(one)):
        assert "dispBlanksAs" not in xml  # Excel's own way is a gap
        assert xml.count('<c:pt idx="3">') == 1, "the last one has a place on the axis, and no figure"
    titles = [re.findall(r"<a:t>(.*?)</a:t>", xml) for xml in chart_xml(written(one))]
    assert ["Epoch time over global batch size", "global batch size (images)", "epoch time (s)"] in titles
    assert ["GPU memory over global batch size", "global batch size (images)", "GPU memory (MiB)"] in titles


def chart_xml(made: bytes) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(made)) as whole:
        return [whole.read(name).decode() for name in whole.namelist() if name.startswith("xl/charts/chart")]


def test_error_bars_reach_from_end_to_end_of_the_interval() -> None:
    folder = "h200x4-2026"
    one = of_folder(folder)
    (table, *_) = lay_out(one)
    (time, *_) = native_charts(table)
    assert not any(point.low for _, points in time.lines for point in points)  # of one process: no interval
    assert "errBars" not in "".join(chart_xml(written(one)))

    rows = [
        row_with(
            trial_id=f"t{batch}", config_id=f"c{batch}", experiment="x", status="ok", model="lenet", batch_size=batch,
            epoch_time_s=batch / 8 + 0.1 * number, round=1 + number, images_per_epoch=640, steady_step_s=0.1,
            epoch_time_source="measured", gpu_mem_mib=100.0,
        )
        for batch in (16, 32)
        for number in range(3)
    ]  # fmt: skip
    several = folder_of(rows)
    (merged,) = lay_out(several)
    intervals = [(row.epoch_time_low_s, row.epoch_time_high_s) for row in merged.rows]
    assert all(low is not None and high is not None for low, high in intervals)
    book = book_of(several)
    for (low, high), row, line in zip(intervals, merged.rows, lines(book["chart data"]), strict=False):
        assert line[3] == row.epoch_time_s
        assert line[3] - line[4] == pytest.approx(low)
        assert line[3] + line[5] == pytest.approx(high)
    (xml,) = [xml for xml in chart_xml(written(several)) if "errBars" in xml]
    assert xml.count("<c:errBars>") == 1
    assert "'chart data'!$F$2:$F$3" in xml


@given(st.floats(1e-6, 1e9), st.floats(1, 50))
def test_the_axis_reaches_the_ends_of_intervals_unless_these_dwarf_the_figures(
    y: float, times: float
) -> None:
    point = charts.ChartPoint(x=1, y=y, low=y / 2, high=y * times)
    shown = charts.NativeChart(
        title="", x_title="", y_title="", is_numeric=True, lines=(("", (point,)),), left_out=0
    )
    axis = charts.y_axis_reach(shown)
    if times > 1:
        assert axis["max"] >= min(y * times, charts.MOST_ABOVE * y)
        assert axis["max"] / axis["major_unit"] == pytest.approx(round(axis["max"] / axis["major_unit"]))
        assert axis["max"] / axis["major_unit"] <= charts.MOST_STEPS + 1
    else:
        assert axis == {}


def test_what_is_no_number_is_drawn_as_bars() -> None:
    rows = [
        row_with(
            trial_id=name,
            experiment="x",
            status="ok",
            model="lenet",
            batch_size=16,
            variant=name,
            epoch_time_s=1.0,
        )
        for name in ("cached", "synthetic")
    ]
    (drawn,) = native_charts(lay_out(folder_of(rows))[0])
    assert not drawn.is_numeric
    assert [point.x for point in drawn.lines[0][1]] == ["cached", "synthetic"]
    assert '<c:barDir val="col"/>' in chart_xml(written(folder_of(rows)))[0]


def test_more_lines_than_can_be_told_apart_are_left_out_and_that_is_said() -> None:
    rows = [
        row_with(
            trial_id=f"{n}-{b}", experiment="x", status="ok", model=f"m{n}", batch_size=b, epoch_time_s=1.0
        )
        for n in range(charts.MOST_LINES + 2)
        for b in (16, 32)
    ]
    one = folder_of(rows)
    said = [str(cell.value) for cell in book_of(one)["answers"]["A"]]
    assert "The charts leave out 2 more lines, for which there is no room." in said


def test_nothing_to_compare_draws_nothing() -> None:
    one = folder_of([row_with(trial_id="t", experiment="x", status="failed", batch_size=16)])
    book = book_of(one)
    assert book["answers"]._charts == []
    assert lines(book["chart data"]) == []


def test_the_same_folder_makes_the_same_file() -> None:
    one = of_folder("h200-copies-2026")
    assert written(one) == written(one)


def test_the_command_writes_the_file_that_is_named(tmp_path: Path, warm_command: WarmCommand) -> None:
    folder = swept(tmp_path / "part", "part", "16,32", stop_after=1).bench.results.folder
    for name in ("x.xlsx", "x.parquet"):
        ended = warm_command.run(
            ("export", str(folder), "--out", name), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60
        )
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{name}\n", "")
    book = openpyxl.load_workbook(tmp_path / "x.xlsx")
    assert [row[0] for row in lines(book["table"])] == [16, 32]
    assert len(lines(book["trials"])) == 1
