"""A workbook opened by LibreOffice, where numbers have a dot and where they have a comma.

Needs LibreOffice (Debian: libreoffice-calc). Without it the tests are skipped, unless GPUBENCH_LIBREOFFICE=required, as
in CI.
"""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
from datetime import datetime
from pathlib import Path

import committed
import openpyxl
import pytest
from made_up_folders import folder_of
from whole_rows import row_with

from gpubench.analyze.folder import read_folder
from gpubench.export import workbook
from gpubench.export.formats import FormatOptions

pytestmark = pytest.mark.skipif(
    shutil.which("soffice") is None and os.environ.get("GPUBENCH_LIBREOFFICE") != "required",
    reason="soffice, which is LibreOffice, is not installed",
)

PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse">
<value>{locale}</value></prop></item>
</oor:items>
"""
AS_SHOWN = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,true,true,false,false,-1"
"""Tabs, UTF-8, every sheet a file, and cells as they are shown."""


def convert(folder: Path, locale: str, book: Path, form: str) -> None:
    """Opens the workbook in this locale, and saves it in another form into the folder."""
    profile = folder / "profile"
    if not profile.exists():
        (profile / "user").mkdir(parents=True)
        (profile / "user" / "registrymodifications.xcu").write_text(PROFILE.format(locale=locale))
    subprocess.run(
        ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", "--convert-to", form,
         "--outdir", str(folder), str(book)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip


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


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "comma", "decimal"), [("en-US", ",", "."), ("de-DE", ".", ",")])
def test_figures_are_figures_and_dates_are_dates(
    locale: str, comma: str, decimal: str, book: Path, tmp_path: Path
) -> None:
    convert(tmp_path, locale, book, "xlsx")
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

    convert(tmp_path, locale, book, AS_SHOWN)
    path = tmp_path / f"book-{written.sheetnames[0]}.csv"
    lines = list(csv.reader(path.open(newline="", encoding="utf-8"), delimiter="\t"))
    line = next(line for line in lines if line[0] == "4")
    assert line[3:6] == [f"16{comma}246", f"1{decimal}26", f"3{decimal}70"]
    assert line[6] == "93 %"
