"""The tables that docs/ shows of doubts and of trial fields are made from their entries."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from docs_pages import doubt_table, field_table
from docs_pages.placing import END, placed

from gpubench.schema.doubts import DOUBTS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("maker", "page"), [(doubt_table, "measuring.md"), (field_table, "experiments.md")])
def test_a_page_has_the_table_that_the_entries_make(maker: ModuleType, page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    assert text == placed(text, maker.HEAD, maker.text()), (
        f"PYTHONPATH=tests python -m {maker.__name__} docs/{page}"
    )


def test_each_doubt_has_one_row() -> None:
    text = (DOCS / "measuring.md").read_text("utf-8")
    table = "\n" + text.partition(doubt_table.HEAD)[2].partition(END)[0]
    assert [table.count(f"\n| `{doubt.code}` |") for doubt in DOUBTS] == [1] * len(DOUBTS)


def test_a_default_is_told_as_one_types_it_or_as_the_machine_fills_it_in() -> None:
    text = (DOCS / "experiments.md").read_text("utf-8")
    lines = {line.split("`")[1]: line for line in text.splitlines() if line[:3] == "| `"}
    cells = {name: line.split(" | ") for name, line in lines.items()}
    assert cells["batch_size"][1:3] == ["`64`", "`--batch-size`"]
    assert cells["cudnn_benchmark"][1:3] == ["`false`", ""]
    assert cells["input_size"][1].startswith("auto: ")
    assert cells["steps"][1:3] == ["–", "`--steps`"]
    assert cells["strategy"][1].startswith("`single` on one device,")
