"""Where a larger batch stops paying: it pays while GPU memory × time per image falls."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpubench import result
from gpubench.analysis.growth import epoch_time, gpu_mem, memory_growth_pct, series, time_growth_pct
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.varied import Row

Series = tuple[tuple[str, Any], ...]
Verdict = Literal["stops", "never", "always", "time-only", "too-few"]

# Memory is per GPU: a step that also changes the devices is not a question of the batch size alone.
DEVICES = frozenset({"gpus", "gpu_ids", "ranks", "strategy"})


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
    alone = [row for row in merge_repeats(rows) if not row.get("group") and row.get("batch_size")]
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
            sentence=f"{start} {step}{but}.",
        )
    best = rows[-1]["batch_size"]
    return Knee(
        series=key, verdict="always", best=best, sentence=f"Every larger batch pays, up to {best}{end}."
    )


def _by_time(key: Series, rows: Sequence[Row], why: str) -> Knee:
    best = rows[0]
    for row in rows[1:]:
        if (time_growth_pct(best, row) or 0) < 0:
            best = row
    first, least, last = (row["batch_size"] for row in (rows[0], best, rows[-1]))
    sentence = f"Time per image is least at {least}, of {first} to {last}; whether a larger batch pays is open: {why}."
    return Knee(series=key, verdict="time-only", best=least, sentence=sentence)


def _pays(before: Row, after: Row) -> bool:
    """Whether memory × time per image falls. Unknown (which `_knee` rules out) does not pay."""
    memory, time = memory_growth_pct(before, after), time_growth_pct(before, after)
    return memory is not None and time is not None and (1 + memory / 100) * (1 + time / 100) < 1


def _ran_out(ordered: Sequence[Row], used: Sequence[Row]) -> str:
    """What stands above the largest batch size with figures, if it ran out of memory."""
    last = used[-1]["batch_size"]
    full = [row["batch_size"] for row in ordered if row["batch_size"] > last and row["status"] == "oom"]
    return f"; {full[0]} ran out of memory" if full else ""


def _change(pct: float | None) -> str:
    whole = abs(round(pct or 0))
    if not whole:
        return "stays the same"
    return f"{'grows' if (pct or 0) > 0 else 'falls'} {whole} %"
