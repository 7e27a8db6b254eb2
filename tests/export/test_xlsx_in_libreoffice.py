"""A workbook opened by LibreOffice, where numbers have a dot and where they have a comma: all is as it was."""

from __future__ import annotations

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import committed
import pytest
from made_up_folders import folder_of
from whole_rows import row_with

from gpubench.analyze.folder import Folder, read_folder
from gpubench.export.formats import Asked
from gpubench.export.sheets import SHEETS
from gpubench.export.xlsx import file as workbook
from gpubench.schema.kinds import as_text, kind, moment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("soffice") is None, reason="soffice, which is LibreOffice, is not installed"
    ),
]

PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse">
<value>{locale}</value></prop></item>
</oor:items>
"""
AS_CSV = "csv:Text - txt - csv (StarCalc):9,34,76,1,,0,false,false,false,false,false,-1"
"""Tabs, UTF-8, every sheet, and numbers with all their digits, not as they are shown."""

DECIMAL = {"en-US": ".", "de-DE": ","}
TRUTH = {"en-US": ("FALSE", "TRUE"), "de-DE": ("FALSCH", "WAHR")}


def opened(folder: Path, locale: str, made: bytes) -> dict[str, list[list[str]]]:
    """What LibreOffice reads in each sheet."""
    profile = folder / "profile"
    (profile / "user").mkdir(parents=True)
    (profile / "user" / "registrymodifications.xcu").write_text(PROFILE.format(locale=locale))
    book = folder / "book.xlsx"
    book.write_bytes(made)
    subprocess.run(
        ["soffice", f"-env:UserInstallation={profile.as_uri()}", "--headless", "--convert-to", AS_CSV,
         "--outdir", str(folder), str(book)],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    found = {}
    for path in folder.glob("book-*.csv"):
        with path.open(newline="", encoding="utf-8") as file:
            found[path.stem.removeprefix("book-")] = list(csv.reader(file, delimiter="\t"))
    return found


def is_as_it_was(text: str, value: Any, form: str, locale: str) -> bool:
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == TRUTH[locale][value]
    if isinstance(value, (int, float)):  # LibreOffice writes 15 digits
        return text.count(",") + text.count(".") <= 1 and float(
            text.replace(DECIMAL[locale], ".")
        ) == pytest.approx(value, rel=1e-14, abs=0)
    if form == "moment" and (found := moment(value)):
        return text == str(found)
    return text == as_text(value)


def odd() -> Folder:
    """Figures that are easily mistaken, and texts that look like figures, formulas and dates."""
    texts = ["=1+1", "+1", "1.5", "1,5", "1e5", "TRUE", "12.11.2026", "=HYPERLINK(1)", "'x", "1/2"]
    figures = [18.457, 12.5, 1e-9, 123456.789, 1e15, 0.1 + 0.2, 1234.5, 3.0, 0.001, 1 / 3]
    rows = [
        row_with(
            trial_id=f"t{n}", experiment="x", status="ok", batch_size=n, reason=text, epoch_time_s=figure
        )
        for n, (text, figure) in enumerate(zip(texts, figures, strict=True))
    ]
    return folder_of(rows)


@pytest.mark.parametrize("locale", DECIMAL)
@pytest.mark.parametrize("name", ["odd", "titan-xp-2021", "h200-copies-2026"])
def test_every_value_is_as_it_was(name: str, locale: str, tmp_path: Path) -> None:
    one = odd() if name == "odd" else read_folder(committed.folder(name), lambda line: pytest.fail(line))
    found = opened(tmp_path, locale, workbook.write([one], Asked()))
    numbers = 0
    for what in ("trials", "epochs", "environment", "doubts"):
        sheet = SHEETS[what]([one])
        _, *lines = found[what]
        wanted = list(sheet.lines())
        assert len(lines) == len(wanted)
        for line, values in zip(lines, wanted, strict=True):
            for text, value, column in zip(line, values, sheet.columns, strict=True):
                assert is_as_it_was(text, value, kind(column), locale), (what, column.name)
                numbers += isinstance(value, float)
    assert numbers > len(one.runs) / 2
