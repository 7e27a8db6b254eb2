"""CPUs on which one sweep of a folder measures at a time."""

from __future__ import annotations

import os
import signal

from gpubench.node.cpu_locks import CpuLocks

FOLDER = f"{os.getpid():08x}"


def test_one_sweep_of_a_folder_has_a_cpu_at_a_time() -> None:
    first, second = CpuLocks(), CpuLocks()
    assert first.take(FOLDER, {0, 1})
    assert not second.take(FOLDER, {1, 2})
    # Not even a part of the refused ones is held.
    assert second.take(FOLDER, {2, 3})
    # Sweeps into other folders are not asked after.
    assert CpuLocks().take("another", {0, 1})
    assert first.take(FOLDER, {0, 1}), "again, for its next trial"
    first.release()
    assert CpuLocks().take(FOLDER, {0, 1})


def test_what_a_killed_one_held_is_free_at_once() -> None:
    reads, writes = os.pipe()
    if (pid := os.fork()) == 0:
        CpuLocks().take(FOLDER, {7})
        hold = CpuLocks()
        os.write(writes, b"1" if hold.take(FOLDER, {8}) else b"0")
        signal.pause()
    assert os.read(reads, 1) == b"1"
    assert not CpuLocks().take(FOLDER, {8})
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert CpuLocks().take(FOLDER, {8})
