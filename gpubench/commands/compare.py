"""What `gpubench compare` does: two results folders, or two values of a field inside one, set beside each other."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analysis.comparing import COSTS, FIGURES, FigureName, SideBySide, compared
from gpubench.analysis.matching import matched
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.varied import CANDIDATES, known
from gpubench.basics.encodable import encodable
from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.commands.opened import warn
from gpubench.plan.values import as_text, parse, percent
from gpubench.render.forms import AnswerForm
from gpubench.report.comparison.answers import GUESSED
from gpubench.report.comparison.forms import as_markdown, in_lines
from gpubench.report.comparison.json_form import as_json
from gpubench.report.comparison.notes import attempts_of
from gpubench.report.comparison.side import Side
from gpubench.report.contents import Contents
from gpubench.report.reading import reading
from gpubench.results.home import newest_results
from gpubench.schema.epoch_times import Kind
from gpubench.schema.row import TableRow

REGRESSION = 3
"""The exit code where one is shown."""


def compare(
    folders: Sequence[Path],
    *,
    field: str | None = None,
    figures: str | None = None,
    threshold: str | None = None,
    strict: bool = False,
    sort: str | None = None,
    form: AnswerForm = "text",
) -> int:
    """`gpubench compare`: 0, or REGRESSION where one beyond the threshold is shown.

    `strict`: also where one is not excluded. Raises UnusableError where nothing could be compared.
    """
    of = _figures(figures)
    limit = None if threshold is None else percent(threshold, "--threshold") / 100
    if strict and limit is None:
        raise UsageError("--strict is about --threshold: give that, too, such as --threshold 5%")
    if limit is not None and COSTS.isdisjoint(of):
        raise UsageError(
            "--threshold is for time, memory and energy: name one of them in --figures, or leave --threshold out"
        )
    if sort is not None and sort not in (*FIGURES, *CANDIDATES):
        raise unknown("figure or field to sort by", sort, (*FIGURES, *CANDIDATES))
    a, b, name, own = _sides(folders, field)
    _check_kinds(a.rows, b.rows)
    free = () if not name else (name,)
    matching = matched(a.rows, b.rows, free=free, with_own_images=own)
    found = compared(matching, of=of, threshold=limit, by_rounds=bool(name))
    console = Console(highlight=False)
    if form == "json":
        made = json.dumps(as_json(a, b, found, field=name), ensure_ascii=False, default=str) + "\n"
    elif form == "markdown":
        made = as_markdown(a, b, found, field=name, sort=sort or "")
    else:
        width = console.width if console.is_terminal else None
        made = in_lines(a, b, found, field=name, sort=sort or "", width=width)
    sys.stdout.write(encodable(made, console.encoding))
    return _exit_code(found, strict=strict)


def _exit_code(found: SideBySide, *, strict: bool) -> int:
    if found.regressions or found.broken:
        return REGRESSION
    if _is_same_measurement(found):
        raise UnusableError(
            "A and B are the same measurements, which tell nothing of a difference; name two results folders, or two "
            "values of a field: --field precision=fp32,bf16"
        )
    if found.threshold is None:
        if not found.beside:
            raise UnusableError(
                "nothing could be compared: no trial that ended ok in A matches one of B that did"
            )
        return 0
    if found.guessed:
        raise UnusableError(f"no trial of A is one of B: {GUESSED}")
    if not found.checked:
        raise UnusableError("nothing could be compared, so no regression could have been seen")
    return REGRESSION if strict and found.undecided else 0


def _is_same_measurement(found: SideBySide) -> bool:
    """Whether A and B are one folder, or a copy of it: the same attempts with the same figures, and none besides."""
    return (
        bool(found.beside)
        and not (found.matching.only_a or found.matching.only_b)
        and all(a.status == b.status for a, b in found.not_ok)
        and all(
            attempts_of(pair.a) == attempts_of(pair.b)
            and all(figure.a == figure.b for figure in pair.figures.values())
            for pair in found.beside
        )
    )


def _figures(text: str | None) -> tuple[FigureName, ...]:
    if text is None:
        return FIGURES
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in FIGURES:
            raise unknown("figure", name, FIGURES)
    return tuple(name for name in FIGURES if name in names)


def _sides(folders: Sequence[Path], field: str | None) -> tuple[Side, Side, str, set[str]]:
    """Both sides; the field whose values they are, if it is one; and the variants that name images of their own."""
    if field is None:
        if len(folders) != 2:
            raise UsageError(
                "name two results folders, B is told against A: gpubench compare A B; "
                "or one, and two values of a field: --field precision=fp32,bf16"
            )
        a, b = (_rows(_read(folder)) for folder in folders)
        return Side(name=str(folders[0]), rows=a), Side(name=str(folders[1]), rows=b), "", set()
    name, equals, text = field.partition("=")
    name = name.strip().replace("-", "_")
    if name not in CANDIDATES:
        raise unknown("field", name, CANDIDATES)
    values = [_hashable(one) for one in parse(name, text, "--field")] if equals else []
    if len(values) != 2:
        raise UsageError(
            f"--field takes two values, the second is told against the first: --field {name}=A,B"
        )
    if len(folders) > 1:
        raise UsageError("--field compares inside one results folder; name one, or leave --field out")
    folder = folders[0] if folders else newest_results()
    found = _read(folder)
    rows = _rows(found)
    sides = [
        Side(
            name=f"{name}={as_text(value)} in {folder}",
            rows=[row for row in rows if _hashable(known(row, name)) == value],
        )
        for value in values
    ]
    there = sorted({as_text(known(row, name)) for row in rows if known(row, name) is not None})
    for side in sides:
        if not side.rows:
            raise UsageError(f"no row has {side.name}; there are: {', '.join(there) or 'none that tell it'}")
    variants = [pair for stored in found.plans for pair in stored.plan.experiment.variants.items()]
    return sides[0], sides[1], name, {own for own, variant in variants if variant.data is not None}


REMEDY: dict[Kind, str] = {
    "published log": "measure both sides",
    "whole epochs": "measure the trials of the other side with --epochs {epochs}, as these were",
}
"""Kind of epoch time -> how to have both sides alike, where it is the first of these that one of them has."""


def _check_kinds(a: Sequence[TableRow], b: Sequence[TableRow]) -> None:
    """Raises UnusableError where no epoch time of one side is of a kind of the other's."""
    mine, others = ({row.kind: None for row in rows if row.epoch_time_s} for rows in (a, b))
    if mine and others and mine.keys().isdisjoint(others):
        remedy = next(words for kind, words in REMEDY.items() if kind in {**mine, **others})
        raise UnusableError(
            f"A holds times of {' and '.join(mine)}, B of {' and '.join(others)}, which are never compared: "
            + remedy.format(epochs=max((row.epochs or 0 for row in (*a, *b)), default=0) or 3)
        )


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _read(folder: Path) -> Contents:
    return reading(folder, warn).contents


def _rows(found: Contents) -> list[TableRow]:
    """The rows of a folder, repeats and rounds merged; without trials whose variant or model was edited since."""
    return merge_repeats([row for row in found.rows if row.trial_id not in found.superseded])
