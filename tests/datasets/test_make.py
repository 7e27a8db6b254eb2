from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from photo_trees import tree

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.datasets import folder, make, marker
from gpubench.datasets.built import format_bytes

SMALL = make.make_procedural_marker(images=40, val_images=8, classes=4, size=(48, 36))

MAKE = """
import sys
from pathlib import Path
from gpubench.datasets.make import make_procedural_images, make_procedural_marker
calls = []
recipe = make_procedural_marker(images=int(sys.argv[2]), val_images=8, classes=4, size=(48, 36))
make_procedural_images(recipe, Path(sys.argv[1]), processes=2, progress=lambda done, total: calls.append(done))
print(sum(done > 0 for done in calls))
"""
"""No main guard: workers must not run the caller's script again."""


def start(root: Path, images: int = 40, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKE, str(root), str(images)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)  # type: ignore[call-overload,no-any-return]


def children_of(pid: int) -> list[int]:
    return [int(k) for k in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_workers(pid: int) -> list[int]:
    for _ in range(500):
        if workers := children_of(pid):
            return workers
        time.sleep(0.01)
    raise AssertionError("no workers")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_makes_what_it_says_and_says_what_it_makes_in_any_number_of_processes(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    root, other = tmp_path / "made", tmp_path / "other"
    other.mkdir()  # an empty one is taken
    facts = make.make_procedural_images(
        SMALL, root, progress=lambda done, total: seen.append((done, total)), processes=3
    )
    assert (facts.train_images, facts.val_images, facts.num_classes, facts.size) == (40, 8, 4, None)
    assert len(folder.list_images(root, "train")) == 40
    assert [label for _, label in folder.list_images(root, "val")] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert facts.fingerprint == SMALL.fingerprint == folder.collect_folder_facts(root).fingerprint
    assert json.loads((root / marker.NAME).read_text())["fingerprint"] == facts.fingerprint
    assert (seen[0], seen[-1]) == ((0, 48), (48, 48))
    assert seen == sorted(seen)
    make.make_procedural_images(SMALL, other, processes=1)
    before = tree(root)
    assert tree(other) == before
    with pytest.raises(UsageError, match="holds something else"):
        make.make_procedural_images(make.make_procedural_marker(40, 8, 4, 1, (48, 36)), root)
    assert tree(root) == before
    Path(folder.list_images(root, "train")[5][0]).unlink()
    assert folder.collect_folder_facts(root).fingerprint != facts.fingerprint
    with pytest.raises(UnusableError, match="lost or gained files"):
        make.make_procedural_images(SMALL, root)


def test_every_part_of_the_recipe_has_its_own_fingerprint_and_place() -> None:
    recipes = [
        make.make_procedural_marker(),
        make.make_procedural_marker(images=640),
        make.make_procedural_marker(val_images=64),
        make.make_procedural_marker(classes=8),
        make.make_procedural_marker(seed=1),
        make.make_procedural_marker(size=(96, 72)),
    ]
    assert len({recipe.fingerprint for recipe in recipes}) == len(recipes)
    assert len({make.make_procedural_root_path(recipe) for recipe in recipes}) == len(recipes)


@pytest.mark.slow
def test_two_processes_at_once_make_it_once(tmp_path: Path) -> None:
    both = [start(tmp_path / "made", 120) for _ in range(2)]
    outputs = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    calls = sorted(int(out) for out, _ in outputs)
    assert calls[0] == 0 < calls[1]
    assert folder.collect_folder_facts(tmp_path / "made").train_images == 120
    assert sorted(p.name for p in tmp_path.iterdir()) == [".made.lock", "made"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_build_that_is_stopped_leaves_no_finished_folder_and_no_processes(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Killed by itself, or with all that its terminal interrupts: of that the workers hear nothing."""
    process = start(tmp_path / "made", 20_000, start_new_session=True)
    workers = wait_for_workers(process.pid)
    time.sleep(0.3)
    (os.kill if number == signal.SIGKILL else os.killpg)(process.pid, number)
    _, errors = process.communicate(timeout=30)
    assert not (tmp_path / "made").exists()
    for _ in range(500):
        if not any(map(is_running, workers)):
            break
        time.sleep(0.01)
    assert not any(map(is_running, workers))
    if number == signal.SIGINT:
        assert errors.count("Traceback") == 1  # the parent's own KeyboardInterrupt
        assert [p.name for p in tmp_path.iterdir()] == [".made.lock"]
        return
    assert list(tmp_path.glob(".made.partial-*"))  # nobody could clean up: the next one does
    make.make_procedural_images(SMALL, tmp_path / "made")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".made.lock", "made"]


def test_a_disk_that_refuses_ends_in_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))\n"
        "from gpubench.basics.errors import UnusableError\n"
        f"try:\n    exec({MAKE!r})\nexcept UnusableError as error:\n    print(error)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "made"), "40"], capture_output=True, text=True
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith(f"can't write {tmp_path / 'made'}: File too large; free some room")
    assert len(out.stdout.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir()] == [".made.lock"]


@pytest.mark.parametrize("wrong", [{"classes": 0}, {"classes": 1001}, {"images": 3}, {"size": (10, 10)}])
def test_a_recipe_that_cannot_be_made_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        make.make_procedural_marker(**wrong)


def test_amounts_read_as_people_say_them() -> None:
    assert [format_bytes(n) for n in (1_056_000_000, 104_000_000, 38_400_000, 10)] == [
        "1.1 GB",
        "0.1 GB",
        "38.4 MB",
        "0.1 MB",
    ]
