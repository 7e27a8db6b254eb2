"""What jobs would do to each other, as text, Markdown and JSON, with all its English."""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from gpubench.basics.quoted import clean
from gpubench.basics.words import machine_name
from gpubench.core.prediction import NoPrediction, Note, PredictedGroup, PredictedJob, Predictions
from gpubench.render.markdown import escape
from gpubench.render.words import STATUSES, UNKNOWN, count_things, format_number, join_words
from gpubench.schema.cell import cell

HEADINGS = ("job", "alone s", "predicted s", "times as long", "measured", "error %")
"""The last two stand only where a group has run."""
RESOURCES: Mapping[str, str] = {"cpu": "the CPUs", "gpu": "GPU time"}
"""Of a GPU only the time is known in which a kernel ran."""
OVERLAPS: Mapping[str, str] = {"none": "No overlap", "some": "Some overlap", "full": "Full overlap"}
UPPER_BOUND = (
    "It may be less: ranks keep a GPU busy while they wait for each other (--breakdown measures it)."
)
NOTES: Mapping[str, str] = {
    "another-allowance": "would have {wanted} {field}, had {value} alone",
    "unknown-allowance": "would have {wanted} {field}; how many it had alone is not on record",
    "unstated": "alone, {fields} are not on record",
    "model-file": "whether the model's file has changed is not known",
    "doubts": "the row alone has doubts ({codes})",
    "cpu-load": "CPU seconds are worked out from the load of all CPUs",
    "not-measured": "{job} was not measured alone",
    "nearest": "{job} was not measured alone; the nearest row has {fields}",
    "ended": "{job} alone ended as {status}",
    "no-time": "a time alone is not known",
    "unknown-needs": "how much the jobs need of {resources} is not known",
    "unknown-cpus": "the machine's CPUs are not on record, and the jobs are pinned to their own",
    "skipped": "{reason}",
}
"""Code of a note -> what is said of a job, or of a group without a prediction."""


def write(
    predictions: Predictions,
    *,
    command: str = "gpubench sweep",
    width: int | None = None,
    is_markdown: bool = False,
) -> str:
    """Whose rows these are, then a block a group; ends in a newline.

    `command`: the sweep that measures into the folder that was read. `width`: of a terminal, to which sentences are
    wrapped.
    """
    blocks = [_lay_out([describe_origin(predictions)], width, is_markdown)]
    for group in predictions.groups:
        name = clean(group.name)
        blocks.append(f"**{escape(name)}**" if is_markdown else name)
        if isinstance(group, NoPrediction):
            blocks.append(_lay_out([describe_refusal(group)], width, is_markdown))
            if order := write_command(group, command):
                blocks.append(f"    {order}" if is_markdown else order)
        else:
            blocks.append(_write_table(group, is_markdown))
            blocks.append(_lay_out(describe_group(group), width, is_markdown))
    return "\n\n".join(blocks) + "\n"


def write_json(predictions: Predictions) -> str:
    """All answers as one JSON document, ending in a newline; errors of measured jobs beside them, in per cent."""
    document = asdict(predictions)
    for group, entry in zip(predictions.groups, document["groups"], strict=True):
        if isinstance(group, PredictedGroup):
            entry |= {"overlap_gain": group.overlap_gain, "overlap": group.overlap}
            for job, item in zip(group.jobs, entry["jobs"], strict=True):
                item["error_pct"] = job.error_pct
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def describe_origin(predictions: Predictions) -> str:
    """Of which machine the rows are."""
    counts = [(predictions.gpus, "GPU"), (predictions.cpus or 0, "CPU")]
    hardware = ", ".join(count_things(count, thing) for count, thing in counts if count)
    name = clean(machine_name(predictions.machine)) + (f" ({hardware})" if hardware else "")
    sentences = [f"By results of {name}{'' if predictions.is_here else ', which is not this machine'}."]
    if predictions.other_machines:
        others = join_words(clean(machine_name(each)) for each in predictions.other_machines)
        sentences.append(f"Results of {others} are left out.")
    if predictions.filled:
        fields = ", ".join(f"{name}={clean(value)}" for name, value in predictions.filled.items())
        sentences.append(f"What was not asked for is as in these rows: {fields}.")
    if not predictions.groups:
        sentences.append("No group that was predicted has run.")
    return " ".join(sentences)


def describe_refusal(group: NoPrediction) -> str:
    """Why there is no prediction, and what comes next."""
    why = "; ".join(map(describe_note, group.why))
    return f"Not predicted: {why}.{' To measure:' if group.options else ''}"


def write_command(group: NoPrediction, command: str) -> str:
    """What measures what is lacking, to be typed as it stands; empty where nothing does."""
    return " && ".join(f"{command} {shlex.join(options)}" for options in group.options)


def describe_group(group: PredictedGroup) -> list[str]:
    """The answer in a sentence, what speaks for it, and what weakens it."""
    overlap = f"{OVERLAPS[group.overlap]} ({group.word or 'predicted'}, gain {format_number(group.overlap_gain, 2)})"
    if group.word is None:
        return [f"{overlap}."]
    waits = [RESOURCES[name] for name in group.waits_for]
    reason = f"the jobs would wait for {join_words(waits)}" if waits else "the jobs would wait for nothing"
    sentences = [
        f"{OVERLAPS[group.overlap]} ({group.word}, gain {format_number(group.overlap_gain, 2)}): {reason}."
    ]
    if group.least_s:
        fullest = sorted(group.least_s.items(), key=lambda item: -item[1])
        needs = join_words(
            f"{format_number(seconds, 2)} s of {name_resource(name)}" for name, seconds in fullest
        )
        sentences.append(f"One epoch of each job takes at least {needs}.")
    if group.is_upper_bound:
        sentences.append(UPPER_BOUND)
    jobs: dict[str, list[str]] = {}
    for job in group.jobs:
        for note in job.notes:
            jobs.setdefault(describe_note(note), []).append(clean(job.name))
    sentences += [
        f"{'All jobs' if len(names) == len(group.jobs) else join_words(names)}: {note}."
        for note, names in jobs.items()
    ]
    return sentences


def describe_note(note: Note) -> str:
    """A note in words."""
    figures = {name: _format(value) for name, value in note.figures.items()}
    return NOTES[note.code].format_map(figures)


def name_resource(resource: str) -> str:
    """`gpu 0` as `GPU 0`, `cpu` as `the CPUs`, `cpu 1` as one of several sets of CPUs."""
    kind, _, which = resource.partition(" ")
    return f"GPU {which}" if kind == "gpu" else f"CPU set {which}" if which else RESOURCES["cpu"]


def _format(value: object) -> str:
    if isinstance(value, Mapping):
        return join_words(name if own is None else f"{name}={cell(own)}" for name, own in value.items())
    if isinstance(value, tuple):
        return join_words(RESOURCES.get(name, name.replace("_", " ")) for name in value)
    return STATUSES.get(text := clean(str(value), 200), text)


def _list_cells(job: PredictedJob) -> tuple[str, ...]:
    def form(value: float | None, digits: int = 2) -> str:
        return UNKNOWN if value is None else format_number(value, digits)

    predicted = None if job.alone_s is None else job.alone_s * job.slowdown
    figures = map(form, (job.alone_s, predicted, job.slowdown, job.measured))
    return (clean(job.name), *figures, form(job.error_pct, 0))


def _write_table(group: PredictedGroup, is_markdown: bool) -> str:
    count = len(HEADINGS) if any(job.measured for job in group.jobs) else len(HEADINGS) - 2
    rows = [row[:count] for row in (HEADINGS, *map(_list_cells, group.jobs))]
    if is_markdown:
        heading, *lines = ["| " + " | ".join(map(escape, row)) + " |" for row in rows]
        return "\n".join((heading, "| :--- |" + " ---: |" * (count - 1), *lines))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            (row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)))
        ).rstrip()
        for row in rows
    )


def _lay_out(sentences: Sequence[str], width: int | None, is_markdown: bool) -> str:
    if is_markdown:
        return "\n".join(f"- {escape(sentence)}" for sentence in sentences)
    lines = [textwrap.wrap(each, width, break_on_hyphens=False) if width else [each] for each in sentences]
    return "\n".join(line for each in lines for line in each)
