"""The doubts below a table: one sentence for rows with the same doubt, with the range of their figures, worst first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.analysis.doubted import codes
from gpubench.basics.words import clean
from gpubench.report.cells import DOUBTED
from gpubench.report.notes import which
from gpubench.schema.doubts import doubt_of
from gpubench.schema.row import Row

FIGURE = re.compile(r"(?<![\w.=])(?<!process )(?<!GPU )\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")
"""A number that was measured; not a process's or a GPU's, and not the value of an option, which are names."""

UNIT = re.compile(r" (%|[KMGT]iB\b|s\b|J\b|times\b)")
"""What follows a figure and is told with each of two."""

FEW = 3
"""Rows up to which each is named."""

PLURAL = re.compile(r"^( \w+)s\b")
"""The noun that follows a figure: `1 step` and `20 steps` are the same words."""


@dataclass(frozen=True, slots=True)
class _Said:
    """A doubt's sentence in one row, taken apart."""

    row: Row
    text: str
    words: tuple[str, ...]
    """What stands before, between and after the figures."""
    figures: tuple[str, ...]

    @property
    def numbers(self) -> tuple[float, ...]:
        return tuple(float(figure.replace(",", "")) for figure in self.figures)

    @property
    def alike(self) -> tuple[str, ...]:
        """The words, whether they are of one or of many."""
        return tuple(PLURAL.sub(r"\1", words) for words in self.words)

    def severity(self, code: str) -> float:
        return doubt_of(code).badness(self.text, self.numbers)


def doubts(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    """What DOUBTED means, then the doubts in plain sentences; empty where no row has one.

    `rows`: the table's, repeats merged. `fields`: those that tell them apart. Sentences with the same words become
    one, whose figure is the range over the rows, the worst first; sentences with other words stand by themselves.
    """
    doubted: dict[str, list[Row]] = {}
    for row in rows:
        for code in codes(row):
            doubted.setdefault(code, []).append(row)
    ordered = sorted(doubted.items(), key=lambda item: not doubt_of(item[0]).told_first)
    found = [note for code, some in ordered for note in _of_one(code, some, rows, fields)]
    mark = [f"{DOUBTED} marks rows with doubts, which follow."] if found else []
    return [clean(note) for note in (*mark, *found)]


def _of_one(code: str, some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    alike: dict[tuple[str, ...], list[_Said]] = {}
    untold = []
    for row in some:
        texts = row.doubt_texts.get(code, ())
        for text in texts:
            said = _taken_apart(row, text)
            alike.setdefault(said.alike, []).append(said)
        untold += [] if texts else [row]
    notes = [f"Doubt {code}: {_sentence(code, said, rows, fields)}" for said in alike.values()]
    return [*notes, *([f"Doubt {code} ({which(untold, rows, fields)})"] if untold else [])]


def _taken_apart(row: Row, text: str) -> _Said:
    return _Said(row, text, tuple(FIGURE.split(text)), tuple(FIGURE.findall(text)))


def _sentence(code: str, said: Sequence[_Said], rows: Sequence[Row], fields: Sequence[str]) -> str:
    """One sentence for several with the same words.

    Where more than one figure differs, the sentence of the worst row is quoted whole.
    """
    differ = [
        index
        for index, found in enumerate(zip(*(s.numbers for s in said), strict=True))
        if len(set(found)) > 1
    ]
    if not differ:
        return f"{said[0].text} ({which(_rows(said), rows, fields)})"
    worst = max(said, key=lambda one: one.severity(code))
    if len(differ) > 1:
        return f"{worst.text} ({_where(worst.row, _rows(said), rows, fields, quoted=True)})"
    (index,) = differ
    ends = sorted(
        (pick(said, key=lambda one: one.numbers[index]) for pick in (min, max)),
        key=lambda one: one.severity(code),
        reverse=True,
    )
    worst = ends[0]
    figures = list(worst.figures)
    figures[index] = _range(worst.figures[index], ends[-1].figures[index], ends[-1].words[index + 1])
    text = "".join(part for pair in zip(ends[-1].words, [*figures, ""], strict=True) for part in pair)
    return f"{text} ({_where(worst.row, _rows(said), rows, fields)})"


def _range(worst: str, mildest: str, after: str) -> str:
    """The worst figure first: `2.0 to 9.1`, or, where larger is worse, `up to 9 %, at least 5`.

    `after`: what follows them, beginning with the unit.
    """
    if float(worst.replace(",", "")) < float(mildest.replace(",", "")):
        return f"{worst} to {mildest}"
    unit = UNIT.match(after)
    return f"up to {worst}{unit[0] if unit else ''}, at least {mildest}"


def _rows(said: Sequence[_Said]) -> list[Row]:
    """Each row once: one of several repeats may say the same with several figures."""
    return list({id(one.row): one.row for one in said}.values())


def _where(
    worst: Row, some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str], *, quoted: bool = False
) -> str:
    """`in 8 of 12 rows; worst: batch_size=16`. `quoted`: all figures of the sentence are the worst row's."""
    if len(some) == 1:
        return which(some, rows, fields)
    name = which([worst], rows, fields)
    named = f"worst{', with these figures' if quoted else ''}: {name}"
    if len(some) == len(rows):
        return f"all rows; {named}"
    if len(some) > FEW:
        return f"in {len(some)} of {len(rows)} rows; {named}"
    return f"{named}; also in {which([row for row in some if row is not worst], rows, fields)}"
