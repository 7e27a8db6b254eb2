"""What the cgroups over this process say: how much CPU time and memory it may have, whom the kernel killed for memory.

Inside a container the own cgroup is usually mounted as the root, and its path does not exist there: walking up finds it
all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")


@dataclass(frozen=True, kw_only=True, slots=True)
class CpuQuota:
    """How much CPU time a cgroup gives its processes."""

    cpus: float
    usage_file: str
    """Counts the CPU time of all that shares the quota: `cpu.stat` (v2) or `cpuacct.usage` (v1)."""


def find_cpu_quota(membership: Path = MEMBERSHIP, mount: Path = MOUNT) -> CpuQuota | None:
    """The tightest CPU quota over this process, its cgroup's parents included; None: none, or none seen."""
    files = _iterate_cgroup_paths("cpu", "cpu.max", "cpu.cfs_quota_us", membership, mount)
    quotas = [quota for file in files if (quota := _read_cpu_quota(file, mount))]
    return min(quotas, key=lambda quota: quota.cpus, default=None)


def _read_cpu_quota(file: Path, mount: Path) -> CpuQuota | None:
    words, usage = read_words(file), file.with_name("cpu.stat")
    if file.name != "cpu.max":
        words += read_words(file.with_name("cpu.cfs_period_us"))
        usage = file.with_name("cpuacct.usage")
        if not usage.exists():  # its controller is mounted apart
            usage = mount.joinpath("cpuacct", *usage.relative_to(mount).parts[1:])
    match words:
        case [quota, period] if quota.isdigit():  # neither `max` nor -1
            return CpuQuota(cpus=int(quota) / int(period), usage_file=str(usage))
    return None


def list_memory_limits_mib(membership: Path, mount: Path) -> list[int]:
    """Every limit of host memory over this process. One that is none may be larger than any memory."""
    files = _iterate_cgroup_paths("memory", "memory.max", "memory.limit_in_bytes", membership, mount)
    return [int(words[0]) >> 20 for file in files if (words := read_words(file)) and words[0].isdigit()]


@dataclass(frozen=True, kw_only=True, slots=True)
class OomKillCounter:
    """How many processes the kernel has killed for memory: a count that only goes up."""

    file: Path
    where: str
    """`this cgroup` or `this host`."""

    def read_kill_count(self) -> int:
        """So many by now; 0 where the file has gone."""
        return _read_oom_kills(self.file) or 0


def find_oom_kill_counter(
    membership: Path = MEMBERSHIP, mount: Path = MOUNT, vmstat: Path = VMSTAT
) -> OomKillCounter | None:
    """The nearest count there is; None: the kernel tells of none.

    A process that is killed counts in the cgroup that it belongs to, also where a limit further up was met.
    """
    for file in _iterate_cgroup_paths("memory", "memory.events", "memory.oom_control", membership, mount):
        if _read_oom_kills(file) is not None:
            return OomKillCounter(file=file, where="this cgroup")
    return OomKillCounter(file=vmstat, where="this host") if _read_oom_kills(vmstat) is not None else None


def _read_oom_kills(file: Path) -> int | None:
    words = read_words(file)
    return int(words[words.index("oom_kill") + 1]) if "oom_kill" in words else None


def _iterate_cgroup_paths(controller: str, v2: str, v1: str, membership: Path, mount: Path) -> Iterator[Path]:
    """Where the cgroups over this process may have such a file, by its name in either version, the nearest first."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return  # a kernel without cgroups
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        name, bases = v2, [mount, mount / "unified"]
        if controllers:
            name, bases = v1, [mount / (controllers if (mount / controllers).is_dir() else controller)]
        for folder in (PurePosixPath(path), *PurePosixPath(path).parents):
            if ".." not in folder.parts:
                yield from (base / folder.relative_to("/") / name for base in bases)


def read_words(path: Path) -> list[str]:
    """The words of a file; none where it can't be read: not set here, or not mounted."""
    try:
        return path.read_text().split()
    except OSError:
        return []
