"""An experiment -> the list of its trials, with ids. What makes no sense is dropped and counted, with the reason."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import itertools
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from gpubench import catalog, trial
from gpubench.errors import UsageError, unknown
from gpubench.experiment import values
from gpubench.experiment.checks import Facts, why_senseless
from gpubench.experiment.complaints import complaint
from gpubench.experiment.experiment import Experiment
from gpubench.trial import FIELDS, REPEAT_FIELDS, Trial

EXCLUDED = "excluded"
_DEFAULT_VARIANT: str = Trial.model_fields["variant"].default


class Sources(Protocol):
    """What lies outside a plan but belongs to its trials' identity."""

    def data(self, name: str) -> Facts: ...

    def model(self, name: str) -> str:
        """Hash of a user's model file; empty for models by name."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What is run, stored and sharded as one: here, one trial."""

    trial: Trial
    trial_id: str
    config_id: str
    variant: catalog.Variant


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """The trials of an experiment on one kind of device."""

    experiment: Experiment
    device: str
    """What `device = auto` means here: cuda or cpu."""
    units: tuple[Unit, ...]
    dropped: Counter[str] = field(default_factory=Counter)
    """Reason -> how many combinations it dropped."""


def device_of(t: Trial, default: str) -> str:
    """cuda or cpu: as asked for, as the GPUs that were asked for say, or else as the machine has it."""
    return t.device or ("cuda" if t.gpus else default)


def check_names(experiment: Experiment) -> None:
    """Raises UsageError for a model, variant, strategy or optimizer that is not known."""
    for name, value in _given(experiment):
        if name == "model":
            catalog.check_model(value)
        elif name == "variant" and value not in experiment.variants:
            if "/" in str(value) or Path(str(value)).exists():
                raise UsageError(
                    f"unknown variant {value!r}: it looks like a folder; did you mean --data {value}?"
                )
            raise unknown("variant", str(value), experiment.variants)
        elif name == "strategy" and value not in catalog.STRATEGIES:
            raise unknown("strategy", str(value), catalog.STRATEGIES)
        elif name == "optimizer" and value not in catalog.OPTIMIZERS:
            raise unknown("optimizer", str(value), catalog.OPTIMIZERS)


def _given(experiment: Experiment) -> Iterator[tuple[str, Any]]:
    yield from experiment.fixed.items()
    for axis in experiment.axes:
        for step in axis.values:
            yield from zip(axis.fields, step, strict=True)
    for exclude in experiment.excludes:
        yield from exclude.items()


def expand(experiment: Experiment, *, device: str, sources: Sources, order: str = "given") -> Plan:
    """All trials of `experiment`, in the order given (the last axis varies fastest) or shuffled by the seed.

    Raises UsageError for an invalid value, and where no combination makes sense.
    """
    check_names(experiment)
    dropped: Counter[str] = Counter()
    units: list[Unit] = []
    seen: set[str] = set()
    identity = _Identity(experiment, sources)
    with _collector_paused():
        for fields in _combinations(experiment):
            unit, reason = _unit(fields, experiment, device, sources, identity)
            if reason:
                dropped[reason] += 1
            elif unit is not None and unit.trial_id not in seen:
                seen.add(unit.trial_id)
                units.append(unit)
    if not units:
        ((reason, _),) = dropped.most_common(1)
        raise UsageError(f"no trial is left: {reason}")
    if order == "random":
        random.Random(units[0].trial.seed).shuffle(units)
    return Plan(experiment=experiment, device=device, units=tuple(units), dropped=dropped)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """A plan holds no cycles, but Python would look for some among all its trials, again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _combinations(experiment: Experiment) -> Iterator[dict[str, Any]]:
    axes = [[dict(zip(axis.fields, step, strict=True)) for step in axis.values] for axis in experiment.axes]
    for repeat in range(experiment.repeats):
        for steps in itertools.product(*axes):
            fields = dict(experiment.fixed)
            for step in steps:
                fields.update(step)
            if repeat:
                fields["repeat"] = repeat
            yield fields


class _Identity:
    """Ids, with what many trials share hashed once."""

    def __init__(self, experiment: Experiment, sources: Sources) -> None:
        self._variants = experiment.variants
        self._sources = sources
        self._definitions: dict[str, dict[str, Any]] = {}

    def ids(self, t: Trial, facts: Facts) -> tuple[str, str]:
        definition = self._definitions.get(t.variant)
        if definition is None:
            definition = self._definitions[t.variant] = self._variants[t.variant].definition()
        fingerprint = facts.fingerprint
        if definition["files"] == "none":
            # No image is read, but what the trial leaves open is still taken from the data.
            fingerprint = f"none, {facts.train_images} images, {facts.num_classes} classes, size {facts.size}"
        config = trial.config_id(t, definition, fingerprint, self._sources.model(t.model))
        return config, trial.trial_id(config, t.seed, t.repeat)


def _unit(
    fields: dict[str, Any], experiment: Experiment, device: str, sources: Sources, identity: _Identity
) -> tuple[Unit | None, str | None]:
    per_gpu = fields.pop(values.BATCH_PER_GPU, None)
    variant = experiment.variants[fields.get("variant", _DEFAULT_VARIANT)]
    if variant.data is not None:
        fields["data"] = variant.data
    if per_gpu is not None:
        ids = fields.get("gpu_ids")
        fields["batch_size"] = per_gpu * (len(ids) if ids else fields.get("gpus") or fields.get("ranks") or 1)
    try:
        t = trial.make(fields)
    except ValidationError as error:
        raise UsageError(complaint(error.errors()[0], Trial)) from None
    if any(_matches(t, per_gpu, exclude) for exclude in experiment.excludes):
        return None, EXCLUDED
    facts = sources.data(t.data)
    reason = why_senseless(t, variant, device_of(t, device), facts)
    if reason:
        return None, reason
    config, tid = identity.ids(t, facts)
    return Unit(trial=t, trial_id=tid, config_id=config, variant=variant), None


def _matches(t: Trial, per_gpu: int | None, exclude: Mapping[str, Any]) -> bool:
    """Whether the trial has all these values, given or by default."""
    return all(
        (per_gpu if name == values.BATCH_PER_GPU else getattr(t, name)) == value
        for name, value in exclude.items()
    )


_CHAIN_FIELDS = tuple(name for name in FIELDS if name not in ("batch_size", "lr", *REPEAT_FIELDS))


def chain_key(t: Trial, definition: Mapping[str, Any]) -> tuple[Any, ...]:
    """What trials share that differ only in batch size, learning rate, seed and repeat: a chain of growing batches.

    `definition`: of the trial's variant, which may mean something else in another experiment.
    """
    own = vars(t)
    return (json.dumps(definition, sort_keys=True), *(own[name] for name in _CHAIN_FIELDS))


NEEDS = "needs "
"""How the reason begins for a trial that wants more than the machine has."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many GPUs and CPUs there are."""

    gpus: int
    cpus: int


def skip_reason(unit: Unit, oom: Mapping[tuple[Any, ...], int], room: Room | None, device: str) -> str | None:
    """Why a planned trial need not run here.

    `oom`: chain -> smallest global batch that ran out of memory on this machine. `room`: None where it plays no
    part (reading a folder elsewhere).
    """
    t = unit.trial
    smallest = oom.get(chain_key(t, unit.variant.definition())) if oom else None
    if smallest is not None and t.batch_size > smallest:
        return f"batch {smallest} of the same configuration was out of memory"
    if room is None:
        return None
    if device_of(t, device) == "cuda":
        gpus = max(t.gpu_ids) + 1 if t.gpu_ids else t.gpus or 1
        if gpus > room.gpus:
            return f"{NEEDS}{gpus} GPU{'s' if gpus > 1 else ''}, this machine shows {room.gpus}"
    if t.cpus is not None and t.cpus > room.cpus:
        return f"{NEEDS}{t.cpus} CPUs, {room.cpus} may be used"
    return None


def plan_id(units: Sequence[Unit]) -> str:
    """Eight hex digits that name a plan by its trials."""
    return hashlib.sha256("".join(u.trial_id for u in units).encode()).hexdigest()[:8]
