"""Reports in each form: what its option prints, what of a folder stands in it, and the files that a sweep leaves."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import committed
import pytest
from fixed_folder import ODD, fixed
from swept import swept
from warm_command import WarmCommand

from gpubench.analyze.folder import read_folder, read_folders
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.view import parse_view
from gpubench.commands.merge import merge_folders
from gpubench.export.sheets import make_table_sheet
from gpubench.render import html, latex, markdown, terminal
from gpubench.render.forms import FORMS, format_reports
from gpubench.render.grid import make_grid

FILES = {"csv": "table.csv", "markdown": "table.md"}
"""Forms that each sweep leaves in its folder."""


def never_stop(line: str) -> None:
    raise AssertionError(line)


@pytest.fixture(scope="module")
def swept_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a sweep of two trials has left, its tables written anew."""
    folder = swept(tmp_path_factory.mktemp("forms"), "two", "16,32").runner.results.folder
    assert merge_folders([folder], out=None) == 0
    return folder


@pytest.fixture(scope="module")
def fixed_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fixed(tmp_path_factory.mktemp("fixed") / "fixed")


def test_each_form_with_an_option_is_printed(swept_folder: Path, warm_command: WarmCommand) -> None:
    def run(*arguments: str) -> str:
        ended = warm_command.run(
            ("table", *arguments), cwd=swept_folder, env={"PATH": "/usr/bin:/bin"}, timeout=60
        )
        assert (ended.returncode, ended.stderr) == (0, ""), arguments
        return ended.stdout

    printed = {name: run(".", f"--{name}") for name in FORMS}
    assert len({*printed.values(), run("."), ""}) == len(FORMS) + 2
    for name, file in FILES.items():
        assert printed[name] == (swept_folder / file).read_text("utf-8")
    help_lines = run("--help").splitlines()
    for name, text in FORMS.items():
        assert text[:12] in next(line for line in help_lines if line.startswith(f"│ --{name} "))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["titan-xp-2021", "h200-copies-rounds-2026", "h200x2-network-size-2026"])
def test_no_form_loses_a_cell(name: str) -> None:
    for report in make_folder_reports([read_folder(committed.folder(name), never_stop)]):
        texts = {cell.text for row in make_grid(report).rows for cell in row.cells if cell.text}
        assert len(texts) >= 3
        printed = " ".join(terminal.format_text([report]).split())
        assert all(word in printed for text in texts for word in text.translate(terminal.TO_ASCII).split())
        printed = markdown.format_text([report])
        assert all(markdown.escape_markdown(text) in printed for text in texts)
        printed = latex.format_text([report])
        assert all(latex.escape_latex(text) in printed for text in texts)
        shown = html.format_html([report])
        assert all(text.replace("&", "&amp;") in shown for text in texts)
        assert shown.count("<tr>") == 1 + len(report.rows) + sum(bool(group.head) for group in report.groups)


def test_a_form_tells_which_rows_are_shown(fixed_folder: Path) -> None:
    view = parse_view(where=["batch_size>=64"], sort="-epoch_time_s")
    reports = make_folder_reports([read_folder(fixed_folder, never_stop)], view)
    line = (
        "4 of 7 rows shown where batch_size>=64, sorted by epoch_time_s downward; findings and warnings are of all "
        "rows"
    )
    assert line in terminal.format_text(reports).replace("\n  ", " ")
    assert markdown.escape_markdown(line) in markdown.format_text(reports)
    assert latex.escape_latex(line) in latex.format_text(reports)
    (data,) = json.loads(format_reports("json", reports))["reports"]
    assert data["selection"] == {
        "rows": 4, "total": 7, "where": ["batch_size>=64"], "sort": ["epoch_time_s downward"],
    }  # fmt: skip
    assert len(data["rows"]) == 7
    lines = list(
        csv.DictReader(
            io.StringIO(make_table_sheet([read_folder(fixed_folder, never_stop)], view).format_csv())
        )
    )
    assert [line["epoch_time_s"] for line in lines] == ["18.4570", "1.23457", "", ""]


def test_a_table_without_rows_is_a_table(fixed_folder: Path) -> None:
    view = parse_view(where=["epoch_time_s>1000"], sort="batch_size")
    reports = make_folder_reports([read_folder(fixed_folder, never_stop)], view)
    for form in (terminal.format_text, html.format_html, markdown.format_text, latex.format_text):
        assert "0 of 7" in form(reports)
    assert json.loads(format_reports("json", reports))["reports"][0]["selection"]["rows"] == 0


def test_a_csv_has_the_columns_that_are_asked_for(fixed_folder: Path) -> None:
    folder = read_folder(fixed_folder, never_stop)
    usual = [column.name for column in make_table_sheet([folder]).columns]
    names = [
        column.name for column in make_table_sheet([folder], parse_view("trial_id,-cpu_util_pct")).columns
    ]
    assert names == [*(name for name in usual if name != "cpu_util_pct"), "trial_id"]


def test_problems_of_a_folder_stand_in_files_and_not_on_a_terminal(fixed_folder: Path) -> None:
    (report,) = make_folder_reports([read_folder(fixed_folder, never_stop)])
    report = replace(report, problems=("t1-1.json is left out: <b>",))
    assert "t1-1.json is left out: \\<b\\>" in markdown.format_text([report])
    assert "t1-1.json is left out: $<$b$>$" in latex.format_text([report])
    assert json.loads(format_reports("json", [report]))["reports"][0]["problems"] == list(report.problems)
    assert "left out" not in terminal.format_text([report])


def test_several_folders_are_told_apart(tmp_path: Path) -> None:
    for where in ("a", "b", "other"):
        (tmp_path / where).mkdir()
    paths = [fixed(tmp_path / "a" / "x"), fixed(tmp_path / "b" / "x"), fixed(tmp_path / "other" / "y")]
    folders = read_folders([*paths, paths[0] / "." / ".." / "x"], never_stop)
    names = [str(paths[0]), str(paths[1]), "y"]
    assert [folder.name for folder in folders] == names
    assert [report.name for report in make_folder_reports(folders)] == [f"{name}: fixed" for name in names]
    sheet = make_table_sheet(folders)
    assert [column.name for column in sheet.columns][:2] == ["results", "experiment"]
    assert [line[0] for line in sheet.lines] == [name for name in names for _ in range(7)]
    (alone,) = make_folder_reports(folders[2:])
    assert alone.name == "fixed"
    assert make_table_sheet(folders[2:]).columns[0].name == "experiment"
    assert {row[1] for row in make_table_sheet(folders[2:]).lines} == {"crop-resize", ODD}
