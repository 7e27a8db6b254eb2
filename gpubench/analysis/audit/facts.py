"""What the rules look at, and what they find."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from gpubench.analysis.growth import series
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.scaling import DEVICES, Comparison, comparisons
from gpubench.analysis.varied import Axes, asked, label, machine, solo, together, varied
from gpubench.basics.words import all_of
from gpubench.schema.row import KnownImages, Row, TableRow

RuleVerdict = Literal["kept", "broken", "not decidable"]

SCALES = frozenset({"batch_size", "batch_per_gpu", "gpus", "gpu_ids", "ranks"})
"""Fields in which rows are scaled."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What one rule has to say."""

    verdict: RuleVerdict
    text: str
    """What the data show; where it is not decidable, what is missing and which command would provide it."""


@dataclass(frozen=True, slots=True)
class StoredAttempt:
    """One stored record."""

    trial_id: str
    number: int
    status: str
    source: str = "measured"
    round: int = 1


@dataclass(frozen=True, slots=True)
class Damaged:
    """One stored record that can't be read."""

    unit_id: str
    number: int
    trials: frozenset[str]
    """Ids of the trials that it holds, or may hold: all that jobs of its group can have."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """One table: rows that are meant to be compared."""

    name: str
    """Its title, as it stands over the table."""
    rows: tuple[Row, ...]
    """Each repeat by itself; planned trials without a record among them."""
    axes: Axes = ()

    @cached_property
    def ok(self) -> list[Row]:
        return [row for row in self.rows if row.status == "ok"]

    @cached_property
    def beside(self) -> list[TableRow]:
        """Rows that ended ok, jobs of groups among them, repeats merged."""
        return [row for row in merge_repeats(self.rows) if row.status == "ok"]

    @cached_property
    def merged(self) -> list[TableRow]:
        """Rows that ended ok and ran alone, repeats merged."""
        return solo(self.beside)

    @cached_property
    def own(self) -> list[TableRow]:
        """The rows of `merged` that may be meant to be compared with each other.

        Where no axis varies batch sizes or devices, a trial that a job of a group is compared with is there for that
        job alone: the jobs of a group differ as they like.
        """
        if SCALES & set(asked(self.axes)):
            return self.merged
        return [row for row in self.merged if row.trial_id not in self.baselines]

    @cached_property
    def baselines(self) -> frozenset[str]:
        """Ids of the trials that this table's jobs of groups are compared with."""
        return frozenset(str(row.solo_id) for row in self.rows if row.solo_id)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """What several devices bring, strong and weak."""
        return comparisons(self.own, self.tied("gpus", "ranks"), self.tied("batch_size"))

    def tied(self, *fields: str) -> set[str]:
        """The fields that are on one axis with any of `fields`."""
        return together(self.axes, *fields)

    def scaled(self) -> list[list[TableRow]]:
        """Rows that differ in batch size and devices alone (and what moves with them), two or more of them."""
        free = {*DEVICES, *self.tied("batch_size", "gpus", "ranks")}
        sized = [row for row in self.own if row.batch_size]
        return [same for same in series(sized, "batch_size", free).values() if len(same) > 1]

    def label(self, row: Row) -> str:
        """The row's name in a sentence that names the table, too."""
        job = f"job {row.job}" if row.group else ""
        if job and row.group != self.name:
            job = f"{row.group}: {job}"
        own = label(row, varied(self.rows, self.axes))
        return ", ".join(part for part in (job, own) if part) or "the only row"


@dataclass(frozen=True, slots=True)
class FurtherRounds:
    """Measurements of trials and groups in the further rounds that their plans ask for, as a sweep counts them."""

    done: int = 0
    failed: int = 0
    left: int = 0
    """Not begun, or interrupted."""


@dataclass(frozen=True, kw_only=True)
class AuditedFolder:
    """A results folder."""

    tables: tuple[Shown, ...]
    attempts: tuple[StoredAttempt, ...] = ()
    """Every record, the ones that no longer count included."""
    damaged: tuple[Damaged, ...] = ()
    """Every record that lies there and can't be read."""
    traces: frozenset[tuple[str, int]] = frozenset()
    """(trial id, attempt number) of every log and every file of samples."""
    planned: frozenset[str] = frozenset()
    """Names of the tables for which a plan is stored."""
    further: FurtherRounds = FurtherRounds()
    parts: tuple[str, ...] = ()
    """The parts of a plan that the folder is asked for, `2/8`; none: all that was planned."""
    tries: int = 0
    """Attempts that only looked for the largest batch that fits: a few first steps, which stand in no table here."""
    hidden: int = 0
    """Trials that stand in no table: their variant, model or images were edited since."""

    @cached_property
    def rows(self) -> list[Row]:
        """Every row of a table, once."""
        return once(row for table in self.tables for row in table.rows)

    @cached_property
    def ok(self) -> list[Row]:
        """Rows that ended ok."""
        return [row for row in self.rows if row.status == "ok"]

    @cached_property
    def of_rounds(self) -> set[Measured]:
        """What further rounds have measured, too."""
        return {measured(row) for table in self.tables for row in table.ok if (row.round or 1) > 1}

    @cached_property
    def alone(self) -> list[Row]:
        """Rows that ended ok and shared the machine with no other job."""
        return [row for row in self.ok if not row.group]


Measured = tuple[Any, Any, Any]
"""Trial, machine and allowance of CPUs: what one row is the figures of."""


def measured(row: Row) -> Measured:
    """Equal in one and the same row of several tables."""
    return row.trial_id, machine(row), row.allowance


def once(rows: Iterable[Row]) -> list[Row]:
    """Each trial once, whatever number of tables and rounds it stands in.

    The first round stands for it: further ones measure windows of steps, and judge no network.
    """
    found: dict[Measured, Row] = {}
    for row in rows:
        there = found.setdefault(measured(row), row)
        if (row.round or 1) <= (there.round or 1):
            found[measured(row)] = row
    return list(found.values())


def rule_finding(broken: Sequence[str], unclear: Sequence[str], kept: str) -> RuleFinding:
    """Broken outweighs undecidable, which outweighs kept."""
    if broken:
        return RuleFinding("broken", "; ".join(broken))
    return RuleFinding("not decidable", "; ".join(unclear)) if unclear else RuleFinding("kept", kept)


NOTHING = RuleFinding("not decidable", "no trial ended ok; gpubench sweep measures them")
NONE_ALONE = RuleFinding("not decidable", "every row ran beside others, which leaves top-1 to the rows alone")


def of(some: Sequence[Any], whole: Sequence[Any], words: str = "ok row") -> str:
    """`3 of 24 ok rows`, `all 24 ok rows`, `both ok rows`, `the only ok row`.

    `words`: with `row` in it, which takes the plural.
    """
    before, _, after = words.partition("row")
    if len(some) == len(whole):
        return f"{all_of(len(whole), f'{before}row')}{after}"
    return f"{len(some):,} of {len(whole):,} {before}rows{after}"


def does(some: Sequence[Any], verb: str) -> str:
    """The verb that goes with `some` rows: `trains` of one, `train` of several."""
    return verb if len(some) > 1 else {"have": "has", "carry": "carries"}.get(verb, f"{verb}s")


ALONE = "row that ran alone"


def first_few(found: Iterable[Any], limit: int = 3) -> str:
    """`a, b, c and 4 more`: what is there, once each."""
    names = [str(each) for each in dict.fromkeys(found)]
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


NO_IMAGES = KnownImages()


def details(row: Row) -> KnownImages:
    """What the record knows of the images: counts, native size, how the variant's files lie."""
    return row.images or NO_IMAGES
