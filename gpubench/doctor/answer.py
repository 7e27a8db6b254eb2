"""How the findings are told: in lines for people, or as one JSON object."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from gpubench.basics.encodable import encodable
from gpubench.basics.folding import folded
from gpubench.basics.words import clean
from gpubench.doctor.finding import CheckResult

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"ok": "green", "doubt": "yellow", "no": "bold red"}
VERDICT, NAME = 7, 20
"""Widths of the first two columns, gap included."""
INDENT = " " * (2 + VERDICT + NAME)
NARROWEST = 30
"""Cells for the text, however narrow the terminal."""


def show(findings: Iterable[CheckResult], console: Console) -> list[CheckResult]:
    """Prints each finding as it comes, under the heading of its group, and a summary. Returns them all.

    On a terminal sentences wrap at words under their own column; elsewhere each stands on one line, for grep.
    """
    results: list[CheckResult] = []
    for finding in findings:
        if not results or results[-1].group != finding.group:
            _print_heading(console, finding.group, "bold", gap=bool(results))
        results.append(finding)
        _print_result(finding, console)
    _print_heading(console, summary(results), "bold", gap=True)
    return results


def _print_result(finding: CheckResult, console: Console) -> None:
    from rich.text import Text

    width = max(NARROWEST, console.width - len(INDENT)) if console.is_terminal else None
    body = _lines(finding.found, width)
    if finding.remedy:
        body += _lines(f"remedy: {finding.remedy}", width)
    style = STYLES[finding.verdict]
    head = Text.assemble("  ", (finding.verdict.ljust(VERDICT), style), finding.name.ljust(NAME), body[0])
    remedy_from = len(_lines(finding.found, width))
    _print_line(console, head)
    for number, line in enumerate(body[1:], start=1):
        _print_line(console, Text.assemble(INDENT, (line, "cyan" if number >= remedy_from else "")))


def _lines(words: str, width: int | None) -> list[str]:
    return folded(clean(words), width, hang="")


def _print_heading(console: Console, words: str, style: str, *, gap: bool) -> None:
    from rich.text import Text

    if gap:
        console.file.write("\n")
    _print_line(console, Text(words, style))


def _print_line(console: Console, line: Any) -> None:
    line.plain = encodable(line.plain, console.encoding)
    if console.is_terminal:
        console.print(line, soft_wrap=True, highlight=False)
    else:
        console.file.write(line.plain.rstrip() + "\n")
        console.file.flush()


def summary(findings: Sequence[CheckResult]) -> str:
    """One line: how many of each, and whether a sweep can run."""
    count = {verdict: sum(f.verdict == verdict for f in findings) for verdict in STYLES}
    doubts = f"{count['doubt']} doubt{'' if count['doubt'] == 1 else 's'}"
    stops = [finding.name for finding in findings if finding.forbids]
    can = f"no sweep can run here: {', '.join(dict.fromkeys(stops))}" if stops else "a sweep can run here"
    return f"{count['ok']} ok, {doubts}, {count['no']} no: {can}"


def as_json(findings: Sequence[CheckResult]) -> str:
    """The findings as one JSON object."""
    answer = {
        "can_sweep": not any(finding.forbids for finding in findings),
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return json.dumps(answer, ensure_ascii=True, indent=1)
