"""Parquet, read back by pandas and by what knows nothing of pandas."""

from __future__ import annotations

import importlib.util
import io

import committed
import pandas as pd
import pytest
from pyarrow import parquet

from gpubench.analyze.folder import Folder, read_folder
from gpubench.basics.errors import UnusableError
from gpubench.export.formats import FORMATS, SHEETS, FormatOptions
from gpubench.export.sheets import SHEETS as MAKERS


@pytest.fixture(scope="module")
def copies() -> Folder:
    return read_folder(committed.folder("h200-copies-2026"), lambda line: pytest.fail(line))


@pytest.mark.parametrize("name", SHEETS)
def test_a_sheet_comes_back_as_the_frame_that_it_was_with_units_and_meanings(
    copies: Folder, name: str
) -> None:
    content = io.BytesIO(FORMATS["parquet"].write([copies], FormatOptions(sheet=name)))
    sheet = MAKERS[name]([copies])
    pd.testing.assert_frame_equal(pd.read_parquet(content), sheet.to_frame(), check_dtype=True)
    schema = parquet.read_schema(content)
    assert schema.names == [column.name for column in sheet.columns]
    for field, column in zip(schema, sheet.columns, strict=True):
        told = {key.decode(): value.decode() for key, value in field.metadata.items()}
        assert {"unit": column.unit, "meaning": column.meaning}.items() <= told.items()


@pytest.mark.parametrize(("name", "package"), [("xlsx", "xlsxwriter"), ("parquet", "pyarrow")])
def test_a_format_whose_package_is_missing_says_what_to_install(
    name: str, package: str, copies: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UnusableError, match=rf"^[^\n]*pip install {package}$"):
        FORMATS[name].write([copies], FormatOptions())
