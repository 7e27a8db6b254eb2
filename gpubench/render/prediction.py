"""What jobs would do to each other, as text and Markdown, with all its English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from gpubench.basics.quoted import clean_line
from gpubench.basics.words import format_hardware_key
from gpubench.core.prediction import NoPrediction, PredictedGroup, PredictionNote
from gpubench.render.grid import Grid, GridCell, GridGroup, GridRow
from gpubench.render.markdown import escape_markdown, format_tables
from gpubench.render.terminal import TO_ASCII, WIDTH, render_grid, wrap_text
from gpubench.render.words import STATUSES, UNKNOWN, count_things, format_number, join_words

if TYPE_CHECKING:  # else a sweep, which says what it predicts, would import pandas when it starts
    from gpubench.analyze.predict import Predictions

HEADINGS = ("job", "alone s", "predicted s", "slowdown", "measured", "error %")
"""The last two stand only where a group has run."""
RESOURCES: Mapping[str, str] = {"cpu": "the CPUs", "gpu": "GPU time"}
"""Of a GPU only the time is known in which a kernel ran."""
OVERLAPS: Mapping[str, str] = {"none": "No overlap", "some": "Some overlap", "full": "Full overlap"}
UPPER_BOUND = (
    "It may be less: ranks keep a GPU busy while they wait for each other (--breakdown measures it)."
)
NOTES: Mapping[str, str] = {
    "another-allowance": "would have {wanted} {field}, had {value} alone",
    "doubts": "the row alone has warnings ({codes})",
    "cpu-load": "CPU seconds are worked out from the load of all CPUs",
    "not-measured": "{job} was not measured alone",
    "ended": "{job} alone ended as {status}",
    "no-time": "a time alone is not known",
    "unknown-needs": "how much the jobs need of {resources} is not known",
    "unknown-cpus": "the machine's CPUs are not on record, and the jobs are pinned to their own",
    "skipped": "{reason}",
}
"""Code of a note -> what is said of a job, or of a group without a prediction."""


def format_text(predictions: Predictions, *, width: int = WIDTH, is_rich: bool = False) -> str:
    """Whose rows these are, then a block a group; ends in a newline.

    `is_rich`: for a terminal, which shows more than ASCII.
    """
    lines = wrap_text(describe_source_machine(predictions), width)
    for group in predictions.groups:
        lines += ["", *wrap_text(clean_line(group.name), width), ""]
        if isinstance(group, PredictedGroup):
            lines += [*(line.plain for line in render_grid(make_jobs_grid(group), width, is_rich)), ""]
        lines += [part for sentence in list_group_sentences(group) for part in wrap_text(sentence, width)]
    return "".join(f"{(line if is_rich else line.translate(TO_ASCII)).rstrip()}\n" for line in lines)


def format_markdown(predictions: Predictions) -> str:
    """The same as Markdown."""
    blocks = [escape_markdown(describe_source_machine(predictions))]
    for group in predictions.groups:
        blocks.append(f"**{escape_markdown(clean_line(group.name))}**")
        if isinstance(group, PredictedGroup):
            blocks += format_tables(make_jobs_grid(group))
        blocks.append("\n".join(f"- {escape_markdown(sentence)}" for sentence in list_group_sentences(group)))
    return "\n\n".join(blocks) + "\n"


def make_jobs_grid(group: PredictedGroup) -> Grid:
    """A table with a row a job."""
    count = len(HEADINGS) if any(job.measured for job in group.jobs) else len(HEADINGS) - 2
    rows = []
    for job in group.jobs:
        together_s = None if job.alone_s is None else job.alone_s * job.slowdown
        figures = [(value, 2) for value in (job.alone_s, together_s, job.slowdown, job.measured)]
        texts = [
            UNKNOWN if value is None else format_number(value, digits)
            for value, digits in (*figures, (job.error_pct, 0))
        ]
        rows.append(GridRow(tuple(map(GridCell, (clean_line(job.name), *texts)[:count]))))
    is_number = (False, *[True] * (count - 1))
    return Grid(("",) * count, HEADINGS[:count], is_number, (GridGroup("", tuple(rows)),))


def describe_source_machine(predictions: Predictions) -> str:
    """Of which machine the rows are."""
    stored = predictions.stored
    counts = [(len(stored.machine.gpus), "GPU"), (stored.cpus or 0, "CPU")]
    hardware = ", ".join(count_things(count, thing) for count, thing in counts if count)
    name = clean_line(format_hardware_key(stored.key)) + (f" ({hardware})" if hardware else "")
    sentences = [f"By results of {name}{'' if stored.is_here else ', which is not this machine'}."]
    if stored.other_machines:
        machines = join_words(clean_line(format_hardware_key(machine)) for machine in stored.other_machines)
        sentences.append(f"Results of {machines} are left out.")
    if predictions.filled:
        fields = ", ".join(f"{name}={clean_line(value)}" for name, value in predictions.filled.items())
        sentences.append(f"What was not asked for is as in these rows: {fields}.")
    if not predictions.groups:
        sentences.append("No group that was predicted has run.")
    return " ".join(sentences)


def list_group_sentences(group: PredictedGroup | NoPrediction) -> list[str]:
    """The answer in a sentence, what speaks for it, and what weakens it; or why there is none."""
    if isinstance(group, NoPrediction):
        return [f"Not predicted: {'; '.join(map(describe_note, group.why))}."]
    overlap = f"{OVERLAPS[group.overlap]} ({group.word or 'predicted'}, gain {format_number(group.overlap_gain, 2)})"
    if group.word is None:
        return [f"{overlap}."]
    waits = join_words([RESOURCES[name] for name in group.waits_for] or ["nothing"])
    sentences = [f"{overlap}: the jobs would wait for {waits}."]
    if group.least_s:
        fullest = sorted(group.least_s.items(), key=lambda item: -item[1])
        needs = [f"{format_number(seconds, 2)} s of {name_resource(name)}" for name, seconds in fullest]
        sentences.append(f"One epoch of each job takes at least {join_words(needs)}.")
    if group.is_upper_bound:
        sentences.append(UPPER_BOUND)
    jobs: dict[str, list[str]] = {}
    for job in group.jobs:
        for note in job.notes:
            jobs.setdefault(describe_note(note), []).append(clean_line(job.name.partition(": ")[0]))
    return [*sentences, *(f"{join_words(names)}: {note}." for note, names in jobs.items())]


def describe_note(note: PredictionNote) -> str:
    """A note in words."""
    figures = {name: _format_note_value(value) for name, value in note.figures.items()}
    return NOTES[note.code].format_map(figures)


def name_resource(resource: str) -> str:
    """`gpu 0` as `GPU 0`, `cpu` as `the CPUs`, `cpu 1` as one of several sets of CPUs."""
    kind, _, which = resource.partition(" ")
    return f"GPU {which}" if kind == "gpu" else f"CPU set {which}" if which else RESOURCES["cpu"]


def _format_note_value(value: object) -> str:
    if value is None:
        return "an unknown number"
    if isinstance(value, tuple):
        return join_words(RESOURCES.get(name, name.replace("_", " ")) for name in value)
    return STATUSES.get(text := clean_line(str(value), 200), text)
