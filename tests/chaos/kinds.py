"""How it is attacked: a signal to a role's process, or a fault of the file system under one of the sweep's folders."""

from __future__ import annotations

import random
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sweeps import TIMEOUT_S, Role, SweepKind

from gpubench.node.launch.fork_server import START_LIMIT_S

Place = Literal["results", "tmp", "images"]
"""Where the folders lie that a sweep writes into: --out, TMPDIR, GPUBENCH_DATA."""
Fault = Literal["full", "inodes", "readonly", "removed"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Strike:
    """One signal to one process."""

    signal: signal.Signals
    role: Role

    @property
    def name(self) -> str:
        return f"{self.signal.name.removeprefix('SIG').lower()}-{self.role}"

    def suits(self, sweep: SweepKind) -> bool:
        return self.role in sweep.roles


@dataclass(frozen=True, kw_only=True, slots=True)
class Damage:
    """One fault of the file system, which is lifted once the sweep has ended."""

    fault: Fault
    place: Place
    sweeps: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.fault}-{self.place}"

    def suits(self, sweep: SweepKind) -> bool:
        return sweep.name in self.sweeps


Kind = Strike | Damage

ROLES: tuple[Role, ...] = ("parent", "server", "leader", "rank", "loader", "maker", "command", "child")
STRIKES: tuple[Strike, ...] = tuple(
    Strike(signal=number, role=role)
    for role in ROLES
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP)
)
DAMAGES: tuple[Damage, ...] = (
    Damage(fault="full", place="results", sweeps=("plain", "group", "ddp", "command-read")),
    Damage(fault="inodes", place="results", sweeps=("plain", "group", "command")),
    Damage(fault="readonly", place="results", sweeps=("plain", "group", "ddp", "command-read")),
    Damage(fault="removed", place="results", sweeps=("plain", "group", "command")),
    Damage(fault="full", place="tmp", sweeps=("plain", "loaders", "ddp", "command-read")),
    Damage(fault="inodes", place="tmp", sweeps=("plain", "loaders", "command-marks")),
    Damage(fault="readonly", place="tmp", sweeps=("plain", "loaders", "command-marks")),
    Damage(fault="full", place="images", sweeps=("images",)),
    Damage(fault="inodes", place="images", sweeps=("images",)),
)
KINDS: tuple[Kind, ...] = (*STRIKES, *DAMAGES)

REST_S = 90.0
"""What all of a sweep but one hung trial may take."""
LONGEST_DELAY_S: dict[str, float] = {"parent": 4.0, "server": 2.0, "maker": 1.5}
"""Seconds after the moment's beginning; others 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """One attack, with all that chance decides."""

    seed: int
    number: int
    sweep: SweepKind
    kind: Kind
    stored: int
    """It waits until so many units are stored and the process is there, …"""
    delay_s: float
    """… and then so much longer."""
    pick: int
    """Which of several processes of that role, counted around."""
    hold_s: float
    """How long a stopped parent stands still: nobody else could end it."""

    @property
    def limit_s(self) -> float:
        """Within what the attacked sweep must have ended by itself.

        A server that is stopped before it has torch is waited for as long as a slow disk may take.
        """
        is_stopped_server = self.kind.name == "stop-server" and self.stored == 0
        return TIMEOUT_S + REST_S + (START_LIMIT_S if is_stopped_server else 0)

    def __str__(self) -> str:
        return f"#{self.number} {self.kind.name} on {self.sweep.name}, {self.stored} stored + {self.delay_s:.2f} s"


def choose(seed: int, number: int, kinds: Sequence[Kind], sweeps: Sequence[SweepKind]) -> Attack:
    """The attack of that number, the same for the same seed, kinds and sweeps.

    Every combination of a kind and a sweep comes once before any comes again; its moment is drawn anew each time.
    """
    pairs = [(sweep, kind) for sweep in sweeps for kind in kinds if kind.suits(sweep)]
    rounds, place = divmod(number, len(pairs))
    random.Random(f"{seed}, round {rounds}").shuffle(pairs)
    return with_moment(seed, number, *pairs[place])


def with_moment(seed: int, number: int, sweep: SweepKind, kind: Kind) -> Attack:
    """That attack at a moment drawn from the seed and the number."""
    chance = random.Random(f"{seed}, attack {number}")
    longest = LONGEST_DELAY_S.get(kind.role if isinstance(kind, Strike) else kind.place, 1.0)
    return Attack(
        seed=seed,
        number=number,
        sweep=sweep,
        kind=kind,
        stored=0
        if sweep.name == "images"
        else chance.randrange(sweep.units),  # they are made before all units
        delay_s=round(chance.uniform(0, longest), 3),
        pick=chance.randrange(1000),
        hold_s=round(chance.uniform(0.5, 5), 3),
    )
