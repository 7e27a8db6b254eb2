"""What several devices bring: speedup and efficiency against the fewest, strong or weak.

Strong: both rows have the same global batch. Weak: both have the same batch a device. On a CPU ranks count as
devices. All other fields are equal, but those that moved with the devices or the batch on one axis and may
(`alike.MOVES`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpubench.analysis.alike import DEVICES, devices, way
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.growth import epoch_time, series
from gpubench.analysis.noise import resting
from gpubench.analysis.over_processes import time_ratio, unlike_shown
from gpubench.analysis.varied import CANDIDATES, known, solo
from gpubench.basics.rounding import half_up
from gpubench.basics.words import MINUS, listed
from gpubench.schema.row import Row, TableRow, replace

__all__ = [
    "COLUMNS",
    "DEVICES",
    "Comparison",
    "comparisons",
    "devices",
    "named",
    "scale",
    "sentence",
    "unlike_costs",
]

Kind = Literal["strong", "weak"]
SAME: dict[Kind, str] = {"strong": "same global batch", "weak": "same batch a {device}"}
NOT_TOLD = frozenset({*DEVICES, "batch_size"})
"""Fields of which the sentence speaks anyway."""
COSTS_APART_PCT = 2.0
"""Points by which `breakdown_cost_pct` may differ within a comparison. Every other step bears that cost, so half of it
is in an epoch time: from there on it moves an efficiency by one per cent or more, which is what a table shows."""
COLUMNS = ("speedup", "strong_efficiency_pct", "weak_efficiency_pct")


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A row on several devices beside the row that it is measured against."""

    kind: Kind
    row: Row
    baseline: Row
    speedup: float
    """Images a second over the baseline's; of epoch times where a row does not know its images."""

    @property
    def efficiency_pct(self) -> float:
        """100: as many times faster as there are more devices."""
        return 100 * self.speedup * devices(self.baseline) / devices(self.row)

    @property
    def ratio(self) -> Interval | None:
        """The speed-up with its interval; None for the baseline itself, or where a side is of one process."""
        return None if self.row is self.baseline else time_ratio(self.baseline, self.row)

    @property
    def efficiency(self) -> Interval | None:
        """The efficiency in per cent, likewise."""
        ratio = self.ratio
        return ratio.times(100 * devices(self.baseline) / devices(self.row)) if ratio else None


SHARED: dict[Kind, Callable[[Row], float]] = {
    "strong": lambda row: float(row.batch_size or 0),
    "weak": lambda row: float(row.batch_size or 0) / devices(row),
}
"""What both rows of a comparison have in common."""


def comparisons(
    rows: Sequence[Row],
    tied: Collection[str] = (),
    tied_to_batch: Collection[str] = (),
) -> list[Comparison]:
    """Every row that can be set against one on fewer devices, the baselines (against themselves) among them.

    `rows`: repeats merged. `tied` and `tied_to_batch`: fields that move with the devices, and with the batch size.
    A row may have a strong and a weak comparison. Rows that did not end ok and jobs of a group have none. The
    baseline is `single` on one device where that was measured, else the fewest devices under the same strategy;
    where two rows could be it, there is none.
    """
    alone = [row for row in solo(rows) if epoch_time(row) is not None]
    if len(set(map(devices, alone))) < 2:
        return []
    found: list[Comparison] = []
    for kind, share in SHARED.items():
        free = {*DEVICES, *tied, *(tied_to_batch if kind == "weak" else ())}
        places: dict[Any, list[Row]] = {}
        for key, members in series(alone, "batch_size", free).items():
            for row in members:
                if row.batch_size:
                    places.setdefault((key, share(row)), []).append(row)
        for same in places.values():
            found += _against_the_fewest(kind, same)
    return found


def scale(
    rows: Sequence[TableRow],
    tied: Collection[str] = (),
    tied_to_batch: Collection[str] = (),
) -> tuple[list[TableRow], list[Comparison]]:
    """The rows with COLUMNS (None where they don't apply), and the comparisons that these are from.

    `speedup` is that of the strong comparison where a row has both.
    """
    made = comparisons(rows, tied, tied_to_batch)
    strong = {id(one.row): one for one in made if one.kind == "strong"}
    weak = {id(one.row): one for one in made if one.kind == "weak"}
    return [_scaled(row, strong.get(id(row)), weak.get(id(row))) for row in rows], made


def _scaled(row: TableRow, strong: Comparison | None, weak: Comparison | None) -> TableRow:
    either = strong or weak
    if either is None:
        return row
    (low, high), strong_ends, weak_ends = (
        _ends(one)
        for one in (either.ratio, strong.efficiency if strong else None, weak.efficiency if weak else None)
    )
    return replace(
        row,
        speedup=either.speedup,
        strong_efficiency_pct=strong.efficiency_pct if strong else None,
        weak_efficiency_pct=weak.efficiency_pct if weak else None,
        speedup_low=low,
        speedup_high=high,
        strong_efficiency_low_pct=strong_ends[0],
        strong_efficiency_high_pct=strong_ends[1],
        weak_efficiency_low_pct=weak_ends[0],
        weak_efficiency_high_pct=weak_ends[1],
    )


def _ends(found: Interval | None) -> tuple[float | None, float | None]:
    """Both ends of an interval; one that is nowhere is no figure."""
    if found is None:
        return None, None
    return found.low, found.high if math.isfinite(found.high) else None


def sentence(rows: Sequence[Row], made: Sequence[Comparison]) -> str | None:
    """Which scaling a table shows and against what; None where the number of devices does not vary."""
    alone = solo(rows)
    counts = {devices(row) for row in alone if row.status == "ok"}
    if len(counts) < 2:
        return None
    device = "rank" if all(row.device == "cpu" for row in alone) else "GPU"
    if not made:
        return (
            f"Neither strong nor weak scaling: no two rows on different numbers of {device}s have the same global "
            f"batch or the same batch a {device}, all other fields equal."
        )
    moved = [
        field for field in CANDIDATES if field not in NOT_TOLD and any(_moves(one, field) for one in made)
    ]
    others = (
        f"all other fields equal but {listed(moved)}, which moved along"
        if moved
        else "all other fields equal"
    )
    parts = []
    for kind, words in SAME.items():
        mine = [one for one in made if one.kind == kind]
        if mine:
            names = dict.fromkeys(named(one.baseline, device) for one in mine)
            parts.append(f"{kind} ({words.format(device=device)}, against {' or '.join(names)})")
    both = "; speedup is the strong one where a row has both" if len(parts) > 1 else ""
    rest = resting(row for one in made for row in (one.row, one.baseline))
    return f"Scaling: {' and '.join(parts)}, {others}{both}{_costs(made, device)}{rest}."


def unlike_costs(made: Iterable[Comparison]) -> list[tuple[Comparison, str, str]]:
    """Comparisons one side of which bears more of the cost of --breakdown, the most unlike first.

    With each the costs of its row and of its baseline, as text: `5.7 %`, `−0.4 %`.
    """
    known = [
        (one, mine, theirs)
        for one in made
        if (mine := one.row.breakdown_cost_pct) is not None
        and (theirs := one.baseline.breakdown_cost_pct) is not None
        and abs(mine - theirs) > COSTS_APART_PCT
    ]
    known.sort(key=lambda costs: -abs(costs[1] - costs[2]))
    return [(one, _per_cent(mine), _per_cent(theirs)) for one, mine, theirs in known]


def _costs(made: Sequence[Comparison], device: str) -> str:
    unlike = unlike_costs(made)
    if not unlike:
        return ""
    worst, mine, theirs = unlike[0]
    return (
        f"; the cost of --breakdown is in it: {mine} of every other step of {named(worst.row, device)}, {theirs} of "
        f"{named(worst.baseline, device)}"
    )


def _per_cent(value: float) -> str:
    return f"{half_up(value, 1)} %".replace("-", MINUS)


def _moves(one: Comparison, field: str) -> bool:
    return bool(known(one.row, field) != known(one.baseline, field))


def _against_the_fewest(kind: Kind, same: Sequence[Row]) -> list[Comparison]:
    single = [row for row in same if devices(row) == 1 and row.strategy == "single"]
    made = []
    for row in same:
        candidates = single or [other for other in same if way(other) == way(row)]
        fewest = min(devices(other) for other in candidates)
        baselines = [other for other in candidates if devices(other) == fewest]
        if len(baselines) == 1:
            speedup = _ratio(baselines[0], row)
            if speedup is not None:
                made.append(Comparison(kind=kind, row=row, baseline=baselines[0], speedup=speedup))
    compared = {id(one.baseline) for one in made if devices(one.row) > devices(one.baseline)}
    return [one for one in made if id(one.baseline) in compared]


def _ratio(before: Row, after: Row) -> float | None:
    old, new = epoch_time(before), epoch_time(after)
    if old is None or new is None:
        return None
    if ratio := unlike_shown(before, after):
        return ratio.value  # the figure that its interval belongs to
    if before.images_per_epoch and after.images_per_epoch:
        old, new = old / before.images_per_epoch, new / after.images_per_epoch
    return old / new


def named(row: Row, device: str) -> str:
    count = devices(row)
    return f"{row.strategy} on {count} {device}{'s' if count > 1 else ''}"
