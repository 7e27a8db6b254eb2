"""CSVs opened by LibreOffice in an English and in a German locale.

Each figure is the number that it was, or where the locale has another decimal sign, at least no other number.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import committed
import pytest
from fixed_folder import fixed

from gpubench.analyze.folder import read_folders
from gpubench.export.formats import FormatOptions
from gpubench.export.sheets import make_csv
from gpubench.results.csv_text import DIALECTS

SOFFICE = shutil.which("soffice")
LOCALES = {"en-US": ("en_US.UTF-8", 1033), "de-DE": ("de_DE.UTF-8", 1031)}
PROFILE = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry" xmlns:xs="http://www.w3.org/2001/XMLSchema"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<item oor:path="/org.openoffice.Setup/L10N"><prop oor:name="ooSetupSystemLocale" oor:op="fuse"><value>{locale}</value>
</prop></item></oor:items>
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SOFFICE is None, reason="LibreOffice (soffice) is not installed here"),
]


def never_stop(line: str) -> None:
    raise AssertionError(line)


def opened(
    texts: Mapping[str, bytes], scratch: Path, locale: str, separators: str, *, detect: bool
) -> list[list[list[Any]]]:
    """The cells that LibreOffice makes of each CSV: numbers, text and dates."""
    openpyxl = pytest.importorskip("openpyxl")
    profile = scratch / "profile" / "user"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "registrymodifications.xcu").write_text(PROFILE.format(locale=locale))
    sources = [scratch / f"{name}.csv" for name in texts]
    for source, text in zip(sources, texts.values(), strict=True):
        source.write_bytes(text)
    # As its dialog asks: separators, quotes, UTF-8, first line, language, quoted text, special numbers (dates).
    infilter = f"CSV:{separators},34,76,1,,{LOCALES[locale][1]},false,{str(detect).lower()}"
    subprocess.run(
        [str(SOFFICE), f"-env:UserInstallation=file://{profile.parent}", "--headless", f"--infilter={infilter}",
         "--convert-to", "xlsx", "--outdir", str(scratch), *map(str, sources)],
        env={**os.environ, "LC_ALL": LOCALES[locale][0]}, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    sheets = [openpyxl.load_workbook(source.with_suffix(".xlsx")).active for source in sources]
    return [[list(row) for row in sheet.iter_rows(values_only=True)] for sheet in sheets]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same folders in each dialect."""
    own = fixed(tmp_path_factory.mktemp("office") / "fixed")
    committed_folders = [committed.folder(name) for name in ("titan-xp-2021", "h200-copies-2026")]
    folders = read_folders([own, *committed_folders], never_stop)
    return {name: make_csv(folders, FormatOptions(dialect=name)) for name in DIALECTS}


@pytest.fixture(scope="module")
def true_values(texts: dict[str, bytes]) -> list[list[Any]]:
    """What the plain CSV says, number by number."""
    return [[_number(cell) for cell in line] for line in csv.reader(io.StringIO(texts["plain"].decode()))]


def _number(cell: str) -> Any:
    try:
        return float(cell)
    except ValueError:
        return cell or None


CASES = [
    (("plain", "excel"), "en-US", "44/59/9", False),
    (("excel-eu",), "de-DE", "59", False),
    (("excel-eu",), "de-DE", "59", True),
    (("excel",), "en-US", "44", True),
]


@pytest.mark.parametrize("case", CASES)
def test_every_figure_is_the_number_that_it_was(
    texts: dict[str, bytes], true_values: list[list[Any]], tmp_path: Path, case: tuple[Any, ...]
) -> None:
    dialects, locale, separators, detect = case
    asked = {name: texts[name] for name in dialects}
    for found in opened(asked, tmp_path, locale, separators, detect=detect):
        for line, true in zip(found, true_values, strict=True):
            for cell, value in zip(line, true, strict=True):
                if isinstance(value, float):
                    assert isinstance(cell, (int, float)), (cell, value)
                    assert float(cell) == value
                else:
                    assert cell == value


@pytest.mark.parametrize("detect", [False, True])
def test_where_the_comma_is_decimal_a_figure_with_a_dot_is_no_other_number(
    texts: dict[str, bytes], true_values: list[list[Any]], tmp_path: Path, detect: bool
) -> None:
    """It stays text, which nobody takes for a number: it is never eighteen thousand in place of eighteen."""
    asked = {name: texts[name] for name in ("plain", "excel")}
    for found in opened(asked, tmp_path, "de-DE", "44", detect=detect):
        for line, true in zip(found, true_values, strict=True):
            for cell, value in zip(line, true, strict=True):
                if isinstance(value, float):
                    assert isinstance(cell, str) or cell == value, (cell, value)


def test_all_dialects_are_opened() -> None:
    assert {dialect for dialects, *_ in CASES for dialect in dialects} == set(DIALECTS)
