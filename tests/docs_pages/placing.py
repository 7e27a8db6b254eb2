"""Tables in docs/ that are made from entries in the code, and where they stand in their pages."""

from __future__ import annotations

from pathlib import Path

END = "\n## "
"""The heading after a table."""


def placed(page: str, head: str, table: str) -> str:
    """A page that has a table with this head already, with `table`, which begins with the head, in its place."""
    before, _, rest = page.partition(head)
    _, heading, after = rest.partition(END)
    return f"{before}{table}{heading}{after}"


def write(path: Path, head: str, table: str) -> None:
    """Puts the table into the page at `path`."""
    path.write_text(placed(path.read_text("utf-8"), head, table), "utf-8")
