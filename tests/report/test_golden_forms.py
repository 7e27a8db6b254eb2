"""What tables are in each form and with each option, character by character, from records that never change."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import committed
import golden
import pytest
from fixed_folder import fixed
from gpubench.report import shown, terminal
from gpubench.report.choice import parse as chosen_columns
from gpubench.report.forms import FORMS
from gpubench.report.reading import reading, reading_all
from gpubench.report.table import COLUMN, Table

from gpubench.results.csv_text import csv_cell

HERE = Path(__file__).parent / "golden"
LOG = "titan-xp-2021"


def never(line: str) -> None:
    raise AssertionError(line)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    return list(reading(fixed(tmp_path_factory.mktemp("golden") / "fixed"), never).tables)


def printed(tables: list[Table], form: str) -> str:
    if form == "text":
        return "\n".join(map(terminal.text, tables))
    return FORMS[form].text(tables)


@pytest.mark.parametrize("form", ["text", *FORMS])
def test_a_table_in_each_form(tables: list[Table], form: str) -> None:
    golden.check(HERE / f"fixed.{form}", printed(tables, form))


OPTIONS = {
    "where": shown.parse(where=["batch_size>=32", "variant=crop-resize"]),
    "sort": shown.parse(sort="-epoch_time_s,batch_size"),
    "none": shown.parse(where=["epoch_time_s>1000"]),
}


@pytest.mark.parametrize("form", ["text", *FORMS])
@pytest.mark.parametrize("option", OPTIONS)
def test_chosen_rows_in_each_form(tables: list[Table], option: str, form: str) -> None:
    if form in ("csv", "json"):
        return  # rows are chosen before any form is made
    golden.check(HERE / f"{option}.{form}", printed([OPTIONS[option].of(one) for one in tables], form))


def test_columns_that_are_chosen_stand_in_every_form(tmp_path: Path) -> None:
    choice = chosen_columns("trial_id,-cpu_util_pct", COLUMN)
    (table,) = reading(fixed(tmp_path / "fixed"), never, choice=choice).tables
    header = next(csv.reader(io.StringIO(FORMS["csv"].text([table]))))
    names = [column["name"] for column in json.loads(FORMS["json"].text([table]))["tables"][0]["columns"]]
    assert header == names
    assert "trial_id" in header
    assert "cpu_util_pct" not in header


def test_the_growth_columns_of_the_published_log_in_each_form() -> None:
    """Worked out anew from the log's own figures, and the same whoever reads them."""
    tables = list(reading(committed.folder(LOG), never).tables)
    growths = [
        [
            str(cell)
            for name, cell in zip(table.columns, cells, strict=True)
            if name.name.endswith("_growth_pct")
        ]
        for table in tables
        for cells in table.cells
    ]
    golden.check(HERE / "log-growths.text", "".join(f"{' | '.join(cells)}\n" for cells in growths))
    columns = ("gpu_mem_growth_pct", "epoch_time_growth_pct")
    in_csv = list(csv.DictReader(io.StringIO(FORMS["csv"].text(tables))))
    in_json = [
        row["values"] for one in json.loads(FORMS["json"].text(tables))["tables"] for row in one["rows"]
    ]
    assert len(in_csv) == len(in_json) == len(growths)
    for line, values in zip(in_csv, in_json, strict=True):
        for name in columns:
            assert line[name] == csv_cell(values[name])
    golden.check(HERE / "log.markdown", FORMS["markdown"].text(tables))
    golden.check(HERE / "log.latex", FORMS["latex"].text(tables))
    for form in ("markdown", "latex"):
        text = FORMS[form].text(tables).replace("\\%", "%").replace("$-$", "−")
        assert all(f" {cell} " in text for cells in growths for cell in cells if "%" in cell)


def test_several_folders_are_told_apart(tmp_path: Path) -> None:
    for where in ("a", "b", "other"):
        (tmp_path / where).mkdir()
    folders = [fixed(tmp_path / "a" / "x"), fixed(tmp_path / "b" / "x"), fixed(tmp_path / "other" / "y")]
    found = reading_all([*folders, folders[0] / "." / ".." / "x"], never)
    assert [one.name for one in found] == [str(folders[0]), str(folders[1]), "y"]
    tables = [table for one in found for table in one.tables]
    assert [table.title for table in tables] == [f"{one.name}: fixed" for one in found]
    rows = list(csv.reader(io.StringIO(FORMS["csv"].text(tables))))
    assert rows[0][:2] == ["results", "experiment"]
    assert list(dict.fromkeys(row[0] for row in rows[1:])) == [one.name for one in found]
    told = json.loads(FORMS["json"].text(tables))["tables"]
    assert [one["results"] for one in told] == [one.name for one in found]
    alone = FORMS["csv"].text(list(found[0].tables)).splitlines()[0]
    assert alone.startswith("experiment,")
