"""The table of trial fields that docs/experiments.md shows."""

from __future__ import annotations

from pathlib import Path

from docs_pages.field_table import HEAD, text
from docs_pages.placing import placed

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_page_has_the_table_that_the_entries_make() -> None:
    page = PAGE.read_text("utf-8")
    assert page == placed(page, HEAD, text()), (
        "PYTHONPATH=tests python -m docs_pages.field_table docs/experiments.md"
    )


def test_a_default_is_told_as_one_types_it_or_as_the_machine_fills_it_in() -> None:
    lines = {line.split("`")[1]: line for line in PAGE.read_text("utf-8").splitlines() if line[:3] == "| `"}
    cells = {name: line.split(" | ") for name, line in lines.items()}
    assert cells["batch_size"][1:3] == ["`64`", "`--batch-size`"]
    assert cells["cudnn_benchmark"][1:3] == ["`false`", ""]
    assert cells["input_size"][1].startswith("auto: ")
    assert cells["steps"][1:3] == ["–", "`--steps`"]
    assert cells["strategy"][1].startswith("`single` on one device,")
