"""docs/reliability.md, and README.md beside this file, against the tests and the attack that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from kinds import KINDS
from room import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reliability.md").read_text("utf-8")
SHOWN = (Path(__file__).parent / "README.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", SHOWN)
ROW = re.compile(r"^\| (?!---|fault)((?:[^|]|\\\|)+) \| ((?:[^|]|\\\|)+) \|$", re.MULTILINE)
RULES = 2
"""The last rows of what is shown: rules of conduct, which are no faults."""


def section(page: str, title: str) -> str:
    """The text under a heading, up to the next one."""
    _, _, rest = page.partition(f"\n## {title}\n")
    assert rest, f"there is no section {title}"
    return rest.partition("\n## ")[0]


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_test_that_is_named_exists(path: str, name: str) -> None:
    text = (REPOSITORY / path).read_text("utf-8")
    assert re.search(rf"^(async )?def {name}\(", text, re.MULTILINE), f"{path} has no {name}"


def test_every_fault_of_the_page_is_shown() -> None:
    faults = [fault for fault, _ in ROW.findall(section(PAGE, "Faults"))]
    assert len(faults) > 10
    shown = ROW.findall(section(SHOWN, "What shows each fault"))
    assert faults == [fault for fault, _ in shown[:-RULES]]
    attacks = {kind.name for kind in KINDS}
    for fault, names in shown:
        words = re.findall(r"`([^`]+)`", names)
        assert words, f"nothing shows {fault}"
        for word in words:
            assert word in attacks or Path(word.partition("::")[0]).suffix == ".py", f"{word} is neither"
