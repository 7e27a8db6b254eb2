"""A trial: one fully specified configuration. Frozen, validated, and hashed to an id.

Its fields are the entries of `trial_fields.py`. What is left to the machine (`None`) hashes as `auto`; the value that
it got stands in the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from gpubench.schema import catalog
from gpubench.schema.command import list_placeholders
from gpubench.schema.trial_fields import (
    ABOUT,
    DEFAULTS,
    FIELDS,
    MOST_EPOCHS,
    TYPES,
    TrialFields,
    select_fields,
)
from gpubench.schema.validation import convert_type_bounds, convert_value
from gpubench.schema.workload import Workload

SCHEMA = 1
"""Goes up when the meaning of a field changes, so that old results are never taken for new ones."""


if TYPE_CHECKING:

    class _Fields(TrialFields, msgspec.Struct, frozen=True, kw_only=True): ...

else:
    _Fields = msgspec.defstruct(
        "_Fields", [(name, convert_type_bounds(TYPES[name]), DEFAULTS[name]) for name in FIELDS], kw_only=True
    )


class Trial(_Fields, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One configuration. Build it with `make_trial`, which fills the defaults that follow from other fields."""

    @property
    def workload(self) -> Workload:
        """The kind of work that it is."""
        if self.command is not None:
            return "command"
        return "load" if self.model in catalog.LOADS else "training"

    @property
    def applicable_fields(self) -> tuple[str, ...]:
        """The fields that mean something for its work: all, or of a command those that it is given."""
        if self.command is None:
            return list_load_fields(self.model) if self.model in catalog.LOADS else FIELDS
        named = list_placeholders(self.command)
        return tuple(name for name in FIELDS if name in named or ABOUT[name].for_commands)

    @property
    def fields_of_machine(self) -> tuple[str, ...]:
        """The fields that the machine may fill: what a command's placeholders hand over is filled already."""
        return self.applicable_fields if self.command is None else _FOR_COMMANDS

    @property
    def devices(self) -> int:
        """How many devices (GPUs, or processes on a CPU) share a batch, on all nodes; one a node where nobody says."""
        return self.gpus or self.ranks or self.nodes

    def asdict(self) -> dict[str, Any]:
        """Its values by name, in the order of the fields."""
        return msgspec.structs.asdict(self)

    def as_json_dict(self) -> dict[str, Any]:
        """Those that are applicable, as JSON has them: without tuples."""
        values = {name: getattr(self, name) for name in self.applicable_fields}
        return {name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def list_load_fields(load: str) -> tuple[str, ...]:
    """The fields that a known load takes."""
    without = () if catalog.LOADS[load].has_precision else ("precision",)
    return tuple(name for name in FIELDS if ABOUT[name].for_loads and name not in without)


def make_trial(fields: Mapping[str, Any]) -> Trial:
    """The trial of these fields. Fills what follows from others: GPU count, strategy, learning rate, most epochs.

    Raises InvalidValueError for a value that its field does not take.
    """
    values = dict(fields)
    if values.get("gpu_ids") is not None and values.get("gpus") is None:
        values["gpus"] = len(values["gpu_ids"])
    if values.get("device") == "cpu" and values.get("gpus") is None:
        values["gpus"] = 0
    load = values.get("model") if values.get("command") is None else None
    if load in catalog.LOADS:
        values = {"batch_size": catalog.LOADS[load].usual_size} | {
            name: values[name] for name in list_load_fields(load) if values.get(name) is not None
        }
        return convert_value(values, Trial)
    if values.get("command") is not None:  # what follows fills what a training needs
        return convert_value({name: value for name, value in values.items() if value is not None}, Trial)
    if values.get("strategy") is None:
        devices = values.get("gpus") or values.get("ranks") or values.get("nodes") or 1
        values["strategy"] = "ddp" if devices > 1 else "single"
    for name, default in catalog.find_strategy_fields(values["strategy"]).items():
        if values.get(name) is None:
            values[name] = default
    if values.get("lr") is None:
        optimizer = catalog.OPTIMIZERS.get(values.get("optimizer", "sgd"))
        if optimizer is not None:
            values["lr"] = optimizer.lr
        else:
            values.pop("lr", None)
    if values.get("until_top1") is not None and values.get("epochs") is None:
        values["epochs"] = MOST_EPOCHS
    if (epochs := values.get("epochs")) is not None and values.get("warmup_epochs") is None:
        values["warmup_epochs"] = 0 if epochs == 1 else 1
    return convert_value(values, Trial)


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_CONFIG_FIELDS = tuple(sorted(select_fields(lambda about: not about.repeats)))
_FOR_COMMANDS = select_fields(lambda about: about.for_commands)
_ADDED = select_fields(lambda about: about.added)


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def derive_config_id(
    trial: Trial, variant_definition: Mapping[str, Any], data_fingerprint: str, model_fingerprint: str = ""
) -> str:
    """Id of a configuration, whatever its seed and repeat: `c` and 12 hex digits.

    `model_fingerprint`: hash of a user's model file, or of a command's script, which may change behind its name.
    """
    values = trial.asdict()
    applicable = set(trial.applicable_fields)
    fields = {
        name: "auto" if values[name] is None else values[name]
        for name in _CONFIG_FIELDS
        if name in applicable and not (name in _ADDED and values[name] == DEFAULTS[name])
    }
    if trial.command is None and trial.epochs is None:
        fields["protocol"] = "steady"  # its ids are none of those that earlier versions gave
        for name in ("epochs", "warmup_epochs"):
            fields.pop(name, None)
    fields["data"] = data_fingerprint
    fields["variant"] = variant_definition
    fields["schema"] = SCHEMA
    if model_fingerprint:
        fields["model"] = model_fingerprint
    return "c" + _hash_text(_CANONICAL.encode(fields))


def derive_trial_id(config: str, seed: int, repeat: int) -> str:
    """Id of one trial of configuration `config`: `t` and 12 hex digits."""
    return "t" + _hash_text(f"{config}/{seed}/{repeat}")


def derive_group_ids(jobs: Sequence[tuple[str, int, int]]) -> tuple[str, str]:
    """Ids of jobs that run together, each as (config id, seed, repeat): of the configuration and of the group.

    The second is `g` and 12 hex digits. Names play no part; places do.
    """
    return "c" + _hash_text("+".join(config for config, _, _ in jobs)), "g" + _hash_text(
        "+".join(derive_trial_id(*job) for job in jobs)
    )


def derive_job_ids(group_config: str, group_id: str, number: int) -> tuple[str, str]:
    """config_id and trial_id (`j` and 12 hex digits) of the job at place `number` of a group."""
    return "c" + _hash_text(f"{group_config}/{number}"), "j" + _hash_text(f"{group_id}/{number}")
