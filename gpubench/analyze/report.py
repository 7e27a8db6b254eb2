"""From a table of a folder to its report: the questions that it answers, and what must be known to believe them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpubench.analyze import sharing
from gpubench.analyze.folder import Table
from gpubench.analyze.frames import list_printed_columns, list_setting_columns
from gpubench.analyze.grid import (
    SHARING_COLUMNS,
    SOURCES,
    build_job_groups,
    build_network_groups,
    build_trial_groups,
    choose_figure_columns,
    list_labelled_rows,
    make_network_columns,
    make_report_columns,
    remove_table_columns,
    select_lines_of_rows,
    split_doubt_codes,
    split_head_and_row_fields,
    to_python_value,
)
from gpubench.analyze.table_rows import TableRows
from gpubench.analyze.view import WHOLE, TableView
from gpubench.core.findings import Finding, NetworkSizeFinding, SharingFinding, collect_job_groups
from gpubench.core.report import HeadingFacts, Report, ReportColumn, ReportWarning, RowGroup
from gpubench.schema.catalog import LOADS, RATE_UNITS
from gpubench.schema.doubts import find_doubt

AFFECTED_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "time": ("epoch_time_s", "images_per_s", *RATE_UNITS, "speedup", "slowdown", "time_to_top1_s", "work"),
    "energy": ("energy_j", "energy_to_top1_j", "images_per_joule", "edp_js"),
    "memory": ("memory_gib", "gpu_mem_growth_pct"),
    "accuracy": ("top1_pct", "epochs_to_top1", "time_to_top1_s"),
    "comparison": ("epoch_time_s", "images_per_s", *RATE_UNITS, "speedup", "slowdown", "work"),
}
"""What a warning is about -> the columns that it touches."""
HEADLINE: Mapping[str, tuple[Any, ...]] = {
    "command": (None,), "settings": (None,),
    "model": (), "width": (1,), "input_size": (), "variant": (), "batch_size": (), "precision": (),
    "execution": ("eager",), "optimizer": ("sgd",), "accumulate": (1,), "launch_cpu": ("free",),
    "strategy": ("single",), "gpu_mem_cap_mib": (), "window": (), "steps": (),
    "power_limit_w": (), "sm_clock_limit_mhz": (),
}  # fmt: skip
"""Fields that a heading tells where they are equal in all rows, and values of them that go without saying. All others
are for `--columns` and trials.csv."""
SHOWN_OTHERWISE = frozenset({"spread", "faster-together", "beyond-turns"})
"""Warnings of single processes that intervals, or the finding on sharing, tell of all of them: what one round claims
would stand there as if it were sure."""
FIRST_BATCH_PCT = 10.0
"""A first batch that is more of the epoch than this decides more than chance does."""
REPORTED_FIGURES = (
    "images_per_s", "epoch_time_s", "epoch_time_low_s", "epoch_time_high_s", "gpu_mem_mib", "epochs_to_top1",
    "time_to_top1_s", "energy_to_top1_j", "gmacs_per_image", "top1_pct", "cpu_s_per_epoch", "energy_j", "copy_ms",
    "forward_ms", "backward_ms", "comm_ms", "optimizer_ms",
)  # fmt: skip
"""Figures that words name and pictures show."""


def build_report(
    table: Table, rows: TableRows, findings: Sequence[Finding], view: TableView = WHOLE
) -> Report:
    """The report of one table. `view`: which columns and rows of it are shown."""
    question = findings[0].question if findings else "batch_size" if table.axis == "batch_size" else "devices"
    is_whole = not view.where and not view.has_added_columns
    columns, groups = build_report_table(table, rows, findings, question, view)
    shown = [column.name for column in columns]
    lines = list_labelled_rows(rows.summary[list(dict.fromkeys((*rows.varied, *REPORTED_FIGURES)))])
    warnings = collect_warnings(table, rows, shown)
    # Jobs that ran faster beside others than alone, so that their times alone are not reliable.
    spoilt_by = [group.spoilt_by for group in collect_job_groups(findings)]
    if spoilt := tuple(dict.fromkeys(job for job in spoilt_by if job is not None)):
        warnings.append(ReportWarning(code="faster-together", rows=spoilt))
    return Report(
        name=table.name,
        question=table.question,
        facts=collect_heading_facts(table, rows),
        columns=columns,
        groups=groups,
        findings=tuple(attach_warning_codes(finding, warnings) for finding in findings),
        warnings=tuple(warnings),
        labels={label: {field: row[field] for field in rows.varied} for label, row in lines},
        figures={label: {name: row[name] for name in REPORTED_FIGURES} for label, row in lines},
        missing=collect_missing_reasons(rows, (*REPORTED_FIGURES, *shown)),
        axis=table.axis,
        unlisted_rows=list_unlisted_rows(rows) if question == SharingFinding.question and is_whole else (),
        selection=view.make_selection(
            sum(len(row.labels) for group in groups for row in group.rows), len(rows.summary)
        ),
    )


def build_report_table(
    table: Table, rows: TableRows, findings: Sequence[Finding], question: str, view: TableView
) -> tuple[tuple[ReportColumn, ...], tuple[RowGroup, ...]]:
    """Columns and lines: a line a group of jobs, a network, or, where columns are asked for, a row."""
    first = findings[0] if findings else None
    order = view.select_rows(rows.summary)
    lines: tuple[RowGroup, ...] | None = None
    if isinstance(first, SharingFinding) and not (order and set(order) <= set(list_unlisted_rows(rows))):
        columns, lines = SHARING_COLUMNS, build_job_groups(rows.summary, first)
    elif isinstance(first, NetworkSizeFinding):
        columns = make_network_columns(rows.summary, first)
        lines = build_network_groups(rows.summary, first)
    if lines is not None and not view.has_added_columns:
        lines = select_lines_of_rows(lines, order, is_sorted=bool(view.sort))
        return remove_table_columns(columns, lines, view.removed)
    alone = rows.summary[rows.summary["group"].isna()]
    if view.has_added_columns or alone.empty:
        alone = rows.summary
    has_jobs = bool(alone["group"].notna().any())
    varied = (*(("group", "job") if has_jobs else ()), *rows.varied)
    axis = None if view.sort or has_jobs else table.axis
    heads, labels = split_head_and_row_fields(varied, axis, table.tied)
    if "settings" in labels:  # each in a column of its own
        settings = [c.name for c in list_setting_columns(rows.runs) if alone[c.name].nunique() > 1]
        at = labels.index("settings")
        labels = (*labels[:at], *settings, *labels[at + 1 :])
    usual = choose_figure_columns(alone, question, has_all=view.has_all_columns)
    printed = [column.name for column in list_printed_columns(rows.runs)]
    names = view.choose_columns((*usual, *printed))
    alone = alone.loc[[label for label in order if label in alone.index]]
    columns = make_report_columns(alone, labels, names)
    groups = build_trial_groups(
        alone, axis, heads, labels, names, findings, lambda code: is_weakening_shown_figure(code, names)
    )
    return remove_table_columns(columns, groups, view.removed)


def list_unlisted_rows(rows: TableRows) -> tuple[int, ...]:
    """Trials alone with which no group of jobs is compared."""
    solos = set(sharing.find_solo_rows(rows).values())
    return tuple(row for row in rows.summary.index[~rows.is_job] if row not in solos)


def collect_heading_facts(table: Table, rows: TableRows) -> HeadingFacts:
    """What stands above the table."""
    summary = rows.summary
    ended = summary[summary["repeats"] > 0]
    hardware = summary[["gpu_name", "gpu_count", "cpu_name", "cpu_count"]].drop_duplicates()
    machines = dict.fromkeys(describe_machine(row) for _, row in list_labelled_rows(hardware))
    images = ended["images_per_epoch"].dropna().unique()
    targets = summary["until_top1"].dropna().unique()
    figures = summary["until"].dropna().unique()
    return HeadingFacts(
        fixed={
            field: table.fixed[field]
            for field, usual in HEADLINE.items()
            if field in table.fixed and table.fixed[field] not in usual
        },
        machines=tuple(name for name in machines if name),
        images=int(images[0]) if len(images) == 1 else None,
        processes=(int(ended["repeats"].min()), int(ended["repeats"].max())) if len(ended) else (0, 0),
        is_published=bool((ended["source"] != "measured").all()) if len(ended) else False,
        time_kind="load steps" if summary["model"].isin(LOADS).all() else table.kind,
        target_pct=float(targets[0]) if len(targets) == 1 else None,
        until=str(figures[0]) if len(figures) == 1 else None,
    )


def collect_missing_reasons(rows: TableRows, names: Sequence[str]) -> dict[int, dict[str, str]]:
    """Row -> which of these columns are empty in it, each with the first reason that a record of it holds.

    Of rows without a process that ended ok their lines tell why.
    """
    sources = {name: source for name in names if (source := SOURCES.get(name, name)) in rows.summary}
    is_empty = rows.summary[list(dict.fromkeys(sources.values()))].isna().to_dict()
    reasons: dict[int, dict[str, str]] = {}
    for row, missing in zip(rows.ended_processes["row"], rows.ended_processes["missing"], strict=True):
        empty = {
            name: missing[source]
            for name, source in sources.items()
            if missing and source in missing and is_empty[source][row]
        }
        if empty:
            reasons[int(row)] = {**empty, **reasons.get(int(row), {})}
    return reasons


def describe_machine(row: Mapping[str, Any]) -> str:
    """`4 × NVIDIA H200, 64 CPUs`; a CPU by its name where no GPU was there."""
    gpu, gpus, cpu, cpus = (
        to_python_value(row.get(name)) for name in ("gpu_name", "gpu_count", "cpu_name", "cpu_count")
    )
    parts = [f"{gpus} × {gpu}" if gpus else str(gpu)] if gpu else [str(cpu)] if cpu else []
    return ", ".join([*parts, *([f"{cpus} CPUs"] if cpus else [])])


def collect_warnings(table: Table, rows: TableRows, shown: Collection[str]) -> list[ReportWarning]:
    """A kind of warning each, with the rows that have it: only what touches a column that is shown."""
    touched: dict[str, list[int]] = {}
    for label, codes in zip(rows.summary.index, rows.summary["doubts"], strict=True):
        for code in split_doubt_codes(codes):
            touched.setdefault(code, []).append(int(label))
    warnings = [
        ReportWarning(code=code, rows=tuple(labels))
        for code, labels in touched.items()
        if is_weakening_shown_figure(code, shown)
    ]
    return [*find_evidence_warnings(table, rows), *warnings]


def attach_warning_codes(finding: Finding, warnings: Sequence[ReportWarning]) -> Finding:
    """The finding with the codes of the warnings that touch its rows."""
    return replace(
        finding, warnings=tuple(w.code for w in warnings if not set(w.rows).isdisjoint(finding.rows))
    )


def is_weakening_shown_figure(code: str, shown: Collection[str]) -> bool:
    """Whether a warning weakens a figure that is shown, and nothing else that is shown tells it.

    How far processes lie apart is what intervals tell; what only earlier versions raised came from how they measured.
    """
    doubt = find_doubt(code)
    if code in SHOWN_OTHERWISE or doubt.raised_by == "earlier" or not doubt.serious:
        return False
    return any(set(AFFECTED_COLUMNS[about]) & set(shown) for about in doubt.about)


def find_evidence_warnings(table: Table, rows: TableRows) -> list[ReportWarning]:
    """What weakens all answers: one process a row, a log's one figure a row, a first batch that is much of an epoch."""
    ended = rows.summary[rows.summary["repeats"] > 0]
    warnings: list[ReportWarning] = []
    if not len(ended):
        return warnings
    labels = tuple(int(label) for label in ended.index)
    single = tuple(int(label) for label in ended.index[ended["repeats"] == 1])
    is_target = bool(ended["until_top1"].notna().any())
    if table.kind == "published log":
        warnings.append(ReportWarning(code="published-log", rows=labels))
    elif is_target:
        warnings += [ReportWarning(code="one-seed", rows=labels)] if rows.seeds == 1 else []
    elif single and not table.is_of_tries:  # memory, of which tries tell, is the same in each process
        noise = math.expm1(rows.find_largest_noise(*single) or 0.0)
        code = "one-process" if single == labels else "single-process"
        warnings.append(ReportWarning(code=code, rows=single, figures={"noise": noise}))
    if table.kind == "whole epochs":
        share = 100 * ended["first_batch_s"].astype("float64") / ended["epoch_time_s"].astype("float64")
        large = share[share > FIRST_BATCH_PCT]
        if len(large) and ended["batch_size"].nunique() > 1:
            warnings.append(
                ReportWarning(
                    code="first-batch",
                    rows=tuple(int(label) for label in large.index),
                    figures={"low": float(large.min()) / 100, "high": float(large.max()) / 100},
                )
            )
    return warnings
