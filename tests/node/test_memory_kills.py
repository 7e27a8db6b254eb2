"""The kernel's count of what it killed for memory, as cgroups of both kinds and /proc tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpubench.node.cgroup import find_oom_kill_counter

V2 = "low 0\nhigh 3\nmax 7\noom 1\noom_kill {}\noom_group_kill 9\n"
V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"


@pytest.mark.parametrize(
    ("membership", "file", "text", "where"),
    [
        ("0::/a/b\n", "sys/a/b/memory.events", V2, "this cgroup"),
        ("0::/a/b\n", "sys/memory.events", V2, "this cgroup"),  # a container: its own is mounted as the root
        ("0::/../x\n", "sys/memory.events", V2, "this cgroup"),
        ("4:memory:/a\n0::/\n", "sys/memory/a/memory.oom_control", V1, "this cgroup"),
        ("4:memory:/a\n0::/\n", "sys/memory/memory.oom_control", V1, "this cgroup"),
        ("9:cpu:/a\n", "vmstat", "nr_free_pages 5\noom_kill {}\n", "this host"),
    ],
)
def test_where_it_is_told(tmp_path: Path, membership: str, file: str, text: str, where: str) -> None:
    (tmp_path / "cgroup").write_text(membership)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(4))
    found = find_oom_kill_counter(tmp_path / "cgroup", tmp_path / "sys", tmp_path / "vmstat")
    assert found is not None
    assert (found.read_kill_count(), found.where) == (4, where)
    path.write_text(text.format(6))
    assert found.read_kill_count() == 6
    path.unlink()
    assert found.read_kill_count() == 0


def test_the_nearest_counts(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("0::/a\n")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "memory.events").write_text(V2.format(1))
    (tmp_path / "memory.events").write_text(V2.format(50))
    found = find_oom_kill_counter(tmp_path / "cgroup", tmp_path, tmp_path / "vmstat")
    assert found is not None
    assert found.read_kill_count() == 1
