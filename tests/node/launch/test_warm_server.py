"""The fork server starts with all imported and nothing touched, and forks from that."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import gpubench
from gpubench.node.launch.fork_server import ForkServer, make_torch_environment

MODELS = "tests/train/user_models.py:"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
WARMING = """
import json, sys
from gpubench.node.launch import server
server.preload_training_code()
print(json.dumps({"modules": sorted(sys.modules)}))
"""
WATCHED = ("torch", "torchvision", "gpubench", "numpy", "PIL", "triton")


def test_the_server_is_of_the_same_gpubench_as_the_command(tmp_path: Path) -> None:
    """Whatever the folder it is started in, and whichever other one is installed."""
    other = tmp_path / "gpubench"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('the wrong one')")
    environment = make_torch_environment({"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path)})
    code = "import gpubench; print(gpubench.__file__)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (gpubench.__file__, "")


def test_warming_starts_no_thread_and_opens_no_gpu(server: ForkServer) -> None:
    server.wait_ready()
    process = psutil.Process(server.pid)
    mapped = [each.path for each in process.memory_maps()]
    assert any("/torch/" in path for path in mapped), "it is warm"
    assert process.num_threads() == 1
    assert not [path for path in mapped if path.startswith("/dev/nvidia")]


@pytest.mark.gpu
@pytest.mark.parametrize(("execution", "precision"), [("eager", "fp16"), ("graph", "bf16")])
def test_ranks_on_a_gpu_import_nothing_that_the_server_could_have_had(train, execution, precision):
    warmed = subprocess.run(
        [sys.executable, "-c", WARMING],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **ONE_THREAD},
    )
    ran = train(
        model=MODELS + "tells_modules",
        device="cuda",
        gpus=1,
        optimizer="adam",
        precision=precision,
        execution=execution,
    )
    assert ran.status == "ok", ran.reason
    told = next(line for line in ran.log.splitlines() if line.startswith('{"modules'))
    before, after = (set(json.loads(line)["modules"]) for line in (warmed.stdout.splitlines()[-1], told))
    assert {name for name in after - before if name.partition(".")[0] in WATCHED} == set()
