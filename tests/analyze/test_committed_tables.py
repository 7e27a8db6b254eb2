"""The tables in committed results folders are those that this version writes."""

from __future__ import annotations

import committed
import pytest

from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.export.sheets import SHEETS
from gpubench.render import markdown


@pytest.mark.slow
@pytest.mark.parametrize("name", committed.cases(path.name for path in committed.folders()))
def test_the_tables_of_a_committed_folder_are_what_this_version_writes(name: str) -> None:
    path = committed.folder(name)
    folder = read_folder(path, lambda line: pytest.fail(line))
    texts = {f"{sheet}.csv": SHEETS[sheet]([folder]).format_csv() for sheet in ("table", "trials", "epochs")}
    texts["table.md"] = markdown.format_text(make_folder_reports([folder]))
    for file, text in texts.items():
        with (path / file).open(encoding="utf-8", newline="") as stored:
            assert text == stored.read(), f"gpubench merge results/{name} writes {file} anew"
