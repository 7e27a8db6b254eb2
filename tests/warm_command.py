"""`gpubench` as a process of its own that need not import anything first: forked from one that has.

A command takes half a second of CPU time to import what it needs, and the tests give hundreds of commands. What
`WarmCommand.start` starts is a real process: an id, folder, environment and streams of its own, real signals, a real
exit code. What it is not is a fresh interpreter, so whatever depends on that (what is imported and how fast, the
locale, PYTHON… variables) is tested with `python -m gpubench`, and so are some commands of every other kind.

Run as `python tests/warm_command.py FD`, this file is the process that they are forked from; FD is one end of a socket.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

HEAVY = (
    "gpubench.cli.main", "gpubench.commands.sweep", "gpubench.commands.data", "gpubench.commands.audit",
    "gpubench.commands.table", "gpubench.commands.export", "gpubench.commands.predict", "gpubench.commands.doctor",
    "gpubench.commands.plot", "gpubench.render.draw", "gpubench.commands.compare", "gpubench.commands.merge",
    "gpubench.commands.status", "gpubench.sweep.tables", "scipy.special", "rich.markdown", "tomli_w",
    "typer.rich_utils",
)  # fmt: skip
"""What commands import when they need it, with all that these import."""
ORDER_BYTES = 1 << 18
"""More than arguments and environment of any command of a test."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One command. Its three streams and the channel on which its end is told come along as open files."""

    arguments: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    new_session: bool


class Started:
    """A command under way, as a `subprocess.Popen` in text mode."""

    def __init__(
        self, arguments: Sequence[str], told: socket.socket, out: IO[str] | None, err: IO[str] | None
    ):
        self.args = list(arguments)
        self._told = told
        began, (self._pidfd,), _, _ = socket.recv_fds(told, 32, 1)
        self.pid = int(began)
        self.stdout, self.stderr = out, err
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, or minus the signal that has ended it. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            if not select.select([self._told], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(self._told.recv(32)))
            self._told.close()
            os.close(self._pidfd)
        return self.returncode

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has printed, once it has ended. Raises subprocess.TimeoutExpired."""
        deadline = None if timeout is None else time.monotonic() + timeout
        printed = {stream.fileno(): b"" for stream in (self.stdout, self.stderr) if stream}
        unread = list(printed)
        while unread:
            left = None if deadline is None else max(deadline - time.monotonic(), 0)
            readable = select.select(unread, [], [], left)[0]
            if not readable:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            for file in readable:
                some = os.read(file, 1 << 16)
                printed[file] += some
                if not some:
                    unread.remove(file)
        self.wait(None if deadline is None else max(deadline - time.monotonic(), 0))
        both = [printed[stream.fileno()].decode() if stream else "" for stream in (self.stdout, self.stderr)]
        for stream in (self.stdout, self.stderr):
            if stream:
                stream.close()
        return both[0], both[1]

    def send_signal(self, number: int) -> None:
        """Does nothing to one that has ended, whoever may have its id by now."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmCommand:
    """The process that has imported all, and starts commands."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ORDER_BYTES)
        # OpenBLAS would start threads, and a fork copies only one.
        env = {**os.environ, "PYTHONUTF8": "1", "OPENBLAS_NUM_THREADS": "1"}
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=env
            )

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
        start_new_session: bool = False,
    ) -> Started:
        """`gpubench ARGUMENTS` in the folder `cwd`; each stream is an open file, DEVNULL or PIPE (but not stdin)."""
        fresh = {name for name in env if name.startswith(("PYTHON", "LC_"))} - {"PYTHONPATH"}
        if any(env[name] != os.environ.get(name) for name in fresh):
            raise ValueError(f"only a fresh interpreter would heed {', '.join(sorted(fresh))}")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out, out_file = _stream(stdout)
        err, err_file = _stream(stderr)
        nothing = os.open(os.devnull, os.O_RDONLY)
        order = Order(arguments=list(arguments), cwd=str(cwd), env=dict(env), new_session=start_new_session)
        files = [nothing if stdin == subprocess.DEVNULL else stdin, out_file, err_file, theirs.fileno()]
        socket.send_fds(self._control, [json.dumps(asdict(order)).encode()], files)
        theirs.close()
        for file in {nothing, out_file, err_file} - {stdin, stdout, stderr}:
            os.close(file)
        return Started(arguments, ours, out, err)

    def run(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
    ) -> subprocess.CompletedProcess[str]:
        """The command, over. Raises subprocess.TimeoutExpired for one that is not in time, and has been killed."""
        running = self.start(arguments, cwd=cwd, env=env)
        try:
            out, err = running.communicate(timeout=timeout)
        finally:
            running.kill()  # one that hangs must not outlive its test
        assert running.returncode is not None
        return subprocess.CompletedProcess(list(arguments), running.returncode, out, err)

    def close(self) -> None:
        """Ends it; commands that still run go on."""
        self._control.close()
        self._process.wait()


def _stream(asked: int) -> tuple[IO[str] | None, int]:
    """Our end of a pipe, if one is asked for, and the file that the command gets."""
    if asked == subprocess.PIPE:
        ours, theirs = os.pipe()
        return os.fdopen(ours), theirs
    return None, os.open(os.devnull, os.O_WRONLY) if asked == subprocess.DEVNULL else asked


# ---- the process that they are forked from ----


def serve(control: socket.socket) -> Order:
    """Forks a process for each order, until nobody can give any more. Returns in these processes alone."""
    waker, wakened = socket.socketpair()
    for end in (waker, wakened):
        end.setblocking(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the tests
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    watched: dict[int, socket.socket] = {}
    while True:
        readable = select.select([control, wakened], [], [])[0]
        if wakened in readable:
            wakened.recv(4096)
            for pid in list(watched):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    with (
                        watched.pop(pid) as told,
                        contextlib.suppress(BrokenPipeError),
                    ):  # nobody may wait for it
                        told.send(str(status).encode())
        if control in readable:
            text, files, _, _ = socket.recv_fds(control, ORDER_BYTES, 4)
            if not text:
                os._exit(0)
            pid = os.fork()
            if not pid:
                order = Order(**json.loads(text))
                _become(order, files[:3])
                for end in (control, waker, wakened, *watched.values()):
                    end.close()
                os.close(files[3])
                return order
            watched[pid] = socket.socket(fileno=files[3])
            pidfd = os.pidfd_open(pid)
            with contextlib.suppress(BrokenPipeError):
                socket.send_fds(watched[pid], [str(pid).encode()], [pidfd])
            for file in (pidfd, *files[:3]):
                os.close(file)


def _become(order: Order, streams: Sequence[int]) -> None:
    """Makes this process what a fresh interpreter would be that was started so."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if order.new_session:
        os.setsid()
    os.chdir(order.cwd)
    os.environ.clear()
    os.environ.update(order.env)
    for number, file in enumerate(streams):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)  # by lines on a terminal
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)
    sys.path[0] = order.cwd
    sys.argv = ["gpubench", *order.arguments]


if __name__ == "__main__":
    for name in HEAVY:
        importlib.import_module(name)
    gc.freeze()  # a collection would copy every page that the forked ones share
    serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("gpubench", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, int):
            # The rest of the farewell frees what was imported, page for page a copy of what is shared: 50 ms.
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(end.code)
        raise
