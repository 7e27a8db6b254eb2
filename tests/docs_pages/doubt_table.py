"""The table of doubts in docs/measuring.md, from their entries in `schema/doubts.py`.

`PYTHONPATH=tests python -m docs_pages.doubt_table docs/measuring.md` writes it there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from docs_pages.placing import write

from gpubench.basics.words import format_list
from gpubench.schema.doubts import DOUBTS, Doubt

HEAD = "| code | what it says | casts doubt on |\n|---|---|---|\n"


def text() -> str:
    """The table, and below it what holds for several of its rows."""
    rows = "".join(
        f"| `{doubt.code}` | {doubt.says} | {', '.join(doubt.about) or 'nothing'} |\n" for doubt in DOUBTS
    )
    return f"{HEAD}{rows}\n{_below()}\n"


def codes(wanted: Callable[[Doubt], bool]) -> str:
    """The codes of these doubts, as pages name them: `dp` and `stranger`."""
    return format_list([f"`{doubt.code}`" for doubt in DOUBTS if wanted(doubt)])


def _below() -> str:
    return (
        "The worst stands first. *Comparison*: the row's own figures may be right, but be careful where they are set "
        "against those of other rows. *Nothing*: it only says what the row is. Which of them the audit leaves out "
        "stands in [honesty.md](honesty.md).\n\n"
        f"Of a trial that did not end `ok` only {codes(lambda doubt: doubt.any_ending)} are told, for they may be why. "
        f"Only rows of several processes have {codes(lambda doubt: doubt.raised_by == 'processes')}, only rows of "
        f"published logs {codes(lambda doubt: doubt.raised_by == 'log')}, only records of versions before 0.2 "
        f"{codes(lambda doubt: doubt.raised_by == 'earlier')}."
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]), HEAD, text())
