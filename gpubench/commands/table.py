"""What `gpubench table` does: results folders are read, and their tables and what these answer are printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analyze.folder import Folder, list_columns_of_commands
from gpubench.analyze.questions import find_best_configuration, make_folder_reports
from gpubench.analyze.view import parse_view
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.quoted import format_readable_json
from gpubench.basics.words import clean_line
from gpubench.commands.folders import choose_read_exit_code, print_text, print_warning, read_named_folders
from gpubench.core.findings import LimitAim, PowerLimitFinding
from gpubench.core.report import Report
from gpubench.export.sheets import make_table_sheet
from gpubench.plan.values import parse_percent
from gpubench.render import terminal, words
from gpubench.render.forms import format_reports
from gpubench.render.json import VERSION, value_to_data


def table(
    paths: Sequence[Path] = (),
    *,
    form: str | None = None,
    columns: str | None = None,
    where: Sequence[str] = (),
    sort: str | None = None,
    edp: bool = False,
    at_most_slower: str | None = None,
    why: bool = False,
    best: bool = False,
) -> int:
    """`gpubench table`. `form`: a name of FORMS. `columns`, `where`, `sort`: what is shown. `why`: every claim besides.
    `best`: the recommended configuration alone. `edp`, `at_most_slower`: what a power limit is wanted for."""
    if why and (form or best):
        raise UsageError(f"--why goes with text alone, not with --{form or 'best'}; --json has all claims")
    if best and form not in (None, "json"):
        raise UsageError(f"--best is a command, or data with --json; leave --{form} out")
    slower = None if at_most_slower is None else parse_percent(at_most_slower, "--at-most-slower") / 100
    aim = LimitAim(goal="edp" if edp else "energy", at_most_slower=slower)
    folders = read_named_folders(paths)
    view = parse_view(columns, where, sort, list_columns_of_commands(folders))
    reports = make_folder_reports(folders, view, aim)
    findings = [finding for report in reports for finding in report.findings]
    if aim != LimitAim() and not any(isinstance(finding, PowerLimitFinding) for finding in findings):
        raise UnusableError(
            "no table here compares power limits: gpubench sweep --set power_limit_w=150,200,250"
        )
    console = Console(highlight=False)
    if where and form is None and not any(report.rows for report in reports):
        raise UnusableError(f"no row meets {' and '.join(map(clean_line, where))}")
    if best:
        print_text(_format_best_commands(folders, reports, is_json=form == "json"))
    elif form is None:
        terminal.print_reports(reports, console, is_why=why)
    elif form == "markdown":
        print_text(format_reports(form, reports))
    else:  # programs read it: it is UTF-8 everywhere, whatever signs the terminal knows
        text = (
            make_table_sheet(folders, view).format_csv() if form == "csv" else format_reports(form, reports)
        )
        for report in reports:
            if form == "csv" and report.selection is not None:  # CSV has no place for a sentence
                print_warning(f"{report.name}: {words.describe_selection(report.selection)}")
        sys.stdout.buffer.write(text.encode(errors="replace"))
    return choose_read_exit_code(paths, folders)


def _format_best_commands(folders: Sequence[Folder], reports: Sequence[Report], *, is_json: bool) -> str:
    """A command a table that recommends a configuration. Raises UnusableError where none does."""
    homes = [folder for folder in folders for _ in folder.tables]
    best = [
        (report, fields)
        for folder, report in zip(homes, reports, strict=True)
        if (fields := find_best_configuration(folder, report)) is not None
    ]
    if not best:
        raise UnusableError("no table recommends a configuration: gpubench table says what is known")
    commands = [(report, fields, words.format_sweep_command(fields)) for report, fields in best]
    if not is_json:
        for report, *_ in commands:
            if words.is_recommendation_uncertain(report):
                print_warning(f"{report.name}: not sure; gpubench table says what may be faster")
        return "".join(f"{command}\n" for *_, command in commands)
    data = [
        {"name": report.name, "fields": value_to_data(fields), "command": shlex.split(command)}
        for report, fields, command in commands
    ]
    return format_readable_json({"version": VERSION, "best": data}, indent=1) + "\n"
