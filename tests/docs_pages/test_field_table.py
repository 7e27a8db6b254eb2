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
    assert "| `batch_size` | `64` | `--batch-size` |" in lines["batch_size"]
    assert "| `cudnn_benchmark` | `false` |  |" in lines["cudnn_benchmark"]
    assert "| `input_size` | auto: the data's own size" in lines["input_size"]
    assert "| `steps` | – | `--steps` |" in lines["steps"]
    assert "| `strategy` | `single` on one device, else" in lines["strategy"]
