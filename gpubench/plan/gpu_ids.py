"""Which GPUs each of the trials that run together gets. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gpubench.node.environment import Gpu
from gpubench.schema.trial import Trial


def gpu_ids(trials: Sequence[Trial], gpus: Sequence[Gpu], lost: Collection[int]) -> list[tuple[int, ...]]:
    """The GPUs of each of the trials that run together, by number: those that it names, else the first so many.

    Of a trial over several nodes: those on each of them.

    `lost`: numbers of GPUs. In their place others of the same model are taken, which is the same machine to a result,
    but not beside a trial that names its GPUs: it was to have these for itself. Where that can't be, the lost ones
    stay among the numbers: such a unit can't run.
    """
    may_move = bool(lost) and not any(trial.gpu_ids is not None for trial in trials)
    usable = [gpu.index for gpu in gpus if gpu.index not in lost]

    def first(count: int) -> tuple[int, ...]:
        planned, moved = tuple(range(count)), tuple(usable[:count])
        fits = may_move and len(moved) == count and _models(moved, gpus) == _models(planned, gpus)
        return moved if fits else planned

    return [
        trial.gpu_ids if trial.gpu_ids is not None else first(trial.devices // trial.nodes)
        for trial in trials
    ]


def _models(numbers: Iterable[int], gpus: Sequence[Gpu]) -> list[tuple[str, int]]:
    return [(gpus[number].name, gpus[number].memory_mib) for number in numbers]
