"""An experiment: one question as fixed fields, axes, excludes and variants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpubench.basics.errors import UsageError, find_similar_name, make_unknown_name_error
from gpubench.basics.quoted import quote_value
from gpubench.basics.words import format_list
from gpubench.plan.groups import Group, check_group, count_copies, is_training_job
from gpubench.plan.rounds import UNASKED, RoundLimits
from gpubench.plan.values import KINDS, RIVALS, check_field_name
from gpubench.schema import catalog
from gpubench.schema.columns import TAKEN_NAMES
from gpubench.schema.command import (
    compile_pattern,
    list_placeholders,
    parse_metric_patterns,
    parse_metric_target,
    split_command,
)
from gpubench.schema.trial import list_load_fields
from gpubench.schema.trial_fields import ABOUT

DEFAULT_TIMEOUT_S = 3600.0
COMMAND_TIMEOUT_S = 86_400.0
"""Of commands, which may train to their end."""


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
    def command(self) -> str | None:
        """The command that its trials run; None: they train."""
        return self.fixed.get("command")

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


def check_experiment(experiment: Experiment) -> Experiment:
    """The experiment, if its fields are known, and its command and its groups make sense. Raises UsageError."""
    check_known_fields(experiment)
    check_command(experiment)
    check_loads(experiment)
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


def check_loads(experiment: Experiment) -> None:
    """Raises UsageError for a field that has no effect on known loads, where it is given to nothing else."""
    given = list(experiment.list_given_values())
    jobs = [job for group in experiment.groups for job in group.jobs if "model" in job]
    asked = [([*job], {job["model"]}) for job in jobs]
    if not jobs and experiment.command is None:
        asked.append(([name for name, _ in given], {value for name, value in given if name == "model"}))
    for names, models in asked:
        if models and models <= catalog.LOADS.keys():
            known = {name for load in models for name in list_load_fields(load)}
            for name in names:
                if name not in known:
                    raise UsageError(f"{name} has no effect on {format_list(sorted(models))}: leave it out")


# ---- commands ----


RESOLVED_PLACEHOLDERS = ("gpus", "gpu_ids", "cpus", "device", "seed", "repeat")
"""Fields that a command may name though nobody gives them: the machine fills them, or they have a value anyway."""


def check_known_fields(experiment: Experiment) -> None:
    """Raises UsageError for a name that is neither a trial field nor a placeholder of the command."""
    settings = list_placeholders(experiment.command or "")
    excluded = (name for exclude in experiment.excludes for name in exclude)
    given = (*experiment.list_given_values(), *experiment.list_job_values())
    for name in (*(name for name, _ in given), *excluded):
        if experiment.command is None:
            check_field_name(name)
        elif name not in KINDS and name not in settings:
            near = find_similar_name(name, [*KINDS, *settings], cutoff=0.75)
            raise UsageError(
                f"{quote_value(name)} has no effect: the command has no {{{name}}}, and no trial field is called so"
                + (f" (did you mean {near}?)" if near else "")
            )


def check_command(experiment: Experiment) -> None:
    """Raises UsageError for a placeholder without a value, and for a field that has no effect on a command."""
    command = experiment.command
    jobs = [job for group in experiment.groups for job in group.jobs]
    of_commands = [job for job in jobs if not is_training_job(job, command)]
    given = [name for name, _ in experiment.list_given_values()] + [n for job in of_commands for n in job]
    if command is None:
        lost = [name for name in ("epoch_pattern", "metrics", "until", "settings") if name in given]
        if lost and "command" not in given:
            raise UsageError(
                f"{lost[0].replace('_', ' ')} is of a command: give one behind --, or leave it out"
            )
        return
    placeholders = list_placeholders(command)
    split_command(command)
    metrics = [pattern.name for pattern in parse_metric_patterns(experiment.fixed.get("metrics"))]
    for name in placeholders:
        if name not in KINDS and (name in TAKEN_NAMES or name in metrics):
            raise UsageError(f"{{{name}}}: a column has that name already; give the placeholder another one")
    for name in placeholders:
        if name not in given and name not in RESOLVED_PLACEHOLDERS:
            option = ABOUT[name].option if name in ABOUT else None
            how = f"{option.name} VALUES" if option else f"--set {name}=VALUES"
            raise UsageError(
                f"the command has {{{name}}}, and nothing gives its value: add {how}, or write {{{{{name}}}}} where "
                "the braces are the command's own"
            )
    for name in given if len(of_commands) == len(jobs) else ():
        if name in MEASURED_OTHERWISE:
            raise UsageError(
                f"{name} is of trainings: a command is measured over its whole run, or by its epochs "
                "(--epoch-pattern, or gpubench.epoch() in its script)"
            )
        if name in ABOUT and not ABOUT[name].for_commands and name not in placeholders:
            raise UsageError(f"{name} has no effect: the command has no {{{name}}}")
    check_command_output(experiment.fixed)


MEASURED_OTHERWISE = (
    "window",
    "steps",
    "until_top1",
    "confirm_top1",
    "breakdown",
    "gpu_mem_cap_mib",
    "nodes",
)
"""Fields by which trainings are measured, which no placeholder could hand over."""


def check_command_output(fields: Mapping[str, Any]) -> None:
    """Raises UsageError for patterns that can't be looked for, and for a target that none of them finds."""
    if (pattern := fields.get("epoch_pattern")) is not None:
        compile_pattern("--epoch-pattern", pattern)
    metrics = parse_metric_patterns(fields.get("metrics"))
    for metric in metrics:
        if metric.name in TAKEN_NAMES:
            raise UsageError(
                f"--metric {metric.name}: that is a column of gpubench's own; give the figure another name, such as "
                f"my_{metric.name}"
            )
    if (target := fields.get("until")) is not None:
        parse_metric_target(target, [metric.name for metric in metrics])
