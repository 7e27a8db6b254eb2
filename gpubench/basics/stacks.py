"""Where a process hangs: each keeps a handler in C for one signal, by which it writes what its threads are doing.

Python's own faulthandler does the writing, so it works inside a C call that never returns, and costs nothing before.
A process that blocks the signal, is stopped, or waits in the kernel for a disk writes nothing: of the latter two
/proc tells.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
import re
import signal
import sysconfig
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

import gpubench
from gpubench.basics.quoted import clean_line
from gpubench.basics.regular_file import read_regular_file
from gpubench.basics.words import format_list

ASK = signal.SIGRTMIN + 13
"""A real-time signal, which hardly anybody uses. Only processes that said they hear it are sent one."""
FOLDER = "stacks"
ANSWER_S = 1.0
"""How long a process may take to write what takes it a millisecond, on a machine that is busy."""
_QUIET_S = 0.05
_HIGH = 200
"""From this descriptor on: below lie those that come next to whoever closes all and opens others."""
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_IDLE_LOADER = re.compile(r"in _worker_loop$", re.MULTILINE)
"""torch's own loop in a loader worker; what lies further in is that worker's work."""
_GPUBENCH_FOLDER = str(Path(gpubench.__file__).parent)
_LIBRARIES = (*(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")), "<")

_folder: Path | None = None
"""Where this process answers, and those that it forks."""


def install_stack_handler(scratch: Path, name: str) -> None:
    """Makes this process answer. `name`: how a reason calls it, with _ for spaces.

    Raises OSError where its file can't be made.
    """
    global _folder
    folder = scratch / FOLDER
    folder.mkdir(exist_ok=True)
    _folder = folder
    install_handler_in_fork(name)


def install_handler_in_fork(name: str) -> None:
    """Listens in a process that was forked from one that listens; does nothing where that one does not."""
    folder = _folder
    if folder is None:
        return
    opened = os.open(folder / f"{name}-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    kept = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(opened)
    faulthandler.register(ASK, file=kept, all_threads=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessStack:
    """One process, asked where it is."""

    name: str
    state: str
    """The letter of /proc: R, S, D (in the kernel), T (stopped), t (traced), Z; empty where it has gone."""
    text: str
    """As faulthandler wrote it; empty where it did not answer."""

    @property
    def place(self) -> str:
        """Where it is, as in `loop.py:88 next_batch`, or how; empty where nobody can say, or it only waits for work."""
        if self.state in ("T", "t"):
            return "stopped (SIGSTOP)" if self.state == "T" else "stopped by a debugger"
        if self.text:
            return find_user_frame(self.text)
        if self.state == "D":
            return "in the kernel, as if waiting for a disk or a network file system"
        return ""


def find_user_frame(text: str) -> str:
    """The innermost frame of the main thread that is the user's or gpubench's; empty for a loader worker at rest."""
    main = text.rstrip().rpartition("(most recent call first):\n")[2]  # the oldest thread is written last
    if idle := _IDLE_LOADER.search(main):
        main = main[: idle.start()]
    for line in main.splitlines():
        frame = _FRAME.match(line)
        if frame and (frame["file"].startswith(_GPUBENCH_FOLDER) or not frame["file"].startswith(_LIBRARIES)):
            return clean_line(f"{Path(frame['file']).name}:{frame['line']} {frame['function']}", 100)
    return ""


def request_stacks(scratch: Path, alive: Iterable[psutil.Process]) -> list[ProcessStack]:
    """Where the processes of a trial are, those among `alive` that listen, by name. Takes ANSWER_S at most."""
    by_pid = {process.pid: process for process in alive}
    files_by_pid: dict[int, tuple[Path, int]] = {}
    for path in _list_stack_files(scratch):
        pid = int(path.name.rpartition("-")[2])
        if pid in by_pid:
            files_by_pid[pid] = path, _read_file_size(path)
            # It looks at when the process began: the signal would end another one that has got its number.
            with contextlib.suppress(psutil.Error):
                by_pid[pid].send_signal(ASK)
    deadline = time.monotonic() + ANSWER_S
    sizes: list[int] = []
    while time.monotonic() < deadline:
        before, sizes = sizes, [_read_file_size(path) for path, _ in files_by_pid.values()]
        awaited = [
            size for (pid, (_, old)), size in zip(files_by_pid.items(), sizes, strict=True)
            if size == old and read_process_state(pid) not in ("T", "t", "Z", "")
        ]  # fmt: skip
        if before == sizes and not awaited:
            break
        time.sleep(_QUIET_S)
    stacks = [
        ProcessStack(
            name=path.name.rpartition("-")[0].replace("_", " "),
            state=read_process_state(pid),
            text=_read_stack_text(path, old),
        )
        for pid, (path, old) in files_by_pid.items()
    ]
    return sorted(stacks, key=lambda stack: [int(n) for n in re.findall(r"\d+", stack.name)][::-1])


def _list_stack_files(scratch: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # no process of the trial came as far as listening
        for path in (scratch / FOLDER).iterdir():
            pid = path.name.rpartition("-")[2]
            if pid.isascii() and pid.isdecimal() and len(pid) < 20:
                yield path


def _read_file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_stack_text(path: Path, start: int) -> str:
    try:
        return read_regular_file(path)[start:][: 1 << 20].decode(errors="replace")
    except OSError:
        return ""


def read_process_state(pid: int) -> str:
    """The letter by which /proc tells what a process is about; empty where it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def describe_stacks(stacks: Sequence[ProcessStack]) -> str:
    """Where they are, in words: `rank 0 was in nets.py:12 forward; rank 1 was stopped (SIGSTOP)`."""
    by_place: dict[str, list[str]] = {}
    for stack in stacks:
        if stack.place:
            by_place.setdefault(stack.place, []).append(stack.name)
    words = []
    for place, names in by_place.items():
        who = format_list(names) if len(names) <= 4 else f"{names[0]} and {len(names) - 1} others"
        where = f"in {place}" if ":" in place else place
        words.append(f"{who} {'was' if len(names) == 1 else 'were'} {where}")
    more = f"; and {len(words) - 4} more, in the log" if len(words) > 4 else ""
    return "; ".join(words[:4]) + more
