"""An experiment: one question as fixed fields, axes, excludes and variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.basics.quoted import quote_value
from gpubench.plan.groups import Group, check_group, count_copies
from gpubench.plan.rounds import UNASKED, RoundLimits
from gpubench.plan.values import RIVALS
from gpubench.schema import catalog

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
    variants: Mapping[str, catalog.InputVariant] = field(default_factory=dict)
    """The built-in ones and the file's own."""
    groups: tuple[Group, ...] = ()
    """Jobs that run together; the axes cross with them. None: every trial runs alone, or beside its copies."""
    repeats: int = 1
    rounds: RoundLimits = UNASKED
    timeout_s: float = DEFAULT_TIMEOUT_S
    bad_images: catalog.BadImages = "fail"
    """What becomes of a trial whose images can't all be used."""

    @property
    def own_variants(self) -> dict[str, catalog.InputVariant]:
        """Variants that the file defines, in place of a built-in one too."""
        return {n: v for n, v in self.variants.items() if catalog.VARIANTS.get(n) != v}

    @property
    def varied(self) -> tuple[tuple[str, ...], ...]:
        """Fields of each axis that has more than one value."""
        return tuple(axis.fields for axis in self.axes if len(axis.values) > 1)

    @property
    def most_copies(self) -> int:
        """The highest number of copies that its fields and axes ask for."""
        given = (count_copies({name: value}) for name, value in self.list_given_values() if name == "copies")
        return max((number or 1 for number in given), default=1)

    @property
    def most_nodes(self) -> int:
        """Over how many nodes its largest trial goes, by its fields and axes."""
        return max(
            (int(value or 1) for name, value in self.list_given_values() if name == "nodes"), default=1
        )

    @property
    def is_length_given(self) -> bool:
        """Whether it gives a window, or whole epochs: else its trials measure the default's window."""
        given = [*self.list_given_values(), *self.list_job_values()]
        return any(value is not None and name in _OF_LENGTH for name, value in given)

    def list_given_values(self) -> Iterator[tuple[str, Any]]:
        """Every value that its fields and axes give, beside the name of its field."""
        yield from self.fixed.items()
        for axis in self.axes:
            for step in axis.values:
                yield from zip(axis.fields, step, strict=True)

    def list_job_values(self) -> Iterator[tuple[str, Any]]:
        """The same of the jobs of its groups."""
        return (given for group in self.groups for job in group.jobs for given in job.items())


_OF_LENGTH = ("window", "steps", "epochs", "until_top1")


def check_experiment_groups(experiment: Experiment) -> Experiment:
    """The experiment, if its groups make sense."""
    for index, group in enumerate(experiment.groups):
        check_group(group, most_copies=experiment.most_copies)
        if group.title in [other.title for other in experiment.groups[:index]]:
            raise UsageError(f"two groups are named {quote_value(group.title)}; give each a name of its own")
    return experiment


def check_no_duplicate_fields(names: Sequence[str], places: str) -> None:
    """Raises UsageError for a field that is given twice, or together with a rival, over all `places`."""
    for index, name in enumerate(names):
        for other in (name, *RIVALS.get(name, ())):
            if other in names[:index]:
                beside = "twice" if other == name else f"beside {other}"
                raise UsageError(f"{name} is given {beside} in {places}: once is enough")


def parse_bad_images_policy(text: str) -> catalog.BadImages:
    """`fail` or `skip`. Raises UsageError for anything else."""
    for known in catalog.BAD_IMAGES:
        if text == known:
            return known
    raise make_unknown_name_error("--bad-images", text, catalog.BAD_IMAGES)
