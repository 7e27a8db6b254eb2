"""What stored rows of trials alone say of the groups of an experiment."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gpubench.analysis import prediction as together
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.words import listed, machine_name, many
from gpubench.datasets.pool import Progress
from gpubench.node.environment import Machine
from gpubench.plan.command_line import read_experiment
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import Options
from gpubench.plan.plan import Job, Unit, expand
from gpubench.plan.resolve import Resolved, resolve_unit
from gpubench.plan.skips import Room, skip_reason
from gpubench.plan.state import out_of_memory
from gpubench.plan.values import as_text
from gpubench.predict.alone import Alone, alone_rows, find, names
from gpubench.predict.stored import Remembered, StoredRows
from gpubench.predict.unasked import filled
from gpubench.report import prediction as report
from gpubench.schema import trial
from gpubench.schema.catalog import VARIANTS
from gpubench.schema.cell import cell
from gpubench.schema.row import Row
from gpubench.sweep.announcing import dropped_lines

NO_JOBS = "there are no jobs to predict; give --job once for each, or --copies 2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Home:
    """Where the rows were looked for."""

    where: str
    """The folders, in words."""
    out: Path | None
    """The folder into which a sweep measures what is lacking; None: that into which it measures unasked."""

    def sweep(self, *words: str) -> str:
        """A command whose rows will be found here, as one types it."""
        out = () if self.out is None else ("--out", str(self.out))
        return shlex.join(["gpubench", "sweep", *words, *out])


@dataclass(frozen=True, kw_only=True, slots=True)
class _NoAnswer:
    """A group that can't be answered, and why."""

    why: str
    remedy: report.Remedy | None = None


class Answers:
    """What the rows of one machine say of the groups of one experiment."""

    def __init__(
        self,
        stored: StoredRows,
        path: Path | None,
        options: Options,
        home: Home,
        *,
        markdown: bool,
        width: int | None = None,
    ) -> None:
        """`width`: of a terminal, to which sentences are wrapped."""
        self._stored = stored
        self._path = path
        self._home = home
        self._markdown = markdown
        self._width = width
        self._rows = alone_rows(stored.records)
        on_gpus = stored.device == "cuda"
        self._plain = read_experiment(None, Options(), has_gpu=on_gpus)
        self.taken = ""
        """Fields that nobody gave and that are those of the rows."""
        if path is None:
            options, self.taken = filled(options, stored.records, self._plain)
        self._options = options
        self._experiment = read_experiment(path, options, has_gpu=on_gpus)
        self._sources = Remembered(stored.records, self._experiment.bad_images, _trying)
        self._oom = out_of_memory(stored.records)

    def texts(self) -> list[str]:
        """One a group, each ending in a newline."""
        plan = expand(
            self._experiment,
            device=self._stored.device,
            sources=self._sources,
            cpus=self._stored.machine.cpu_count,
        )
        groups = [unit for unit in plan.units if unit.is_group]
        if not groups:
            raise UsageError(NO_JOBS)
        found = [self._answer(unit) for unit in groups]
        failed = [one for one in found if isinstance(one, _NoAnswer)]
        if len(failed) == len(found):
            more = f" ({many(len(found) - 1, 'group')} more can't be predicted either)" * (len(found) > 1)
            others = (
                f"; results of {listed([machine_name(one) for one in self._stored.others])} are left out"
                * bool(self._stored.others)
            )
            remedy = failed[0].remedy
            order = f"; {remedy.what}: {remedy.command}" if remedy else ""  # last, so that it can be copied
            raise UnusableError(f"{groups[0].group} can't be predicted: {failed[0].why}{more}{others}{order}")
        texts = [
            report.no_answer(
                self._title(unit), one.why, one.remedy, as_markdown=self._markdown, width=self._width
            )
            if isinstance(one, _NoAnswer)
            else one
            for unit, one in zip(groups, found, strict=True)
        ]
        return texts + [report.line(one, width=self._width) for one in dropped_lines(plan)]

    def _answer(self, unit: Unit) -> str | _NoAnswer:
        machine = self._machine(unit)
        if machine is None:
            unknown = (
                f"how many CPUs {machine_name(self._stored.key)} has is not on record, nor so what pinned jobs "
                "get of them"
            )
            return _NoAnswer(why=unknown)
        room = Room(len(machine.gpus), machine.cpu_count)
        if why := skip_reason(unit, self._oom, room, self._stored.device):
            shown = why if self._stored.here else why.replace("this machine", machine_name(self._stored.key))
            return _NoAnswer(why=shown)
        facts = self._sources.data
        resolved = resolve_unit(unit, machine, lambda job: facts(job.trial.data), self._stored.device)
        found = [
            find(job, one, facts(job.trial.data).fingerprint, self._rows)
            for job, one in zip(unit.jobs, resolved, strict=True)
        ]
        alone = [one for one in found if isinstance(one, Alone)]
        if len(alone) < len(found):
            return self._lacking(unit, found)
        return self._told(unit, resolved, alone)

    def _machine(self, unit: Unit) -> Machine | None:
        """What these jobs would run on; None where each wants its own CPUs of who knows how many.

        Where that is not known, jobs on the same CPUs have as many as they ask for.
        """
        machine = self._stored.machine
        if self._stored.counts.cpus is not None:
            return machine
        if unit.jobs[0].trial.cpu_sharing == "pinned":
            return None
        cpus = max(job.trial.cpus or 1 for job in unit.jobs)
        return replace(machine, cpu_ids=tuple(range(cpus)), cpu_count=cpus)

    def _told(self, unit: Unit, resolved: Sequence[Resolved], alone: Sequence[Alone]) -> str | _NoAnswer:
        solos = [one.row for one in alone]
        made, why_not = together.predicted(solos, resolved, self._rows)
        if made is None:
            return _NoAnswer(why=str(why_not))
        called = names(unit.jobs)
        of_note: dict[str, dict[str, None]] = {}
        for name, one in zip(called, alone, strict=True):
            for note in one.notes:
                of_note.setdefault(note, {})[name] = None
        return report.answer(
            self._title(unit),
            [
                f"{job.membership.name}: {name}"
                for job, name in zip(unit.jobs, called, strict=True)
                if job.membership
            ],
            solos,
            made,
            [*_by_all_rounds(solos), *(f"{_who(those, called)}: {note}." for note, those in of_note.items())],
            as_markdown=self._markdown,
            width=self._width,
        )

    def _title(self, unit: Unit) -> str:
        """The group's name, with the axes that tell it from others of that name."""
        trials = [vars(job.trial) for job in unit.jobs]
        axes = [name for axis in self._experiment.varied for name in axis if name != "copies"]
        same = [f for f in axes if f in trials[0] and all(t[f] == trials[0][f] for t in trials)]
        said = ", ".join(f"{field}={cell(trials[0][field])}" for field in same)
        return f"{unit.group} ({said})" if said else unit.group

    def _lacking(self, unit: Unit, found: Sequence[Alone | str]) -> _NoAnswer:
        """Which jobs have no row alone, and what measures them."""
        lacking: dict[str, None] = {}
        orders: dict[str, None] = {}
        for job, name, one in zip(unit.jobs, names(unit.jobs), found, strict=True):
            if isinstance(one, str):
                lacking[f"{name} ({one})" if one else name] = None
                orders[self._order(job)] = None
        where = "" if self._stored.here else ", on such a machine"
        was = "was" if len(lacking) == 1 else "were"
        absent = f"{listed(list(lacking))} {was} not measured alone on {machine_name(self._stored.key)}"
        return _NoAnswer(
            why=f"by the rows in {self._home.where}, {absent}",
            remedy=report.Remedy(what=f"to measure{where}", command=" && ".join(orders)),
        )

    def _order(self, job: Job) -> str:
        """The command that measures a job alone."""
        policy = ("--bad-images", "skip") if self._experiment.bad_images == "skip" else ()
        if self._path is not None and job.variant != VARIANTS.get(job.trial.variant):
            return self._home.sweep(str(self._path), *_as_asked(self._options))
        return self._home.sweep(*_as_fields(job, self._plain), *policy)


def _trying(root: Path) -> AbstractContextManager[Progress]:
    """Shows how far somebody is who tries all images of a folder."""
    from gpubench.render.progress_bar import bar  # takes long to import, and is seldom wanted

    return bar(f"trying all images of {root}")


def _by_all_rounds(solos: Sequence[Row]) -> list[str]:
    """That a group's table may tell another prediction; nothing where each row alone is of the first round only."""
    if all(run.round == 1 for solo in solos for run in solo.runs):
        return []
    return [
        "This rests on all rounds of the rows alone; the prediction in a group's table rests on the first round, "
        "for it was made before the group ran."
    ]


def _who(those: Collection[str], called: Collection[str]) -> str:
    """Some of the jobs that are called so."""
    return "all jobs" if len(called) > 1 and set(those) == set(called) else listed(list(those))


def _as_asked(options: Options) -> list[str]:
    """The options that were given beside an experiment's file."""
    fields = [word for name, value in options.fields.items() for word in ("--set", f"{name}={value}")]
    jobs = [word for text in options.jobs for word in ("--job", text)]
    policy = [] if options.bad_images is None else ["--bad-images", options.bad_images]
    return [*fields, *jobs, *["--pairs"] * options.pairs, *policy]


def _as_fields(job: Job, plain: Experiment) -> list[str]:
    """A job alone as options of a sweep. `plain`: what a sweep does that is asked for nothing."""
    assert job.membership is not None, "a job that runs beside others"
    own = vars(job.membership.solo.trial)
    always = dict.fromkeys(("model", "batch_size", "device"))  # what is left to a sweep may be another
    usual = {**vars(trial.make({})), **plain.fixed, **always}
    usual |= {name: own[name] for name in ("epochs", "warmup_epochs")}
    fields = {name: value for name, value in own.items() if value != usual[name]}
    if own["gpu_ids"] or not own["gpus"]:
        fields.pop("gpus", None)  # others tell it, too
    words = [f"{name}={_typed(value)}" for name, value in fields.items()]
    return [part for word in words for part in ("--set", word)]


def _typed(value: Any) -> str:
    """As one would type it: 1, not 1.0."""
    return as_text(int(value) if isinstance(value, float) and value.is_integer() else value)
