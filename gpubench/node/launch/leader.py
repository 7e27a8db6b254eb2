"""A trial's leader: a session of its own, the ranks as children, orphans reaped, and a clean end.

It holds no CUDA and does no work, so that a rank that dies in any way is seen and told.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import tempfile
import time
import traceback
from pathlib import Path

import psutil

from gpubench.basics import linux
from gpubench.basics.stopping import SIGNALS
from gpubench.node.launch import shared_memory
from gpubench.node.launch.channel import Channel
from gpubench.node.launch.descendants import kill_processes, list_descendants
from gpubench.schema.events import RankExit
from gpubench.schema.order import TrialOrder
from gpubench.schema.workload import WORKLOADS

GRACE_S = 5.0
"""How long the other ranks get after one has failed, before they are killed."""


def main(order: TrialOrder, channels: list[Channel], server: int) -> None:
    """Forks the ranks and waits for them. Never returns: ends by os._exit."""
    os.setsid()
    linux.die_with_parent(server)
    linux.become_subreaper()
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    redirect_output(order.log)
    redirect_temporary_files(order.scratch)
    shared_memory.note_future_forks(order.scratch)
    if order.cpu_ids:
        os.sched_setaffinity(0, order.cpu_ids)
    ranks = {fork_rank(order, rank, channels): rank for rank in range(order.ranks)}
    code = wait_for_ranks(ranks, channels)
    kill_leftover_processes()
    os._exit(code)


def redirect_output(log: Path) -> None:
    """Sends what the trial's processes print to its log, and gives them no input."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.close(out)
    os.close(null)


LONGEST_SOCKET = 107
"""Characters of a socket's path at most; multiprocessing makes `pymp-xxxxxxxx/listener-xxxxxxxx` in its folder."""


def redirect_temporary_files(scratch: Path) -> None:
    """Whatever the trial's processes leave in the folder for temporary files goes with the trial.

    Ranks end without an interpreter's shutdown, so that loaders' sockets would stay there for ever.
    """
    if len(str(scratch)) + len("/pymp-12345678/listener-12345678") <= LONGEST_SOCKET:
        os.environ["TMPDIR"] = str(scratch)
        tempfile.tempdir = None


def fork_rank(order: TrialOrder, rank: int, channels: list[Channel]) -> int:
    """Forks one rank; returns its process id."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        linux.die_with_parent(parent)
        for other in channels[:rank] + channels[rank + 1 :]:
            other.close()  # nobody but a rank itself can speak for it
        worker = importlib.import_module(WORKLOADS[order.trial.workload].worker)
        code = worker.main(order, rank, channels[rank])
    except BaseException:  # noqa: BLE001 - whatever it is, this process ends here and says so in the log
        # worker.main reports its own errors; this is for what breaks around it, and the log is all that is left.
        traceback.print_exc()
    finally:
        # No interpreter shutdown: the result is written, and teardown of CUDA and gloo can hang or abort.
        os._exit(code)


def wait_for_ranks(ranks: dict[int, int], channels: list[Channel]) -> int:
    """Waits for all ranks, reaping orphans on the way. Returns 0 when every rank ended well.

    When a rank fails the others get GRACE_S: they may be stuck in a collective that can never end.
    """
    running = dict(ranks)
    failed = killed = False
    deadline: float | None = None
    while running:
        if deadline is None:
            pid, status = os.waitpid(-1, 0)
        else:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                if time.monotonic() > deadline:
                    killed = True
                    for other in running:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(other, signal.SIGKILL)
                time.sleep(0.02)
                continue
        if os.WIFSTOPPED(status):  # it has had itself traced, as what a debugger starts: by its parent
            linux.detach_traced_child(pid, os.WSTOPSIG(status))
            continue
        rank = running.pop(pid, None)
        if rank is None:
            continue  # an orphan of a rank: reaped, its CPU time counted to this process
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
            channels[rank].send(RankExit(rank=rank, code=code, killed=killed, at=time.monotonic()))
        if code != 0:
            failed = True
            deadline = deadline or time.monotonic() + GRACE_S
    return 1 if failed else 0


def kill_leftover_processes() -> None:
    """Kills and reaps all that is left below this process: loader workers, daemons of a user's model.

    Orphans are its children by now. Left to process 1 they would stay zombies where that one does not reap, as in many
    containers.
    """
    pause = 0.002
    while remaining := list_descendants(psutil.Process()):
        kill_processes(remaining)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(pause)
        pause = min(2 * pause, 0.5)  # one that the driver holds may take long, or for ever
