"""Texts spoiled at random: bytes, spans and words of them left out, repeated, changed for others, cut off."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

_WORD = re.compile(rb'"[^"\n]{0,200}"|[A-Za-z_][\w.-]*|[-+]?[\d.]+(?:[eE][-+]?\d+)?')
HOSTILE: tuple[bytes, ...] = (
    b"", b"0", b"-1", b"1", b"2", b"1.5", b"1e999", b"-1e308", b"1e15", b"nan", b"NaN", b"inf", b"-Infinity",
    b"9" * 20, b"9" * 400, b"9" * 5000, b"9" * 308 + b"GiB", b"9" * 308 + b"h", b"null", b"true", b"false", b"auto",
    b'"1.5"', b'""', b'"x"', b'"\\ud800"', b"\\u0000", b"\xff", b"\0", b"\x1b[31m", b"\n", b"[", b"]", b"[]", b"{",
    b"}", b"{}", b"[[", b"=", b",", b":", b"/", b"+", b"#", b"-", b"--", b"..", b"[" * 2000, b"x" * 5000,
    b"0:1000000000000:1", b"1:100000:1", b"1:2:x1.0000001", b"0+1", b"0+1,2+3", b"12GiB", b"9h",
    b"2026-11-20", b"09:53:00", b"2026-11-20T09:53:00Z", "é".encode(), "\u202e".encode(), "١٢".encode(),
    b"\xef\xbb\xbf",
)  # fmt: skip
"""What parsers fall over."""


def mutated(seed: bytes, chance: random.Random, words: Sequence[bytes] = HOSTILE) -> bytes:
    """The text with one to five changes. `words`: what is put into it."""
    text = seed
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        text = _changed(text, chance, words)
    return text


def _changed(text: bytes, chance: random.Random, words: Sequence[bytes]) -> bytes:
    start = chance.randrange(len(text) + 1)
    end = start + chance.choice((1, 2, 4, 8, 30, 200))
    found = list(_WORD.finditer(text))
    match chance.randrange(9 if found else 5):
        case 0:
            return text[:start] + bytes([chance.randrange(256)]) + text[start + 1 :]
        case 1:
            return text[:start] + text[end:]
        case 2:
            return text[:end] + text[start:]
        case 3:
            return text[:start] + chance.choice(words) + text[start:]
        case 4:
            return text[:start]
        case 5:
            one, other = chance.choice(found), chance.choice(found)
            return text[: one.start()] + other[0] + text[one.end() :]
        case _:
            one = chance.choice(found)
            return text[: one.start()] + chance.choice(words) + text[one.end() :]
