"""What `gpubench doctor` does, put together from the parts."""

from __future__ import annotations

import os

from rich.console import Console

from gpubench.basics.errors import UnusableError
from gpubench.doctor import answer
from gpubench.doctor.checks import run_checks
from gpubench.doctor.context import CheckContext, TorchReport, select_gpus_usable_together
from gpubench.doctor.probe import TorchProbe
from gpubench.node import environment
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.command_line import read_experiment
from gpubench.plan.sweep_options import ExperimentOptions


def doctor(*, as_json: bool) -> int:
    """`gpubench doctor`: returns the exit code, `UnusableError`'s where no sweep can run here."""
    nvml = open_nvml()
    machine = environment.make_machine(nvml)
    waiting = Console(stderr=True).status("torch is imported and tried in a child ...", spinner="line")
    with TorchProbe([gpu.uuid for gpu in select_gpus_usable_together(machine.gpus)]) as probe:

        def ask_torch() -> TorchReport:
            with waiting:
                return probe.read_report()

        context = CheckContext(
            nvml=nvml,
            machine=machine,
            environ=os.environ,
            experiment=read_experiment(None, ExperimentOptions(), has_gpu=bool(machine.gpus)),
            ask_torch=ask_torch,
        )
        if as_json:
            findings = list(run_checks(context))
            print(answer.format_json(findings))
        else:
            findings = answer.print_findings(run_checks(context), Console(highlight=False))
    return UnusableError.exit_code if any(finding.forbids for finding in findings) else 0
