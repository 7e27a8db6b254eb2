"""SLURM: inside a job or not, and whether its CPUs and GPUs came along."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult
from gpubench.node.allocation import allocation

GROUP = "SLURM"


def job(context: CheckContext) -> Iterable[CheckResult]:
    """The allocation, and what a step is known to lose of it."""
    environ = context.environ
    if "SLURM_JOB_ID" not in environ:
        here = "srun is installed" if shutil.which("srun", path=environ.get("PATH")) else "srun is not here"
        yield CheckResult(group=GROUP, name="job", verdict="ok", found=f"not inside one ({here})")
        return
    step = f", step {environ['SLURM_STEP_ID']}" if "SLURM_STEP_ID" in environ else ""
    node = environ.get("SLURMD_NODENAME", "this node")
    yield CheckResult(
        group=GROUP, name="job", verdict="ok", found=f"{environ['SLURM_JOB_ID']}{step} on {node}"
    )
    yield from _cpus(context)
    yield from _gpus(context)


def _cpus(context: CheckContext) -> Iterable[CheckResult]:
    environ, cpus = context.environ, context.machine.cpu_count
    asked = environ.get("SLURM_CPUS_PER_TASK", "")
    if asked.isdigit() and int(asked) <= len(context.machine.cpu_ids):
        yield CheckResult(
            group=GROUP, name="CPUs of the task", verdict="ok", found=f"{asked} asked for, {cpus} got"
        )
    elif asked.isdigit():
        yield CheckResult(
            group=GROUP,
            name="CPUs of the task",
            verdict="doubt",
            found=f"{asked} asked for, but affinity leaves {len(context.machine.cpu_ids)}: the loaders will starve",
            remedy=f"srun --cpus-per-task={asked}: since 22.05 srun does not take it over from sbatch",
        )
    elif "SLURM_STEP_ID" in environ:
        yield CheckResult(
            group=GROUP,
            name="CPUs of the task",
            verdict="doubt",
            found=f"SLURM_CPUS_PER_TASK is not set in this step: {cpus} may be used, perhaps fewer than allotted",
            remedy="srun --cpus-per-task=N: since 22.05 srun does not take it over from sbatch",
        )
    else:
        yield CheckResult(
            group=GROUP, name="CPUs of the task", verdict="ok", found=f"{cpus} (none asked for by number)"
        )


def _gpus(context: CheckContext) -> Iterable[CheckResult]:
    environ = context.environ
    job = allocation(environ)
    told = job.gpus if job else ""
    seen = len(context.machine.gpus)
    if told and not seen:
        yield CheckResult(
            group=GROUP,
            name="GPUs of the job",
            verdict="doubt",
            found=f"{told}, but none is seen: a sweep does not start unless it is given --device cpu",
            remedy="see GPUs below; does the driver list them on this node (nvidia-smi)? Else leave the node out "
            "(--exclude) and tell its administrator",
        )
    elif told or not seen:
        yield CheckResult(
            group=GROUP,
            name="GPUs of the job",
            verdict="ok",
            found=f"{told or 'none asked for'}; {seen} seen",
        )
    elif "CUDA_VISIBLE_DEVICES" not in environ:
        yield CheckResult(
            group=GROUP,
            name="GPUs of the job",
            verdict="doubt",
            found=f"the job asked for none, yet all {seen} of the node are seen: they may be another job's",
            remedy="ask for them: --gpus=N or --gres=gpu:N",
        )
