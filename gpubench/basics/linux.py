"""What of Linux Python does not wrap: two process controls (prctl(2)), letting go of a traced child (ptrace(2)), holes
in files (fallocate(2)), and in which boot and namespaces a process is."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PTRACE_DETACH = 17
_KEEP_SIZE_PUNCH_HOLE = 0x01 | 0x02

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def die_with_parent(parent: int) -> None:
    """SIGKILL for this process when the thread that forked it ends. `parent` is that process's id.

    The parent may have died between the fork and this call, so it is looked at once more afterwards.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Takes `die_with_parent` back: now the parent's death only lets this process go on where it was stopped.

    So that it can end in its own way once it has noticed.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children, so that it can wait for them."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def detach_traced_child(child: int, number: int) -> None:
    """Traces a child no longer that has had itself traced by this process, and was stopped by a signal: it goes on with
    that signal as if nobody had asked."""
    # Of starting a program a traced process is told by a signal that nobody has sent.
    passed_on = 0 if number == signal.SIGTRAP else number
    _libc.ptrace(_PTRACE_DETACH, child, ctypes.c_void_p(0), ctypes.c_void_p(passed_on))


def read_boot_id() -> str:
    """The kernel's id of this boot; empty where it tells none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else ""


def read_pid_namespace() -> str:
    """The name of this process's pid namespace, inside which process ids mean something; empty: not known."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def read_network_stack_id() -> str:
    """The name, unique in the world, of the network stack that this process's loopback addresses belong to."""
    try:
        return f"{read_boot_id()} {Path('/proc/self/ns/net').readlink()}"
    except OSError:
        return read_boot_id()


def punch_hole(descriptor: int, start: int, length: int) -> None:
    """Gives so many bytes of a file back to the file system; they read as zeros, and the file keeps its size.

    Raises OSError where the file system can't do that.
    """
    done = _libc.fallocate(descriptor, _KEEP_SIZE_PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(length))
    if done != 0:
        raise OSError(ctypes.get_errno(), "fallocate failed")
