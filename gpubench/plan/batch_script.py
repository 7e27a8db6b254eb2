"""A sweep as a batch script for SLURM, short enough to be read and changed by hand. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import quote_value

SIGNAL_S = 120
"""How long before its time limit a job is told that it ends: for the unit that runs then, and the tables."""
RESOLUTION_S = 60
"""SLURM may send that signal so much earlier. https://slurm.schedmd.com/sbatch.html#OPT_signal"""
SHARE = 10
"""Of a short job a tenth is kept for that, and no more."""
YEAR_S = 365 * 86400
"""What SLURM takes for the length of a job without a time limit."""
MARGIN = 1.5
"""How much longer than estimated a job may take: its processes start on a node that has nothing in its caches."""
ROUND_UP_S, LEAST_S = 300, 900
GPU_OPTIONS = ("--gres", "--gpus", "-G", "--gpus-per-task", "--gpus-per-node")
"""Options of sbatch that ask for GPUs."""
CPUS_BY_GPU = "--cpus-per-gpu"
"""SLURM refuses a job that says this and `--cpus-per-task`."""
CPUS_OF_GPU = 4
"""CPUs for each GPU of a task where nobody says how many: two GPUs are to be fed as well as one."""
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchScript:
    """What a batch script is made of."""

    name: str
    command: Sequence[str]
    """The sweep, with the program that it is started by on a node."""
    home: str
    """Where the script works, wherever it is submitted from: paths among the sweep's options are of there."""
    command_line: str
    """The command line that the script was made by."""
    tasks: int = 1
    """Jobs of an array, which work through the plan together."""
    nodes: int = 1
    """Of each job. Where no trial goes over several, each node works through the plan like another job."""
    trial_nodes: int = 1
    """Over how many nodes the largest trial goes."""
    cpus_per_task: int | None
    """None: SLURM is told how many each GPU has, which srun takes over by itself."""
    time: str
    """As SLURM writes a time limit."""
    options: Sequence[str] = ()
    """Those of sbatch that were given besides, which beat those before them: `--partition=gpu`."""

    @property
    def signal_s(self) -> int:
        return min(SIGNAL_S, math.ceil(parse_time_limit(self.time) / SHARE))

    def format_script(self) -> str:
        """The script."""
        has_cpus = self.cpus_per_task is not None
        lines = [
            f"--job-name={shlex.quote(self.name)}",
            f"--output=%x-{'%A_%a' if self.tasks > 1 else '%j'}.out",
            f"--chdir={shlex.quote(self.home)}",
            *([f"--array=1-{self.tasks}"] if self.tasks > 1 else []),
            f"--nodes={self.nodes}",
            "--ntasks-per-node=1",
            *([f"--cpus-per-task={self.cpus_per_task}"] if has_cpus else []),
            f"--time={self.time}",
            "--requeue",
            "--open-mode=append",
            f"--signal=USR1@{self.signal_s}",
            *self.options,
        ]
        # A trial over several nodes is started once: the sweep starts its part on the others by itself.
        once = "--nodes=1 --ntasks=1 " if self.trial_nodes > 1 else ""
        cpus = '--cpus-per-task="$SLURM_CPUS_PER_TASK" ' if has_cpus else ""
        options = "".join(f"#SBATCH {line}\n" for line in lines)
        # The id of an array's job alone may stand for all of its tasks.
        return f"""\
#!/bin/bash
{options}
# Made by: {" ".join(self.command_line.split())}
# Works through a plan; all jobs of it see the results folder. To go on later, submit it again.
# srun hands the warning before the time limit on, and the CPUs only if it is told how many.
srun {once}--kill-on-bad-exit=1 {cpus}\\
  {shlex.join(self.command)}
code=$?

# 75: stopped by a signal or for lack of time. The same job goes on once it is started again.
if [ "$code" -eq 75 ]; then
  echo "this job is requeued, and goes on by itself"
  scontrol requeue "${{SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}${{SLURM_ARRAY_TASK_ID:+_$SLURM_ARRAY_TASK_ID}}"
fi
exit "$code"
"""


def split_sbatch_option(option: str) -> tuple[str, str]:
    """Name and value of `--partition=gpu`, `-A project` and `-Aproject`; an empty value where it has none."""
    name = re.split("[= ]", option, maxsplit=1)[0] if option.startswith("--") else option[:2]
    return name, option[len(name) :].lstrip("= ")


def count_requested_gpus_per_node(options: Sequence[str], nodes: int) -> int:
    """How many GPUs each node has by these options of sbatch, of which each job's one task has all."""
    counts = [0]
    for name, value in map(split_sbatch_option, options):
        if name in GPU_OPTIONS:
            kinds = [kind for kind in value.split(",") if name != "--gres" or kind.split(":")[0] == "gpu"]
            numbers = [re.search(r"(?:^|:)(\d+)$", kind) for kind in kinds]
            count = sum(int(number[1]) if number else 1 for number in numbers)
            counts.append(count // nodes if name in ("--gpus", "-G") else count)
    return max(counts)


def split_sbatch_arguments(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The experiment file among words of a command line, and the others as options of sbatch, each with its value.

    Raises UsageError for a word that is neither.
    """
    file: str | None = None
    options: list[str] = []
    takes_value = False
    for word in words:
        if word.startswith("-") and word != "-" and word.isprintable():
            name, value = split_sbatch_option(word)
            sign = "=" if "=" in word and name.startswith("--") else ""
            options.append(name + sign + (shlex.quote(value) if value else ""))
            takes_value = not value
        elif word.endswith(".toml") and file is None:
            file, takes_value = word, False
        elif takes_value and word.isprintable():
            options[-1] += ("=" if options[-1].startswith("--") else " ") + shlex.quote(word)
            takes_value = False
        else:
            raise UsageError(
                f"{quote_value(word)} is neither an experiment file nor the value of an option; options of the sweep "
                "stand behind --: gpubench slurm EXPERIMENT.toml --partition gpu -- --rounds 5"
            )
    return file, options


def parse_time_limit(text: str) -> int:
    """SLURM's own forms of a time: `90` (minutes), `10:30`, `2:00:00`, `1-12`, `1-12:00:00`, `UNLIMITED`. Raises
    UsageError."""
    if text.strip().upper() in ("UNLIMITED", "INFINITE"):
        return YEAR_S
    match = _CLOCK.fullmatch(text.strip())
    days, first, second, third = (
        None if p is None else int(p) for p in (match.groups() if match else [None] * 4)
    )
    if days is not None or third is not None:
        total = 86400 * (days or 0) + 3600 * (first or 0) + 60 * (second or 0) + (third or 0)
    else:
        total = 60 * (first or 0) + (second or 0)
    if not total:  # SLURM takes no time for no limit at all
        raise UsageError(
            f"--time: {quote_value(text)} is no time of SLURM's; write 90 (minutes), 2:00:00, 1-12:00:00 or UNLIMITED"
        )
    return total


def format_time_limit_for_units(units_s: Sequence[float], tasks: int) -> str:
    """The time limit of each of so many tasks that share these units: with room, in whole five minutes."""
    share = max([sum(units_s) / tasks, *units_s], default=0.0)
    needs = max(LEAST_S, MARGIN * share + SIGNAL_S + RESOLUTION_S)
    hours, rest = divmod(ROUND_UP_S * math.ceil(needs / ROUND_UP_S), 3600)
    days = f"{hours // 24}-" if hours >= 24 else ""
    return f"{days}{hours % 24:02}:{rest // 60:02}:00"
