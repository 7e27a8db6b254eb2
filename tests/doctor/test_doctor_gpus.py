"""What the doctor says of GPUs: each of the driver's calls failing, hidden GPUs, strangers, modes, slices."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import pynvml
import pytest
from doctored import context
from fake_nvml import FakeNvml, calls_of_the_seam, gpu, running

from gpubench.doctor import checks, gpus, remedies
from gpubench.doctor.context import CheckContext, CheckResult
from gpubench.node.environment import Gpu
from gpubench.node.launch.faults import explain_fault
from gpubench.node.watch.nvml import NoNvml

ERRORS = [
    text
    for code, text in pynvml.NVMLError._errcode_to_string.items()
    if code
    not in (1, 2, 5, 7, 10, 11, 20, 999)  # those that only a mistake of ours, or nothing known, brings about
]


@dataclasses.dataclass
class Healthy(FakeNvml):
    """Its counter counts, and its buffers are full."""

    def __post_init__(self) -> None:
        for one in self.devices:
            self.answers.setdefault("power_w", {}).setdefault(one.uuid, 75.0)
            for what in ("gpu_util_pct", "gpu_mem_util_pct", "power_w"):
                self.buffers.setdefault((one.uuid, what), [(1000.0 + k, 50.0) for k in range(15)])

    def answer(self, name: str, uuid: str) -> Any:
        if name == "energy_j":
            return time.monotonic() * 1e6
        return super().answer(name, uuid)


def at_gpus(here: CheckContext) -> list[CheckResult]:
    first = (gpus.check_driver, gpus.check_listed_gpus, gpus.check_compute_modes)
    return [
        *(finding for check in first for finding in check(here)),
        *gpus.check_others_on_gpus(here, seconds=0.01),
        *gpus.check_gpu_readings(here),
    ]


def not_ok(findings: list[CheckResult]) -> dict[str, CheckResult]:
    return {finding.name: finding for finding in findings if finding.verdict != "ok"}


def test_a_healthy_machine_has_no_doubt() -> None:
    found = at_gpus(context(Healthy()))
    assert not not_ok(found)
    told = {finding.name: finding.found for finding in found}
    assert told["visible"].startswith("2 of 2: 2 ×")
    assert "143,771 MiB" in told["visible"]
    assert told["power"].startswith("75 W (")
    assert Healthy().power_source in told["power"]
    assert told["idle power"] == "75, 75 W"
    assert "15 samples over 14.0 s" in told["GPU time buffer"]
    assert "reserve apart" in told["device memory"]
    assert told["processes"] == "0"
    assert max(map(len, told)) < checks.NAME


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("call", sorted(calls_of_the_seam()))
def test_each_failing_call_is_named_with_its_cost_and_a_remedy(call: str, error: str) -> None:
    found = at_gpus(context(Healthy(broken={call}, error=error)))
    wrong = not_ok(found)
    assert wrong, "nobody noticed"
    for finding in wrong.values():
        assert error in finding.found
        own = explain_fault(error) or remedies.choose_remedy(error, remedies.NVML, "")
        # An error that NVML knows has a remedy of its own.
        assert finding.remedy == own != ""
        # A figure that is lost stops no sweep.
        assert not finding.forbids


@pytest.mark.parametrize(
    ("broken", "name", "verdict", "cost"),
    [
        ({"utilisation"}, "utilisation", "doubt", "buffer stands in"),
        ({"history"}, "power buffer", "doubt", "polled at 10 Hz"),
        ({"processes"}, "processes", "doubt", "growth of device memory"),
        ({"energy_j"}, "energy counter", "doubt", "integral of sampled power"),
        ({"power_w"}, "power", "doubt", "idle_power_w stays empty"),
        ({"sm_clock_mhz"}, "SM clock", "no", "sm_clock_mhz"),
        ({"max_sm_clock_mhz"}, "highest SM clock", "doubt", "unnoticed"),
        ({"throttle_mask"}, "throttle reasons", "no", "throttled_pct"),
        ({"temperature_c"}, "temperature", "no", "temperature_c"),
    ],
)
def test_what_stands_in_is_a_doubt_and_what_is_lost_a_no(
    broken: set[str], name: str, verdict: str, cost: str
) -> None:
    finding = not_ok(list(gpus.check_gpu_readings(context(Healthy(broken=broken)))))[name]
    assert finding.verdict == verdict
    assert cost in finding.found


def test_no_gpu_draws_0_w() -> None:
    wrong = not_ok(at_gpus(context(Healthy(answers={"power_w": {"GPU-00": 0.0}}))))
    assert all("GPU 0: " in wrong[name].found for name in ("power", "idle or not"))
    assert all("power of 0 W" in wrong[name].found for name in ("power", "idle or not"))


def test_an_empty_buffer_is_none() -> None:
    wrong = not_ok(list(gpus.check_gpu_readings(context(FakeNvml()))))
    assert "keeps no buffer" in wrong["GPU time buffer"].found
    assert "keeps no buffer" in wrong["power buffer"].found


def test_it_speaks_of_visible_gpus_by_their_visible_numbers() -> None:
    nvml = Healthy(
        devices=[gpu(k) for k in range(4)],
        answers={"utilisation": running({"GPU-33": 90.0}), "processes": {"GPU-33": [(1, 5000.0)]}},
    )
    found = at_gpus(context(nvml, environ={"CUDA_VISIBLE_DEVICES": "2,3"}))
    visible = next(f for f in found if f.name == "visible")
    assert visible.found.startswith("2 of 4 under CUDA_VISIBLE_DEVICES='2,3'")
    (busy,) = [f for f in found if f.name == "busy"]
    assert "GPU 1 is 90 %" in busy.found
    assert not busy.forbids, "GPU 0 is free"
    assert not any(f.name == "busy" for f in at_gpus(context(nvml, environ={"CUDA_VISIBLE_DEVICES": "2"})))


def test_all_gpus_busy_forbids_a_sweep() -> None:
    nvml = Healthy(answers={"utilisation": running({"GPU-00": 90.0, "GPU-11": 95.0})})
    nvml.buffers.clear()
    busy = [f for f in gpus.check_others_on_gpus(context(nvml), seconds=0.01) if f.name == "busy"]
    assert len(busy) == 2
    assert all(f.forbids and "--allow-busy" in f.remedy for f in busy)


def test_an_idle_stranger_and_a_desktop_are_doubts() -> None:
    nvml = Healthy(answers={"processes": {"GPU-00": [(1, 500.0)]}, "desktop": {"GPU-11": [(1, 80.0)]}})
    found = [f for f in gpus.check_others_on_gpus(context(nvml), seconds=0.01) if f.verdict != "ok"]
    assert [f.verdict for f in found] == ["doubt", "doubt"]
    assert "500 MiB" in found[0].found
    assert "desktop" in found[1].found


@pytest.mark.parametrize("reason", ["NVML: NVML Shared Library Not Found", "NVML: Driver Not Loaded", "odd"])
def test_without_a_driver_it_runs_on_the_cpu(reason: str) -> None:
    (only,) = at_gpus(context(NoNvml(reason)))
    assert only.verdict == "doubt"
    assert reason in only.found
    assert only.remedy
    assert not only.forbids


def test_hidden_gpus_are_a_doubt() -> None:
    wrong = not_ok(at_gpus(context(Healthy(), environ={"CUDA_VISIBLE_DEVICES": ""})))
    assert "none of 2 under CUDA_VISIBLE_DEVICES=''" in wrong["visible"].found


def test_a_gpu_that_fell_off_the_bus_is_named() -> None:
    found = not_ok(at_gpus(context(Healthy(unreadable={2: "GPU 2: GPU is lost"}))))
    assert found["NVML's GPU 2"].verdict == "no"
    assert "reboot" in found["NVML's GPU 2"].remedy


def test_compute_modes() -> None:
    some = not_ok(at_gpus(context(Healthy(answers={"compute_mode": {"GPU-00": "prohibited"}}))))[
        "compute mode"
    ]
    assert (some.verdict, some.forbids) == ("no", False)
    every = Healthy(answers={"compute_mode": {"GPU-00": "prohibited", "GPU-11": "prohibited"}})
    assert not_ok(at_gpus(context(every)))["compute mode"].forbids
    alone = not_ok(at_gpus(context(Healthy(answers={"compute_mode": {"GPU-11": "exclusive"}}))))[
        "compute mode"
    ]
    assert (alone.verdict, "GPU 1" in alone.found) == ("doubt", True)


def test_slices_are_known_for_what_they_lack() -> None:
    cut = Gpu(index=0, uuid="MIG-a", name="MIG", memory_mib=9000, parent="GPU-00")
    nvml = Healthy(devices=[gpu(0), cut], broken={"utilisation", "history"})
    found = not_ok(at_gpus(context(nvml)))
    assert "GPU 0: slices" in found["MIG"].found
    assert found["utilisation"].remedy
