"""What a reader wants of a table: columns besides the usual ones, or not (`--columns power_w,-data_wait_pct`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.basics.errors import UsageError, nearest, unknown
from gpubench.schema.columns import Column


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """Changes to a table's usual columns."""

    added: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()

    def of(self, usual: Sequence[str]) -> list[str]:
        """The columns to show. Added ones stand before the last one, which is the status.

        Raises UsageError where none is left.
        """
        kept = [name for name in usual if name not in self.removed]
        extra = [name for name in self.added if name not in kept]
        index = len(kept) - (kept[-1:] == ["status"])
        shown = [*kept[:index], *extra, *kept[index:]]
        if not shown:
            raise UsageError("--columns: every column is removed; leave one, or add one")
        return shown


SHOW = Choice()
"""The usual columns."""


def parse(text: str, valid: Mapping[str, Column]) -> Choice:
    """`a,b` adds two columns, `-c` removes one. Raises UsageError for a name that isn't one of `valid`."""
    added: dict[str, None] = {}
    removed: set[str] = set()
    for part in text.split(","):
        word = part.strip()
        name = word.removeprefix("-").strip()
        if not name:
            raise UsageError(f"--columns: {text!r} holds no column between two commas; see docs/columns.md")
        if name not in valid:
            raise unknown("column", name, valid, hint(name, valid))
        if word.startswith("-"):
            removed.add(name)
        else:
            added[name] = None
    if both := removed & set(added):
        raise UsageError(f"--columns: {min(both)} is both added and removed")
    return Choice(added=tuple(added), removed=frozenset(removed))


LISTED = "docs/columns.md lists them all, and so does the first line of a folder's trials.csv"
MANY = 6
"""Names that a hint may list; more are no hint."""


def hint(word: str, valid: Mapping[str, Column]) -> str:
    """What may have been meant: the heading that it is, a name that is nearly it, a name or heading that holds it."""
    asked = _plain(word)
    headings = {name: _plain(column.heading) for name, column in valid.items()}
    near = nearest(word, valid)
    held = [name for name, heading in headings.items() if asked in _plain(name) or asked in heading]
    meant = [name for name, heading in headings.items() if heading == asked] or ([near] if near else held)
    if 0 < len(meant) <= MANY and asked:
        return f"did you mean {', '.join(meant)}? {LISTED}"
    return LISTED


def _plain(name: str) -> str:
    """As people may write it: `GPU MiB`, `gpu_mib` and `gpu-mib` are one."""
    return " ".join(name.lower().replace("_", " ").replace("-", " ").replace("%", " ").split())
