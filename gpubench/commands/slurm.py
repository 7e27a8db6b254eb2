"""What `gpubench slurm` does: makes the batch script of a sweep, prints it or hands it to sbatch."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.node.cluster import Cluster
from gpubench.node.environment import Gpu, Machine, cpu_name
from gpubench.node.node import Node
from gpubench.node.parts.process import PartCommand
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan.batch_advice import Remaining, advice, plan_line
from gpubench.plan.batch_script import CPUS_BY_GPU, BatchScript, cpus_of, gpus_of, limit, option_name
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.estimate import Estimate
from gpubench.plan.experiment import Experiment
from gpubench.plan.skips import NEEDS
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.results.home import results_folder
from gpubench.results.store import Results
from gpubench.run.sweep_state import SweepState
from gpubench.run.unit_runner import UnitRunner

MOST_GPUS = 16
"""Of a node, where the options do not tell how many it has."""
ASK_LIMIT_S = 60.0


def slurm(
    path: Path | None,
    options: Options,
    sweep_words: Sequence[str],
    out: Path | None,
    *,
    tasks: int,
    nodes: int,
    cpus_per_task: int | None,
    time: str | None,
    sbatch_options: Sequence[str],
    command_line: str,
    submit: bool,
) -> int:
    """`sweep_words`: the sweep's own options, as typed; `options`: the same, read. Returns the exit code.

    `cpus_per_task`: None: so many for each GPU. `time`: None: by the plan's estimate. `sbatch_options`: those that are
    passed on. `command_line`: the one that asks for this script.
    """
    gpus = gpus_of(sbatch_options, nodes)
    wants_gpus = gpus is None or gpus > 0
    if cpus_per_task is not None and CPUS_BY_GPU in map(option_name, sbatch_options):
        raise UsageError(f"--cpus-per-task and {CPUS_BY_GPU}: SLURM takes one of them")
    experiment = read_experiment(path, options, has_gpu=wants_gpus)
    folder = results_folder(out, experiment)
    script = BatchScript(
        name=experiment.name,
        gpubench=_find_gpubench(),
        command=["sweep", *([str(path.absolute())] if path else []), *sweep_words],
        results=str(folder.absolute()),
        home=str(Path.cwd()),
        command_line=command_line,
        tasks=tasks,
        nodes=max(nodes, experiment.most_nodes),
        trial_nodes=experiment.most_nodes,
        cpus_per_task=cpus_per_task or cpus_of(sbatch_options, gpus),
        time=time or "0",
        options=sbatch_options,
    )
    try:
        work = _find_remaining(experiment, folder, script, MOST_GPUS if gpus is None else gpus)
    except GpubenchError as why:
        # Who has said how long it may take need not be where its images are.
        if time is None:
            raise
        _print_note(f"the plan can't be made here, so nobody knows whether the nodes can: {why}")
    else:
        if time is None:
            script = replace(script, time=limit([unit.seconds for unit in work.units], tasks))
        _print_note(plan_line(work, script, is_by_plan=time is None))
        for line in advice(work, script):
            _print_note(line)
    if not _is_writable(folder.absolute()):
        _print_note(
            f"{folder.absolute()} can't be written from here; it must be from the nodes (--out names another)"
        )
    try:
        script.text().encode()
    except UnicodeEncodeError:
        raise UsageError(
            "the name of a file or folder is no UTF-8, which a batch script must be: rename it, or name another one"
        ) from None
    if submit:
        _submit(script)
    else:
        sys.stdout.write(script.text())
        table = shlex.join(["sbatch", *script.table_options("JOB")])
        _print_note(f"once it is submitted as JOB, this writes the table at its end:\n{table}")
    return 0


def _is_writable(folder: Path) -> bool:
    """Whether a folder can be written, or made where it is not there yet."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return os.access(existing, os.W_OK | os.X_OK)


def _find_gpubench() -> list[str]:
    """How this very gpubench is started on another node, whatever is on the path there."""
    program = Path(sys.argv[0])
    path = shutil.which(sys.argv[0]) if program.name == "gpubench" else None
    return [str(Path(path).absolute())] if path else [sys.executable, "-m", "gpubench"]


def _find_remaining(experiment: Experiment, folder: Path, job: BatchScript, gpu_count: int) -> Remaining:
    """What the plan has left for jobs of that size. `gpu_count`: of a node, as far as they are told."""
    gpus = tuple(Gpu(index=n, uuid=f"GPU-{n}", name="GPU", memory_mib=0) for n in range(gpu_count))
    machine = Machine(
        host="a node",
        gpus=gpus,
        driver=None,
        cpu_name=cpu_name(),
        cpu_ids=tuple(range(job.cpus_per_task)),
        cpu_count=job.cpus_per_task,
    )
    sources = Disk(experiment.bad_images)
    plan = make_plan(experiment, machine, sources, None)
    node = Node(nvml=NoNvml("the nodes of the job are not here"), machine=machine)
    # Of its further nodes only their number matters: nothing is started on them.
    nodes = Cluster(
        first=node, commands=[PartCommand(name="a node", before=())] * (job.nodes - 1), address=""
    )
    work = SweepState(plan=plan, runner=UnitRunner.build(plan, node, Results(folder), sources, nodes))
    if folder.is_dir():
        work.load(lambda _: None)
    planned = work.pending()
    to_run = [item for item in planned if item.state == "run"]
    single = work.estimates([item.unit for item in to_run])
    rounds = experiment.rounds
    return Remaining(
        units=work.estimates_of_all(planned),
        longest=max(single, key=lambda estimate: estimate.seconds, default=Estimate(0.0, True)),
        measurements=None
        if rounds.is_open_ended
        else sum(len(item.rounds) or rounds.most for item in to_run),
        skipped=[
            item.why.replace(f"{machine.shows} ", "such a job has ")
            for item in planned
            if item.state == "skip" and item.why.startswith(NEEDS)
        ],
    )


def _submit(script: BatchScript) -> None:
    """Submits the script, and the job that writes the table behind it; says their numbers."""
    job = _sbatch([], script.text())
    print(job)
    what = "array" if script.is_array else "job"
    _print_note(
        f"submitted as {what} {job}; gpubench status {shlex.quote(script.results)} tells how far it is"
    )
    table = _sbatch(script.table_options(job), None)
    _print_note(f"job {table} writes the table once it has ended: {script.job_name}-table-{table}.out")


def _print_note(text: str) -> None:
    print(f"gpubench: {text}", file=sys.stderr)


def _sbatch(options: Sequence[str], script: str | None) -> str:
    """The id that sbatch gives a job. Raises UnusableError, in its words."""
    try:
        done = subprocess.run(
            ["sbatch", "--parsable", *options],
            input=script or "",
            capture_output=True,
            text=True,
            timeout=ASK_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableError("no sbatch on this machine: submit from a login node of the cluster") from None
    except subprocess.TimeoutExpired:
        late = f"sbatch did not answer within {ASK_LIMIT_S:g} s; squeue tells whether it took the job"
        raise UnusableError(late) from None
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line] or [
            f"exit code {done.returncode}"
        ]
        raise UnusableError(f"sbatch refused it: {'; '.join(lines)}")
    return done.stdout.strip().split(";")[0]
