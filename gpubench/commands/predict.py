"""`gpubench predict`: what jobs would do to each other, from stored rows of the same trials alone. Runs nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gpubench.analysis import prediction as together
from gpubench.analysis.track_record import TrackRecord, track_record
from gpubench.analysis.varied import unit, where
from gpubench.basics.encodable import encodable
from gpubench.basics.errors import UsageError
from gpubench.basics.words import listed, many
from gpubench.commands.opened import opened, warn
from gpubench.node import environment
from gpubench.node.environment import Machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.options import Options, job_option
from gpubench.predict.answers import NO_JOBS, Answers, Home
from gpubench.predict.measured import measured_groups, rows_of
from gpubench.predict.stored import Counts, StoredRows, stored_of
from gpubench.report import prediction as report
from gpubench.report.groups import gathered
from gpubench.report.reading import no_results_folder
from gpubench.results.home import all_results, results_home
from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.schema.row import Row, TableRow, replace

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

    What was measured is what the table says: over all repeats and rounds of a group.
    """
    folders = [rows_of(records) for records in stored.folders]
    # A prediction was made of what the first round found.
    alone: Solos = {
        (row.trial_id, row.epoch_time_s): row
        for rows in folders
        for row in rows
        if row.status == "ok" and row.round == 1
    }
    return _record(folders), _record([_anew(rows, alone) for rows in folders])


def _record(folders: Sequence[Sequence[Row]]) -> TrackRecord:
    rows = [job for jobs in measured_groups(folders) for job in jobs]
    return track_record([replace(row, group=label) for label, jobs in _named(rows) for row in jobs])


def _named(rows: Sequence[TableRow]) -> list[tuple[str, tuple[Row, ...]]]:
    """Each group as its table calls it, and its rows. What several tables call the same has its table's name, too."""
    tables: dict[str, list[TableRow]] = {}
    for row in rows:
        tables.setdefault(row.experiment, []).append(row)
    groups = [(table, group) for table, mine in tables.items() for group in gathered(mine)]
    same = Counter(label for _, label in {(table, group.label) for table, group in groups})
    return [
        (group.label if same[group.label] == 1 else f"{table}: {group.label}", group.rows)
        for table, group in groups
    ]


def _anew(rows: Sequence[Row], alone: Solos) -> list[Row]:
    """These rows, those of groups with what this version's model says in place of what was predicted then."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        if row.group and row.round == 1:
            own = unit(row) or (row.experiment, row.group, row.repeat)
            groups.setdefault((own, where(row), row.started_at), []).append(row)
    said = {
        id(row): slowdown
        for jobs in groups.values()
        for row, slowdown in zip(jobs, _slowdowns(jobs, alone), strict=True)
    }
    return [
        replace(row, predicted_slowdown=said[id(row)]) if row.predicted_slowdown and id(row) in said else row
        for row in rows
    ]


def _slowdowns(jobs: Sequence[Row], alone: Solos) -> Sequence[float | None]:
    """What this version's model says of the jobs of one run of a group.

    It is asked about the very rows that the group was compared with: another folder, or a later attempt, may have
    measured the same trials anew. Where one of them is gone, or a job does not tell where it ran, what was predicted
    then stands.
    """
    compared = [(job.solo_id, job.solo_epoch_time_s) for job in jobs]
    solos = [alone[one] for one in compared if one in alone]
    placements = [job.placement for job in jobs if job.placement is not None]
    if len(solos) == len(placements) == len(jobs):
        made, _ = together.predicted(solos, placements, list(alone.values()))
        if made:
            return made.slowdowns
    return [job.predicted_slowdown for job in jobs]
