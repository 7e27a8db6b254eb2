"""Where a larger batch stops paying: it pays while GPU memory × time per image falls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpubench import result
from gpubench.analysis.growth import epoch_time, gpu_mem, memory_growth_pct, series, time_growth_pct
from gpubench.analysis.repeats import codes, merge_repeats
from gpubench.analysis.varied import Row, solo
from gpubench.rounding import half_up

Series = tuple[tuple[str, Any], ...]
Verdict = Literal["stops", "never", "always", "time-only", "too-few"]

# Memory is per GPU: a step that also changes the devices is not a question of the batch size alone.
DEVICES = frozenset({"gpus", "gpu_ids", "ranks", "strategy"})

OF_TIME = frozenset(
    {
        "other-load",
        "stranger",
        "spread",
        "throttled",
        "low-clock",
        "short-warmup",
        "cpu-starved",
        "short-epochs",
        "gaps",
    }
)
"""Doubts that concern a row's epoch time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Knee:
    """The answer for one series of batch sizes."""

    series: Series
    """The (field, value) pairs that tell this series from the others."""
    verdict: Verdict
    """`stops`, `never` (pays, not even the first step), `always` (as far as measured), `time-only` (no memory
    figure to weigh), `too-few` (fewer than two batch sizes have figures)."""
    best: int | None = None
    """The last batch size that paid; for `time-only` the last that was faster than the one before."""
    refused: int | None = None
    """The next batch size, which no longer pays."""
    memory_growth_pct: float | None = None
    """From `best` to `refused`."""
    time_growth_pct: float | None = None
    """Time per image, from `best` to `refused`."""
    sentence: str


def knees(rows: Sequence[Row], tied: Collection[str] = ()) -> list[Knee]:
    """One Knee for each series with at least two batch sizes. `tied` fields move with the batch size.

    Jobs of a group are left out (they ran at the same time), and so is a series with two rows of one size.
    """
    alone = [row for row in solo(merge_repeats(rows)) if row.get("batch_size")]
    found = []
    for key, members in series(alone, "batch_size", set(tied) - DEVICES).items():
        if len({row["batch_size"] for row in members}) == len(members) > 1:
            knee = _knee(key, sorted(members, key=lambda row: row["batch_size"]))
            found.append(replace(knee, sentence=_named(key, knee.sentence)))
    return found


def _named(key: Series, sentence: str) -> str:
    name = " ".join(f"{field}={result.cell(value)}" for field, value in key if value is not None)
    return f"{name}: {sentence[0].lower()}{sentence[1:]}" if name else sentence


def _knee(key: Series, ordered: Sequence[Row]) -> Knee:
    timed = [row for row in ordered if epoch_time(row) is not None]
    weighed = [row for row in timed if gpu_mem(row) is not None]
    if len(timed) < 2:
        having = f"only {timed[0]['batch_size']} has an epoch time" if timed else "no row has an epoch time"
        sentence = f"Too few figures to say where a larger batch stops paying: {having}."
        return Knee(series=key, verdict="too-few", sentence=sentence)
    if len({row.get("gpu_mem_source") for row in weighed}) > 1:
        return _by_time(key, timed, "memory figures come from different sources")
    if len(weighed) < 2:
        on_cpu = all(row.get("device") == "cpu" for row in timed)
        return _by_time(key, timed, "a CPU has no GPU memory" if on_cpu else "GPU memory was not measured")
    return _weigh(key, weighed, _ran_out(ordered, weighed))


def _weigh(key: Series, rows: Sequence[Row], end: str) -> Knee:
    for number, (before, after) in enumerate(itertools.pairwise(rows)):
        if _pays(before, after):
            continue
        memory, time = memory_growth_pct(before, after), time_growth_pct(before, after)
        old, new = before["batch_size"], after["batch_size"]
        start = (
            f"A larger batch stops paying after {old}:" if number else "A larger batch never pays: already"
        )
        step = f"from {old} to {new} memory {_change(memory)} while time per image {_change(time)}"
        later = [row["batch_size"] for row in rows[number + 2 :] if _pays(before, row)]
        but = f", though from {old} straight to {later[0]} would pay" if later else ""
        return Knee(
            series=key,
            verdict="stops" if number else "never",
            best=old,
            refused=new,
            memory_growth_pct=memory,
            time_growth_pct=time,
            sentence=f"{start} {step}{but}{_open([(before, after)], _cost)}{_doubtful([before, after])}.",
        )
    best = rows[-1]["batch_size"]
    unsure = _open(list(itertools.pairwise(rows)), _cost)
    sentence = f"Every larger batch pays, up to {best}{unsure}{end}{_doubtful(rows)}."
    return Knee(series=key, verdict="always", best=best, sentence=sentence)


def _by_time(key: Series, rows: Sequence[Row], why: str) -> Knee:
    best = rows[0]
    for row in rows[1:]:
        if (time_growth_pct(best, row) or 0) < 0:
            best = row
    first, least, last = (row["batch_size"] for row in (rows[0], best, rows[-1]))
    second = min((row for row in rows if row is not best), key=lambda row: time_growth_pct(best, row) or 0)
    sentence = (
        f"Time per image is least at {least}, of {first} to {last}{_open([(best, second)], _time)}; "
        f"whether a larger batch pays is open: {why}{_doubtful([best, second])}."
    )
    return Knee(series=key, verdict="time-only", best=least, sentence=sentence)


def _open(pairs: Sequence[tuple[Row, Row]], ratio: Callable[[Row, Row], float | None]) -> str:
    """Names the first of the deciding pairs that noise can't tell apart; empty where there is none."""
    for pair in pairs:
        if _overlap(*pair, ratio(*pair)):
            one, other = sorted(row["batch_size"] for row in pair)
            return f", but that is open: {one} and {other} lie within each other's spread"
    return ""


def _overlap(before: Row, after: Row, ratio: float | None) -> bool:
    """Whether the spreads of two rows (± half the interquartile range) touch, where any is known.

    `ratio`: the figure of `after` over that of `before`; it spreads as the epoch time does.
    """
    if ratio is None:
        return False
    old, new = ((row.get("epoch_time_iqr_s") or 0) / 2 / row["epoch_time_s"] for row in (before, after))
    return bool(0 < old + ratio * new >= abs(ratio - 1))


def _doubtful(rows: Sequence[Row]) -> str:
    return "; it rests on rows with doubts" if any(OF_TIME & set(codes(row)) for row in rows) else ""


def _pays(before: Row, after: Row) -> bool:
    """Whether memory × time per image falls. Unknown (which `_knee` rules out) does not pay."""
    cost = _cost(before, after)
    return cost is not None and cost < 1


def _time(before: Row, after: Row) -> float | None:
    """Time per image of `after` over that of `before`."""
    time = time_growth_pct(before, after)
    return None if time is None else 1 + time / 100


def _cost(before: Row, after: Row) -> float | None:
    """Memory × time per image of `after` over that of `before`: what has to fall for a larger batch to pay."""
    memory, time = memory_growth_pct(before, after), _time(before, after)
    return None if memory is None or time is None else (1 + memory / 100) * time


def _ran_out(ordered: Sequence[Row], used: Sequence[Row]) -> str:
    """What stands above the largest batch size with figures, if it ran out of memory."""
    last = used[-1]["batch_size"]
    full = [row["batch_size"] for row in ordered if row["batch_size"] > last and row["status"] == "oom"]
    return f"; {full[0]} ran out of memory" if full else ""


def _change(pct: float | None) -> str:
    whole = abs(half_up(pct or 0))
    if not whole:
        return "stays the same"
    return f"{'grows' if (pct or 0) > 0 else 'falls'} {whole} %"
