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

    message: Literal["ready"] = "ready"
    seconds: float
    """What that took."""
    threads: int
    """How many threads the server has: it must have but one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportFailed:
    """torch can't be imported; the server ends."""

    message: Literal["failed"] = "failed"
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """A request could not be read."""

    message: Literal["refused"] = "refused"
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Started:
    """A trial's leader runs."""

    message: Literal["started"] = "started"
    pid: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Exited:
    """A leader has ended: how, as waitid(2) tells it."""

    message: Literal["exited"] = "exited"
    pid: int
    code: int
    status: int


ServerMessage = ServerReady | ImportFailed | Refused | Started | Exited
read_server_message: Callable[[Any], ServerMessage] = reader(
    ServerReady, ImportFailed, Refused, Started, Exited
)
