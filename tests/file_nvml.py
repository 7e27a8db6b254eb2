"""An NVML whose GPUs lie in a file, for real processes that share them, and in which tests inject faults.

A process finds the file by `FILE_DRIVER` in its environment. What is set is there at once and for all, as in a real
driver: a process that is killed inside a call has set it or not.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MIB = 1 << 20
PLAIN: dict[str, Any] = {
    "limit_mw": 700_000, "clocks": None, "processes": [], "desktop": [], "sets": 0,
}  # fmt: skip
"""A GPU on which nothing runs; `clocks`: between which its clock is kept; `sets`: how often it was changed."""


class DriverFile:
    """The file, for tests and for the processes that ask the driver."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, *uuids: str, **facts: Any) -> DriverFile:
        """`facts`: `faults`, `slow_s` (at most, inside a call that sets), `may_set`."""
        path.write_text(
            json.dumps(
                {"may_set": True, "faults": {}, "slow_s": 0, **facts, "gpus": {u: dict(PLAIN) for u in uuids}}
            )
        )
        return cls(path)

    @contextlib.contextmanager
    def open_state(self) -> Iterator[dict[str, Any]]:
        """The state; what is changed in the block is stored whole, or not at all."""
        with self.path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            state = json.loads(self.path.read_text())
            before = json.dumps(state)
            yield state
            if (after := json.dumps(state)) != before:
                new = self.path.with_suffix(f".{os.getpid()}")
                new.write_text(after)
                new.replace(self.path)

    def read_gpu(self, uuid: str) -> dict[str, Any]:
        with self.open_state() as state:
            gpu: dict[str, Any] = state["gpus"][uuid]
            return gpu

    def change(self, uuid: str, **facts: Any) -> None:
        with self.open_state() as state:
            state["gpus"][uuid] |= facts

    def inject(self, **faults: Any) -> None:
        """`NAME=[{"at": 2, "error": 999}]`: the second such call from now fails so. In place of `error` its process is
        killed as it sets (`kill`: before, after), or other facts are set (`instead`). `at`: or "every"."""
        with self.open_state() as state:
            state["faults"] = {name: {"calls": 0, "plan": plan} for name, plan in faults.items()}


def replace_library(pynvml: ModuleType, replace: Callable[[ModuleType, str, Any], object] = setattr) -> None:
    """Puts these calls in place of the library's. `replace`: a test's own way, which takes them back."""
    driver = DriverFile(Path(os.environ["FILE_DRIVER"]))
    replaced: dict[str, Callable[..., Any]] = {}

    def fault(name: str) -> dict[str, Any]:
        with driver.open_state() as state:
            if name not in state["faults"]:
                return {}
            state["faults"][name]["calls"] += 1
            at = state["faults"][name]["calls"]
            return next(
                (fault for fault in state["faults"][name]["plan"] if fault["at"] in (at, "every")), {}
            )

    def read(name: str, take: Callable[[dict[str, Any]], Any]) -> None:
        def call(handle: str, *_: Any, **__: Any) -> Any:
            if error := fault(name).get("error"):
                raise pynvml.NVMLError(error)
            return take(driver.read_gpu(handle))

        replaced[name] = call

    def change(name: str, make: Callable[..., dict[str, Any]]) -> None:
        def call(handle: str, *given: Any) -> None:
            injected = fault(name)
            with driver.open_state() as state:
                slow_s, may_set = state["slow_s"], state["may_set"]
            time.sleep(random.uniform(0, slow_s))
            if not may_set:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NO_PERMISSION)
            if "error" in injected:
                raise pynvml.NVMLError(injected["error"])
            if injected.get("kill") == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            with driver.open_state() as state:
                gpu = state["gpus"][handle]
                gpu |= make(*given) | injected.get("instead", {}) | {"sets": gpu["sets"] + 1}
            if injected.get("kill") == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(random.uniform(0, slow_s))

        replaced[name] = call

    def list_processes(pids: list[int]) -> list[SimpleNamespace]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=614 * MIB) for pid in pids]

    def list_uuids() -> list[str]:
        with driver.open_state() as state:
            return list(state["gpus"])

    def find_handle(uuid: str) -> str:
        if uuid not in list_uuids():
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return uuid

    def refuse(*_: Any, **__: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    replaced |= {
        name: refuse
        for name in vars(pynvml)
        if name.startswith(("nvmlDeviceGet", "nvmlDeviceSet", "nvmlDeviceReset"))
    }
    replaced |= {
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: "580.1",
        "nvmlDeviceGetCount": lambda: len(list_uuids()),
        "nvmlDeviceGetHandleByIndex": lambda index: list_uuids()[index],
        "nvmlDeviceGetHandleByUUID": find_handle,
        "nvmlDeviceGetUUID": lambda handle: handle,
        "nvmlDeviceGetName": lambda _: "NVIDIA H200",
        "nvmlDeviceGetMemoryInfo": lambda *_, **__: SimpleNamespace(total=143771 * MIB, used=0, reserved=615 * MIB),
        "nvmlDeviceGetUtilizationRates": lambda _: SimpleNamespace(gpu=0, memory=0),
        "nvmlDeviceGetPowerUsage": lambda _: 75_000,
        "nvmlDeviceGetPowerManagementDefaultLimit": lambda _: 700_000,
        "nvmlDeviceGetPowerManagementLimitConstraints": lambda _: [200_000, 700_000],
        "nvmlDeviceGetSupportedMemoryClocks": lambda _: [2619],
        "nvmlDeviceGetSupportedGraphicsClocks": lambda *_: [1980, 345],
        "nvmlDeviceGetComputeMode": lambda _: 0,
    }  # fmt: skip
    read("nvmlDeviceGetPowerManagementLimit", lambda gpu: gpu["limit_mw"])
    read("nvmlDeviceGetComputeRunningProcesses", lambda gpu: list_processes(gpu["processes"]))
    read("nvmlDeviceGetGraphicsRunningProcesses", lambda gpu: list_processes(gpu["desktop"]))
    change("nvmlDeviceSetPowerManagementLimit", lambda mw: {"limit_mw": mw})
    change("nvmlDeviceSetGpuLockedClocks", lambda low, high: {"clocks": [low, high]})
    change("nvmlDeviceResetGpuLockedClocks", lambda: {"clocks": None})
    for name, call in replaced.items():
        replace(pynvml, name, call)
