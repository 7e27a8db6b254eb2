"""How busy others keep the CPUs that this process may use, while it does nothing itself."""

from __future__ import annotations

import time
from dataclasses import dataclass

from gpubench.node.environment import Machine
from gpubench.node.watch import host
from gpubench.schema.missing import Unmeasured


def busy_pct(machine: Machine, look_s: float) -> float:
    """Per cent of the usable CPUs that were busy in the next `look_s` seconds, in which the caller sleeps.

    Where a number of CPUs may be used and none in particular, work counts that the other CPUs have no room for.
    Raises Unmeasured where the kernel does not tell.
    """
    began, before = time.monotonic(), _readings(machine)
    time.sleep(look_s)
    after, wall = _readings(machine), time.monotonic() - began
    taken = max(new.busy_s - old.busy_s - wall * new.spare for old, new in zip(before, after, strict=True))
    return min(100.0, max(0.0, 100 * taken / (wall * machine.cpu_count)))


def has_spare_cpus(machine: Machine) -> bool:
    """Whether it may use fewer CPUs than it is bound to: a number of them, none in particular."""
    return machine.cpu_count < len(machine.cpu_ids)


@dataclass(frozen=True, slots=True)
class _Reading:
    """CPU time as the watcher counts it."""

    busy_s: float
    """Seconds since some moment, of all that is counted."""
    spare: float
    """CPUs that it is counted over beyond those that may be used."""


def _readings(machine: Machine) -> list[_Reading]:
    """Readings of the CPUs that may be run on; under a quota also of the cgroup, whose members share it."""
    spare = len(machine.cpu_ids) - machine.cpu_count
    if machine.cpu_usage_file is None or not has_spare_cpus(machine):
        return [_Reading(host.cpu_time(machine.cpu_ids).busy, spare)]
    cgroup = _Reading(host.cgroup_cpu_s(machine.cpu_usage_file), 0)
    try:
        return [cgroup, _Reading(host.cpu_time(machine.cpu_ids).busy, spare)]
    except Unmeasured:  # a sandboxed kernel: the cgroup tells at least of those inside it
        return [cgroup]
