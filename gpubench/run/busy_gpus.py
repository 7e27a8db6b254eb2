"""Whether a sweep may start while somebody else is on its GPUs. Pure: what was seen in, what to do out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpubench.basics.errors import UnusableError
from gpubench.schema.gpu_look import IN_USE_PCT, GpuLook, GpuProcess, IdlePower

NAMED = 3
"""Processes that one line names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuUseFindings:
    """What the look means for a sweep."""

    busy: tuple[str, ...]
    """GPUs that a stranger keeps busy, a phrase each: their figures would be worth nothing."""
    notes: tuple[str, ...]
    """What does not stand in the way, a line each."""
    unknown: tuple[str, ...]
    """GPUs of which it can't be told whether they are busy, a line each."""
    idle: IdlePower
    """Without GPUs that somebody keeps busy."""

    def check_not_busy(self, *, allow_busy: bool) -> list[str]:
        """The lines to tell. Raises UnusableError where a GPU is busy and that is not allowed."""
        if self.busy and not allow_busy:
            raise UnusableError(
                f"{'; '.join(self.busy)}: "
                "wait, take other GPUs with --gpu-ids, or measure all the same with --allow-busy"
            )
        return [*self.busy, *self.notes, *self.unknown]


def classify_gpu_use(looks: Mapping[str, GpuLook], numbers: Mapping[str, int]) -> GpuUseFindings:
    """What to make of these GPUs. `numbers`: uuid -> as `--gpu-ids` takes it."""
    busy, notes, unknown = list[str](), list[str](), list[str]()
    watts: dict[str, float] = {}
    not_idle: dict[str, str] = {}
    for uuid, look in looks.items():
        gpu = f"GPU {numbers[uuid]}"
        at = "" if look.util_pct is None else f" ({look.util_pct:.0f} % busy)"
        if look.util_pct is not None and look.util_pct >= IN_USE_PCT:
            not_idle[uuid] = f"{gpu} was {look.util_pct:.0f} % busy before the sweep"
        elif look.power_w is None:
            not_idle[uuid] = f"{gpu}: {look.missing.get('power_w', 'power was not sampled')}"
        else:
            watts[uuid] = look.power_w
        if (stranger := _describe_stranger(look)) is not None:
            busy.append(f"{gpu} is {look.util_pct:.0f} % busy with somebody else's work: {stranger}")
            continue
        if look.compute:
            notes.append(
                f"{gpu}{at}: {describe_processes(look.compute)} is somebody else's, and may begin to work at any time"
            )
        if look.desktop:
            notes.append(f"{gpu}{at} serves a desktop: {describe_processes(look.desktop)}")
        if look.util_pct is None:
            unknown.append(
                f"{gpu}: whether it is busy is not known: {look.missing.get('util_pct', 'no sample')}"
            )
    return GpuUseFindings(
        busy=tuple(busy),
        notes=tuple(notes),
        unknown=tuple(unknown),
        idle=IdlePower(
            watts=watts, missing=not_idle, readings={uuid: looks[uuid].readings for uuid in watts}
        ),
    )


def _describe_stranger(look: GpuLook) -> str | None:
    """Who keeps the GPU busy, in words; None: nobody, or a desktop alone."""
    if look.util_pct is None or look.util_pct < IN_USE_PCT:
        return None
    if look.compute:
        return describe_processes(look.compute)
    if look.desktop:
        return None
    why = look.missing.get("compute", "another container's, or another user's")
    return f"no process can be seen ({why})"


def describe_processes(processes: Iterable[GpuProcess]) -> str:
    """`process 4711 (python, 1,234 MiB), process … and 5 more`."""
    everyone = list(processes)
    named = [
        f"process {p.pid} ({p.name}, {'memory unknown' if p.mib is None else f'{p.mib:,.0f} MiB'})"
        for p in everyone[:NAMED]
    ]
    more = len(everyone) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
