"""`gpubench predict` for people: what jobs would do to each other, and how good such answers have been. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.prediction import Judged, Prediction, TrackRecord
from gpubench.analysis.varied import Row
from gpubench.report import layout, markdown
from gpubench.report.words import UNKNOWN, clean, listed, many, number, signed

RESOURCES = {"cpu": "the CPUs", "gpu": "the GPU"}
"""How a resource of `Prediction.limits` is called."""


def answer(
    jobs: Sequence[str],
    solo: Sequence[Row],
    prediction: Prediction,
    notes: Sequence[str] = (),
    *,
    as_markdown: bool = False,
) -> str:
    """A row a job, the verdict with what it rests on, and `notes`; ends in a newline.

    `solo`: the rows of the same jobs alone, in the same order.
    """
    rows = []
    for job, row, slowdown in zip(jobs, solo, prediction.slowdowns, strict=True):
        alone = row.get("epoch_time_s")
        times = (UNKNOWN, UNKNOWN) if alone is None else (number(alone, 2), number(alone * slowdown, 2))
        rows.append((clean(job), *times, number(slowdown, 2)))
    headings = ("job", "alone s", "predicted s", "times as long")
    said = [_verdict(prediction), *_rounds(prediction)]
    if prediction.unknown:
        said.append(f"Not known of all jobs, and so left out: {listed(prediction.unknown)}.")
    return _page(headings, rows, [1, 2, 3], [*said, *notes], as_markdown)


def track(record: TrackRecord, machine: str, *, as_markdown: bool = False) -> str:
    """How good predictions have been on this machine: a row a group, and a line on all; ends in a newline."""
    if not record.judged:
        return (
            f"No group has been predicted and measured on {machine} so far; "
            "`gpubench sweep` with two or more --job, or with --copies, does both.\n"
        )
    groups = _groups(record.judged)
    rows = [
        (
            clean(mine[0].group),
            str(len(mine)),
            ", ".join(number(one.measured, 2) for one in mine),
            ", ".join(number(one.predicted, 2) for one in mine),
            ", ".join(signed(one.error_pct) for one in mine),
        )
        for mine in groups
    ]
    headings = ("group", "jobs", "measured times as long", "predicted times as long", "error %")
    return _page(headings, rows, [1], [_summary(record, len(groups), machine)], as_markdown)


def _verdict(prediction: Prediction) -> str:
    gain = f"{prediction.verdict} (overlap gain {number(prediction.overlap_gain, 2)})"
    if not prediction.limits:
        return f"Predicted: {gain}; nothing that jobs share would be full."
    waits = listed([RESOURCES.get(name, name) for name in prediction.limits])
    return f"Predicted: {gain}; jobs would wait for {waits}."


def _rounds(prediction: Prediction) -> list[str]:
    """The fullest resource first."""
    fullest = sorted(prediction.rounds.items(), key=lambda item: -item[1])
    if not fullest:
        return []
    (name, most), *others = fullest
    said = f"One epoch of each job that uses it takes at least {number(most, 2)} s of {_name(name)}"
    more = listed([f"{number(seconds, 2)} s of {_name(other)}" for other, seconds in others])
    return [f"{said}{f', and {more}' if more else ''}."]


def _name(resource: str) -> str:
    """`gpu 0` as `GPU 0`, `cpu` as `the CPUs`, `cpu 1` as one of several sets of CPUs."""
    kind, _, which = resource.partition(" ")
    if kind == "gpu":
        return f"GPU {which}"
    return f"CPU set {which}" if which else RESOURCES.get(kind, kind)


def _groups(judged: Sequence[Judged]) -> list[list[Judged]]:
    """Jobs of one group each: they come one after the other, and no group has two jobs at one place."""
    found: list[list[Judged]] = []
    for one in judged:
        last = found[-1] if found else []
        if last and last[0].group == one.group and one.job not in {other.job for other in last}:
            last.append(one)
        else:
            found.append([one])
    return found


def _summary(record: TrackRecord, groups: int, machine: str) -> str:
    jobs = f"{many(record.jobs, 'job')} of {many(groups, 'group')} on {machine}"
    worst = max(record.judged, key=lambda one: abs(one.error_pct))
    said = (
        f"{jobs}: half of the predictions were within {number(record.median_error_pct or 0)} % "
        f"(median of absolute errors), the worst was off by {signed(worst.error_pct)} %"
    )
    if record.groups:
        said += f"; the verdict was right for {record.verdicts_right} of {many(record.groups, 'group')}"
    return f"{said}."


def _page(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
    said: Sequence[str],
    as_markdown: bool,
) -> str:
    """A small table and sentences below. `numbers`: the columns that stand on the right."""
    right = [place in numbers for place in range(len(headings))]
    sentences = [clean(sentence) for sentence in said]
    if as_markdown:
        marks = ["---:" if on_the_right else ":---" for on_the_right in right]
        bullets = "\n".join(f"- {markdown.escape(sentence)}" for sentence in sentences)
        return f"{markdown.grid([headings, marks, *rows])}\n\n{bullets}\n"
    heading, body = layout.padded(headings, rows, right)
    rule = ["-" * len(cell) for cell in heading[0]]
    lines = [layout.GAP.join(cells).rstrip() for cells in (*heading, rule, *body)]
    return "\n".join((*lines, "", *sentences)) + "\n"
