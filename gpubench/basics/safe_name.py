"""Names of files that no file system and no shell minds, in letters of any language."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 120
"""Bytes of a name in UTF-8, without its ending: the least that a file system takes, with it, is 143."""
_SIGNS = "._+-"
_WRITTEN = "LMN"
"""The kinds of signs that are kept, as Unicode calls them: letters, marks on them, digits."""


def make_safe_file_name(text: str, otherwise: str) -> str:
    """The text as the name of a file, without an ending: what is no letter, no digit and none of `._+-` becomes `_`.

    `otherwise`: the name of a text of which nothing is left.
    """
    # A letter with an accent is one sign or two; some file systems tell these apart, others don't.
    composed = unicodedata.normalize("NFC", text)
    kept = (sign if sign in _SIGNS or unicodedata.category(sign)[0] in _WRITTEN else " " for sign in composed)
    name = re.sub(" +", "_", "".join(kept)).strip("._-")
    return name.encode()[:LONGEST].decode(errors="ignore") or otherwise
