"""The seam's own behaviour, against the real pynvml with its calls replaced one by one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from fake_nvml import calls_of_the_seam

from gpubench.node.watch import nvml_calls
from gpubench.node.watch.nvml import (
    NoNvml,
    NoRightError,
    Nvml,
    NvmlError,
    PynvmlNvml,
    PynvmlSetter,
    open_nvml,
    read_common_settings,
)
from gpubench.node.watch.nvml_calls import CALLS, MIB, NvmlCall


def _raise(code: int) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(code)

    return call


def field_of(milliwatts: int, status: int = pynvml.NVML_SUCCESS) -> SimpleNamespace:
    return SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(uiVal=milliwatts))


def buffer_of(kind: int, after_us: int) -> tuple[int, list[SimpleNamespace]]:
    """Two samples in no order, and a place that has not been filled yet. The union's other parts hold rubbish."""
    value = 431_250 if kind == pynvml.NVML_TOTAL_POWER_SAMPLES else 97
    times = [t for t in (1_000_200_000, 1_000_000_000) if t > after_us]
    return pynvml.NVML_VALUE_TYPE_UNSIGNED_INT, [
        SimpleNamespace(timeStamp=t, sampleValue=SimpleNamespace(uiVal=value, dVal=1e-300, ullVal=-1))
        for t in [*times, 0]
    ]


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
        "nvmlDeviceGetMemoryInfo": lambda _, version=None: SimpleNamespace(
            total=143771 * MIB,
            used=(1000 if version else 1615) * MIB,
            reserved=615 * MIB,
        ),
        "nvmlDeviceGetMaxMigDeviceCount": _raise(pynvml.NVML_ERROR_NOT_SUPPORTED),
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=97, memory=41),
        "nvmlDeviceGetFieldValues": lambda _, fields: [field_of(431_250) for _ in fields],
        "nvmlDeviceGetPowerUsage": lambda _: 412_500,
        "nvmlDeviceGetTotalEnergyConsumption": lambda _: 98_765_432,
        "nvmlDeviceGetClockInfo": lambda _, kind: 1755 if kind == pynvml.NVML_CLOCK_SM else 2619,
        "nvmlDeviceGetMaxClockInfo": lambda _, kind: 1980 if kind == pynvml.NVML_CLOCK_SM else 2619,
        "nvmlDeviceGetTemperature": lambda *_: 61,
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _: 0x24,
        "nvmlDeviceGetComputeMode": lambda _: pynvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS,
        "nvmlDeviceGetPowerManagementLimit": lambda _: 300_500,
        "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 700_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": lambda _: [200_000, 700_000],
        "nvmlDeviceGetSupportedMemoryClocks": lambda _: [1593, 2619],
        "nvmlDeviceGetSupportedGraphicsClocks": lambda _, mhz: [1980, 1965, 345] if mhz == 2619 else [1200],
        "nvmlDeviceGetApplicationsClock": lambda _, kind: 1830 if kind == pynvml.NVML_CLOCK_SM else 2619,
        "nvmlDeviceGetPersistenceMode": lambda _: 1,
        "nvmlDeviceGetEccMode": lambda _: [0, 1],
        "nvmlDeviceGetMaxPcieLinkGeneration": lambda _: 4,
        "nvmlDeviceGetMaxPcieLinkWidth": lambda _: 8,
        "nvmlDeviceGetSamples": lambda _, kind, after_us: buffer_of(kind, after_us),
        "nvmlDeviceGetComputeRunningProcesses": lambda _: [
            SimpleNamespace(pid=7, usedGpuMemory=614 * MIB),
            SimpleNamespace(pid=8, usedGpuMemory=None),
        ],
        "nvmlDeviceGetGraphicsRunningProcesses": lambda _: [SimpleNamespace(pid=9, usedGpuMemory=8 * MIB)],
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
    assert nvml.ask(nvml_calls.UTILISATION, "GPU-1").gpu_pct == 97
    # The driver's own reserve is not in use.
    assert nvml.ask(nvml_calls.MEMORY, "GPU-1") == 1000
    assert nvml.ask(nvml_calls.PROCESSES, "GPU-0") == [(7, 614.0), (8, None)]
    assert nvml.ask(nvml_calls.DESKTOP, "GPU-0") == [(9, 8.0)]
    assert nvml.ask(nvml_calls.POWER, "GPU-0") == 431.25
    assert "instant" in nvml.power_source
    assert nvml.ask(nvml_calls.ENERGY, "GPU-0") == 98_765.432
    assert (nvml.ask(nvml_calls.SM_CLOCK, "GPU-0"), nvml.ask(nvml_calls.MAX_SM_CLOCK, "GPU-0")) == (
        1755,
        1980,
    )
    assert nvml.ask(nvml_calls.TEMPERATURE, "GPU-0") == 61
    assert (
        nvml.ask(nvml_calls.THROTTLE, "GPU-0")
        == nvml_calls.THROTTLE_REASONS["power cap"] | nvml_calls.THROTTLE_REASONS["heat"]
    )
    assert nvml.ask(nvml_calls.COMPUTE_MODE, "GPU-0") == "exclusive"
    assert nvml.ask(nvml_calls.POWER_RANGE, "GPU-0") == (200.0, 700.0)
    assert nvml.ask(nvml_calls.CLOCK_RANGE, "GPU-0") == (345, 1980), "with the memory at its fastest"
    assert read_common_settings(nvml, ["GPU-0", "GPU-1"]) == {
        "gpu_power_limit_w": 300.5,
        "gpu_default_limit_w": 700.0,
        "gpu_application_clock_mhz": 1830.0,
        "gpu_compute_mode": "exclusive",
        "gpu_persistence": True,
        "gpu_ecc": False,
        "gpu_pcie": "gen 4 x8",
    }
    assert nvml.read_driver_samples("GPU-0", "power_w", 0) == [(1000.0, 431.25), (1000.2, 431.25)], (
        "in order, in watts"
    )
    assert nvml.read_driver_samples("GPU-0", "gpu_util_pct", 1000.1) == [(1000.2, 97.0)], "only what is new"


def asking(call: NvmlCall[Any]) -> Callable[[Nvml], Any]:
    return lambda nvml: nvml.ask(call, "GPU-0")


READS: dict[str, Callable[[Nvml], Any]] = {
    **{name: asking(call) for name, call in CALLS.items()},
    "history": lambda nvml: nvml.read_driver_samples("GPU-0", "power_w", 0),
}
"""Call of the seam -> how to make it."""

OF_A_GPU = [
    name
    for name in vars(pynvml)
    if name.startswith("nvmlDeviceGet") and not name.startswith("nvmlDeviceGetHandle")
]
"""Every function by which the driver is asked something about a GPU."""

ERRORS = {
    name.removeprefix("NVML_ERROR_"): code
    for name, code in vars(pynvml).items()
    if name.startswith("NVML_ERROR_") and isinstance(code, int)
}
"""Every error that the library knows."""


def test_every_call_and_error_is_tried_here() -> None:
    assert set(READS) == calls_of_the_seam()
    assert {"NOT_SUPPORTED", "NO_PERMISSION", "GPU_IS_LOST", "NOT_FOUND", "UNKNOWN"} <= set(ERRORS)


EACH_FAILS = [*((call, "UNKNOWN") for call in READS), *(("history", error) for error in ERRORS)]
"""Every call once, and one of them with every error."""


@pytest.mark.parametrize(("call", "error"), EACH_FAILS)
def test_each_call_fails_with_its_reason(library: pytest.MonkeyPatch, call: str, error: str) -> None:
    read, nvml = READS[call], PynvmlNvml()
    for function in OF_A_GPU:
        library.setattr(pynvml, function, _raise(ERRORS[error]))
    if (call, error) == ("history", "NOT_FOUND"):
        # That is how the driver says that there is nothing new.
        assert read(nvml) == []
        return
    with pytest.raises(NvmlError) as caught:
        read(nvml)
    what, _, why = str(caught.value).partition(": ")
    assert what
    assert why == str(pynvml.NVMLError(ERRORS[error]))


@pytest.mark.parametrize("call", READS)
def test_a_gpu_that_is_not_there_has_a_reason(library: pytest.MonkeyPatch, call: str) -> None:
    read, nvml = READS[call], PynvmlNvml()
    nvml._handles.clear()  # as of a GPU that was never listed
    library.setattr(pynvml, "nvmlDeviceGetHandleByUUID", _raise(ERRORS["NOT_FOUND"]))
    with pytest.raises(NvmlError, match="GPU-0"):
        read(nvml)


@pytest.mark.parametrize("error", ["NOT_SUPPORTED", "FUNCTION_NOT_FOUND", "UNKNOWN"])
def test_without_instant_power_the_older_call_answers(library: pytest.MonkeyPatch, error: str) -> None:
    """Refused as a whole, or for this field alone."""
    for refuses in (_raise(ERRORS[error]), lambda _, __: [field_of(0, ERRORS[error])]):
        library.setattr(pynvml, "nvmlDeviceGetFieldValues", refuses)
        nvml = PynvmlNvml()
        # A field that was not filled is no 0 W.
        assert nvml.ask(nvml_calls.POWER, "GPU-0") == 412.5
        if error in ("NOT_SUPPORTED", "FUNCTION_NOT_FOUND"):
            assert "mean of 1 s" in nvml.power_source


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, pynvml.NVML_ERROR_TIMEOUT])
def test_memory_with_the_driver_s_reserve_in_it_is_no_figure(library: pytest.MonkeyPatch, error: int) -> None:
    """The older call counts the reserve as used."""

    def v1_only(_: Any, version: Any = None) -> Any:
        if version:
            raise pynvml.NVMLError(error)
        return SimpleNamespace(total=16 * MIB, used=9 * MIB)

    assert [gpu.reserved_mib for gpu in PynvmlNvml().devices] == [615, 615]
    library.setattr(pynvml, "nvmlDeviceGetMemoryInfo", v1_only)
    nvml = PynvmlNvml()
    with pytest.raises(NvmlError, match=f"memory: {pynvml.NVMLError(error)}"):
        nvml.ask(nvml_calls.MEMORY, "GPU-0")
    assert [(gpu.memory_mib, gpu.reserved_mib) for gpu in nvml.devices] == [(16, None), (16, None)]


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
    for read in READS.values():
        with pytest.raises(NvmlError, match="Driver Not Loaded"):
            read(nvml)
    assert "Driver Not Loaded" in nvml.power_source


SETS: dict[str, Callable[[PynvmlSetter], None]] = {
    "nvmlDeviceSetPowerManagementLimit 1 200500": lambda nvml: nvml.set_power_limit("GPU-1", 200.5),
    "nvmlDeviceSetGpuLockedClocks 1 345 1200": lambda nvml: nvml.limit_clock("GPU-1", 345, 1200),
    "nvmlDeviceResetGpuLockedClocks 1": lambda nvml: nvml.free_clock("GPU-1"),
}
"""What the library is called with -> how it is asked for."""


@pytest.mark.parametrize("called", SETS)
def test_what_is_set_reaches_the_driver_or_is_refused(library: pytest.MonkeyPatch, called: str) -> None:
    name, *wanted = called.split()
    calls: list[list[str]] = []
    library.setattr(pynvml, name, lambda *given: calls.append([str(value) for value in given]))
    nvml = PynvmlSetter()
    SETS[called](nvml)
    assert calls == [wanted]
    library.setattr(pynvml, name, _raise(pynvml.NVML_ERROR_NO_PERMISSION))
    with pytest.raises(NoRightError, match="Insufficient Permissions"):
        SETS[called](nvml)
    library.setattr(pynvml, name, _raise(pynvml.NVML_ERROR_UNKNOWN))
    with pytest.raises(NvmlError, match="Unknown Error") as caught:
        SETS[called](nvml)
    assert not isinstance(caught.value, NoRightError)
