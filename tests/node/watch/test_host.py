"""Real processes: what they burn, share and leave behind is read back."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from gpubench.node.watch import host
from gpubench.node.watch.host import HostReadingError, ProcessTree

BURN = """
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
"""


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[str]]:
    """A child that runs `code`; it may print lines and read lines."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import os, sys, time\n" + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def line(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


def tell(child: subprocess.Popen[str]) -> None:
    assert child.stdin
    child.stdin.write("\n")
    child.stdin.flush()


# ---------------------------------------------------------------- whole CPUs


def test_one_busy_core_is_read_back() -> None:
    core = min(os.sched_getaffinity(0))
    with python(f"os.sched_setaffinity(0, [{core}])\nprint('up', flush=True)\nwhile True: pass") as child:
        line(child)
        t0, before = time.monotonic(), host.read_cpu_time([core])
        time.sleep(1.0)
        t1, after = time.monotonic(), host.read_cpu_time([core])
    usable = (t1 - t0) - (after.stolen - before.stolen)
    assert 100 * (after.busy - before.busy) / usable == pytest.approx(100, abs=2)


def test_a_kernel_that_counts_nothing_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        host, "_read_kernel_file", lambda _: b"cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nintr 0\n"
    )
    with pytest.raises(HostReadingError, match="no CPU times"):
        host.read_cpu_time([0])


def test_idle_waiting_and_stolen_time_is_not_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 100 200 8 16 400 1 2\ncpu1 5 5 5 5 5 5 5 5 5 5\nintr 0\n"
    monkeypatch.setattr(host, "_read_kernel_file", lambda _: text)
    time_ = host.read_cpu_time([0])
    tick = os.sysconf("SC_CLK_TCK")
    assert (time_.busy * tick, time_.stolen * tick) == pytest.approx((31, 400))


def test_cgroup_time_of_both_versions(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "cpuacct.usage").write_text("2500000000\n")
    assert host.read_cgroup_cpu_s(str(tmp_path / "cpu.stat")) == 2.5
    assert host.read_cgroup_cpu_s(str(tmp_path / "cpuacct.usage")) == 2.5
    with pytest.raises(HostReadingError, match="No such file"):
        host.read_cgroup_cpu_s(str(tmp_path / "gone" / "cpu.stat"))


# ---------------------------------------------------------------- CPU seconds of a tree


def test_the_tree_holds_grandchildren_and_those_forked_by_threads() -> None:
    code = (
        "import threading\n"
        "def fork():\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        time.sleep(60)\n"
        "    print('up', flush=True); time.sleep(60)\n"
        "threading.Thread(target=fork, daemon=True).start()\ntime.sleep(60)"
    )
    with python(code) as child:
        line(child)
        time.sleep(0.1)
        tree = ProcessTree(child.pid)
        pids = tree.list_pids()
        assert pids[0] == child.pid
        below = psutil.Process(child.pid).children(recursive=True)
        assert set(pids) == {child.pid, *(process.pid for process in below)}
        assert len(pids) == 3
        for pid in pids[1:]:
            os.kill(pid, 9)


def test_the_total_never_falls_while_children_come_and_go() -> None:
    code = (
        BURN + "end = time.monotonic() + 2.0\nprint('up', flush=True)\n"
        "while time.monotonic() < end:\n"
        "    pids = [os.fork() for _ in range(1)]\n"
        "    if pids[0] == 0: burn(0.01); os._exit(0)\n"
        "    os.waitpid(pids[0], 0)\n"
        "t = os.times(); print(t.user + t.system + t.children_user + t.children_system, flush=True)\n"
        "sys.stdin.readline()"
    )
    with python(code) as child:
        line(child)
        tree, totals = ProcessTree(child.pid), []
        end = time.monotonic() + 2.1
        while time.monotonic() < end:
            totals.append(tree.read_cpu_s())
            time.sleep(0.001)
        truth = float(line(child))
        last = tree.read_cpu_s()
    assert totals == sorted(totals)
    assert len(totals) > 200
    # The kernel's own count, not a walk's double.
    assert last == pytest.approx(truth, abs=0.03)


def test_a_child_reaped_in_the_middle_of_a_walk_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        BURN + "pid = os.fork()\n"
        "if pid == 0: burn(0.3); print('burnt', flush=True); time.sleep(60)\n"
        "sys.stdin.readline(); os.kill(pid, 9); os.waitpid(pid, 0)\n"
        "print('reaped', flush=True); time.sleep(60)"
    )
    real = host._read_thread_children
    with python(code) as child:
        line(child)
        tree = ProcessTree(child.pid)
        tree.list_pids()

        def reaped_meanwhile(pid: int, thread: int) -> list[int]:
            if pid == child.pid and real(pid, thread):
                tell(child)
                line(child)
            return real(pid, thread)

        monkeypatch.setattr(host, "_read_thread_children", reaped_meanwhile)
        assert tree.read_cpu_s() >= 0.28


def test_a_tree_without_its_root_has_a_reason() -> None:
    with python("time.sleep(60)") as child:
        tree = ProcessTree(child.pid)
        tree.read_cpu_s()
    for read in (tree.read_cpu_s, tree.list_pids, tree.read_pss_mib):
        with pytest.raises(HostReadingError, match="is gone"):
            read()


# ---------------------------------------------------------------- memory


def test_pages_shared_in_the_tree_count_once() -> None:
    mib = 200
    code = (
        f"import mmap; m = mmap.mmap(-1, {mib} << 20)\n"
        "for i in range(0, len(m), 4096): m[i] = 1\n"
        "kids = []\n"
        "for _ in range(3):\n"
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        sum(m[i] for i in range(0, len(m), 4096)); print('up', flush=True); time.sleep(60)\n"
        "    kids.append(pid)\n"
        "sys.stdin.readline(); [os.kill(k, 9) for k in kids]; print('done', flush=True); sys.stdin.readline()"
    )
    with python(code) as child:
        for _ in range(3):
            line(child)
        pss = ProcessTree(child.pid).read_pss_mib()
        tell(child)
        line(child)
    # Resident memory would say four times as much.
    assert mib < pss < mib + 60
