"""`gpubench predict` for people: what jobs would do to each other, and how good such answers have been. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpubench.analysis.prediction import Prediction
from gpubench.analysis.sharing import headline, verdict_words
from gpubench.analysis.slowdown import expected
from gpubench.analysis.track_record import PredictedJob, TrackRecord
from gpubench.basics import words
from gpubench.basics.folding import folded
from gpubench.basics.words import UNKNOWN, clean, listed, many, number, signed
from gpubench.report import layout, markdown
from gpubench.report.groups import origin as rests_on
from gpubench.schema.row import Row
from gpubench.schema.verdict import UNSURE, Sure, Verdict

RESOURCES = {"cpu": "the CPUs", "gpu": "GPU time"}
"""How a resource of `Prediction.limits` is called: of a GPU only the time is known in which a kernel ran."""
MOST_UNLIKE = 3
"""Counts of GPUs and CPUs up to which each is told."""


UNSURE_ALONE: Mapping[Sure, str] = {
    "spread not known": "how far the times alone spread is not known",
    "doubtful": "the times alone are doubtful",
}
"""Why a predicted verdict may be another one."""


BESIDE_OTHERS = (
    "Somebody else's work took a part of the machine while trials ran alone, so on a quiet one jobs may slow each "
    "other down more than this"
)
"""What speaks against any prediction from such rows: they took longer, and so wanted less of the machine at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What one can do where a group can't be predicted."""

    what: str
    """`to measure`."""
    command: str
    """To be typed as it stands."""


def origin(
    machine: str,
    hardware: str,
    others: Sequence[str] = (),
    unlike: Sequence[str] = (),
    *,
    is_here: bool,
    taken: str = "",
    as_markdown: bool = False,
    width: int | None = None,
) -> str:
    """One line: of which machine the rows are; ends in a newline.

    `width`: of a terminal, to which its sentences are wrapped, as those of all pages here.
    `others`: machines that were left out. `unlike`: GPUs and CPUs of hosts that rows are of, too, unlike `hardware`.
    `taken`: fields of the jobs that nobody gave and that are those of the rows.
    """
    named = words.machine_name(machine)
    name = f"{named} ({hardware})" if hardware else named
    said = f"By results of {name}{'' if is_here else ', which is not this machine'}."
    if unlike:
        shown = [*unlike[:MOST_UNLIKE], *["others"] * (len(unlike) > MOST_UNLIKE)]
        said += f" Some rows were measured where there were {'; or '.join(shown)}."
    if others:
        said += f" Results of {listed([words.machine_name(one) for one in others])} are left out."
    if taken:
        said += f" What was not asked for is as in these rows: {taken}."
    return line(said, as_markdown, width)


def answer(
    group: str,
    jobs: Sequence[str],
    solo: Sequence[Row],
    prediction: Prediction,
    notes: Sequence[str] = (),
    *,
    as_markdown: bool = False,
    width: int | None = None,
) -> str:
    """The group's name, a row a job, the verdict with what speaks for it, and `notes`; ends in a newline.

    `solo`: the rows of the same jobs alone, in the same order. The verdict is no surer than they are.
    """
    found = expected(prediction.overlap_gain, solo)
    rows = []
    for job, row, slowdown in zip(jobs, solo, prediction.slowdowns, strict=True):
        alone = row.epoch_time_s
        times = (UNKNOWN, UNKNOWN) if alone is None else (number(alone, 2), number(alone * slowdown, 2))
        rows.append((clean(job), *times, number(slowdown, 2)))
    headings = ("job", "alone s", "predicted s", "times as long")
    rests = rests_on(solo, found, UNSURE_ALONE) if found.words else ""
    more = [f"{rests[0].upper()}{rests[1:]}."] if rests else []
    said = [_verdict(prediction, found), *_rounds(prediction), *_waits(prediction, jobs), *more]
    page = _page(headings, rows, [1, 2, 3], [*said, *notes], as_markdown, width)
    return f"{_heading(group, as_markdown)}\n\n{page}"


def no_answer(
    group: str,
    why: str,
    remedy: Remedy | None = None,
    *,
    as_markdown: bool = False,
    width: int | None = None,
) -> str:
    """Why a group is not predicted, and the command that helps, on a line of its own; ends in a newline."""
    said = f"Not predicted: {why}.{f' {remedy.what[0].upper()}{remedy.what[1:]}:' if remedy else ''}"
    text = f"{_heading(group, as_markdown)}\n\n{line(said, as_markdown, width)}"
    if remedy is None:
        return text
    return f"{text}\n{f'    {remedy.command}' if as_markdown else remedy.command}\n"


def track(
    record: TrackRecord,
    machine: str,
    *,
    now: TrackRecord | None = None,
    where: str = "these results",
    sweep: str = "gpubench sweep",
    as_markdown: bool = False,
    width: int | None = None,
    brief: bool = False,
) -> str:
    """How good predictions have been on this machine: a line on all, then a row a group; ends in a newline.

    `record`: as predicted before they ran; `now`: the same groups by the model of this version, told where it differs.
    `brief`: that line alone. `where`: in which folders they lie; `sweep`: the command that measures into them.
    """
    if not record.predicted_jobs:
        return line(
            f"By the rows in {where}, no group has been predicted and measured on {words.machine_name(machine)} "
            f"so far; `{sweep}` with two or more --job, or with --copies, does both.",
            as_markdown,
            width,
        )
    groups = _groups(record.predicted_jobs)
    summary = _summary(record, len(groups), machine)
    today = _groups(now.predicted_jobs) if now and _differ(record, now) else []
    if brief:
        return line(f"So far: {summary}", as_markdown, width)
    rows = []
    for index, mine in enumerate(groups):
        measured = ", ".join(number(one.measured, 2) for one in mine)
        cells = [clean(mine[0].group), str(len(mine)), measured, *_predicted(mine)]
        rows.append([*cells, *_predicted(today[index])] if today else cells)
    headings = ["group", "jobs", "measured times as long", "predicted times as long", "error %"]
    said = [summary]
    if today and now:
        headings += ["by this version", "error %"]
        said.append(f"By the model of this version: {_summary(now, len(groups), machine)}")
    return _page(headings, rows, [1], said, as_markdown, width, answer_first=True)


def _predicted(predicted_jobs: Sequence[PredictedJob]) -> tuple[str, str]:
    """The slowdowns of a group's jobs as predicted, and their errors."""
    return (
        ", ".join(number(one.predicted, 2) for one in predicted_jobs),
        ", ".join(signed(one.error_pct) for one in predicted_jobs),
    )


def _differ(record: TrackRecord, now: TrackRecord) -> bool:
    """Whether a figure that people see differs; of the same jobs only."""
    pairs = list(zip(record.predicted_jobs, now.predicted_jobs, strict=False))
    same = len(record.predicted_jobs) == len(now.predicted_jobs) and all(
        (a.group, a.job) == (b.group, b.job) for a, b in pairs
    )
    return same and any(number(a.predicted, 2) != number(b.predicted, 2) for a, b in pairs)


def _heading(group: str, as_markdown: bool) -> str:
    name = clean(group)
    return f"**{markdown.escape(name)}**" if as_markdown else name


def line(sentence: str, as_markdown: bool = False, width: int | None = None) -> str:
    """One sentence; ends in a newline."""
    said = clean(sentence)
    lines = [markdown.escape(said)] if as_markdown else folded(said, width)
    return "\n".join(lines) + "\n"


def _verdict(prediction: Prediction, found: Verdict) -> str:
    gain = prediction.overlap_gain
    others = f" {BESIDE_OTHERS}." * found.beside_others
    waits = f"jobs would wait for {waited_for(prediction.limits) or 'nothing that they share'}"
    if found.words:
        by = "by these rows " if found.sure in UNSURE else ""
        said = f"{headline(found, gain)}; {by}{waits}"
    else:
        said = f"no verdict (overlap gain {number(gain, 2)}): {found.why_not}. By these rows {waits}"
    most = (
        " It may be less: ranks keep their GPU busy while they wait for each other, too." * prediction.at_most
    )
    return f"Predicted: {said}.{most}{others}"


def predicted_verdict(prediction: Prediction, solo: Sequence[Row]) -> str:
    """The predicted verdict in a few words, with the gain: `perhaps parallel, overlap gain 0.98`."""
    gain = prediction.overlap_gain
    found = expected(gain, solo)
    said = verdict_words(found, gain) if found.words else "no verdict"
    return f"{said}, overlap gain {number(gain, 2)}"


def waited_for(limits: Sequence[str]) -> str:
    """`the CPUs and GPU time`: what jobs would wait for, by `Prediction.limits`; empty for nothing."""
    return listed([RESOURCES.get(name, name) for name in limits])


def _rounds(prediction: Prediction) -> list[str]:
    """The resource that the jobs need longest comes first."""
    fullest = sorted(prediction.rounds.items(), key=lambda item: -item[1])
    if not fullest:
        return []
    equal: dict[str, list[str]] = {}
    for resource, seconds in fullest:
        equal.setdefault(number(seconds, 2), []).append(_name(resource))
    most, *others = [
        f"{seconds} s of {'each of ' * (len(names) > 1)}{listed(names)}" for seconds, names in equal.items()
    ]
    more = f", and {listed(others)}" if others else ""
    return [f"One epoch of each job that uses it takes at least {most}{more}."]


def _waits(prediction: Prediction, jobs: Sequence[str]) -> list[str]:
    """What of the busy time counts as waiting for gradients, and how that is known: a sentence for each way."""
    found = []
    for measured, least, how in (
        (True, "", "as --breakdown measured it"),
        (
            False,
            "at least ",
            "estimated from how long the same network keeps one GPU busy; --breakdown measures it",
        ),
    ):
        parts = [
            f"{number(100 * wait.part)} % of the GPU time of {clean(job)}"
            for job, wait in zip(jobs, prediction.waits, strict=False)
            if wait and wait.measured == measured
        ]
        if parts:
            found.append(f"Waiting for other ranks' gradients is left out: {least}{listed(parts)}, {how}.")
    return found


def _name(resource: str) -> str:
    """`gpu 0` as `GPU 0`, `cpu` as `the CPUs`, `cpu 1` as one of several sets of CPUs."""
    kind, _, which = resource.partition(" ")
    if kind == "gpu":
        return f"GPU {which}"
    return f"CPU set {which}" if which else RESOURCES.get(kind, kind)


def _groups(predicted_jobs: Sequence[PredictedJob]) -> list[list[PredictedJob]]:
    """Jobs of one group each: they come one after the other, and no group has two jobs at one place."""
    found: list[list[PredictedJob]] = []
    for one in predicted_jobs:
        last = found[-1] if found else []
        if last and last[0].group == one.group and one.job not in {other.job for other in last}:
            last.append(one)
        else:
            found.append([one])
    return found


def _summary(record: TrackRecord, groups: int, machine: str) -> str:
    jobs = f"{many(record.jobs, 'job')} of {many(groups, 'group')} on {words.machine_name(machine)}"
    worst = max(record.predicted_jobs, key=lambda one: abs(one.error_pct))
    said = (
        f"{jobs}: half of the predictions were within {number(record.median_error_pct or 0)} % "
        f"(median of absolute errors), the worst was off by {signed(worst.error_pct)} %"
    )
    return f"{said}{_verdicts(record)}."


def _verdicts(record: TrackRecord) -> str:
    """How many verdicts were right, of those that were right or wrong; and how many were neither."""
    parts = []
    if record.groups:
        parts.append(
            f"the predicted verdict was right for {record.verdicts_right} of {many(record.groups, 'group')}"
        )
    open_ = [
        f"{many(count, 'group')}, whose {why}"
        for count, why in (
            (record.undecided, "measured verdict is not sure"),
            (record.too_few, "spread is not known"),
        )
        if count
    ]
    if open_:
        whether = "it" if record.groups else "whether the predicted verdict was right"
        parts.append(f"{whether} is not decided for {', and for '.join(open_)}")
    if record.without_verdict:
        count = many(record.without_verdict, "group")
        parts.append(f"{count} {'has' if record.without_verdict == 1 else 'have'} no measured verdict")
    return "".join(f"; {part}" for part in parts)


def _page(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
    said: Sequence[str],
    as_markdown: bool,
    width: int | None,
    *,
    answer_first: bool = False,
) -> str:
    """A small table, with sentences below or, where they are the answer, above.

    `numbers`: the columns that stand on the right.
    """
    right = [index in numbers for index in range(len(headings))]
    sentences = [clean(sentence) for sentence in said]
    if as_markdown:
        marks = ["---:" if on_the_right else ":---" for on_the_right in right]
        text = "\n".join(f"- {markdown.escape(sentence)}" for sentence in sentences)
        table = markdown.grid([headings, marks, *rows])
    else:
        heading, body = layout.padded(headings, rows, right)
        rule = ["-" * len(cell) for cell in heading[0]]
        text = "\n".join(line for sentence in sentences for line in folded(sentence, width))
        table = "\n".join(layout.GAP.join(cells).rstrip() for cells in (*heading, rule, *body))
    return "\n\n".join((text, table) if answer_first else (table, text)) + "\n"
