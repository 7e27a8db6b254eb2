"""A machine for the doctor's checks, and what they find by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import scripted

from gpubench.doctor.context import CheckContext, CheckResult, TorchReport
from gpubench.node.environment import Machine, list_visible_gpus
from gpubench.node.watch.nvml import NoNvml, Nvml
from gpubench.plan.command_line import read_experiment
from gpubench.plan.sweep_options import ExperimentOptions


def context(
    nvml: Nvml | None = None,
    machine: Machine | None = None,
    told: TorchReport | None = None,
    environ: Mapping[str, str] | None = None,
) -> CheckContext:
    """A machine with these GPUs."""
    nvml, environ = nvml or NoNvml("none here"), environ or {}
    gpus = list_visible_gpus(nvml.devices, environ.get("CUDA_VISIBLE_DEVICES"))
    machine = machine or dataclasses.replace(scripted.computer(), gpus=gpus, driver=nvml.driver)
    return CheckContext(
        nvml=nvml,
        machine=machine,
        environ=environ,
        experiment=read_experiment(None, ExperimentOptions(), has_gpu=bool(machine.gpus)),
        ask_torch=lambda: told or TorchReport(pid=1),
    )


def by_name(found: Iterable[CheckResult]) -> Mapping[str, CheckResult]:
    """The worst of those that share a name."""
    findings = sorted(found, key=lambda finding: ("ok", "doubt", "no").index(finding.verdict))
    assert all(finding.remedy for finding in findings if finding.verdict != "ok")
    return {finding.name: finding for finding in findings}
