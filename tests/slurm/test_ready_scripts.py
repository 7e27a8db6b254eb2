"""The scripts of experiments/slurm/, as they are: on a real SLURM, and the one that needs none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jobs import Workplace
from telling_model import weights, write

pytestmark = pytest.mark.slurm
SCRIPTS = Path(__file__).resolve().parents[2] / "experiments" / "slurm"
EXPERIMENT = """
name = "{name}"
question = "Does the script work?"
[fixed]
model = "lenet"
device = "cpu"
input_size = 28
variant = "synthetic"
train_images = 64
[axes]
batch_size = [8]
[run]
epochs = 2
rounds = 1
"""


@pytest.fixture
def path(work: Workplace) -> str:
    """A PATH on which `gpubench` is the one that is tested, as after an installation."""
    own = work.home / "bin"
    own.mkdir()
    (own / "gpubench").write_text(f'#!/bin/sh\nexec {sys.executable} -m gpubench "$@"\n')
    (own / "gpubench").chmod(0o755)
    return f"{own}:{work.cluster.environ['PATH']}"


@pytest.fixture
def experiment(work: Workplace) -> Path:
    file = work.home / "tiny.toml"
    file.write_text(EXPERIMENT.format(name="tiny"))
    return file


def sbatch(work: Workplace, path: str, *words: str) -> str:
    """The id of a job that runs a ready script with these words."""
    return work.cluster.run(
        "sbatch",
        "--parsable",
        f"--export=ALL,PATH={path},GPUBENCH_DATA={work.images}",
        f"--chdir={work.home}",
        "--cpus-per-task=2",
        *words,
    )


def told(work: Workplace) -> str:
    return "\n".join(f"== {file.name}\n{file.read_text()}" for file in sorted(work.home.glob("*.out")))


def test_an_array(work: Workplace, path: str, experiment: Path) -> None:
    job = sbatch(work, path, "--array=1-2", str(SCRIPTS / "array.sbatch"), str(experiment))
    assert set(work.cluster.await_end(job).split(",")) == {"COMPLETED"}, told(work)
    assert list(work.trials("tiny")["status"]) == ["ok"]
    assert len(list((work.home / "results" / "tiny" / "records").rglob("*.json"))) == 1


def test_several_nodes(work: Workplace, path: str, experiment: Path) -> None:
    network = () if work.cluster.has_host_names else ("--network", "127.0.0.1")
    asked = (
        "--batch-size", "16", "--ranks", "2", "--nodes", "1,2", "--model", write(work.home),
        "--variant", "crop-resize", "--data", "procedural:64x32", *network,
    )  # fmt: skip
    job = sbatch(work, path, str(SCRIPTS / "several-nodes.sbatch"), str(experiment), *asked)
    assert work.cluster.await_end(job) == "COMPLETED", told(work)
    assert list(work.trials("tiny")["nodes"]) == [1, 2]
    assert list(work.trials("tiny")["status"]) == ["ok", "ok"]
    folder = work.home / "results" / "tiny"
    records = [json.loads(path.read_text()) for path in folder.rglob("records/*/*.json")]
    (record,) = (record for record in records if record["trial"]["nodes"] == 2)
    (log,) = (path for path in folder.rglob("logs/*/*.log") if record["trial_id"] in path.name)
    by_rank = weights(log.read_text())
    assert by_rank.keys() == {0, 1}
    assert len(set(by_rank.values())) == 1, "one network"
    nodes = record["nodes"]
    if work.cluster.has_host_names:
        assert {node["node"] for node in nodes} == {"n1", "n2"}
    assert abs(nodes[1]["clock_drift_s"]) < 0.05


def test_a_workstation_s_night(work: Workplace, path: str, experiment: Path) -> None:
    other = work.home / "other.toml"
    other.write_text(EXPERIMENT.format(name="other").replace("lenet", "no_such_net"))
    third = work.home / "third.toml"
    third.write_text(EXPERIMENT.format(name="third"))
    done = subprocess.run(
        [str(SCRIPTS / "workstation.sh"), str(experiment), str(other), str(third)],
        cwd=work.home, env={**work.cluster.environ, "PATH": path}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "unknown model 'no_such_net'" in done.stderr
    assert list(work.trials("tiny")["status"]) == list(work.trials("third")["status"]) == ["ok"]


@pytest.mark.parametrize("script", sorted(SCRIPTS.iterdir()), ids=lambda script: script.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    assert os.access(script, os.X_OK)
    if shutil.which("shellcheck") is None:
        pytest.skip("no shellcheck here (apt-get install shellcheck)")
    done = subprocess.run(["shellcheck", "--severity=style", str(script)], capture_output=True, text=True)
    assert done.stdout == ""
