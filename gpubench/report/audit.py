"""The audit of a results folder as plain text, Markdown or JSON lines. Pure."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Sequence

from gpubench.analysis.audit.facts import RuleFinding
from gpubench.analysis.audit.rules import Rule
from gpubench.basics.words import clean
from gpubench.report import markdown

Audit = Sequence[tuple[Rule, RuleFinding]]
VERDICTS = ("kept", "broken", "not decidable")


def text(name: str, found: Audit, width: int | None = None) -> str:
    """A line a rule, then the summary, ending in a newline. Wrapped to `width` columns where there is one."""
    lines = []
    for rule, finding in found:
        place = f"{rule.number:>2}  {finding.verdict:<{max(map(len, VERDICTS))}}  "
        line = f"{place}{rule.title}: {clean(finding.text)}."
        room = max(40, width - 1) if width else len(line) + 1
        lines += textwrap.wrap(line, room, subsequent_indent=" " * len(place), break_on_hyphens=False)
    return "\n".join((*lines, "", summary(name, found))) + "\n"


def as_markdown(name: str, found: Audit) -> str:
    """The findings as a Markdown table."""
    rows = [
        f"| {rule.number} | {rule.title} | {finding.verdict} | {markdown.escape(clean(finding.text))}. |"
        for rule, finding in found
    ]
    grid = ["|  | rule | verdict | what the data show |", "| ---: | :--- | :--- | :--- |", *rows]
    return "\n".join((*grid, "", markdown.escape(summary(name, found)))) + "\n"


def json_lines(found: Audit) -> str:
    """An object a rule: number, rule, way (to fool), verdict, finding."""
    return "".join(
        json.dumps(
            {
                "number": rule.number,
                "rule": rule.title,
                "way": rule.way,
                "verdict": finding.verdict,
                "finding": clean(finding.text),
            },
            ensure_ascii=False,
        )
        + "\n"
        for rule, finding in found
    )


def summary(name: str, found: Audit) -> str:
    """`results/x: of 12 rules 7 kept, 2 broken, 3 not decidable`."""
    counts = Counter(finding.verdict for _, finding in found)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)  # type: ignore[index]
    return f"{name}: of {len(found)} rules {told}. The rules: docs/honesty.md"
