"""A results folder, read: processes as `Runs`, configurations as `Summary`, and which rows are of which table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from dataclasses import replace as replace_folder
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.analyze import sharing
from gpubench.analyze.derive import LABELS, RowArrangement, build_table_summary, classify_overlap_gains
from gpubench.analyze.frames import (
    Members,
    Runs,
    Summary,
    build_runs,
    is_epoch_time_scattered,
    list_printed_columns,
    list_setting_columns,
    number_runs_by_configuration,
)
from gpubench.analyze.series import EncodedFields
from gpubench.analyze.table_rows import TableRows, estimate_noise_by_row, list_machine_columns
from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean_line, format_list
from gpubench.plan.max_batch import is_try_experiment
from gpubench.plan.plan import Job, Plan
from gpubench.plan.state import collect_out_of_memory, plan_first_round
from gpubench.results.counting import (
    count_attempts_without_first_round,
    key_records_as_counting,
    select_counting_of_first_round,
    select_counting_records,
)
from gpubench.results.home import list_results_folders_in, make_no_results_error
from gpubench.results.plans import StoredPlan, read_stored_plans
from gpubench.results.rows import make_row
from gpubench.results.store import Results
from gpubench.schema.catalog import RATE_UNITS
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import OF_GROUPS, TRIAL, Column
from gpubench.schema.doubts import SLOW_CPU_PCT
from gpubench.schema.record import Record
from gpubench.schema.row import Row, replace
from gpubench.stats.decisions import decide_claims


@dataclass(frozen=True, kw_only=True)
class Table(RowArrangement):
    """One experiment of a folder, of one kind of time: unlike kinds are never compared."""

    name: str
    """The experiment's, with the kind of time where the folder holds two of it."""
    experiment: str
    kind: str
    """`steady rate`, `whole epochs` or `published log` (epoch_times.Kind)."""
    question: str
    """The experiment's own, in words; empty where it asks none."""
    rows: tuple[int, ...]
    """Labels of the summary, in the order of reading: series by series along the axis, then the jobs of groups."""
    runs: tuple[int, ...]
    """Labels of the runs that these are of, in planned order."""


@dataclass(frozen=True, kw_only=True)
class Folder:
    """A results folder, read. `Runs`, `Summary` and `Members` are described in `analyze.frames`."""

    name: str
    path: Path
    runs: Runs
    summary: Summary
    """The rows of all tables, one table after the other."""
    members: Members
    """Which runs each row of the summary is of."""
    tables: tuple[Table, ...]
    problems: tuple[str, ...]
    """What is wrong with records and plans that can't be read, a line each."""
    records: tuple[Record, ...]
    """The attempts that count, in the order of the first lines of `runs`."""
    plans: tuple[StoredPlan, ...]
    """Those that can be read, oldest first."""
    attempts: tuple[Record, ...]
    """Every record that can be read, those that no longer count among them."""

    def select_table_rows(self, table: Table) -> Summary:
        """The rows of one table, in their order."""
        return self.summary.loc[table.rows[0] : table.rows[-1]]

    def select_ok_runs_of_row(self, row: int) -> Runs:
        """The runs of a row of the summary that ended ok."""
        members = self.members
        return self.runs.loc[members.loc[(members["row"] == row) & members["is_ok"], "run"]]


# ---- reading ----


def read_folder(path: Path, tell: Callable[[str], None]) -> Folder:
    """A results folder with all that can be read of it.

    `tell` is given one line for each record or plan that can't be read. Raises UnusableError where nothing can.
    """
    problems: list[str] = []

    def report_problem(line: str) -> None:
        problems.append(clean_line(line))
        tell(line)

    results = Results(path)
    records = read_folder_records(results, report_problem)
    with pause_garbage_collector():
        return build_folder_from_records(results, records, problems, report_problem)


def read_folders(paths: Sequence[Path], tell: Callable[[str], None]) -> list[Folder]:
    """These folders, each once, in the order in which they are named; several with names of their own.

    Of several, one that can't be read is told, and the others are read. Raises UnusableError where none can.
    `paths`: at least one.
    """
    folders: list[Folder] = []
    errors: list[UnusableError] = []
    distinct: dict[Path, Path] = {}
    for path in paths:
        distinct.setdefault(path.resolve(), path)
    for path in distinct.values():
        try:
            folders.append(read_folder(path, tell))
        except UnusableError as error:
            errors.append(error)
    for failure in errors if folders else errors[:-1]:
        tell(str(failure))
    if not folders:
        raise errors[-1]
    counts = Counter(folder.name for folder in folders)
    return [
        folder if counts[folder.name] == 1 else replace_folder(folder, name=clean_line(str(folder.path)))
        for folder in folders
    ]


def read_folder_records(results: Results, tell: Callable[[str], None]) -> list[Record]:
    """The records of a folder that can be read. Raises UnusableError where there are none."""
    if not results.folder.is_dir():
        raise make_no_results_error(results.folder)
    lines: list[str] = []
    records = results.read_records(lines.append)
    for line in lines:
        tell(line)
    if records:
        return records
    if inside := list_results_folders_in(results.folder):
        names = format_list([folder.name for folder in inside])
        raise UnusableError(f"{results.folder} holds results folders, and is none; name one of them: {names}")
    raise UnusableError(f"{results.folder} holds no record{' that can be read' if lines else 's'}")


@dataclass(kw_only=True, slots=True)
class PlannedRows:
    """What the stored plans say of a folder's trials."""

    rows: list[Row] = field(default_factory=list)
    """Of trials without a record."""
    axes: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    questions: dict[str, str] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    """Experiment -> ids of its trials in planned order."""
    superseded: set[str] = field(default_factory=set)
    """Trials whose variant, model or images were edited since: they are in no table."""
    elsewhere: set[str] = field(default_factory=set)
    """Trials that nothing is stored of because other parts of their plan measure them."""


def build_folder_from_records(
    results: Results,
    records: Sequence[Record],
    problems: list[str],
    tell: Callable[[str], None],
    skips: Mapping[str, str] | None = None,
) -> Folder:
    """A folder of these records: all attempts that can be read.

    `skips`: trial id -> why a sweep that is under way, or has just ended, skipped it.
    """
    chosen = select_counting_records(records)
    plans, wrong = read_stored_plans(results, records)
    for line in wrong:
        tell(line)
    planned = _make_planned_rows(plans, records, list(chosen.values()), skips or {})
    rows = [make_row(record, key[-1]) for key, record in chosen.items()]
    return build_folder_from_rows(
        results.folder,
        [*rows, *planned.rows],
        planned,
        problems=tuple(problems),
        records=tuple(chosen.values()),
        plans=tuple(plans),
        attempts=tuple(records),
    )


def build_folder_from_plan(
    path: Path, plan: Plan, records: Sequence[Record], skips: Mapping[str, str]
) -> Folder:
    """One plan's own trials, of these records alone: it looks at nothing on disk, for a sweep makes it again and again.

    `path`: of the results folder. `skips`: trial id -> why the sweep skipped it.
    """
    name = plan.experiment.name
    jobs = {job.trial_id: job for job in plan.jobs}
    chosen = select_counting_records(record for record in records if record.trial_id in jobs)
    measured = {record.trial_id for record in chosen.values()}
    planned = PlannedRows(
        rows=[
            _make_planned_row(job, name, skips.get(id_)) for id_, job in jobs.items() if id_ not in measured
        ],
        axes={name: list(plan.experiment.varied)},
        questions={name: plan.experiment.question},
        members={name: list(jobs)},
    )
    rows = [replace(make_row(record, key[-1]), experiment=name) for key, record in chosen.items()]
    return build_folder_from_rows(
        path, [*rows, *planned.rows], planned, records=tuple(chosen.values()), attempts=tuple(records)
    )


def make_rows_with_folder_facts(records: Sequence[Record], held: Iterable[Record]) -> dict[str, Row]:
    """Trial id -> the row of each of these attempts, with the doubts and the overlap that follow from other rows.

    `records`: all jobs of any group, and of no trial two attempts. `held`: what else is stored.
    """
    if not records:
        return {}
    held = list(held)
    # Of a thousand rows few bear on these: their repeats.
    configurations = {record.config_id for record in records}
    chosen = select_counting_records(record for record in held if record.config_id in configurations)
    completed = key_records_as_counting(records)
    chosen |= completed  # one that ended badly after a better one counts nowhere else
    rows = [make_row(record, key[-1]) for key, record in chosen.items()]
    runs = build_runs(rows)
    _add_cpu_speed(runs, [*records, *held])
    _add_sharing_columns(runs)
    runs["doubts"] = _join_spread_doubts(runs)
    derived = runs[["doubts", "cpu_speed_pct", "sharing", "full_together"]].astype(object)
    values = derived.where(derived.notna(), None).itertuples(index=False)
    return {
        row.trial_id: replace(row, doubts=doubts, cpu_speed_pct=speed, sharing=sharing, full_together=full)
        for key, row, (doubts, speed, sharing, full) in zip(chosen, rows, values, strict=True)
        if key in completed
    }


def build_folder_from_rows(
    path: Path,
    rows: Sequence[Row],
    planned: PlannedRows | None = None,
    *,
    problems: tuple[str, ...] = (),
    records: tuple[Record, ...] = (),
    plans: tuple[StoredPlan, ...] = (),
    attempts: tuple[Record, ...] = (),
) -> Folder:
    """The folder of these rows, a process or a planned trial each. `planned`: what plans say of them."""
    planned = planned or PlannedRows()
    runs = build_runs(rows)
    runs["superseded"] = runs["trial_id"].isin(planned.superseded)
    runs["elsewhere"] = runs["trial_id"].isin(planned.elsewhere)
    without_first = count_attempts_without_first_round(attempts)
    further = runs["trial_id"].map(without_first).where(runs["status"].isin(["missing", "skipped"]))
    runs["further_rounds"] = further.fillna(0).astype("int64")
    _add_cpu_speed(runs, attempts)
    _add_sharing_columns(runs)
    tables, summary, members = _build_tables(runs, planned)
    folder = Folder(
        name=clean_line(path.resolve().name),
        path=path,
        runs=runs,
        summary=summary,
        members=members,
        tables=tuple(tables),
        problems=problems,
        records=records,
        plans=plans,
        attempts=attempts,
    )
    has_jobs = bool(summary["group"].notna().any())
    return replace_folder(folder, summary=make_summary_with_sharing(folder)) if has_jobs else folder


def _make_planned_rows(
    plans: Sequence[StoredPlan], records: Sequence[Record], chosen: Sequence[Record], skips: Mapping[str, str]
) -> PlannedRows:
    """What the plans say. `chosen`: the records that count. `skips`: trial id -> why a sweep skipped it."""
    planned = PlannedRows()
    known_ids = {record.trial_id for record in chosen}
    ran_out = any(record.status == "oom" for record in records)
    oom = collect_out_of_memory(select_counting_of_first_round(records).values() if ran_out else ())
    ids_here = {job.trial_id for stored in plans for job in stored.share.jobs}
    units: dict[str, dict[tuple[Any, ...], list[str]]] = {}
    every_id: set[str] = set()
    for stored in plans:
        plan = stored.plan
        surveyed = plan_first_round(plan, {}, oom=oom, room=stored.room, environment={})
        skipped = {item.unit.unit_id: item.why for item in surveyed if item.state == "skip"}
        name = plan.experiment.name
        planned.questions[name] = plan.experiment.question or planned.questions.get(name, "")
        axes = planned.axes.setdefault(name, [])
        axes += [axis for axis in plan.experiment.varied if axis not in axes]
        for unit in plan.units:
            # The same fields under other ids: an edited variant, model or images. The latest plan counts.
            fields = [job.trial for job in unit.jobs]
            ids = [job.trial_id for job in unit.jobs]
            units.setdefault(name, {})[(unit.group, *fields)] = ids
            every_id.update(ids)
            for job in unit.jobs:
                if job.trial_id in known_ids:
                    continue
                known_ids.add(job.trial_id)
                if job.trial_id not in ids_here:
                    planned.elsewhere.add(job.trial_id)
                why = skips.get(job.trial_id) or skipped.get(unit.unit_id)
                why = why if job.trial_id in ids_here else None
                planned.rows.append(_make_planned_row(job, name, why))
    planned.members = {
        name: [trial for ids in by_fields.values() for trial in ids] for name, by_fields in units.items()
    }
    planned.superseded = every_id - {trial for ids in planned.members.values() for trial in ids}
    return planned


def _make_planned_row(job: Job, experiment: str, why: str | None) -> Row:
    """The row of a planned trial of which no record counts. `why`: it is skipped."""
    row = replace(
        Row.make_from_columns(job.trial.as_json_dict()),
        trial_id=job.trial_id,
        config_id=job.config_id,
        experiment=experiment,
        status="skipped" if why else "missing",
        reason=why,
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


def _add_cpu_speed(runs: Runs, records: Iterable[Record]) -> None:
    """Fills `cpu_speed_pct`, with its doubt where the CPU was slow, against the fastest of the whole folder.

    Jobs of groups are held against each other: their neighbours' processes take the other halves of the cores.
    """
    probes = [
        (record.environment.get("host"), record.group is not None, probe_ms)
        for record in records
        if (probe_ms := record.result.get("cpu_probe_ms")) is not None
    ]
    if not probes:
        return
    keys = ["host", "is_job"]
    fastest = pd.DataFrame(probes, columns=[*keys, "fastest"]).groupby(keys, dropna=False)["fastest"].min()
    places = pd.DataFrame({"host": runs["host"], "is_job": runs["group"].notna()})
    speed = 100 * places.join(fastest, on=keys)["fastest"] / runs["cpu_probe_ms"]
    runs["cpu_speed_pct"] = speed
    slow = speed < SLOW_CPU_PCT
    runs.loc[slow, "doubts"] = runs.loc[slow, "doubts"].map(lambda codes: join_doubt_code(codes, "slow-cpu"))


def join_doubt_code(codes: Any, code: str) -> str:
    """A cell of doubts with one more."""
    known = codes.split("+") if isinstance(codes, str) else []
    return "+".join(sorted({*known, code} - {""}))


SHARES_OF_SPACE = ("cpu", "gpu memory", "input", "power")
"""Watched resources that can be full. Of others, shares of time, earlier versions said so wrongly."""


def _add_sharing_columns(runs: Runs) -> None:
    """Fills what this version says of groups as any version stored them: `sharing` and `full_together`."""
    facts = runs["together"]
    gain = runs["overlap_gain"]
    runs["sharing"] = classify_overlap_gains(gain)
    has_resources = np.array([bool(known.get("resources")) for known in facts], dtype=bool)
    watched = has_resources & gain.notna() & runs["group_id"].fillna("").ne("")
    full = [join_full_resources(known) for known in facts[watched]]
    runs["full_together"] = runs["full_together"].astype(object)
    runs.loc[watched, "full_together"] = pd.Series(full, index=runs.index[watched], dtype=object)


def join_full_resources(facts: Mapping[str, Any]) -> str | None:
    """What was full while the jobs ran together, as the column `full_together` has it."""
    names = [
        known["name"]
        for known in facts["resources"]
        if known["full_together"] and known["name"] in SHARES_OF_SPACE
    ]
    return "+".join(name.replace(" ", "-") for name in names) or None


# ---- tables ----


def _build_tables(runs: Runs, planned: PlannedRows) -> tuple[list[Table], Summary, Members]:
    tables: list[Table] = []
    summaries: list[Summary] = []
    members: list[Members] = []
    label = 0
    for name, places in _order_runs_by_experiment(runs, planned).items():
        kind_by_run = _find_table_kinds(runs.iloc[places])
        kinds = list(dict.fromkeys(kind_by_run))
        for kind in kinds:
            alike = runs.iloc[places[(kind_by_run == kind).to_numpy()]]
            title = clean_line(f"{name}, {kind}" if len(kinds) > 1 else name)
            summary, table_members, arrangement = build_table_summary(
                alike,
                planned.axes.get(name, []),
                is_of_tries=is_try_experiment(name, alike["steps"].fillna(0)),
            )
            summary.index += label
            for column in LABELS:
                summary[column] += label
            table_members["row"] += label
            summary.insert(0, "table", len(tables))
            tables.append(
                Table(
                    name=title, experiment=name, kind=kind, question=clean_line(planned.questions.get(name, "")),
                    rows=tuple(summary.index.tolist()), runs=tuple(alike.index.tolist()), **vars(arrangement),
                )
            )  # fmt: skip
            label += len(summary)
            summaries.append(summary)
            members.append(table_members)
    return tables, pd.concat(summaries), pd.concat(members, ignore_index=True)


def _find_table_kinds(runs: Runs) -> pd.Series[Any]:
    """The kind of time of the table that each run of an experiment is in.

    What a command told of epochs is known once it has run, so all are in the table of those that have. Trainings beside
    commands are there with them: nothing is compared with a command but itself.
    """
    is_command = runs["command"].notna()
    measured = runs["kind"][is_command & runs["epoch_time_source"].notna()].unique()
    if len(measured) > 1 or not is_command.any():
        return runs["kind"]
    kind = measured[0] if len(measured) else runs["kind"][is_command].iloc[0]
    return pd.Series(kind, index=runs.index, dtype=object)


def _order_runs_by_experiment(runs: Runs, planned: PlannedRows) -> dict[str, npt.NDArray[np.int64]]:
    """Experiment -> the places of its runs that count: those that its plans list in their order, then the others."""
    is_current = ~runs["superseded"].to_numpy()
    listed = {trial for ids in planned.members.values() for trial in ids}
    is_unlisted = is_current & ~runs["trial_id"].isin(listed).to_numpy()
    order = {}
    for name in dict.fromkeys([*planned.members, *runs["experiment"][is_current]]):
        places = {trial: place for place, trial in enumerate(planned.members.get(name, ()))}
        place = runs["trial_id"].map(places).to_numpy("float64")
        planned_places = np.flatnonzero(is_current & ~np.isnan(place))
        unlisted = np.flatnonzero(is_unlisted & (runs["experiment"] == name).to_numpy())
        order[name] = np.concatenate(
            [
                planned_places[np.argsort(place[planned_places], kind="stable")],
                _sort_unplanned_runs(runs, unlisted),
            ]
        )
    return order


def _sort_unplanned_runs(runs: Runs, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Places of runs that no plan lists, by what varies among them: records come in no useful order."""
    if len(places) < 2:
        return places
    unplanned = runs.iloc[places]
    keys = [
        unplanned[column].map(_make_sort_key)
        for column in ("group", *EncodedFields.from_frame(unplanned).list_varied_fields(), "repeat")
    ]
    return places[sorted(range(len(unplanned)), key=list(zip(*keys, strict=True)).__getitem__)]


def _make_sort_key(value: Any) -> tuple[int, Any]:
    if isinstance(value, (list, tuple)):
        return (2, format_cell(value))
    if pd.isna(value):
        return (0, 0)
    return (1, value) if isinstance(value, (int, float, np.number, np.bool_)) else (2, format_cell(value))


def make_table_rows(folder: Folder, table: Table) -> TableRows:
    """The rows of a table of a folder."""
    summary = folder.select_table_rows(table)
    members = folder.members[folder.members["row"].isin(table.rows)]
    return TableRows(
        summary=summary,
        runs=folder.runs.loc[members["run"]].assign(row=members["row"].to_numpy()),
        noise=estimate_noise_by_row(summary),
        **{attribute.name: getattr(table, attribute.name) for attribute in fields(RowArrangement)}
        | {"varied": (*list_machine_columns(summary)[:1], *table.varied)},
    )


def make_summary_with_sharing(folder: Folder) -> Summary:
    """The summary with `sharing` as the question of sharing answers it: none, some or full overlap, else unknown."""
    gain = folder.summary["overlap_gain"]
    words: dict[int, str] = {}
    for table in folder.tables:
        rows = make_table_rows(folder, table)
        for finding in sharing.make_findings(rows, decide_claims(sharing.make_claims(rows))):
            words |= {
                row: group.overlaps[0] if len(group.overlaps) == 1 else "unknown"
                for group in finding.groups
                for row in group.rows
                if group.work is not None or pd.notna(gain[row])
            }
    return folder.summary.assign(sharing=pd.Series(words, index=gain.index, dtype=object))


# ---- CSVs ----

BASE_COLUMNS = (
    "gpu_mem_mib", "gpu_mem_growth_pct", "cpu_util_pct", "epoch_time_s", "epoch_time_growth_pct", "top1_pct",
    "status", "energy_j", "images_per_joule", "edp_js", "speedup", "strong_efficiency_pct", "weak_efficiency_pct",
    "images_per_s", "epoch_time_iqr_s", "epoch_time_source", "doubts",
)  # fmt: skip
"""Columns of table.csv that are there, empty or not; new ones last, so that a sheet that refers to them works on."""
JOB_COLUMNS = tuple(name for name in OF_GROUPS if not name.endswith("_id"))
"""There where any row is a job of a group."""
MEASURED_COLUMNS = (
    "data_wait_pct", "copy_ms", "forward_ms", "backward_ms", "comm_ms", "comm_hidden_ms", "optimizer_ms",
    "comm_pct", "comm_mib_per_step", "slowest_rank", "breakdown_cost_pct", "gpu_util_pct", "epochs_to_top1",
    "time_to_top1_s", "energy_to_top1_j",
)  # fmt: skip
"""The other figures that a printed table may show."""
INTERVAL_COLUMNS = (
    "epoch_time_low_s", "epoch_time_high_s", "between_pct", "within_pct",
    "epoch_time_growth_low_pct", "epoch_time_growth_high_pct",
    "cost_growth_pct", "cost_growth_low_pct", "cost_growth_high_pct", "speedup_low", "speedup_high",
    "strong_efficiency_low_pct", "strong_efficiency_high_pct",
    "weak_efficiency_low_pct", "weak_efficiency_high_pct", "images_per_joule_low", "images_per_joule_high",
    "top1_crossing_s", "top1_crossing", "top1_crossing_low_s", "top1_crossing_high_s",
)  # fmt: skip
"""How sure figures and ratios are, and when a top-1 was crossed. Always there, at the end."""
JOB_INTERVAL_COLUMNS = ("slowdown_low", "slowdown_high", "overlap_gain_low", "overlap_gain_high")
"""Likewise, where any row is a job of a group."""


def make_trials_csv_rows(folder: Folder) -> Runs:
    """The lines of trials.csv: the runs that were measured or skipped."""
    runs = folder.runs.assign(doubts=_join_spread_doubts(folder.runs))
    return runs[runs["status"] != "missing"]


def _join_spread_doubts(runs: Runs) -> pd.Series[Any]:
    """The doubts of each run, that about processes far apart among them."""
    doubts: pd.Series[Any] = runs["doubts"].mask(
        has_spread_epoch_times(runs), runs["doubts"].map(lambda codes: join_doubt_code(codes, "spread"))
    )
    return doubts


def has_spread_epoch_times(runs: Runs) -> pd.Series[Any]:
    """Whether each run ended ok and is one of those whose epoch times lie far apart from process to process."""
    order = number_runs_by_configuration(runs)
    number = pd.Series(order["row"].to_numpy(), index=runs.index[order["position"]]).loc[runs.index]
    is_timed = (runs["status"] == "ok") & (runs["kind"] != "steady rate")
    scattered = is_epoch_time_scattered(runs["epoch_time_s"].where(is_timed).set_axis(pd.Index(number)))
    return is_timed & number.isin(scattered.index[scattered])


def make_table_csv_rows(folder: Folder) -> Summary:
    """The rows of all tables as table.csv has them: each with its table's name, and how all of its runs ended."""
    summary = folder.summary
    names = {number: table.name for number, table in enumerate(folder.tables)}
    return summary.assign(experiment=summary["table"].map(names), status=summary["endings"])


def list_columns_of_commands(folders: Sequence[Folder]) -> dict[str, Column]:
    """The columns that users named in any of these folders: settings of commands, and figures that these printed.

    One that holds text anywhere holds text.
    """
    columns: dict[str, Column] = {}
    for list_columns in (list_setting_columns, list_printed_columns):
        for column in (column for folder in folders for column in list_columns(folder.runs)):
            if column.name not in columns or column.holds is str:
                columns[column.name] = column
    return columns


def list_table_csv_columns(folders: Sequence[Folder]) -> list[str]:
    """The columns of table.csv. A field that varies in one table is filled in for the others, too."""
    parts = [(table, folder.select_table_rows(table)) for folder in folders for table in folder.tables]
    places = {name for _, rows in parts for name in list_place_columns(rows)}
    varied = {field for table, _ in parts for field in table.varied}
    names = ["experiment", *(name for name in ("gpu_name", "cpu_name", "group", "job") if name in places)]
    names += [column.name for column in TRIAL if column.name in varied]
    names += ["repeats"] if any((rows["repeats"] > 1).any() for _, rows in parts) else []
    has_jobs = any(rows["group"].notna().any() for _, rows in parts)
    names += [
        *BASE_COLUMNS,
        *(JOB_COLUMNS if has_jobs else ()),
        *MEASURED_COLUMNS,
        *INTERVAL_COLUMNS,
        *(JOB_INTERVAL_COLUMNS if has_jobs else ()),
        *(name for name in RATE_UNITS if any(rows[name].notna().any() for _, rows in parts)),
    ]
    return list(dict.fromkeys(names))


def list_place_columns(rows: Summary) -> list[str]:
    """Columns that say where rows were measured: the models where there are several, group and job."""
    columns = list_machine_columns(rows)
    columns += ["group"] if rows["group"].nunique(dropna=False) > 1 else []
    return columns + (["job"] if rows["group"].notna().any() else [])
