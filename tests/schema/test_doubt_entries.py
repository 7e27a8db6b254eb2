"""The entries of doubts: each has its sentence, and says what it is."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import get_args

import committed
import pytest

from gpubench.schema.doubts import BY_CODE, DOUBTS, Doubt, Doubted


@pytest.mark.parametrize("doubt", DOUBTS, ids=lambda doubt: doubt.code)
def test_an_entry_says_what_it_is_in_sentences(doubt: Doubt) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", doubt.code)  # codes are joined by + in a cell
    assert re.fullmatch(r"[^|\n]*\.", doubt.says)  # it stands in a Markdown table
    assert set(doubt.about) <= set(get_args(Doubted))
    # What casts doubt on nothing weakens no conclusion.
    assert doubt.about or not doubt.serious


@pytest.mark.parametrize("folder", committed.folders("trials.csv"), ids=lambda folder: folder.name)
def test_every_doubt_of_a_committed_row_has_an_entry(folder: Path) -> None:
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as lines:
        cells = [row["doubts"] for row in csv.DictReader(lines)]
    assert {code for cell in cells for code in cell.split("+") if code} <= set(BY_CODE)
