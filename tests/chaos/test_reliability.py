"""docs/reliability.md against the tests and the attack that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kinds import KINDS
from known import KNOWN_TO_BREAK
from room import REPOSITORY
from verdicts import PROMISES

PAGE = (REPOSITORY / "docs" / "reliability.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
FAULTS = re.compile(r"^\| (?!---|fault)([^|]+)\|([^|]+)\|([^|]+)\|([^|]+)\|$", re.MULTILINE)


def section(title: str) -> str:
    """The text under a heading, up to the next one."""
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, f"there is no section {title}"
    return rest.partition("\n## ")[0]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    text = (REPOSITORY / path).read_text("utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"


def test_every_fault_says_what_is_seen_what_is_kept_and_what_shows_it() -> None:
    rows = FAULTS.findall(section("Faults"))
    assert len(rows) > 10
    attacks = {kind.name for kind in KINDS}
    for fault, seen, kept, shown in rows:
        assert seen.strip(), fault
        assert kept.strip(), fault
        words = re.findall(r"`([^`]+)`", shown)
        assert words, f"nothing shows {fault}"
        for word in words:
            assert word in attacks or Path(word.partition("::")[0]).suffix == ".py", f"{word} is neither"


def test_every_kind_of_attack_shows_a_fault() -> None:
    shown = {
        word for *_, cell in FAULTS.findall(section("Faults")) for word in re.findall(r"`([\w-]+)`", cell)
    }
    assert {kind.name for kind in KINDS} == shown


def test_every_promise_is_told() -> None:
    assert list(PROMISES) == re.findall(r"^- \*\*(\w+)\*\*: ", section("Promises"), re.MULTILINE)


def test_what_is_known_to_break_is_told_by_number() -> None:
    told = {
        int(number)
        for number in re.findall(r"^- \*\*fault (\d+)\*\*: ", section("Known to break"), re.MULTILINE)
    }
    assert told == {one.fault for one in KNOWN_TO_BREAK}
