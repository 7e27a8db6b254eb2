"""What `gpubench slurm` does: makes the batch script of a sweep, prints it or hands it to sbatch."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.basics.words import format_count
from gpubench.commands.folders import print_warning
from gpubench.node.cluster import Cluster
from gpubench.node.environment import Gpu, Machine, read_cpu_name
from gpubench.node.node import Node
from gpubench.node.parts.process import PartCommand
from gpubench.node.watch.nvml import NoNvml
from gpubench.plan.batch_script import (
    CPUS_BY_GPU,
    CPUS_OF_GPU,
    BatchScript,
    count_requested_gpus_per_node,
    format_time_limit_for_units,
    split_sbatch_option,
)
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.estimate import TimeEstimate, format_seconds
from gpubench.plan.experiment import Experiment
from gpubench.plan.skips import NEEDS
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.home import choose_results_folder
from gpubench.results.store import Results
from gpubench.run.sweep_state import SweepState
from gpubench.run.unit_runner import UnitRunner

ASK_LIMIT_S = 60.0


def slurm(
    path: Path | None,
    options: ExperimentOptions,
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
    gpus = count_requested_gpus_per_node(sbatch_options, nodes)
    is_by_gpu = any(split_sbatch_option(option)[0] == CPUS_BY_GPU for option in sbatch_options)
    if cpus_per_task is not None and is_by_gpu:
        raise UsageError(f"--cpus-per-task and {CPUS_BY_GPU}: SLURM takes one of them")
    cpus = cpus_per_task or CPUS_OF_GPU * max(1, gpus)
    experiment = read_experiment(path, options, has_gpu=gpus > 0)
    folder = choose_results_folder(out, experiment).absolute()
    file = [str(path.absolute())] if path else []
    at = sweep_words.index("--") if "--" in sweep_words else len(sweep_words)
    for word in (str(Path.cwd()), *file, *sweep_words, str(folder)):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(f"{word} is no UTF-8 text, as a job script is: rename it") from None
    script = BatchScript(
        name=experiment.name,
        command=[
            *(*_make_gpubench_command(), "sweep", *file, *sweep_words[:at], "--out", str(folder), "--yes"),
            *sweep_words[at:],
        ],
        home=str(Path.cwd()),
        command_line=command_line,
        tasks=tasks,
        nodes=max(nodes, experiment.most_nodes),
        trial_nodes=experiment.most_nodes,
        cpus_per_task=None if is_by_gpu else cpus,
        time=time or "0",
        options=sbatch_options,
    )
    try:
        units, skipped = _estimate_remaining_work(
            experiment, folder, _make_expected_machine(gpus, cpus), script.nodes
        )
    except GpubenchError as why:
        # Who has said how long it may take need not be where its images are.
        if time is None:
            raise
        print_warning(f"the plan can't be made here, so nobody knows whether the nodes can: {why}")
    else:
        if time is None:
            limit = format_time_limit_for_units([unit.seconds for unit in units], tasks)
            script = replace(script, time=limit)
        total = format_seconds(sum(unit.seconds for unit in units))
        about = "about" if all(unit.known for unit in units) else "roughly"
        print_warning(
            f"{format_count(len(units), 'unit')} to run, {about} {total} in all; each job has --time {script.time}"
        )
        if skipped:
            print_warning(
                f"{len(skipped)} of the plan would be skipped: {skipped[0]}; --gres=gpu:N and --cpus-per-task N ask "
                "SLURM for more"
            )
    if submit:
        print(job := _submit_script(script.format_script()))
        print_warning(
            f"submitted as job {job}; gpubench status and gpubench table {folder} tell how far it is"
        )
    else:
        sys.stdout.write(script.format_script())
    return 0


def _make_gpubench_command() -> list[str]:
    """How this very gpubench is started on another node, whatever is on the path there."""
    program = Path(sys.argv[0])
    path = shutil.which(sys.argv[0]) if program.name == "gpubench" else None
    return [str(Path(path).absolute())] if path else [sys.executable, "-m", "gpubench"]


def _make_expected_machine(gpus: int, cpus: int) -> Machine:
    """A node of the job, as far as is known before it runs."""
    return Machine(
        host="a node",
        gpus=tuple(Gpu(index=n, uuid=f"GPU-{n}", name="GPU", memory_mib=0) for n in range(gpus)),
        driver=None,
        cpu_name=read_cpu_name(),
        cpu_ids=tuple(range(cpus)),
        cpu_count=cpus,
    )


def _estimate_remaining_work(
    experiment: Experiment, folder: Path, machine: Machine, nodes: int
) -> tuple[list[TimeEstimate], list[str]]:
    """What the plan has left for so many of these nodes, and why each unit is skipped that wants more."""
    sources = DiskSources(experiment.bad_images)
    plan = make_plan(experiment, machine, sources, None)
    node = Node(nvml=NoNvml("the nodes of the job are not here"), machine=machine)
    # Of its further nodes only their number matters: nothing is started on them.
    commands = [PartCommand(name="a node", before=())] * (nodes - 1)
    cluster = Cluster(first=node, commands=commands, address="")
    work = SweepState(plan=plan, runner=UnitRunner.build(plan, node, Results(folder), sources, cluster))
    if folder.is_dir():
        work.load(lambda _: None)
    planned = work.list_planned_of_all_rounds()
    skipped = [item.why for item in planned if item.state == "skip" and item.why.startswith(NEEDS)]
    return work.estimate_time_in_all_rounds(planned), [
        why.replace(machine.sentence_start, "such a job has") for why in skipped
    ]


def _submit_script(script: str) -> str:
    """The id that sbatch gives a job. Raises UnusableError, in its words."""
    try:
        done = subprocess.run(
            ["sbatch", "--parsable"],
            input=script,
            capture_output=True,
            text=True,
            timeout=ASK_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        raise UnusableError("no sbatch on this machine: submit from a login node of the cluster") from None
    except subprocess.TimeoutExpired:
        raise UnusableError(
            f"sbatch did not answer within {ASK_LIMIT_S:g} s; squeue tells whether it took the job"
        ) from None
    if done.returncode:
        raise UnusableError(f"sbatch refused it: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout.strip().split(";")[0]
