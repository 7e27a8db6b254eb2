"""The seam's own behaviour, against the real pynvml with its calls replaced one by one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpubench.monitor.nvml import MIB, NoNvml, NvmlError, PynvmlNvml, open_nvml


def _raise(code: int) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(code)

    return call


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Two healthy GPUs."""
    calls: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": lambda uuid: int(uuid[-1]),
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}",
        "nvmlDeviceGetName": lambda _: b"NVIDIA H200",
        "nvmlDeviceGetPciInfo": lambda handle: SimpleNamespace(busId=f"0000:{handle}"),
        "nvmlDeviceGetMemoryInfo": lambda _, version=None: SimpleNamespace(
            total=143771 * MIB, used=(1000 if version else 1615) * MIB, reserved=615 * MIB
        ),
        "nvmlDeviceGetMaxMigDeviceCount": _raise(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=97, memory=41),
        "nvmlDeviceGetPowerUsage": lambda _: 412_500,
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [
            SimpleNamespace(pid=7, usedGpuMemory=614 * MIB),
            SimpleNamespace(pid=8, usedGpuMemory=None),
        ],
    }
    for name, call in calls.items():
        monkeypatch.setattr(pynvml, name, call)
    return monkeypatch


@pytest.mark.usefixtures("library")
def test_healthy_gpus_are_listed_and_read() -> None:
    nvml = PynvmlNvml()
    assert [(d.index, d.uuid, d.name, d.memory_mib) for d in nvml.devices] == [
        (0, "GPU-0", "NVIDIA H200", 143771),
        (1, "GPU-1", "NVIDIA H200", 143771),
    ]
    assert nvml.driver == "580.1"
    assert nvml.utilisation("GPU-1").gpu_pct == 97
    assert nvml.memory("GPU-1").used_mib == 1000, "the driver's own reserve is not in use"
    assert nvml.processes("GPU-0") == [(7, 614.0), (8, None)]
    assert nvml.power_w("GPU-0") == 412.5


@pytest.mark.parametrize(
    ("function", "read"),
    [
        ("nvmlDeviceGetUtilizationRates", lambda n: n.utilisation("GPU-0")),
        ("nvmlDeviceGetMemoryInfo", lambda n: n.memory("GPU-0")),
        ("nvmlDeviceGetComputeRunningProcesses", lambda n: n.processes("GPU-0")),
        ("nvmlDeviceGetPowerUsage", lambda n: n.power_w("GPU-0")),
        ("nvmlDeviceGetHandleByUUID", lambda n: n.power_w("GPU-9")),
    ],
)
def test_each_call_fails_with_its_reason(library: pytest.MonkeyPatch, function: str, read: Any) -> None:
    nvml = PynvmlNvml()
    library.setattr(pynvml, function, _raise(pynvml.NVML_ERROR_GPU_IS_LOST))
    with pytest.raises(NvmlError, match="lost"):
        read(nvml)


def test_an_old_driver_without_the_second_memory_call(library: pytest.MonkeyPatch) -> None:
    def v1_only(_: Any, version: Any = None) -> Any:
        if version:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return SimpleNamespace(total=16 * MIB, used=9 * MIB)

    library.setattr(pynvml, "nvmlDeviceGetMemoryInfo", v1_only)
    memory = PynvmlNvml().memory("GPU-0")
    assert (memory.used_mib, memory.reserved_mib) == (9, None)


def test_a_lost_gpu_does_not_hide_its_neighbour(library: pytest.MonkeyPatch) -> None:
    lost = _raise(pynvml.NVML_ERROR_GPU_IS_LOST)
    library.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda index: index or lost())
    nvml = PynvmlNvml()
    assert [d.index for d in nvml.devices] == [1]
    assert "lost" in nvml.unreadable[0]


def test_mig_slices_follow_their_gpu(library: pytest.MonkeyPatch) -> None:
    def slice_at(handle: int, place: int) -> str:
        if handle == 0 or place > 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return f"slice{place}"

    library.setattr(pynvml, "nvmlDeviceGetMaxMigDeviceCount", lambda _: 7)
    library.setattr(pynvml, "nvmlDeviceGetMigDeviceHandleByIndex", slice_at)
    library.setattr(
        pynvml, "nvmlDeviceGetUUID", lambda h: f"MIG-{h}" if str(h).startswith("slice") else f"GPU-{h}"
    )
    devices = PynvmlNvml().devices
    assert [d.uuid for d in devices] == ["GPU-0", "GPU-1", "MIG-slice0", "MIG-slice1"]
    assert [d.parent for d in devices] == [None, None, "GPU-1", "GPU-1"]


def test_no_driver_is_an_nvml_that_says_why(library: pytest.MonkeyPatch) -> None:
    library.setattr(pynvml, "nvmlInit", _raise(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    nvml = open_nvml()
    assert isinstance(nvml, NoNvml)
    assert not nvml.devices
    assert nvml.driver is None
    for read in (nvml.utilisation, nvml.memory, nvml.processes, nvml.power_w):
        with pytest.raises(NvmlError, match="Driver Not Loaded"):
            read("GPU-0")
