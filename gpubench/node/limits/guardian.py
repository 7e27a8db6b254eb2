"""The process that changes GPUs for a sweep, and puts them back once the sweep has gone, however it went.

Run as `python -m gpubench.node.limits.guardian FD`, with one end of a channel as FD. It writes down what was set before
the first change. When the other end closes, which a killed sweep does, too, it puts all back, says so and ends. Signals
that stop a sweep wait for ever here: its parent has blocked them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from gpubench.basics.errors import UnusableError
from gpubench.basics.linux import read_boot_id
from gpubench.node.launch.channel import Channel
from gpubench.node.limits.kept import (
    KeptSettings,
    check_nothing_kept,
    check_power_limit,
    find_power_to_set,
    keep_settings,
    make_lock_name,
    put_back,
)
from gpubench.node.locks import SweepLocks
from gpubench.node.watch.host import read_process_name
from gpubench.node.watch.nvml import NoRightError, NvmlError, NvmlSetter, open_nvml_setter
from gpubench.node.watch.nvml_calls import CLOCK_RANGE, DESKTOP, POWER_LIMIT, PROCESSES
from gpubench.node.watch.watcher import MPS_SERVER
from gpubench.schema.missing import Unmeasured
from gpubench.schema.validation import make_converter

ALONE_S = 10.0
"""How long the driver may go on listing processes of the trial before, which have ended."""
TRIES = 5
PAUSE_S = 0.2
"""How often, and how soon again, a GPU is put back that refuses it for now."""
FIRST_PERSON = 1000
"""User ids below are the system's: of a login screen, for example."""


class GuardedGpu(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GPU that a sweep may change."""

    uuid: str
    power_limits_w: tuple[int, ...]
    has_clock_limits: bool


class GpuLimit(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one GPU is to be set to. None: as before the sweep."""

    uuid: str
    power_limit_w: int | None
    sm_clock_limit_mhz: int | None


class _LimitRequest(Struct, frozen=True, forbid_unknown_fields=True, tag_field="request"):
    """What the sweep asks."""


class _LimitAnswer(Struct, frozen=True, forbid_unknown_fields=True, tag_field="answer"):
    """What the guardian answers."""


class GuardGpus(_LimitRequest, frozen=True, kw_only=True, tag="guard"):
    """The first request: what may be changed."""

    gpus: tuple[GuardedGpu, ...]


class SetLimits(_LimitRequest, frozen=True, kw_only=True, tag="set"):
    """Before a trial begins."""

    limits: tuple[GpuLimit, ...]


class Done(_LimitAnswer, frozen=True, kw_only=True, tag="done"):
    """It is so, and was read back; at the end: all is as before."""


class Refused(_LimitAnswer, frozen=True, kw_only=True, tag="refused"):
    """It is not; at the end: something is not as before."""

    reason: str
    needs_right: bool = False
    """Whether this user may not set it."""


LimitRequest = GuardGpus | SetLimits
LimitAnswer = Done | Refused
read_request: Callable[[Any], LimitRequest] = make_converter(LimitRequest)
read_answer: Callable[[Any], LimitAnswer] = make_converter(LimitAnswer)


class Guardian:
    """The GPUs that it may change, and how."""

    def __init__(self, nvml: NvmlSetter) -> None:
        self._nvml = nvml
        self._locks = SweepLocks()
        self._kept: dict[str, KeptSettings] = {}
        self._clock_mhz: dict[str, int] = {}
        """GPU -> to what its clock is limited now."""

    def guard(self, gpus: Sequence[GuardedGpu]) -> None:
        """Writes down what they are set to, and tries whether they may be changed, by setting what is set.

        Raises NvmlError, NoRightError, UnusableError.
        """
        if self._locks.take_free([make_lock_name(gpu.uuid) for gpu in gpus]):
            raise UnusableError("another sweep sets limits on the same GPU: wait for its end")
        for gpu in gpus:
            check_nothing_kept(gpu.uuid)
            self._wait_until_free(gpu.uuid)
            before = self._nvml.ask(POWER_LIMIT, gpu.uuid) if gpu.power_limits_w else None
            kept = KeptSettings(
                uuid=gpu.uuid,
                boot=read_boot_id(),
                power_limit_w=before,
                sweep_limits_w=gpu.power_limits_w,
                is_clock_limited=False,
            )
            self._keep(kept)
            if before is not None:
                self._nvml.set_power_limit(gpu.uuid, before)
            if gpu.has_clock_limits:
                self._keep(structs.replace(kept, is_clock_limited=True))
                try:
                    self._nvml.limit_clock(gpu.uuid, *self._nvml.ask(CLOCK_RANGE, gpu.uuid))
                except NoRightError:  # nor may it free them, and need not
                    self._keep(kept)
                    raise
                self._nvml.free_clock(gpu.uuid)

    def _keep(self, kept: KeptSettings) -> None:
        keep_settings(kept)
        self._kept[kept.uuid] = kept

    def set_limit(self, limit: GpuLimit) -> None:
        """Sets one GPU, and reads it back. Raises NvmlError where it can't be, or where somebody else is on it."""
        uuid, mhz = limit.uuid, limit.sm_clock_limit_mhz
        kept = self._kept[uuid]
        watts = find_power_to_set(self._nvml, kept, limit.power_limit_w)
        is_other_clock = self._clock_mhz.get(uuid) != mhz
        if watts is not None or is_other_clock:
            self._wait_until_free(uuid)
        if limit.power_limit_w not in (None, *kept.sweep_limits_w):
            self._keep(structs.replace(kept, sweep_limits_w=(*kept.sweep_limits_w, limit.power_limit_w)))
        if watts is not None:
            self._nvml.set_power_limit(uuid, watts)
            try:
                check_power_limit(self._nvml, uuid, watts)
            except NvmlError:  # it may be at one that is not known as the sweep's
                if kept.power_limit_w is not None:
                    self._nvml.set_power_limit(uuid, kept.power_limit_w)
                raise
        if not is_other_clock:
            return
        if mhz is None:
            self._nvml.free_clock(uuid)
            del self._clock_mhz[uuid]
        else:
            self._nvml.limit_clock(uuid, self._nvml.ask(CLOCK_RANGE, uuid)[0], mhz)
            self._clock_mhz[uuid] = mhz

    def _wait_until_free(self, uuid: str) -> None:
        """Raises NvmlError where a process is on the GPU that does not go, or where the driver lists none."""
        deadline = time.monotonic() + ALONE_S
        while pids := list_obstructing_pids(self._nvml, uuid):
            if time.monotonic() > deadline:
                raise NvmlError(
                    f"process {pids[0]} ({read_process_name(pids[0])}) is on it, so no limit is changed"
                )
            time.sleep(PAUSE_S)

    def put_all_back(self) -> str:
        """Puts every GPU back as it was; what could not be, in words, and empty where all is."""
        failures = []
        for kept in self._kept.values():
            for tries_left in reversed(range(TRIES)):
                try:
                    put_back(self._nvml, kept)
                    break
                except (NvmlError, OSError) as error:
                    if not tries_left:
                        failures.append(f"{kept.uuid}: {error}")
                    time.sleep(PAUSE_S)
        self._locks.release()
        return "; ".join(failures)


def list_obstructing_pids(nvml: NvmlSetter, uuid: str) -> list[int]:
    """Processes on a GPU that a limit would slow down: all that compute, and desktops of other people."""
    processes = nvml.ask(PROCESSES, uuid)
    pids = [pid for pid, _ in processes if read_process_name(pid) != MPS_SERVER]
    with contextlib.suppress(Unmeasured):  # many GPUs can draw nothing
        pids += [pid for pid, _ in nvml.ask(DESKTOP, uuid) if not _is_own_or_system_process(pid)]
    return pids


def _is_own_or_system_process(pid: int) -> bool:
    try:
        owner = Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return False
    return owner < FIRST_PERSON or str(owner) in (str(os.getuid()), os.environ.get("SUDO_UID"))


def answer_requests(guardian: Guardian, control: Channel) -> None:
    """Answers until the other end is closed. Raises ConnectionError then."""
    while True:
        request = read_request(control.receive())
        try:
            match request:
                case GuardGpus(gpus=gpus):
                    guardian.guard(gpus)
                case SetLimits(limits=limits):
                    for limit in limits:
                        guardian.set_limit(limit)
        except (NvmlError, UnusableError) as error:
            control.send(Refused(reason=str(error), needs_right=isinstance(error, NoRightError)))
        else:
            control.send(Done())


def main() -> None:
    """Entry of the process."""
    control = Channel(socket.socket(fileno=int(sys.argv[1])))
    try:
        guardian = Guardian(open_nvml_setter())
    except NvmlError as error:
        control.send(Refused(reason=str(error)))
        return
    try:
        with contextlib.suppress(ConnectionError):
            answer_requests(guardian, control)
    finally:
        failures = guardian.put_all_back()
        with contextlib.suppress(OSError):  # the sweep may be gone
            control.send(Refused(reason=failures) if failures else Done())
    os._exit(bool(failures))


if __name__ == "__main__":
    main()
