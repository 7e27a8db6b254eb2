"""What tests put in place of images, machines and processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Machine
from gpubench.plan.plan import Job, Unit
from gpubench.plan.resolve import ResolvedTrial, resolve_unit_trials
from gpubench.schema.record import EpochWindow, Record, TrialSpan


def make_facts(**facts: Any) -> DataFacts:
    """Facts of images that lie nowhere."""
    plain = {"fingerprint": "images-1", "train_images": 10_240, "val_images": 1_024, "num_classes": 16}
    return DataFacts(**{"name": "images", "kind": "folder", **plain, **facts})


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """`plan.Sources` by hand: name -> images, file -> hash. Any other name has the same plain images."""

    images: Mapping[str, DataFacts] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)

    def find_data_facts(self, name: str) -> DataFacts:
        return self.images.get(name, make_facts())

    def find_model_fingerprint(self, name: str) -> str:
        return self.models.get(name, "")

    def find_command_fingerprint(self, command: str) -> str:
        return self.models.get(command, "")


def record(**fields: Any) -> Record:
    """A stored attempt; give the fields that matter."""
    plain: dict[str, Any] = {
        "trial_id": "t0123456789a",
        "config_id": "c0123456789a",
        "experiment": "test",
        "status": "ok",
        "machine_key": "CPU",
        "trial": {"model": "lenet", "batch_size": 16, "repeat": 0},
        "started_at": "2026-11-20 09:53:00",
    }
    values = plain | fields
    if isinstance(values.get("span"), Mapping):
        values["span"] = TrialSpan(**values["span"]) if values["span"] else None
    windows = values.get("windows", [])
    return Record(
        **values | {"windows": [EpochWindow(**w) if isinstance(w, Mapping) else w for w in windows]}
    )


def resolve_alone(job: Job, machine: Machine, facts: DataFacts, device: str) -> ResolvedTrial:
    """A job alone, with what it left open as this machine fills it."""
    (resolved,) = resolve_unit_trials(Unit((job,)), machine, lambda _: facts, device)
    return resolved
