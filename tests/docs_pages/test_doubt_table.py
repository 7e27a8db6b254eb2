"""What the pages say of doubts is made from their entries."""

from __future__ import annotations

from pathlib import Path

from docs_pages.doubt_table import HEAD, text
from docs_pages.placing import END, placed

from gpubench.schema.doubts import DOUBTS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_doubts_is_made_from_the_entries() -> None:
    page = (DOCS / "measuring.md").read_text("utf-8")
    assert page == placed(page, HEAD, text()), (
        "PYTHONPATH=tests python -m docs_pages.doubt_table docs/measuring.md"
    )
    table = "\n" + page.partition(HEAD)[2].partition(END)[0]
    assert [table.count(f"\n| `{doubt.code}` |") for doubt in DOUBTS] == [1] * len(DOUBTS)
