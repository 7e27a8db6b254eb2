"""Exports opened by LibreOffice, where numbers have a dot and where they have a comma.

Each figure is the number that it was, or where the locale has another decimal sign, at least no other number.

Needs LibreOffice (Debian: libreoffice-calc). Without it the tests are skipped, unless GPUBENCH_LIBREOFFICE=required, as
in CI.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import committed
import openpyxl
import pytest
from fixed_folder import fixed
from made_up_folders import folder_of
from whole_rows import row_with

from gpubench.analyze.folder import read_folder, read_folders
from gpubench.export import workbook
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import make_csv
from gpubench.results.csv_text import DIALECTS

LOCALES = {"en-US": ("en_US.UTF-8", 1033), "de-DE": ("de_DE.UTF-8", 1031)}
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{locale}</value>
</prop></item></oor:items>
"""
AS_SHOWN = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,true,true,false,false,-1"
"""Tabs, UTF-8, every sheet a file, and cells as they are shown."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("soffice") is None and os.environ.get("GPUBENCH_LIBREOFFICE") != "required",
        reason="soffice, which is LibreOffice, is not installed",
    ),
]


def convert(folder: Path, locale: str, files: Sequence[Path], form: str, *options: str) -> None:
    """Opens files in this locale, and saves them in another form into the folder."""
    profile = folder / "profile" / "user"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "registrymodifications.xcu").write_text(PROFILE.format(locale=locale))
    subprocess.run(
        ["soffice", f"-env:UserInstallation={profile.parent.as_uri()}", "--headless", *options, "--convert-to", form,
         "--outdir", str(folder), *map(str, files)],
        env={**os.environ, "LC_ALL": LOCALES[locale][0]}, check=True, capture_output=True, timeout=120,
    )  # fmt: skip


# ---- CSV ----


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same folders in each dialect."""
    own = fixed(tmp_path_factory.mktemp("office") / "fixed")
    folders = read_folders([own, committed.folder("h200-copies-2026")], lambda line: pytest.fail(line))
    return {name: make_csv(folders, FormatOptions(dialect=name)) for name in DIALECTS}


CASES = [
    (("plain", "excel"), "en-US", "44/59/9", True),
    (("excel-eu",), "de-DE", "59", True),
    (("plain", "excel"), "de-DE", "44", False),
]


@pytest.mark.parametrize(("dialects", "locale", "separators", "is_same"), CASES)
def test_every_figure_of_a_csv_is_the_number_that_it_was_or_text(
    texts: dict[str, bytes],
    tmp_path: Path,
    dialects: Sequence[str],
    locale: str,
    separators: str,
    is_same: bool,
) -> None:
    """Where the comma is decimal, a figure with a dot stays text, which nobody takes for a number: it is never eighteen
    thousand in place of eighteen."""
    for name in dialects:
        (tmp_path / f"{name}.csv").write_bytes(texts[name])
    # As its dialog asks: separators, quotes, UTF-8, first line, language, quoted text, special numbers (dates).
    infilter = f"--infilter=CSV:{separators},34,76,1,,{LOCALES[locale][1]},false,true"
    convert(tmp_path, locale, sorted(tmp_path.glob("*.csv")), "xlsx", infilter)
    plain = csv.reader(io.StringIO(texts["plain"].decode()))
    true = [read_number(cell) for line in plain for cell in line]
    for name in dialects:
        sheet = openpyxl.load_workbook(tmp_path / f"{name}.xlsx").active
        cells = [cell for row in sheet.iter_rows(values_only=True) for cell in row]
        for cell, value in zip(cells, true, strict=True):
            if is_same:
                assert cell == value
                assert isinstance(cell, str) == isinstance(value, str)
            elif isinstance(value, float):
                assert isinstance(cell, str) or cell == value, (cell, value)


def read_number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell or None


def test_all_dialects_are_opened() -> None:
    assert {dialect for dialects, *_ in CASES for dialect in dialects} == set(DIALECTS)


# ---- a workbook ----


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed folder, and one of figures and texts that are easily mistaken."""
    texts = ["=1+1", "+1", "1.5", "1,5", "1e5", "TRUE", "12.11.2026", "=HYPERLINK(1)", "'x", "1/2"]
    figures = [18.457, 1261.5, 1e-9, 123456.789, 1e15, 0.1 + 0.2, 1234.5, 3.0, 0.001, 1 / 3]
    rows = [
        row_with(
            trial_id=f"t{n}", experiment="x", status="ok", batch_size=n + 1, reason=text, epoch_time_s=figure
        )
        for n, (text, figure) in enumerate(zip(texts, figures, strict=True))
    ]
    measured = read_folder(committed.folder("h200x4-scaling-2026"), lambda line: pytest.fail(line))
    path = tmp_path_factory.mktemp("written") / "book.xlsx"
    path.write_bytes(workbook.make_workbook([measured, folder_of(rows)], FormatOptions()))
    return path


def test_figures_of_a_workbook_are_figures_and_dates_are_dates(book: Path, tmp_path: Path) -> None:
    convert(tmp_path, "de-DE", [book], "xlsx")
    written, saved = openpyxl.load_workbook(book), openpyxl.load_workbook(tmp_path / "book.xlsx")
    assert saved.sheetnames == written.sheetnames
    figures, dates = [], []
    for sheet in written:
        for cell in (cell for row in sheet.iter_rows() for cell in row if cell.value not in (None, "")):
            found = saved[sheet.title][cell.coordinate]
            if cell.data_type == "b":  # LibreOffice writes a function for it
                assert found.value == f"={str(cell.value).upper()}()"
                continue
            assert (found.data_type, found.is_date) == (cell.data_type, cell.is_date), cell
            is_figure = cell.data_type == "n" and not cell.is_date
            assert found.value == (pytest.approx(cell.value, rel=1e-14, abs=0) if is_figure else cell.value)
            figures += [cell.value] * is_figure
            dates += [cell.value] * cell.is_date
    assert 1261.5 in figures
    assert any(isinstance(date, datetime) for date in dates)
    assert [len(sheet._charts) for sheet in saved][:2] == [1, 1]


@pytest.mark.parametrize(("locale", "comma", "decimal"), [("en-US", ",", "."), ("de-DE", ".", ",")])
def test_figures_of_a_workbook_are_shown_as_the_locale_writes_them(
    locale: str, comma: str, decimal: str, book: Path, tmp_path: Path
) -> None:
    convert(tmp_path, locale, [book], AS_SHOWN)
    path = tmp_path / f"book-{openpyxl.load_workbook(book, read_only=True).sheetnames[0]}.csv"
    lines = list(csv.reader(path.open(newline="", encoding="utf-8"), delimiter="\t"))
    line = next(line for line in lines if line[0] == "4")
    assert line[3:6] == [f"16{comma}246", f"1{decimal}26", f"3{decimal}70"]
    assert line[6] == "93 %"
