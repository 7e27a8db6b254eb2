"""How the findings are told: in lines for people, or as one JSON object."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gpubench.basics.encodable import replace_unencodable_signs
from gpubench.basics.folding import wrap_sentence
from gpubench.basics.words import clean_line
from gpubench.doctor.context import CheckResult

if TYPE_CHECKING:
    from rich.console import Console

STYLES = {"ok": "green", "doubt": "yellow", "no": "bold red"}
VERDICT, NAME = 7, 20
"""Widths of the first two columns, gap included."""
INDENT = " " * (2 + VERDICT + NAME)


def print_findings(findings: Iterable[CheckResult], console: Console) -> list[CheckResult]:
    """Prints each finding as it comes, under the heading of its group, and a summary. Returns them all.

    On a terminal sentences wrap at words under their own column; elsewhere each stands on one line, for grep.
    """
    results: list[CheckResult] = []
    for finding in findings:
        if not results or results[-1].group != finding.group:
            _print_line(console, finding.group, "bold")
        results.append(finding)
        width = console.width - len(INDENT) if console.is_terminal else None
        first, *more = wrap_sentence(clean_line(finding.found), width, hang="")
        head = f"  {finding.verdict.ljust(VERDICT)}{finding.name.ljust(NAME)}"
        _print_line(console, head + first, STYLES[finding.verdict])
        for line in more:
            _print_line(console, INDENT + line)
        for line in (
            wrap_sentence(clean_line(f"remedy: {finding.remedy}"), width, hang="") if finding.remedy else ()
        ):
            _print_line(console, INDENT + line, "cyan")
    _print_line(console, format_summary(results), "bold")
    return results


def _print_line(console: Console, words: str, style: str = "") -> None:
    line = replace_unencodable_signs(words, console.encoding)
    if console.is_terminal:
        console.print(line, style=style, soft_wrap=True, highlight=False, markup=False)
    else:
        console.file.write(line.rstrip() + "\n")
        console.file.flush()


def format_summary(findings: Sequence[CheckResult]) -> str:
    """One line: how many of each, and whether a sweep can run."""
    count = {verdict: sum(f.verdict == verdict for f in findings) for verdict in STYLES}
    doubts = f"{count['doubt']} doubt{'' if count['doubt'] == 1 else 's'}"
    stops = [finding.name for finding in findings if finding.forbids]
    can = f"no sweep can run here: {', '.join(dict.fromkeys(stops))}" if stops else "a sweep can run here"
    return f"{count['ok']} ok, {doubts}, {count['no']} no: {can}"


def format_json(findings: Sequence[CheckResult]) -> str:
    """The findings as one JSON object."""
    answer = {
        "can_sweep": not any(finding.forbids for finding in findings),
        "findings": [dataclasses.asdict(finding) for finding in findings],
    }
    return json.dumps(answer, ensure_ascii=True, indent=1)
