"""What is said of an audit: a sentence a template, a line a rule."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpubench.analyze import audit as rules
from gpubench.analyze.audit import Observation, RuleFinding
from gpubench.render import audit

FALL = {"rows": {"count": 1, "whole": 2}, "fall": 2.4, "low": 0.96, "high": 3.84}
FINDINGS = [
    RuleFinding(
        1, "broken", (Observation("broken", "top1-falls", FALL), Observation("broken", "unlearned", {}))
    ),
    RuleFinding(
        2, "kept", (Observation("kept", "top1", {"rows": {"count": 24, "whole": 24}, "images": (1024,)}),)
    ),
    RuleFinding(12, "not decidable", (Observation("not decidable", "unplanned", {"tables": ("a|b",)}),)),
]


LINES = [
    " 1  broken         accuracy holds while scaling: with a larger batch or more devices top-1 falls in 1 of 2 rows, "
    "by up to 2.4 points (95 %: 1.0 to 3.8): times of unlike trainings (--until-top1 N times training to equal "
    "accuracy); some rows have learned no more than chance yet (more --epochs).",
    " 2  kept           test accuracy is reported: a top-1 on 1,024 held-out images in 24 of 24 rows that ran alone.",
    "12  not decidable  no flattering comparison: what was planned is not on record for a|b.",
    "",
    "results/x: of 3 rules 1 kept, 1 broken, 1 not decidable. The rules: docs/honesty.md",
]


def test_a_line_a_rule_and_a_summary() -> None:
    assert audit.format_text("results/x", FINDINGS, width=1000).splitlines() == LINES


@pytest.mark.parametrize("width", [50, 80])
def test_lines_wrap_under_their_words_and_a_path_stays_whole(width: int) -> None:
    lines = audit.format_text("x", FINDINGS, width).splitlines()
    assert width - 12 < max(map(len, lines)) <= width
    assert lines[1].startswith(" " * 19)
    assert " ".join(" ".join(lines).split()) == " ".join(audit.format_text("x", FINDINGS, 1000).split())
    path = "/home/" + "long/" * 20
    assert any(line.startswith(f"{path}:") for line in audit.format_text(path, FINDINGS, width).splitlines())


def test_markdown_escapes_and_json_is_data() -> None:
    row = next(
        line for line in audit.format_markdown("x", FINDINGS).splitlines() if line.startswith("| 12 |")
    )
    assert row.split(" | ")[1:3] == [audit.RULES[12][0], "not decidable"]
    assert row.endswith(" a\\|b. |")
    first, *_ = map(json.loads, audit.format_json(FINDINGS).splitlines())
    assert [first[key] for key in ("number", "rule", "way", "verdict")] == [1, *audit.RULES[1], "broken"]
    assert first["observations"][0]["figures"]["rows"] == {"count": 1, "whole": 2}
    assert first["finding"] == audit.describe_finding(FINDINGS[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"count": 3, "whole": 1200}, "3 of 1,200 rows"),
        ((), "–"),
        (("a", "b", "c"), "a, b and c"),
        (("a", "b", "c", "d", "e"), "a, b, c and 2 more"),
        (1024, "1,024"),
        (-0.44, "−0.4"),
        (10.0, "10"),
        (None, "–"),
        ("one\x1b[31m\ntwo", "one two"),
    ],
)
def test_figures_in_sentences(value: object, text: str) -> None:
    assert audit.format_figure(value) == text


def test_every_observation_has_a_sentence_and_every_sentence_an_observation() -> None:
    code = Path(rules.__file__).read_text()
    assert set(audit.RULES) == set(range(1, len(rules.RULES) + 1))
    unsaid = {name for name in audit.SENTENCES if f'"{name}"' not in code}
    assert unsaid == set()
    made = set(re.findall(r'observe(?:_rows)?\(\s*(?:"[^"]+"|verdict),\s*"([^"]+)"', code))
    assert made <= set(audit.SENTENCES)
    assert len(made) > 50
