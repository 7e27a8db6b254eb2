"""An experiment with what the command line asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import shown
from gpubench.plan import values
from gpubench.plan.experiment import (
    Axis,
    Experiment,
    aims_at_top1,
    called_group,
    check_job,
    check_once,
    checked,
    policy,
)
from gpubench.plan.groups import Group, settled_by
from gpubench.plan.rounds import overridden
from gpubench.plan.sweep_options import Options
from gpubench.plan.values import RIVALS
from gpubench.schema.trial_fields import MOST_EPOCHS


def with_options(experiment: Experiment, options: Options) -> Experiment:
    """The experiment with the command line's fields in place of its own."""
    fixed = dict(experiment.fixed)
    axes = list(experiment.axes)
    zips = [zip_option(text) for text in options.zips]
    given = [*options.fields, *(name for axis in zips for name in axis.fields)]
    typed = {name: f"--zip {name}" for axis in zips for name in axis.fields} | dict(options.typed)
    check_once(given, "the options", options.typed)
    if options.repeats is not None and options.repeats < 1:
        raise UsageError(f"--repeats: {options.repeats} leaves nothing to run; 1 or more")

    def forget(name: str) -> None:
        rivals = {name, *RIVALS.get(name, ())}
        for rival in rivals:
            fixed.pop(rival, None)
        kept = []
        for axis in axes:
            places = [i for i, f in enumerate(axis.fields) if f not in rivals]
            if len(places) == len(axis.fields):
                kept.append(axis)
            elif places:
                steps = dict.fromkeys(tuple(step[i] for i in places) for step in axis.values)
                kept.append(Axis(tuple(axis.fields[i] for i in places), tuple(steps)))
        axes[:] = kept

    groups = _groups(experiment.groups, options, given)
    if options.jobs:  # what all jobs of the command line give beats the file's axes
        for name in [name for axis in axes for name in axis.fields]:
            if settled_by(groups[0], name):
                forget(name)
    for name, text in options.fields.items():
        field_values = values.parse(name, text, typed.get(name))
        index = next((i for i, axis in enumerate(axes) if axis.fields == (name,)), len(axes))
        forget(name)
        if len(field_values) == 1:
            fixed[name] = field_values[0]
        else:  # at the place of the file's own axis, so that the table keeps its order
            axes.insert(index, Axis((name,), tuple((v,) for v in field_values)))
    for axis in zips:
        for name in axis.fields:
            forget(name)
        axes.append(axis)
    if "until_top1" in given and "epochs" not in given and not aims_at_top1(experiment):
        lift_epochs(fixed)
    excludes = [
        {
            name: values.parse_one(name, value, f"--exclude {name}")
            for name, value in values.assignments(text, "--exclude").items()
        }
        for text in options.excludes
    ]
    repeats = options.repeats or experiment.repeats
    changed = replace(
        experiment,
        fixed=fixed,
        # Fields that move together come last, as in a file, so that a stored plan keeps its order.
        axes=tuple(sorted(axes, key=lambda axis: len(axis.fields) > 1)),
        groups=groups,
        excludes=(*experiment.excludes, *excludes),
        repeats=repeats,
        rounds=overridden(experiment.rounds, options.rounds, options.within, options.budget, repeats),
        timeout_s=values.seconds(options.timeout, "--timeout") if options.timeout else experiment.timeout_s,
        bad_images=experiment.bad_images
        if options.bad_images is None
        else policy(options.bad_images, "--bad-images"),
        typed=typed,
    )
    return checked(changed, "--job" if options.jobs else None)


def _groups(file_groups: tuple[Group, ...], options: Options, given: Sequence[str]) -> tuple[Group, ...]:
    """The command line's jobs as one group, or else the file's groups. `given`: fields of other options.

    Raises UsageError for an option that the jobs would silently beat.
    """
    if options.jobs:
        group = Group(jobs=tuple(job_option(text) for text in options.jobs), pairs=options.pairs)
        for name in given:
            if settled := settled_by(group, name):
                called = options.typed.get(name, name)
                raise UsageError(f"{called} has no effect beside --job: every job gives {settled}")
        return (group,)
    if options.pairs and not file_groups:
        raise UsageError("--pairs: there are no jobs to pair; give --job two or more times")
    for group in file_groups:
        for name in given:
            for rival in (name, *RIVALS.get(name, ())):
                if any(rival in job for job in group.jobs):
                    by = "is given" if rival == name else f"is settled by {rival}, given"
                    called = options.typed.get(name, name)
                    raise UsageError(
                        f"{called} {by} by the jobs of {called_group(group)}; change it there, or give --job"
                    )
    return tuple(replace(group, pairs=group.pairs or options.pairs) for group in file_groups)


def lift_epochs(fixed: dict[str, Any]) -> None:
    """Takes a file's few epochs away: they were enough to time a step, not to reach an accuracy on the command line."""
    few = fixed.get("epochs")
    if isinstance(few, int) and few < MOST_EPOCHS:
        del fixed["epochs"]


def job_option(text: str) -> dict[str, Any]:
    """`batch_size=32,gpu_ids=2+3` as the fields of one of several jobs."""
    what = f"--job {shown(text)}"
    job = {
        name: values.parse_one(name, value, f"--job {name}")
        for name, value in values.assignments(text, "--job").items()
    }
    check_job(job, what)
    return job


def zip_option(text: str) -> Axis:
    """`batch_size,lr=16/0.1,32/0.2` as an axis of two fields."""
    names_text, equals, steps_text = text.partition("=")
    written = [name.strip() for name in names_text.split(",")]
    if not all(written):
        raise UsageError(f"--zip: a field is missing in {shown(names_text)}; {ZIP_FORM}")
    names = tuple(values.check_field(name.replace("-", "_")) for name in written)
    if len(names) < 2:
        raise UsageError(f"--zip: {names[0]} is the only field, and it takes two or more; {ZIP_FORM}")
    if repeated := next((name for index, name in enumerate(names) if name in names[:index]), None):
        raise UsageError(f"--zip: {repeated} is given twice in {shown(names_text)}")
    if not equals:
        raise UsageError(f"--zip: {shown(names_text)} has no values; {ZIP_FORM}")
    steps = []
    for step in steps_text.split(","):
        given = step.split("/")
        if len(given) != len(names):
            number = "no value" if not step else "one value" if len(given) == 1 else f"{len(given)} values"
            raise UsageError(
                f"--zip: {shown(step)} gives {number} for {len(names)} fields ({', '.join(names)}); {ZIP_FORM}"
            )
        steps.append(tuple(values.parse_one(n, v, f"--zip {n}") for n, v in zip(names, given, strict=True)))
    return Axis(names, tuple(steps))


ZIP_FORM = "write the values of one step with / between, and steps with commas: batch_size,lr=16/0.1,32/0.2"
