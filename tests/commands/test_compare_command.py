"""`gpubench compare`, as users and their CI run it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import committed
import pytest
from PIL import Image
from swept import swept
from warm_command import WarmCommand

from gpubench.schema.trial_fields import FIELDS

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


def answers(ended: subprocess.CompletedProcess[str]) -> dict[int, str]:
    trials = json.loads(ended.stdout)["trials"]
    return {one["b"]["fields"]["batch_size"]: one["time"]["answer"] for one in trials}


def test_each_trial_is_faster_slower_the_same_or_open(compare: Compare) -> None:
    assert answers(compare("a", "b", "--json")) == {16: "slower", 32: "same", 64: "open"}
    assert answers(compare("b", "a", "--json")) == {16: "faster", 32: "same", 64: "open"}
    assert set(answers(compare("a", "a", "--json")).values()) == {"same", "open"}
    assert "3 trials rest on some of the same attempts on both sides" in compare("a", "a").stdout
    ended = compare("a", "b")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "of the same attempts" not in ended.stdout
    assert (
        "Time per image: of 3 trials B is slower in 1, the same inside 2 % in 1, open in 1."
        in ended.stdout.splitlines()
    )
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("Not alike")]
    assert line.endswith(" against 99.0")


def test_two_variants_are_checked_against_a_threshold_as_two_values_of_any_field(compare: Compare) -> None:
    """What a variant does differs, for that was asked to: the pairs were called a guess, and nothing was checked."""
    folder = committed.folder("h200-cpus-2026")
    asked = (folder, "--field", "variant=crop-resize,pre-resized")
    ended = compare(*asked, "--threshold", "5%")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "guess" not in ended.stdout
    assert "Not alike" not in ended.stdout
    assert "No regression beyond 5 % is shown" in ended.stdout
    told = json.loads(compare(*asked, "--json").stdout)
    assert [(one["a"]["fields"]["variant"], one["b"]["fields"]["variant"]) for one in told["trials"]] == [
        ("crop-resize", "pre-resized")
    ] * 4


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
    assert "Not alike, A against B: data ducks against geese; train_images 48 against 32\n" in ended.stdout
    assert "guess" not in ended.stdout


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
    assert "  variant=cached (ok in A, missing in B)\n" in ended.stdout
    assert "  variant=cached (missing in A, ok in B)\n" in compare("half", "full").stdout
    assert compare("full", "half", "--threshold", "5%", "--strict").returncode == 3


def test_off_a_terminal_a_and_b_and_the_answer_stand_in_one_line(compare: Compare, tmp_path: Path) -> None:
    for name in ("a", "b"):  # so many columns that 80 signs don't hold them
        swept(
            tmp_path / name,
            "one",
            "16",
            model="lenet,resnet18",
            precision="fp32,bf16",
            workers="1,2",
            memory_format="channels_last,contiguous",
        )
    grid = compare(tmp_path / "a", tmp_path / "b").stdout.split("Time per image\n")[1].split("\n\n")[0]
    lines = [line for line in grid.splitlines() if line.startswith(("lenet", "resnet18"))]
    assert len(lines) == 16
    assert all("open" in line for line in lines)


def test_a_field_whose_values_are_the_sides_is_no_column(compare: Compare) -> None:
    ended = compare("a", "--field", "batch_size=16,64")
    grid = ended.stdout.split("Time per image\n")[1].split("\n\n")[0]
    assert "batch_size" not in grid
    assert "batch_size=16 in a" in ended.stdout


def test_a_figure_that_was_asked_for_and_not_measured_is_told_with_the_reason(compare: Compare) -> None:
    ended = compare("a", "b", "--figures", "energy")
    assert ended.returncode == 0
    (line,) = [line for line in ended.stdout.splitlines() if line.startswith("Energy per image")]
    assert line == "Energy per image: no trial has it on both sides: the trial uses no GPU (A and B)."
    assert "Energy" not in compare("a", "b").stdout


def test_nothing_is_said_of_a_correction_for_a_single_claim(compare: Compare) -> None:
    assert "corrected for" not in compare("a", "--field", "batch_size=16,64").stdout
    assert "corrected for 3 claims together" in compare("a", "b").stdout


def test_the_exit_code_tells_ci_of_a_regression(compare: Compare) -> None:
    ended = compare("a", "b", "--threshold", "5%")
    assert ended.returncode == 3
    assert "Regression beyond 5 %: batch_size=16: time +10.0 (" in ended.stdout
    assert compare("a", "b", "--threshold", "20%").returncode == 0
    assert compare("b", "a", "--threshold", "5%").returncode == 0
    # 64 is open, and that is told only where somebody asks for it.
    assert compare("b", "a", "--threshold", "5%", "--strict").returncode == 3
    assert compare("a", "b", "--figures", "memory").returncode == 0


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
    assert "batch_size=16: out of memory in B" in ended.stdout
    for path in (b / "records").glob("*/*.json"):
        if json.loads(path.read_text())["trial"]["batch_size"] in (16, 64):
            path.unlink()
    shutil.rmtree(b / "plans")
    assert compare("a", b, "--threshold", "5%").returncode == 0
    ended = compare("a", b, "--threshold", "5%", "--strict")
    assert ended.returncode == 3
    assert "Only in A: 2 trials:" in ended.stdout


def test_where_nothing_can_be_compared_a_check_does_not_pass(compare: Compare, tmp_path: Path) -> None:
    swept(tmp_path / "a", "one", "16")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (record,) = (tmp_path / "b" / "records").glob("*/*.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {"status": "interrupted"}))
    ended = compare(tmp_path / "a", tmp_path / "b", "--threshold", "5%")
    assert ended.returncode == 4
    assert ended.stderr == "gpubench: nothing could be compared, so no regression could have been seen\n"
    assert "Nothing was checked for a regression beyond 5 %" in ended.stdout
    assert "No regression" not in ended.stdout
    assert json.loads(
        compare(tmp_path / "a", tmp_path / "b", "--threshold", "5%", "--json", "--strict").stdout
    )["undecided"]
    ended = compare(tmp_path / "a", tmp_path / "b")
    assert ended.returncode == 4
    assert ended.stderr.startswith(
        "gpubench: nothing could be compared: no trial that ended ok in A matches "
    )
    assert ended.stderr.count("\n") == 1


def test_a_folder_is_not_compared_with_itself(compare: Compare, home: Path, tmp_path: Path) -> None:
    for other in ("a", shutil.copytree(home / "a", tmp_path / "copy")):
        for threshold in ([], ["--threshold", "5%"]):
            ended = compare("a", other, *threshold)
            assert (ended.returncode, ended.stderr.count("\n")) == (4, 1)
            assert "A and B are the same measurements" in ended.stderr
    # One trial that was measured again is something to compare.
    measured = tmp_path / "copy" / "records"
    path = next(path for path in sorted(measured.glob("*/*.json")) if "-1.json" in path.name)
    told = json.loads(path.read_text())
    path.write_text(json.dumps(told | {"started_at": "2026-01-02 00:00:00"}))
    assert compare("a", tmp_path / "copy").returncode == 0


def test_a_threshold_needs_a_figure_that_it_is_for(compare: Compare) -> None:
    ended = compare("a", "b", "--figures", "top1", "--threshold", "5%", "--strict")
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "--threshold is for time, memory and energy" in ended.stderr
    assert compare("a", "b", "--figures", "top1").returncode == 0
    assert compare("a", "b", "--figures", "top1,time", "--threshold", "5%").returncode == 3
    # These were measured without a GPU: no memory is there to compare.
    ended = compare("a", "b", "--figures", "top1,memory", "--threshold", "5%")
    assert ended.returncode == 4
    assert "Nothing was checked for a regression beyond 5 %" in ended.stdout


def test_pairs_that_are_a_guess_fail_no_check(compare: Compare, tmp_path: Path) -> None:
    times = {16: [3.0, 3.001, 2.999], 32: [3.0] * 3, 64: [3.0] * 3}
    swept(tmp_path / "x", "one", "16,32,64", repeats=3, optimizer="adam")
    b = measured_again(tmp_path / "x", tmp_path / "b", times)
    ended = compare("a", b, "--threshold", "5%")
    assert ended.returncode == 4
    assert ended.stderr.endswith(": these pairs are a guess, so they can't fail a check\n")
    assert ended.stderr.count("\n") == 1
    assert (
        "Nothing was checked for a regression beyond 5 %: these pairs are a guess, so they can't fail a check."
        in ended.stdout.splitlines()
    )
    assert "slower" in ended.stdout
    assert "slower, regression" not in ended.stdout
    assert compare("a", b).returncode == 0


def test_memory_says_what_it_is_taken_for(compare: Compare, home: Path, tmp_path: Path) -> None:
    folders = [shutil.copytree(home / "b", tmp_path / name) for name in ("a", "b")]
    for folder, mib in zip(folders, (10_000, 10_010), strict=True):
        for path in (folder / "records").glob("*/*.json"):
            told = json.loads(path.read_text())
            told["result"] |= {"gpu_mem_mib": mib, "gpu_mem_source": "nvml-process"}
            path.write_text(json.dumps(told))
    ended = compare(*folders, "--figures", "memory", "--threshold", "0.05%")
    assert ended.returncode == 0
    assert "No regression beyond 0.05 % is shown, and not everywhere is one excluded." in ended.stdout
    assert (
        "differed by 0.3 % at most where it was measured, on one GPU, by the driver's figure" in ended.stdout
    )
    assert "(nvml-process). No more than that is no regression." in ended.stdout
    assert compare(*folders, "--figures", "memory", "--threshold", "0.1%", "--strict").returncode == 0


def test_two_values_of_a_field_inside_one_folder(compare: Compare) -> None:
    here = committed.folder("h200x4-2026")
    ended = compare(here, "--field", "strategy=dp,ddp", "--json")
    told = json.loads(ended.stdout)
    assert {one["a"]["fields"]["strategy"] for one in told["trials"]} == {"dp"}
    assert {one["b"]["fields"]["strategy"] for one in told["trials"]} == {"ddp"}
    assert {one["time"]["rests_on"] for one in told["trials"]} == {"one process"}
    assert {one["time"]["answer"] for one in told["trials"]} == {"open"}
    for wrong, said in (
        ("strategy=dp", "takes two values"),
        ("strategy=dp,fsdp", "no row has strategy=fsdp"),
        ("stategy=dp,ddp", "did you mean strategy?"),
    ):
        ended = compare(here, "--field", wrong)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert said in ended.stderr


def test_unlike_kinds_of_time_are_not_compared(compare: Compare, home: Path) -> None:
    swept(home / "rate", "one", "16", window="2s")
    ended = compare("x", "rate")
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr == (
        "gpubench: A holds times of whole epochs, B of steady rate, which are never compared: measure the trials of "
        "the other side with --epochs 2, as these were\n"
    )
    assert compare("rate", "x").returncode == 4
    ended = compare(committed.folder("titan-xp-2021"), committed.folder("h200x4-2026"))
    assert (ended.returncode, ended.stdout) == (4, "")
    assert ended.stderr.endswith(", which are never compared: measure both sides\n"), (
        "nobody measures 2021 again"
    )


def test_windows_of_unlike_length_are_compared(compare: Compare, home: Path) -> None:
    swept(home / "short", "one", "16", steps="20")
    swept(home / "long", "one", "16", window="2s")
    told = json.loads(compare("short", "long", "--json").stdout)
    assert [one["b"]["fields"]["window"] for one in told["trials"]] == [2.0]


def test_forms_and_order(compare: Compare) -> None:
    marked = compare("a", "b", "--markdown").stdout
    assert marked.startswith("## a and b\n")
    assert "| batch_size | A ms | B ms | change | B is |" in marked
    trials = compare("a", "b", "--sort", "time").stdout.split("Time per image\n")[1].splitlines()
    assert trials[3].split()[0] == "16"
    assert compare("a", "b", "--sort", "nothing").returncode == 2
    assert compare("a").returncode == 2
    assert compare("a", "nowhere").returncode == 4
    assert compare("a", "b", "--strict").returncode == 2


def test_json_has_its_fields_in_the_same_order_each_time(compare: Compare) -> None:
    (one, *_) = json.loads(compare("a", "b", "--json").stdout)["trials"]
    own = list(one["a"]["fields"])
    assert own == [name for name in FIELDS if name in own]
