"""What there is to say about one field of a trial. Imports nothing heavy: every `--help` reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class FieldOption:
    """An option of `gpubench sweep` for one field. A field without one is given by `--set FIELD=VALUES`."""

    name: str
    """`--batch-size`."""
    help: str
    metavar: str = "VALUES"
    """Stands for the values in `--help`. Of one that takes several with commas between it ends in VALUES or `,…`."""
    behind: str = ""
    """The option behind which it stands in `--help`, where that is not the one of the field before."""
    is_flag: bool = False
    """Whether it takes no value and means true. Flags stand among the options that say how to run."""


@dataclass(frozen=True)
class FieldWords:
    """What a field means, and how people read it."""

    meaning: str
    """What its column holds: for docs/columns.md and docs/experiments.md."""
    _: KW_ONLY
    note: str = ""
    """What docs/experiments.md adds to that, in Markdown."""
    default: str = ""
    """The default in words, in Markdown, where the value alone would not tell it all."""
    auto: str = ""
    """What the machine takes where nothing is given (None), in words. Empty: None means that there is none."""
    unit: str = ""
    heading: str = ""
    """Over its column in a table for people; the field's name where empty."""
    phrase: str = ""
    """How the line above a table says the value that all rows have: `{} worker{s}`. Empty: the line leaves it out."""


@dataclass(frozen=True, kw_only=True)
class FieldRules:
    """Where a field may be given, and what it changes.

    What is left out is right for most fields: one that makes another configuration, takes more or less memory, makes
    steps longer or shorter, and is to be alike in rows that are compared.
    """

    in_run: bool = False
    """Whether an experiment file may give it under [run], too."""
    rivals: tuple[str, ...] = ()
    """Fields that say the same in another way: giving one takes the others' place."""
    behind: str = ""
    """The field behind whose column its own stands, where that is not the field before."""
    added: bool = False
    """Whether it came after the first results were stored. Then a record without it means its default, and only other
    values enter the ids of trials, so that stored results keep theirs. True for every new field."""
    repeats: bool = False
    """Whether it only tells repeats of one configuration apart."""
    memory: Literal["changes", "grows", "keeps"] = "changes"
    """The GPU memory that the trial takes. `grows`: more of it takes more, so that a trial with more than one that ran
    out of memory, all other fields equal, is not tried."""
    pace: bool = True
    """Whether the seconds of an epoch tell nothing of a trial that has another value. False, too, where that is looked
    at apart: images by their content, what is `allotted` by how many there were."""
    alternatives: bool = False
    """Whether its values are ways to do the same work, so that a table says which of them is faster."""
    feeds: bool = False
    """Whether it concerns how images are read, not what is computed of them."""
    of_devices: bool = False
    """Whether it says on what devices a trial ran, and how they shared the work."""
    allotted: bool = False
    """Whether what is left to the machine depends on the CPUs that it may use, and on the jobs beside it."""
    moves_with: tuple[str, ...] = ()
    """Axes along which it may move, where the experiment ties it to them, and rows still are of one workload."""
    follows: tuple[str, ...] = ()
    """Fields that fill it where nobody asked for it. While they determine it, it tells nothing and takes no column."""


@dataclass(frozen=True, kw_only=True)
class FieldDescription(FieldWords, FieldRules):
    """All that there is to say about one field."""

    option: FieldOption | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Between what a number must lie: as `msgspec.Meta`, which would import msgspec."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None

    def collect_given(self) -> dict[str, float]:
        """Those that there are, by name."""
        bounds = {"gt": self.gt, "ge": self.ge, "lt": self.lt, "le": self.le}
        return {name: limit for name, limit in bounds.items() if limit is not None}


def order_names(names: Sequence[str], behind: Mapping[str, str]) -> tuple[str, ...]:
    """The names in their order, but those with a place in `behind` directly behind the name that stands there."""
    ordered = [name for name in names if not behind.get(name)]
    for name in names:
        if other := behind.get(name):
            ordered.insert(ordered.index(other) + 1, name)
    return tuple(ordered)
