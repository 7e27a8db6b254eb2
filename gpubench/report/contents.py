"""Rows of a results folder: records, and the trials of its plans that have none. What tables are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as other
from typing import Any

from gpubench.analysis.cpu_speed import Place, fastest_probes_ms, with_cpu_speed
from gpubench.analysis.repeats import with_spread
from gpubench.analysis.stored_groups import with_verdicts
from gpubench.analysis.varied import solo
from gpubench.basics.collector import collector_paused
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import listed
from gpubench.plan.plan import Job
from gpubench.plan.skips import Room
from gpubench.plan.state import out_of_memory, survey
from gpubench.report.choice import SHOW, Choice
from gpubench.report.forms import FORMS
from gpubench.report.table import Table, tables
from gpubench.results.counting import Counts, counting, newest, without_first_round
from gpubench.results.csv_tables import epochs_csv, trials_csv
from gpubench.results.plans import StoredPlan, stored_plans
from gpubench.results.rows import row_of
from gpubench.results.store import Results
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace


@dataclass(kw_only=True, slots=True)
class Contents:
    """A results folder, read."""

    rows: list[Row] = field(default_factory=list)
    made: Callable[[], list[Table]] = list
    """Makes the tables: not every reader asks for them, and of large folders they take longest."""
    problems: list[str] = field(default_factory=list)
    """Plans that could not be read, one line each."""
    superseded: set[str] = field(default_factory=set)
    """Trials whose variant, model or images were edited since: in `rows`, in no table."""
    elsewhere: set[str] = field(default_factory=set)
    """Planned trials that nothing is stored of because other parts of their plan measure them (`--shard`)."""
    plans: list[StoredPlan] = field(default_factory=list)
    """Those that can be read, oldest first."""
    _tables: list[Table] | None = None

    @property
    def tables(self) -> list[Table]:
        """One an experiment."""
        if self._tables is None:
            with collector_paused():
                self._tables = self.made()
        return self._tables

    def named(self, name: Callable[[Table], Table]) -> Contents:
        """The same, its tables under other names."""
        return other(self, made=lambda: [name(table) for table in self.tables], _tables=None)

    @property
    def planned(self) -> set[str]:
        """Experiments of which a plan is stored."""
        return {stored.plan.experiment.name for stored in self.plans}


def contents(
    results: Results,
    records: Sequence[Record],
    skips: Mapping[str, str] | None = None,
    choice: Choice = SHOW,
) -> Contents:
    """Rows and tables: every record that counts, then planned trials without one as `skipped` or `missing`.

    A trial that was measured under several allowances of CPUs has a row for each (`counting.counting`): a sweep shows
    those of its own, and the folder holds them beside the others, whichever came last.

    `skips`: trial id -> why a sweep that is under way, or has just ended, skipped it. `choice`: of columns.
    """
    skips = skips or {}
    chosen = counting(records)
    rows = _measured_rows(chosen, fastest_probes_ms(records))
    known_ids = {trial_id for trial_id, *_ in chosen}
    firstless = without_first_round(records)
    axes: dict[str, list[tuple[str, ...]]] = {}
    questions: dict[str, str] = {}
    members: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    planned: set[str] = set()
    plans, problems = stored_plans(results, records)
    ran_out = any(record.status == "oom" for record in records)
    oom = out_of_memory(newest(records).values() if ran_out else ())
    most_gpus = max((int(r.environment.get("gpu_count") or 0) for r in chosen.values()), default=0)
    here = {job.trial_id for stored in plans for job in stored.asked.jobs}
    elsewhere: set[str] = set()
    for stored in plans:
        parts = list(map(str, stored.parts))
        plan, room = stored.plan, stored.room
        if room is not None:  # since the plan was stored, the folder may have been taken to a larger machine
            room = Room(max(room.gpus, most_gpus), room.cpus)
        surveyed = survey(plan, {}, oom=oom, room=room, environment={})
        skipped = {item.unit.unit_id: item.why for item in surveyed if item.state == "skip"}
        name = plan.experiment.name
        questions[name] = plan.experiment.question or questions.get(name, "")
        known = axes.setdefault(name, [])
        known += [axis for axis in plan.experiment.varied if axis not in known]
        mine = members.setdefault(name, {})
        for unit in plan.units:
            why_unit = skipped.get(unit.unit_id)
            # The same fields under other ids: an edited variant, model or images. The latest plan counts.
            fields = [tuple(vars(job.trial).values()) for job in unit.jobs]
            mine[(unit.group, *fields)] = [job.trial_id for job in unit.jobs]
            for job in unit.jobs:
                planned.add(job.trial_id)
                if job.trial_id not in known_ids:
                    known_ids.add(job.trial_id)
                    why, lacks = skips.get(job.trial_id) or why_unit, _lacks(firstless.get(job.trial_id, 0))
                    if job.trial_id not in here:
                        elsewhere.add(job.trial_id)
                        why, lacks = None, f"another part of the plan measures it; this is {listed(parts)}"
                    rows.append(_planned_row(job, name, why, lacks))
    shown = {name: [one for ids in units.values() for one in ids] for name, units in members.items()}
    superseded = planned - {trial_id for ids in shown.values() for trial_id in ids}
    current = [row for row in rows if row.trial_id not in superseded]
    return Contents(
        rows=rows,
        made=lambda: tables(current, axes=axes, questions=questions, members=shown, choice=choice),
        problems=problems,
        superseded=superseded,
        elsewhere=elsewhere,
        plans=plans,
    )


def _measured_rows(chosen: Mapping[Counts, Record], fastest_ms: Mapping[Place, float]) -> list[Row]:
    """A row for each of these records, in their order, with what follows from others: verdicts, the CPU's speed."""
    measured = [row_of(record, key[-1]) for key, record in chosen.items()]
    return with_cpu_speed(with_verdicts(measured, solo(measured)), fastest_ms)


def _lacks(further: int) -> str | None:
    """Why a trial is missing of which there are so many records, of further rounds alone."""
    if not further:
        return None
    others = "another round does" if further == 1 else f"{further} other rounds do"
    return f"no record of its first round can be read, without which {others} not count"


def _planned_row(job: Job, experiment: str, why: str | None, lacks: str | None = None) -> Row:
    """The row of a planned trial of which no record counts. `why`: it is skipped. `lacks`: why it is missing, where
    that is not because it has yet to run."""
    row = replace(
        Row.of_columns(job.trial.model_dump(mode="json")),
        trial_id=job.trial_id,
        config_id=job.config_id,
        experiment=experiment,
        status="skipped" if why else "missing",
        reason=why or lacks,
    )
    if job.membership is None:
        return row
    return replace(
        row,
        group=job.membership.group,
        job=job.membership.name,
        group_id=job.membership.group_id,
        solo_id=job.membership.solo.trial_id,
    )


def trial_rows(found: Contents) -> list[Row]:
    """The rows of trials.csv: all that were measured or skipped, each repeat by itself."""
    return [row for row in with_spread(found.rows) if row.status != "missing"]


def write_contents(results: Results, records: Sequence[Record], found: Contents) -> None:
    """Writes trials.csv, epochs.csv and the tables in each form that has a file, of contents that were found already.

    One that can't be written keeps no other from it; then UnusableError.
    """
    texts = {
        "trials.csv": trials_csv(trial_rows(found)),
        "epochs.csv": epochs_csv(counting(records).values()),
        **{form.file: form.text(found.tables) for form in FORMS.values() if form.file},
    }
    failed = []
    for name, text in texts.items():
        try:
            results.write_table(name, text)
        except UnusableError as error:
            failed.append(str(error))
    if failed:
        more = f", nor can {len(failed) - 1} more" if len(failed) > 1 else ""
        raise UnusableError(f"{failed[0]}{more}")
