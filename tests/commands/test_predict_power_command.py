"""What `gpubench predict --power` answers, over folders made of the published traces and of figures made up."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_rows import alone, folder, under_limit
from msgspec import structs
from power_traces import read_trace
from warm_command import WarmCommand

OTHER = "NVIDIA A40, 46068 MiB"


def measure_trace(path: Path, *limits: float, sizes: tuple[int, ...] = (256,)) -> Path:
    """resnet50 on the V100 as a folder of records; it bears the made-up rows' names."""
    points = read_trace("v100")["imagenet", "resnet50", "adadelta"]
    lines = zip(points.batch_size, points.limit_w, points.time_s, points.power_w, strict=True)
    records = [
        under_limit(int(size), int(limit), float(time), float(power))
        for size, limit, time, power in lines
        if size in sizes and limit in limits
    ]
    return folder(path, *records)


Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(warm_command: WarmCommand, tmp_path: Path) -> Ask:
    """Runs the command and gives its exit code, stdout and stderr; text on one line."""

    def run(*args: object) -> tuple[int, str, str]:
        given = ("predict", "--power", *map(str, args))
        ended = warm_command.run(given, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=120)
        is_markdown = "--markdown" in given
        return ended.returncode, ended.stdout if is_markdown else " ".join(ended.stdout.split()), ended.stderr

    return run


def list_rows(text: str) -> dict[int, tuple[float, float, float, str]]:
    """Limit -> time, power, energy, and where they are from."""
    rows = re.findall(r"(\d+) ([\d,.]+) ([\d,.]+) ([\d,.]+) [\d,.]+ (measured|foretold)", text)
    return {
        int(limit): (*(float(figure.replace(",", "")) for figure in figures), source)  # type: ignore[misc]
        for limit, *figures, source in rows
    }


@pytest.mark.slow
def test_three_measured_limits_foretell_the_best_one(tmp_path: Path, ask: Ask) -> None:
    """150 W takes 4,149 s, 145 W and 599,874 J: 22.5 % less energy than 250 W, for 18.0 % more time."""
    code, text, _ = ask(measure_trace(tmp_path, 100, 175, 250, sizes=(64, 256)))
    assert code == 0
    assert text.count("Take ") == 2
    assert re.search(
        r"batch 256 Take 150 W \(foretold\): 2[1-5] % less energy than at 250 W, 1[5-9] % more time", text
    )
    assert "Measure 150 W next" in text
    rows = list_rows(text.partition("batch 256")[2])
    assert sorted(rows) == [100, 125, 150, 175, 200, 225, 250]
    assert rows[150][:3] == pytest.approx((4149, 145, 599_874), rel=0.03)
    assert [rows[limit][3] for limit in (100, 175, 250)] == ["measured"] * 3
    assert [rows[limit][3] for limit in (125, 150, 200, 225)] == ["foretold"] * 4


@pytest.mark.slow
def test_the_error_stands_beside_what_is_foretold(tmp_path: Path, ask: Ask) -> None:
    code, text, _ = ask(measure_trace(tmp_path, 100, 125, 150, 175, 225, 250), "--set", "power_limit_w=200")
    assert code == 0
    assert "Take 150 W: 23 % less energy than at 250 W, 18 % more time." in text
    assert "Energy x time is least at 175 W: 9 % less." in text
    error, line, regret = re.findall(
        r"([\d.]+) % (?:off|more energy than the best)|straight line's ([\d.]+) %", text
    )
    assert float(error[0]) < 0.5 * float(line[1])
    assert float(regret[0]) < 1
    assert re.findall(r"foretold \+-([\d.]+) %", text) == [error[0]]
    assert list_rows(text)[200][2] == pytest.approx(694_000, rel=0.02)


def test_two_limits_tell_no_error(tmp_path: Path, ask: Ask) -> None:
    code, text, _ = ask(measure_trace(tmp_path, 100, 250))
    assert code == 0
    assert "physical model" in text
    assert "a third limit would tell" in text
    assert "+-" not in text


def test_work_that_needs_no_high_limit_is_left_there_or_told_what_is_saved(tmp_path: Path, ask: Ask) -> None:
    """All limits take as long; power falls, so the lowest is taken, at no cost in time."""
    path = folder(
        tmp_path,
        *(under_limit(16, limit, 10.0, watts) for limit, watts in ((100, 90), (150, 120), (200, 150))),
    )
    _, text, _ = ask(path)
    assert "Take 100 W: 40 % less energy than at 200 W, 0 % less time." in text
    path = folder(
        tmp_path / "b", *(under_limit(16, limit, s, 90.0) for limit, s in ((100, 30), (150, 20), (200, 10)))
    )
    _, text, _ = ask(path)
    assert "Leave it at 200 W" in text
    assert "Energy x time is least at 200 W." in text
    assert "next" not in text


def test_machines_are_told_apart(tmp_path: Path, ask: Ask) -> None:
    """One is the faster; nothing of it enters what is foretold of the other."""
    here = [under_limit(16, limit, s, w) for limit, s, w in ((100, 20, 100), (150, 14, 150), (200, 12, 190))]
    there = [
        structs.replace(
            record, machine_key=OTHER, environment=record.environment | {"gpu_name": "NVIDIA A40"}
        )
        for record in (
            under_limit(16, limit, s, w)
            for limit, s, w in ((100, 200, 100), (150, 140, 150), (200, 120, 190))
        )
    ]
    one = ask(folder(tmp_path / "a", *here))[1]
    both = ask(tmp_path / "a", folder(tmp_path / "b", *there))[1]
    assert both.startswith(one.rstrip())
    assert "NVIDIA A40: " in both
    assert list_rows(both.partition("NVIDIA A40: ")[2])[150][0] == 140


def test_rows_without_time_power_or_limit_are_left_out(tmp_path: Path, ask: Ask) -> None:
    rows = [
        under_limit(16, limit, s, w) for limit, s, w in ((100, 20, 100.0), (150, 14, None), (200, 12, 190.0))
    ]
    path = folder(tmp_path, *rows, alone(16, epoch=11.0), under_limit(16, 125, 16, 125.0, status="failed"))
    _, text, _ = ask(path)
    measured = [limit for limit, row in list_rows(text).items() if row[3] == "measured"]
    assert measured == [100, 200]


def test_a_limit_that_was_left_to_the_card_is_what_the_card_was_set_to(tmp_path: Path, ask: Ask) -> None:
    left = alone(16, epoch=11.0)
    left = structs.replace(
        left,
        result=left.result | {"energy_j": 2200.0},
        environment=left.environment | {"gpu_power_limit_w": 250.0},
    )
    _, text, _ = ask(folder(tmp_path, under_limit(16, 150, 13.0, 150.0), left))
    assert list_rows(text)[250] == (11, 200, 2200, "measured")
    assert "less energy than at 250 W, 18 % more time." in text


def test_power_of_several_gpus_is_of_all_and_limits_of_each(tmp_path: Path, ask: Ask) -> None:
    rows = [
        under_limit(
            16, limit, s, 4 * w, gpus=4, strategy="ddp", resolved={"gpus": 4, "gpu_ids": [0, 1, 2, 3]}
        )
        for limit, s, w in ((100, 20, 100.0), (200, 12, 180.0))
    ]
    _, text, _ = ask(folder(tmp_path, *rows))
    assert list_rows(text)[200][1] == 720
    assert 4 * 100 < list_rows(text)[150][1] < 4 * 180


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--set", "power_limit_w=300"], "power_limit_w=300 is beyond the limits that were measured"),
        (["--set", "power_limit_w=150", "--copies", "2"], "--power goes with"),
        (["--set", "model=lenet"], "--power goes with"),
        (["--experiment", "x.toml"], "--power goes with"),
        (["--set", "power_limit_w=much"], "is not a whole number"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, ask: Ask, args: list[str], says: str) -> None:
    code, text, error = ask(measure_trace(tmp_path, 100, 250), *args)
    assert (code, text) == (2, "")
    assert says in error
    assert len(error.splitlines()) == 1


def test_a_folder_of_one_limit_says_what_to_under_limit(tmp_path: Path, ask: Ask) -> None:
    code, text, error = ask(measure_trace(tmp_path, 100))
    assert (code, text) == (4, "")
    assert "gpubench sweep --set power_limit_w=150,200,250" in error


def test_markdown_marks_the_answer(tmp_path: Path, ask: Ask) -> None:
    code, text, _ = ask(measure_trace(tmp_path, 100, 150, 250), "--markdown", "--set", "power_limit_w=200")
    assert code == 0
    assert "| **150** | **4,149** | **145** | **599,874** |" in text
    assert text.startswith("**NVIDIA H200: resnet34 batch 256**\n\n- Take 150 W: 23 % less energy")
