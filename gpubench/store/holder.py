"""The process that holds a lock: its name, and whether it lives, as far as that can be known from here."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import msgspec

from gpubench.basics import slurm_job
from gpubench.basics.linux import read_boot_id, read_pid_namespace
from gpubench.basics.quoted import clean_line

MOST_PROCESSES = 1 << 31
"""Ids beyond this no kernel gives."""
LONGEST_NAME = 80
"""Characters of a host's name that are shown."""
Fate = Literal["alive", "dead", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HolderProcess:
    """The process that holds a lock."""

    host: str
    boot: str
    """The kernel's id of this boot; empty where it tells none."""
    pid_namespace: str
    """Process ids mean something only inside it; empty where the kernel tells none."""
    pid: int
    began: str | None
    """When the process began, in clock ticks since the boot: ids are used again."""
    job: str = ""
    """The run of a SLURM job that it belongs to; empty outside of SLURM, and from earlier versions."""

    @classmethod
    def make_current(cls) -> Self:
        """This process."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot=read_boot_id(),
            pid_namespace=read_pid_namespace(),
            pid=pid,
            began=read_process_start_ticks(pid),
            job=slurm_job.make_slurm_run_id(),
        )

    def __str__(self) -> str:
        return f"process {self.pid} on {clean_line(self.host, LONGEST_NAME)}"

    @property
    def fate(self) -> Fate:
        """What can be known at once: of processes of this boot and this pid namespace all, and that an earlier run of
        this SLURM job is over."""
        if self.boot and (self.boot, self.pid_namespace) == (read_boot_id(), read_pid_namespace()):
            if (now := read_process_start_ticks(self.pid)) is None and _is_process_hidden(self.pid):
                return "unknown"
            return "alive" if now == self.began else "dead"
        return "dead" if slurm_job.is_earlier_slurm_run(self.job) else "unknown"


def _is_process_hidden(pid: int) -> bool:
    """Whether there is such a process of another user, of which /proc tells this one nothing (hidepid)."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return not Path(f"/proc/{pid}").exists()
    except OSError:
        return False
    return False


def compute_process_start_s(holder: HolderProcess) -> float | None:
    """When a process of this boot began, in seconds of the epoch."""
    try:
        up_s = float(Path("/proc/uptime").read_text().split()[0])
        ticks = int(holder.began or "")
    except (OSError, ValueError):
        return None
    return time.time() - up_s + ticks / os.sysconf("SC_CLK_TCK")


def read_process_start_ticks(pid: int) -> str | None:
    """When process `pid` began, in clock ticks since the boot; None where there is none, or only its zombie."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if facts[0] in ("Z", "X") else facts[19]


def parse_holder(text: str | bytes) -> HolderProcess | None:
    """The holder that a lock or a claim names in JSON; None where it names none: of another version, or damaged."""
    try:
        holder = msgspec.json.decode(text, type=HolderProcess)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return holder if 0 < holder.pid < MOST_PROCESSES else None
