"""One experiment on the page: question, answer, pictures, table, doubts, environment, how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.basics.words import UNKNOWN, clean, first_sentence, many
from gpubench.export.page.grid import grid
from gpubench.export.page.markup import Markup, data, element, joined, sentence
from gpubench.export.page.pictures import MOST_ROWS, described, pictures
from gpubench.export.page.repeat import repeat
from gpubench.plot.description import ALL_IN_TABLE, IN_TABLE, Picture
from gpubench.plot.subject import Subject
from gpubench.plot.table import PlotTable
from gpubench.render import words

NO_ANSWER = "No sentence sums these rows up; the table below holds their figures."

MOST_SAID = 200
"""Sentences of one kind."""

FACTS: tuple[tuple[str, str], ...] = (
    ("CUDA", "cuda"), ("gpubench", "gpubench"), ("Host", "host"),
)  # fmt: skip


def asked(table: PlotTable) -> str:
    """What stands over an experiment: its own question, else its title with the one that its rows answer."""
    question = words.ask(table.report)
    if table.report.question:
        return question
    return f"{table.title}: {question}" if question else table.title


def short_answer(table: PlotTable) -> str:
    """The first sentence of the answer; empty where there is none."""
    return first_sentence(table.answers[0])[0] if table.answers else ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """What the page has room for of a table that may be large."""

    lines: Sequence[Markup]
    figures: Sequence[Markup]
    left_out: int
    """Pictures."""


def figures(subject: Subject, number: int, *, alone: bool) -> list[Markup]:
    """The table's pictures. `number`, `alone`: as of `section`."""
    heading = "h3" if alone else "h4"
    return [_figure(one, f"{number}-{at}", heading) for at, one in enumerate(_paired(pictures(subject)), 1)]


def _paired(found: Sequence[Picture]) -> list[Picture]:
    """In their order, but for one of a single panel, which stands beside the next such one where there is room."""
    left = list(found)
    placed = []
    while left:
        placed.append(left.pop(0))
        mate = next((one for one in left if len(one.panels) == 1), None)
        if len(placed[-1].panels) == 1 and mate is not None:
            left.remove(mate)
            placed.append(mate)
    return placed


def section(table: PlotTable, fitted: Fitted, number: int, *, alone: bool) -> Markup:
    """One experiment. `alone`: nothing else is on the page, so its question is the page's heading."""
    level = 1 if alone else 2
    beneath = f"h{level + 1}"
    title = [table.title] if table.report.question else []
    names_folder = table.title != table.name
    over = " · ".join([*title, *([] if names_folder else [table.folder.name])])
    parts = [
        element("p", over, class_="over") if over else "",
        element(f"h{level}", asked(table)),
        _answers(table),
    ]
    if fitted.figures:
        parts += [
            element(beneath, "Pictures", class_="unseen"),
            element("div", fitted.figures, class_="pictures"),
        ]
    if len(table.rows) > MOST_ROWS:
        parts.append(element("p", f"Of more than {MOST_ROWS:,} rows no pictures are drawn."))
    if fitted.left_out:
        parts.append(element("p", f"For want of room left out: {many(fitted.left_out, 'picture')}."))
    parts += [element(beneath, "Figures"), grid(table, fitted.lines, number)]
    if ended := _ended(table):
        parts.append(_listed(ended, "remarks"))
    parts.append(_columns(table))
    if unknown := _unknown(table):
        parts.append(
            element("details", element("summary", "Why figures are missing"), _listed(unknown, "remarks"))
        )
    parts += [element(beneath, "Doubts"), _doubts(table)]
    parts += [element(beneath, "What ran, and on what"), _environment(table)]
    parts += [element(beneath, "How to repeat it"), repeat(table)]
    return element("section", parts, id=f"e{number}")


def _answers(table: PlotTable) -> Markup:
    if not table.answers:
        return element("p", NO_ANSWER, class_="no-answer")
    said = []
    for answer in table.answers[:MOST_SAID]:
        first, rest = first_sentence(answer)
        beside = element("span", sentence(rest.strip())) if rest.strip() else ""
        said.append(element("li", element("strong", sentence(first)), beside))
    return element("ul", said, *_more(table.answers), class_="answers")


def _listed(sentences: Sequence[str], kind: str) -> Markup:
    return element(
        "ul",
        [element("li", sentence(said)) for said in sentences[:MOST_SAID]],
        *_more(sentences),
        class_=kind,
    )


def _more(sentences: Sequence[str]) -> list[Markup]:
    left = len(sentences) - MOST_SAID
    return (
        [element("li", f"{left:,} more sentences of this kind; gpubench table prints them.")]
        if left > 0
        else []
    )


def _figure(picture: Picture, name: str, heading: str) -> Markup:
    """A picture: drawn by the page's script. Its caption says what it shows; its figures stand in a table that the
    script makes, too."""
    shows = picture.shows[:1].upper() + picture.shows[1:]
    no_script = element("p", "This picture needs JavaScript; the table holds the figures of its rows.")
    plots = [
        element(
            "div",
            no_script if panel is picture.panels[0] else "",
            class_="plot",
            role="group",
            tabindex="0",
            aria_label=": ".join(part for part in (shows, panel.title, panel.y.title) if part),
            aria_describedby=f"c{name}",
        )
        for panel in picture.panels
    ]
    over_time = any(panel.spans or any(not one.marked for one in panel.series) for panel in picture.panels)
    return element(
        "figure",
        element(heading, shows, id=f"p{name}"),
        element("div", plots, class_="panels"),
        element("output", class_="told unseen", aria_live="polite"),
        element("figcaption", _caption(picture), id=f"c{name}"),
        data(described(picture)),
        class_=" ".join(
            [picture.name, *(["wide"] if len(plots) > 1 else []), *(["over-time"] if over_time else [])]
        ),
    )


def _caption(picture: Picture) -> str:
    """What it shows. What a picture on paper says that the table tells stands on this page."""
    said = picture.caption[0].replace(IN_TABLE, "they stand below, under Doubts.")
    return said.replace(ALL_IN_TABLE, "the table below has them all.")


def _columns(table: PlotTable) -> Markup:
    """What each column is, for whoever was sent the page."""
    said = [
        joined(
            element("dt", heading),
            element("dd", column.meaning + (f" ({column.unit})" if column.unit else "")),
        )
        for heading, column in zip(table.headings, table.columns, strict=True)
        if column.meaning
    ]
    return element(
        "details", element("summary", "What the columns mean"), element("dl", said, class_="columns")
    )


def _ended(table: PlotTable) -> list[str]:
    """Why rows have no figures, each reason once, with how many rows it is of."""
    reasons = Counter((row.status, clean(row.reason)) for row in table.rows if row.reason)
    return [
        f"{words.STATUSES.get(status, status)}: {reason} ({count:,} of {many(len(table.rows), 'row')})"
        for (status, reason), count in reasons.items()
    ]


def _unknown(table: PlotTable) -> list[str]:
    """Why cells have no figure, each reason once, with how many rows it is of."""
    found = Counter(
        (heading, clean(why))
        for row, cells in zip(table.rows, table.cells, strict=True)
        for column, heading, shown in zip(table.columns, table.headings, cells, strict=True)
        if shown == UNKNOWN and (why := row.missing.get(column.name))
    )
    by_reason: dict[tuple[str, int], list[str]] = {}
    for (heading, why), count in found.items():
        by_reason.setdefault((why, count), []).append(heading)
    total = len(table.rows)
    return [
        f"{', '.join(headings)}: {why} ({count:,} of {total:,} rows)"
        for (why, count), headings in by_reason.items()
    ]


def _doubts(table: PlotTable) -> Markup:
    if not table.warnings:
        return element("p", "None of these rows has a doubt.")
    return _listed(table.warnings, "doubts")


def _environment(table: PlotTable) -> Markup:
    """What the rows have in common, and what is known of the machine and its software."""
    runs = table.runs
    facts = [(name, clean(", ".join(dict.fromkeys(map(str, runs[field].dropna()))))) for name, field in FACTS]
    if began := sorted(runs["started_at"].dropna()):
        facts.append(("Measured", began[0] if began[0] == began[-1] else f"{began[0]} to {began[-1]}"))
    said = [joined(element("dt", name), element("dd", known)) for name, known in facts if known]
    return joined(element("p", table.facts), element("dl", said, class_="facts") if said else "")
