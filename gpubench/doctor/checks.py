"""The checks, in the order in which they run and are told: what torch's child disturbs comes before it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from gpubench.doctor import gpus, host, torch_works
from gpubench.doctor.context import CheckContext, CheckResult, make_failure

Check = Callable[[CheckContext], Iterable[CheckResult]]

CHECKS: Mapping[str, Sequence[Check]] = {
    "software": (host.check_versions,),
    "CPU and memory": (host.check_cpus,),
    "SLURM": (host.check_slurm_job,),
    "limits": (host.check_shared_memory_and_files,),
    "folders": (host.check_folders,),
    "GPUs": (gpus.check_driver, gpus.check_listed_gpus, gpus.check_compute_modes),
    "others on the GPUs": (gpus.check_others_on_gpus,),
    "readings of the GPUs": (gpus.check_gpu_readings,),
    "torch at work": (
        torch_works.check_imports,
        torch_works.check_cuda,
        torch_works.check_driver_process_memory,
        torch_works.check_ranks,
    ),
}
"""Heading -> what is looked at under it."""


def run_checks(
    context: CheckContext, checks: Mapping[str, Sequence[Check]] = CHECKS
) -> Iterator[CheckResult]:
    """All findings, each as soon as it is made. A check that breaks is a finding, and the others go on."""
    for group, check in [(group, check) for group, of_group in checks.items() for check in of_group]:
        try:
            for result in check(context):
                yield dataclasses.replace(result, group=group)
        except Exception as error:  # noqa: BLE001 - a machine may be broken in ways that no check foresaw
            name, problem = (
                check.__name__.removeprefix("check_").replace("_", " "),
                f"{type(error).__name__}: {error}",
            )
            result = make_failure(name, problem, "gpubench did not foresee this: please report it")
            yield dataclasses.replace(result, group="checks that broke")
