"""Files that hold what was printed, character by character: `golden/` beside the tests."""

from __future__ import annotations

import os
from pathlib import Path

WRITE = "GPUBENCH_WRITE_GOLDEN"
"""In the environment, not empty: what is printed is written down in place of being compared. Look at the difference
with git before you commit it."""


def check(path: Path, text: str) -> None:
    """The text is what the file holds."""
    if os.environ.get(WRITE):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as file:
        assert text == file.read(), f"{path.name} is another; with {WRITE}=1 this test writes it anew"
