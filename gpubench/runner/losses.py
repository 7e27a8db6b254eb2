"""GPUs that were lost while a sweep ran, and what that means for the units that are still to run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gpubench.environment import Gpu
from gpubench.errors import UnusableError
from gpubench.monitor import losses
from gpubench.monitor.nvml import Nvml
from gpubench.trial import Trial


@dataclass(frozen=True, kw_only=True, slots=True)
class Loss:
    """One GPU that can't be used any more."""

    gpu: Gpu
    since: str
    """When it was noticed: 12:01, by the clock on the wall."""
    said: str
    """The driver's words."""

    @property
    def words(self) -> str:
        return (
            f"GPU {self.gpu.index} ({self.gpu.uuid}) has been lost since {self.since}; the driver says: {self.said}; "
            "reset it or reboot"
        )


def look(nvml: Nvml, gpus: Iterable[Gpu], since: str) -> list[Loss]:
    """Those of these GPUs that the driver has lost. Costs a few microseconds a GPU that is well."""
    said = ((gpu, losses.loss(nvml, gpu.uuid)) for gpu in gpus)
    return [Loss(gpu=gpu, since=since, said=words) for gpu, words in said if words is not None]


def none_left(lost: Iterable[Loss]) -> UnusableError:
    """How a sweep ends that has no GPU left."""
    told = "; ".join(loss.words for loss in lost)
    return UnusableError(f"no GPU is left: {told}; then the same command goes on where this one stopped")


def gpu_ids(trials: Sequence[Trial], gpus: Sequence[Gpu], lost: Collection[int]) -> list[tuple[int, ...]]:
    """The GPUs of each of the trials that run together, by number: those that it names, else the first so many.

    `lost`: numbers of GPUs. In their place others of the same model are taken, which is the same machine to a result,
    but not beside a trial that names its GPUs: it was to have these for itself. Where that can't be, the lost ones
    stay among the numbers: such a unit can't run.
    """
    may_move = bool(lost) and not any(trial.gpu_ids is not None for trial in trials)
    left = [gpu.index for gpu in gpus if gpu.index not in lost]

    def first(count: int) -> tuple[int, ...]:
        planned, others = tuple(range(count)), tuple(left[:count])
        fits = may_move and len(others) == count and _models(others, gpus) == _models(planned, gpus)
        return others if fits else planned

    return [trial.gpu_ids if trial.gpu_ids is not None else first(trial.gpus or 1) for trial in trials]


def _models(numbers: Iterable[int], gpus: Sequence[Gpu]) -> list[tuple[str, int]]:
    return [(gpus[number].name, gpus[number].memory_mib) for number in numbers]
