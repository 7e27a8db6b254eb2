"""`gpubench sweep -n --explain`: where each field has its value from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from warm_command import WarmCommand

from gpubench.schema.trial_fields import FIELDS

Sweep = Callable[..., subprocess.CompletedProcess[str]]
QUESTION = """
name = "q"
[fixed]
model = "lenet"
variant = "synthetic"
device = "cpu"
optimizer = "adam"
[axes]
batch_size = [16, 32]
[run]
epochs = 2
"""


@pytest.fixture
def sweep(warm_command: WarmCommand, tmp_path: Path) -> Sweep:
    """Runs `gpubench sweep -n --explain` with these arguments beside the file q.toml."""
    (tmp_path / "q.toml").write_text(QUESTION)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        given = ("sweep", "-n", "--explain", *arguments)
        return warm_command.run(given, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def test_each_field_says_where_its_value_is_from(sweep: Sweep) -> None:
    ended = sweep("q.toml", "--precision", "bf16", "--set", "input_size=28", "--json")
    assert ended.returncode == 0
    trials = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [one["fields"]["batch_size"] for one in trials] == [
        {"value": 16, "from": "q.toml"},
        {"value": 32, "from": "q.toml"},
    ]
    fields = trials[0]["fields"]
    assert set(fields) == set(FIELDS)
    expected = {
        "epochs": (2, "q.toml"),
        "precision": ("bf16", "--precision"),
        "input_size": (28, "--set input_size"),
        "lr": (0.001, "follows optimizer"),
        "gpus": (0, "follows device"),
        "execution": ("eager", "default"),
        "gpu_mem_cap_mib": (None, "default"),
        "train_images": (10240, "the images"),
    }
    assert {name: (fields[name]["value"], fields[name]["from"]) for name in expected} == expected
    assert fields["cpus"]["value"] >= 1
    assert fields["cpus"]["from"] == fields["workers"]["from"] == "machine"


def test_options_beat_the_file_and_per_gpu_sizes_jobs_and_repeats_are_told(sweep: Sweep) -> None:
    ended = sweep("q.toml", "--batch-per-gpu", "8", "--ranks", "2", "--repeats", "2", "--json")
    trials = [json.loads(line)["fields"] for line in ended.stdout.splitlines()]
    assert [one["batch_size"] for one in trials] == [{"value": 16, "from": "--batch-per-gpu"}] * 2
    assert {one["strategy"]["from"] for one in trials} == {"follows ranks"}
    assert [one["repeat"]["from"] for one in trials] == ["default", "--repeats, or repeats of the file"]
    ended = sweep("q.toml", "--job", "batch_size=16,cpus=1", "--job", "batch_size=32,cpus=1", "--json")
    trials = [json.loads(line) for line in ended.stdout.splitlines()]
    jobs = [one for one in trials if one["job"]]
    assert [one["fields"]["batch_size"]["from"] for one in jobs] == ["--job", "--job"]


def test_the_table_fits_eighty_columns(sweep: Sweep) -> None:
    ended = sweep("q.toml", "--batch-size", "16:512:16", "--set", "prefetch=2,3")
    assert ended.returncode == 0
    lines = ended.stdout.splitlines()
    assert len(lines) == 2 + len(FIELDS)
    assert max(map(len, lines)) <= 80
    (sizes,) = [line for line in lines if line.startswith("batch_size ")]
    assert "(32 values)" in sizes
    assert sizes.endswith("--batch-size")


def test_nothing_is_explained_of_a_sweep_that_runs(warm_command: WarmCommand, tmp_path: Path) -> None:
    ended = warm_command.run(("sweep", "--explain"), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    assert (ended.returncode, ended.stderr) == (2, "gpubench: --explain is about the plan: give -n, too\n")
    assert not list(tmp_path.iterdir())
