"""A sweep as a batch script for SLURM, short enough to be read and changed by hand. Pure."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.basics.errors import UsageError
from gpubench.basics.quoted import shown

SIGNAL_S = 120
"""How long before its time limit a job is told that it ends: for the unit that runs then, and the tables."""
RESOLUTION_S = 60
"""SLURM may send that signal so much earlier. https://slurm.schedmd.com/sbatch.html#OPT_signal"""
SHARE = 10
"""Of a short job a tenth is kept for that, and no more."""
TABLE_MINUTES = 15
NO_LIMIT = ("UNLIMITED", "INFINITE")
YEAR_S = 365 * 86400
"""What SLURM takes for the length of a job without a time limit."""
MARGIN = 1.5
"""How much longer than estimated a job may take: its processes start on a node that has nothing in its caches."""
ROUND_UP_S, LEAST_S = 300, 900
OF_ACCOUNTS = (
    "--partition", "-p", "--account", "-A", "--qos", "-q", "--reservation", "--clusters", "-M",
)  # fmt: skip
"""Options of sbatch that say where and on whose account: the job that writes the table has them, too."""
GPU_OPTIONS = ("--gres", "--gpus", "-G", "--gpus-per-task", "--gpus-per-node")
"""Options of sbatch that ask for GPUs."""
CPUS_BY_GPU = "--cpus-per-gpu"
"""SLURM refuses a job that says this and `--cpus-per-task`."""
CPUS_OF_GPU = 4
"""CPUs for each GPU of a task where nobody says how many: two GPUs are to be fed as well as one."""
SHORT = {"-J": "--job-name", "-o": "--output", "-a": "--array", "-D": "--chdir"}
"""Other names of options that a script has by itself."""
_CLOCK = re.compile(r"(?:(\d{1,9})-)?(\d{1,9})(?::(\d{1,9}))?(?::(\d{1,9}))?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchScript:
    """What a batch script is made of."""

    name: str
    command: Sequence[str]
    """The sweep, up to its own folder and times."""
    gpubench: Sequence[str]
    """How gpubench is started on a node."""
    results: str
    """The folder, as all nodes see it."""
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
    cpus_per_task: int
    time: str
    """As SLURM writes a time limit."""
    options: Sequence[str] = ()
    """Those of sbatch that were given besides: `--partition=gpu`."""

    @property
    def signal_s(self) -> int:
        return min(SIGNAL_S, math.ceil(seconds(self.time) / SHARE))

    @property
    def job_name(self) -> str:
        """As sbatch was told, else the experiment's."""
        names = [value_of(option) for option in self.options if option_name(option) in ("--job-name", "-J")]
        return names[-1] if names else self.name

    @property
    def is_by_gpu(self) -> bool:
        """Whether SLURM is told how many CPUs each GPU has, which srun takes over by itself."""
        return CPUS_BY_GPU in map(option_name, self.options)

    @property
    def is_array(self) -> bool:
        return self.tasks > 1 or any(option_name(option) in ("--array", "-a") for option in self.options)

    def text(self) -> str:
        """The script."""
        defaults = {
            "--job-name": self.name,
            "--output": f"%x-{'%A_%a' if self.is_array else '%j'}.out",
            "--chdir": self.home,
            **({"--array": f"1-{self.tasks}"} if self.tasks > 1 else {}),
            "--nodes": str(self.nodes),
            "--ntasks-per-node": "1",
            **({} if self.is_by_gpu else {"--cpus-per-task": str(self.cpus_per_task)}),
            "--time": self.time,
            "--requeue": None,
            "--open-mode": "append",
            "--signal": f"USR1@{self.signal_s}",
        }
        given = {SHORT.get(name := option_name(option), name) for option in self.options}
        lines = [
            name if value is None else f"{name}={shlex.quote(value)}"
            for name, value in defaults.items()
            if name not in given
        ]
        sweep = [*self.gpubench, *self.command, "--out", self.results]
        # The id alone may stand for all tasks of an array.
        me = "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID" if self.is_array else "$SLURM_JOB_ID"
        return "\n".join(
            [
                "#!/bin/bash",
                *(f"#SBATCH {line}" for line in (*lines, *self.options)),
                "",
                f"# Made by: {' '.join(self.command_line.split())}",
                f"# {self._what()} To go on later, submit it again.",
                "# srun hands the warning before the time limit on"
                + ("." if self.is_by_gpu else ", and the CPUs only if it is told how many."),
                *self._started(),
                f"  {shlex.join([*sweep, '--yes'])}",
                "code=$?",
                "",
                "# 75: stopped by a signal or for lack of time. The same job goes on once it is started again.",
                'if [ "$code" -eq 75 ]; then',
                '  echo "this job is requeued, and goes on by itself"',
                f'  scontrol requeue "{me}"',
                "fi",
                'exit "$code"',
                "",
            ]
        )

    def _what(self) -> str:
        """What one job of the script does, in a sentence."""
        if self.is_array:
            return "One of the tasks that work through one plan together; all see the results folder."
        if self.nodes > 1 and self.trial_nodes == 1:
            return "Its nodes work through one plan together; all see the results folder."
        return "Works through a plan."

    def _started(self) -> list[str]:
        """How the sweep is started: on each node, or once, where it starts its part on further nodes by itself."""
        cpus = "" if self.is_by_gpu else '--cpus-per-task="$SLURM_CPUS_PER_TASK" '
        if self.trial_nodes == 1:
            return [f"srun --kill-on-bad-exit=1 {cpus}\\"]
        return [
            "# Once, on the first node: the sweep starts its part on the others by itself.",
            f"srun --nodes=1 --ntasks=1 --kill-on-bad-exit=1 {cpus}\\",
        ]

    def table_options(self, job: str) -> list[str]:
        """What sbatch is given for the job that writes the tables once that one is over, in whatever way."""
        program = [*self.gpubench]
        merge, table = [*program, "merge", self.results], [*program, "table", self.results]
        return [
            f"--job-name={self.job_name}-table",
            "--output=%x-%j.out",
            f"--dependency=afterany:{job}",
            f"--time={TABLE_MINUTES}",
            *(
                word
                for option in self.options
                if option_name(option) in OF_ACCOUNTS
                for word in shlex.split(option)
            ),
            f"--wrap={shlex.join(merge)} && {shlex.join(table)}",
        ]


def option_name(option: str) -> str:
    """`--partition` of `--partition=gpu`, `-A` of `-A project` and of `-Aproject`."""
    return re.split(r"[= ]", option, maxsplit=1)[0] if option.startswith("--") else option[:2]


def value_of(option: str) -> str:
    """`gpu` of `--partition=gpu` and `-pgpu`, `my project` of `-A 'my project'`; empty where it has none."""
    return "".join(shlex.split(re.sub("^[= ]", "", option[len(option_name(option)) :])))


def gpus_of(options: Sequence[str], nodes: int) -> int | None:
    """How many GPUs each node has by these options of sbatch; 0: none is asked for; None: not to be read from them."""
    gpu_options = [
        (option_name(option), value_of(option)) for option in options if option_name(option) in GPU_OPTIONS
    ]
    counts = [_gpus(name, value) for name, value in gpu_options]
    if None in counts:
        return None
    # Of one task on each node, which is what the scripts start.
    shares = [
        (count or 0) // (nodes if name in ("--gpus", "-G") else 1)
        for (name, _), count in zip(gpu_options, counts, strict=True)
    ]
    return max(shares, default=0)


def cpus_of(options: Sequence[str], gpus: int | None) -> int:
    """How many CPUs a task gets where no number is asked for. `gpus`: those of its node; None: nobody knows."""
    by_gpu = [value_of(option) for option in options if option_name(option) == CPUS_BY_GPU]
    of_gpu = int(by_gpu[-1]) if by_gpu and by_gpu[-1].isdecimal() else CPUS_OF_GPU
    return of_gpu * max(1, gpus or 1)


def _gpus(name: str, value: str) -> int | None:
    """Of `gpu:a100:2,gpu:1` behind `--gres`, of `a100:2` or `2` behind the others."""
    total = 0
    for item in value.split(","):
        words = item.split(":")
        if name == "--gres":
            if words[0] != "gpu":
                continue
            words = words if words[-1].isdecimal() else [*words, "1"]
        if not words[-1].isdecimal():
            return None
        total += int(words[-1])
    return total


def passed_on(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The experiment file among words of a command line, and the others as options of sbatch, each with its value.

    Raises UsageError for a word that is neither.
    """
    file: str | None = None
    options: list[str] = []
    takes_value = False
    for word in words:
        if not word.isprintable():
            raise UsageError(f"{shown(word)} can't stand in a line of a batch script")
        if word.startswith("-") and word != "-":
            options.append(_quoted(word))
            takes_value = "=" not in word if word.startswith("--") else len(word) == 2
        elif word.endswith(".toml") and file is None:
            file, takes_value = word, False
        elif takes_value:
            options[-1] += ("=" if options[-1].startswith("--") else " ") + shlex.quote(word)
            takes_value = False
        else:
            raise UsageError(
                f"{shown(word)} is neither an experiment file nor the value of an option; options of the sweep stand "
                "behind --: gpubench slurm EXPERIMENT.toml --partition gpu -- --rounds 5"
            )
    return file, options


def _quoted(option: str) -> str:
    """As it can stand in a script: a value with spaces would be several words there, and of `a#b` the end a comment."""
    name = option_name(option)
    sign = "=" if option.startswith(f"{name}=") else ""
    return name + sign + shlex.quote(value) if (value := option[len(name + sign) :]) else option


def seconds(text: str) -> int:
    """SLURM's own forms of a time: `90` (minutes), `10:30`, `2:00:00`, `1-12`, `1-12:00:00`, `UNLIMITED`. Raises
    UsageError."""
    if text.strip().upper() in NO_LIMIT:
        return YEAR_S
    match = _CLOCK.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--time: {shown(text)} is no time of SLURM's; write 90 (minutes), 2:00:00, 1-12:00:00 or UNLIMITED"
        )
    days, *rest = (None if part is None else int(part) for part in match.groups())
    first, second, third = rest
    if days is not None or third is not None:
        hours, minutes, secs = first, second, third
    else:
        hours, minutes, secs = 0, first, second
    total = 86400 * (days or 0) + 3600 * (hours or 0) + 60 * (minutes or 0) + (secs or 0)
    if not total:
        raise UsageError("--time: SLURM takes no time for no limit at all; if that is meant, write UNLIMITED")
    return total


def limit(units_s: Sequence[float], tasks: int) -> str:
    """The time limit of each of so many tasks that share these units: with room, in whole five minutes."""
    share = max([sum(units_s) / tasks, *units_s], default=0.0)
    needs = max(LEAST_S, MARGIN * share + SIGNAL_S + RESOLUTION_S)
    whole = ROUND_UP_S * math.ceil(needs / ROUND_UP_S)
    hours, rest = divmod(whole, 3600)
    return (
        f"{hours // 24}-{hours % 24:02}:{rest // 60:02}:00"
        if hours >= 24
        else f"{hours:02}:{rest // 60:02}:00"
    )
