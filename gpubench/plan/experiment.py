"""An experiment: one question as fixed fields, axes, excludes and variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import shown
from gpubench.plan import values
from gpubench.plan.groups import Group, check_group, check_titles, copies_of
from gpubench.plan.rounds import UNASKED, Rounds
from gpubench.plan.values import RIVALS
from gpubench.schema import catalog, trial
from gpubench.schema.validation import InvalidValueError

DEFAULT_TIMEOUT_S = 3600.0


@dataclass(frozen=True, slots=True)
class Axis:
    """Fields that vary together, and their values: one tuple a step."""

    fields: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Experiment:
    """One question."""

    name: str
    question: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[Axis, ...] = ()
    excludes: tuple[Mapping[str, Any], ...] = ()
    variants: Mapping[str, catalog.Variant] = field(default_factory=dict)
    """The built-in ones and the file's own."""
    groups: tuple[Group, ...] = ()
    """Jobs that run together; the axes cross with them. None: every trial runs alone, or beside its copies."""
    repeats: int = 1
    rounds: Rounds = UNASKED
    timeout_s: float = DEFAULT_TIMEOUT_S
    bad_images: catalog.BadImages = "fail"
    """What becomes of a trial whose images can't all be used."""
    typed: Mapping[str, str] = field(default_factory=dict)
    """Trial field -> what the command line calls it, of those that it gave: `--batch-size`."""

    @property
    def own_variants(self) -> dict[str, catalog.Variant]:
        """Variants that the file defines, in place of a built-in one too."""
        return {n: v for n, v in self.variants.items() if catalog.VARIANTS.get(n) != v}

    @property
    def varied(self) -> tuple[tuple[str, ...], ...]:
        """Fields of each axis that has more than one value."""
        return tuple(axis.fields for axis in self.axes if len(axis.values) > 1)

    @property
    def most_copies(self) -> int:
        """The highest number of copies that its fields and axes ask for."""
        return max(copies_of({"copies": number}) or 1 for number in self._all_of("copies"))

    @property
    def most_nodes(self) -> int:
        """Over how many nodes its largest trial goes, by its fields and axes."""
        return max(int(number or 1) for number in self._all_of("nodes"))

    @property
    def says_how_long(self) -> bool:
        """Whether it gives a window, or whole epochs: else its trials measure the default's window."""
        return any(
            value is not None
            for field in ("window", "steps", "epochs", "until_top1")
            for value in (
                *self._all_of(field),
                *(job.get(field) for group in self.groups for job in group.jobs),
            )
        )

    def _all_of(self, field: str) -> Iterator[Any]:
        """Every value that it gives a field of a trial; None where it is left to its default."""
        yield self.fixed.get(field)
        for axis in self.axes:
            if field in axis.fields:
                yield from (step[axis.fields.index(field)] for step in axis.values)


def checked(experiment: Experiment, called: str | None = None) -> Experiment:
    """The experiment, if its groups make sense with its axes. `called`: what its user calls the only group."""
    axes = [name for axis in experiment.axes for name in axis.fields]
    for group in experiment.groups:
        check_group(
            group, called=called or called_group(group), axes=axes, most_copies=experiment.most_copies
        )
    check_titles(experiment.groups)
    return experiment


def called_group(group: Group) -> str:
    """What its user calls a group of the file."""
    return f"group {shown(group.title)}" if group.title else "[[group]]"


def check_job(job: Mapping[str, Any], called: str) -> None:
    """Raises UsageError for a field given beside its rival, and for a value that its field does not take."""
    check_once(list(job), called)
    try:
        trial.make({name: value for name, value in job.items() if name != values.BATCH_PER_GPU})
    except InvalidValueError as error:
        raise UsageError(f"{called}: {error}") from None


def check_once(names: Sequence[str], places: str, typed: Mapping[str, str] = MappingProxyType({})) -> None:
    """Raises UsageError for a field that is given twice, or together with a rival, over all `places`.

    `typed`: what the user calls a field, where that is not its name.
    """
    for index, name in enumerate(names):
        for other in (name, *RIVALS.get(name, ())):
            if other in names[:index]:
                called = typed.get(name, name)
                if other != name:
                    raise UsageError(
                        f"{called} is given beside {typed.get(other, other)}: one of the two is enough"
                    )
                raise UsageError(f"{called} is given twice: once in all of {places} is enough")


def policy(text: str, called: str = "bad_images") -> catalog.BadImages:
    """`fail` or `skip`. Raises UsageError for anything else. `called`: what its user calls it."""
    for known in catalog.BAD_IMAGES:
        if text == known:
            return known
    raise UsageError(f"{called} is fail or skip, not {shown(text)}")


def aims_at_top1(experiment: Experiment) -> bool:
    """Whether its own epochs are the most that it gives the way to an accuracy."""
    return experiment.fixed.get("until_top1") is not None or any(
        "until_top1" in axis.fields for axis in experiment.axes
    )
