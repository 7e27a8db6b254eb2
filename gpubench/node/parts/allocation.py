"""Which further nodes there are, and how a process is started on each: those of a SLURM job, or as somebody says."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping, Sequence

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.node.parts.process import PartCommand

LIST_LIMIT_S = 30.0
"""How long SLURM may take to spell a list of nodes out."""


def list_part_commands(given: Sequence[str], environ: Mapping[str, str]) -> list[PartCommand]:
    """One for each further node: those that were given (`ssh n2`), else those of the SLURM job that this is in.

    Raises UsageError for one that can't be read, UnusableError where SLURM does not tell its nodes.
    """
    if given:
        return [_parse_agent_command(text) for text in given]
    nodes, own_node = environ.get("SLURM_JOB_NODELIST", ""), environ.get("SLURMD_NODENAME", "")
    if not nodes or environ.get("SLURM_JOB_NUM_NODES", "1") == "1":
        return []
    if not own_node:
        raise UnusableError(
            "this is no node of the SLURM job, so nothing can be measured from here: start gpubench on its first node, "
            "in the batch script or by srun --nodes=1 --ntasks=1 --overlap"
        )
    return [_make_srun_command(name, environ) for name in _expand_host_list(nodes) if name != own_node]


def _parse_agent_command(text: str) -> PartCommand:
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--agent {text!r}: {error}") from None
    if not words:
        raise UsageError(
            "--agent wants the command that starts a process on a further node, such as 'ssh n2'"
        )
    return PartCommand(name=text, before=words)


def _make_srun_command(name: str, environ: Mapping[str, str]) -> PartCommand:
    """All of the job's part of that node; --overlap, for this step holds it already."""
    task_cpus = environ.get("SLURM_CPUS_PER_TASK", "")
    cpus = (f"--cpus-per-task={task_cpus}",) if task_cpus.isdigit() else ()
    fixed = ("srun", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={name}", "--kill-on-bad-exit=1")
    return PartCommand(name=name, before=(*fixed, *cpus))


def _expand_host_list(nodes: str) -> list[str]:
    """`n[1-3]` as names."""
    try:
        done = subprocess.run(
            ["scontrol", "show", "hostnames", nodes],
            capture_output=True,
            text=True,
            timeout=LIST_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnusableError(f"scontrol does not spell the job's nodes out ({nodes}): {error}") from None
    return done.stdout.split()
