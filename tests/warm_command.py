"""`gpubench` as a process of its own that need not import anything first: forked from one that has.

A command takes half a second of CPU time to import what it needs, and the tests give hundreds of commands. What
`WarmCommand.start` starts is a real process: an id, folder, environment and streams of its own, real signals, a real
exit code. What it is not is a fresh interpreter, so whatever depends on that (what is imported and how fast, the
locale, PYTHON… variables) is tested with `python -m gpubench`, and so are some commands of every other kind.

A sweep starts a fork server, which takes four seconds of CPU time to import torch. So sweeps are forked from a process
that has imported torch, too, and what they would start as `python -P -m gpubench.…` is forked from them: a child of
theirs as before, with the same streams and environment, in a session of its own.

Run as `python tests/warm_command.py FD PACKAGE`, this file is the process that they are forked from; FD is one
end of a socket, and PACKAGE what it imports besides: `torch`, `mlflow` or nothing.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import inspect
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import termios
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

HEAVY = (
    "gpubench.cli.main", "gpubench.commands.sweep", "gpubench.commands.data", "gpubench.commands.audit",
    "gpubench.commands.table", "gpubench.commands.export", "gpubench.commands.predict", "gpubench.commands.doctor",
    "gpubench.commands.plot", "gpubench.render.draw", "gpubench.commands.compare", "gpubench.commands.merge",
    "gpubench.commands.status", "gpubench.export.files", "scipy.special", "rich.markdown", "tomli_w",
    "typer.rich_utils",
)  # fmt: skip
"""What commands import when they need it, with all that these import."""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
"""These libraries would start threads, and a fork copies only one."""
PIPE_ENDS = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
"""What `subprocess` calls them."""
ORDER_BYTES = 1 << 18
"""More than arguments and environment of any command of a test."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One command. Its three streams and the channel on which its end is told come along as open files."""

    arguments: Sequence[str]
    cwd: str
    env: Mapping[str, str]
    new_session: bool
    cpu_ids: Sequence[int] | None
    """The CPUs that it may use, where not all of the tests' own."""


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


def needed_package(arguments: Sequence[str], env: Mapping[str, str]) -> str:
    """The heavy package that a command imports, or its children; empty for none."""
    if "mlflow" in arguments:
        return "mlflow"
    # A plan alone trains nothing, and what lies on another path may be another torch.
    trains = arguments[:1] == ["sweep"] and not {"-n", "-h", "--help"} & set(arguments)
    return "torch" if trains and env.get("PYTHONPATH") == os.environ.get("PYTHONPATH") else ""


class WarmCommand:
    """Starts commands, from processes that have imported all; one has torch for sweeps, one MLflow."""

    def __init__(self) -> None:
        self._warm: dict[str, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def _control(self, package: str) -> socket.socket:
        """Hands orders to the process that has imported this, too; it is started when first asked for."""
        if package not in self._warm:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, ORDER_BYTES)
            command = [sys.executable, __file__, str(theirs.fileno()), package]
            env = {**os.environ, "PYTHONUTF8": "1", "TORCH_CPP_LOG_LEVEL": "ERROR", **ONE_THREAD}
            with theirs:
                process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=env)
            self._warm[package] = process, ours
        return self._warm[package][1]

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
        cpu_ids: Sequence[int] | None = None,
        trains: bool = True,
    ) -> Started:
        """`gpubench ARGUMENTS` in the folder `cwd`; each stream is an open file, DEVNULL or PIPE (but not stdin).

        Where stdin is a terminal, a new session has it. `trains`: whether it may come to import torch, if it can: a
        process with torch takes 0.1 s of CPU time more to fork.
        """
        arguments = list(arguments)
        fresh = {name for name in env if name.startswith(("PYTHON", "LC_"))} - {"PYTHONPATH"}
        if any(env[name] != os.environ.get(name) for name in fresh):
            raise ValueError(f"only a fresh interpreter would heed {', '.join(sorted(fresh))}")
        control = self._control(needed_package(arguments, env) if trains else "")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        out, out_file = _stream(stdout)
        err, err_file = _stream(stderr)
        nothing = os.open(os.devnull, os.O_RDONLY)
        order = Order(
            arguments=arguments, cwd=str(cwd), env=dict(env), new_session=start_new_session, cpu_ids=cpu_ids
        )
        files = [nothing if stdin == subprocess.DEVNULL else stdin, out_file, err_file, theirs.fileno()]
        socket.send_fds(control, [json.dumps(asdict(order)).encode()], files)
        theirs.close()
        for file in {nothing, out_file, err_file} - {stdin, stdout, stderr}:
            os.close(file)
        return Started(arguments, ours, out, err)

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout: float,
        cpu_ids: Sequence[int] | None = None,
        trains: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """The command, over. Raises subprocess.TimeoutExpired for one that is not in time, and has been killed."""
        running = self.start(arguments, cwd=cwd, env=env, cpu_ids=cpu_ids, trains=trains)
        try:
            out, err = running.communicate(timeout=timeout)
        finally:
            running.kill()  # one that hangs must not outlive its test
        assert running.returncode is not None
        return subprocess.CompletedProcess(list(arguments), running.returncode, out, err)

    def close(self) -> None:
        """Ends these processes; commands that still run go on."""
        for process, control in self._warm.values():
            # A loader's worker that a test has left may hold a copy of this end: closing alone would end nothing.
            control.shutdown(socket.SHUT_RDWR)
            control.close()
            process.wait()


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
    _forget_signals()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which `serve` ignores
    if order.new_session:
        os.setsid()
        if os.isatty(streams[0]):
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    if order.cpu_ids is not None:
        os.sched_setaffinity(0, order.cpu_ids)
    os.chdir(order.cwd)
    _put_on(order.env, streams)
    for file in streams:
        os.close(file)
    sys.path[0] = order.cwd
    sys.argv = ["gpubench", *order.arguments]


def _forget_signals() -> None:
    """A program that is started has no handlers; what is ignored stays so."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if signal.getsignal(number) not in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _put_on(env: Mapping[str, str], streams: Sequence[int]) -> None:
    """This environment, and these files as standard streams."""
    os.environ.clear()
    os.environ.update(env)
    for number, file in enumerate(streams):
        os.dup2(file, number)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)  # by lines on a terminal
    sys.stderr = os.fdopen(2, "w", buffering=1, errors="backslashreplace", closefd=False)


class ForkingPopen(subprocess.Popen):  # type: ignore[type-arg]
    """Forks `python -P -m gpubench.MODULE …` from this process, which has imported torch, and starts all else."""

    def _execute_child(self, *given: Any) -> None:
        how = inspect.signature(super()._execute_child).bind(*given).arguments
        words = how["args"][
            how["args"][:1] == ["env"] :
        ]  # by which tests name a further node that is this one
        if words[:3] != [sys.executable, "-P", "-m"]:
            super()._execute_child(*given)
            return
        self.pid = os.fork()
        if not self.pid:
            streams = [how["p2cread"], how["c2pwrite"], how["errwrite"]]
            _run_module(words[3:], how["env"], streams, how["pass_fds"])
        self._child_created = True
        self._close_pipe_fds(*(how[end] for end in PIPE_ENDS))


def open_files() -> set[int]:
    return {int(path.name) for path in Path("/proc/self/fd").iterdir()}


opened_by_imports: set[int] = set()
"""The files that torch holds open once it is imported."""


def _run_module(
    words: Sequence[str], env: Mapping[str, str], streams: Sequence[int], files: Sequence[int]
) -> NoReturn:
    """Runs a module in a session of its own, and ends with it."""
    gc.freeze()  # objects that would be collected might close files that are no longer theirs
    _forget_signals()
    os.setsid()
    _kept = sys.stdin, sys.stdout, sys.stderr  # what the command has not written yet is not for these files
    _put_on(env, streams)
    for file in open_files() - {0, 1, 2, *files, *opened_by_imports}:
        with contextlib.suppress(OSError):  # that of the listing itself is closed
            os.close(file)
    sys.path[0:1] = [path for path in env["PYTHONPATH"].split(os.pathsep) if path not in sys.path]
    sys.argv = list(words)
    code = 1
    try:
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - an interpreter does so
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    for name in HEAVY:
        importlib.import_module(name)
    if sys.argv[2] == "torch":
        importlib.import_module("gpubench.node.launch.leader")
        before = open_files()
        importlib.import_module("gpubench.train.warm").import_training_code()
        opened_by_imports |= open_files() - before
        subprocess.Popen = ForkingPopen
    elif sys.argv[2] == "mlflow":
        importlib.import_module("mlflow.store.tracking.sqlalchemy_store")
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
