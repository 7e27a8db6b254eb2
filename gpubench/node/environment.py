"""Facts of the machine: what this process may use of it, and what goes beside every result."""

from __future__ import annotations

import math
import os
import platform
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Protocol

from gpubench import __version__
from gpubench.basics.errors import UnusableError
from gpubench.node.allocation import SlurmAllocation, find_slurm_allocation
from gpubench.node.cgroup import MEMBERSHIP, MOUNT, find_cpu_quota, list_memory_limits_mib, read_words


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A GPU, or a MIG slice of one."""

    index: int
    """Of those of a Machine: as torch will number it under the present CUDA_VISIBLE_DEVICES. Of those that the driver
    lists: NVML's number, in order of PCI bus ids; a MIG slice has its parent's."""
    uuid: str
    name: str
    memory_mib: int
    reserved_mib: int | None = None
    """What the driver keeps of that for itself; None: it does not say."""
    parent: str | None = None
    """uuid of the GPU that a MIG slice is cut from."""


class GpuInventory(Protocol):
    """What is asked of NVML here; `watch.nvml.Nvml` is one."""

    @property
    def devices(self) -> Sequence[Gpu]: ...
    @property
    def driver(self) -> str | None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What this process may use."""

    host: str
    gpus: tuple[Gpu, ...]
    driver: str | None
    cpu_name: str
    cpu_ids: tuple[int, ...]
    """CPUs that it may run on: its affinity."""
    cpu_count: int
    """CPUs' worth of time that it may use: fewer than `cpu_ids` under a quota or a SLURM limit that binds
    it to no CPUs in particular."""
    cpu_usage_file: str | None = None
    """Where a cgroup's quota is what limits `cpu_count`: the file that counts that cgroup's CPU time."""
    cpu_quota: float | None = None
    """That quota, which may be 2.5 CPUs; `cpu_count` is it rounded up."""
    memory_mib: int | None = None
    """Host memory that it may use: the least of the machine's, its cgroup's and what SLURM gave; None: not known."""
    allocation: SlurmAllocation | None = None
    """The SLURM job that it runs in."""

    @property
    def has_unbound_cpus(self) -> bool:
        """Whether SLURM gave it a number of CPUs that nothing holds it to: it may run on others' as well."""
        return self.cpu_quota is None and self.allocation is not None and self.cpu_count < len(self.cpu_ids)

    @property
    def sentence_start(self) -> str:
        """How a sentence begins that says what there is: `this machine shows`, `SLURM job 12 was given`."""
        return f"{self.allocation.job_label} was given" if self.allocation else "this machine shows"


# ---------------------------------------------------------------- what may be used


def make_machine(nvml: GpuInventory | None, environ: Mapping[str, str] = os.environ) -> Machine:
    """The machine as this process may use it. `nvml` None: no GPUs."""
    cpu_ids = tuple(sorted(os.sched_getaffinity(0)))
    quota = find_cpu_quota()
    limits = [len(cpu_ids)]
    job = find_slurm_allocation(environ)
    if job is not None and job.cpus is not None:
        limits.append(job.cpus)
    usage_file = None
    if quota is not None:
        limits.append(math.ceil(quota.cpus))
        usage_file = quota.usage_file if limits[-1] == min(limits) < len(cpu_ids) else None
    return Machine(
        host=socket.gethostname(),
        gpus=list_visible_gpus(nvml.devices if nvml else (), environ.get("CUDA_VISIBLE_DEVICES")),
        driver=nvml.driver if nvml else None,
        cpu_name=read_cpu_name(),
        cpu_ids=cpu_ids,
        cpu_count=min(limits),
        cpu_usage_file=usage_file,
        cpu_quota=quota.cpus if quota and usage_file else None,
        memory_mib=find_usable_memory_mib(job.memory_mib if job else None),
        allocation=job,
    )


def list_visible_gpus(devices: Sequence[Gpu], spec: str | None) -> tuple[Gpu, ...]:
    """The devices that CUDA will show under CUDA_VISIBLE_DEVICES=`spec` (None: unset), in its order.

    CUDA's rules: numbers count in PCI bus order (the child must set CUDA_DEVICE_ORDER=PCI_BUS_ID); a uuid may
    be cut short while it is unambiguous; a GPU cut into MIG slices goes by its first slice; the first entry
    that names no device ends the list; one that is named twice voids it.
    """
    first_slice: dict[str | None, Gpu] = {}
    for device in devices:
        first_slice.setdefault(device.parent, device)
    by_uuid = {device.uuid: first_slice.get(device.uuid, device) for device in devices}
    numbered = [by_uuid[device.uuid] for device in devices if not device.parent]
    chosen: list[Gpu] = []
    for entry in range(len(numbered)) if spec is None else spec.split(","):
        device_named = _find_gpu_by_entry(str(entry).strip(), numbered, by_uuid)
        if device_named is None:
            break
        if device_named in chosen:
            return ()
        chosen.append(device_named)
    return tuple(replace(device, index=index) for index, device in enumerate(chosen))


def _find_gpu_by_entry(entry: str, numbered: Sequence[Gpu], by_uuid: Mapping[str, Gpu]) -> Gpu | None:
    if number := re.match(r"\+?(\d+)", entry):  # like strtoul: "1st" is 1
        index = int(number[1])
        return numbered[index] if index < len(numbered) else None
    if not entry.startswith(("GPU-", "MIG-")):
        return None
    matching = [device for uuid, device in by_uuid.items() if uuid.startswith(entry)]
    return matching[0] if len(matching) == 1 else None


def find_usable_memory_mib(
    granted: int | None,
    membership: Path = MEMBERSHIP,
    mount: Path = MOUNT,
    meminfo: Path = Path("/proc/meminfo"),
) -> int | None:
    """Host memory that this process may use; None: not known. `granted`: what SLURM gave."""
    limits = [*([granted] if granted else []), *list_memory_limits_mib(membership, mount)]
    words = read_words(meminfo)
    if "MemTotal:" in words:
        limits.append(int(words[words.index("MemTotal:") + 1]) >> 10)
    return min(limits, default=None)


# ---------------------------------------------------------------- what goes beside a result


def make_hardware_key(machine: Machine, device: str) -> str:
    """What a result depends on: `NVIDIA H200, 143771 MiB`, or the CPU model where `device` is `cpu`.

    Raises UnusableError where `device` is `cuda` and there is no GPU.
    """
    if device == "cpu":
        return machine.cpu_name
    if not machine.gpus:
        raise UnusableError(
            "no GPU can be used here: check nvidia-smi and CUDA_VISIBLE_DEVICES, or ask for --device cpu"
        )
    return " + ".join(dict.fromkeys(f"{gpu.name}, {gpu.memory_mib} MiB" for gpu in machine.gpus))


def collect_environment_facts(machine: Machine, environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The columns of `columns.ENVIRONMENT` and `columns.ALLOCATION` except `cuda` (torch knows) and `started_at`.

    More facts stand beside them.
    """
    known = [kept for gpu in machine.gpus if (kept := gpu.reserved_mib) is not None]
    return {
        "host": machine.host,
        "gpu_name": " + ".join(dict.fromkeys(gpu.name for gpu in machine.gpus)) or None,
        "gpu_count": len(machine.gpus),
        "gpu_reserved_mib": max(known) if known and len(known) == len(machine.gpus) else None,
        "driver": machine.driver,
        "torch": _find_package_version("torch"),
        "cpu_name": machine.cpu_name,
        "cpu_count": machine.cpu_count,
        "gpubench": __version__,
        "slurm_job": machine.allocation.job_id if machine.allocation else None,
        "slurm_node": machine.allocation.node if machine.allocation else None,
        "slurm_partition": machine.allocation.partition if machine.allocation else None,
        "memory_limit_mib": machine.memory_mib,
        "mps": find_mps_state(environ) if machine.gpus else None,
        "torchvision": _find_package_version("torchvision"),
        "torchcodec": _find_package_version("torchcodec"),
        "python": platform.python_version(),
        "os": _read_os_name(),
        "kernel": platform.release(),
    }


_MPS_FOLDER = "/tmp/nvidia-mps"
_MPS_NAME = "nvidia-cuda-mps"
"""The control daemon's, as the kernel cuts it to 15 characters."""
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel's own number of the one that sees all processes."""


def find_mps_state(environ: Mapping[str, str], proc: Path = Path("/proc")) -> str:
    """Whether CUDA programs started from here share GPUs through NVIDIA's Multi-Process Service.

    `on`: a control daemon runs for the folder that they would look in. `off`: there is none. `perhaps`: the folder
    looks as if there were one, but it is not among the processes that can be seen from here (a container).
    """
    folder = Path(environ.get("CUDA_MPS_PIPE_DIRECTORY") or _MPS_FOLDER)
    if not os.access(folder / "control", os.F_OK):
        return "off"
    # The daemon takes this file with it when it ends, and leaves the socket `control` behind.
    pid_file = folder / "nvidia-cuda-mps-control.pid"
    if pid_file.exists() and not os.access(pid_file, os.R_OK):
        return "perhaps"  # another user's
    match read_words(pid_file):
        case [pid] if read_words(proc / pid / "comm") == [_MPS_NAME]:
            return "on"
        case []:
            return "off"
    return "off" if _sees_all_processes(proc) else "perhaps"


def _sees_all_processes(proc: Path) -> bool:
    """Whether every process of the host can be seen: the first pid namespace, and none is hidden from this user."""
    try:
        namespace = str((proc / "self/ns/pid").readlink())
    except OSError:
        return False
    return namespace == _FIRST_PID_NAMESPACE and bool(read_words(proc / "1/comm"))


def read_cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The CPU model; the architecture where the kernel names no model (most Arm machines)."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        text = ""
    facts = {key.strip(): value for key, _, value in (line.partition(":") for line in text.splitlines())}
    for key in ("model name", "Model", "cpu model", "Hardware", "cpu"):
        if name := " ".join(facts.get(key, "").split()):
            return name
    return platform.processor() or platform.machine() or "unknown CPU"


def _read_os_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def _find_package_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
