"""Text for whoever reads it in an encoding that lacks some signs."""

from __future__ import annotations

PLAIN = {
    "−": "-", "–": "-", "×": "x", "±": "~", "─": "-", "━": "=", "·": "-", "…": ".", "°": " ",
    "\u00a0": " ",
}  # fmt: skip
"""Stand-ins of the same width, so that columns stay aligned."""


def replace_unencodable_signs(words: str, encoding: str) -> str:
    """`words` with signs that `encoding` lacks replaced by plain ones: a C locale must not end a sweep."""
    try:
        words.encode(encoding)
    except UnicodeEncodeError:
        return words.translate(_STAND_INS).encode(encoding, errors="replace").decode(encoding)
    return words


_STAND_INS = str.maketrans(PLAIN)
