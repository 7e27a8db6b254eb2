"""An experiment -> the list of its units, with ids. What makes no sense is dropped and counted, with the reason."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from gpubench.basics.collector import pause_garbage_collector
from gpubench.basics.errors import UsageError, make_unknown_name_error
from gpubench.datasets.facts import NO_DATA, DataFacts
from gpubench.plan import values
from gpubench.plan.checks import find_group_conflict, find_trial_conflict
from gpubench.plan.experiment import Experiment
from gpubench.plan.groups import list_job_sets
from gpubench.plan.shares import choose_device, divide_cpus, make_solo_trial
from gpubench.schema import catalog, trial
from gpubench.schema.cell import format_cell
from gpubench.schema.command import join_settings, list_placeholders, split_settings
from gpubench.schema.trial import Trial
from gpubench.schema.trial_fields import DEFAULTS

EXCLUDED = "excluded"
MOST_COMBINATIONS = 100_000
"""More is a slip of the pen, or a stored plan that was damaged: to go through them would take hours."""


class Sources(Protocol):
    """What lies outside a plan but belongs to its trials' identity."""

    def find_data_facts(self, name: str) -> DataFacts: ...

    def find_model_fingerprint(self, name: str) -> str:
        """Hash of a user's model file; empty for models by name."""
        ...

    def find_command_fingerprint(self, command: str) -> str:
        """Hash of the scripts that a command names."""
        ...


def find_trial_data_facts(t: Trial, sources: Sources) -> DataFacts:
    """The facts of a trial's images; of a command nothing is known of what it reads, and a load reads none."""
    return sources.find_data_facts(t.data) if t.workload == "training" else NO_DATA


def find_code_fingerprint(t: Trial, sources: Sources) -> str:
    """Hash of the code of a user's that a trial runs; empty where it names no file of theirs."""
    if t.command is not None:
        return sources.find_command_fingerprint(t.command)
    return sources.find_model_fingerprint(t.model)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupMembership:
    """Where a job stands among those that run together."""

    group: str
    """The group's name."""
    group_id: str
    number: int
    """From 0."""
    size: int
    """Jobs of the group."""
    solo: Job
    """The job's trial alone, with the workers and CPUs that it gets in the group."""

    @property
    def name(self) -> str:
        """`1 of 3`: with a stroke between, a spreadsheet would make a date of it."""
        return f"{self.number + 1} of {self.size}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """A trial as planned: alone, or as one of several that run together."""

    trial: Trial
    trial_id: str
    config_id: str
    variant: catalog.InputVariant
    membership: GroupMembership | None = None
    """None: it runs alone."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What is run, stored and sharded as one: a trial, or a whole group."""

    jobs: tuple[Job, ...]
    baseline: bool = field(default=False, compare=False)
    """Whether nobody asked for this trial: it is here for groups to be compared with."""

    @property
    def unit_id(self) -> str:
        first = self.jobs[0]
        return first.membership.group_id if first.membership else first.trial_id

    @property
    def group(self) -> str:
        """The group's name; empty for a trial alone."""
        first = self.jobs[0]
        return first.membership.group if first.membership else ""

    @property
    def is_group(self) -> bool:
        return self.jobs[0].membership is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The trials and groups of an experiment on one kind of device."""

    experiment: Experiment
    device: str
    """What `device = auto` means here: cuda or cpu."""
    units: tuple[Unit, ...]
    """Each group after the trials that its jobs are compared with."""
    order: str = "given"
    """In which its trials stand: as given, or random."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason -> how many combinations it dropped."""

    @property
    def jobs(self) -> list[Job]:
        """Every trial of every unit."""
        return [job for unit in self.units for job in unit.jobs]


def check_known_names(experiment: Experiment) -> None:
    """Raises UsageError for a model, variant, strategy or optimizer that is not known."""
    known: Mapping[str, Mapping[str, Any]] = {
        "variant": experiment.variants, "strategy": catalog.STRATEGIES, "optimizer": catalog.OPTIMIZERS
    }  # fmt: skip
    excluded = (given for exclude in experiment.excludes for given in exclude.items())
    for name, value in (*experiment.list_given_values(), *excluded, *experiment.list_job_values()):
        if name == "model":
            catalog.check_model_name(value)
        elif name in known and value not in known[name]:
            raise make_unknown_name_error(name, str(value), known[name])


def expand_experiment(
    experiment: Experiment, *, device: str, sources: Sources, order: str = "given", cpus: int = 1
) -> Plan:
    """All units of `experiment`, in the order given (the last axis varies fastest) or shuffled by the seed.

    `cpus`: how many may be used; what a job of a group gets of them is what its trial alone gets, too.
    Raises UsageError for an invalid value, for too many combinations, and where none makes sense.
    """
    check_known_names(experiment)
    _check_combination_count(experiment)
    dropped: Counter[str] = Counter()
    units: list[Unit] = []
    seen: set[str] = set()
    maker = _UnitMaker(experiment, device, sources, cpus)
    with pause_garbage_collector():
        for fields in _list_combinations(experiment):
            for group in experiment.groups or (None,):
                for name, members in list_job_sets(fields, group):
                    try:
                        unit = maker.make_unit(name, members)
                    except _DroppedError as why:
                        dropped[str(why)] += 1
                        continue
                    if unit.unit_id not in seen:
                        seen.add(unit.unit_id)
                        units.append(unit)
    if not units:
        ((reason, _),) = dropped.most_common(1)
        raise UsageError(f"no trial is left: {reason}")
    if order == "random":
        random.Random(units[0].jobs[0].trial.seed).shuffle(units)
    return Plan(
        experiment=experiment,
        device=device,
        units=tuple(_add_solo_units(units)),
        order=order,
        dropped=dropped,
    )


def _check_combination_count(experiment: Experiment) -> None:
    """Raises UsageError for more than anybody could run; what is left is expanded within seconds."""
    combinations = experiment.repeats * math.prod(len(axis.values) for axis in experiment.axes)
    jobs = combinations * max(experiment.most_copies, sum(group.size for group in experiment.groups))
    for count, things in ((combinations, "combinations of values"), (jobs, "jobs in groups")):
        if count > MOST_COMBINATIONS:
            many = f"{count:,}" if count < 10**15 else "more than 10^15"
            raise UsageError(f"{many} {things} are too many; {MOST_COMBINATIONS:,} is the most")


def _add_solo_units(units: Sequence[Unit]) -> Iterator[Unit]:
    """Each group after the trials alone that its jobs are compared with, each unit once."""
    listed: set[str] = set()
    unit_ids = {unit.unit_id for unit in units}
    for unit in units:
        solos = [
            Unit((job.membership.solo,), baseline=job.membership.solo.trial_id not in unit_ids)
            for job in unit.jobs
            if job.membership
        ]
        for member in (*solos, unit):
            if member.unit_id not in listed:
                listed.add(member.unit_id)
                yield member


def _list_combinations(experiment: Experiment) -> Iterator[dict[str, Any]]:
    axes = [[dict(zip(axis.fields, step, strict=True)) for step in axis.values] for axis in experiment.axes]
    for repeat in range(experiment.repeats):
        for steps in itertools.product(*axes):
            fields = dict(experiment.fixed)
            for step in steps:
                fields.update(step)
            if repeat:
                fields["repeat"] = repeat
            yield fields


class _DroppedError(Exception):
    """Why a combination makes no sense, or is not wanted."""


class _UnitMaker:
    """Makes units of fields, for one experiment on one machine."""

    def __init__(self, experiment: Experiment, device: str, sources: Sources, cpus: int) -> None:
        self._experiment = experiment
        self._device = device
        self._sources = sources
        self._cpus = cpus
        self._compares_strategies = any("strategy" in axis.fields for axis in experiment.axes)

    def make_unit(self, name: str, members: Sequence[dict[str, Any]]) -> Unit:
        """The unit of these jobs (one: a trial alone). Raises _DroppedError."""
        jobs = [self._make_checked_job(fields, together=len(members)) for fields in members]
        if len(jobs) == 1:
            return Unit((jobs[0],))
        if why := find_group_conflict([job.trial for job in jobs]):
            raise _DroppedError(why)
        return self._make_group_unit(name, jobs)

    def _make_checked_job(self, fields: dict[str, Any], *, together: int) -> Job:
        per_gpu = fields.pop(values.BATCH_PER_GPU, None)
        variant = catalog.NO_IMAGES
        if fields.get("command") is not None:
            _collect_settings(fields)
        elif fields.get("model") not in catalog.LOADS:
            variant = self._experiment.variants[fields.get("variant", DEFAULTS["variant"])]
        if variant.data is not None:
            fields["data"] = variant.data
        if per_gpu is not None:
            ids = fields.get("gpu_ids")
            fields["batch_size"] = per_gpu * (
                len(ids) if ids else fields.get("gpus") or fields.get("ranks") or 1
            )
        if self._compares_strategies:  # a field of one of them says nothing of the others
            for name in catalog.OWN_FIELDS:
                if name not in catalog.find_strategy_fields(fields.get("strategy")):
                    fields.pop(name, None)
        t = trial.make_trial(fields)
        if any(_has_excluded_values(t, per_gpu, exclude) for exclude in self._experiment.excludes):
            raise _DroppedError(EXCLUDED)
        facts = find_trial_data_facts(t, self._sources)
        reason = find_trial_conflict(t, variant, choose_device(t, self._device), facts, together=together)
        if reason:
            raise _DroppedError(reason)
        return self._make_job(t, variant)

    def _make_job(self, t: Trial, variant: catalog.InputVariant) -> Job:
        facts, definition = find_trial_data_facts(t, self._sources), variant.make_definition()
        fingerprint = facts.fingerprint
        if definition["files"] == "none" and t.workload == "training":
            # No image is read, but what the trial leaves open is still taken from the data.
            fingerprint = f"none, {facts.train_images} images, {facts.num_classes} classes, size {facts.size}"
        config = trial.derive_config_id(t, definition, fingerprint, find_code_fingerprint(t, self._sources))
        tid = trial.derive_trial_id(config, t.seed, t.repeat)
        return Job(trial=t, trial_id=tid, config_id=config, variant=variant)

    def _make_group_unit(self, name: str, jobs: Sequence[Job]) -> Unit:
        config, group_id = trial.derive_group_ids(
            [(job.config_id, job.trial.seed, job.trial.repeat) for job in jobs]
        )
        asked = [(job.trial, job.variant) for job in jobs]
        shares = divide_cpus(asked, self._cpus, self._device)
        placed = []
        for number, (job, share) in enumerate(zip(jobs, shares, strict=True)):
            solo = self._make_job(
                make_solo_trial((job.trial, job.variant), share, self._cpus, self._device), job.variant
            )
            own_config, own_id = trial.derive_job_ids(config, group_id, number)
            membership = GroupMembership(
                group=name, group_id=group_id, number=number, size=len(jobs), solo=solo
            )
            placed.append(replace(job, trial_id=own_id, config_id=own_config, membership=membership))
        return Unit(tuple(placed))


def _has_excluded_values(t: Trial, per_gpu: int | None, exclude: Mapping[str, Any]) -> bool:
    """Whether the trial has all these values, given or by default."""
    return all(
        (per_gpu if name == values.BATCH_PER_GPU else get_trial_value(t, name)) == value
        for name, value in exclude.items()
    )


def get_trial_value(t: Trial, name: str) -> Any:
    """The value of a field, or of a setting of a command; None for a setting that it does not have."""
    return getattr(t, name) if name in values.KINDS else split_settings(t.settings).get(name)


def _collect_settings(fields: dict[str, Any]) -> None:
    """Puts what is no field of a trial, but a placeholder of its command, into `settings`, in the command's order."""
    given = {name: fields.pop(name) for name in list(fields) if name not in values.KINDS}
    names = [name for name in list_placeholders(fields["command"]) if name in given]
    fields["settings"] = join_settings({name: given[name] for name in names})


def derive_plan_id(units: Sequence[Unit]) -> str:
    """Eight hex digits that name a plan by its trials."""
    ids = "".join(job.trial_id for unit in units for job in unit.jobs)
    return hashlib.sha256(ids.encode()).hexdigest()[:8]


def format_unit_label(plan: Plan, unit: Unit) -> str:
    """The unit by its group and the varied fields, or by the usual ones where nothing varies."""
    experiment, trials = plan.experiment, [job.trial for job in unit.jobs]
    fields = [name for axis in experiment.varied for name in axis]
    if unit.is_group:  # how many copies it has is told by its name
        fields = [name for name in fields if name != "copies"]
    else:  # a trial alone may be there for the jobs of groups
        of_jobs = [name for group in experiment.groups for job in group.jobs for name in job]
        fields = [*of_jobs, *fields] or (
            ["model", "batch_size"] if trials[0].command is None else ["command"]
        )
    parts = [unit.group] if unit.group else []
    for name in dict.fromkeys("batch_size" if name == values.BATCH_PER_GPU else name for name in fields):
        having = [t for t in trials if name in t.applicable_fields or name not in values.KINDS]
        texts = dict.fromkeys(format_cell(get_trial_value(t, name)) for t in having)
        if any(texts):
            parts.append(f"{name}={'/'.join(texts)}")
    if experiment.repeats > 1:  # in words: it is no field that anybody asked for
        parts.append(f"repeat {trials[0].repeat + 1} of {experiment.repeats}")
    return " ".join(parts)
