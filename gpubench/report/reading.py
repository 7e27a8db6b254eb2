"""Results folders, read: what tables, exports, pictures and comparisons are made of."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from gpubench.basics.collector import collector_paused
from gpubench.basics.errors import UnusableError
from gpubench.basics.words import clean, listed
from gpubench.report.choice import SHOW, Choice
from gpubench.report.contents import Contents, contents
from gpubench.report.table import Table
from gpubench.results.home import no_results_folder, results_in
from gpubench.results.store import Results
from gpubench.schema.record import Record, with_epochs_alone

Kept = Literal["records", "epochs", "plans"]
"""`epochs`: records with their epochs, and with what tells which of them count; nothing else of them."""
EVERYTHING: tuple[Kept, ...] = ("records", "plans")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One results folder, read."""

    results: Results
    records: Sequence[Record]
    """All that can be read, each attempt; none where nobody will ask for them."""
    contents: Contents
    unreadable: Sequence[str] = ()
    """What is wrong with the records that can't be read, a line each."""
    name: str
    """The folder's; of several that are read together, its path where another has this name, too."""

    @property
    def tables(self) -> Sequence[Table]:
        """One an experiment."""
        return self.contents.tables

    @property
    def left_out(self) -> Sequence[str]:
        """What is wrong with the records and plans that can't be read, a line each, as a file tells it."""
        return [clean(line) for line in (*self.unreadable, *self.contents.problems)]


def reading(
    folder: Path,
    tell: Callable[[str], None],
    *,
    choice: Choice = SHOW,
    keep: Collection[Kept] = EVERYTHING,
) -> Reading:
    """A results folder with all that can be read of it. Raises UnusableError where that is nothing.

    `tell` is given one line for each record or plan that can't be read. `choice`: of columns. `keep`: what is
    looked at besides rows and tables; all else is dropped once these are known, for of 100,000 records it takes most of
    the memory.
    """
    unreadable: list[str] = []

    def tell_of_record(line: str) -> None:
        unreadable.append(line)
        tell(line)

    results, records = stored(folder, tell_of_record, _unasked(keep))
    with collector_paused():
        found = contents(results, records, choice=choice)
    for problem in found.problems:
        tell(problem)
    name = clean(results.folder.resolve().name)
    if "records" not in keep:
        records = [with_epochs_alone(record) for record in _drained(records)] if "epochs" in keep else []
    if "plans" not in keep:
        found.plans = []
    return Reading(
        results=results,
        records=records,
        contents=found.named(lambda table: replace(table, folder=name)),
        unreadable=unreadable,
        name=name,
    )


def _unasked(keep: Collection[Kept]) -> Collection[str]:
    """The parts of records that neither rows nor what is kept are made of."""
    if "records" in keep:
        return ()
    return ("windows", "phases") if "epochs" in keep else ("windows", "phases", "epochs")


def _drained(records: list[Record]) -> Iterator[Record]:
    """The records in their order. The list is emptied meanwhile, so that each is gone once another stands for it."""
    records.reverse()
    while records:
        yield records.pop()


def reading_all(
    folders: Sequence[Path],
    tell: Callable[[str], None],
    *,
    choice: Choice = SHOW,
    keep: Collection[Kept] = EVERYTHING,
) -> list[Reading]:
    """These folders, each once, in the order in which they are named.

    Of several, one that can't be read is told, and the others are read. Raises UnusableError where none is.
    `folders`: at least one.
    """
    found = []
    failed: list[UnusableError] = []
    once: dict[Path, Path] = {}
    for folder in folders:
        once.setdefault(folder.resolve(), folder)
    for folder in once.values():
        try:
            found.append(reading(folder, tell, choice=choice, keep=keep))
        except UnusableError as error:
            failed.append(error)
    last = None if found else failed.pop()
    for one in failed:
        tell(str(one))
    if last is not None:
        raise last
    return told_apart(found)


def told_apart(readings: Sequence[Reading]) -> list[Reading]:
    """Several folders' readings, each under a name of its own, which stands in the titles of its tables, too."""
    if len(readings) < 2:
        return list(readings)
    counts = Counter(one.name for one in readings)
    found = []
    for one in readings:
        name = one.name if counts[one.name] == 1 else clean(str(one.results.folder))
        found.append(replace(one, name=name, contents=one.contents.named(functools.partial(_titled, name))))
    return found


def _titled(name: str, table: Table) -> Table:
    return replace(table, folder=name, title=f"{name}: {table.title}")


def stored(
    folder: Path, tell: Callable[[str], None], without: Collection[str] = ()
) -> tuple[Results, list[Record]]:
    """A results folder and the records in it that can be read. Raises UnusableError where there are none.

    `tell` is given one line for each that can't. `without`: parts of records that nobody will ask for.
    """
    results = Results(folder)
    if not results.folder.is_dir():
        raise no_results_folder(results.folder)
    told: list[str] = []
    records = results.records(told.append, without, together=True)
    for line in told:
        tell(line)
    if not records:
        if inside := results_in(results.folder):
            names = listed([one.name for one in inside])
            raise UnusableError(
                f"{results.folder} holds results folders, and is none; name one of them: {names}"
            )
        raise UnusableError(f"{results.folder} holds no record{' that can be read' if told else 's'}")
    return results, records
