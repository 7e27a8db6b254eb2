"""An experiment as a TOML file: read, and written back."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import clean_line
from gpubench.plan import values
from gpubench.plan.experiment import (
    COMMAND_TIMEOUT_S,
    DEFAULT_TIMEOUT_S,
    Axis,
    Experiment,
    check_experiment,
    check_no_duplicate_fields,
)
from gpubench.plan.groups import Group
from gpubench.plan.rounds import encode_rounds, parse_rounds
from gpubench.schema import catalog
from gpubench.schema.command import SCRIPT_SUFFIXES, join_command
from gpubench.schema.events import Finite
from gpubench.schema.trial_fields import select_fields
from gpubench.schema.validation import convert_value

Argument = str | bool | int | Finite
"""What can stand in a record: no date, no time, no number that is not finite."""
Transforms = list[str | dict[str, dict[str, Argument | list[Argument]]]]


class _VariantTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    data: str | None = None
    files: Literal["full", "resized", "decoded", "none"] = "full"
    cpu: Transforms = []
    gpu: Transforms = []


class _RunTableOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stands under [run] besides trial fields."""

    repeats: Annotated[int, Meta(ge=1)] = 1
    rounds: int | None = None
    within: str | float | None = None
    budget: str | float | None = None
    timeout: str | float | None = None
    bad_images: catalog.BadImages = "fail"


_RUN_FIELDS = select_fields(lambda about: about.in_run)
_in_run: list[tuple[str, Any, None]] = [
    (name, values.KINDS[name] | str | None if name == "window" else values.KINDS[name] | None, None)
    for name in _RUN_FIELDS
]
_RunTable: Any = msgspec.defstruct(
    "_RunTable", _in_run, bases=(_RunTableOptions,), frozen=True, kw_only=True, forbid_unknown_fields=True
)


class _GroupTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str = ""
    jobs: list[dict[str, Any]]
    pairs: bool = False


_Name = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z",
        description="letters, digits, dots, dashes and underscores, a letter or a digit first",
    ),
]


class _CommandTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that is run in place of trainings."""

    run: str | list[str]
    """As a shell would read it, or its words."""
    epoch_pattern: str | None = None
    metrics: list[str] = []
    until: str | None = None


class _ExperimentFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: _Name
    question: str = ""
    command: _CommandTable | None = None
    fixed: dict[str, Any] = {}
    axes: dict[str, list[Any] | str] = {}
    zip: list[dict[str, list[Any]]] = []
    exclude: list[dict[str, Any]] = []
    group: list[_GroupTable] = []
    variants: dict[str, _VariantTable] = {}
    run: _RunTable = msgspec.field(default_factory=_RunTable)


def read_experiment_file(path: Path, command: str | None = None) -> Experiment:
    """The experiment of a TOML file. Raises UsageError in one line for anything wrong with it.

    `command`: one that is to be run in place of its own.
    """
    if path.suffix in SCRIPT_SUFFIXES:
        interpreter = "python" if path.suffix == ".py" else "bash"
        raise UsageError(
            f"{path} is a script, not an experiment file: a command stands behind --, as in gpubench sweep -- "
            f"{interpreter} {path}"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"experiment file {path} can't be read: {error.strerror}; between several values of an option stand commas"
        ) from None
    except UnicodeDecodeError:
        raise UsageError(f"experiment file {path} is no text in UTF-8; save it as one") from None
    return parse_experiment(text, str(path), command)


def parse_experiment(text: str, where: str, command: str | None = None) -> Experiment:
    """The experiment of TOML text; `where` names it in errors. `command`: as of `read_experiment_file`."""
    try:
        table = tomllib.loads(text)
        repr(table)  # a hexadecimal number may have any length; the messages below could not quote it
    except (ValueError, RecursionError) as error:  # the first, too, for a number of more than 4,300 digits
        raise UsageError(f"{where} is not TOML: {error}") from None
    resolved = table.pop("plan", None)  # what a stored plan says of how it was resolved
    is_earlier = isinstance(resolved, dict) and PROTOCOL not in resolved
    try:
        file = convert_value(table, _ExperimentFile)
        experiment = _make_experiment(file, command, is_checked=is_earlier)
        return _default_old_plan_to_epochs(experiment) if is_earlier else experiment
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


PROTOCOL = "protocol"
"""The key of a stored plan's [plan] that says by which version's default it measures: earlier ones have none."""
EPOCHS_BEFORE = 3
"""What versions before 0.2 trained where nobody said how long."""


def _default_old_plan_to_epochs(experiment: Experiment) -> Experiment:
    """The experiment of a plan that a version before 0.2 stored, which measured whole epochs unasked."""
    given = {*experiment.fixed, *(name for axis in experiment.axes for name in axis.fields)}
    if {"epochs", "until_top1"} & given:  # what a job of a group gives beats what is fixed
        return experiment
    return replace(experiment, fixed={**experiment.fixed, "epochs": EPOCHS_BEFORE})


def _make_variant(table: _VariantTable) -> catalog.InputVariant:
    return catalog.InputVariant(
        files=table.files,
        cpu=tuple({t: {}} if isinstance(t, str) else t for t in table.cpu),
        gpu=tuple({t: {}} if isinstance(t, str) else t for t in table.gpu),
        data=table.data,
        answers="from the experiment file",
    )


def _make_experiment(
    file: _ExperimentFile, command: str | None = None, *, is_checked: bool = False
) -> Experiment:
    """`is_checked`: it was asked for once, by a version that knew other rivals."""
    fixed = _decode_fields(file.fixed) | (_decode_command(file.command) if file.command else {})
    fixed |= {} if command is None else {"command": command}
    timeout_s = COMMAND_TIMEOUT_S if "command" in fixed else DEFAULT_TIMEOUT_S
    given_run = {name: getattr(file.run, name) for name in _RUN_FIELDS}
    run = _decode_fields({name: given for name, given in given_run.items() if given is not None})
    axes = [
        Axis((name,), tuple((v,) for v in values.decode_toml_axis(name, given)))
        for name, given in file.axes.items()
    ]
    axes += [_make_zipped_axis(table) for table in file.zip]
    moving = (name for axis in axes for name in axis.fields)
    if not is_checked:
        check_no_duplicate_fields([*fixed, *run, *moving], "[fixed], [run], [axes] and [[zip]]")
    if not all(file.exclude):
        raise UsageError("an empty [[exclude]] would leave out everything; name a field and its value")
    return check_experiment(
        Experiment(
            name=file.name,
            question=file.question,
            fixed=fixed | run,
            axes=tuple(axes),
            groups=tuple(_make_group(table) for table in file.group),
            excludes=tuple(map(_decode_fields, file.exclude)),
            variants=catalog.VARIANTS | {name: _make_variant(table) for name, table in file.variants.items()},
            repeats=file.run.repeats,
            rounds=parse_rounds(file.run.rounds, file.run.within, file.run.budget, repeats=file.run.repeats),
            timeout_s=timeout_s if file.run.timeout is None else values.parse_seconds(file.run.timeout),
            bad_images=file.run.bad_images,
        )
    )


def _decode_command(table: _CommandTable) -> dict[str, Any]:
    """The fields of a trial that a [command] table gives."""
    fields = {
        "command": table.run if isinstance(table.run, str) else join_command(table.run),
        "epoch_pattern": table.epoch_pattern,
        "metrics": "\n".join(table.metrics) or None,
        "until": table.until,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _decode_fields(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values.decode_toml_value(name, value) for name, value in table.items()}


def _make_group(table: _GroupTable) -> Group:
    jobs = tuple(map(_decode_fields, table.jobs))
    for job in jobs:
        check_no_duplicate_fields(list(job), "a job")
    return Group(name=clean_line(table.name).strip(), jobs=jobs, pairs=table.pairs)


def _make_zipped_axis(table: Mapping[str, Sequence[Any]]) -> Axis:
    lengths = {len(given) for given in table.values()}
    if len(lengths) != 1 or lengths == {0}:
        sizes = ", ".join(f"{name} has {len(given)}" for name, given in table.items())
        raise UsageError(f"zipped fields need equally many values, one at least: {sizes or 'none is given'}")
    columns = [[values.decode_toml_value(name, v) for v in given] for name, given in table.items()]
    return Axis(tuple(table), tuple(zip(*columns, strict=True)))


def format_experiment(experiment: Experiment, resolved: Mapping[str, Any]) -> str:
    """The experiment as a file for `parse_experiment`, with `resolved` (data fingerprints, device) as [plan]."""
    import tomli_w

    def encode_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {name: values.encode_toml_value(value) for name, value in fields.items()}

    columns = [
        (
            axis.fields,
            [list(map(values.encode_toml_value, given)) for given in zip(*axis.values, strict=True)],
        )
        for axis in experiment.axes
    ]
    table: dict[str, Any] = {"name": experiment.name, "question": experiment.question}
    table["fixed"] = encode_fields(experiment.fixed)
    table["axes"] = {names[0]: given[0] for names, given in columns if len(names) == 1}
    table["run"] = {"repeats": experiment.repeats, "timeout": experiment.timeout_s}
    table["run"] |= encode_rounds(experiment.rounds)
    if experiment.bad_images != "fail":
        table["run"]["bad_images"] = experiment.bad_images
    table["zip"] = [dict(zip(names, given, strict=True)) for names, given in columns if len(names) > 1]
    table["exclude"] = [encode_fields(exclude) for exclude in experiment.excludes]
    table["group"] = [
        {
            **({"name": group.name} if group.name else {}),
            "jobs": [encode_fields(job) for job in group.jobs],
            **({"pairs": True} if group.pairs else {}),
        }
        for group in experiment.groups
    ]
    table["variants"] = {
        name: {**variant.make_definition(), **({"data": variant.data} if variant.data else {})}
        for name, variant in experiment.own_variants.items()
    }
    table["plan"] = dict(resolved)
    return tomli_w.dumps({k: v for k, v in table.items() if v not in ({}, [], "")})
