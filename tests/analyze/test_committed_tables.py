"""The tables in committed results folders are those that this version writes."""

from __future__ import annotations

from pathlib import Path

import committed
import pytest

from gpubench.analyze.folder import read_folder, table_csv, trials_csv
from gpubench.analyze.questions import report_folders
from gpubench.render import markdown


@pytest.mark.parametrize("path", committed.folders(), ids=lambda path: path.name)
def test_the_tables_of_a_committed_folder_are_what_this_version_writes(path: Path) -> None:
    folder = read_folder(path, lambda line: pytest.fail(line))
    texts = {
        "table.csv": table_csv(folder),
        "table.md": markdown.write(report_folders([folder])),
        "trials.csv": trials_csv(folder),
    }
    for name, text in texts.items():
        with (path / name).open(encoding="utf-8", newline="") as file:
            assert text == file.read(), f"gpubench merge results/{path.name} writes {name} anew"
