"""The tables in committed results folders are those that this version writes."""

from __future__ import annotations

from pathlib import Path

import committed
import pytest
from gpubench.report.contents import contents, trial_rows
from gpubench.report.forms import FORMS

from gpubench.results.csv_tables import trials_csv
from gpubench.results.store import Results


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_the_tables_of_a_committed_folder_are_what_this_version_writes(folder: Path) -> None:
    results = Results(folder)
    found = contents(results, results.records())
    texts = {form.file: form.text(found.tables) for form in FORMS.values() if form.file}
    for name, text in {**texts, "trials.csv": trials_csv(trial_rows(found))}.items():
        with (folder / name).open(encoding="utf-8", newline="") as file:
            assert text == file.read(), f"gpubench merge results/{folder.name} writes {name} anew"
