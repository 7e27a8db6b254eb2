"""Repeats of one configuration become one row: the median, how many, and how far apart."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from gpubench import result
from gpubench.analysis.slowdown import verdict
from gpubench.analysis.varied import Row, machine
from gpubench.result import Column

REPEATS = Column("repeats", "", "repeats that ended ok; the row shows their median", "n")

SPREAD_PCT = 5.0
"""How far repeats may lie apart, in per cent of their median, before their row is doubtful."""
SPREAD = (
    f"epoch times of its repeats lie more than {SPREAD_PCT:g} % of their median apart; "
    "run more repeats, on a quiet machine, before two such rows are compared"
)

FIGURES: tuple[str, ...] = tuple(
    c.name for c in (*result.TRIAL[-2:], *result.MEASURED) if c.name != "group_id"
)


def _of_all(found: Sequence[Any]) -> Any:
    """The median, where every repeat has one: that of the lucky ones alone would flatter."""
    return None if None in found else _middle(found)


def _same(found: Sequence[Any]) -> Any:
    """What all agree in: ranks have no median."""
    return found[0] if len(set(found)) == 1 else None


def _first(found: Sequence[Any]) -> Any:
    """Of what no two repeats share, any will do."""
    return next((value for value in found if value is not None), None)


def _often(found: Sequence[Any]) -> Any:
    """Of words joined by +, those that at least half of the repeats have."""
    counts = Counter(word for value in found if value is not None for word in str(value).split("+"))
    return "+".join(word for word, number in counts.items() if 2 * number >= len(found)) or None


SPECIAL: dict[str, Callable[[Sequence[Any]], Any]] = {
    "slowest_rank": _same,
    "epochs_to_top1": _of_all,
    "time_to_top1_s": _of_all,
    "energy_to_top1_j": _of_all,
    "full_together": _often,
    "solo_id": _first,
}
"""Figures of which a median over repeats would mislead, or make no sense."""


def merge_repeats(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """One row a configuration, in order of first appearance.

    Rows are repeats of each other if they agree in config_id, group, job and machine. Figures are medians over
    those that ended ok. Adds `repeats` (how many those are), `reached` (how many of them a top-1 to reach), `endings`
    ("ok", or "2 ok, 1 failed"), and the doubt `spread` where epoch times lie far apart. Jobs of one group agree in
    `group_id` (the least of their repeats'), and what was found out about it, `together`, is the first ok repeat's
    but for `gain_range`, which holds those of all.
    """
    return [_merge(same) for same in _alike(rows)]


def with_spread(rows: Sequence[Row]) -> list[Row]:
    """The same rows, each repeat by itself; those whose repeats lie far apart carry the doubt `spread`, too."""
    wide = {id(row) for same in _alike(rows) if apart(_times(same)) for row in same if row["status"] == "ok"}
    return [{**row, "doubts": _codes([row], "spread")} if id(row) in wide else row for row in rows]


def _alike(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that are repeats of each other, together."""
    found: dict[Any, dict[str | None, list[Row]]] = {}
    for number, row in enumerate(rows):
        config = row.get("config_id") or number
        found.setdefault((config, row.get("group"), row.get("job")), {}).setdefault(machine(row), []).append(
            row
        )
    return [same for machines in found.values() for same in _adopt(machines)]


def _adopt(machines: dict[str | None, list[Row]]) -> list[list[Row]]:
    """Rows by machine; a planned one, which has none yet, joins the first."""
    homeless = machines.pop(None, [])
    groups = list(machines.values()) or [[]]
    groups[0].extend(homeless)
    return groups


def _merge(same: Sequence[Row]) -> dict[str, Any]:
    good = [row for row in same if row["status"] == "ok"]
    bad = [row for row in same if row["status"] != "ok"]
    counts = Counter(row["status"] for row in (*good, *bad))
    merged = dict((good or bad)[0])
    merged["repeats"] = len(good)
    merged["endings"] = _endings(counts)
    merged["reached"] = sum(row.get("time_to_top1_s") is not None for row in good)
    merged["reason"] = next((row["reason"] for row in bad if row.get("reason")), None)
    merged["doubts"] = _codes(same)
    merged["doubt_texts"] = {k: v for row in same for k, v in (row.get("doubt_texts") or {}).items()}
    merged["group_id"] = min((row["group_id"] for row in same if row.get("group_id")), default=None)
    if len(good) > 1:
        for name in FIGURES:
            found = [row.get(name) for row in good]
            merged[name] = SPECIAL.get(name, _middle)(found)
        if merged.get("overlap_gain") is not None:
            merged["sharing"] = verdict(merged["overlap_gain"])
        if merged.get("together"):
            merged["together"] = {**merged["together"], "gain_range": _gain_range(good)}
        times = _times(good)
        merged["epoch_time_iqr_s"] = iqr(times)
        if merged.get("images_per_epoch") and merged.get("epoch_time_s"):
            # Medians of both sides would break images_per_s * epoch_time_s = images_per_epoch.
            merged["images_per_s"] = merged["images_per_epoch"] / merged["epoch_time_s"]
        if apart(times):
            merged["doubts"] = _codes(same, "spread")
            merged["doubt_texts"] = {**merged["doubt_texts"], "spread": SPREAD}
    return merged


def _gain_range(rows: Sequence[Row]) -> list[float] | None:
    """From the lowest overlap gain to the highest, of all these repeats; None where none is known."""
    ends: list[float] = []
    for row in rows:
        gain = row.get("overlap_gain")
        ends += (row.get("together") or {}).get("gain_range") or ([] if gain is None else [gain])
    return [min(ends), max(ends)] if ends else None


def _codes(rows: Sequence[Row], *more: str) -> str | None:
    """The doubts of all these rows, and more, as one cell."""
    return "+".join(sorted({*more, *(code for row in rows for code in codes(row))})) or None


def codes(row: Row) -> list[str]:
    """The codes of a row's doubts."""
    return [code for code in (row.get("doubts") or "").split("+") if code]


def _times(rows: Sequence[Row]) -> list[float]:
    good = [row for row in rows if row["status"] == "ok"]
    return [row["epoch_time_s"] for row in good if row.get("epoch_time_s") is not None]


def _endings(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{number} {status}" for status, number in counts.items())


def _middle(found: Sequence[Any]) -> Any:
    """The median of the known numbers; of text, what all agree in."""
    there = [value for value in found if value is not None]
    if not there:
        return None
    if all(isinstance(value, (int, float)) for value in there):
        return statistics.median(there)
    return there[0] if len(set(map(str, there))) == 1 else "mixed"


def apart(times: Sequence[float]) -> bool:
    """Whether epoch times of repeats differ by more than SPREAD_PCT of their median.

    From three on their interquartile range counts; of two, their difference.
    """
    if len(times) < 2:
        return False
    wide = iqr(times) if len(times) > 2 else max(times) - min(times)
    return wide is not None and wide > SPREAD_PCT / 100 * statistics.median(times)


def iqr(numbers: Sequence[float]) -> float | None:
    """Interquartile range; None for fewer than two numbers."""
    if len(numbers) < 2:
        return None
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return high - low
