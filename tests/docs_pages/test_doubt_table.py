"""What the pages say of doubts is made from their entries."""

from __future__ import annotations

from pathlib import Path

from docs_pages.doubt_table import HEAD, codes, text
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


def test_pages_name_the_doubts_of_somebody_else_s_work() -> None:
    assert f"(doubts {codes(lambda doubt: doubt.of_others)};" in (DOCS / "side-by-side.md").read_text("utf-8")


def test_pages_name_the_doubts_that_the_audit_leaves_out() -> None:
    left_out = codes(lambda doubt: not doubt.serious)
    assert f"weaken no conclusion: {left_out})" in (DOCS / "honesty.md").read_text("utf-8")
