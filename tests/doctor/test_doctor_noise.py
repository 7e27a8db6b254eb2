"""`gpubench doctor --noise`: real processes on the CPU, as few and as small as they can be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fakes import record
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError
from gpubench.commands import doctor
from gpubench.doctor import noise as noises
from gpubench.plan.experiment import Experiment
from gpubench.plan.experiment_file import parse
from gpubench.results import kept_noise

TINY = """
name = "noise"
[fixed]
device = "cpu"
model = "lenet"
input_size = 28
train_images = {images}
variant = "synthetic"
workers = 0
batch_size = 16
[run]
epochs = 2
warmup_epochs = 1
rounds = 3
timeout = {timeout}
"""


def tiny(images: int = 320, timeout: str = "300") -> Experiment:
    return parse(TINY.format(images=images, timeout=timeout), "tiny")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GPUBENCH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return tmp_path / "state"


def test_it_measures_tells_and_keeps(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    assert doctor.noise(tiny(), yes=True) == 0
    out, err = capsys.readouterr()
    assert "1 configuration, each in 3 processes (3 in all), in random order" in err
    assert re.search(
        r"^lenet, 28 px, batch size 16, synthetic \(limited by the CPU that trains\): processes differ by [\d.]+ % "
        r"\(95 % interval [\d.]+ to [\d.]+ %\); ",
        out,
    )
    (kept,) = kept_noise.read(pytest.fail)
    (one,) = kept.measured
    assert (one.processes, one.device) == (3, "cpu")
    assert one.total_sd > 0, "no two processes take exactly as long"
    assert kept.machine.cpu_name
    assert kept.versions["torch"]
    assert f"kept in {kept_noise.file_of(kept.machine)}" in out
    assert [path.suffix for path in state.rglob("*") if path.is_file()] == [".json"]


def test_where_nothing_could_be_measured_nothing_is_kept(state: Path) -> None:
    with pytest.raises(
        UnusableError, match=r"could not be measured in every process \(.*\); nothing is kept"
    ):
        doctor.noise(tiny(images=10_000_000, timeout="1"), yes=True)
    assert not state.exists()


@pytest.mark.parametrize("has_gpu", [False, True])
def test_the_built_in_ones_are_few_and_measured_in_five_processes(has_gpu: bool) -> None:
    found = noises.noise_experiment(has_gpu=has_gpu)
    assert found.rounds.most == 5
    assert 3 <= len(found.axes[0].values) <= 4


def test_other_work_meanwhile_is_told() -> None:
    assert noises.disturbed([record()]) == ""
    assert "other work went on meanwhile" in noises.disturbed([record(), record(doubts={"other-load": "x"})])


def test_help_says_that_it_takes_minutes_and_json_goes_without(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "200"}
    told = warm_command.run(("doctor", "--help"), cwd=tmp_path, env=environment, timeout=60)
    assert "--noise" in told.stdout
    assert "Takes some minutes" in told.stdout
    both = warm_command.run(("doctor", "--noise", "--json"), cwd=tmp_path, env=environment, timeout=60)
    assert both.returncode == 2
    assert both.stderr.count("\n") == 1
