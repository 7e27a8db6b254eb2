"""What the parent and the fork server say to each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.basics.checked import reader
from gpubench.schema.order import TrialOrder


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Start a trial. An event socket for each rank comes with it."""

    request: Literal["run"] = "run"
    order: TrialOrder


@dataclass(frozen=True, kw_only=True, slots=True)
class Reap:
    """A leader that was told to have ended may be forgotten: its process id is the system's again."""

    request: Literal["reap"] = "reap"
    pid: int


Request = Run | Reap
read_request: Callable[[Any], Request] = reader(Run, Reap)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerReady:
    """torch is imported: trials can be started."""

    told: Literal["ready"] = "ready"
    seconds: float
    """What that took."""
    threads: int
    """How many threads the server has: it must have but one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CantImport:
    """torch can't be imported; the server ends."""

    told: Literal["failed"] = "failed"
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A request could not be read."""

    told: Literal["refused"] = "refused"
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A trial's leader runs."""

    told: Literal["started"] = "started"
    pid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """A leader has ended: how, as waitid(2) tells it."""

    told: Literal["exited"] = "exited"
    pid: int
    code: int
    status: int


News = ServerReady | CantImport | Refused | Started | Exited
read_news: Callable[[Any], News] = reader(ServerReady, CantImport, Refused, Started, Exited)
