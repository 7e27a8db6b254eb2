"""torch's part of the doctor: the child that tries it, its limits and its end, and what is made of its words."""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from doctored import by_name, context
from fake_nvml import FakeNvml, gpu

from gpubench.doctor import remedies, torch_works
from gpubench.doctor.context import CheckResult, TorchReport
from gpubench.node.environment import Gpu
from gpubench.node.launch.faults import explain_fault
from gpubench.node.watch.nvml import Nvml
from gpubench.train import machine_probe as child

PID = 4242
IMPORTED = {
    "torch": "2.15.0", "torchvision": "0.29", "decoder": "torchcodec 0.17",
    "cuda": "13.2", "seconds": 3.0,
}  # fmt: skip
FINE = TorchReport(
    pid=PID,
    imported=IMPORTED,
    ranks={
        "gloo": {"ranks": "gloo", "error": None, "seconds": 0.1},
        "nccl": {"ranks": "nccl", "error": None, "seconds": 2.5},
    },
    gpus={uuid: {"gpu": uuid, "error": None} for uuid in ("GPU-00", "GPU-11")},
    holding=True,
)
HELD: dict[str, list[tuple[int, float | None]]] = {"GPU-00": [(PID, 614.0)], "GPU-11": [(PID, 612.0)]}


def findings(told: TorchReport, nvml: Nvml | None = None) -> Mapping[str, CheckResult]:
    """By name; the worst of those that share one."""
    here = context(nvml or FakeNvml(answers={"processes": HELD}), told=told)
    checks = (
        torch_works.check_imports,
        torch_works.check_cuda,
        torch_works.check_driver_process_memory,
        torch_works.check_ranks,
    )
    return by_name(finding for check in checks for finding in check(here))


def gpu_error(error: str, *uuids: str) -> TorchReport:
    answers = {u: {"gpu": u, "error": error if u in uuids else None} for u in FINE.gpus}
    return dataclasses.replace(FINE, gpus=answers)


def test_all_is_well() -> None:
    found = findings(FINE)
    assert {finding.verdict for finding in found.values()} == {"ok"}
    assert found["CUDA"].found.startswith("all GPUs:")
    assert "614, 612 MiB" in found["process memory"].found
    assert found["nccl"].verdict == "ok"
    assert "2 GPUs in 2.5 s" in found["nccl"].found


@pytest.mark.parametrize(
    "error",
    [
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 12020).",
    ],
)
def test_gpus_that_cuda_cannot_use(error: str) -> None:
    one = findings(gpu_error(error, "GPU-11"))["CUDA"]
    assert (one.verdict, one.forbids) == ("no", False), "the other one works"
    assert one.found == f"GPU 1: {error}"
    assert one.remedy in (explain_fault(error), *remedies.TORCH.values())
    both = findings(gpu_error(error, "GPU-00", "GPU-11"))["CUDA"]
    assert both.forbids


def test_a_package_that_is_not_installed_is_to_be_installed() -> None:
    told = TorchReport(pid=PID, trouble="ModuleNotFoundError: No module named 'torchvision'")
    assert findings(told)["imports"].remedy == "install it beside gpubench: pip install torch torchvision"


def test_a_torch_for_the_cpu_on_a_machine_with_gpus_forbids_a_sweep() -> None:
    told = TorchReport(pid=PID, imported=IMPORTED | {"cuda": None}, ranks=FINE.ranks)
    assert findings(told)["CUDA"].forbids


def test_a_child_that_stops_talking_is_a_failure_of_what_it_left_out() -> None:
    told = TorchReport(pid=PID, imported=IMPORTED, trouble="nothing was heard of it for 120 s")
    found = findings(told)
    assert found["CUDA"].forbids
    assert "nothing was heard" in found["CUDA"].found
    assert "nothing was heard" in found["nccl"].found
    assert "process memory" not in found


@pytest.mark.parametrize(
    ("nvml", "words", "remedy"),
    [
        (
            FakeNvml(answers={"processes": {"GPU-00": [(7, 614.0)], "GPU-11": [(7, 614.0)]}}),
            "of our process 4242",
            "--pid=host",
        ),
        (FakeNvml(), "of our process 4242", "--pid=host"),
        (
            FakeNvml(answers={"processes": {"GPU-00": [(PID, None)], "GPU-11": [(PID, None)]}}),
            "not tell",
            "MIG",
        ),
        (
            FakeNvml(broken={"processes"}, error="Function Not Found"),
            "Function Not Found",
            "update the driver",
        ),
    ],
)
def test_memory_that_is_not_told_by_process_is_a_doubt(nvml: FakeNvml, words: str, remedy: str) -> None:
    found = findings(FINE, nvml)["process memory"]
    assert found.verdict == "doubt"
    assert words in found.found
    assert "nvml-device-delta" in found.found
    assert remedy in found.remedy


@pytest.mark.parametrize("backend", ["gloo", "nccl"])
def test_ranks_that_cannot_talk(backend: str) -> None:
    broken = {backend: {"ranks": backend, "error": "no answer within 60 s", "seconds": 60.0}}
    found = findings(dataclasses.replace(FINE, ranks={**FINE.ranks, **broken}))[backend]
    assert found.verdict == "no"
    assert not found.forbids, "one GPU still works"
    assert found.remedy


def test_of_several_slices_one_is_tried() -> None:
    """CUDA shows a process one slice at most: that the others fail beside it says nothing of them."""
    cut = [Gpu(index=k, uuid=f"MIG-{k}", name="MIG", memory_mib=9000, parent=f"GPU-{k}{k}")
           for k in range(2)]  # fmt: skip
    answer = {"MIG-0": {"gpu": "MIG-0", "error": None}}
    told = dataclasses.replace(FINE, gpus=answer, ranks={"gloo": FINE.ranks["gloo"]})
    nvml = FakeNvml(
        devices=[gpu(0), cut[0], gpu(1), cut[1]], answers={"processes": {"MIG-0": [(PID, 300.0)]}}
    )
    found = findings(told, nvml)
    assert {finding.verdict for finding in found.values()} == {"ok"}
    assert "nccl" not in found, "it takes two"


# ---- the child ----


def fake_torch(folder: Path, body: str) -> dict[str, str]:
    (folder / "torch.py").write_text(body + "\n")
    return {**os.environ, "PYTHONPATH": str(folder)}


def test_a_child_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    began = time.monotonic()
    environ = fake_torch(tmp_path, "import time; time.sleep(600)")
    with torch_works.open_torch_probe([], environ=environ, import_limit_s=0.5) as read_report:
        told = read_report()
        assert told.imported is None
        assert "0.5 s" in told.trouble
        assert read_report() is told, "asked once"
    assert not psutil.pid_exists(told.pid)
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_child_that_holds_its_gpus_ends_when_it_is_let_go() -> None:
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    with torch_works.open_torch_probe(["GPU-nowhere"], environ=environ) as read_report:
        told = read_report()
        assert told.trouble == ""
        assert told.holding
        assert psutil.pid_exists(told.pid)
    assert not psutil.pid_exists(told.pid)


# ---- the child's own children ----


def answers(*jobs: Callable[[], Any], limit_s: float = 5.0) -> list[Any]:
    before = {p.pid for p in psutil.Process().children()}
    found = child.run_in_children(jobs, limit_s)
    assert {p.pid for p in psutil.Process().children()} <= before, "nobody is left"
    return found


def fails() -> None:
    raise ValueError("on\npurpose")


def hangs() -> None:
    time.sleep(600)


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_answers_longer_than_a_pipe_come_whole() -> None:
    assert answers(lambda: ["x" * 300_000]) == [["x" * 300_000]]


def test_whoever_fails_cuts_the_wait_of_the_others_short() -> None:
    began = time.monotonic()
    first, second = answers(hangs, fails, limit_s=600)
    assert second == "ValueError: on purpose"
    assert first.startswith(child.NO_ANSWER)
    assert time.monotonic() - began < 10


def test_a_child_that_dies_or_hangs_is_told() -> None:
    assert answers(dies) == ["its process died"]
    assert answers(hangs, limit_s=0.2) == ["no answer within 0.2 s"]
