"""All English about results: what findings, warnings, columns and rows are called and what is said of them.

Renderers print what they get from here and add no words of their own. Short, plain words: most readers are no native
speakers.
"""

from __future__ import annotations

import math
import re
import shlex
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.basics.quoted import clean_line
from gpubench.basics.rounding import format_half_up
from gpubench.core.claims import Certainty, Claim
from gpubench.core.findings import (
    BatchSizeFinding,
    DevicesFinding,
    Finding,
    LeastCost,
    MeasuredJobGroup,
    NetworkSizeFinding,
    PowerLimitFinding,
    Remedy,
    SharingFinding,
    SpeedUp,
    TargetFinding,
    Top1Finding,
    VersusFinding,
    collect_job_groups,
)
from gpubench.core.report import Report, ReportColumn, ReportRow, ReportWarning, RowGroup, RowSelection
from gpubench.core.trace import TrialTrace
from gpubench.schema.catalog import PROCEDURAL
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import TABLE_BY_NAME
from gpubench.schema.command import split_command, split_settings
from gpubench.schema.trial_fields import ABOUT, DEFAULTS

MINUS = "−"
ANSWER, WARNED, NO_FIGURES = "◀", "!", "×"
"""Stand beside the row of the answer, beside rows with warnings and before them, and before how a row ended."""
UNKNOWN = "–"
"""Stands where a figure could not be had."""
WORDS: tuple[Certainty, ...] = ("sure", "likely", "unknown")

STATUSES: Mapping[str, str] = {
    "oom": "out of memory",
    "timeout": "timed out",
    "missing": "not run yet",
    "elsewhere": "another part of the plan measures it",
    "unread": "no record of its first round can be read",
}
"""Endings that have another name where people read them."""

QUESTIONS: Mapping[str, str] = {
    "batch_size": "Which batch size is best?",
    "devices": "What do more devices bring?",
    "versus": "Which one is faster?",
    "power_limit": "Which power limit is worth it?",
    "network_size": "From what network size are more GPUs faster?",
    "sharing": "May these jobs share the machine?",
    "target": "Which one reaches the target first?",
    "top1": "Does top-1 stay the same?",
}
"""Question -> the heading where the experiment has none of its own."""

HEADINGS: Mapping[str, str] = {
    "batch_size": "batch",
    "memory_gib": "GiB",
    "work": "work done",
}
"""Column -> its heading, where it has none in the column's definition."""

HEADINGS_BY_KIND: Mapping[str, Mapping[str, str]] = {
    "whole run": {"epoch s": "run s"},
    "load steps": {"epoch s": "step s", "images/s": "steps/s", "batch": "size"},
}
"""Kind of time of a table -> its own words for headings."""

METRICS: Mapping[str, str] = {
    "memory_time": "memory × time",
    "energy_j": "energy",
    "edp_js": "energy × time",
    "epoch_time_s": "time",
    "cpu_s_per_epoch": "CPU time",
    "top1_pct": "top-1",
}
"""Metric of a claim -> its name, where that is not its column's heading."""

ROW_WARNINGS: Mapping[str, str] = {
    "diverged": "training diverged, so the network learnt nothing: use a smaller --set lr=VALUE.",
    "stranger": "another process used the GPU: run again when it is gone.",
    "throttled": "GPU clocks were lowered by power or heat.",
    "slow-reading": "reading its output may have slowed the command: have it print less.",
    "spread": "times spread by more than 5 %: measure longer, or on a quieter host.",
    "outlier": "a process lies further from the others than chance explains; it counts as they do.",
    "other-load": "other work used the CPUs: run again on a quiet host.",
    "slow-cpu": "the CPU ran at less than 85 % of its fastest in this folder.",
    "low-clock": "the GPU ran below 80 % of its highest clock (nvidia-smi -q -d CLOCK tells why).",
    "cpu-starved": "there are more loader workers than CPUs: use fewer --workers.",
    "solo-stale": "the job alone was measured under other versions: run it again.",
    "faster-together": "a job ran faster together than alone: its time alone is not reliable.",
    "retries": "the GPU's memory ran out and some was freed, which takes time: use a smaller batch.",
    "near-limit": "95 % or more of the memory was used, which may be slower: compare with a smaller batch.",
    "gaps": "more than 10 % of the samples are missing.",
    "desktop": "a desktop used the GPU.",
    "in-words": "the log gives figures in words only.",
    "inferred": "the log does not state some fields; they are inferred.",
    "dp": "DataParallel copies the model in every step: prefer ddp.",
    "single-process": "there was one process, so nothing is sure: such rows were seen to differ by up to {noise} "
    "(--rounds 3).",
    "first-batch": "the first batch takes {span} of the epoch, so longer epochs favour larger batches.",
}
"""Code -> what is said behind `In 5 of 18 rows`: of those of `schema.doubts.DOUBTS` that a table tells, of those that
no record words, and of what only a table knows."""

TABLE_WARNINGS: Mapping[str, str] = {
    "one-process": "One process a row, so nothing is sure: such rows were seen to differ by up to {noise} "
    "(--rounds 3).",
    "one-seed": "One seed a row, so nothing is sure: the epochs to a target vary by one or two "
    "(--repeats 3).",
    "published-log": "One figure a row in the log, so nothing is sure: how far it varies is not known.",
}
"""Code -> what is said of all rows. `{noise}` and the like are shares, from the warning's figures."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or several that belong together, below a table."""

    kind: Literal["answer", "finding", "warning", "note"]
    """answer: the first finding's first line."""
    text: str
    rank: int = 0
    """Where room is short, those of a higher rank go first: the answer, then what weakens all answers, then findings'
    first lines, then warnings of rows, then what findings say further."""

    @property
    def marked_text(self) -> str:
        """Its text, behind a sign where it is a warning."""
        return mark_warning(self.text) if self.kind == "warning" else self.text


def mark_warning(text: str) -> str:
    """A warning with its sign: `! In 5 of 18 rows …`."""
    return f"{WARNED} {text}"


# Numbers.


def format_number(value: float, digits: int = 0) -> str:
    """`1,234.5`, `−0.05`: half up; `∞`."""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return format_half_up(value, digits).replace("-", MINUS)


def format_significant(value: float, count: int = 3) -> str:
    """So many significant digits, thousands whole: `0.0062`, `4.90`, `36.1`, `1,234`."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return "0"
    exponent = int(f"{value:.{count - 1}e}".partition("e")[2])  # of the rounded value: 0.99999 reads 1.00
    return format_number(value, max(0, count - 1 - exponent))


def format_ratio(value: float) -> str:
    """`1.60`, `12.3`: how many times; of less than 0.01 with digits that tell."""
    if 0 < value < 0.01:
        return format_significant(value, 1)
    return format_number(value, 2 if abs(value) < 10 else 1)


def format_percent(share: float) -> str:
    """A share as `12 %`; below 1 % with one digit that tells: `0.6 %`, `0.04 %`."""
    percent = 100 * share
    if 0 < abs(percent) < 0.005:
        return "<0.01 %"
    return f"{format_significant(percent, 1) if abs(percent) < 0.95 else format_number(percent)} %"


def format_signed(value: float, digits: int = 0) -> str:
    """A difference: `+62`, `−5`, `0`; with digits `+2.5`, `−0.3`, `0.0`."""
    text = format_number(value, digits)
    return text if text.startswith(MINUS) or not text.strip("0.") else f"+{text}"


def format_change(percent: float) -> str:
    """A change in per cent: `+62 %`, `−5 %`, `0 %`."""
    return f"{format_signed(percent)} %"


def format_gib(mib: float) -> str:
    """MiB as GiB without the unit: `0.42`, `7.0`, `115`."""
    gib = mib / 1024
    return format_number(gib, 2 if gib < 1 else 1 if gib < 100 else 0)


def join_words(words: Iterable[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = list(words)
    return f"{', '.join(first)} and {last}" if first else last


def format_span(values: Iterable[float], form: Callable[[float], str], unit: str = "") -> str:
    """`1.60 to 1.86`, or the only value where all read alike."""
    numbers = list(values)
    low, high = form(min(numbers)), form(max(numbers))
    if unit:
        low, high = low.removesuffix(unit), high.removesuffix(unit)
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def count_things(count: int, thing: str) -> str:
    """`1 GPU`, `2 GPUs`, `2 processes`."""
    plural = f"{thing}es" if thing.endswith("s") else f"{thing}s"
    return f"{count:,} {thing if count == 1 else plural}"


# Rows and columns.


COUNTED = {"gpus": "GPU", "ranks": "process", "nodes": "node"}
"""Fields of which a row has so many."""


LONGEST_COMMAND = 78
"""Signs: it stands on a line by itself then."""


def shorten_line(text: str, longest: int) -> str:
    """A text in one line, with a sign for what is cut."""
    line = clean_line(text)
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def name_value(field: str, value: Any) -> str:
    """A field's value in words: `batch 128`, `2 GPUs`, `ddp`, `lr 0.1`."""
    if field == "command":
        return shorten_line(str(value), LONGEST_COMMAND)
    text = format_axis_value(value)
    if field == "batch_size":
        return f"batch {text}"
    if field == "window":
        return f"{text} s window"
    if field in COUNTED:
        return count_things(value, COUNTED[field]) if value or field != "gpus" else "CPU"
    if field in ("group", "job", "config_id", "cpu_name", "gpu_name"):
        return text.replace("NVIDIA ", "") if field == "gpu_name" else text
    about = ABOUT.get(field)
    if about is None:
        return f"{field} {text}"
    if isinstance(value, bool):
        return f"{'' if value else 'no '}{about.heading}"
    if about.alternatives or about.phrase == "{}":
        return text
    if about.phrase and isinstance(value, (int, float)):
        number = int(value) if value == int(value) else value
        return about.phrase.format(number, s="" if value == 1 else "s")
    return f"{about.heading or field} {text}"


def name_row(fields: Mapping[str, Any], without: Collection[str] = ()) -> str:
    """A row by its fields: `mobilenet_v2 batch 128 on 2 GPUs (ddp), pre-resized`. Empty without any."""
    remaining = {
        name: value
        for name, value in fields.items()
        if name not in without and value is not None and not (name in ("width", "copies") and value == 1)
    }

    def take(*names: str) -> list[str]:
        return [name_value(name, remaining.pop(name)) for name in names if name in remaining]

    what, devices = (
        " ".join(take("group", "model", "batch_size")),
        " on ".join(take("gpus", "ranks", "nodes")),
    )
    strategy = "".join(take("strategy"))
    if devices and strategy not in ("", "single"):
        devices += f" ({strategy})"
    text = (" on " if devices else " with ").join(filter(None, (what, devices or strategy)))
    return ", ".join(filter(None, (text, *take(*remaining))))


def describe_row_difference(candidate: Mapping[str, Any], baseline: Mapping[str, Any]) -> str:
    """What differs between two rows, and what both have: `batch 64 → 128, 2 GPUs (ddp)`."""
    apart = {name for name in (*candidate, *baseline) if candidate.get(name) != baseline.get(name)}
    common = {name: value for name, value in candidate.items() if name not in apart}
    before, after = name_row(baseline, without=common) or "alone", name_row(candidate, without=common)
    if apart == {"batch_size"}:
        after = after.removeprefix("batch ")
    return ", ".join(part for part in (f"{before} → {after}", name_row(common)) if part)


def name_group(report: Report, group: MeasuredJobGroup) -> str:
    """Jobs that ran together: its own name, else `2 × batch 16` or `resnet50 64 & mobilenet_v2 256`."""
    if group.name:
        label = name_row(group.label)
        return clean_line(group.name, 80) + (f" ({label})" if label else "")
    labels = [name_job(report, row) for row in group.rows]
    return " & ".join(labels) if len(set(labels)) > 1 else f"{group.jobs} × {labels[0]}"


def name_job(report: Report, row: int) -> str:
    """A job of a group, as short as can be: `batch 16`, `mobilenet_v2 16`."""
    label = report.labels.get(row, {})
    name = name_row(label, without=("group", "job", "copies"))
    if not name:  # what all rows have stands above the table, and names it here
        name = name_row({"batch_size": report.facts.fixed.get("batch_size")}) or "the same job"
    return name.replace(" batch ", " ", 1) if label.get("model") else name


def format_column_heading(report: Report, column: ReportColumn) -> tuple[str, str]:
    """A column's two lines of heading: the series that it is of (or nothing), and its name."""
    is_together = column.name == "epoch_time_s" and any(other.name == "slowdown" for other in report.columns)
    heading = "together s" if is_together else name_column(column.name)
    heading = HEADINGS_BY_KIND.get(report.facts.time_kind, {}).get(heading, heading)
    return (name_row(column.series), _insert_target(report, heading))


def name_column(name: str) -> str:
    """`images/s`: a column's heading, before any target is put into it."""
    definition = TABLE_BY_NAME.get(name)
    return HEADINGS.get(name) or (definition.heading if definition else "") or name


def _insert_target(report: Report, heading: str) -> str:
    target, until = report.facts.target_pct, report.facts.until
    name = f"{target:g} %" if target is not None else name_figure_target(until) if until else "top-1"
    return heading.format(target=name)


def name_figure_target(until: str) -> str:
    """`acc 60`, of `acc=60`."""
    return clean_line(until.replace("=", " "), 60)


def describe_ending(report: Report, row: ReportRow) -> str:
    """What stands in a row without figures: `out of memory: the cap is 12 GiB; 1,024 and 2,048 skipped`."""
    text = STATUSES.get(row.status, row.status)
    cap = report.facts.fixed.get("gpu_mem_cap_mib")
    # What the allocator has to say of it tells a reader nothing more.
    reason = (f"the cap is {cap / 1024:.3g} GiB" if cap else "") if row.status == "oom" else row.reason
    if reason:
        text += f": {clean_line(reason, 200).rstrip('.')}"
    if row.skipped:
        sizes = join_words(format_axis_value(value) for value in row.skipped)
        text += f"; {sizes} {'skipped' if row.status in ('oom', 'skipped') else 'neither'}"
    return text


def format_axis_value(value: Any) -> str:
    """A value of the axis by itself: `1,024`."""
    return (
        f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else clean_line(format_cell(value), 80)
    )


# Headings of a report.


def list_heading_facts(report: Report, *, is_short: bool = False) -> list[str]:
    """What stands above a table, the most important first: name, machines, processes, what all rows have. `is_short`:
    without the number of processes, which stands below a table as well, and without the experiment's name, where no
    folder stands before it."""
    facts = report.facts
    parts = [] if is_short and ": " not in report.name else [clean_line(report.name, 80)]
    parts += [clean_line(machine.replace("NVIDIA ", ""), 80) for machine in facts.machines]
    if not is_short:
        few, many = facts.processes
        count = f"{few} to " * (few != many) + count_things(many, "process")
        parts.append("from a published log" if facts.is_published else f"{count} a row" if many else "")
    parts += [
        name_value(field, value)
        for field, value in facts.fixed.items()
        if value is not None and (field, value) != ("data", PROCEDURAL)
    ]
    if facts.images is not None:
        parts.append(f"{facts.images:,} images")
    return [part for part in parts if part]


def format_question(report: Report) -> str:
    """The question above a table: the experiment's own, else that of the first finding."""
    if report.question:
        return clean_line(report.question, 300)
    return QUESTIONS.get(report.findings[0].question, "") if report.findings else ""


# Findings.


@dataclass(frozen=True, slots=True)
class Answer:
    """A line of a finding in parts, so that a heading may have the first alone."""

    head: str
    clause: str = ""
    sentences: Sequence[str] = ()
    joint: str = "; "
    """Stands between head and clause."""

    def format_line(self) -> str:
        """The whole line."""
        first = f"{self.head}{self.joint}{self.clause}." if self.clause else f"{self.head}."
        return " ".join([first, *self.sentences])


def format_finding_lines(report: Report, finding: Finding) -> list[str]:
    """A finding's lines; the first one answers its question."""
    lines = [answer.format_line() for answer in _make_answers(report, finding)]
    if finding.remedy and not _is_choice_uncertain(finding) and finding.word != "sure":
        lines[-1] += format_remedy_advice(finding.remedy, "tells more")
    return lines


def _make_answers(report: Report, finding: Finding) -> list[Answer]:
    answers: list[Answer] = _ANSWERS[type(finding)](report, finding)
    return answers


def _is_choice_uncertain(finding: Finding) -> bool:
    """Whether a choice is named without confidence: its sentence has the remedy in it."""
    choice = finding.choice
    return choice is not None and choice.bound is not None and not choice.is_firm


def is_recommendation_uncertain(report: Report) -> bool:
    """Whether what is recommended is named without confidence."""
    for finding in report.findings:
        if finding.choice or (isinstance(finding, TargetFinding) and finding.order):
            return finding.word == "unknown" or _is_choice_uncertain(finding)
    return False


def format_remedy_advice(remedy: Remedy | None, verb: str = "tells") -> str:
    """` --rounds 8 (about 4 min more) tells.`, behind a sentence; empty where nothing is to be settled."""
    return f" {_format_remedy_option(remedy)}{_format_remedy_minutes(remedy)} {verb}." if remedy else ""


def _format_remedy_option(remedy: Remedy) -> str:
    return f"{'--repeats' if remedy.is_of_seeds else '--rounds'} {remedy.rounds}"


def format_finding_title(report: Report, finding: Finding) -> tuple[str, list[str]]:
    """What stands above a picture: the answer, and the sentences that go with it."""
    first, *further = _make_answers(report, finding)
    clause = f"{start_sentence(first.clause)}."
    lines = [answer.format_line() for answer in further if isinstance(finding, DevicesFinding)]
    return first.head, [*[clause] * bool(first.clause), *first.sentences, *lines]


def start_sentence(text: str) -> str:
    """The text with a capital letter at its begin; a user's own name, as in `depth=4`, keeps its case."""
    return text if re.match(r"\w+=", text) else text[:1].upper() + text[1:]


def format_energy_title(report: Report, rows: Sequence[int], front: Sequence[int]) -> tuple[str, list[str]]:
    """Above a picture of energy: who needs least, what is quickest, and that no claim was tested. `front`: the rows
    that no other beats in time and in energy, the quickest first."""
    names = dict(zip(rows, name_rows_apart(report, rows), strict=True))
    fast, frugal = (start_sentence(names[row]) for row in (front[0], front[-1]))
    seconds = f"{format_significant(report.figures[front[0]]['epoch_time_s'])} s an epoch"
    joules = f"{format_significant(report.figures[front[-1]]['energy_j'])} J an epoch"
    if len(front) == 1:
        return f"{frugal} needs the least energy and the least time: {joules}, {seconds}", []
    return f"{frugal} needs the least energy: {joules}", [f"{fast} is the quickest: {seconds}."]


PARTS: Mapping[str, str] = {
    "copy_ms": "copy",
    "forward_ms": "forward",
    "backward_ms": "backward",
    "comm_ms": "waiting for gradients",
    "optimizer_ms": "optimizer",
}
"""Columns of the parts of a step, in its order: what is exchanged behind the backward pass lies within that one."""


def format_breakdown_title(report: Report, row: int) -> str:
    """Above a picture of the parts of steps: which part is the largest in this row."""
    figures = report.figures[row]
    parts = {part: figures[part] for part in PARTS if figures[part] is not None}
    largest = max(parts, key=parts.__getitem__)
    share = format_percent(parts[largest] / sum(parts.values()))
    (name,) = name_rows_apart(report, [row])
    amount = format_significant(parts[largest])
    return f"{start_sentence(name)}: {PARTS[largest]} takes {share} of a step, {amount} ms"


def format_trial_title(report: Report, trace: TrialTrace) -> tuple[str, list[str]]:
    """Above a picture of one trial: how busy the GPU was while it was measured, and what else the record tells."""
    (name,) = name_rows_apart(report, [trace.row])
    busy, cpu, memory, power = (
        trace.figures[column] for column in ("gpu_util_pct", "cpu_util_pct", "gpu_mem_mib", "power_w")
    )
    gpus = {**report.facts.fixed, **report.labels[trace.row]}.get("gpus")
    has_several = gpus is not None and gpus > 1
    parts = [
        "" if cpu is None else f"CPU use {cpu:.0f} %",
        "" if memory is None else f"GPU memory {format_gib(memory)} GiB",
        "" if power is None else f"{format_significant(power)} W{' of all GPUs' * has_several}",
    ]
    answer = f"{name}: GPU busy {busy:.0f} % of the time measured" if busy is not None else name
    rest = ", ".join(filter(None, parts))
    return answer, [f"{rest}."] if rest else []


def describe_run_to_target(report: Report, row: int) -> list[str]:
    """A run to a target in two lines: `batch 128`, `36.1 s, 13 epochs, 11.7 kJ`."""
    names = ("time_to_top1_s", "epochs_to_top1", "energy_to_top1_j")
    return [_name_row_or_default(report, row), _format_known_figures(report.figures[row], *names)]


def format_footnote(report: Report, letters: int, key: str = "") -> str:
    """One line under a picture: what was trained on what, and how many processes a row; the last facts go where it
    would be longer than so many letters."""
    facts = [*([key] if key else []), *list_heading_facts(report)[1:]]
    while len(" · ".join(facts)) > letters:
        facts.pop()
    return " · ".join(facts)


GAINS = {"gain": "blue: worth it", "none": "orange: no gain", "unknown": "grey: gain unknown"}
"""What the colours of a picture of jobs together mean."""


def format_gains_legend(gains: Collection[str], *, has_predictions: bool) -> str:
    """For its footnote. `gains`: keys of GAINS."""
    parts = [text for gain, text in GAINS.items() if gain in gains]
    return ", ".join([*parts, *["▽ predicted before"] * has_predictions])


def describe_drawn_count(drawn: int, total: int) -> str:
    """In a footnote, where a picture does not hold all: how many of its rows, points or lines are drawn."""
    return f"{drawn} of {total:,} drawn"


def name_rows_apart(report: Report, rows: Sequence[int], without: Collection[str] = ()) -> list[str]:
    """Names of rows by the fields in which they differ, of a single row by all of them; unlike rows have unlike names.
    GPU ids are told where nothing else tells rows apart."""
    labels = {row: report.labels[row] for row in rows}
    fields = {name for label in labels.values() for name in label}
    common = {name for name in fields if len({str(label.get(name)) for label in labels.values()}) == 1}
    hidden = {*without, *(common if len(labels) > 1 else ())}
    for more in ({"gpu_ids"}, set()):
        names = [
            name_row(label, without=hidden | more) or clean_line(report.name, 80) for label in labels.values()
        ]
        if len(set(names)) == len(names):
            break
    by_row = dict(zip(labels, number_equal_names(names), strict=True))
    return [by_row[row] for row in rows]


def number_equal_names(names: Sequence[str]) -> list[str]:
    """The names, equal ones (as those of which only the beginning is told) with a number: `a`, `b`, `a (2)`."""
    taken: set[str] = set()
    numbered = []
    for name in names:
        candidate, number = name, 1
        while candidate in taken:
            number += 1
            candidate = f"{name} ({number})"
        taken.add(candidate)
        numbered.append(candidate)
    return numbered


def _answer_batch_size(report: Report, finding: BatchSizeFinding) -> list[Answer]:
    """What to take and what it brings, what it can cost to be wrong, and further sentences."""
    choice = finding.choice
    if choice is None:
        failed = finding.out_of_memory
        where = f": batch {_name_batch_size(report, failed)} ran out of memory" if failed is not None else ""
        return [Answer(f"No answer{where}"), *_answer_least_memory_time(report, finding.least_cost)]
    figures = report.figures[choice.row]
    name = name_row(
        {**finding.label, "batch_size": report.labels[choice.row].get("batch_size")}, without=("group",)
    )
    epoch = ["epoch_time_s"] * (report.facts.time_kind != "steady rate")
    cost = _format_known_figures(figures, *epoch, "images_per_s", "gpu_mem_mib")
    if report.facts.time_kind == "whole run":
        cost = cost.replace(" s an epoch", " s a run")
    head, clause = f"Take {name}: {cost}", ""
    sentences: list[str] = []
    if finding.word == "unknown" or _is_choice_uncertain(finding):
        head = f"Not sure: {name}: {cost}"
        gains = sorted(((gain, row) for row, gain in choice.gains.items() if gain > 0), reverse=True)
        # Who may be much faster is what matters; the first says that it is a bound.
        faster = [
            f"{_name_batch_size(report, row)} "
            + (_format_gain_bound(gain) if place else f"may be {_format_gain_bound(gain)} faster")
            for place, (gain, row) in enumerate(gains[:3])
        ]
        faster += [f"{len(gains) - 3} more by less"] if len(gains) > 3 else []
        clauses = [f"{', '.join(faster)} (95 %)"] if faster else []
        if finding.as_fast and not faster:
            clauses.append(f"{_name_batch_sizes(report, finding.as_fast)} may be as fast")
        if finding.slower:
            are = "is" if len(finding.slower) == 1 else "are"
            clauses.append(f"{_name_batch_sizes(report, finding.slower)} {are} slower")
        sentences += [f"{'; '.join(clauses)}."] if clauses else []
        sentences.append(format_remedy_advice(finding.remedy).strip())
    elif choice.bound is not None:
        bound = format_percent(choice.bound)
        more = "" if bound == format_percent(0) else f"more than {bound} "
        clause = f"no other size is {more}faster (95 %)"
    if finding.fastest is not None and finding.speed_gain is not None and not _is_choice_uncertain(finding):
        fastest, gain, ratio = finding.fastest, finding.speed_gain, finding.memory_ratio
        price = "" if ratio is None else f" for {format_ratio(ratio)} times the memory"
        sentences.append(f"{_name_batch_size(report, fastest)} is {format_percent(gain)} faster{price}.")
    alternatives = tuple(row for row in finding.as_fast if row != finding.fastest)
    if choice.bound is None and finding.word != "unknown" and alternatives:
        sentences.append(f"{_name_batch_sizes(report, alternatives)} may be as fast.")
    if finding.out_of_memory is not None:
        sentences.append(f"{_name_batch_size(report, finding.out_of_memory)} ran out of memory.")
    if finding.interrupted:
        sentences.append(f"{_name_batch_sizes(report, finding.interrupted)}: interrupted.")
    return [
        Answer(head, clause, list(filter(None, sentences))),
        *_answer_least_memory_time(report, finding.least_cost),
    ]


def _answer_least_memory_time(report: Report, costs: Sequence[LeastCost]) -> list[Answer]:
    parts = []
    for word in ("sure", "likely"):
        names = []
        for cost in [cost for cost in costs if cost.word == word]:
            low, high, row = (_name_batch_size(report, label) for label in (cost.low, cost.high, cost.row))
            span = f"{low} to {high}" if word == "sure" else f"{row} ({low} to {high})"
            series = name_row(cost.label)
            names.append((low if low == high else span) + (f" for {series}" if series else ""))
        parts += [f"{', '.join(names)} ({word})"] if names else []
    return [Answer(f"Memory × time is least at batch {'; '.join(parts)}")] if parts else []


def _answer_devices(report: Report, finding: DevicesFinding) -> list[Answer]:
    """Of each number of devices and kind of scaling: which against which, and ratios by how sure they are."""
    thing = name_device_kind(report)
    groups: dict[tuple[Any, ...], list[SpeedUp]] = {}
    for speed_up in finding.speed_ups:
        strategy = {**report.facts.fixed, **report.labels[speed_up.claim.candidate]}.get("strategy")
        key = (speed_up.devices, speed_up.baseline_devices, strategy, speed_up.same_batch_a_device)
        groups.setdefault(key, []).append(speed_up)
    answers = []
    for (devices, fewer, strategy, same_batch), members in groups.items():
        name = count_things(devices, thing) + (f" ({clean_line(str(strategy))})" if strategy else "")
        efficiency = {member.claim.candidate: member.efficiency for member in members}
        batch = ", same batch a device" if same_batch else ""
        first, *rest = _format_ratios_by_certainty(report, [member.claim for member in members], efficiency)
        answers.append(Answer(f"{name} against {fewer}{batch}: {first}", ", ".join(rest), joint=", "))
    return answers or [Answer("No answer: no rows to compare")]


def name_device_kind(report: Report) -> str:
    """What rows have more or fewer of: `GPU`, or `process` on CPUs."""
    return "process" if any("ranks" in label for label in report.labels.values()) else "GPU"


def _answer_versus(report: Report, finding: VersusFinding) -> list[Answer]:
    candidate, baseline = (name_value(finding.field, value) for value in (finding.value, finding.baseline))
    if not finding.claims:
        return [Answer(f"No answer: no rows of {candidate} and {baseline} to compare")]
    if all(claim.decided.word == "unknown" for claim in finding.claims):
        ratios = format_span(map(compute_claim_figure, finding.claims), format_ratio)
        text = f"Unknown whether {candidate} is faster than {baseline}: {ratios} times as fast"
    else:
        ratios = ", ".join(_format_ratios_by_certainty(report, finding.claims, than=f" as {baseline}"))
        text = f"{candidate} is {ratios}"
    if finding.cpu_claims:
        word = max((claim.decided.word for claim in finding.cpu_claims), key=WORDS.index)
        amount, change = format_cpu_time_change(finding)
        text += f"; it takes {amount} {change} CPU time ({word})"
    return [Answer(text)]


def format_cpu_time_change(finding: VersusFinding) -> tuple[str, Literal["less", "more"]]:
    """`44 to 58 %`, `less`: how much less CPU time an epoch takes, or more. The finding has claims on it."""
    shares = [1 - compute_claim_figure(claim) for claim in finding.cpu_claims]
    is_less = sum(shares) > 0
    amounts = (share if is_less else -share for share in shares)
    return format_span(amounts, format_percent, " %"), "less" if is_less else "more"


def _answer_power_limit(report: Report, finding: PowerLimitFinding) -> list[Answer]:
    """Which limit to take, what it saves and costs, and what it can cost to be wrong."""
    assert finding.choice is not None, "a series has a row to take"
    claims, at_most, choice = finding.chosen_claims, finding.aim.at_most_slower, finding.choice
    among = "" if at_most is None else f" of those at most {format_percent(at_most)} slower"
    series = name_row(finding.label)
    name = name_limit(report, choice.row) + (f" for {series}" if series else "")
    goal = {"energy": "energy_j", "edp": "edp_js"}[finding.aim.goal]
    if not claims:
        return [
            Answer(f"Leave it at {name}: no lower limit{among} takes less {METRICS[goal]} ({finding.word})")
        ]
    metrics = dict.fromkeys((goal, "energy_j", "epoch_time_s"))
    words = {metric: claims[metric].decided.word for metric in metrics}
    is_alike = len(set(words.values())) == 1
    *saved, spent = (
        _format_claim_change(claims[metric]) + ("" if is_alike else f" ({words[metric]})")
        for metric in metrics
    )
    take = "Not sure:" if finding.word == "unknown" else "Take"
    head = f"{take} {name}: {', '.join(saved)} for {spent}" + (f" ({finding.word})" if is_alike else "")
    if choice.bound is None:
        return [Answer(head)]
    least = format_percent(1 - 1 / (1 + choice.bound))
    if not choice.is_firm:
        clause = f"another one{among} may take up to {least} less {METRICS[goal]} (95 %)"
        return [Answer(head, clause, [format_remedy_advice(finding.remedy).strip()] * bool(finding.remedy))]
    more = "" if least == format_percent(0) else f"more than {least} "
    return [Answer(head, f"no other limit{among} takes {more}less {METRICS[goal]} (95 %)")]


def name_limit(report: Report, row: int) -> str:
    """`200 W`, or what stands for the limit that the card is set to."""
    limit = report.labels[row].get("power_limit_w")
    return "the limit that the card is set to" if limit is None else f"{limit:g} W"


def _format_claim_change(claim: Claim) -> str:
    """`24 % less energy`, `6 % more time`."""
    change = compute_claim_figure(claim) - 1
    return f"{format_percent(abs(change))} {'less' if change < 0 else 'more'} {METRICS[claim.metric]}"


def _answer_network_size(report: Report, finding: NetworkSizeFinding) -> list[Answer]:
    """From what size on more devices are faster, by how much, and further sentences."""
    name = count_things(finding.devices, name_device_kind(report)) + (
        f" ({clean_line(finding.strategy)})" if finding.strategy else ""
    )
    if not finding.claims:
        return [Answer("No answer", "no rows to compare", joint=": ")]
    faster = [claim for claim in finding.claims if claim.shows("more")]
    slower = [claim for claim in finding.claims if claim.shows("less")]
    open_claims = [claim for claim in finding.claims if claim not in faster and claim not in slower]

    def times(claims: Sequence[Claim]) -> str:
        return f"{format_span(map(compute_claim_figure, claims), format_ratio)} times"

    if finding.first_faster is not None:
        network = name_network(report, finding.first_faster)
        size = "" if finding.gmacs is None else f" ({format_significant(finding.gmacs, 2)} GMACs an image)"
        head, clause = f"{name} are faster from {network} on{size}", f"{times(faster)} ({finding.word})"
        sentences = [f"Smaller ones are slower ({times(slower)})."] if slower else []
    elif slower and not open_claims:
        head, clause = f"{name} are slower at every network size", f"{times(slower)} ({finding.word})"
        sentences = []
    else:
        head, clause = f"Unknown from what network size on {name} are faster", times(finding.claims)
        sentences = [f"Slower: {_name_networks(report, slower)} ({times(slower)})."] if slower else []
    if open_claims:
        sentences.append(f"{_name_networks(report, open_claims)}: unknown.")
    return [Answer(head, clause, sentences, joint=": ")]


def name_network(report: Report, row: int) -> str:
    """`mobilenet_v2`, or `lenet x4` where its layers are as many times as wide."""
    label = {**report.facts.fixed, **report.labels[row]}
    width = label.get("width", 1)
    return clean_line(f"{label.get('model', '')}{'' if width in (None, 1) else f' x{width:g}'}", 80)


def _name_networks(report: Report, claims: Sequence[Claim]) -> str:
    return join_words(name_network(report, claim.candidate) for claim in claims)


def _answer_jobs_together(report: Report, finding: SharingFinding) -> list[Answer]:
    groups: dict[tuple[int, int, str], list[MeasuredJobGroup]] = {}
    for group in finding.groups:
        groups.setdefault(_classify_jobs_together(group), []).append(group)
    answers = []
    for (*_, head), members in sorted(groups.items(), key=lambda item: item[0][:2]):
        parts = [
            f"{name_group(report, group)}{_describe_group_work(report, group, is_first=not place)}"
            for place, group in enumerate(members)
        ]
        answers.append(Answer(f"{head}: {', '.join(parts)}"))
    return answers or [Answer("No answer: no jobs ran together")]


def _classify_jobs_together(group: MeasuredJobGroup) -> tuple[int, int, str]:
    """What sharing gives in words, with its place and that of its certainty among others."""
    if group.work is None:
        return 4, 0, "No answer"
    certainty = WORDS.index(group.word)
    if group.word == "unknown" or (group.gains is None and "full" in group.overlaps):
        return 3, 0, "Unknown"
    if group.gains is None:
        return 2, certainty, f"No full overlap ({group.word})"
    if group.gains:
        return 0, certainty, f"Sharing is worth it ({group.word})"
    amount = "nothing" if group.overlaps == ("none",) else "little or nothing"
    return 1, certainty, f"Sharing gains {amount} ({group.word})"


def _describe_group_work(report: Report, group: MeasuredJobGroup, *, is_first: bool) -> str:
    if group.work is None:
        endings = {row.status for row in report.rows if set(row.labels) & set(group.rows)} - {"ok"}
        return f": {join_words(map(name_ending, sorted(endings)))}" if endings else ": no times alone"
    if group.spoilt_by is not None:
        return f" (there {name_job(report, group.spoilt_by)} ran faster than alone)"
    text = f" {format_ratio(group.work)} times"
    if is_first and group.word != "unknown":
        text = f" get{text} as much done as one after the other"
    return text + format_work_bound(group)


def format_work_bound(group: MeasuredJobGroup) -> str:
    """The bound that a group's word rests on: ` (≥ 1.60)`; empty without one."""
    if group.bound is None:
        return ""
    low, high = (group.bound, None) if group.is_lower_bound else (None, group.bound)
    return f" ({format_interval(low, high, format_ratio)})"


def _answer_target(report: Report, finding: TargetFinding) -> list[Answer]:
    """Who reaches the target first, what the others take, and further sentences."""
    target = name_figure_target(finding.until) if finding.until else f"{finding.target_pct:g} % top-1"
    if not finding.order:
        return [Answer(f"No answer: no row reached {target}")]
    first, *later = finding.order
    name = _name_row_or_default(report, first)
    head = {"sure": start_sentence(name), "likely": f"Likely {name}", "unknown": f"Not sure: {name}"}
    parts = _format_known_figures(report.figures[first], "time_to_top1_s", "epochs_to_top1")
    times = [
        f"{_name_size_or_row(report, row)} takes {_format_known_figures(report.figures[row], 'time_to_top1_s')}"
        for row in later[:4]
    ]
    sentences = []
    if finding.as_fast:
        again = "" if finding.until else " with another seed"
        sentences.append(f"{_name_sizes_or_rows(report, finding.as_fast)} may be as fast{again}.")
    if finding.unreached:
        sentences.append(f"{_name_sizes_or_rows(report, finding.unreached)} did not reach it.")
    if finding.interrupted:
        sentences.append(f"{_name_sizes_or_rows(report, finding.interrupted)}: interrupted.")
    clause = join_words(times) if times else ""
    answer = Answer(f"{head[finding.word]} reaches {target} first: {parts}", clause, sentences)
    return [answer, *_answer_energy_to_target(report, finding)]


def _answer_energy_to_target(report: Report, finding: TargetFinding) -> list[Answer]:
    joules = {row: report.figures[row].get("energy_to_top1_j") for row in finding.order}
    known = {row: value for row, value in joules.items() if value is not None}
    if len(known) < 2:
        return []
    head = f"Energy to {name_figure_target(finding.until) if finding.until else f'{finding.target_pct:g} %'}"
    span = format_span((value / 1000 for value in known.values()), format_significant)
    least = finding.least_energy
    if least is None or (finding.energy_word == "unknown" and not finding.costlier):
        return [Answer(f"{head}: no difference shown ({span} kJ)")]
    amount = format_significant(known[least] / 1000)
    if finding.energy_word != "unknown":
        name = _name_row_or_default(report, least)
        return [Answer(f"{head}: least with {name}, {amount} kJ of {span} ({finding.energy_word})")]
    more = format_span((known[row] / 1000 for row in finding.costlier), format_significant)
    take = "takes" if len(finding.costlier) == 1 else "take"
    names = (
        f"{_name_sizes_or_rows(report, finding.costlier)} {take} more than {_name_size_or_row(report, least)}"
    )
    rest = "; between the others no difference is shown" if finding.are_others_alike else ""
    return [Answer(f"{head}: {names}, {more} against {amount} kJ ({finding.costlier_word}){rest}")]


def _answer_top1(_: Report, finding: Top1Finding) -> list[Answer]:
    if not finding.claims:
        return [Answer("No answer: top-1 was not measured")]
    if finding.value is not None:
        name = name_value(finding.field, finding.value)
    else:
        heading = (ABOUT[finding.field].heading if finding.field in ABOUT else "") or finding.field
        name = f"{'other' if heading.endswith('s') else 'another'} {heading}"
    points = format_span(map(compute_claim_figure, finding.claims), format_points)
    seeds = "one seed" if finding.seeds == 1 else count_things(finding.seeds, "seed")
    if finding.word == "unknown":
        return [Answer(f"Unknown whether top-1 stays the same with {name}: {points} points ({seeds})")]
    is_same = all(claim.decided.direction == "same" for claim in finding.claims)
    verb = "stays the same" if is_same else "changes"
    return [Answer(f"Top-1 {verb} with {name}: {points} points ({seeds}, {finding.word})")]


_ANSWERS: Mapping[type[Finding], Callable[[Report, Any], list[Answer]]] = {
    BatchSizeFinding: _answer_batch_size,
    DevicesFinding: _answer_devices,
    VersusFinding: _answer_versus,
    NetworkSizeFinding: _answer_network_size,
    SharingFinding: _answer_jobs_together,
    TargetFinding: _answer_target,
    Top1Finding: _answer_top1,
    PowerLimitFinding: _answer_power_limit,
}


def compute_claim_figure(claim: Claim) -> float:
    """The figure of a claim: how many times, or a difference."""
    return math.exp(claim.evidence.center) if claim.evidence.is_log else claim.evidence.center


def format_points(value: float) -> str:
    """A difference in percentage points: `+2.5`, `−0.3`, `0.0`."""
    return format_signed(value, 1)


def _format_ratios_by_certainty(
    report: Report,
    claims: Sequence[Claim],
    efficiency: Mapping[int, float] | None = None,
    than: str = "",
) -> list[str]:
    """Ratios of a family, put together by how sure they are: `1.60 to 1.86 times as fast at batch 64 to 512 (sure)`.

    `efficiency`: of the candidate of each claim, told beside ratios that are known.
    """
    parts: dict[tuple[int, str], list[Claim]] = {}
    for claim in claims:
        verdict = claim.decided
        direction = verdict.direction if verdict.word != "unknown" else ""
        parts.setdefault((WORDS.index(verdict.word), direction), []).append(claim)
    texts: list[str] = []
    for (place, _), members in sorted(parts.items(), key=lambda item: (item[0][0], item[0][1] != "more")):
        ratios = format_span(map(compute_claim_figure, members), format_ratio)
        where = _describe_where_claims_hold(report, members, claims)
        word: str = WORDS[place]
        if efficiency is not None and word != "unknown":
            shares = (efficiency[claim.candidate] for claim in members)
            word += f", efficiency {format_span(shares, format_percent, ' %')}"
        texts.append(f"{ratios} times{f' as fast{than}' if not texts else ''}{where} ({word})")
    return texts


def _describe_where_claims_hold(report: Report, members: Sequence[Claim], claims: Sequence[Claim]) -> str:
    """At which of the family's rows: `at batch 64 to 512`; nothing where there is only one."""
    if len(claims) == 1:
        return ""
    sizes = [report.labels[claim.candidate].get("batch_size") for claim in claims]
    if len(set(sizes)) < len(sizes) or None in sizes:
        return f" in {len(members)} of {len(claims)} rows" if len(members) < len(claims) else " in all rows"
    if len(members) == len(claims):
        return " at every batch size"
    return f" at batch {_join_as_ranges(sorted(sizes), {report.labels[m.candidate]['batch_size'] for m in members})}"


def _join_as_ranges(axis: Sequence[Any], chosen: Collection[Any]) -> str:
    """Values of an axis, three or more that stand side by side as a span: `8, 16 and 64 to 512`."""
    runs: list[list[Any]] = []
    for place, value in enumerate(axis):
        if value in chosen:
            is_next = bool(runs) and place > 0 and runs[-1][-1] == axis[place - 1]
            runs[-1].append(value) if is_next else runs.append([value])
    texts = []
    for run in runs:
        words = [format_axis_value(value) for value in run]
        texts += [f"{words[0]} to {words[-1]}"] if len(run) > 2 else words
    return join_words(texts)


FIGURES: Mapping[str, Callable[[float], str]] = {
    "epoch_time_s": lambda value: f"{format_significant(value)} s an epoch",
    "images_per_s": lambda value: f"{format_significant(value)} images/s",
    "gpu_mem_mib": lambda value: f"{format_gib(value)} GiB",
    "time_to_top1_s": lambda value: f"{format_significant(value)} s",
    "epochs_to_top1": lambda value: count_things(round(value), "epoch"),
    "energy_to_top1_j": lambda value: f"{format_significant(value / 1000)} kJ",
}
"""Column -> a figure of it in a sentence."""


def _format_known_figures(figures: Mapping[str, Any], *names: str) -> str:
    """Those of a row that are known: `36.1 s, 13 epochs`."""
    return ", ".join(FIGURES[name](float(figures[name])) for name in names if figures.get(name) is not None)


def _name_batch_size(report: Report, row: int) -> str:
    """A row by its batch size alone, or by all its fields where it has none."""
    label = report.labels[row]
    return format_axis_value(label["batch_size"]) if "batch_size" in label else name_row(label)


def _name_batch_sizes(report: Report, rows: Sequence[int]) -> str:
    return _join_limited_names([_name_batch_size(report, row) for row in rows])


MOST_NAMES, FIRST_NAMES = 12, 3
"""So many rows are all named in a sentence; of more the first ones."""


def _join_limited_names(names: Sequence[str]) -> str:
    """Every name of a few; the first of many, and how many more."""
    if len(names) <= MOST_NAMES:
        return join_words(names)
    return join_words([*names[:FIRST_NAMES], f"{len(names) - FIRST_NAMES} more"])


def _name_row_or_default(report: Report, row: int) -> str:
    return name_row(report.labels[row]) or "the row"


def _name_size_or_row(report: Report, row: int) -> str:
    label = report.labels[row]
    return _name_batch_size(report, row) if set(label) == {"batch_size"} else name_row(label)


def _name_sizes_or_rows(report: Report, rows: Sequence[int]) -> str:
    return _join_limited_names([_name_size_or_row(report, row) for row in rows])


# Warnings, and all lines below a table.


def format_warning(report: Report, warned: ReportWarning) -> str:
    """One line on a kind of warning: `In 5 of 18 rows …`. A code that is not known is named."""
    shares = {name: format_percent(share) for name, share in warned.figures.items()}
    if {"low", "high"} <= warned.figures.keys():
        ends = (warned.figures["low"], warned.figures["high"])
        shares["span"] = format_span(ends, format_percent, " %")
    if warned.code in TABLE_WARNINGS:
        return TABLE_WARNINGS[warned.code].format(**shares)
    template = ROW_WARNINGS.get(warned.code)
    text = template.format(**shares) if template else clean_line(warned.code, 40)
    count, total = len(warned.rows), len(report.labels)
    if total == 1:
        return f"In the only row {text}"
    if count == total == 2:
        return f"In both rows {text}"
    return f"In {'all' if count == total else f'{count} of'} {count_things(total, 'row')} {text}"


def format_legend(report: Report, interval: str = "±, ( )", details: str = "--why") -> str:
    """What the signs in a table mean; empty without any. `interval`: those by which it tells intervals. `details`:
    where warnings of rows are told."""
    cells = [cell for row in report.rows for cell in row.cells]
    few, many = report.facts.processes
    parts = []
    if any(cell.low is not None or cell.high is not None for cell in cells):
        over = f"{few} to {many}" if few != many else f"{many}"
        parts.append(f"{interval}: 95 % interval over {over} processes")
    if any(cell.word == "unknown" for cell in cells):
        parts.append("?: unknown")
    if any(_has_warning_signs(group) for group in report.groups):
        parts.append(f"!: warned of, {details}")
    if any(column.name == "work" for column in report.columns):
        parts.append("work done: 1 = one job after the other")
    if report.unlisted_rows:
        parts.append(f"{count_things(len(report.unlisted_rows), 'row')} in no group: --columns all")
    if report.selection is not None:
        parts.append(describe_selection(report.selection))
    return "; ".join(parts)


def _has_warning_signs(group: RowGroup) -> bool:
    """Whether signs of warnings stand at its head or rows: not where all rows of a table's only group, which has no
    head, have the same ones, which the line below the table tells."""
    warned = {row.warnings for row in group.rows}
    return warned != {()} and bool(group.head or len(group.rows) == 1 or len(warned) > 1)


def describe_selection(selection: RowSelection) -> str:
    """`4 of 7 rows shown where batch_size>=64, sorted by epoch_time_s; findings and warnings are of all rows`."""
    count = f"{selection.rows:,} of {count_things(selection.total, 'row')}"
    where = [f"{count} shown where {' and '.join(selection.where)}"] if selection.where else []
    order = [f"sorted by {', '.join(selection.sort)}"] if selection.sort else []
    return f"{', '.join([*where, *order])}; findings and warnings are of all rows"


def list_sentences(report: Report) -> list[Sentence]:
    """All that is to be said below a table, the most important first: findings, then warnings."""
    lines: list[Sentence] = []
    for finding in report.findings:
        for place, text in enumerate(format_finding_lines(report, finding)):
            is_detail = place > 0 and not isinstance(finding, SharingFinding)
            lines.append(
                Sentence("finding", text, 4 if is_detail else 2) if lines else Sentence("answer", text)
            )
    for warned in report.warnings:
        rank = 1 if warned.code in TABLE_WARNINGS else 3
        lines.append(Sentence("warning", format_warning(report, warned), rank))
    return lines


# A sweep that goes on.


def name_leader(report: Report) -> str:
    """What leads so far, `128`, `batch 128 on 2 GPUs (ddp)`: the choice, the first at the target, else the fastest.

    Of groups of jobs the one that gets most done. Empty while nothing stands beside another.
    """
    for finding in report.findings:
        if isinstance(finding, TargetFinding) and finding.order:
            return _name_size_or_row(report, finding.order[0])
        if finding.choice is not None:
            return _name_size_or_row(report, finding.choice.row)
        if isinstance(finding, SharingFinding):
            known = {group.work: group for group in finding.groups if group.work is not None}
            return name_group(report, known[max(known)]) if len(known) > 1 else ""
    rates = {
        row: rate for row, figures in report.figures.items() if (rate := figures["images_per_s"]) is not None
    }
    return _name_size_or_row(report, max(rates, key=rates.__getitem__)) if len(rates) > 1 else ""


def format_leader(report: Report) -> str:
    """`so far: 128 leads`; empty while nothing does."""
    return f"so far: {name} leads" if (name := name_leader(report)) else ""


def format_widest_interval(report: Report) -> str:
    """`widest interval ±4.1 % (batch 16)`, of the times that the table shows; empty where none has an interval."""
    halves = {
        (cell.high / cell.low) ** 0.5 - 1: row
        for row in report.rows
        for cell, column in zip(row.cells, report.columns, strict=False)
        if column.name == "epoch_time_s" and cell.low and cell.high
    }
    if not halves:
        return ""
    half = max(halves)
    width = "±100+%" if half > 1 else f"±{format_percent(half)}"
    name = name_row(report.labels[halves[half].labels[0]])
    return f"widest interval {width}" + (f" ({name})" if name else "")


HINT = "More: --why, --columns all"
"""The last line below a table on a terminal."""
CUT = "More findings and warnings: --why"
"""Stands there, and in a pipe, too, where there was no room for all lines."""
NO_REPORT = "No trials in this folder."


# What --why and --best print.

WHY_NOTE = "p is of the claim alone; what is sure holds among all claims of its question."
WHY_HEADINGS = ("claim", "metric", "figure", "95 %", "p", "verdict")


def make_claim_cells(report: Report, claim: Claim) -> tuple[str, ...]:
    """A claim as a row under WHY_HEADINGS."""
    verdict, form = claim.decided, format_ratio if claim.evidence.is_log else format_points
    limit = math.exp(claim.limit) if claim.evidence.is_log else claim.limit
    sign = {"above": "≥", "below": "≤"}.get(claim.design)
    name = METRICS.get(claim.metric) or name_column(claim.metric)
    name = HEADINGS_BY_KIND.get(report.facts.time_kind, {}).get(name, name)
    metric = _insert_target(report, name) + (f" {sign} {format_ratio(limit)}" if sign else "")
    return (
        name_claim_rows(report, claim),
        metric,
        form(compute_claim_figure(claim)),
        format_interval(verdict.low, verdict.high, form),
        UNKNOWN if verdict.p is None else format_p(verdict.p),
        verdict.word if verdict.word == "unknown" else f"{verdict.direction}, {verdict.word}",
    )


def name_claim_rows(report: Report, claim: Claim) -> str:
    """The rows that a claim is about: a change, a group of jobs, or a job of one."""
    groups = collect_job_groups(report.findings)
    together = next((group for group in groups if claim.candidate in group.rows), None)
    if together is not None and claim.metric == "work":
        return name_group(report, together)
    if together is not None and claim.metric == "slowdown":
        label = report.labels.get(claim.candidate, {})
        job = name_row(label, without=("group", "job", "copies", "gpu_ids", *together.label)) or "job"
        place = f"{together.rows.index(claim.candidate) + 1} of {together.jobs}"
        return f"{job} ({place}) in {name_group(report, together)}"
    labels = report.labels
    return describe_row_difference(labels.get(claim.candidate, {}), labels.get(claim.baseline, {}))


def format_interval(low: float | None, high: float | None, form: Callable[[float], str]) -> str:
    """`1.52–1.78`, `≥ 1.59`, `≤ 1.09`."""
    if low is not None and high is not None:
        return f"{form(low)}–{form(high)}"
    if low is not None:
        return f"≥ {form(low)}"
    return f"≤ {form(high)}" if high is not None else UNKNOWN


def format_p(p: float) -> str:
    """`0.023`, `< 0.001`."""
    return "< 0.001" if p < 0.001 else format_number(p, 3)


def format_remedy(finding: Finding) -> str:
    """`8 rounds give 80 % power (about 4 min more): --rounds 8.`; empty where nothing is to be settled."""
    remedy = finding.remedy
    return f"{_describe_remedy(remedy)}: {_format_remedy_option(remedy)}." if remedy else ""


def _describe_remedy(remedy: Remedy) -> str:
    unit = "seeds" if remedy.is_of_seeds else "rounds"
    return f"{remedy.rounds} {unit} give 80 % power{_format_remedy_minutes(remedy)}"


def _format_remedy_minutes(remedy: Remedy) -> str:
    return "" if remedy.minutes is None else f" (about {max(1, math.ceil(remedy.minutes)):,} min more)"


def describe_certainty(finding: Finding) -> str:
    """`How sure: likely. 8 rounds give 80 % power (about 4 min more): --rounds 8.`"""
    return " ".join(filter(None, (f"How sure: {finding.word}.", format_remedy(finding))))


def _format_gain_bound(gain: float) -> str:
    """`up to 45 %`. Of a bound so wide that it says nothing, no figure: `over 900 %`."""
    return f"up to {format_percent(gain)}" if gain <= WIDEST_BOUND else f"over {format_percent(WIDEST_BOUND)}"


def format_bounds(report: Report, finding: Finding) -> str:
    """What the bound of a choice rests on: `By how much each other size may be faster (95 % for all of them together):
    64 up to 11 %, 256 up to 15 %; the others are slower.`; empty without a bound."""
    choice = finding.choice
    if choice is None or choice.bound is None:
        return ""
    if isinstance(finding, PowerLimitFinding):
        losses = [
            f"{name_limit(report, row)} up to {format_percent(1 - 1 / (1 + gain))}"
            for row, gain in choice.gains.items()
        ]
        more = "the others take more" if losses else "all take more"
        parts = [", ".join(losses)] * bool(losses) + [more] * (len(choice.series) - 1 > len(losses))
        return f"How much less each other limit may take (95 % for all of them together): {'; '.join(parts)}."
    gains = [
        f"{_name_batch_size(report, row)} {_format_gain_bound(gain)}"
        for row, gain in choice.gains.items()
        if gain > 0
    ]
    parts = [", ".join(gains)] if gains else []
    if len(choice.series) - 1 > len(gains):
        parts.append("the others are slower" if gains else "all are slower")
    return f"By how much each other size may be faster (95 % for all of them together): {'; '.join(parts)}."


WIDEST_BOUND = 9.0
"""A gain of ten times: a bound beyond it is not told by its figure."""
FIXED_BY_FILES = frozenset({"model", "batch_size", "variant", "precision", "data", "input_size"})
"""Fields that the files of gpubench/builtin fix or vary."""


def format_sweep_command(fields: Mapping[str, Any]) -> str:
    """The command that measures one configuration: `gpubench sweep --batch-size 128 --gpus 2 --strategy ddp`.

    `fields`: those of its trial that were asked for. What is None or the default is left out, but for fields that
    built-in files fix: there a sweep would take theirs.
    """
    words = ["gpubench", "sweep"]
    given: set[str] = set()
    command = fields.get("command")
    if command is not None:  # its patterns and settings may hold commas, which --set would split at
        words += _list_command_options(fields)
        fields = {name: value for name, value in fields.items() if name not in OF_COMMANDS}
    for name, about in ABOUT.items():
        value = fields.get(name)
        if value is None or about.repeats:
            continue
        is_said_before = not given.isdisjoint(about.rivals)
        given.add(name)
        if is_said_before or (value == DEFAULTS[name] and name not in FIXED_BY_FILES):
            continue
        text = format_cell(value)
        if about.option is None:
            words += ["--set", f"{name}={text}"]
        else:
            words += [about.option.name] if about.option.is_flag else [about.option.name, text]
    return shlex.join([*words, *([] if command is None else ["--", *split_command(command)])])


OF_COMMANDS = ("command", "epoch_pattern", "metrics", "until", "settings")
"""Fields of a trial that say what command it runs."""


def _list_command_options(fields: Mapping[str, Any]) -> list[str]:
    """The options that give a command its values, and say what is looked for in its output."""
    words = []
    for name, value in split_settings(fields.get("settings")).items():
        words += ["--set", f"{name}={value}"]
    for option, text in (("--epoch-pattern", fields.get("epoch_pattern")), ("--until", fields.get("until"))):
        words += [] if text is None else [option, text]
    for metric in (fields.get("metrics") or "").splitlines():
        words += ["--metric", metric]
    return words


# A page of reports: an answer as a heading, how sure it is, and a few figures as tiles.

HEADING_LETTERS = 90
CERTAINTIES: Mapping[Certainty, str] = {"sure": "sure", "likely": "likely", "unknown": "not sure"}
CLAUSE_ENDS = re.compile(r"[;:,] | \(| as one after")
TILES: Mapping[str, str] = {
    "rate": "images/s: {name}",
    "epoch": "an epoch: {name}",
    "times": "as fast as {name}",
    "slower": "the speed of {name}",
    "devices": "as fast on {devices} as on {fewer}",
    "efficiency": "efficiency: {devices} in place of {fewer}",
    "memory": "memory of the fullest GPU",
    "cpu": "{change} CPU time",
    "work": "work done: {name}",
    "network": "an image: from {name} on",
    "faster": "as fast from there on",
    "smaller": "as fast for smaller ones",
    "target": "to {target} top-1: {name}",
    "epochs": "epochs to {target}",
    "energy": "energy to {target}",
}
"""Kind of tile -> what stands below its figure."""
NO_ANSWER = "No sentence sums these rows up; the table holds their figures."
NO_PLAN = "No plan of these trials is stored, so there is no command that measures them again."
MEASURED_ANEW = "The figures are a published log's; the command measures them anew."
REPEAT = (
    "Save each plan as a file, and give it to gpubench sweep on a machine like this one. "
    "What a folder holds already is not measured again: with another folder behind --out it is."
)
CUT_FILE = "# … the rest lies in the plans/ of the results folder"


def format_answer_heading(report: Report, finding: Finding) -> str:
    """The answer in at most HEADING_LETTERS letters: without how sure it is, which stands beside it, and without the
    clauses at its end for which there is no room."""
    return shorten_to_clauses(_format_answer_without_certainty(report, finding), HEADING_LETTERS)


def format_answer_details(report: Report, finding: Finding) -> str:
    """What goes with the answer: the clauses that the heading has no room for, then further sentences."""
    rest = (
        _format_answer_without_certainty(report, finding)
        .removeprefix(format_answer_heading(report, finding))
        .lstrip(",;: ")
    )
    _, sentences = format_finding_title(report, finding)
    return " ".join([*([f"… {rest}."] if rest else []), *sentences])


def _format_answer_without_certainty(report: Report, finding: Finding) -> str:
    answer, _ = format_finding_title(report, finding)
    return answer.replace(f" ({finding.word})", "").replace(f"({finding.word}, ", "(")


def shorten_to_clauses(text: str, letters: int) -> str:
    """Text without so many clauses at its end that it is no longer than this; of a single longer one whole words."""
    if len(text) <= letters:
        return text
    for end in reversed([match.start() for match in CLAUSE_ENDS.finditer(text)]):
        head = text[:end]
        if end <= letters and head.count("(") == head.count(")"):
            return head
    return textwrap.shorten(text, letters, placeholder="")


def name_certainty(report: Report, finding: Finding) -> str:
    """`sure`, `likely: one run each`, `not sure: from a published log`."""
    word = CERTAINTIES[finding.word]
    if report.facts.is_published:
        return f"{word}: from a published log"
    return f"{word}: one run each" if report.facts.processes[1] == 1 else word


def advise_option(report: Report, finding: Finding) -> tuple[str, str]:
    """What would make an answer surer, and the option of a sweep that does: `For an interval, three rounds`,
    `--rounds 3`. Both empty where nothing is known to."""
    if finding.remedy is not None:
        return _describe_remedy(finding.remedy), _format_remedy_option(finding.remedy)
    codes = {warned.code for warned in report.warnings}
    if not finding.claims or finding.word == "sure":
        return "", ""
    if "one-seed" in codes:
        return "For an interval, three seeds", "--repeats 3"
    if codes & {"one-process", "single-process"}:
        return "For an interval, three rounds", "--rounds 3"
    return "", ""


def describe_left_out(count: int, thing: str, where: str) -> str:
    """`1,200 rows are left out for want of room: gpubench export --format csv has all.`"""
    verb = "is" if count == 1 else "are"
    return f"{count_things(count, thing)} {verb} left out for want of room: {where} has all."


def name_ending(ending: str) -> str:
    """`ok`, `out of memory`."""
    return STATUSES.get(ending, ending)
