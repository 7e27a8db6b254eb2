"""The checks, in the order in which they run and are told: what torch's child disturbs comes before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from gpubench.doctor import cpu, folders, gpus, limits, neighbours, readings, slurm, software, torch_works
from gpubench.doctor.context import CheckContext
from gpubench.doctor.finding import CheckResult

Check = Callable[[CheckContext], Iterable[CheckResult]]

CHECKS: tuple[Check, ...] = (
    software.versions,
    cpu.processors,
    cpu.cpu_time,
    cpu.process_tree,
    slurm.job,
    limits.shared_memory,
    limits.open_files,
    folders.images,
    folders.results,
    gpus.driver,
    gpus.listed,
    gpus.slices,
    gpus.compute_modes,
    neighbours.others,
    readings.readings,
    torch_works.imports,
    torch_works.cuda,
    torch_works.numbering,
    torch_works.process_memory,
    torch_works.ranks,
)


def examine(context: CheckContext, checks: Sequence[Check] = CHECKS) -> Iterator[CheckResult]:
    """All findings, each as soon as it is made. A check that breaks is a finding, and the others go on."""
    for check in checks:
        try:
            yield from check(context)
        except Exception as error:  # noqa: BLE001 - a machine may be broken in ways that no check foresaw
            yield CheckResult(
                group="checks that broke",
                name=check.__name__.replace("_", " "),
                verdict="no",
                found=f"{type(error).__name__}: {error}",
                remedy="gpubench did not foresee this: please report it",
            )
