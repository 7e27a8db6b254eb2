"""Options that are given twice."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from place import TINY, Place

# What the second of two values would take away silently: (arguments, words of the line).
TWICE: list[tuple[Sequence[str], str]] = [
    (
        ["sweep", "--batch-size", "8", "--batch-size=16"],
        "--batch-size is given twice: once is enough, with commas",
    ),
    (["sweep", "--set", "lr=1", "--zip", "lr,seed=1/2"], "lr is given twice"),
    (["sweep", "--batch-size", "8", "--set", "batch_per_gpu=8"], "batch_per_gpu is given beside batch_size"),
    (["data", "make", "--images", "32", "--images", "64"], "--images is given twice: once is enough"),
]


@pytest.mark.parametrize(("arguments", "words"), TWICE, ids=[" ".join(a) for a, _ in TWICE])
def test_what_is_given_twice_is_an_error_that_says_how_to_give_both(
    place: Place, arguments: Sequence[str], words: str
) -> None:
    (place.home / "empty").mkdir()
    before = place.files()
    ended = place.run(*arguments, trains=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert re.fullmatch(r"gpubench: [^\n]+\n", ended.stderr), ended.stderr
    assert words in ended.stderr
    assert place.files() == before


def test_flags_given_twice_and_options_that_are_lists_do_no_harm(place: Place) -> None:
    twice = ("-n", "-n", "--fresh", "--fresh", "--set", "lr=0.1", "--set", "seed=3", "--exclude", "lr=3",
             "--exclude", "lr=4")  # fmt: skip
    ended = place.run("sweep", *TINY, "--batch-size", "8", *twice)
    assert (ended.returncode, ended.stderr) == (0, "")
