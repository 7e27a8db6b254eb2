"""What the parent and the fork server say to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gpubench.schema.order import TrialOrder
from gpubench.schema.validation import reader


class Run(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="request", tag="run"):
    """Start a trial. An event socket for each rank comes with it."""

    order: TrialOrder


class Reap(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="request", tag="reap"):
    """A leader that was told to have ended may be forgotten: its process id is the system's again."""

    pid: int


Request = Run | Reap
read_request: Callable[[Any], Request] = reader(Request)


class ServerReady(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message", tag="ready"
):
    """torch is imported: trials can be started."""


class ImportFailed(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message", tag="failed"
):
    """torch can't be imported; the server ends."""

    reason: str


class Refused(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message", tag="refused"
):
    """A request could not be read."""

    reason: str


class Started(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message", tag="started"
):
    """A trial's leader runs."""

    pid: int


class Exited(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="message", tag="exited"
):
    """A leader has ended: how, as waitid(2) tells it."""

    pid: int
    code: int
    status: int


ServerMessage = ServerReady | ImportFailed | Refused | Started | Exited
read_server_message: Callable[[Any], ServerMessage] = reader(ServerMessage)
