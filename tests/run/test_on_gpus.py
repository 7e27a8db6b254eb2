"""Whole sweeps on real GPUs: the GPU that torch trains on is the one that is watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpubench.node.watch.nvml import open_nvml
from gpubench.schema.codes import decode_record


def sweep(folder: Path, visible: str | None, *options: str) -> list[dict[str, Any]]:
    """Records of a short sweep under CUDA_VISIBLE_DEVICES=`visible`."""
    command = [sys.executable, "-m", "gpubench", "sweep", "--model", "resnet18", "--variant", "synthetic"]
    command += ["--batch-size", "64", "--precision", "bf16", "--set", "train_images=12800", "--rounds", "1"]
    done = subprocess.run(
        [*command, *options, "--out", str(folder), "-q"],
        env=os.environ | ({"CUDA_VISIBLE_DEVICES": visible} if visible is not None else {}),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(path.read_text()) for path in sorted((folder / "records").glob("*/*.json"))]


@pytest.mark.gpu
def test_every_figure_of_a_gpu_is_there(tmp_path: Path) -> None:
    (record,) = sweep(tmp_path / "r", None)
    result, missing = record["result"], record["missing"]
    for column in (
        "gpu_mem_mib", "gpu_util_pct", "gpu_mem_util_pct", "gpu_busy_s_per_epoch", "energy_j", "energy_sampled_j",
        "power_w", "idle_power_w", "sm_clock_mhz", "throttled_pct", "temperature_c", "cpu_util_pct", "host_mem_mib",
    ):  # fmt: skip
        assert result.get(column) is not None, f"{column}: {missing.get(column)}"
    assert result["gpu_mem_source"] == "nvml-process"
    assert result["energy_source"] == "nvml-counter"
    assert result["idle_power_w"] < result["power_w"]
    assert result["gpu_mem_allocated_mib"] <= result["gpu_mem_reserved_mib"] <= result["gpu_mem_mib"]
    assert "buffer" in decode_record(record)["provenance"]["gpu_util_pct"]["source"]


@pytest.mark.multigpu
@pytest.mark.parametrize("by", ["index", "uuid", "shuffled"])
def test_the_gpu_that_trains_is_the_one_that_is_watched(tmp_path: Path, by: str) -> None:
    devices = open_nvml().devices
    second = devices[1].uuid
    visible = {"index": "1", "uuid": second, "shuffled": "1,0"}[by]
    (record,) = sweep(tmp_path / "r", visible)
    assert record["resolved"]["gpu_uuids"] == [second]
    assert record["result"]["gpu_mem_source"] == "nvml-process"
    assert record["result"]["gpu_util_max_pct"] > 20, "the other GPU is idle"


@pytest.mark.multigpu
def test_communication_and_the_slowest_rank(tmp_path: Path) -> None:
    (record,) = sweep(tmp_path / "r", None, "--gpus", "2", "--set", "breakdown=true")
    result = record["result"]
    parameters_mib = result["params_m"] * 4e6 / 2**20
    assert result["comm_mib_per_step"] == pytest.approx(parameters_mib, rel=0.02)
    assert result["comm_ms"] >= 0
    assert 0 <= result["comm_pct"] < 100
    parts = ("copy_ms", "forward_ms", "backward_ms", "comm_ms", "optimizer_ms")
    assert sum(result[part] for part in parts) == pytest.approx(result["step_time_ms_p50"], rel=0.2)
