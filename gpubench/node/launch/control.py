"""What the parent and the fork server say to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import make_converter


class _Request(Struct, frozen=True, forbid_unknown_fields=True, tag_field="request"):
    """What the parent asks."""


class _Message(Struct, frozen=True, forbid_unknown_fields=True, tag_field="message"):
    """What the server tells."""


class StartTrial(_Request, frozen=True, kw_only=True, tag="run"):
    """Start a trial. An event socket for each rank comes with it."""

    order: TrialOrder


class ReapLeader(_Request, frozen=True, kw_only=True, tag="reap"):
    """A leader that was told to have ended may be forgotten: its process id is the system's again."""

    pid: int


Request = StartTrial | ReapLeader
read_request: Callable[[Any], Request] = make_converter(Request)


class ServerReady(_Message, frozen=True, kw_only=True, tag="ready"):
    """torch is imported: trials can be started."""


class ImportFailed(_Message, frozen=True, kw_only=True, tag="failed"):
    """torch can't be imported; the server ends."""

    reason: str


class TrialStarted(_Message, frozen=True, kw_only=True, tag="started"):
    """A trial's leader runs."""

    pid: int


class LeaderExited(_Message, frozen=True, kw_only=True, tag="exited"):
    """A leader has ended: how, as waitid(2) tells it."""

    pid: int
    code: int
    status: int


ServerMessage = ServerReady | ImportFailed | TrialStarted | LeaderExited
read_server_message: Callable[[Any], ServerMessage] = make_converter(ServerMessage)
