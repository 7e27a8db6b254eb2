"""Ways to do the same work, by the figures of rows of one process: what they say, and that it decides nothing. Pure.

No claim is made here: over processes they are compared by `claims.py`. What one process saw is told as it stands,
whether its epochs spread little or much, for how far processes differ is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from gpubench.analysis.alternatives import Pair, told_apart_by
from gpubench.analysis.cpu_use import FIELD
from gpubench.analysis.decided import plain_change
from gpubench.analysis.growth import percent, time_growth_pct
from gpubench.analysis.noise import processes, resting
from gpubench.analysis.varied import label
from gpubench.schema.row import TableRow


def sentences(pairs: Sequence[Pair], fields: Collection[str]) -> list[str]:
    """For each value beside the one named first how time per image, and of variants CPU time, changes: one sentence.

    `pairs`: of a table; those of which both rows are of several processes are left to its claims. `fields`: those in
    which rows of the table differ.
    """
    found: dict[tuple[str, str, str], list[Pair]] = {}
    for one in pairs:
        if min(processes(one.row), processes(one.baseline)) == 1:
            names = label(one.row, [one.field]), label(one.baseline, [one.field])
            found.setdefault((one.field, *names), []).append(one)
    return [
        _sentence(name, first, same, told_apart_by(field, fields))
        for (field, name, first), same in found.items()
    ]


def _sentence(name: str, first: str, same: Sequence[Pair], fields: Collection[str]) -> str:
    times = _listed(same, fields, time_growth_pct)
    of_cpu = _listed([one for one in same if one.field == FIELD], fields, _cpu_growth_pct)
    also = f". CPU time per image: {of_cpu}" if of_cpu else ""
    rest = resting(row for one in same for row in (one.row, one.baseline))
    unknown = "" if rest else ". How far chance moves these times is not known"
    start = f"Time per image with {name} against {first}: open, not decided: by these figures"
    return f"{start} {times}{also}{unknown}{rest}."


def _listed(
    same: Sequence[Pair], fields: Collection[str], growth: Callable[[TableRow, TableRow], float | None]
) -> str:
    """`at batch_size=32 it falls 4 %; at batch_size=128 it falls 52 %`; empty where no figure is known."""
    return "; ".join(
        f"{f'at {place} ' if (place := label(one.row, fields)) else ''}it {plain_change(pct)}"
        for one in same
        if (pct := growth(one.baseline, one.row)) is not None
    )


def _cpu_growth_pct(before: TableRow, after: TableRow) -> float | None:
    """Change of the CPU time of an image; None where a row does not know one."""
    old, new = _cpu_s(before), _cpu_s(after)
    return percent(old, new) if old and new else None


def _cpu_s(row: TableRow) -> float | None:
    images = row.images_per_epoch
    return row.cpu_s_per_epoch / images if row.cpu_s_per_epoch and images else None
