"""Watches one trial from outside. Single-threaded: the runner's event loop calls it when something is due.

Of jobs side by side each has a watcher of its own; one loop calls them all.

watcher = Watcher(nvml, machine, gpu_uuids, cpu_ids)
watcher.sample_before_trial()                        # nothing of the trial runs yet
watcher.attach_to_trial(leader_pid)
while ...:                                           # sleep until watcher.next_deadline() at the latest
    watcher.sample_due()
    watcher.sample_counters_at_edge(first=True)      # as soon as the child tells of a window's edge
watcher.sample_final_memory()                        # the child holds still
watcher.fetch_driver_samples()                       # the child has ended
watcher.sample_after_trial()                         # for LATE_S more, where it has_late_meter
watcher.make_watched()                               # of which record/figures.py makes columns
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean
from typing import Any, ParamSpec

from gpubench.node.environment import Machine
from gpubench.node.watch import host, metrics
from gpubench.node.watch.meters.meter import Meter
from gpubench.node.watch.meters.sampling import MeterReader
from gpubench.node.watch.nvml import NoNvml, Nvml, read_common_settings
from gpubench.node.watch.nvml_calls import DESKTOP, ENERGY, MAX_SM_CLOCK, MEMORY, PROCESSES, GpuProcesses
from gpubench.node.watch.pacing import Clock, Schedule, TimeBudget
from gpubench.schema.attempt import LiveReadings
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import HOST, Samples
from gpubench.schema.watched import WatchedTrial

P = ParamSpec("P")

CLOSE_LOOK_S = 10.0
"""In which the GPU memory of work that tells nothing of it is read with every rate: it may be short."""
MEMORY_FIRST_S = 0.5
"""After which the memory of a tree is read first."""
MEMORY_GROWTH = 0.5
"""Of the time that has passed, until it is read again."""
MEMORY_LAST_S = 60.0
"""At most."""
_NOT_OURS = "none of the trial's processes is among those that the driver lists (a pid namespace of its own?)"
_NOT_TOLD = "the driver does not tell the memory of a process"


class Watcher:
    """Samples of one trial. Nothing here raises for a figure that can't be had: it becomes a gap."""

    def __init__(
        self,
        nvml: Nvml | None,
        machine: Machine,
        gpu_uuids: Sequence[str],
        cpu_ids: Sequence[int],
        clock: Clock = time.monotonic,
        wall: Clock = time.time,
        *,
        shared_gpus: Collection[str] = (),
        meters: MeterReader | None = None,
    ) -> None:
        """`gpu_uuids`: the trial's GPUs, none for a CPU trial; `cpu_ids`: the CPUs that it may run on.

        `wall`: seconds since 1970, by which the driver dates its own samples. `shared_gpus`: GPUs that jobs beside it
        use, too. `meters`: shared by the watchers of all jobs.
        """
        self._meters = meters or MeterReader((), clock)
        self._nvml: Nvml = nvml or NoNvml("NVML was not opened")
        self.others: Sequence[Watcher] = ()
        """Those of the jobs beside it."""
        numbers = {gpu.uuid: str(gpu.index) for gpu in machine.gpus}
        self._gpus = {uuid: numbers.get(uuid, uuid[:12]) for uuid in gpu_uuids}
        self._shared = tuple(gpu for uuid, gpu in self._gpus.items() if uuid in shared_gpus)
        self._cpu_ids = tuple(cpu_ids)
        self._bound = len(self._cpu_ids) <= machine.cpu_count
        self._cpus = len(self._cpu_ids) if self._bound else float(machine.cpu_quota or machine.cpu_count)
        self._usage_file = machine.cpu_usage_file
        self._cpu_metric = metrics.CPU_BUSY if self._bound or self._usage_file else metrics.CPU_TREE
        self._clock = clock
        self._samples = Samples()
        self._buffers = _DriverBufferReader(self._nvml, self._gpus, self._samples, clock, wall)
        self._neighbours = _StrangerWatch(self._gpus)
        self._tree: host.ProcessTree | None = None
        self._schedule: Schedule | None = None
        self._baseline_mib: dict[str, float] = {}
        self._gpu_settings: dict[str, Any] = {}
        self._trained_until = math.inf
        self._memory_due, self._memory_began = math.inf, -math.inf
        """When the memory of the process tree is read next, of work that does not hold still for it."""
        self._totals_budget = TimeBudget(metrics.EDGES_SHARE, metrics.EDGES_SAVED_S, metrics.TOTALS_FRESH_S)
        self._energy_budget = TimeBudget(metrics.EDGES_SHARE, metrics.EDGES_SAVED_S, metrics.ENERGY_FRESH_S)

    # ------------------------------------------------------------ what the runner calls

    def sample_before_trial(self) -> None:
        """What is not the trial's, before it starts: settings of its GPUs, their memory and processes."""
        self._gpu_settings = read_common_settings(self._nvml, self._gpus)
        for uuid, gpu in self._gpus.items():
            try:
                self._baseline_mib[gpu] = self._nvml.ask(MEMORY, uuid)
            except Unmeasured as reason:
                self._samples.note_gap(metrics.DEVICE_MEMORY.name, str(reason), gpu)
            try:
                self._neighbours.note_earlier_processes(uuid, self._nvml.ask(PROCESSES, uuid))
            except Unmeasured as reason:
                self._samples.note_gap(metrics.PROCESS_MEMORY, str(reason), gpu)
            self._neighbours.note_desktop_processes(self._nvml, uuid)

    def attach_to_trial(self, root_pid: int) -> None:
        """Begins to watch the trial whose leader is `root_pid`, and takes the first samples."""
        self._tree = host.ProcessTree(root_pid)
        # Without a GPU and a meter nothing is read with every rate, and each waking costs the trial.
        periods = {"rates": metrics.RATES_S} if self._gpus or self._meters.has_meters else {}
        periods["totals"] = metrics.TOTALS_S
        if self._gpus:
            periods |= {"energy": metrics.ENERGY_S} | {b.name: b.period_s for b in metrics.BUFFERS}
        self._schedule = Schedule(periods, self._clock())
        self.sample_due()

    def next_deadline(self) -> float:
        """When `sample_due` has something to do next, on the clock given; infinity before `attach_to_trial`."""
        return self._schedule.next_deadline if self._schedule else math.inf

    def sample_due(self) -> None:
        """Takes the samples that are due, if any."""
        if self._schedule is None:
            return
        due = self._schedule.take_due(self._clock())
        if "rates" in due:
            self._sample_gpus(metrics.RATES)
            self._sample_meters()
            if self._clock() < self._memory_began + CLOSE_LOOK_S and "totals" not in due:
                self._sample_process_memory()
        if "totals" in due:
            self._sample_cpu_totals()
            self._sample_gpus(metrics.TOTALS)
            self._sample_process_memory()
        for buffer in metrics.BUFFERS:
            if buffer.name in due:
                self._buffers.fetch_new_samples(buffer)
        now = self._clock()
        if now >= self._memory_due:
            self._take_reading(metrics.TREE_MEMORY, HOST, lambda: self._require_tree().read_pss_mib())
            self._memory_due = now + min(MEMORY_LAST_S, MEMORY_GROWTH * (now - self._memory_began))
        if self._totals_budget.is_request_due(now):
            self._sample_cpu_totals()
        if "energy" in due or self._energy_budget.is_request_due(now):
            self._sample_energy()

    def watch_tree_memory(self) -> None:
        """From now on the memory of the process tree is read on the way: often at first, then at growing intervals.

        For work that does not hold still at its end. A reading costs up to 20 ms a process.
        """
        self._memory_began = self._clock()
        self._memory_due = self._memory_began + MEMORY_FIRST_S

    def sample_counters_at_edge(self, *, first: bool = False) -> None:
        """Reads the counters now, at the edge of a window, out of turn. `first`: the first measured window begins."""
        now = self._clock()
        if self._totals_budget.request_turn(now) or first:
            self._sample_cpu_totals()
        if self._energy_budget.request_turn(now) or first:
            self._sample_energy()

    def sample_final_memory(self) -> None:
        """Reads memory once, after the measured window, while the child's processes hold still.

        The host's part costs up to 20 ms a process. torch's allocator gives nothing back by itself, so the
        GPU's part is the peak so far.
        """
        self._sample_cpu_totals()
        self._sample_energy()
        self._sample_process_memory()
        self._sample_gpus([metrics.DEVICE_MEMORY])
        self._trained_until = self._clock()
        self.fetch_driver_samples()  # the teardown may last longer than a buffer is deep
        self._take_reading(metrics.TREE_MEMORY, HOST, lambda: self._require_tree().read_pss_mib())

    @property
    def has_late_meter(self) -> bool:
        """Whether a meter tells of the trial still when that has ended."""
        return self._meters.has_late_meter

    def sample_after_trial(self) -> None:
        """Samples meters, and what they are aligned by, where that is due: the trial has ended."""
        due = self._schedule.take_due(self._clock()) if self._schedule else []
        if "rates" in due:
            self._sample_gpus([metrics.POWER_METRIC])
            self._sample_meters()
        if metrics.BUFFER["power_w"].name in due:
            self._buffers.fetch_new_samples(metrics.BUFFER["power_w"])

    def fetch_driver_samples(self) -> None:
        """Fetches what the driver has sampled since the last time: its last samples come late."""
        for buffer in metrics.BUFFERS:
            self._buffers.fetch_new_samples(buffer)

    def read_trial_gpu_mib(self) -> dict[str, float] | None:
        """The driver's figure for the trial's processes now: uuid -> MiB. None: it does not tell."""
        return self._read_trial_memory_by_gpu()

    def list_seen_pids(self) -> set[int]:
        """The trial's processes as its CPU readings found them, those that have ended included. Reads nothing."""
        return self._tree.list_pids_ever() if self._tree else set()

    def _list_other_jobs_pids(self) -> set[int]:
        return {pid for other in self.others for pid in other.list_seen_pids()}

    def make_live_readings(self) -> LiveReadings:
        """The latest readings. Reads nothing itself."""
        utilisation = self._list_latest_values("gpu_util_pct")
        return LiveReadings(
            gpu_mem_mib=self._find_largest_gpu_memory(),
            gpu_util_pct=fmean(utilisation) if utilisation else None,
            cpu_util_pct=self._compute_recent_cpu_pct(),
        )

    def make_watched(self) -> WatchedTrial:
        """All that was seen of the trial, once it has ended."""
        # Those, too, that the driver listed before their own watcher met them.
        self._neighbours.add_trial_pids(self._list_other_jobs_pids())
        skipped = self._schedule.skipped if self._schedule else {}
        return WatchedTrial(
            samples=self._samples,
            gpus=tuple(self._gpus.values()),
            uuids={gpu: uuid for uuid, gpu in self._gpus.items()},
            baseline_mib=dict(self._baseline_mib),
            cpus=self._cpus,
            cpu_metric=self._cpu_metric,
            cpu_source=self._describe_cpu_source(),
            spare_cpus=len(self._cpu_ids) - self._cpus,
            trained_until=self._trained_until,
            power_source=self._nvml.power_source,
            shared=self._shared,
            skipped=(
                (metrics.RATES_S, tuple(skipped.get("rates", ()))),
                (metrics.TOTALS_S, tuple(skipped.get("totals", ()))),
            ),
            strangers=self._neighbours.stranger_sentences,
            desktops=tuple(self._neighbours.desktops),
            max_sm_clock_mhz=self._read_lowest_max_clock(),
            gpu_settings=self._gpu_settings,
            meters=self._meters.add_to(self._samples, is_shared=bool(self.others)),
        )

    # ------------------------------------------------------------ readings

    def _take_reading(
        self, metric: str, device: str, read: Callable[P, float], *args: P.args, **kw: P.kwargs
    ) -> None:
        t = self._clock()
        try:
            self._samples.add_reading(t, metric, read(*args, **kw), device)
        except Unmeasured as reason:
            self._samples.note_gap(metric, str(reason), device)

    def _sample_gpus(self, wanted: Sequence[metrics.GpuMetric]) -> None:
        for uuid, gpu in self._gpus.items():
            for metric in wanted:
                self._take_reading(metric.name, gpu, metric.read, self._nvml, uuid)

    def _sample_meters(self) -> None:
        self._meters.read_all()
        if self._meters.has_late_meter and not self._gpus:
            self._take_reading(metrics.CPU_LOAD, HOST, lambda: host.read_cpu_time(self._cpu_ids).busy)

    def _sample_energy(self) -> None:
        began = self._clock()
        for uuid, gpu in self._gpus.items():
            self._take_reading(metrics.ENERGY, gpu, self._nvml.ask, ENERGY, uuid)
        self._energy_budget.note_spent(began, self._clock())

    def _describe_cpu_source(self) -> str:
        if self._bound:
            return "/proc/stat over the trial's CPUs"
        if self._usage_file is not None:
            return "the cgroup's CPU time"
        # A batch system may grant a number of CPUs and bind to none: nobody else's work is then "on them".
        return f"the trial's processes alone: {self._cpus:g} of {len(self._cpu_ids)} CPUs, none in particular"

    def _read_lowest_max_clock(self) -> float | None:
        try:
            return min((self._nvml.ask(MAX_SM_CLOCK, uuid) for uuid in self._gpus), default=None)
        except Unmeasured:  # it serves a doubt alone
            return None

    def _sample_cpu_totals(self) -> None:
        t = self._clock()
        try:
            whole = host.read_cpu_time(self._cpu_ids)
            self._samples.add_reading(t, metrics.CPU_BUSY if self._bound else metrics.CPU_HOST, whole.busy)
            if self._bound:
                self._samples.add_reading(t, metrics.CPU_STOLEN, whole.stolen)
        except Unmeasured as reason:
            self._samples.note_gap(metrics.CPU_BUSY if self._bound else metrics.CPU_HOST, str(reason))
        if not self._bound and self._usage_file is not None:
            self._take_reading(metrics.CPU_BUSY, HOST, host.read_cgroup_cpu_s, self._usage_file)
        self._take_reading(metrics.CPU_TREE, HOST, lambda: self._require_tree().read_cpu_s())
        self._totals_budget.note_spent(t, self._clock())

    def _sample_process_memory(self) -> None:
        t = self._clock()
        for uuid, mib in (self._read_trial_memory_by_gpu(known=True) or {}).items() if self._gpus else ():
            self._samples.add_reading(t, metrics.PROCESS_MEMORY, mib, self._gpus[uuid])

    def _read_trial_memory_by_gpu(self, *, known: bool = False) -> dict[str, float] | None:
        """uuid -> MiB. `known`: the trial's processes are those that the last reading of their CPU time found."""
        try:
            # Before the driver is asked: who comes between the two has no memory yet.
            tree = self._require_tree()
            pids = set(tree.list_last_pids() if known else tree.list_pids())
            listed = {uuid: self._nvml.ask(PROCESSES, uuid) for uuid in self._gpus}
        except Unmeasured as reason:
            self._note_no_process_memory(str(reason), self._samples.note_gap)
            return None
        self._neighbours.note_running_processes(listed, pids | self._list_other_jobs_pids())
        mine = {uuid: [mib for pid, mib in processes if pid in pids] for uuid, processes in listed.items()}
        if not any(mine.values()):
            self._note_no_process_memory(_NOT_OURS, self._samples.note_reason)
            return None
        if any(None in amounts for amounts in mine.values()):
            self._note_no_process_memory(_NOT_TOLD, self._samples.note_gap)
            return None
        return {uuid: sum(mib for mib in amounts if mib is not None) for uuid, amounts in mine.items()}

    def _note_no_process_memory(self, reason: str, note: Callable[[str, str, str], None]) -> None:
        for gpu in self._gpus.values():
            note(metrics.PROCESS_MEMORY, reason, gpu)

    def _require_tree(self) -> host.ProcessTree:
        if self._tree is None:
            raise Unmeasured("watching has not started")
        return self._tree

    # ------------------------------------------------------------ the live view

    def _list_latest_values(self, metric: str) -> list[float]:
        by_gpu = [self._samples.find_series(metric, gpu) for gpu in self._gpus.values()]
        return [series.values[-1] for series in by_gpu if series.values]

    def _find_largest_gpu_memory(self) -> float | None:
        if amounts := self._list_latest_values(metrics.PROCESS_MEMORY):
            return max(amounts)
        if self._shared:
            return None  # what grew may be another job's
        used = {
            gpu: self._samples.find_series(metrics.DEVICE_MEMORY.name, gpu).values
            for gpu in self._baseline_mib
        }
        return max((u[-1] - self._baseline_mib[gpu] for gpu, u in used.items() if u), default=None)

    def _compute_recent_cpu_pct(self) -> float | None:
        busy = self._samples.find_series(self._cpu_metric)
        # Back to a sample at least half a period old: an edge's may have come just now.
        for t, value in zip(reversed(busy.times), reversed(busy.values), strict=True):
            if (wall := busy.times[-1] - t) >= metrics.TOTALS_S / 2:
                return min(100 * (busy.values[-1] - value) / (wall * self._cpus), 100.0)
        return None


def make_watchers(
    nvml: Nvml | None,
    machine: Machine,
    jobs: Sequence[tuple[Sequence[str], Sequence[int]]],
    clock: Clock = time.monotonic,
    meters: Sequence[Meter] = (),
) -> list[Watcher]:
    """One for each job, given its GPUs (uuids) and its CPUs. They know each other's processes, and share the meters."""
    reader = MeterReader(meters, clock)
    users = Counter(uuid for gpu_uuids, _ in jobs for uuid in gpu_uuids)
    shared = {uuid for uuid, count in users.items() if count > 1}
    watchers = [
        Watcher(nvml, machine, gpu_uuids, cpu_ids, clock, shared_gpus=shared, meters=reader)
        for gpu_uuids, cpu_ids in jobs
    ]
    for watcher in watchers:
        watcher.others = [other for other in watchers if other is not watcher]
    return watchers


class _DriverBufferReader:
    """Fetches once each sample that the driver takes by itself, in time, and dates it by the host's monotonic clock."""

    def __init__(
        self, nvml: Nvml, gpus: Mapping[str, str], samples: Samples, clock: Clock, wall: Clock
    ) -> None:
        """`gpus`: uuid -> device of `samples`; `wall`: seconds since 1970, by which the driver dates its samples."""
        self._nvml = nvml
        self._gpus = gpus
        self._samples = samples
        self._clock = clock
        self._wall = wall
        now = wall()
        self._fetched = {(uuid, buffer.name): now for uuid in gpus for buffer in metrics.BUFFERS}

    def fetch_new_samples(self, buffer: metrics.DriverBuffer) -> None:
        """Adds what the driver has sampled since the last time."""
        ahead = self._wall() - self._clock()
        for uuid, gpu in self._gpus.items():
            key = uuid, buffer.name
            try:
                samples = self._nvml.read_driver_samples(uuid, buffer.what, self._fetched[key])
            except Unmeasured as reason:
                self._samples.note_gap(buffer.name, str(reason), gpu)
                continue
            latest = max(self._samples.find_series(buffer.name, gpu).times[-1:], default=-math.inf)
            for t, value in samples:
                # A wall clock that was set back must not bring the series out of order.
                latest = max(latest, t - ahead)
                self._samples.add_reading(latest, buffer.name, value, gpu)
                self._fetched[key] = t


MPS_SERVER = "nvidia-cuda-mps"
"""CUDA's Multi-Process Service, as the kernel cuts its name: it holds memory for its clients, the trial among them."""


class _StrangerWatch:
    """Processes on the trial's GPUs that are neither its own nor those of jobs that were started with it.

    Each, whether it was there before the trial or came later, is a sentence that names process, memory and GPU.
    """

    def __init__(self, gpus: Mapping[str, str]) -> None:
        """`gpus`: uuid -> the name that people know it by."""
        self._gpus = gpus
        self._before: dict[tuple[str, int], str] = {}
        self._later: dict[tuple[str, int], str] = {}
        self._trial_pids: set[int] = set()
        """Processes of the trial, and of the jobs beside it; those that have ended, too."""
        self._is_trial_listed = False
        self.desktops: list[str] = []

    def note_earlier_processes(self, uuid: str, processes: GpuProcesses) -> None:
        """Compute processes on a GPU before the trial starts."""
        for pid, mib in processes:
            if host.read_process_name(pid) != MPS_SERVER:
                self._before[uuid, pid] = _format_stranger(pid, mib, self._gpus[uuid])

    def note_desktop_processes(self, nvml: Nvml, uuid: str) -> None:
        """Looks for graphics processes on a GPU."""
        try:
            processes = nvml.ask(DESKTOP, uuid)
        except Unmeasured:  # many GPUs can draw nothing: no figure rests on this
            return
        self.desktops += [_format_stranger(pid, mib, self._gpus[uuid]) for pid, mib in processes]

    def add_trial_pids(self, pids: Collection[int]) -> None:
        """These are no strangers, whenever the driver listed them first."""
        self._trial_pids.update(pids)

    def note_running_processes(self, listed: Mapping[str, GpuProcesses], trial_pids: Collection[int]) -> None:
        """What the driver lists by uuid while the trial runs. `trial_pids`: of the trial and of the jobs beside it."""
        self.add_trial_pids(trial_pids)
        for uuid, processes in listed.items():
            for pid, mib in processes:
                self._is_trial_listed |= pid in trial_pids
                known = pid in self._trial_pids or (uuid, pid) in self._before
                if not known and host.read_process_name(pid) != MPS_SERVER:
                    self._later[uuid, pid] = _format_stranger(pid, mib, self._gpus[uuid])

    @property
    def stranger_sentences(self) -> list[str]:
        """Where the driver's pids are not ours to recognise, a process that came later may be the trial's."""
        strangers = self._before | (self._later if self._is_trial_listed else {})
        return [sentence for (_, pid), sentence in strangers.items() if pid not in self._trial_pids]


def _format_stranger(pid: int, mib: float | None, gpu: str) -> str:
    held = "an unknown amount" if mib is None else f"{mib:,.0f} MiB"
    return f"process {pid} ({host.read_process_name(pid)}) held {held} on GPU {gpu}"
