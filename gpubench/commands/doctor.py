"""What `gpubench doctor` does, put together from the parts."""

from __future__ import annotations

import os

from rich.console import Console

from gpubench.basics.errors import UnusableError
from gpubench.doctor import checks
from gpubench.doctor.context import CheckContext, TorchReport, select_gpus_usable_together
from gpubench.doctor.torch_works import open_torch_probe
from gpubench.node import environment
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.command_line import read_experiment
from gpubench.plan.sweep_options import ExperimentOptions


def doctor(*, as_json: bool) -> int:
    """`gpubench doctor`: returns the exit code, `UnusableError`'s where no sweep can run here."""
    nvml = open_nvml()
    machine = environment.make_machine(nvml)
    waiting = Console(stderr=True).status("torch is imported and tried in a child ...", spinner="line")
    with open_torch_probe([gpu.uuid for gpu in select_gpus_usable_together(machine.gpus)]) as read_report:

        def ask_torch() -> TorchReport:
            with waiting:
                return read_report()

        context = CheckContext(
            nvml=nvml,
            machine=machine,
            environ=os.environ,
            experiment=read_experiment(None, ExperimentOptions(), has_gpu=bool(machine.gpus)),
            ask_torch=ask_torch,
        )
        if as_json:
            findings = list(checks.run_checks(context))
            print(checks.format_json(findings))
        else:
            findings = checks.print_findings(checks.run_checks(context), Console(highlight=False))
    return UnusableError.exit_code if any(finding.forbids for finding in findings) else 0
