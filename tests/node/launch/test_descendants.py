"""No signal to a process that is not ours, not even to one that has got the number of one that was."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from gpubench.node.launch import descendants
from gpubench.node.launch.descendants import find_process, kill_processes

SLEEPS = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
REUSED = """
import os, subprocess, sys, time
from pathlib import Path
import psutil
from gpubench.node.launch import descendants

def end(child):
    os.killpg(child.pid, 9)
    try:
        while True:  # this is process 1 here: its orphans, too, or the group keeps the number
            os.wait()
    except ChildProcessError:
        pass

def started(number=None):
    for _ in range(200):
        if number is not None:
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
        # With a child of its own.
        child = subprocess.Popen(["sh", "-c", "sleep 600 & echo; wait"], stdout=subprocess.PIPE, process_group=0)
        child.stdout.readline()
        if number in (None, child.pid):
            return child
        end(child)
    print("no number came back"); sys.exit()

what = sys.argv[1]
first = started()
known = descendants.find_process(first.pid)
end(first)
time.sleep(0.05)  # beginnings are told in hundredths of a second
other = started(first.pid)
assert other.pid == first.pid
if what == "kill_processes":
    descendants.kill_processes([known])
elif what == "kill_process_group":
    descendants.kill_process_group(known)
else:
    print(descendants.list_descendants(known))
time.sleep(0.05)
print("lives" if other.poll() is None else "was killed")
os.killpg(other.pid, 9)
"""


@pytest.mark.parametrize("what", ["kill_processes", "kill_process_group", "list_descendants"])
def test_who_has_got_a_dead_process_s_number_is_left_alone(what: str) -> None:
    inside = [sys.executable, "-c", textwrap.dedent(REUSED), what]
    out = subprocess.run(
        ["unshare", "-r", "-p", "-f", "--mount-proc", *inside], capture_output=True, text=True, timeout=60
    )
    if out.returncode != 0 and ("unshare" in out.stderr or "ns_last_pid" in out.stderr):
        pytest.skip("this machine lets nobody choose a process's number")
    if out.stdout == "no number came back\n":
        pytest.skip("the kernel gave the number to nobody")
    assert out.stdout == ("[]\n" if what == "list_descendants" else "") + "lives\n", out.stderr


def test_all_below_a_process_are_found_and_killed() -> None:
    code = f"import subprocess; p = subprocess.Popen({SLEEPS!r}); p.wait()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (child,) = descendants.list_descendants(find_process(parent.pid))
        kill_processes([child])
        assert parent.wait(10) == 0
        kill_processes([child])  # twice is once
    assert not child.is_running()
    assert descendants.list_descendants(find_process(parent.pid)) == []
