"""`gpubench doctor` as users run it: on this machine, on a broken one, for people and for scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import gpubench
from gpubench.doctor import checks, gpus
from gpubench.doctor.checks import CHECKS, run_checks
from gpubench.doctor.context import CheckResult

LIMIT_S = 120


def run(folder: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "GPUBENCH_OUT" and not k.startswith("SLURM_")}
    settings = inherited | {"CUDA_VISIBLE_DEVICES": "", "GPUBENCH_DATA": str(folder / "images")} | environ
    return subprocess.run(
        [sys.executable, "-m", "gpubench", "doctor", *arguments],
        cwd=folder, env=settings, text=True, capture_output=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


def ahead(fakes: Path) -> str:
    """A PYTHONPATH on which the modules of this folder come first, and then this very gpubench."""
    return os.pathsep.join([str(fakes), str(Path(gpubench.__file__).parents[1])])


def by_name(text: str) -> dict[str, dict[str, Any]]:
    return {finding["name"]: finding for finding in json.loads(text)["findings"]}


@pytest.mark.slow
def test_a_machine_without_gpus_can_sweep_and_json_is_one_object_with_every_finding(tmp_path: Path) -> None:
    ran = run(tmp_path, "--json", GPUBENCH_OUT=str(tmp_path / "mine"))
    assert ran.returncode == 0
    assert list(tmp_path.iterdir()) == [], "a look makes no folders"
    told = json.loads(ran.stdout)
    assert told["can_sweep"] is True
    assert {"group", "name", "verdict", "found", "remedy", "forbids"} == set(told["findings"][0])
    found = by_name(ran.stdout)
    assert max(map(len, found)) < checks.NAME, "columns stay columns"
    assert str(tmp_path / "mine") in found["results"]["found"]
    assert str(tmp_path / "images") in found["images"]["found"]
    assert found["imports"]["verdict"] == "ok"
    assert "2 CPU ranks in" in found["gloo"]["found"], "torch is tried in earnest"
    assert any(gpus.ON_CPU in finding["found"] for finding in told["findings"])
    assert all(f["remedy"] for f in told["findings"] if f["verdict"] != "ok")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "body", "found"),
    [
        ("torch", "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "it died (signal 11)"),
        ("torchvision", "raise RuntimeError('operator torchvision::nms does not exist')", "torchvision::nms"),
    ],
)
def test_a_broken_torch_forbids_any_sweep(tmp_path: Path, package: str, body: str, found: str) -> None:
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "torch.py").write_text("")
    (fakes / f"{package}.py").write_text(body + "\n")
    ran = run(tmp_path, "--json", PYTHONPATH=ahead(fakes))
    assert ran.returncode == 4, ran.stdout
    told = by_name(ran.stdout)
    assert json.loads(ran.stdout)["can_sweep"] is False
    assert told["imports"]["verdict"] == "no"
    assert found in told["imports"]["found"]
    assert told["imports"]["remedy"]
    # What could not be tried is not told of.
    assert "gloo" not in told


DRIVER = """
import sys
if "torch" not in sys.modules:
    import types
    import pynvml as n
    seen = types.SimpleNamespace
    told = {
        "nvmlInit": None, "nvmlSystemGetDriverVersion": "580.1", "nvmlDeviceGetCount": 2,
        "nvmlDeviceGetHandleByIndex": int, "nvmlDeviceGetHandleByUUID": lambda uuid: int(uuid[-1]),
        "nvmlDeviceGetUUID": "GPU-{}".format,
        "nvmlDeviceGetName": "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": seen(total=1 << 37, used=1 << 30, reserved=1 << 29),
        "nvmlDeviceGetMaxMigDeviceCount": 0, "nvmlDeviceGetUtilizationRates": seen(gpu=97, memory=40),
        "nvmlDeviceGetFieldValues": [seen(nvmlReturn=0, value=seen(uiVal=400_000))],
        "nvmlDeviceGetComputeRunningProcesses": [seen(pid=1, usedGpuMemory=12 << 30)],
    }
    for name in dir(n):
        if name.startswith("nvmlDeviceGet") or name in told:
            def call(*asked, name=name, **__):
                if name not in told:
                    raise n.NVMLError(n.NVML_ERROR_NOT_SUPPORTED)
                return told[name](*asked) if callable(told[name]) else told[name]
            setattr(n, name, call)
"""
"""Replaces the driver's answers in every process of the command: two GPUs, 97 % busy with process 1."""


@pytest.fixture
def with_gpus(tmp_path: Path) -> dict[str, str]:
    """The environment of a command that believes in GPUs, on which CUDA can't start."""
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "sitecustomize.py").write_text(DRIVER)
    return {"PYTHONPATH": ahead(fakes), "CUDA_VISIBLE_DEVICES": "0,1"}


@pytest.mark.slow
def test_gpus_that_cuda_cannot_use_forbid_a_sweep(tmp_path: Path, with_gpus: dict[str, str]) -> None:
    """The whole course of the child, NCCL's ranks included, on a machine where CUDA can't start."""
    ran = run(tmp_path, "--json", **with_gpus)
    assert ran.returncode == 4, ran.stdout + ran.stderr
    found = by_name(ran.stdout)
    assert "2 × NVIDIA H200" in found["visible"]["found"]
    assert found["CUDA"]["found"].startswith("all GPUs: ")
    assert "over 2 GPUs fails" in found["nccl"]["found"]
    assert found["CUDA"]["forbids"]
    assert found["busy"]["forbids"]
    assert found["energy counter"]["verdict"] == "doubt"
    assert found["temperature"]["verdict"] == "no"
    assert found["gloo"]["verdict"] == "ok"
    assert not [f for f in found.values() if f["group"] == "checks that broke"]


@pytest.mark.slow
def test_a_sweep_is_refused_where_a_stranger_is_busy(tmp_path: Path, with_gpus: dict[str, str]) -> None:
    arguments = [sys.executable, "-m", "gpubench", "sweep", "--model", "lenet", "--batch-size", "16",
                 "--set", "input_size=28", "--variant", "synthetic", "--steps", "2"]  # fmt: skip
    environ = {**os.environ, **with_gpus, "GPUBENCH_OUT": str(tmp_path / "results")}
    settings: dict[str, Any] = {"cwd": tmp_path, "env": environ, "text": True, "capture_output": True}
    ran = subprocess.run(arguments, timeout=LIMIT_S, check=False, **settings)
    assert ran.returncode == 4
    last = ran.stderr.splitlines()[-1]
    assert "GPU 0 is 97 %" in last
    assert "process 1 (" in last
    assert "12,288 MiB" in last
    assert "--allow-busy" in last
    assert not list((tmp_path / "results").glob("*/records/*"))


def test_results_that_cannot_be_written_forbid_it_in_plain_lines_that_are_never_cut(tmp_path: Path) -> None:
    """For people, through a pipe, in a C locale."""
    (tmp_path / "taken").write_text("")
    fakes = tmp_path / "fakes"
    fakes.mkdir()
    (fakes / "torch.py").write_text("raise ImportError('not wanted in this test')\n")
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "COLUMNS": "40", "PYTHONPATH": ahead(fakes)}
    ran = run(tmp_path, GPUBENCH_OUT=str(tmp_path / "taken" / "results"), **plain)
    assert (ran.returncode, ran.stderr) == (4, "")
    assert "\x1b" not in ran.stdout
    ran.stdout.encode("ascii")
    lines = [line for line in ran.stdout.splitlines() if line.strip().startswith(("ok", "doubt", "no "))]
    assert len(lines) > 8
    assert any(len(line) > 80 for line in lines), "one finding, one line"
    assert "taken is a file" in ran.stdout
    assert ran.stdout.splitlines()[-1].endswith(": results, imports")


# ---- how it is told ----


def a_finding(**fields: Any) -> CheckResult:
    return CheckResult(**({"group": "g", "name": "n", "verdict": "ok", "found": "fine"} | fields))


def test_a_check_that_breaks_is_a_finding_and_the_others_go_on() -> None:
    def breaks(_: Any) -> Any:
        yield a_finding(name="before")
        raise KeyError("uuid")

    def fine(_: Any) -> Any:
        yield a_finding(name="after")

    found = list(run_checks(None, {"first": (breaks,), "second": (fine,)}))  # type: ignore[arg-type]
    assert [(f.group, f.name) for f in found] == [
        ("first", "before"), ("checks that broke", "breaks"), ("second", "after"),
    ]  # fmt: skip
    assert found[1].verdict == "no"
    assert "KeyError: 'uuid'" in found[1].found


def test_ctrl_c_is_no_finding() -> None:
    def stopped(_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(run_checks(None, {"group": (stopped,)}))  # type: ignore[arg-type]


def test_on_a_terminal_everything_fits_and_nothing_is_lost() -> None:
    words = " ".join(f"word{k}" for k in range(40))
    console = Console(force_terminal=True, width=80, record=True, highlight=False, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    checks.print_findings(
        [a_finding(verdict="doubt", found=words, remedy="do this, then that " * 6)], console
    )
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(" ".join(lines).split()).count("word") == 40
    assert "remedy: do this" in " ".join(lines)


def test_the_summary_counts_and_names_what_forbids() -> None:
    found = [a_finding(), a_finding(verdict="doubt"), a_finding(verdict="no", name="imports", forbids=True)]
    assert checks.format_summary(found) == "1 ok, 1 doubt, 1 no: no sweep can run here: imports"
    assert checks.format_summary(found[:2]) == "1 ok, 1 doubt, 0 no: a sweep can run here"


def test_torch_is_tried_last() -> None:
    """Its child loads the CPUs, and is itself a process on the GPUs."""
    modules = [check.__module__.rpartition(".")[2] for checks in CHECKS.values() for check in checks]
    first = modules.index("torch_works")
    assert set(modules[first:]) == {"torch_works"}
