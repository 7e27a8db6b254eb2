"""An experiment: one question as fixed fields, axes, excludes and variants. From a TOML file, options, or both."""

from __future__ import annotations

import math
import tomllib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from gpubench.basics.errors import UsageError, unknown
from gpubench.basics.quoted import shown
from gpubench.plan import values
from gpubench.plan.groups import Group, check_group, check_titles, copies_of, label, settled_by
from gpubench.plan.rounds import UNASKED, Rounds, as_table, overridden, rounds_of
from gpubench.plan.values import RIVALS
from gpubench.schema import catalog, trial
from gpubench.schema.trial_fields import MOST_EPOCHS, those
from gpubench.schema.validation import error_message, first, toml_error_message

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
        moved = [
            step[axis.fields.index("copies")]
            for axis in self.axes
            if "copies" in axis.fields
            for step in axis.values
        ]
        return max(copies_of({"copies": number}) or 1 for number in (self.fixed.get("copies"), *moved))


class _VariantTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    data: str | None = None
    files: str = "full"
    cpu: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)
    gpu: list[str | dict[str, dict[str, Any]]] = Field(default_factory=list)


class _RunOptions(BaseModel):
    """What stands under [run] besides trial fields. Strict, as trials are: `rounds = true` is not 1."""

    model_config = ConfigDict(extra="forbid", strict=True)
    repeats: int = Field(default=1, ge=1)
    rounds: int | None = None
    within: str | float | None = None
    budget: str | float | None = None
    timeout: str | float = DEFAULT_TIMEOUT_S
    bad_images: str = "fail"


_RUN_FIELDS = those(lambda about: about.in_run)
_in_run: dict[str, Any] = {name: (values.KINDS[name] | None, None) for name in _RUN_FIELDS}
_RunTable = create_model("_RunTable", __base__=_RunOptions, **_in_run)


class _GroupTable(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = ""
    jobs: list[dict[str, Any]]
    pairs: bool = False


class _ExperimentFile(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    question: str = ""
    fixed: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, list[Any] | str] = Field(default_factory=dict)
    zip: list[dict[str, list[Any]]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    group: list[_GroupTable] = Field(default_factory=list)
    variants: dict[str, _VariantTable] = Field(default_factory=dict)
    run: _RunTable = Field(default_factory=_RunTable)


def load(path: Path) -> Experiment:
    """The experiment of a TOML file. Raises UsageError in one line for anything wrong with it."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"experiment file {path} does not exist") from None
    except IsADirectoryError:
        files = sorted(path.glob("*.toml"))
        which = f"a file in it, such as {files[0]}" if files else "an experiment file (it holds none)"
        raise UsageError(f"{path} is a folder; name {which}") from None
    except OSError as error:
        raise UsageError(f"experiment file {path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"experiment file {path} is no text in UTF-8; save it as one") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Experiment:
    """The experiment of TOML text; `where` names it in errors."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{where} is not TOML: {toml_error_message(error)}") from None
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply") from None
    except ValueError:  # which Python raises for a number of more than 4,300 digits
        raise UsageError(f"{where} holds a number that is too long") from None
    table.pop("plan", None)  # what a stored plan says of how it was resolved
    try:
        file = _ExperimentFile.model_validate(table)
    except ValidationError as error:
        raise UsageError(f"{where}: {describe(error, _ExperimentFile)}") from None
    try:
        return _experiment(file)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def describe(error: ValidationError, model: type[BaseModel]) -> str:
    """One of pydantic's errors in one line, with the nearest valid name for an unknown key."""
    # A name that isn't known first: what it was meant for is then missing, too.
    extra = next((e for e in error.errors() if e["type"] == "extra_forbidden"), None)
    if extra is not None:
        table = model
        for part in extra["loc"][:-1]:
            info = table.model_fields.get(part) if isinstance(part, str) else None
            table = (info and _table_in(info.annotation)) or table
        return str(unknown("key", str(extra["loc"][-1]), table.model_fields))
    return error_message(first(error.errors(), model), model)


def _table_in(annotation: Any) -> type[BaseModel] | None:
    """The kind of table that an annotation holds: of `list[Table]`, `dict[str, Table]` or `Table`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((table for part in typing.get_args(annotation) if (table := _table_in(part))), None)


def _transform(variant: str, entry: str | dict[str, dict[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    if isinstance(entry, str):
        return {entry: {}}
    for name, arguments in entry.items():
        for argument, value in arguments.items():
            if not _is_plain(value):
                raise UsageError(
                    f"variant {shown(variant)}: {name} does not take {shown(str(value))} as {argument}; "
                    "write a number, a text, true or false, or a list of them"
                )
    return entry


def _is_plain(value: Any) -> bool:
    """Whether a value of a TOML file can stand in a record: no date, no time, no number that is not finite."""
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return isinstance(value, (str, int)) or (isinstance(value, float) and math.isfinite(value))


def _variant(name: str, table: _VariantTable) -> catalog.Variant:
    files = ("full", "resized", "decoded", "none")
    if table.files not in files:
        raise unknown(f"files of variant {name}:", table.files, files)
    return catalog.Variant(
        files=table.files,  # type: ignore[arg-type]
        cpu=tuple(_transform(name, t) for t in table.cpu),
        gpu=tuple(_transform(name, t) for t in table.gpu),
        data=table.data,
        answers="from the experiment file",
    )


def _experiment(file: _ExperimentFile) -> Experiment:
    fixed = {name: values.from_toml(name, value) for name, value in file.fixed.items()}
    run = {name: getattr(file.run, name) for name in _RUN_FIELDS if getattr(file.run, name) is not None}
    axes = [
        Axis((name,), tuple((v,) for v in values.axis_from_toml(name, given)))
        for name, given in file.axes.items()
    ]
    axes += [_zipped(table) for table in file.zip]
    moving = (name for axis in axes for name in axis.fields)
    check_once([*fixed, *run, *moving], "[fixed], [run], [axes] and [[zip]]")
    if not all(file.exclude):
        raise UsageError("an empty [[exclude]] would leave out everything; name a field and its value")
    return _checked(
        Experiment(
            name=file.name,
            question=file.question,
            fixed=fixed | run,
            axes=tuple(axes),
            groups=tuple(_group(table) for table in file.group),
            excludes=tuple({n: values.from_toml(n, v) for n, v in table.items()} for table in file.exclude),
            variants=catalog.VARIANTS
            | {name: _variant(name, table) for name, table in file.variants.items()},
            repeats=file.run.repeats,
            rounds=rounds_of(file.run.rounds, file.run.within, file.run.budget, repeats=file.run.repeats),
            timeout_s=values.seconds(file.run.timeout),
            bad_images=policy(file.run.bad_images),
        )
    )


def policy(text: str, called: str = "bad_images") -> catalog.BadImages:
    """`fail` or `skip`. Raises UsageError for anything else. `called`: what its user calls it."""
    for known in catalog.BAD_IMAGES:
        if text == known:
            return known
    raise UsageError(f"{called} is fail or skip, not {shown(text)}")


def _group(table: _GroupTable) -> Group:
    """A group of the file. Raises UsageError for what is wrong with a job, whatever the others are."""
    jobs = tuple({name: values.from_toml(name, value) for name, value in job.items()} for job in table.jobs)
    group = Group(name=table.name.strip(), jobs=jobs, pairs=table.pairs)
    for job in jobs:
        _check_job(job, f"job {shown(label(job))} of {_called(group)}")
    return group


def _called(group: Group) -> str:
    return f"group {shown(group.title)}" if group.title else "[[group]]"


def _check_job(job: Mapping[str, Any], called: str) -> None:
    """Raises UsageError for a field given beside its rival, and for a value that its field does not take."""
    check_once(list(job), called)
    try:
        trial.make({name: value for name, value in job.items() if name != values.BATCH_PER_GPU})
    except ValidationError as error:
        raise UsageError(f"{called}: {error_message(error.errors()[0], trial.Trial)}") from None


def _checked(experiment: Experiment, called: str | None = None) -> Experiment:
    """The experiment, if its groups make sense with its axes. `called`: what its user calls the only group."""
    axes = [name for axis in experiment.axes for name in axis.fields]
    for group in experiment.groups:
        check_group(group, called=called or _called(group), axes=axes, most_copies=experiment.most_copies)
    check_titles(experiment.groups)
    return experiment


def _zipped(table: Mapping[str, Sequence[Any]]) -> Axis:
    lengths = {len(given) for given in table.values()}
    if len(lengths) != 1 or lengths == {0}:
        sizes = ", ".join(f"{name} has {len(given)}" for name, given in table.items())
        raise UsageError(f"zipped fields need equally many values, one at least: {sizes or 'none is given'}")
    columns = [[values.from_toml(name, v) for v in given] for name, given in table.items()]
    return Axis(tuple(table), tuple(zip(*columns, strict=True)))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the command line asks for. Fields as text, as typed."""

    fields: Mapping[str, str] = field(default_factory=dict)
    """Trial field -> values, in the order given."""
    typed: Mapping[str, str] = field(default_factory=dict)
    """Trial field -> what it was called: `--batch-size`, `--set lr`."""
    zips: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    repeats: int | None = None
    rounds: int | None = None
    within: str | None = None
    budget: str | None = None
    timeout: str | None = None
    bad_images: str | None = None
    jobs: tuple[str, ...] = ()
    """Jobs that run together, each as `batch_size=32,gpu_ids=2+3`: they take the place of the file's groups."""
    pairs: bool = False
    """The jobs by twos, the file's own too."""


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
        found = values.parse(name, text, typed.get(name))
        index = next((i for i, axis in enumerate(axes) if axis.fields == (name,)), len(axes))
        forget(name)
        if len(found) == 1:
            fixed[name] = found[0]
        else:  # at the place of the file's own axis, so that the table keeps its order
            axes.insert(index, Axis((name,), tuple((v,) for v in found)))
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
    asked = replace(
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
    return _checked(asked, "--job" if options.jobs else None)


def _groups(own: tuple[Group, ...], options: Options, given: Sequence[str]) -> tuple[Group, ...]:
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
    if options.pairs and not own:
        raise UsageError("--pairs: there are no jobs to pair; give --job two or more times")
    for group in own:
        for name in given:
            for rival in (name, *RIVALS.get(name, ())):
                if any(rival in job for job in group.jobs):
                    by = "is given" if rival == name else f"is settled by {rival}, given"
                    called = options.typed.get(name, name)
                    raise UsageError(
                        f"{called} {by} by the jobs of {_called(group)}; change it there, or give --job"
                    )
    return tuple(replace(group, pairs=group.pairs or options.pairs) for group in own)


def aims_at_top1(experiment: Experiment) -> bool:
    """Whether its own epochs are the most that it gives the way to an accuracy."""
    return experiment.fixed.get("until_top1") is not None or any(
        "until_top1" in axis.fields for axis in experiment.axes
    )


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
    _check_job(job, what)
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


def to_toml(experiment: Experiment, resolved: Mapping[str, Any]) -> str:
    """The experiment as a file that `parse` reads back, with `resolved` (data fingerprints, device) as [plan]."""
    import tomli_w

    table: dict[str, Any] = {"name": experiment.name, "question": experiment.question}
    table["fixed"] = {name: values.to_toml(v) for name, v in experiment.fixed.items()}
    table["axes"] = {
        a.fields[0]: [values.to_toml(v[0]) for v in a.values] for a in experiment.axes if len(a.fields) == 1
    }
    table["run"] = {"repeats": experiment.repeats, "timeout": experiment.timeout_s}
    table["run"] |= as_table(experiment.rounds)
    if experiment.bad_images != "fail":
        table["run"]["bad_images"] = experiment.bad_images
    table["zip"] = [
        {name: [values.to_toml(step[i]) for step in a.values] for i, name in enumerate(a.fields)}
        for a in experiment.axes
        if len(a.fields) > 1
    ]
    table["exclude"] = [{name: values.to_toml(v) for name, v in e.items()} for e in experiment.excludes]
    table["group"] = [
        {
            **({"name": group.name} if group.name else {}),
            "jobs": [{name: values.to_toml(v) for name, v in job.items()} for job in group.jobs],
            **({"pairs": True} if group.pairs else {}),
        }
        for group in experiment.groups
    ]
    table["variants"] = {
        name: {**variant.definition(), **({"data": variant.data} if variant.data else {})}
        for name, variant in experiment.own_variants.items()
    }
    table["plan"] = dict(resolved)
    return tomli_w.dumps({k: v for k, v in table.items() if v not in ({}, [], "")})
