"""What the host's kernel counts: CPU time of chosen CPUs and of a process tree, and the tree's memory.

Read straight from /proc: with 64 loader workers every saved open() counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from gpubench.schema.missing import Unmeasured

_TICK = os.sysconf("SC_CLK_TCK")
_KIB_PER_MIB = 1024
THREADS_EVERY = 5
"""Walks of a process tree between two that look at every thread."""


class HostReadingError(Unmeasured):
    """A figure that this kernel, container or permission does not give."""


# ---------------------------------------------------------------- whole CPUs


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds since boot, summed over some CPUs."""

    busy: float
    """User, nice, system and interrupt time: all but idle, waiting for I/O, and stolen."""
    stolen: float
    """Time in which the hypervisor ran somebody else. It is no work of this machine and was never this
    machine's to use: whoever divides by wall time takes it off the denominator."""


def read_cpu_time(cpu_ids: Iterable[int]) -> CpuTime:
    """CPU time of these CPUs, from /proc/stat. Raises HostReadingError where it is not told."""
    wanted = {b"cpu%d" % i for i in cpu_ids}
    busy = stolen = idle = 0
    for line in _read_kernel_file("/proc/stat").split(b"\n"):
        if not line.startswith(b"cpu"):
            break  # the CPUs come first
        name, *fields = line.split()
        if name not in wanted:
            continue
        wanted.discard(name)
        # user nice system idle iowait irq softirq steal; guest time is already in user and nice
        times = [int(f) for f in fields[:8]] + [0] * (8 - len(fields))
        busy += sum(times[:3]) + times[5] + times[6]
        idle += times[3] + times[4]
        stolen += times[7]
    if wanted:
        names = ", ".join(sorted(name.decode() for name in wanted))
        raise HostReadingError(f"/proc/stat has no line for {names}")
    if not busy and not idle:
        raise HostReadingError("/proc/stat holds no CPU times here (a sandboxed kernel)")
    return CpuTime(busy / _TICK, stolen / _TICK)


def read_cgroup_cpu_s(path: str) -> float:
    """CPU seconds of everything under a cgroup, from its `cpu.stat` (v2) or `cpuacct.usage` (v1).

    Raises HostReadingError where the file can't be read or holds no such figure.
    """
    text = _read_kernel_file(path)
    if not path.endswith("cpu.stat"):
        return int(text) / 1e9
    for line in text.splitlines():
        key, _, value = line.partition(b" ")
        if key == b"usage_usec":
            return int(value) / 1e6
    raise HostReadingError(f"{path} does not count CPU time")


# ---------------------------------------------------------------- a process tree


@dataclass(frozen=True, slots=True)
class _ProcessStat:
    state: bytes
    ticks: int
    """Ticks of user and system time of the process, all its threads, those that have ended included."""
    reaped: int
    """Those of children that it has waited for, and of theirs."""


class ProcessTree:
    """A process and all below it. The root should be a child subreaper, so that orphans stay below it."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._parents: set[int] = set()
        self._known: list[int] = []
        self._seen: set[int] = set()
        self._walks = 0
        self._forking: dict[int, list[int]] = {}
        self._last = 0
        self._lost = 0

    def list_pids(self) -> list[int]:
        """Live processes (zombies too), the root first. Raises HostReadingError where the root is gone."""
        return list(self._read_tree_stats())

    def list_last_pids(self) -> list[int]:
        """The process ids that `read_cpu_s` has just found: a walk costs a millisecond. Raises as `list_pids`."""
        return self._known or self.list_pids()

    def list_pids_ever(self) -> set[int]:
        """All that any walk has met, those that have ended included. Reads nothing itself."""
        return set(self._seen)

    def read_cpu_s(self) -> float:
        """User and system CPU seconds of the tree since its start. Never falls; resolution 10 ms a process.

        A process that has ended and been waited for is in its parent's count of reaped children, once. Since
        /proc can't be read at one instant, a walk during which a parent reaped somebody is repeated. Where a
        parent ignores its children's end the kernel forgets their time; then the last known total is kept.
        Raises HostReadingError where the root is gone.
        """
        self._known = []
        for _ in range(3):
            processes = self._read_tree_stats()
            settled = all(
                (again := _read_process_stat(pid)) is not None and again.reaped == processes[pid].reaped
                for pid in self._parents & processes.keys()
            )
            if settled:
                break
        self._known = list(processes)
        total = sum(s.ticks + s.reaped for s in processes.values()) + self._lost
        if settled and total < self._last:
            self._lost += self._last - total
        self._last = max(self._last, total)
        return self._last / _TICK

    def read_pss_mib(self) -> float:
        """Proportional resident memory in MiB: a page shared by n processes counts 1/n for each of them.

        Pages shared with processes outside the tree (the server that forked it) count their part alone.
        Costs up to 20 ms a process: call it while nothing is timed. Raises HostReadingError where the kernel does
        not tell; resident memory is no substitute, since it counts shared pages once a process.
        """
        return (
            sum(_read_pss_kib(pid) for pid, stat in self._read_tree_stats().items() if stat.state != b"Z")
            / _KIB_PER_MIB
        )

    def _read_tree_stats(self) -> dict[int, _ProcessStat]:
        if self._walks % THREADS_EVERY == 0:
            self._forking.clear()
        self._walks += 1
        processes: dict[int, _ProcessStat] = {}
        stack = [self.root]
        while stack:
            pid = stack.pop()
            # A parent before its children: whoever is reaped meanwhile can be missed, never counted twice.
            stat = _read_process_stat(pid)
            if stat is None or stat.state in (b"X", b"x"):
                continue  # gone, or being reaped: its time is its parent's already
            processes[pid] = stat
            below = self._list_children(pid)
            if below:
                self._parents.add(pid)
                stack += below
        if not processes:
            raise HostReadingError(f"process {self.root} is gone")
        if not _HAS_CHILDREN_FILES:
            raise HostReadingError(
                "this kernel does not tell the children of a process (CONFIG_PROC_CHILDREN)"
            )
        self._seen.update(processes)
        return processes

    def _list_children(self, pid: int) -> list[int]:
        """Children of all its threads, since a child belongs to the thread that forked it.

        A rank has hundreds of threads, and as good as always only its main thread forks: the others are looked at
        in the first walk that meets the process, and in every few walks after it.
        """
        threads = self._forking.get(pid)
        if threads is not None:
            return [child for thread in threads for child in _read_thread_children(pid, thread)]
        try:
            threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - ten times as fast
        except (FileNotFoundError, ProcessLookupError):
            return []  # ended meanwhile: its children are somebody else's now
        children = {thread: _read_thread_children(pid, thread) for thread in threads}
        self._forking[pid] = [thread for thread, below in children.items() if below or thread == pid]
        return [child for below in children.values() for child in below]


def read_process_name(pid: int) -> str:
    """The process's short name; `?` where it can't be seen (ended, or another pid namespace)."""
    try:
        return _read_kernel_file(f"/proc/{pid}/comm").decode(errors="replace").strip()
    except HostReadingError:
        return "?"


def _read_process_stat(pid: int) -> _ProcessStat | None:
    text = _read_kernel_file(f"/proc/{pid}/stat", b"")
    if not text:
        return None
    f = text[text.rindex(b")") + 2 :].split(None, 15)  # the name may hold blanks and brackets
    return _ProcessStat(f[0], int(f[11]) + int(f[12]), int(f[13]) + int(f[14]))


def _read_thread_children(pid: int, thread: int) -> list[int]:
    """Children that one thread has forked; none where it has just ended."""
    return [int(child) for child in _read_kernel_file(f"/proc/{pid}/task/{thread}/children", b"").split()]


def _read_pss_kib(pid: int) -> int:
    path = f"/proc/{pid}/smaps_rollup"
    text = _read_kernel_file(path, b"")
    for line in text.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1])
    if not text and Path(f"/proc/{pid}").exists() and not Path(path).exists():
        raise HostReadingError("this kernel has no smaps_rollup: proportional memory is not told")
    return 0  # ended meanwhile, or on its way out: it has no memory map left


def _read_kernel_file(path: str, absent: bytes | None = None) -> bytes:
    """The whole file. `absent`: of a file of some process, what it holds once that process, or thread, has just ended.
    Raises HostReadingError with the system's reason."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            # A short read does not mean the end: /proc gives page by page.
            while part := os.read(fd, 1 << 16):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(fd)
    except OSError as error:
        if absent is not None and isinstance(error, FileNotFoundError | ProcessLookupError):
            return absent
        raise HostReadingError(f"{path}: {error.strerror}") from error


_HAS_CHILDREN_FILES = Path(f"/proc/self/task/{os.getpid()}/children").exists()
