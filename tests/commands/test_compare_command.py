"""`gpubench compare`, as users and their CI run it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import committed
import pytest
from swept import swept
from warm_command import WarmCommand

Compare = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def compare(warm_command: WarmCommand, home: Path) -> Compare:
    """Runs `gpubench compare` with these arguments beside the folders a and b."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        given = ("compare", *map(str, arguments))
        return warm_command.run(given, cwd=home, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def measured_again(source: Path, target: Path, times: dict[int, list[float]], **environment: str) -> Path:
    """A copy of a folder, where the processes of a batch size took these times, one a repeat."""
    shutil.copytree(source, target)
    for path in sorted((target / "records").glob("*/*.json")):
        told = json.loads(path.read_text())
        size, repeat = told["trial"]["batch_size"], told["trial"]["repeat"]
        told["result"]["epoch_time_s"] = times[size][repeat]
        told["environment"] |= environment
        told["started_at"] = f"2026-01-01 00:00:0{1 if target.name == 'a' else 2}"
        path.write_text(json.dumps(told))
    return target


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders: of 16, 32 and 64, the first is 10 % slower in b, the second as fast, the third not to tell."""
    home = tmp_path_factory.mktemp("folders")
    swept(home / "x", "one", "16,32,64", repeats=3)
    even = [1.0, 1.001, 0.999]
    wide = [1.0, 1.5, 0.7]
    measured_again(home / "x", home / "a", {16: even, 32: even, 64: wide})
    slower = [one * 1.1 for one in even]
    measured_again(home / "x", home / "b", {16: slower, 32: even[::-1], 64: wide[::-1]}, torch="99.0")
    return home


def read_fields(data: dict[str, Any], side: str) -> list[dict[str, Any]]:
    """The fields of the trials that were compared, on one side."""
    return [data["rows"][str(trial[side])]["fields"] for trial in data["trials"]]


def answers(ended: subprocess.CompletedProcess[str]) -> dict[int, tuple[str, str]]:
    data = json.loads(ended.stdout)
    sizes = [fields["batch_size"] for fields in read_fields(data, "b")]
    times = [trial["time"] for trial in data["trials"]]
    return {size: (time["answer"], time["verdict"]) for size, time in zip(sizes, times, strict=True)}


def plain(ended: subprocess.CompletedProcess[str]) -> str:
    """What was printed, on one line."""
    return " ".join(ended.stdout.split())


@pytest.mark.slow
def test_each_trial_is_faster_slower_the_same_or_unknown(compare: Compare) -> None:
    others = {32: ("the same", "sure"), 64: ("unknown", "unknown")}
    assert answers(compare("a", "b", "--json")) == {16: ("slower", "sure"), **others}
    assert answers(compare("b", "a", "--json")) == {16: ("faster", "sure"), **others}
    ended = compare("a", "b")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "1 slower; 1 the same; 1 unknown." in plain(ended)
    assert " slower +10.0 (" in plain(ended)
    assert re.search(r"torch \S+ against 99\.0\.", plain(ended))


@pytest.mark.slow
def test_the_exit_code_tells_ci_of_a_regression(compare: Compare) -> None:
    ended = compare("a", "b", "--threshold", "5%")
    assert ended.returncode == 3
    assert "Regression beyond 5 %: Time per image of 1 trial." in plain(ended)
    assert "slower, regression +10.0 (" in plain(ended)
    assert compare("a", "b", "--threshold", "20%").returncode == 0
    assert compare("b", "a", "--threshold", "5%").returncode == 0
    # 64 is unknown, and that is told only where somebody asks for it.
    assert compare("b", "a", "--threshold", "5%", "--strict").returncode == 3


@pytest.mark.slow
def test_a_trial_that_broke_is_a_regression_and_one_that_is_gone_only_where_that_is_asked(
    compare: Compare, home: Path, tmp_path: Path
) -> None:
    b = shutil.copytree(home / "b", tmp_path / "b")
    for path in (b / "records").glob("*/*.json"):
        told = json.loads(path.read_text())
        if told["trial"]["batch_size"] == 16:
            path.write_text(json.dumps(told | {"status": "oom", "reason": "no room"}))
    ended = compare("a", b, "--threshold", "5%")
    assert ended.returncode == 3
    assert "out of memory in B of 1 trial." in plain(ended)
    for path in (b / "records").glob("*/*.json"):
        if json.loads(path.read_text())["trial"]["batch_size"] in (16, 64):
            path.unlink()
    shutil.rmtree(b / "plans")
    assert compare("a", b, "--threshold", "5%").returncode == 0
    ended = compare("a", b, "--threshold", "5%", "--strict")
    assert ended.returncode == 3
    assert "Only in A: 2 trials:" in ended.stdout


@pytest.mark.slow
def test_where_nothing_can_be_compared_a_check_does_not_pass(compare: Compare, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (record,) = (tmp_path / "b" / "records").glob("*/*.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted"}))
    ended = compare(tmp_path / "a", tmp_path / "b", "--threshold", "5%")
    assert (ended.returncode, ended.stderr) == (4, "")
    assert "No regression" not in ended.stdout
    ended = compare(tmp_path / "a", tmp_path / "b", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["obstacle"]) == (4, "none-ok")


def test_a_threshold_needs_a_figure_that_it_is_for(compare: Compare) -> None:
    ended = compare("a", "b", "--figures", "top1", "--threshold", "5%", "--strict")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "--threshold is for" in ended.stderr
    # These were measured without a GPU: no memory is there to compare.
    ended = compare("a", "b", "--figures", "cpu,memory", "--threshold", "5%")
    assert (ended.returncode, "No regression" in ended.stdout) == (4, False)


@pytest.mark.slow
def test_two_values_of_a_field_inside_one_folder(compare: Compare) -> None:
    here = committed.folder("h200x4-2026")
    ended = compare(here, "--field", "strategy=dp,ddp", "--json")
    data = json.loads(ended.stdout)
    assert {fields["strategy"] for fields in read_fields(data, "a")} == {"dp"}
    assert {fields["strategy"] for fields in read_fields(data, "b")} == {"ddp"}
    times = [trial["time"] for trial in data["trials"]]
    assert {process for time in times for claim in time["claims"] for process in claim["processes"]} == {1}
    assert {(time["answer"], time["verdict"]) for time in times} == {("faster", "likely")}, (
        "one process: never sure"
    )
    ended = compare(here, "--field", "strategy=dp,fsdp")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "has strategy=fsdp" in ended.stderr
