"""How many processes the kernel has killed for memory: of this cgroup, where it is told, else of this host."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

MEMBERSHIP = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")
VMSTAT = Path("/proc/vmstat")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryKills:
    """A count that only goes up."""

    file: Path
    where: str
    """`this cgroup` or `this host`."""

    def count(self) -> int:
        """So many by now; 0 where the file has gone."""
        return _oom_kills(self.file) or 0


def memory_kills(
    membership: Path = MEMBERSHIP, mount: Path = MOUNT, vmstat: Path = VMSTAT
) -> MemoryKills | None:
    """The nearest count there is; None: the kernel tells of none.

    A process that is killed counts in the cgroup that it belongs to, also where a limit further up was met.
    """
    for file in _cgroup_files(membership, mount):
        if _oom_kills(file) is not None:
            return MemoryKills(file=file, where="this cgroup")
    return MemoryKills(file=vmstat, where="this host") if _oom_kills(vmstat) is not None else None


def _cgroup_files(membership: Path, mount: Path) -> Iterator[Path]:
    """The files that may tell it, nearest first. Inside a container the own cgroup is usually mounted as the root."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return  # a kernel without cgroups
    for line in lines:
        _, controllers, path = line.split(":", 2)
        folders = [PurePosixPath(path), *PurePosixPath(path).parents]
        relative = [folder.relative_to("/") for folder in folders if ".." not in folder.parts]
        if controllers == "":
            yield from (base / f / "memory.events" for f in relative for base in (mount, mount / "unified"))
        elif "memory" in controllers.split(","):
            yield from (mount / controllers / f / "memory.oom_control" for f in relative)


def _oom_kills(file: Path) -> int | None:
    try:
        words = [line.split() for line in file.read_text().splitlines()]
    except OSError:
        return None
    return next((int(word[1]) for word in words if len(word) == 2 and word[0] == "oom_kill"), None)
