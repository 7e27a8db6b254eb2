"""How busy others keep the CPUs that this process may use, while it does nothing itself."""

from __future__ import annotations

import time

from gpubench.environment import Machine
from gpubench.monitor import host
from gpubench.monitor.missing import Unmeasured

BUSY_PCT = 10.0
"""Share of the usable CPUs that others may take before it is worth a word."""


def busy_pct(machine: Machine, look_s: float) -> float:
    """Per cent of the usable CPUs that were busy in the next `look_s` seconds, in which the caller sleeps.

    Raises Unmeasured where the kernel does not tell.
    """
    began, before = time.monotonic(), _busy_s(machine)
    time.sleep(look_s)
    after, wall = _busy_s(machine), time.monotonic() - began
    return min(100.0, 100 * (after - before) / (wall * machine.cpu_count))


def unbound(machine: Machine) -> bool:
    """Whether it may use fewer CPUs than it is bound to: a number of them, none in particular."""
    return machine.cpu_count < len(machine.cpu_ids)


def _busy_s(machine: Machine) -> float:
    """CPU seconds as the watcher counts them."""
    if not unbound(machine):
        return host.cpu_time(machine.cpu_ids).busy
    if machine.cpu_usage_file is None:
        raise Unmeasured(
            f"{machine.cpu_count} of {len(machine.cpu_ids)} CPUs may be used, but none in particular"
        )
    return host.cgroup_cpu_s(machine.cpu_usage_file)
