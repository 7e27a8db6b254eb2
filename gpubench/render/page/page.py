"""The page: everything that it needs stands in it, so that it opens without a network, from a mail or a disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup

import gpubench
from gpubench.analyze.folder import Folder, Table, make_table_rows
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.report import build_report
from gpubench.analyze.trace import make_recommended_trace
from gpubench.analyze.view import TableView
from gpubench.basics.quoted import clean_line
from gpubench.core.report import Report
from gpubench.render import words
from gpubench.render.page.pictures import format_color_css, separate_picture_text
from gpubench.render.page.plans import DownloadablePlan, list_downloadable_plans
from gpubench.render.page.table import make_table
from gpubench.render.page.tiles import list_tiles
from gpubench.render.pictures.pictures import list_pictures
from gpubench.schema.columns import TABLE_BY_NAME
from gpubench.schema.kinds import parse_moment

MOST_ROWS = 200
"""Of a table: `gpubench export --format csv` has all. With Vega, which takes 0.8 MB, a page stays below 3 MB."""
MOST_LINES = 200
"""Claims of a finding, warnings and the like: `gpubench table` has all."""
LIBRARIES = ("vega-5.33.1.min.js", "vega-lite-5.21.0.min.js")
LICENCES = {"Vega 5.33.1": "vega-LICENSE.txt", "Vega-Lite 5.21.0": "vega-lite-LICENSE.txt"}
ALL_COLUMNS = TableView(has_all_columns=True)
Section = dict[str, Any]
"""One experiment on the page, for the template."""


def make_page(folders: Sequence[Folder], _: object = None) -> bytes:
    """One page of all tables of these folders, as UTF-8."""
    sources = [(folder, table) for folder in folders for table in folder.tables]
    reports = make_folder_reports(folders)
    sections = [
        make_section(folder, table, report) for (folder, table), report in zip(sources, reports, strict=True)
    ]
    text = _make_jinja_environment().get_template("page.html.jinja").render(
        title=format_title(folders, sections),
        provenance=describe_provenance(folders, reports),
        names=", ".join(folder.name for folder in folders),
        sections=sections,
        nothing=words.NO_REPORT,
        claim_headings=words.WHY_HEADINGS,
        claim_note=words.WHY_NOTE,
        words=words,
        version=gpubench.__version__,
        style=Markup(format_color_css() + _read_package_file("page/page.css")),
        libraries=[Markup(_read_package_file(f"vega/{name}")) for name in LIBRARIES],
        script=Markup(_read_package_file("page/page.js")),
        licences={name: _read_package_file(f"vega/{file}") for name, file in LICENCES.items()},
    )  # fmt: skip
    return text.encode(errors="replace")


def make_section(folder: Folder, table: Table, report: Report) -> Section:
    """All that the page tells of one table."""
    finding = report.findings[0] if report.findings else None
    problems: list[str] = []
    trace = make_recommended_trace(folder, report, problems.append)
    plans = list_downloadable_plans(folder, table)
    advice, option = words.advise_option(report, finding) if finding else ("", "")
    wide = build_report(table, make_table_rows(folder, table), report.findings, ALL_COLUMNS)
    lines = words.list_sentences(report)
    warnings = [line.text for line in lines if line.kind == "warning"]
    return {
        "report": report,
        "question": words.format_question(report),
        "heading": words.format_answer_heading(report, finding)
        if finding
        else clean_line(report.name, words.HEADING_LETTERS),
        "below": words.format_answer_details(report, finding) if finding else words.NO_ANSWER,
        "word": finding.word if finding else "",
        "certainty": words.name_certainty(report, finding) if finding else "",
        "advice": advice,
        "command": f"{_choose_recommended_plan(plans, folder, report).command} {option}"
        if plans and option
        else option,
        "tiles": list_tiles(report, _find_gpu_memory_mib(folder, report)),
        "table": make_table(report, MOST_ROWS),
        "legend": words.format_legend(report, details="below"),
        "all_columns": make_table(wide, MOST_ROWS),
        "meanings": _list_column_meanings(wide),
        "empty": _list_missing_reasons(wide),
        "findings": [line.text for line in lines if line.kind != "warning"],
        "claims": _list_claims_by_finding(report),
        "warnings": _cut_lines([*warnings, *report.problems, *problems]),
        "pictures": list(map(separate_picture_text, list_pictures(report, trace))),
        "left_out": _describe_cut(len(report.rows) - MOST_ROWS, "row", "gpubench export --format csv"),
        "facts": _list_facts(folder, table, report),
        "plans": plans,
    }


def format_title(folders: Sequence[Folder], sections: Sequence[Section]) -> str:
    """The page's name in a browser."""
    names = ", ".join(folder.name for folder in folders)
    if len(sections) == 1:
        return f"{sections[0]['heading']} · {names}"
    return f"{words.count_things(len(sections), 'experiment')} of {names}"


def describe_provenance(folders: Sequence[Folder], reports: Sequence[Report]) -> list[str]:
    """Machines, version of torch and months of what is on the page."""
    machines = dict.fromkeys(machine for report in reports for machine in report.facts.machines)
    versions = _list_distinct_values(folders, "torch")
    times = sorted(filter(None, map(parse_moment, _list_distinct_values(folders, "started_at"))))
    months = [time.strftime("%b %Y") for time in times[:1] + times[-1:]]
    parts = [
        *machines,
        f"torch {', '.join(versions)}" if versions else "",
        " to ".join(dict.fromkeys(months)),
    ]
    return [clean_line(part, 120) for part in parts if part]


def _list_distinct_values(folders: Sequence[Folder], column: str) -> list[str]:
    return [*dict.fromkeys(str(value) for folder in folders for value in folder.runs[column].dropna())]


def _list_facts(folder: Folder, table: Table, report: Report) -> list[tuple[str, str]]:
    """What ran, and on what."""
    runs = folder.runs.loc[list(table.runs)]
    facts = [("Experiment", " · ".join(words.list_heading_facts(report)))]
    for name, column in (("Host", "host"), ("CUDA", "cuda"), ("torch", "torch"), ("gpubench", "gpubench")):
        facts.append((name, ", ".join(dict.fromkeys(map(str, runs[column].dropna())))))
    began = sorted(map(str, runs["started_at"].dropna()))
    facts.append(("Measured", " to ".join(dict.fromkeys(began[:1] + began[-1:]))))
    return [(name, clean_line(value, 500)) for name, value in facts if value]


def _find_gpu_memory_mib(folder: Folder, report: Report) -> float | None:
    """The memory of a GPU in MiB: what trials might take of it, else what it has."""
    cap = report.facts.fixed.get("gpu_mem_cap_mib")
    if cap is not None or report.recommended_row is None:
        return None if cap is None else float(cap)
    total = folder.select_ok_runs_of_row(report.recommended_row)["gpu_total_mib"].dropna()
    return float(total.iloc[0]) if len(total) else None


def _choose_recommended_plan(
    plans: Sequence[DownloadablePlan], folder: Folder, report: Report
) -> DownloadablePlan:
    """The plan that asks for the recommended row, else the newest."""
    if report.recommended_row is not None:
        ids = set(folder.select_ok_runs_of_row(report.recommended_row)["trial_id"])
        return next((plan for plan in plans if plan.trials & ids), plans[-1])
    return plans[-1]


def _list_column_meanings(report: Report) -> list[tuple[str, str]]:
    columns = [(column, TABLE_BY_NAME.get(column.name)) for column in report.columns]
    return [
        (
            words.format_column_heading(report, column)[1],
            about.meaning + (f" ({about.unit})" if about.unit else ""),
        )
        for column, about in columns
        if about is not None and about.meaning
    ]


def _list_missing_reasons(report: Report) -> list[str]:
    """Why figures are missing, each reason once, with the columns and how many rows it is of."""
    counts: Counter[tuple[str, str]] = Counter()
    headings = {column.name: words.format_column_heading(report, column)[1] for column in report.columns}
    for reasons in report.missing.values():
        counts.update((reason, headings[name]) for name, reason in reasons.items() if name in headings)
    by_reason: dict[tuple[str, int], list[str]] = {}
    for (reason, heading), count in counts.items():
        by_reason.setdefault((clean_line(reason, 300), count), []).append(heading)
    return _cut_lines(
        [
            f"{', '.join(dict.fromkeys(names))}: {reason} ({words.count_things(count, 'row')})"
            for (reason, count), names in by_reason.items()
        ]
    )


def _list_claims_by_finding(report: Report) -> list[dict[str, Any]]:
    """The claims of each finding with their intervals and p-values, as --why prints them."""
    return [
        {
            "question": words.QUESTIONS.get(finding.question, finding.question),
            "rows": [words.make_claim_cells(report, claim) for claim in finding.claims[:MOST_LINES]],
            "notes": [
                *filter(None, (words.format_bounds(report, finding), words.format_remedy(finding))),
                *_describe_cut(len(finding.claims) - MOST_LINES, "claim", "gpubench table --why"),
            ],
        }
        for finding in report.findings
        if finding.claims
    ]


def _cut_lines(lines: Sequence[str]) -> list[str]:
    return [*lines[:MOST_LINES], *_describe_cut(len(lines) - MOST_LINES, "line", "gpubench table")]


def _describe_cut(count: int, thing: str, where: str) -> list[str]:
    return [words.describe_left_out(count, thing, where)] if count > 0 else []


@cache
def _make_jinja_environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: _read_package_file(f"page/{name}")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _read_package_file(name: str) -> str:
    """A file of this package, as it is."""
    return files("gpubench.render").joinpath(name).read_text(encoding="utf-8")
