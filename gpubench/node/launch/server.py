"""The warmed fork server: has torch imported and CUDA untouched, and forks a trial's leader in about 10 ms.

Run as `python -m gpubench.node.launch.server FD PARENT [--trainings]`: an end of a channel, and the parent's id.
What is said on it stands in `channel.py`. Without trainings it imports no torch: commands need none.

It stays single-threaded, because a fork copies only the forking thread and the locks that others hold.
A leader that has ended stays a zombie until `reap_leader`, so that its process group id can't be taken by another.

Orphans of a leader that was killed, daemons of a user's model among them, become this process's children, and it ends
them. Where the parent is killed, it ends all of its leaders and their orphans before it goes itself.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import select
import signal
import socket
import sys
import time
import traceback

import psutil

from gpubench.basics import linux
from gpubench.basics.stopping import SIGNALS
from gpubench.node.launch import leader
from gpubench.node.launch.channel import (
    Channel,
    ImportFailed,
    LeaderExited,
    ReapLeader,
    ServerReady,
    StartTrial,
    TrialStarted,
    read_request,
)
from gpubench.schema.events import Error
from gpubench.schema.order import TrialOrder
from gpubench.schema.workload import WORKLOADS


def preload_training_code() -> None:
    """Imports all that a trial will need, so that no trial pays for it."""
    from gpubench.train import warm as train_warm

    train_warm.import_training_code()


def preload_command_code() -> None:
    """Imports what runs a command."""
    importlib.import_module(WORKLOADS["command"].worker)


def serve_forks(control: Channel) -> None:
    """Answers requests until the parent closes the channel. Raises ConnectionError where it has gone meanwhile."""
    waker, wakened = socket.socketpair()
    for end in (waker, wakened):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    alive: set[int] = set()
    reported: set[int] = set()
    while True:
        readable, _, _ = select.select([control.fileno(), wakened.fileno()], [], [])
        if wakened.fileno() in readable:
            with contextlib.suppress(BlockingIOError):
                wakened.recv(4096)
            for pid in alive - reported:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
                if ended is not None:
                    reported.add(pid)
                    control.send(LeaderExited(pid=pid, code=ended.si_code, status=ended.si_status))
            end_orphans(alive)
        if control.fileno() in readable:
            try:
                message, fds = control.receive_with_files()
            except ConnectionError:
                break
            match read_request(message):
                case StartTrial(order=order):
                    server_files = (control.fileno(), waker.fileno(), wakened.fileno())
                    pid = fork_leader(order, fds, server_files)
                    alive.add(pid)
                    control.send(TrialStarted(pid=pid))
                case ReapLeader(pid=pid):
                    os.waitpid(pid, 0)
                    alive.discard(pid)
                    reported.discard(pid)
            for fd in fds:
                os.close(fd)


def end_orphans(leaders: set[int]) -> None:
    """Kills and reaps those children of this process that are no leaders. One that takes its time wakes it again."""
    for child in psutil.Process().children():
        if child.pid not in leaders:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
            os.waitpid(child.pid, os.WNOHANG)


def fork_leader(order: TrialOrder, events: list[int], close: tuple[int, ...]) -> int:
    """Forks the leader of one trial; returns its process id, which is also its group's."""
    server = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    channels = [Channel(socket.socket(fileno=fd)) for fd in events]
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for fd in close:
            os.close(fd)
        leader.main(order, channels, server)
    except BaseException as error:  # noqa: BLE001 - whatever it is, this process ends here and says so
        reason = f"the trial could not be started: {type(error).__name__}: {error}"
        with contextlib.suppress(OSError):  # nobody listens any more
            channels[0].send(Error(rank=0, kind="failed", reason=reason, at=time.monotonic()))
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(70)  # only reached where leader.main raised; it ends by os._exit itself


def main() -> None:
    """Entry of the server process."""
    # A terminal's Ctrl-C is the parent's to handle; it ends this server by closing the channel.
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # what came meanwhile is ignored, too
    linux.die_with_parent(int(sys.argv[2]))
    control = Channel(socket.socket(fileno=int(sys.argv[1])))
    try:
        preload_command_code()
        if "--trainings" in sys.argv:
            preload_training_code()
    except ImportError as error:
        control.send(ImportFailed(reason=f"{type(error).__name__}: {error}"))
        return
    linux.become_subreaper()
    linux.outlive_parent()
    with contextlib.suppress(ConnectionError):  # the parent has gone: nobody is left to be told
        control.send(ServerReady())
        serve_forks(control)
    leader.kill_leftover_processes()
    os._exit(0)  # nothing to save; torch's own farewell takes a second


if __name__ == "__main__":
    main()
