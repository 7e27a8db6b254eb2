"""What `gpubench compare` does: two results folders, or two values of a field inside one, set beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analyze.compare import compare_field_values, compare_folders
from gpubench.analyze.folder import read_folder
from gpubench.analyze.series import CANDIDATES
from gpubench.basics.errors import UnusableError, UsageError, make_unknown_name_error
from gpubench.commands.folders import parse_known_names, print_text, print_warning
from gpubench.core.comparison import COSTS, FIGURES, Comparison, FigureName
from gpubench.plan.values import parse_field_values, parse_percent
from gpubench.render import comparison as render
from gpubench.render.terminal import WIDEST, WIDTH
from gpubench.results.home import find_newest_results_folder


def compare(
    folders: Sequence[Path],
    *,
    field: str | None = None,
    figures: str | None = None,
    threshold: str | None = None,
    strict: bool = False,
    sort: str | None = None,
    form: str | None = None,
) -> int:
    """`gpubench compare`: 0, or 3 where a regression beyond the threshold is sure, 4 where nothing could be checked.

    `strict`: 3 also where one is not excluded. `form`: markdown, json; None: text. Raises UnusableError where not even
    the figures as they stand can be compared.
    """
    names = parse_known_names("figure", figures, FIGURES) or FIGURES
    limit = None if threshold is None else parse_percent(threshold, "--threshold") / 100
    if strict and limit is None:
        raise UsageError("--strict is about --threshold: give that, too, such as --threshold 5%")
    if limit is not None and COSTS.isdisjoint(names):
        raise UsageError(
            "--threshold is for time, memory and energy: name one of them in --figures, or leave --threshold out"
        )
    if sort is not None and sort not in (*FIGURES, *CANDIDATES):
        raise make_unknown_name_error("figure or field to sort by", sort, (*FIGURES, *CANDIDATES))
    comparison = _make_comparison(folders, field, [name for name in FIGURES if name in names], limit)
    if comparison.is_incomparable and form != "json":
        raise UnusableError(render.explain_obstacle(comparison))
    if form == "json":
        text = render.format_json(comparison)
    elif form == "markdown":
        text = render.format_markdown(comparison, sort=sort)
    else:
        console = Console()
        width = min(console.width, WIDEST) if console.is_terminal else WIDTH
        text = render.format_text(comparison, sort=sort, width=width, is_rich=console.is_terminal)
    print_text(text)
    return comparison.compute_exit_code(is_strict=strict)


def _make_comparison(
    folders: Sequence[Path], field: str | None, figures: Sequence[FigureName], threshold: float | None
) -> Comparison:
    if field is None:
        if len(folders) != 2:
            raise UsageError(
                "name two results folders, B is told against A: gpubench compare A B; "
                "or one, and two values of a field: --field precision=fp32,bf16"
            )
        a, b = (read_folder(path, print_warning) for path in folders)
        return compare_folders(a, b, figures=figures, threshold=threshold)
    name, equals, text = field.partition("=")
    name = name.strip().replace("-", "_")
    if name not in CANDIDATES:
        raise make_unknown_name_error("field", name, CANDIDATES)
    values = (
        [tuple(v) if isinstance(v, list) else v for v in parse_field_values(name, text)] if equals else []
    )
    if len(values) != 2:
        raise UsageError(
            f"--field takes two values, the second is told against the first: --field {name}=A,B"
        )
    if len(folders) > 1:
        raise UsageError("--field compares inside one results folder; name one, or leave --field out")
    folder = read_folder(folders[0] if folders else find_newest_results_folder(), print_warning)
    return compare_field_values(folder, name, (values[0], values[1]), figures=figures, threshold=threshold)
