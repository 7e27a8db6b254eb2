"""The audit of a results folder as text, Markdown and JSON, with all its English: rules, and what they observe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gpubench.analyze.audit import VERDICTS, RuleFinding
from gpubench.basics.folding import wrap_sentence
from gpubench.basics.quoted import clean_line, format_readable_json
from gpubench.render.markdown import escape_markdown
from gpubench.render.terminal import WIDTH
from gpubench.render.words import UNKNOWN, format_number, join_words

MOST_NAMES = 3
"""So many values are named; of more it is said how many there are."""
LONGEST_TEXT = 200

RULES: Mapping[int, tuple[str, str]] = {
    1: ("accuracy holds while scaling", "accuracy ignored while scaling"),
    2: ("test accuracy is reported", "test accuracy not reported"),
    3: ("every run is kept", "tuning runs hidden"),
    4: ("like hardware with like", "old hardware against new"),
    5: ("whole epochs", "kernels or subsets only"),
    6: ("input is included", "I/O left out"),
    7: ("time to a solution", "op rates instead of time to solution"),
    8: ("speed and accuracy of one run", "speed from one set of options and accuracy from another"),
    9: ("inputs of sensible size", "unreasonably large inputs"),
    10: ("training ends by epochs", "training for a fixed wall time"),
    11: ("strong and weak told apart", "strong and weak scaling confused"),
    12: ("no flattering comparison", "a comparison chosen to flatter"),
    13: ("repeats and uncertainty", "figures of one process, without uncertainty"),
}
"""Number -> the rule, named by how it is kept, and its opposite: the way to fool the masses."""

SENTENCES: Mapping[str, str] = {
    "nothing-ok": "no trial ended ok (gpubench sweep)",
    "none-alone": "every row ran beside others; only rows alone are judged",
    "no-trainings": "no row is of a training by gpubench itself",
    "untimed": "no row has a time",
    "top1-falls": "with a larger batch or more devices top-1 falls in {rows}, by up to {fall} points (95 %: {low} to "
    "{high}): times of unlike trainings (--until-top1 N times training to equal accuracy)",
    "no-top1-to-compare": "where rows are scaled, no top-1 to compare in {rows} (--epochs)",
    "few-seeds": "where rows are scaled, fewer than {seeds} runs on a side in {rows}, so how far runs differ is not "
    "known (--repeats {seeds})",
    "seeds-differ": "where rows are scaled, runs differ too much in {rows} to tell whether top-1 falls by {margin} "
    "point (more --repeats)",
    "unlearned": "some rows have learned no more than chance yet (more --epochs)",
    "top1-holds": "with a larger batch or more devices top-1 falls by less than {margin} point (95 %), or is what "
    "training ends at, in {rows}",
    "scaled-with-others": "batch sizes or devices vary, but no two rows differ in them alone",
    "nothing-scaled": "all rows of a table have one batch size and as many devices, but for jobs of groups",
    "no-top1": "no top-1 in {rows} that ran alone ({why})",
    "rates-alone": "a rate, which judges no network, in {rows} that ran alone (--epochs)",
    "top1": "a top-1 on {images} held-out images in {rows} that ran alone",
    "attempts-gone": "attempts were taken away: {attempts}",
    "records-gone": "an attempt was stored for {claims}, and no record names that claim: it was taken away",
    "no-record": "attempts without a record that can be read: {attempts} (damaged, still running, killed with the "
    "machine, or taken away)",
    "foreign": "a {sources} does not tell which runs were left out",
    "runs-kept": "no number is missing of {attempts} attempts; runs outside this folder can't be seen",
    "superseded": "superseded, and kept: {attempts} (another sweep took their own for dead and measured the same)",
    "unlike-hardware": "{table} compares {machines}",
    "unknown-hardware": "the hardware is not on record for {rows}",
    "like-hardware": "each table is of one model ({machines})",
    "extrapolated": "epochs are extrapolated from steps in {rows} (--epochs)",
    "windows-of-steps": "times rest in part on windows of steps of further rounds in {rows} (--repeats)",
    "subset": "a part of the images in {rows}",
    "unknown-images": "the images of an epoch are not on record for {rows}",
    "whole-epochs": "whole training steps over {images} images in {rows}",
    "resident-alone": "a resident batch in {rows}, and no row like these that loads images (--variant crop-resize)",
    "unknown-feeding": "how images were fed is not on record for {rows}",
    "input-included": "images are loaded within the time in {rows}; after the first epoch files may be in the page "
    "cache",
    "rate-without-time": "a rate and no time in {rows}",
    "none-reached": "no row reached its top-1 (more --epochs)",
    "epoch-times-only": "times are of epochs, and an epoch is no solution (--until-top1 N)",
    "some-reached": "a time to an accuracy in {rows} only",
    "times-to-accuracy": "a time to an accuracy in {rows}",
    "apart": "some rows have a time and no top-1, others a top-1 and no time",
    "time-without-top1": "no top-1 beside the time in {rows} that ran alone (--epochs measures both in one run)",
    "one-run": "time and top-1 are of the same run (of several rounds, top-1 is the first one's) in {rows} that ran "
    "alone",
    "blown-up": "images are blown up to {sides} px from {natives} px in {rows}",
    "few-steps": "an epoch has fewer than {few} steps ({steps} at least) in {rows}, too few for such a batch (more "
    "images or smaller batches)",
    "unknown-size": "the images' own size is not on record for {rows}",
    "unknown-steps": "the steps of an epoch are not on record for {rows}",
    "sensible-sizes": "inputs of {sides} px are not blown up; the fewest steps of an epoch are {steps}",
    "unlike-lengths": "{table}: rows were trained for {lengths} {field}, unasked or with their batch size or devices",
    "unknown-length": "how long training took is not on record for {rows}",
    "ended-as-fixed": "the end was fixed beforehand in {rows}, never by the clock",
    "neither-strong-nor-weak": "{table}: devices vary, but no two rows share their global batch (strong) or their "
    "batch a device (weak: --batch-per-gpu N)",
    "strong-or-weak": "{table}: {kinds}",
    "devices-compared": "no efficiency is without its name",
    "unended": "planned trials without a result: {trials} {status} (the same gpubench sweep goes on, --retry "
    "failed,timeout)",
    "rounds-lack": "measurements of further rounds that are not there: {measurements} (the same gpubench sweep goes "
    "on)",
    "unlike-versions": "{table} compares {field} {versions} (--retry stale)",
    "unlike-breakdowns": "{table}: the cost of --breakdown in {rows} only",
    "unlike-costs": "{table}: --breakdown costs one side of an efficiency {points} points more",
    "dp-alone": "{models} on several GPUs ran under dp alone, which ddp should beat",
    "dp-inferred": "{models} on several GPUs ran under dp alone, as far as the log tells",
    "no-single": "{table}: on several devices, none of the same work on one device for {rows} (--gpus 1,… or --ranks "
    "1,…)",
    "doubts": "of rows that are compared, warnings in {rows}, the worst {worst}",
    "unplanned": "what was planned is not on record for {tables}",
    "all-shown": "all that was planned is shown ({trials} trials, {oom} out of memory, {skipped} skipped), with "
    "baselines and under the same versions",
    "one-process": "one process, so no interval, in {rows} (--rounds {fewest})",
    "two-processes": "two processes, whose interval is too wide, in {rows} (--rounds {fewest})",
    "unknown-processes": "the number of processes is not on record for {rows}",
    "intervals": "{processes} processes or more, with 95 % intervals, in {rows}",
}
"""Code of an observation -> what is said. `{rows}` is a share: `3 of 24 rows`."""


def format_text(name: str, findings: Sequence[RuleFinding], width: int = WIDTH) -> str:
    """A paragraph a rule, then the summary, ending in a newline, of at most so many columns: paths stay whole."""
    lines = []
    for finding in findings:
        place = f"{finding.number:>2}  {finding.verdict:<{max(map(len, VERDICTS))}}  "
        line = f"{place}{RULES[finding.number][0]}: {describe_finding(finding)}"
        lines += wrap_sentence(line, max(40, width), hang=" " * len(place))
    return "\n".join((*lines, "", *wrap_sentence(describe_verdict_counts(name, findings), width))) + "\n"


def format_markdown(name: str, findings: Sequence[RuleFinding]) -> str:
    """The findings as a Markdown table."""
    rows = [
        f"| {finding.number} | {RULES[finding.number][0]} | {finding.verdict} "
        f"| {escape_markdown(describe_finding(finding))} |"
        for finding in findings
    ]
    heading = ["|  | rule | verdict | what the data show |", "| ---: | :--- | :--- | :--- |"]
    return "\n".join((*heading, *rows, "", escape_markdown(describe_verdict_counts(name, findings)))) + "\n"


def format_json(findings: Sequence[RuleFinding]) -> str:
    """An object a rule and line: number, rule, way (to fool), verdict, finding (in words), observations (as data)."""
    lines = []
    for finding in findings:
        rule, way = RULES[finding.number]
        data = {**asdict(finding), "rule": rule, "way": way, "finding": describe_finding(finding)}
        lines.append(format_readable_json(data, default=str) + "\n")
    return "".join(lines)


def describe_verdict_counts(name: str, findings: Sequence[RuleFinding]) -> str:
    """`results/x: of 13 rules 7 kept, 2 broken, 4 not decidable`."""
    counts = Counter(finding.verdict for finding in findings)
    listed = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
    return f"{clean_line(name)}: of {len(findings)} rules {listed}. The rules: docs/honesty.md"


def describe_finding(finding: RuleFinding) -> str:
    """What a rule observes, ending in a full stop."""
    sentences = []
    for seen in finding.observations:
        figures = {name: format_figure(value) for name, value in seen.figures.items()}
        sentences.append(SENTENCES[seen.code].format_map(figures))
    return "; ".join(sentences) + "."


def format_figure(value: Any) -> str:
    """A figure as sentences name it: so many rows, several values, a number, text."""
    match value:
        case {"count": int(count), "whole": int(whole)}:
            return f"{count:,} of {whole:,} rows"
        case tuple():
            names = [format_figure(item) for item in value[:MOST_NAMES]]
            rest = len(value) - MOST_NAMES
            return join_words([*names, *([f"{rest} more"] if rest > 0 else [])]) if names else UNKNOWN
        case int():
            return f"{value:,}"
        case float():
            return format_number(value, 0 if value.is_integer() else 1)
    return UNKNOWN if value is None else clean_line(str(value), LONGEST_TEXT)
