"""SLURM: inside a job or not, and whether its CPUs and GPUs came along."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult, doubt, ok
from gpubench.node.allocation import allocation


def job(context: CheckContext) -> Iterable[CheckResult]:
    """The allocation, and what a step is known to lose of it."""
    environ = context.environ
    if "SLURM_JOB_ID" not in environ:
        srun = "srun is installed" if shutil.which("srun", path=environ.get("PATH")) else "srun is not here"
        yield ok("job", f"not inside one ({srun})")
        return
    step = f", step {environ['SLURM_STEP_ID']}" if "SLURM_STEP_ID" in environ else ""
    node = environ.get("SLURMD_NODENAME", "this node")
    yield ok("job", f"{environ['SLURM_JOB_ID']}{step} on {node}")
    yield from _cpus(context)
    yield from _gpus(context)


def _cpus(context: CheckContext) -> Iterable[CheckResult]:
    environ, cpus = context.environ, context.machine.cpu_count
    task_cpus = environ.get("SLURM_CPUS_PER_TASK", "")
    if task_cpus.isdigit() and int(task_cpus) <= len(context.machine.cpu_ids):
        yield ok("CPUs of the task", f"{task_cpus} asked for, {cpus} got")
    elif task_cpus.isdigit():
        yield doubt(
            "CPUs of the task",
            f"{task_cpus} asked for, but affinity leaves {len(context.machine.cpu_ids)}: the loaders will starve",
            f"srun --cpus-per-task={task_cpus}: since 22.05 srun does not take it over from sbatch",
        )
    elif "SLURM_STEP_ID" in environ and "SLURM_CPUS_PER_GPU" not in environ:
        yield doubt(
            "CPUs of the task",
            f"SLURM_CPUS_PER_TASK is not set in this step: {cpus} may be used, perhaps fewer than allotted",
            "srun --cpus-per-task=N: since 22.05 srun does not take it over from sbatch",
        )
    else:
        yield ok("CPUs of the task", f"{cpus} (none asked for by number)")


def _gpus(context: CheckContext) -> Iterable[CheckResult]:
    environ = context.environ
    job = allocation(environ)
    granted = job.gpus if job else ""
    seen = len(context.machine.gpus)
    if granted and not seen:
        yield doubt(
            "GPUs of the job",
            f"{granted}, but none is seen: a sweep does not start unless it is given --device cpu",
            "see GPUs below; does the driver list them on this node (nvidia-smi)? Else leave the node out "
            "(--exclude) and tell its administrator",
        )
    elif granted or not seen:
        yield ok("GPUs of the job", f"{granted or 'none asked for'}; {seen} seen")
    elif "CUDA_VISIBLE_DEVICES" not in environ:
        yield doubt(
            "GPUs of the job",
            f"the job asked for none, yet all {seen} of the node are seen: they may be another job's",
            "ask for them: --gpus=N or --gres=gpu:N",
        )
