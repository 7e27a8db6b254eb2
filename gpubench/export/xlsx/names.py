"""Names of sheets as Excel takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 31
"""Units of UTF-16 that Excel takes."""

_FORBIDDEN = re.compile(r"[\[\]:*?/\\\x00-\x1f]")


class SheetNames:
    """Gives each sheet a name that no other one of the workbook has, whatever it should be called."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        """`kept`: names of the workbook's own sheets."""
        self._taken = {"history", *kept}  # Excel keeps the first one for itself

    def of(self, wanted: str) -> str:
        """`wanted` without signs that are forbidden, cut where it is too long, with a number where it is taken."""
        plain = _FORBIDDEN.sub("-", wanted.encode("utf-8", "replace").decode())
        name, number = _cut(plain, LONGEST), 1
        while name.lower() in self._taken:
            number += 1
            end = f" {number}"
            name = _cut(plain, LONGEST - len(end)) + end
        self._taken.add(name.lower())
        return name


def _cut(text: str, longest: int) -> str:
    cut = text.encode("utf-16-le")[: 2 * longest].decode("utf-16-le", "ignore")
    return cut.strip(" '") or "sheet"
