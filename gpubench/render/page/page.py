"""The page: everything that it needs stands in it, so that it opens without a network, from a mail or a disk.

Its template is `page.html.jinja`. Of pictures the words are text of the page, and the colours those of its style.
"""

from __future__ import annotations

import itertools
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import jinja2
from markupsafe import Markup

import gpubench
from gpubench.analyze.folder import Folder, Table, make_table_rows
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.report import build_report
from gpubench.analyze.trace import make_recommended_trace
from gpubench.analyze.view import TableView
from gpubench.basics.quoted import clean_line
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.core.report import Report
from gpubench.plan import experiment_file
from gpubench.render import words
from gpubench.render.grid import GridRow, make_grid
from gpubench.render.page.tiles import list_tiles
from gpubench.render.pictures import vega
from gpubench.render.pictures.pictures import Picture, list_pictures
from gpubench.schema.columns import TABLE_BY_NAME
from gpubench.schema.kinds import parse_moment

MOST_ROWS = 200
"""Of a table: `gpubench export --format csv` has all. With Vega, which takes 0.8 MB, a page stays below 3 MB."""
MOST_LINES = 200
"""Claims of a finding, warnings and the like: `gpubench table` has all."""
LIBRARIES = ("vega-5.33.1.min.js", "vega-lite-5.21.0.min.js")
LICENCES = {"Vega 5.33.1": "vega-LICENSE.txt", "Vega-Lite 5.21.0": "vega-lite-LICENSE.txt"}


def make_page(folders: Sequence[Folder], _: object = None) -> bytes:
    """One page of all tables of these folders, as UTF-8."""
    sources = [(folder, table) for folder in folders for table in folder.tables]
    reports = make_folder_reports(folders)
    sections = [make_section(*source, report) for source, report in zip(sources, reports, strict=True)]
    names = ", ".join(folder.name for folder in folders)
    count = words.count_things(len(sections), "experiment")
    text = _make_jinja_environment().get_template("page.html.jinja").render(
        title=f"{sections[0]['heading']} · {names}" if len(sections) == 1 else f"{count} of {names}",
        provenance=describe_provenance(folders, reports),
        names=names,
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


def make_section(folder: Folder, table: Table, report: Report) -> dict[str, Any]:
    """All that the page tells of one table, for the template."""
    problems: list[str] = []
    trace = make_recommended_trace(folder, report, problems.append)
    plans = list_plans(folder, table)
    wide = build_report(
        table, make_table_rows(folder, table), report.findings, TableView(has_all_columns=True)
    )
    lines = words.list_sentences(report)
    warnings = [line.text for line in lines if line.kind == "warning"]
    return {
        "report": report,
        "question": words.format_question(report),
        **make_answer(folder, report, plans),
        "tiles": list_tiles(report, _find_gpu_memory_mib(folder, report)),
        "table": make_table(report),
        "legend": words.format_legend(report, details="below"),
        "all_columns": make_table(wide),
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


def make_answer(folder: Folder, report: Report, plans: Sequence[PagePlan]) -> dict[str, str]:
    """The first finding as a heading, how sure it is, and the command that would make it surer."""
    if not report.findings:
        heading = clean_line(report.name, words.HEADING_LETTERS)
        return {"heading": heading, "below": words.NO_ANSWER, "word": "", "certainty": ""}
    finding = report.findings[0]
    advice, option = words.advise_option(report, finding)
    if plans and option:
        row = report.recommended_row
        asked = set() if row is None else set(folder.select_ok_runs_of_row(row)["trial_id"])
        plan = next((plan for plan in plans if plan.trials & asked), plans[-1])
        option = f"{plan.command} {option}"
    return {
        "heading": words.format_answer_heading(report, finding),
        "below": words.format_answer_details(report, finding),
        "word": finding.word,
        "certainty": words.name_certainty(report, finding),
        "advice": advice,
        "command": option,
    }


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


def _list_column_meanings(report: Report) -> list[tuple[str, str]]:
    meanings = []
    for column in report.columns:
        about = TABLE_BY_NAME.get(column.name)
        if about is not None and about.meaning:
            unit = f" ({about.unit})" if about.unit else ""
            meanings.append((words.format_column_heading(report, column)[1], about.meaning + unit))
    return meanings


def _list_missing_reasons(report: Report) -> list[str]:
    """Why figures are missing, each reason once, with the columns and how many rows it is of."""
    counts: Counter[tuple[str, str]] = Counter()
    headings = {column.name: words.format_column_heading(report, column)[1] for column in report.columns}
    for reasons in report.missing.values():
        counts.update((reason, headings[name]) for name, reason in reasons.items() if name in headings)
    by_reason: dict[tuple[str, int], list[str]] = {}
    for (reason, heading), count in counts.items():
        by_reason.setdefault((clean_line(reason, 300), count), []).append(heading)
    lines = (
        f"{', '.join(dict.fromkeys(names))}: {reason} ({words.count_things(count, 'row')})"
        for (reason, count), names in by_reason.items()
    )
    return _cut_lines([*lines])


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


# ---- tables ----

LETTER_PIXELS, PADDING_PIXELS = 7, 16
NAME_LETTERS = 24
"""Of the first column: longer names take several lines."""


class PageCell(NamedTuple):
    """One cell, or one that stands for several."""

    text: str
    is_number: bool = False
    bar: float | None = None
    """0 to 100."""
    tone: str = "plain"
    span: int = 1
    """Columns."""
    is_ending: bool = False


def make_table(report: Report) -> dict[str, Any]:
    """The first rows of a report's table, the recommended one marked; about how wide it is, in CSS pixels."""
    grid = make_grid(report)
    most = MOST_ROWS
    groups: list[dict[str, Any]] = []
    for group, sources in zip(grid.groups, report.groups, strict=True):
        rows = [
            {"cells": make_row_cells(row, grid.is_number), "is_warned": row.is_warned,
             "is_answer": report.recommended_row in source.labels}
            for row, source in zip(group.rows[:most], sources.rows[:most], strict=True)
        ]  # fmt: skip
        groups += [{"head": group.head, "is_warned": group.is_warned, "rows": rows}] if rows else []
        most -= len(rows)
    lines = [[cell.text for cell in row["cells"]] for group in groups for row in group["rows"]]
    whole = [line for line in lines if len(line) == len(grid.headings)]
    letters = [max(map(len, column)) for column in zip(grid.headings, *whole, strict=True)]
    letters[0] = min(letters[0], NAME_LETTERS)
    series = [(name, len(list(members))) for name, members in itertools.groupby(grid.series)]
    return {
        "series": series if any(grid.series) else [],
        "headings": list(zip(grid.headings, grid.is_number, strict=True)),
        "groups": groups,
        "width": sum(PADDING_PIXELS + LETTER_PIXELS * count for count in letters),
    }


def make_row_cells(row: GridRow, is_number: Sequence[bool]) -> list[PageCell]:
    """The cells of a row. Of one without figures the ending stands in place of the empty cells at its end, else of the
    first that is empty."""
    cells = [
        PageCell(cell.text, number, None if cell.bar is None else round(100 * cell.bar, 1), cell.tone)
        for cell, number in zip(row.cells, is_number, strict=True)
    ]
    empty = [place for place, cell in enumerate(cells) if not cell.text]
    if not row.ending or not empty:
        return cells
    last = next((n for n in range(len(cells), 0, -1) if cells[n - 1].text), 0)
    if last < len(cells):
        return [*cells[:last], PageCell(row.ending, span=len(cells) - last, is_ending=True)]
    cells[empty[0]] = cells[empty[0]]._replace(text=row.ending, is_ending=True)
    return cells


# ---- pictures ----

COLORS: Mapping[str, tuple[str, str, str]] = {
    "white": ("paper", "#ffffff", "#14171b"),
    "black": ("ink", "#1b1f24", "#e4e7ea"),
    vega.COLORS[0]: ("blue", "#0072b2", "#56b4e9"),
    vega.COLORS[1]: ("orange", "#c24e00", "#f59a5b"),
    vega.COLORS[2]: ("green", "#008060", "#3ccba0"),
    vega.COLORS[3]: ("pink", "#a8447f", "#e59ac8"),
    vega.COLORS[4]: ("ochre", "#8a6500", "#e0b13e"),
    vega.COLORS[5]: ("violet", "#5b5bd6", "#a5a5ff"),
    vega.COLORS[6]: ("slate", "#3a3f45", "#d5d9dd"),
    vega.LIGHT: ("amber", "#f0b27a", "#8a5a20"),
    vega.CONTEXT: ("context", "#6b7280", "#9aa3ad"),
    vega.ALARM: ("alarm", "#b00020", "#ff8a90"),
    vega.CONFIG["axis"]["labelColor"]: ("soft", "#57606a", "#a8b1ba"),
    vega.CONFIG["axis"]["domainColor"]: ("axis", "#9aa0a6", "#6b737c"),
    vega.CONFIG["axis"]["gridColor"]: ("line", "#e1e4e8", "#30363d"),
    "#d5d8dc": ("faint", "#d5d8dc", "#4a525b"),
    "#cccfd4": ("span", "#cccfd4", "#4a525b"),
}
"""Colour of a description -> its name on the page, and what it is in light and in dark: so a picture follows the page
without being drawn anew, on paper, too."""
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'
INK = "var(--ink)"
PADDING = {"left": 0, "right": 2, "top": 2, "bottom": 6}
SOMEBODYS = frozenset({"data", "domain", "sort", "text"})
"""Parts of a description in which `black` may be somebody's name for something."""
ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&"}


def separate_picture_text(picture: Picture) -> dict[str, str]:
    """The words of a picture's frame (`vega.compose_picture`), and a description of its panels alone, as JSON that may
    stand in a script element."""
    *panels, footnote = picture.description["vconcat"]
    plain = {name: part for name, part in picture.description.items() if name != "title"}
    config = {
        **vega.CONFIG,
        "background": None,
        "font": FONT,
        "padding": PADDING,
        "legend": {"labelColor": INK, "titleColor": INK},
        "rule": {"color": INK},
        "text": {**vega.CONFIG["text"], "color": INK},
    }
    description = replace_colors({**plain, "vconcat": panels, "config": config})
    return {
        "title": picture.title,
        "sentences": " ".join(picture.description["title"]["subtitle"]),
        "footnote": footnote["encoding"]["text"]["value"],
        # ASCII in which nothing can end the element that it stands in.
        "description": json.dumps(description, allow_nan=False, separators=(",", ":")).translate(ESCAPED),
    }


def replace_colors(part: Any, *, has_names: bool = True) -> Any:
    """A part of a description with the page's colours in place of its own. `has_names`: whether a colour may be told by
    its name, as `black`."""
    if isinstance(part, Mapping):
        return {
            name: replace_colors(value, has_names=has_names and name not in SOMEBODYS)
            for name, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [replace_colors(value, has_names=has_names) for value in part]
    if isinstance(part, str) and part in COLORS and (has_names or part.startswith("#")):
        return f"var(--{COLORS[part][0]})"
    return part


def format_color_css() -> str:
    """The colours as CSS: light, on paper, too; dark where the browser or the reader asks for it."""
    light, dark = (
        "".join(f"--{colors[0]}:{colors[place]};" for colors in COLORS.values()) for place in (1, 2)
    )
    dark = f"color-scheme:dark;--tint:#1d3346;--bar:#24496a;--shade:#1c2025;{dark}"
    return (
        f":root{{color-scheme:light;--tint:#eaf3fa;--bar:#b9dbf2;--shade:#f4f5f7;{light}}}\n"
        f'@media screen and (prefers-color-scheme:dark){{:root:not([data-theme="light"]){{{dark}}}}}\n'
        f'@media screen{{:root[data-theme="dark"]{{{dark}}}}}\n'
    )


# ---- how to measure a table again ----

LONGEST_PLAN = 20_000
"""Characters of a plan that are shown: a longer one lies in the folder."""


class PagePlan(NamedTuple):
    """A plan as a file that a sweep takes."""

    name: str
    text: str
    command: str
    trials: frozenset[str]
    """Ids of what it asks for."""


def list_plans(folder: Folder, table: Table) -> list[PagePlan]:
    """The stored plans of a table's rows, the newest last, equal ones once."""
    trials = set(folder.runs.loc[list(table.runs), "trial_id"])
    texts: dict[str, frozenset[str]] = {}
    for stored in folder.plans:
        ids = frozenset(job.trial_id for job in stored.plan.jobs)
        if stored.plan.experiment.name == table.experiment and ids & trials:
            experiment = stored.plan.experiment
            rounds = experiment.rounds
            if rounds.number is None and stored.facts.rounds:  # another version may make others of it
                experiment = replace(experiment, rounds=replace(rounds, number=stored.facts.rounds))
            texts[experiment_file.format_experiment(experiment, {})] = ids
    out = shlex.quote(f"results/{clean_line(folder.path.resolve().name)}")
    stem = make_safe_file_name(table.experiment, "plan")
    plans = []
    for number, (text, ids) in enumerate(texts.items(), 1):
        name = f"{stem}-{number}.toml" if len(texts) > 1 else f"{stem}.toml"
        shown = text if len(text) <= LONGEST_PLAN else f"{text[:LONGEST_PLAN]}\n{words.CUT_FILE}"
        plans.append(PagePlan(name, shown, f"gpubench sweep {shlex.quote(name)} --out {out}", ids))
    return plans
