"""Processes on the trial's GPUs that are neither its own nor those of jobs that were started with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gpubench.node.watch import host
from gpubench.node.watch.nvml import Nvml
from gpubench.node.watch.nvml_calls import DESKTOP, GpuProcesses
from gpubench.schema.missing import Unmeasured

MPS_SERVER = "nvidia-cuda-mps"
"""CUDA's Multi-Process Service, as the kernel cuts its name: it holds memory for its clients, the trial among them."""


class StrangerWatch:
    """Who was there before the trial, and who came later. Each is a sentence that names process, memory and GPU."""

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
