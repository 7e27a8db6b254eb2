"""CPUs: how many, what limits them, what the kernel tells of them, and who else is on them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from gpubench.basics.words import many
from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult, doubt, no, ok
from gpubench.node.cgroup import cgroup_quota
from gpubench.node.environment import Machine
from gpubench.node.watch import host
from gpubench.node.watch.host_load import busy_pct, has_spare_cpus
from gpubench.schema.doubts import OTHER_LOAD_PCT
from gpubench.schema.missing import Unmeasured

LOOK_S = 0.5


def processors(context: CheckContext) -> Iterable[CheckResult]:
    """How many CPUs a trial gets, and why not more."""
    machine = context.machine
    in_all = os.cpu_count() or len(machine.cpu_ids)
    description = (
        f"{machine.cpu_count} of {in_all} may be used ({machine.cpu_name}){_limited_by(context, in_all)}"
    )
    if machine.cpu_count == 1:
        yield doubt(
            "CPUs",
            f"{description}: training and loading share one CPU",
            "give it more: srun --cpus-per-task=8, docker run --cpus=8, taskset -c 0-7",
        )
    else:
        yield ok("CPUs", description)


def _limited_by(context: CheckContext, in_all: int) -> str:
    limits = []
    if len(context.machine.cpu_ids) < in_all:
        limits.append(f"affinity leaves {len(context.machine.cpu_ids)}")
    if (slurm := context.environ.get("SLURM_CPUS_PER_TASK", "")).isdigit():
        limits.append(f"SLURM_CPUS_PER_TASK is {slurm}")
    if (quota := cgroup_quota()) is not None:
        limits.append(f"a cgroup's quota allows {quota.cpus:g}")
    return f"; {', '.join(limits)}" if limits else ""


def cpu_time(context: CheckContext) -> Iterable[CheckResult]:
    """Whether the kernel tells how busy these CPUs are, and how busy others keep them just now."""
    machine = context.machine
    try:
        busy = busy_pct(machine, LOOK_S)
    except Unmeasured as reason:
        lost = "other load goes unnoticed" if has_spare_cpus(machine) else "cpu_util_pct stays empty"
        yield no("CPU time", f"{reason}: {lost}", "run it where /proc is the kernel's own")
        return
    yield _cpu_util_source(machine)
    share = (
        f"{busy:.0f} % of {many(machine.cpu_count, 'CPU')} taken by work that the others have no room for"
        if has_spare_cpus(machine)
        else f"{busy:.0f} % of them busy"
    )
    load = f"{share} just now, load average {os.getloadavg()[0]:.1f}"
    if busy >= OTHER_LOAD_PCT:
        yield doubt(
            "other load",
            f"{load}: it slows the loaders{'' if has_spare_cpus(machine) else ' and counts in cpu_util_pct'}",
            "see top, and wait or move; or bind trials to free CPUs (taskset -c, or SLURM)",
        )
    else:
        yield ok("other load", load)


def _cpu_util_source(machine: Machine) -> CheckResult:
    """What cpu_util_pct is of."""
    if not has_spare_cpus(machine):
        description = "/proc/stat over the CPUs that may be used"
    elif machine.cpu_usage_file is not None:
        description = "the cgroup's CPU time over its quota"
    else:
        in_all = len(machine.cpu_ids)
        return doubt(
            "CPU time",
            f"{machine.cpu_count} of {in_all} CPUs may be used, but none in particular: cpu_util_pct is the "
            f"trial's own use over {many(machine.cpu_count, 'CPU')}, and other load is judged by all {in_all}",
            "srun --cpu-bind=cores, or taskset -c, binds it to CPUs of its own",
        )
    return ok("CPU time", description)


def process_tree(_: CheckContext) -> Iterable[CheckResult]:
    """Whether a trial's processes, their CPU time and their memory can be read."""
    pid = os.getpid()
    listed = Path(f"/proc/self/task/{pid}/children").exists()
    yield CheckResult(
        name="process tree",
        verdict="ok" if listed else "doubt",
        found="by /proc's children files"
        if listed
        else "all of /proc is read each second: it costs CPU time",
        remedy="" if listed else "a kernel with CONFIG_PROC_CHILDREN",
    )
    try:
        mib = host.ProcessTree(pid).pss_mib()
    except Unmeasured as reason:
        yield no(
            "host memory",
            f"{reason}: host_mem_mib stays empty",
            "Linux 4.14 or later; a container must let its processes read /proc/PID/smaps_rollup",
        )
    else:
        yield ok("host memory", f"shared pages once, by smaps_rollup (this process: {mib:.0f} MiB)")
