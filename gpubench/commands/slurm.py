"""What `gpubench slurm` does: makes the batch script of a sweep, prints it or hands it to sbatch."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.basics.words import many
from gpubench.node.environment import Gpu, Machine, cpu_name
from gpubench.node.node import Node
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan.batch_script import BatchScript, limit, name_of
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.estimate import words
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import Options
from gpubench.plan.sources import Disk
from gpubench.results.home import results_folder
from gpubench.results.store import Results
from gpubench.sweep.bench import Bench
from gpubench.sweep.sweep import Sweep

GPU_OPTIONS = ("--gres", "--gpus", "-G", "--gpus-per-task", "--gpus-per-node")
MOST_GPUS = 16
ASK_LIMIT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Requested:
    """What is asked for of SLURM."""

    tasks: int
    nodes: int
    cpus_per_task: int
    time: str | None
    """None: by the plan's estimate."""
    options: Sequence[str]
    """Those of sbatch that are passed on."""
    asked: str
    submit: bool


def slurm(
    path: Path | None, options: Options, sweep_words: Sequence[str], out: Path | None, job: Requested
) -> int:
    """`sweep_words`: the sweep's own options, as typed; `options`: the same, read. Returns the exit code."""
    wants_gpus = any(name_of(one) in GPU_OPTIONS for one in job.options)
    experiment = read_experiment(path, options, has_gpu=wants_gpus)
    folder = results_folder(out, experiment)
    script = BatchScript(
        name=experiment.name,
        gpubench=_gpubench(),
        command=["sweep", *([str(path.absolute())] if path else []), *sweep_words],
        results=str(folder.absolute()),
        asked=job.asked,
        tasks=job.tasks,
        nodes=max(job.nodes, experiment.most_nodes),
        trial_nodes=experiment.most_nodes,
        cpus_per_task=job.cpus_per_task,
        time=job.time or "0",
        options=job.options,
    )
    if job.time is None:
        time, why = _estimated(experiment, folder, job, wants_gpus=wants_gpus)
        script = replace(script, time=time)
        _tell(why)
    if job.submit:
        _submit(script)
    else:
        sys.stdout.write(script.text())
        table = shlex.join(["sbatch", *script.table_options("JOB")])
        _tell(f"once it is submitted as JOB, this writes the table at its end:\n{table}")
    return 0


def _gpubench() -> list[str]:
    """How this very gpubench is started on another node, whatever is on the path there."""
    own = Path(sys.argv[0])
    found = shutil.which(sys.argv[0]) if own.name == "gpubench" else None
    return [str(Path(found).absolute())] if found else [sys.executable, "-m", "gpubench"]


def _estimated(experiment: Experiment, folder: Path, job: Requested, *, wants_gpus: bool) -> tuple[str, str]:
    """The time limit by the plan's estimate, and how it was found."""
    # How many GPUs a node has is the cluster's affair: as many as any trial may ask for.
    gpus = tuple(
        Gpu(index=n, uuid=f"GPU-{n}", name="GPU", memory_mib=0) for n in range(MOST_GPUS if wants_gpus else 0)
    )
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
    work = Sweep(plan=plan, bench=Bench.of(plan, node, Results(folder), sources))
    if folder.is_dir():
        work.load(lambda _: None)
    planned = work.pending()
    guesses = work.estimates_of_all(planned)
    time = limit([one.seconds for one in guesses], job.tasks)
    total = sum(one.seconds for one in guesses)
    about = "about" if all(one.known for one in guesses) else "roughly"
    return time, (
        f"{many(len(guesses), 'unit')} to run, {about} {words(total)} in all: --time {time} for each of "
        f"{many(job.tasks, 'task')}; what is not done by then goes on after a requeue"
    )


def _submit(script: BatchScript) -> None:
    """Submits the script, and the job that writes the table behind it; says their numbers."""
    job = _sbatch([], script.text())
    print(job)
    what = f"an array of {script.tasks} tasks" if script.tasks > 1 else "a job"
    _tell(f"submitted as {job}, {what}; gpubench status {script.results} tells how far it is")
    table = _sbatch(script.table_options(job), None)
    _tell(f"job {table} writes the table once it has ended: {script.name}-table-{table}.out")


def _tell(text: str) -> None:
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
        said = [line for line in done.stderr.strip().splitlines() if line] or [f"exit code {done.returncode}"]
        raise UnusableError(f"sbatch refused it: {'; '.join(said)}")
    return done.stdout.strip().split(";")[0]
