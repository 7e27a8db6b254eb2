"""An audit as text, Markdown and JSON lines."""

import json

from gpubench.analysis.audit.facts import RuleFinding
from gpubench.analysis.audit.rules import RULES
from gpubench.report import audit

FOUND = [
    (RULES[0], RuleFinding("not decidable", "one seed each | --repeats 3")),
    (RULES[1], RuleFinding("kept", "a top-1 in all 24 rows")),
]


def test_a_line_a_rule_and_a_summary():
    assert audit.text("results/x", FOUND) == (
        " 1  not decidable  accuracy holds while scaling: one seed each | --repeats 3.\n"
        " 2  kept           test accuracy is reported: a top-1 in all 24 rows.\n"
        "\n"
        "results/x: of 2 rules 1 kept, 0 broken, 1 not decidable. The rules: docs/honesty.md\n"
    )


def test_on_a_terminal_lines_wrap_under_their_words():
    lines = audit.text("x", FOUND, width=50).splitlines()
    assert max(map(len, lines[:-1])) < 50
    assert lines[1].startswith(" " * 19)
    assert " ".join(" ".join(lines).split()) == " ".join(audit.text("x", FOUND).split())


def test_markdown_and_json():
    assert "| 1 | accuracy holds while scaling | not decidable | one seed each \\| --repeats 3. |" in (
        audit.as_markdown("x", FOUND)
    )
    first, _ = map(json.loads, audit.json_lines(FOUND).splitlines())
    assert first == {
        "number": 1, "rule": "accuracy holds while scaling", "way": "accuracy ignored while scaling",
        "verdict": "not decidable", "finding": "one seed each | --repeats 3",
    }  # fmt: skip
