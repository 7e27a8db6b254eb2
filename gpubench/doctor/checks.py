"""The checks, in the order in which they run and are told: what torch's child disturbs comes before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gpubench.doctor import gpus, host, torch_works
from gpubench.doctor.context import CheckContext, CheckResult, no

Check = Callable[[CheckContext], Iterable[CheckResult]]

CHECKS: Mapping[str, Sequence[Check]] = {
    "software": (host.versions,),
    "CPU and memory": (host.cpus,),
    "SLURM": (host.slurm,),
    "limits": (host.limits,),
    "folders": (host.folders,),
    "GPUs": (gpus.driver, gpus.listed, gpus.compute_modes),
    "others on the GPUs": (gpus.others,),
    "readings of the GPUs": (gpus.readings,),
    "torch at work": (torch_works.imports, torch_works.cuda, torch_works.process_memory, torch_works.ranks),
}
"""Heading -> what is looked at under it."""


def examine(context: CheckContext, checks: Mapping[str, Sequence[Check]] = CHECKS) -> Iterator[CheckResult]:
    """All findings, each as soon as it is made. A check that breaks is a finding, and the others go on."""
    for group, check in [(group, check) for group, of_group in checks.items() for check in of_group]:
        try:
            for result in check(context):
                yield dataclasses.replace(result, group=group)
        except Exception as error:  # noqa: BLE001 - a machine may be broken in ways that no check foresaw
            name, problem = check.__name__.replace("_", " "), f"{type(error).__name__}: {error}"
            result = no(name, problem, "gpubench did not foresee this: please report it")
            yield dataclasses.replace(result, group="checks that broke")
