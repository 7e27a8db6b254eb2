"""Checks of the host: versions, CPUs and memory, the SLURM job, limits of the system, folders."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

from gpubench.basics.errors import GpubenchError
from gpubench.basics.words import format_count
from gpubench.datasets import locate
from gpubench.datasets.built import format_bytes
from gpubench.datasets.marker import make_data_home_path
from gpubench.doctor.context import CheckContext, CheckResult, make_doubt, make_failure, make_ok
from gpubench.node import environment
from gpubench.node.watch.host import ProcessTree
from gpubench.node.watch.host_load import measure_busy_pct
from gpubench.plan.resolve import DEFAULT_SIZE
from gpubench.plan.shares import count_default_workers
from gpubench.schema import catalog
from gpubench.schema.doubts import OTHER_LOAD_PCT
from gpubench.schema.missing import Unmeasured
from gpubench.schema.trial_fields import DEFAULTS

LOOK_S = 0.5
SHARED = Path("/dev/shm")
PREFETCH, USUAL_BATCH = 2, 64
FEW_FILES = 4096


def check_versions(context: CheckContext) -> Iterable[CheckResult]:
    """What is installed, by its metadata: whether it works is tried in the last group."""
    facts = environment.collect_environment_facts(context.machine)
    yield make_ok("gpubench", f"{facts['gpubench'] or 'not installed'}")
    yield make_ok("Python", f"{facts['python']}, {sys.executable}")
    for package in ("torch", "torchvision"):
        if version := facts[package]:
            yield make_ok(package, version)
        else:
            yield make_failure(package, "not installed", f"pip install {package}, beside gpubench")
    yield make_ok("system", f"{facts['os']}, Linux {platform.release()}")


def check_cpus(context: CheckContext) -> Iterable[CheckResult]:
    """How many CPUs a trial gets, how busy others keep them, and whether its own processes can be seen."""
    machine = context.machine
    found = f"{machine.cpu_count} of {os.cpu_count()} may be used ({machine.cpu_name})"
    if machine.cpu_count > 1:
        yield make_ok("CPUs", found)
    else:
        remedy = "give it more: srun --cpus-per-task=8, docker run --cpus=8, taskset -c 0-7"
        yield make_doubt("CPUs", f"{found}: training and loading share one CPU", remedy)
    try:
        busy = measure_busy_pct(machine, LOOK_S)
    except Unmeasured as reason:
        yield make_failure(
            "CPU time", f"{reason}: cpu_util_pct stays empty", "run it where /proc is the kernel's own"
        )
    else:
        load = f"{busy:.0f} % of {format_count(machine.cpu_count, 'CPU')} busy just now"
        if busy < OTHER_LOAD_PCT:
            yield make_ok("other load", load)
        else:
            remedy = "see top, and wait or move; or bind trials to free CPUs (taskset -c, or SLURM)"
            yield make_doubt("other load", f"{load}: it slows the loaders", remedy)
    try:
        mib = ProcessTree(os.getpid()).read_pss_mib()
        yield make_ok("host memory", f"shared pages once, by smaps_rollup (this process: {mib:.0f} MiB)")
    except Unmeasured as reason:
        remedy = "Linux 4.14 or later; a container must let its processes read /proc/PID/smaps_rollup"
        yield make_failure("host memory", f"{reason}: host_mem_mib stays empty", remedy)


def check_slurm_job(context: CheckContext) -> Iterable[CheckResult]:
    """The SLURM job, and whether its CPUs and GPUs came along."""
    environ, job, seen = context.environ, context.machine.allocation, len(context.machine.gpus)
    if job is None:
        yield make_ok("job", "not inside one")
        return
    yield make_ok("job", f"{job.job_id} on {job.node or 'this node'}")
    task_cpus, bound = environ.get("SLURM_CPUS_PER_TASK", ""), len(context.machine.cpu_ids)
    is_lost = "SLURM_STEP_ID" in environ and "SLURM_CPUS_PER_GPU" not in environ and not task_cpus
    if is_lost or (task_cpus.isdigit() and int(task_cpus) > bound):
        found = f"{bound} may be used, perhaps fewer than allotted ({task_cpus or 'no number'} asked for)"
        remedy = (
            f"srun --cpus-per-task={task_cpus or 'N'}: since 22.05 srun does not take it over from sbatch"
        )
        yield make_doubt("CPUs of the task", found, remedy)
    if job.gpus and not seen:
        found = f"{job.gpus}, but none is seen: a sweep does not start unless it is given --device cpu"
        remedy = "see GPUs below; else leave the node out (--exclude) and tell its administrator"
        yield make_doubt("GPUs of the job", found, remedy)
    elif seen and not job.gpus and "CUDA_VISIBLE_DEVICES" not in environ:
        found = f"the job asked for none, yet all {seen} of the node are seen: they may be another job's"
        yield make_doubt("GPUs of the job", found, "ask for them: --gpus=N or --gres=gpu:N")


def check_shared_memory_and_files(context: CheckContext) -> Iterable[CheckResult]:
    """Whether the loaders' batches fit into shared memory, and how many files may be open."""
    device = "cuda" if context.machine.gpus else "cpu"
    workers = count_default_workers(context.machine.cpu_count, 1, device)
    needed = USUAL_BATCH * 3 * DEFAULT_SIZE * DEFAULT_SIZE * workers * PREFETCH
    free = shutil.disk_usage(SHARED).free if SHARED.is_dir() else 0
    found = (
        f"{format_bytes(free)} free in {SHARED}; batches of {USUAL_BATCH} images take {format_bytes(needed)}"
    )
    if free >= needed:
        yield make_ok("shared memory", found)
    else:
        remedy = "docker run --shm-size=16g (or --ipc=host); sudo mount -o remount,size=50% /dev/shm"
        yield make_failure(
            "shared memory", f"{found}, and a worker that finds no room dies (bus error)", remedy
        )
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= FEW_FILES:
        yield make_ok("open files", "enough")
    else:
        remedy = "ulimit -n 65536; in a container docker run --ulimit nofile=65536"
        yield make_doubt("open files", f"{soft:,} (ulimit -n): many loader workers can use them up", remedy)


def check_folders(context: CheckContext) -> Iterable[CheckResult]:
    """Where images and results go, and whether one may write there. Makes nothing."""
    fixed = context.experiment.fixed
    data, variant = (str(fixed.get(name, DEFAULTS[name])) for name in ("data", "variant"))
    files = catalog.VARIANTS[variant].files
    try:
        steps = locate.plan_making_steps(data, files, int(str(fixed.get("input_size", DEFAULT_SIZE))))
        place = make_data_home_path()
    except GpubenchError as error:
        yield make_failure("images", str(error), "as it says", forbids=True)
    else:
        if not steps:
            where = place if files != "none" else f"none are read: a resident batch ({variant})"
            yield make_ok("images", f"nothing to make: {where}")
        elif problem := describe_write_problem(place):
            remedy = "set GPUBENCH_DATA to a folder with room"
            yield make_failure("images", f"not made yet, and {place} {problem}", remedy, forbids=True)
        else:
            yield make_ok("images", f"the first sweep makes them in {place}: {'; '.join(map(str, steps))}")
    place = Path(context.environ.get("GPUBENCH_OUT", "results")).absolute()
    if problem := describe_write_problem(place):
        remedy = "--out FOLDER, or set GPUBENCH_OUT to a folder that you may write into"
        yield make_failure("results", f"{place} {problem}", remedy, forbids=True)
    else:
        yield make_ok("results", f"go to {place}")


def describe_write_problem(place: Path) -> str:
    """Why nothing can be written at `place`, which need not be there yet; empty: it can."""
    above = next(folder for folder in (place, *place.parents) if folder.exists())
    if not above.is_dir():
        return f"can't be a folder: {above} is a file"
    return "" if os.access(above, os.W_OK | os.X_OK) else f"can't be written ({above}: no permission)"
