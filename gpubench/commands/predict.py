"""`gpubench predict`: what jobs would do to each other, from stored rows of the same trials alone. Runs nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analysis.stored_groups import with_verdicts
from gpubench.analysis.track_record import TrackRecord, track_record
from gpubench.basics.encodable import encodable
from gpubench.basics.errors import UsageError
from gpubench.basics.words import listed, many
from gpubench.commands.opened import opened, warn
from gpubench.node import environment
from gpubench.node.environment import Machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.options import Options, job_option
from gpubench.predict.answers import NO_JOBS, Answers, Home
from gpubench.predict.stored import Counts, StoredRows, stored_of
from gpubench.record import together
from gpubench.report import prediction as report
from gpubench.report.groups import gathered
from gpubench.report.reading import no_results_folder
from gpubench.results.home import all_results, results_home
from gpubench.results.rows import row_of
from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace

Solos = Mapping[tuple[str | None, float | None], Row]
"""Rows that ended ok, by trial id and epoch time."""


def predict(
    folders: Sequence[Path], options: Options, *, experiment: Path | None = None, markdown: bool = False
) -> int:
    """Answers for the jobs of `options` or `experiment`; without any: how good answers have been so far, first of all.

    `folders`: none stands for all in the place where sweeps put theirs. Raises UsageError for jobs that make no
    sense, and UnusableError where no group can be answered.
    """
    asks = bool(options.jobs or options.pairs or "copies" in options.fields or experiment)
    if not asks and options.fields:
        raise UsageError(NO_JOBS)
    here = environment.machine(open_nvml())
    records = _records(folders)
    home = _home(folders, records, here)
    stored = stored_of(records, here, _device(options) if asks else None, home.sweep())
    console = Console()
    width = console.width if console.is_terminal and not markdown else None
    answers, taken = [], ""
    if asks:
        answering = Answers(stored, experiment, options, home, markdown=markdown, width=width)
        answers, taken = answering.texts(), answering.taken
    origin = report.origin(
        stored.key,
        _told(stored.counts),
        stored.others,
        [_told(counts) for counts in stored.unlike],
        is_here=stored.here is not None,
        taken=taken,
        as_markdown=markdown,
        width=width,
    )
    record, now = _track(stored)
    track = report.track(
        record,
        stored.key,
        now=now,
        where=home.where,
        sweep=home.sweep(),
        as_markdown=markdown,
        brief=asks,
        width=width,
    )
    parts = [origin, *answers, track] if asks else [track, origin]
    sys.stdout.write(encodable("\n".join(parts), console.encoding))
    return 0


def _records(folders: Sequence[Path]) -> list[list[Record]]:
    """The records of each folder; one of several may hold none. Raises UnusableError for what is no folder."""
    if len(folders) == 1:
        return [opened(folders[0])[1]]
    for folder in folders:
        if not folder.is_dir():
            raise no_results_folder(folder)
    return [Results(folder).records(warn) for folder in folders or all_results()]


def _home(folders: Sequence[Path], records: Sequence[Sequence[Record]], here: Machine) -> Home:
    """Where rows are looked for. Of several folders the first with rows of this machine is for more of them."""
    if not folders:
        return Home(where=f"{results_home()}", out=None)
    keys = {environment.machine_key(here, kind) for kind in (["cuda", "cpu"] if here.gpus else ["cpu"])}
    mine = [
        folder
        for folder, found in zip(folders, records, strict=True)
        if any(record.machine_key in keys for record in found)
    ]
    return Home(where=listed([str(folder) for folder in folders]), out=(mine or folders)[0])


def _device(options: Options) -> str | None:
    """The device that all jobs of the command line ask for; None where they leave it open or differ."""
    common = options.fields.get("device")
    asked = {job_option(text).get("device", common) for text in options.jobs} or {common}
    only = asked.pop() if len(asked) == 1 else None
    return only if only in ("cuda", "cpu") else None


def _told(counts: Counts) -> str:
    """`4 GPUs, 64 CPUs`; empty where neither is known."""
    known = [many(counts.gpus, "GPU")] * bool(counts.gpus)
    if counts.cpus:
        known.append(many(counts.cpus, "CPU"))
    return ", ".join(known)


def _track(stored: StoredRows) -> tuple[TrackRecord, TrackRecord]:
    """How good predictions have been, and how good those of this version's model are on the same groups.

    A group that was measured twice counts as two.
    """
    rows: list[Row] = []
    alone: dict[tuple[str | None, float | None], Row] = {}
    for record in stored.records:
        if record.round > 1:  # a prediction was made of what the first round found
            continue
        row = row_of(record)
        unit = row.group_id and f"{row.group_id} of {row.started_at}"
        rows.append(replace(row, group_id=unit))
        if record.status == "ok":
            alone[record.trial_id, row.epoch_time_s] = row
    groups = _named(with_verdicts(rows, alone.values()))
    then = [replace(row, group=label) for label, members in groups for row in members]
    now = [row for label, members in groups for row in _anew(label, members, alone)]
    return track_record(then), track_record(now)


def _named(rows: Sequence[Row]) -> list[tuple[str, tuple[Row, ...]]]:
    """Each group as its table calls it, and its rows. What several tables call the same has its table's name, too."""
    tables: dict[str, list[Row]] = {}
    for row in rows:
        tables.setdefault(row.experiment, []).append(row)
    groups = [(table, group) for table, mine in tables.items() for group in gathered(mine)]
    same = Counter(label for _, label in {(table, group.label) for table, group in groups})
    return [
        (group.label if same[group.label] == 1 else f"{table}: {group.label}", group.rows)
        for table, group in groups
    ]


def _anew(label: str, rows: Sequence[Row], alone: Solos) -> list[Row]:
    """The rows of one group, with what this version's model says in place of what was predicted then.

    It is asked about the very rows that the group was compared with: another folder, or a later attempt, may have
    measured the same trials anew. Where one of them is gone, or a job does not tell where it ran, what was predicted
    then stands.
    """
    compared = [(row.solo_id, row.solo_epoch_time_s) for row in rows]
    solos = [alone[one] for one in compared if one in alone]
    made = None
    placements = [row.placement for row in rows if row.placement is not None]
    if len(solos) == len(placements) == len(rows):
        made, _ = together.predicted(solos, placements, list(alone.values()))
    slowdowns = made.slowdowns if made else [row.predicted_slowdown for row in rows]
    return [
        replace(row, group=label, predicted_slowdown=slowdown if row.predicted_slowdown else None)
        for row, slowdown in zip(rows, slowdowns, strict=True)
    ]
