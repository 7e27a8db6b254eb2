"""The one seam between a sweep and a machine where trials run.

Plain values go in and come out, and GPUs are named by UUID. It shares with the sweep only the file system that images
and logs lie on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from gpubench.basics.errors import UnusableError
from gpubench.node import environment
from gpubench.node.environment import Machine
from gpubench.node.launch import scratch, user_code_probe
from gpubench.node.launch.attempt import run_attempt
from gpubench.node.launch.fork_server import ForkServer, LaunchStoppedError
from gpubench.node.limits.guard import LimitGuard
from gpubench.node.limits.guardian import GpuLimit
from gpubench.node.limits.kept import check_power_limit, put_back_left_settings
from gpubench.node.locks import SweepLocks
from gpubench.node.watch import host_load, idle, metrics
from gpubench.node.watch.meters.meter import Meter
from gpubench.node.watch.meters.sampling import open_meters
from gpubench.node.watch.nvml import (
    Nvml,
    explain_lost_gpu,
    list_gpus_lost_at_start,
    open_nvml,
    read_allowed_limits,
)
from gpubench.node.watch.watcher import make_watchers
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.gpu_look import AllowedLimits, GpuLook, LeftLimits, WantedLimits
from gpubench.schema.missing import Unmeasured
from gpubench.schema.order import TrialOrder

LEFT_OUT = "left-out.json"
"""In a job's scratch folder: the images that its ranks leave out, which may be too many for a message."""


@dataclass(kw_only=True, slots=True)
class Node:
    """This machine, as a sweep sees it."""

    nvml: Nvml
    machine: Machine
    launcher: ForkServer = field(init=False)
    """Starts its trials, from `start_fork_server` on."""
    left_limits: Sequence[LeftLimits] = ()
    """What became of limits that sweeps which were killed had left on its GPUs."""
    gpu_locks: SweepLocks | None = None
    """Keep other sweeps of this host off the GPUs of this one; None: nobody is kept off."""
    meters: Sequence[Meter] = ()
    """Of power outside of the GPU: what is read while a unit runs."""
    _limit_guard: LimitGuard | None = None
    """Sets limits on its GPUs, from `guard_limits` on."""
    _scratch: Path | None = None
    """The folder of the unit that was run last."""
    _compiled: Path | None = None
    """Where torch keeps what it compiles, for all trials."""
    _ending: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """Removes it."""

    # ---- before a sweep ----

    def collect_environment_facts(self) -> dict[str, Any]:
        """What goes beside every result: see `environment.collect_environment_facts`."""
        return environment.collect_environment_facts(self.machine)

    def remove_abandoned_folders(self) -> None:
        """Removes what sweeps of this user that were killed have left here."""
        scratch.remove_abandoned_folders()

    def measure_host_load(self, look_s: float) -> float | None:
        """Per cent of the CPUs that others keep busy in the next `look_s` seconds; None: the kernel does not tell."""
        try:
            return host_load.measure_busy_pct(self.machine, look_s)
        except Unmeasured:
            return None

    def sample_gpus_before_sweep(self, uuids: Sequence[str]) -> dict[str, GpuLook]:
        """What is seen of these GPUs before anything of the sweep runs on them, by UUID. Takes some seconds."""
        return idle.sample_gpus_before_sweep(self.nvml, uuids)

    def lock_gpus(self, uuids: Sequence[str]) -> list[str]:
        """Has these GPUs for itself among all sweeps of this host; returns those that another one has."""
        return [] if self.gpu_locks is None else self.gpu_locks.take_free(uuids)

    def read_allowed_limits(self, uuid: str) -> AllowedLimits:
        """What may be set on a GPU."""
        return read_allowed_limits(self.nvml, uuid)

    def guard_limits(self, wanted: Mapping[str, WantedLimits]) -> None:
        """Makes ready to set limits on these GPUs, by UUID, so that all are as before after any end of the sweep.

        Raises NoRightToSetError, Unmeasured where a GPU can't be changed, UnusableError.
        """
        self._limit_guard = LimitGuard(wanted)

    def list_gpus_lost_at_start(self) -> dict[int, str]:
        """The driver's own number -> its words, of GPUs that were lost before: they are not in `machine`."""
        return list_gpus_lost_at_start(self.nvml)

    def list_lost_gpus(self) -> dict[int, str]:
        """Index -> the driver's words, of those of the machine's GPUs that the driver has lost."""
        reasons = {gpu.index: explain_lost_gpu(self.nvml, gpu.uuid) for gpu in self.machine.gpus}
        return {index: words for index, words in reasons.items() if words is not None}

    def probe_user_code(
        self, tries: Sequence[Mapping[str, Any]], limit_s: int
    ) -> user_code_probe.ProbeResult:
        """What comes of users' own variants and models in a child, each tried for `limit_s` seconds at most."""
        return user_code_probe.probe_user_code(tries, limit_s)

    def start_fork_server(self, *, has_trainings: bool = True) -> None:
        """Begins to make ready for trials: the import of torch goes on while the caller does other things. Raises
        UnusableError where there is no folder for temporary files. `has_trainings`: whether torch is needed."""
        self._compiled = self._ending.enter_context(scratch.open_compile_cache(os.environ))
        self.launcher = ForkServer(self._compiled, has_trainings=has_trainings)

    def wait_ready(self, should_stop: Callable[[], bool]) -> bool:
        """Waits until trials can start; False where it was stopped. Raises UnusableError where torch can't be had."""
        try:
            self.launcher.wait_ready(should_stop)
        except LaunchStoppedError:
            return False
        return True

    # ---- trials ----

    @property
    def wait_for_meters_s(self) -> float:
        """How long each unit waits at its end for meters that show late what was drawn."""
        return metrics.LATE_S if any(meter.is_late for meter in self.meters) else 0.0

    def run_unit(
        self,
        orders: Sequence[TrialOrder],
        left_out: Sequence[Collection[str]],
        *,
        timeout_s: float,
        should_stop: Callable[[], bool],
        look: Callable[[Sequence[JobProgress]], None],
    ) -> list[Attempt]:
        """One attempt at a unit: an order for each job, whose scratch folder is made here.

        `left_out`: of each job's images those that its ranks leave out. `should_stop` and `look` are called a few times
        a second.
        """
        with scratch.open_scratch_folder() as self._scratch:
            folders = [self._scratch / str(index) for index in range(len(orders))]
            try:
                placed = list(map(_place_order_in_scratch, orders, left_out, folders))
            except UnusableError as error:
                return _make_failed_attempts(orders, str(error))
            try:
                self._set_limits(orders)
            except Unmeasured as error:
                return _make_failed_attempts(orders, str(error))
            return run_attempt(
                placed,
                make_watchers(
                    self.nvml,
                    self.machine,
                    [(order.gpu_uuids, order.cpu_ids) for order in placed],
                    meters=self.meters,
                ),
                self.launcher,
                timeout_s=timeout_s,
                should_stop=should_stop,
                look=look,
            )

    def _set_limits(self, orders: Sequence[TrialOrder]) -> None:
        """What the trials want their GPUs set to. Raises Unmeasured where one is not, UnusableError."""
        trials = {uuid: order.trial for order in orders for uuid in order.gpu_uuids}
        if self._limit_guard:
            self._limit_guard.set_limits(
                [
                    GpuLimit(
                        uuid=uuid, power_limit_w=t.power_limit_w, sm_clock_limit_mhz=t.sm_clock_limit_mhz
                    )
                    for uuid, t in trials.items()
                ]
            )
        for uuid, t in trials.items():  # those, too, that somebody else has set so
            if t.power_limit_w is not None:
                check_power_limit(self.nvml, uuid, t.power_limit_w)

    # ---- after them ----

    def close(self) -> None:
        """Ends what `start_fork_server` and `guard_limits` have started. Raises UnusableError where a GPU is not as
        before."""
        self.launcher.close()
        self._ending.close()
        guard, self._limit_guard = self._limit_guard, None
        try:
            if guard is not None:
                guard.close()
        finally:
            if self.gpu_locks is not None:
                self.gpu_locks.release()

    def remove_temporary_folders(self) -> None:
        """What a process that is about to end at once still clears away."""
        for folder in (self._scratch, self._compiled):
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)


def make_this_node(meters: Sequence[str] = ()) -> Node:
    """The node that the sweep itself runs on. `meters`: as `--meter` names them; raises UsageError, UnusableError."""
    left = put_back_left_settings()
    nvml = open_nvml()
    return Node(
        nvml=nvml,
        machine=environment.make_machine(nvml),
        left_limits=left,
        gpu_locks=SweepLocks(),
        meters=open_meters(meters),
    )


def _make_failed_attempts(orders: Sequence[TrialOrder], reason: str) -> list[Attempt]:
    now = time.monotonic()
    return [Attempt(forced=("failed", reason), launched=now, finished=now) for _ in orders]


def _place_order_in_scratch(order: TrialOrder, left_out: Collection[str], folder: Path) -> TrialOrder:
    """The order with a scratch folder, which holds the names of the images that are left out."""
    folder.mkdir()
    data, names = order.data, folder / LEFT_OUT
    if left_out:
        try:
            names.write_text(json.dumps(sorted(left_out)))
        except OSError as error:
            raise UnusableError(f"{names} can't be written: {error.strerror}") from None
        data = structs.replace(data, left_out=str(names))
    return structs.replace(order, scratch=folder, data=data)
