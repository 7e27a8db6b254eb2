"""`gpubench compare`, as users and their CI run it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import committed
import pytest
from PIL import Image
from swept import swept
from warm_command import WarmCommand

from gpubench.analyze.series import CANDIDATES

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
    assert "slower in 1 of 3" in plain(ended)
    assert "(+10.0 %, sure)" in plain(ended)
    assert re.search(r"torch \S+ against 99\.0\.", plain(ended))


@pytest.mark.slow
def test_two_variants_are_checked_against_a_threshold_as_two_values_of_any_field(compare: Compare) -> None:
    """What a variant does differs, for that was asked to: the pairs were called a guess, and nothing was checked."""
    folder = committed.folder("h200-cpus-2026")
    asked = (folder, "--field", "variant=crop-resize,pre-resized")
    ended = compare(*asked, "--threshold", "5%")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "guess" not in ended.stdout
    assert "Not alike" not in ended.stdout
    assert "No regression beyond 5 %" in ended.stdout
    data = json.loads(compare(*asked, "--json").stdout)
    for side, variant in (("a", "crop-resize"), ("b", "pre-resized")):
        assert [fields["variant"] for fields in read_fields(data, side)] == [variant] * 4


@pytest.mark.slow
def test_images_that_a_variant_names_itself_are_told_and_no_guess(
    compare: Compare, warm_command: WarmCommand, home: Path
) -> None:
    for name, count in (("ducks", 24), ("geese", 16)):
        for place in (home / name / split / kind for split in ("train", "val") for kind in ("a", "b")):
            place.mkdir(parents=True)
            for number in range(count):
                Image.new("RGB", (40, 30), (number, 0, 0)).save(place / f"{number}.png")
    (home / "own.toml").write_text(
        'name = "own"\n[fixed]\nmodel = "lenet"\ndata = "ducks"\ninput_size = 28\nbatch_size = 8\ndevice = "cpu"\n'
        '[axes]\nvariant = ["crop-resize", "other"]\n[variants.other]\nfiles = "full"\ndata = "geese"\n'
        'cpu = [{RandomResizedCrop = {size = "$input_size"}}]\n[run]\nrounds = 1\nepochs = 2\n'
    )
    given = ("sweep", "own.toml", "--out", "own", "-q")
    done = warm_command.run(given, cwd=home, env={"PATH": "/usr/bin:/bin"}, timeout=120)
    assert done.returncode == 0, done.stderr
    ended = compare("own", "--field", "variant=crop-resize,other")
    assert "data ducks against geese; " in plain(ended)
    assert "guess" not in ended.stdout


@pytest.mark.slow
def test_a_trial_that_has_not_run_yet_is_the_other_side_s(compare: Compare, home: Path) -> None:
    """Of the only trial of a variant nothing says yet what that does, nor which images it reads: it was listed as two,
    "Only in A" and "Only in B". The ids of both are made of that."""
    for place in (home / "birds" / split / name for split in ("train", "val") for name in ("a", "b")):
        place.mkdir(parents=True)
        for number in range(16):
            Image.new("RGB", (40, 30), (number, 0, 0)).save(place / f"{number}.png")
    of = {"variant": "crop-resize,cached", "data": str(home / "birds"), "input_size": "28"}
    swept(home / "full", "one", "16", **of)
    shutil.copytree(home / "full", home / "half")
    (record,) = (
        path
        for path in (home / "half" / "records").glob("*/*.json")
        if json.loads(path.read_text())["trial"]["variant"] == "cached"
    )
    record.unlink()
    ended = compare("full", "half")
    assert ended.returncode == 0
    assert "Only in" not in ended.stdout
    assert "  cached (ok in A, " in ended.stdout
    assert ", ok in B)\n" in compare("half", "full").stdout
    assert compare("full", "half", "--threshold", "5%", "--strict").returncode == 3


def test_a_field_whose_values_are_the_sides_names_them_and_no_trial(compare: Compare) -> None:
    ended = compare("a", "--field", "batch_size=16,64")
    assert ended.stdout.startswith("A: batch 16 in a; ")
    assert "\nthe only trial  " in ended.stdout


@pytest.mark.slow
def test_a_figure_that_was_asked_for_and_not_measured_is_told(compare: Compare) -> None:
    ended = compare("a", "b", "--figures", "time,energy")
    assert ended.returncode == 0
    assert "Energy per image: " in plain(ended)
    assert "Energy" not in compare("a", "b").stdout


@pytest.mark.slow
def test_the_exit_code_tells_ci_of_a_regression(compare: Compare) -> None:
    ended = compare("a", "b", "--threshold", "5%")
    assert ended.returncode == 3
    assert "batch 16 +10.0 %." in plain(ended)
    assert compare("a", "b", "--threshold", "20%").returncode == 0
    assert compare("b", "a", "--threshold", "5%").returncode == 0
    # 64 is unknown, and that is told only where somebody asks for it.
    assert compare("b", "a", "--threshold", "5%", "--strict").returncode == 3
    # Measured without a GPU.
    assert compare("a", "b", "--figures", "memory").returncode == 4


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
    assert "in B: batch 16." in plain(ended)
    for path in (b / "records").glob("*/*.json"):
        if json.loads(path.read_text())["trial"]["batch_size"] in (16, 64):
            path.unlink()
    shutil.rmtree(b / "plans")
    assert compare("a", b, "--threshold", "5%").returncode == 0
    ended = compare("a", b, "--threshold", "5%", "--strict")
    assert ended.returncode == 3
    assert "Only in A: 2 trials:" in ended.stdout
    # The same processes on both sides, but for a trial that broke since.
    copy = shutil.copytree(home / "a", tmp_path / "copy")
    path = min((copy / "records").glob("*/*.json"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "failed", "reason": "it broke"}))
    assert compare("a", copy).returncode == 0


@pytest.mark.slow
def test_where_nothing_can_be_compared_a_check_does_not_pass(compare: Compare, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (record,) = (tmp_path / "b" / "records").glob("*/*.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted"}))
    ended = compare(tmp_path / "a", tmp_path / "b", "--threshold", "5%")
    assert ended.returncode == 4
    assert ended.stderr == ""
    assert "No regression" not in ended.stdout
    ended = compare(tmp_path / "a", tmp_path / "b", "--threshold", "5%", "--json", "--strict")
    assert (ended.returncode, json.loads(ended.stdout)["obstacle"]) == (4, "none-ok")
    assert compare(tmp_path / "a", tmp_path / "b").returncode == 4


@pytest.mark.slow
def test_a_folder_is_not_compared_with_itself(compare: Compare, home: Path, tmp_path: Path) -> None:
    for other in ("a", shutil.copytree(home / "a", tmp_path / "copy")):
        for threshold in ([], ["--threshold", "5%"]):
            ended = compare("a", other, *threshold)
            assert (ended.returncode, ended.stderr.count("\n")) == (4, 1)
    assert json.loads(compare("a", "a", "--json").stdout)["obstacle"] == "same-processes"
    # One trial that was measured again is something to compare.
    measured = tmp_path / "copy" / "records"
    path = next(path for path in sorted(measured.glob("*/*.json")) if "-1-" in path.name)
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"started_at": "2026-01-02 00:00:00"}))
    assert compare("a", tmp_path / "copy").returncode == 0


def test_a_threshold_needs_a_figure_that_it_is_for(compare: Compare) -> None:
    ended = compare("a", "b", "--figures", "top1", "--threshold", "5%", "--strict")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "--threshold is for" in ended.stderr
    assert compare("a", "b", "--figures", "cpu,time", "--threshold", "5%").returncode == 3
    # These were measured without a GPU: no memory is there to compare.
    ended = compare("a", "b", "--figures", "cpu,memory", "--threshold", "5%")
    assert (ended.returncode, "No regression" in ended.stdout) == (4, False)


@pytest.mark.slow
def test_pairs_that_are_a_guess_fail_no_check(compare: Compare, tmp_path: Path) -> None:
    times = {16: [3.0, 3.001, 2.999], 32: [3.0] * 3, 64: [3.0] * 3}
    swept(tmp_path / "x", "one", "16,32,64", repeats=3, optimizer="adam")
    b = measured_again(tmp_path / "x", tmp_path / "b", times)
    ended = compare("a", b, "--threshold", "5%")
    assert ended.returncode == 4
    assert "No regression" not in ended.stdout
    assert "slower" in ended.stdout
    assert "slower, regression" not in ended.stdout
    assert compare("a", b).returncode == 0


def test_memory_says_what_it_is_taken_for(compare: Compare, home: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(home / "b", tmp_path / name) for name in ("a", "b")]
    for folder, mib in zip(folders, (10_000, 10_010), strict=True):
        for path in (folder / "records").glob("*/*.json"):
            told = json.loads(path.read_text())
            told["result"] |= {"gpu_mem_mib": mib, "gpu_mem_source": "nvml-process"}
            told["started_at"] = f"2026-01-01 00:00:0{folder.name == 'a':d}"
            path.write_text(json.dumps(told))
    ended = compare(*folders, "--figures", "memory", "--threshold", "0.05%")
    assert ended.returncode == 0
    assert "No regression beyond 0.05 %" in plain(ended)
    assert "up to 0.3 %: " in plain(ended)
    assert compare(*folders, "--figures", "memory", "--threshold", "0.1%", "--strict").returncode == 0


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
    for wrong, said in (
        ("strategy=dp", "takes two values"),
        ("strategy=dp,fsdp", "has strategy=fsdp; there are: ddp, dp"),
        ("stategy=dp,ddp", "did you mean strategy?"),
    ):
        ended = compare(here, "--field", wrong)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert said in ended.stderr


@pytest.mark.slow
def test_unlike_kinds_of_time_are_not_compared(compare: Compare, home: Path) -> None:
    swept(home / "rate", "one", "16", window="2s")
    ended = compare("x", "rate")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.count("\n") == 1
    assert "--epochs 2" in ended.stderr
    assert compare("rate", "x").returncode == 4
    ended = compare(committed.folder("titan-xp-2021"), committed.folder("h200x4-2026"))
    assert (ended.returncode, ended.stdout) == (4, "")
    # Nobody measures 2021 again.
    assert "--epochs" not in ended.stderr


@pytest.mark.slow
def test_windows_of_unlike_length_are_compared(compare: Compare, home: Path) -> None:
    swept(home / "short", "one", "16", steps="20")
    swept(home / "long", "one", "16", window="2s")
    data = json.loads(compare("short", "long", "--json").stdout)
    assert [fields["window"] for fields in read_fields(data, "b")] == [2.0]


@pytest.mark.slow
def test_forms_and_order(compare: Compare) -> None:
    marked = compare("a", "b", "--markdown").stdout
    assert marked.startswith("A: a; 3 trials; ")
    assert "| B is |" in marked
    ended = compare("b", "a", "--sort", "time")
    trials = ended.stdout.split("Time per image (ms)\n")[1].splitlines()
    # The fastest of B comes last.
    assert trials[2].startswith("batch 16 ")
    assert compare("a", "b", "--sort", "nothing").returncode == 2
    assert compare("a").returncode == 2
    assert compare("a", "nowhere").returncode == 4
    assert compare("a", "b", "--strict").returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("form", ["--markdown", "--json", "--threshold=5%"])
def test_every_form_can_be_said_on_a_c_locale(home: Path, form: str) -> None:
    shutil.copytree(home / "a", home / "ä", dirs_exist_ok=True)
    environment = {"PATH": "/usr/bin:/bin", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = subprocess.run(
        [sys.executable, "-m", "gpubench", "compare", home / "ä", home / "b", form], env=environment,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (3 if "5%" in form else 0, b"")
    assert b"+10.0" in ended.stdout


def test_json_has_its_fields_in_the_same_order_each_time(compare: Compare) -> None:
    fields = list(read_fields(json.loads(compare("a", "b", "--json").stdout), "a")[0])
    assert fields == [name for name in CANDIDATES if name in fields]
