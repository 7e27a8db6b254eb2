"""How busy others keep the CPUs that this process may use, while it does nothing itself."""

from __future__ import annotations

import time

from gpubench.node.environment import Machine
from gpubench.node.watch import host
from gpubench.schema.missing import Unmeasured


def measure_busy_pct(machine: Machine, look_s: float) -> float:
    """Per cent of the usable CPUs that were busy in the next `look_s` seconds, in which the caller sleeps.

    Where a number of CPUs may be used and none in particular, work counts that the other CPUs have no room for.
    Raises Unmeasured where the kernel does not tell.
    """
    began, before = time.monotonic(), _read_busy_counters(machine)
    time.sleep(look_s)
    after, wall = _read_busy_counters(machine), time.monotonic() - began
    taken = max(new - old - wall * spare for (old, spare), (new, _) in zip(before, after, strict=True))
    return min(100.0, max(0.0, 100 * taken / (wall * machine.cpu_count)))


def has_fewer_cpus_than_affinity(machine: Machine) -> bool:
    """Whether it may use fewer CPUs than it is bound to: a number of them, none in particular."""
    return machine.cpu_count < len(machine.cpu_ids)


def _read_busy_counters(machine: Machine) -> list[tuple[float, int]]:
    """Readings of the CPUs that may be run on; under a quota also of the cgroup, whose members share it.

    Each is the busy seconds since some moment, and how many CPUs they are counted over beyond those that may be used.
    """
    spare = len(machine.cpu_ids) - machine.cpu_count
    if machine.cpu_usage_file is None or not has_fewer_cpus_than_affinity(machine):
        return [(host.read_cpu_time(machine.cpu_ids).busy, spare)]
    cgroup = host.read_cgroup_cpu_s(machine.cpu_usage_file), 0
    try:
        return [cgroup, (host.read_cpu_time(machine.cpu_ids).busy, spare)]
    except Unmeasured:  # a sandboxed kernel: the cgroup tells at least of those inside it
        return [cgroup]
