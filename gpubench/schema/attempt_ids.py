"""Ids of attempts and of results folders, which are unique in the world.

An attempt's id is `NUMBER-FOLDER` and 8 random signs: `3-5f1c09ab77e012cd` is the third attempt at its unit in the
folder 5f1c09ab. So names of files tell which number belongs to which folder, and folders become one by copying.
"""

from __future__ import annotations

import hashlib
import re
import secrets

FOLDER_SIGNS = 8
"""Hexadecimal signs of a folder's id, and of what makes one of its attempts unique."""


def make_folder_id() -> str:
    """The id of a folder that holds nothing yet."""
    return secrets.token_hex(FOLDER_SIGNS // 2)


def make_attempt_id(number: int, folder_id: str, unique: str = "") -> str:
    """The id of an attempt. `unique`: what makes it so, 8 hexadecimal signs; empty: random ones."""
    return f"{number}-{folder_id}{unique or secrets.token_hex(FOLDER_SIGNS // 2)}"


_ID = re.compile(r"([1-9][0-9]{0,6})-[0-9a-f]{16}", re.ASCII)


def is_attempt_id(text: str, number: int) -> bool:
    """Whether it is the id of an attempt of this number."""
    match = _ID.fullmatch(text)
    return match is not None and int(match[1]) == number


def parse_folder_id(attempt_name: str) -> str:
    """The id of the folder where an attempt was measured; empty for one of an earlier version, which has no id."""
    return attempt_name.partition("-")[2][:FOLDER_SIGNS]


def hash_content(content: str | bytes) -> str:
    """8 hexadecimal signs that stand for a content."""
    data = content.encode() if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()[:FOLDER_SIGNS]
