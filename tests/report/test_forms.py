"""Each form of the tables: what its option prints, and the file that a sweep leaves."""

from __future__ import annotations

from pathlib import Path

import pytest
from gpubench.report.forms import FORMS, only_one
from swept import swept
from warm_command import WarmCommand

from gpubench.basics.errors import UsageError

PRINTED = list(FORMS)
STORED = [name for name, form in FORMS.items() if form.file]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a sweep of two trials has left."""
    return swept(tmp_path_factory.mktemp("forms"), "two", "16,32").bench.results.folder


def test_the_forms_that_spreadsheets_and_pages_lean_on_stay() -> None:
    files = {name: FORMS[name].file for name in STORED}
    assert {"csv": "table.csv", "markdown": "table.md"}.items() <= files.items()
    assert "markdown" in PRINTED


@pytest.mark.parametrize("name", STORED)
def test_a_form_with_a_file_is_left_by_each_sweep(name: str, folder: Path) -> None:
    stored = (folder / FORMS[name].file).read_text("utf-8")
    assert "16" in stored
    assert "32" in stored
    assert stored.endswith("\n")


@pytest.mark.parametrize("name", PRINTED)
def test_a_form_with_an_option_is_printed(name: str, folder: Path, warm_command: WarmCommand) -> None:
    def said(*arguments: str) -> str:
        ended = warm_command.run(("table", *arguments), cwd=folder, env={"PATH": "/usr/bin:/bin"}, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, ""), arguments
        return ended.stdout

    printed = said(str(folder), f"--{name}")
    assert printed not in ("", said(str(folder)))
    if FORMS[name].file:
        assert printed == (folder / FORMS[name].file).read_text("utf-8")
    line = next(line for line in said("--help").splitlines() if f"--{name}" in line)
    assert FORMS[name].help in line


def test_of_two_forms_one_is_wanted() -> None:
    with pytest.raises(UsageError, match=r"^--csv and --markdown are two forms of the same"):
        only_one(["csv", "markdown"])
