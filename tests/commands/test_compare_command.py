"""`gpubench compare`, as users and their CI run it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import committed
import pytest
from swept import swept
from warm_command import WarmCommand

from gpubench.basics.errors import UsageError
from gpubench.commands import compare as compare_command


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str], home: Path) -> Callable[..., tuple[int, str]]:
    """What `gpubench compare` does of two folders beside a and b: its exit code and what it prints."""

    def run(a: str | Path, b: str | Path, **options: Any) -> tuple[int, str]:
        code = compare_command.compare([home / a, home / b], **options)
        return code, " ".join(capsys.readouterr().out.split())

    return run


Compare = Callable[..., tuple[int, str]]


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


def read_answers(text: str) -> dict[int, tuple[str, str]]:
    data = json.loads(text)
    sizes = [data["rows"][str(trial["b"])]["fields"]["batch_size"] for trial in data["trials"]]
    times = [trial["time"] for trial in data["trials"]]
    return {size: (time["answer"], time["verdict"]) for size, time in zip(sizes, times, strict=True)}


@pytest.mark.slow
def test_each_trial_is_faster_slower_the_same_or_unknown(compare: Compare) -> None:
    others = {32: ("the same", "sure"), 64: ("unknown", "unknown")}
    assert read_answers(compare("a", "b", form="json")[1]) == {16: ("slower", "sure"), **others}
    assert read_answers(compare("b", "a", form="json")[1]) == {16: ("faster", "sure"), **others}


@pytest.mark.slow
def test_the_exit_code_tells_ci_of_a_regression(
    compare: Compare, warm_command: WarmCommand, home: Path
) -> None:
    given = ("compare", "a", "b", "--threshold", "5%")
    ended = warm_command.run(given, cwd=home, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    text = " ".join(ended.stdout.split())
    assert (ended.returncode, ended.stderr) == (3, "")
    assert "Regression beyond 5 %: Time per image of 1 trial." in text
    assert "1 slower; 1 the same; 1 unknown." in text
    assert "slower, regression +10.0 (" in text
    assert re.search(r"torch \S+ against 99\.0\.", text)
    assert compare("a", "b", threshold="20%")[0] == 0
    assert compare("b", "a", threshold="5%")[0] == 0
    # 64 is unknown, and that is told only where somebody asks for it.
    assert compare("b", "a", threshold="5%", strict=True)[0] == 3


@pytest.mark.slow
def test_a_trial_that_broke_is_a_regression_and_one_that_is_gone_only_where_that_is_asked(
    compare: Compare, home: Path, tmp_path: Path
) -> None:
    b = shutil.copytree(home / "b", tmp_path / "b")
    for path in (b / "records").glob("*/*.json"):
        record = json.loads(path.read_text())
        if record["trial"]["batch_size"] == 16:
            path.write_text(json.dumps(record | {"status": "oom", "reason": "no room"}))
    code, text = compare("a", b, threshold="5%")
    assert (code, "out of memory in B of 1 trial." in text) == (3, True)
    for path in (b / "records").glob("*/*.json"):
        if json.loads(path.read_text())["trial"]["batch_size"] in (16, 64):
            path.unlink()
    shutil.rmtree(b / "plans")
    assert compare("a", b, threshold="5%")[0] == 0
    code, text = compare("a", b, threshold="5%", strict=True)
    assert (code, "Only in A: 2 trials:" in text) == (3, True)


@pytest.mark.slow
def test_where_nothing_can_be_compared_a_check_does_not_pass(compare: Compare, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (record,) = (tmp_path / "b" / "records").glob("*/*.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted"}))
    code, text = compare(tmp_path / "a", tmp_path / "b", threshold="5%")
    assert (code, "No regression" in text) == (4, False)
    code, text = compare(tmp_path / "a", tmp_path / "b", form="json")
    assert (code, json.loads(text)["obstacle"]) == (4, "none-ok")


def test_a_threshold_needs_a_figure_that_it_is_for(compare: Compare) -> None:
    with pytest.raises(UsageError, match="--threshold is for"):
        compare("a", "b", figures="top1", threshold="5%", strict=True)
    # These were measured without a GPU: no memory is there to compare.
    code, text = compare("a", "b", figures="cpu,memory", threshold="5%")
    assert (code, "No regression" in text) == (4, False)


@pytest.mark.slow
def test_two_values_of_a_field_inside_one_folder(capsys: pytest.CaptureFixture[str]) -> None:
    folder = [committed.folder("h200x4-2026")]
    assert compare_command.compare(folder, field="strategy=dp,ddp", form="json") == 0
    data = json.loads(capsys.readouterr().out)
    for side, strategy in (("a", "dp"), ("b", "ddp")):
        fields = [data["rows"][str(trial[side])]["fields"] for trial in data["trials"]]
        assert {known["strategy"] for known in fields} == {strategy}
    times = [trial["time"] for trial in data["trials"]]
    assert {process for time in times for claim in time["claims"] for process in claim["processes"]} == {1}
    assert {(time["answer"], time["verdict"]) for time in times} == {("faster", "likely")}, (
        "one process: never sure"
    )
    with pytest.raises(UsageError, match="has strategy=fsdp"):
        compare_command.compare(folder, field="strategy=dp,fsdp")
