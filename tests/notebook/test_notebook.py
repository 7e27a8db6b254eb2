"""docs/notebook.ipynb runs as it stands, and what it shows is stored in it."""

from __future__ import annotations

import copy
from pathlib import Path

import committed
import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebook.ipynb"
LARGEST = 100_000
"""Bytes: it is read in a repository."""


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    committed.folder("h200x4-2026")
    committed.folder("h200-copies-2026")
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[1]), prepend=":")
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    ran = copy.deepcopy(stored)
    NotebookClient(
        ran, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(NOTEBOOK.parent)}}
    ).execute()
    shown = [cell for cell in ran.cells if cell.cell_type == "code"]
    kept = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert len(shown) > 5
    for now, before in zip(shown, kept, strict=True):
        assert [out.output_type for out in now.outputs] == [out.output_type for out in before.outputs] != []
        assert [sorted(out.data) for out in now.outputs] == [sorted(out.data) for out in before.outputs]
    frame = next(cell.outputs[0].data["text/plain"] for cell in shown if "found.table()" in cell.source)
    assert "oom" in frame
    assert "NaN" in frame
    assert NOTEBOOK.stat().st_size < LARGEST
