"""What was full while jobs ran together: each watched resource, alone and together.

Each is watched through one column, and WATCHED draws the line from which it counts as full. Two of them are no shares
of something: `input` is full where the GPUs wait for images, `power` where their clocks are lowered. Two others are
shares of time, not of what there is: that some kernel always ran, or memory was always being used, is no evidence that
a GPU was full. From their line on that is told, but they never count as full.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpubench.schema.codes import REASONS
from gpubench.schema.doubts import FULL_PCT, THROTTLED_PCT
from gpubench.schema.row import Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """How full one resource was: for each job alone, and for each while all of them ran."""

    name: str
    column: str
    unit: str
    alone: tuple[float | None, ...]
    """One a job; None: not known."""
    together: tuple[float | None, ...]
    full_alone: tuple[bool, ...]
    full_together: bool
    """For one of the jobs at least."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WatchedResource:
    """What is looked at for one resource."""

    name: str
    column: str
    full_from: float
    """The figure, in per cent, from which it counts as full; a share of time is told from there on."""
    of_gpus: bool = True
    """Whether only jobs on GPUs have it."""
    of_time: bool = False
    """Whether it is a share of time: then reaching the line is told, and is no evidence that it was full."""

    def is_reached(self, value: float | None) -> bool:
        """Whether a figure, in per cent, is known and lies on the line or above."""
        return value is not None and value >= self.full_from


WATCHED = (
    WatchedResource(name="cpu", column="cpu_util_pct", full_from=90, of_gpus=False),
    WatchedResource(name="gpu", column="gpu_util_pct", full_from=95, of_time=True),
    WatchedResource(name="gpu memory", column="gpu_mem_mib", full_from=FULL_PCT),
    WatchedResource(name="memory bandwidth", column="gpu_mem_util_pct", full_from=90, of_time=True),
    WatchedResource(name="input", column="data_wait_pct", full_from=20, of_gpus=False),
    WatchedResource(name="power", column="throttled_pct", full_from=THROTTLED_PCT),
)


def compute_resource_fullness(
    alone: Sequence[Row], together: Sequence[Row], gpu_memory_mib: Sequence[float | None]
) -> list[Resource]:
    """How full every watched resource was; those of GPUs are left out where no job uses one.

    Rows of the same job have the same place in both. `gpu_memory_mib`: what one GPU of each job has, in MiB.
    """
    on_gpus = any(row.gpus or row.gpu_ids for row in (*alone, *together))
    resources = []
    for watched in WATCHED:
        if watched.of_gpus and not on_gpus:
            continue
        is_memory = watched.name == "gpu memory"
        if is_memory:
            before = _compute_memory_shares(alone, gpu_memory_mib, together=False)
            now = _compute_memory_shares(together, gpu_memory_mib, together=True)
        else:
            before, now = (tuple(getattr(row, watched.column) for row in rows) for rows in (alone, together))
        # An allocator that had to try again ran short, whatever the figure says.
        full_alone, full_now = (
            tuple(
                bool(is_memory and row.gpu_alloc_retries)
                or (watched.is_reached(value) and not watched.of_time)
                for row, value in zip(rows, values, strict=True)
            )
            for rows, values in ((alone, before), (together, now))
        )
        resources.append(
            Resource(
                name=watched.name,
                column=watched.column,
                unit="%",
                alone=before,
                together=now,
                full_alone=full_alone,
                full_together=any(full_now),
            )
        )
    return resources


def list_full_resources(resources: Sequence[Resource]) -> tuple[str, ...]:
    """The names of what was full while the jobs ran together."""
    return tuple(resource.name for resource in resources if resource.full_together)


def format_full_resources(resources: Sequence[Resource]) -> str | None:
    """What was full, as the column `full_together` has it, `cpu+gpu-memory`; None for nothing."""
    return "+".join(name.replace(" ", "-") for name in list_full_resources(resources)) or None


def explain_none_full(resources: Sequence[Resource]) -> str:
    """Why `full_together` is empty: nothing was full, or a share of time does not tell."""
    figures = {resource.name: resource.together for resource in resources}
    busy = [
        "GPU time" if watched.name == "gpu" else watched.name
        for watched in WATCHED
        if watched.of_time and any(map(watched.is_reached, figures.get(watched.name, ())))
    ]
    if busy:
        return f"no watched resource is known to have been full; {' and '.join(busy)} can't tell"
    return REASONS["none-full"]


def _compute_memory_shares(
    rows: Sequence[Row], gpu_memory_mib: Sequence[float | None], *, together: bool
) -> tuple[float | None, ...]:
    """Per cent of the memory of each job's fullest GPU, by all jobs that are on it at the same time.

    A job's figure is that of its fullest GPU, taken for each of its GPUs; so it is at most this full.
    """
    shares: list[float | None] = []
    for row, size in zip(rows, gpu_memory_mib, strict=True):
        held = [_sum_held_mib(rows, gpu) for gpu in row.gpu_ids or ()] if together else [row.gpu_mem_mib]
        known = [mib for mib in held if mib is not None]
        complete = bool(known) and len(known) == len(held)
        shares.append(min(100.0, 100 * max(known) / size) if complete and size else None)
    return tuple(shares)


def _sum_held_mib(rows: Sequence[Row], gpu: int) -> float | None:
    """MiB that the jobs hold on a GPU; None where one of them is not known."""
    held = [row.gpu_mem_mib for row in rows if gpu in (row.gpu_ids or ())]
    return None if None in held else sum(mib for mib in held if mib is not None)
