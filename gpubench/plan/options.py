"""An experiment with what the command line asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import quote_value
from gpubench.plan import values
from gpubench.plan.experiment import (
    Axis,
    Experiment,
    check_experiment,
    check_no_duplicate_fields,
    parse_bad_images_policy,
)
from gpubench.plan.groups import Group
from gpubench.plan.rounds import override_rounds
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.plan.values import RIVALS


def apply_options(experiment: Experiment, options: ExperimentOptions) -> Experiment:
    """The experiment with the command line's fields in place of its own."""
    fixed = dict(experiment.fixed)
    axes = list(experiment.axes)
    zips = [parse_zip_option(text) for text in options.zips]
    given = [*options.fields, *(name for axis in zips for name in axis.fields)]
    check_no_duplicate_fields(given, "the options")

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

    for name, text in options.fields.items():
        field_values = values.parse_field_values(name, text)
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
    for name, given_text in options.collect_command_fields().items():
        if given_text is not None:
            forget(name)
            fixed[name] = given_text
    repeats = options.repeats or experiment.repeats
    return check_experiment(
        replace(
            experiment,
            fixed=fixed,
            # Fields that move together come last, as in a file, so that a stored plan keeps its order.
            axes=tuple(sorted(axes, key=lambda axis: len(axis.fields) > 1)),
            groups=_choose_groups(experiment.groups, options, given),
            excludes=(*experiment.excludes, *map(_parse_assignments, options.excludes)),
            repeats=repeats,
            rounds=override_rounds(
                experiment.rounds, options.rounds, options.within, options.budget, repeats
            ),
            timeout_s=values.parse_seconds(options.timeout) if options.timeout else experiment.timeout_s,
            bad_images=parse_bad_images_policy(options.bad_images)
            if options.bad_images
            else experiment.bad_images,
        )
    )


def _choose_groups(
    file_groups: tuple[Group, ...], options: ExperimentOptions, given: Sequence[str]
) -> tuple[Group, ...]:
    """The command line's jobs as one group, or else the file's groups. `given`: fields of other options."""
    if options.jobs:
        jobs = tuple(map(parse_job_option, options.jobs))
        for name in given:
            if all({name, *RIVALS.get(name, ())} & job.keys() for job in jobs):
                raise UsageError(f"{name} has no effect beside --job: every job gives what settles it")
        return (Group(jobs=jobs, pairs=options.pairs),)
    if options.pairs and not file_groups:
        raise UsageError("--pairs: there are no jobs to pair; give --job two or more times")
    of_jobs = {name for group in file_groups for job in group.jobs for name in job}
    for name in given:
        if {name, *RIVALS.get(name, ())} & of_jobs:
            raise UsageError(
                f"{name} is given by the jobs of the file's groups; change it there, or give --job"
            )
    return tuple(replace(group, pairs=group.pairs or options.pairs) for group in file_groups)


def _parse_assignments(text: str) -> dict[str, Any]:
    return {
        name: values.parse_field_value(name, value) for name, value in values.split_assignments(text).items()
    }


def parse_job_option(text: str) -> dict[str, Any]:
    """`batch_size=32,gpu_ids=2+3` as the fields of one of several jobs."""
    job = _parse_assignments(text)
    check_no_duplicate_fields(list(job), "a --job")
    return job


def parse_zip_option(text: str) -> Axis:
    """`batch_size,lr=16/0.1,32/0.2` as an axis of two fields."""
    names_text, _, steps_text = text.partition("=")
    names = tuple(name.strip().replace("-", "_") for name in names_text.split(","))
    steps = [step.split("/") for step in steps_text.split(",")]
    if len(set(names)) < max(2, len(names)) or any(len(step) != len(names) for step in steps):
        raise UsageError(
            f"--zip {quote_value(text)}: write two fields or more, the values of one step with / between, and steps "
            "with commas: batch_size,lr=16/0.1,32/0.2"
        )
    return Axis(
        names,
        tuple(
            tuple(values.parse_field_value(name, value) for name, value in zip(names, step, strict=True))
            for step in steps
        ),
    )
