"""Prints what version 0.1.0 concluded of the committed folders beside what is concluded now:

    PYTHONPATH=tests/net python tests/net/verdicts.py > tests/net/verdicts.md

Of each claim that both make of the same two rows: the old verdict, the new one, and the rule behind a change.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

from adapters import name_rows, read

from gpubench.analyze.folder import Folder
from gpubench.analyze.questions import report_table
from gpubench.core.findings import SharingFinding

NET = Path(__file__).parent
METRICS = {
    "memory x time": "memory_time",
    "speed-up, strong": "images_per_s",
    "speed-up, weak": "images_per_s",
    "time, strategy": "images_per_s",
    "sharing": "sharing",
}
"""Kinds of claims of version 0.1.0 (those of `compare` aside) and their metrics."""
RULES = {
    ("open", "sure"): "the question is a family of its own (5 %), never the table",
    (
        "open",
        "likely",
    ): "the claim alone at 5 %, or one process and an effect beyond what such rows differ by",
    ("class", "likely"): "one process of such jobs: nothing is sure",
    ("class", "unknown"): "one process of such jobs differs by up to 40 %",
}
"""By how sure it was and is; without a line where neither changed."""


def main() -> None:
    print("# Verdicts, before and after\n")
    print("Made by `PYTHONPATH=tests/net python tests/net/verdicts.py`; claims of the same two rows.\n")
    print("| folder | claim | 0.1.0 | now | claims | rule behind the change |")
    print("|---|---|---|---|---:|---|")
    for path in sorted((NET / "data").glob("*.json.xz")):
        name = path.name.removesuffix(".json.xz")
        if (NET.parents[1] / "results" / name).is_dir():
            print_folder(name, json.loads(lzma.decompress(path.read_bytes()))[name]["verdicts"])


def print_folder(name: str, verdicts: dict[str, list[str]]) -> None:
    """Prints a line a kind of claim and change."""
    folder = read(NET.parents[1] / "results" / name)
    words = collect_words(folder)
    changes: Counter[tuple[str, str, str]] = Counter()
    for key, (verdict, reason, *_) in verdicts.items():
        _, kind, *rows = key.split(" | ")
        if kind in METRICS:
            before = f"{verdict} ({reason})" if reason else verdict
            changes[kind, before, words.get((METRICS[kind], *rows), "not claimed")] += 1
    for (kind, before, now), count in sorted(changes.items()):
        certainty = now.split(" ")[0]
        rule = RULES.get((classify(before), certainty), "")
        print(f"| {name} | {kind} | {before} | {now} | {count} | {rule} |")


def classify(verdict: str) -> str:
    """How an old verdict was: open, decided, or a class of overlap that was told without a test."""
    if verdict.startswith("open") or verdict.endswith("(open)"):
        return "open"
    return "decided" if verdict in ("faster", "slower", "same") else "class"


def collect_words(folder: Folder) -> dict[tuple[str, ...], str]:
    """How sure each claim is now, and which overlap each group has, by metric and the names of their rows."""
    names = name_rows(folder)
    words = {}
    for table in folder.tables:
        for finding in report_table(folder, table).findings:
            for claim in finding.claims:
                words[claim.metric, names[claim.candidate], names[claim.baseline]] = claim.decided.word
            if isinstance(finding, SharingFinding):
                for group in finding.groups:
                    for row in group.rows:
                        words["sharing", names[row], ""] = f"{group.word} ({' or '.join(group.overlaps)})"
    return words


if __name__ == "__main__":
    main()
