"""What a trial may run, by kind: a literal registry.

A kind says of itself

- what its ranks run: a module with `main(order, rank, channel) -> exit code`, which only the leader imports;
- by which event a rank tells that it has done its work: a trial has ended well once each of its ranks has told it.

Its windows come from the rank, too: `Begin` opens one, `End` closes it, on the clock of the machine where it runs. What
comes of it is said in `record/training.py`, `record/loads.py` and `record/commands.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpubench.schema.events import CommandEnded, RankMessage, Result

Workload = Literal["training", "load", "command"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadKind:
    """One kind."""

    worker: str
    """The module that a rank runs."""
    last_word: type[RankMessage]
    """How a rank tells that it has done its work."""


WORKLOADS: dict[Workload, WorkloadKind] = {
    "training": WorkloadKind(worker="gpubench.train.worker", last_word=Result),
    "load": WorkloadKind(worker="gpubench.train.loads", last_word=Result),
    "command": WorkloadKind(worker="gpubench.script.worker", last_word=CommandEnded),
}
