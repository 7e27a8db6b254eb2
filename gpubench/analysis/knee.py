"""Where a larger batch stops paying: it pays while GPU memory × time per image falls.

The answer is firm only where every step that it rests on is clear of the noise, and the noise is known.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpubench import result
from gpubench.analysis.alike import DEVICES
from gpubench.analysis.growth import epoch_time, gpu_mem, memory_growth_pct, series, time_growth_pct
from gpubench.analysis.noise import half_width, resting
from gpubench.analysis.repeats import codes, merge_repeats
from gpubench.analysis.varied import Row, solo
from gpubench.analysis.words import listed
from gpubench.rounding import half_up

Series = tuple[tuple[str, Any], ...]
Step = tuple[Row, Row]
Ratio = Callable[[Row, Row], float | None]
"""The figure of a step's second row over that of its first."""
Verdict = Literal["stops", "never", "always", "time-only", "too-few"]

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
    firm: bool = False
    """Whether the noise of every step up to this answer is known, and smaller than the step."""
    sentence: str


def knees(rows: Sequence[Row], tied: Collection[str] = ()) -> list[Knee]:
    """One Knee for each series with at least two batch sizes. `tied` fields move with the batch size.

    Jobs of a group are left out (they ran at the same time), and so is a series with two rows of one size.
    """
    alone = [row for row in solo(merge_repeats(rows)) if row.get("batch_size")]
    found = []
    for key, members in series(alone, "batch_size", set(tied) - set(DEVICES)).items():
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
    # Memory is per GPU: a step that also changed the devices would be no question of the batch size alone.
    steps = list(itertools.pairwise(rows))
    number = next((number for number, step in enumerate(steps) if not _pays(*step)), None)
    if number is None:
        best = rows[-1]["batch_size"]
        firm, sentence = _said(f"Every larger batch pays, up to {best}{end}", steps, _cost)
        return Knee(series=key, verdict="always", best=best, firm=firm, sentence=sentence)
    before, after = steps[number]
    memory, time = memory_growth_pct(before, after), time_growth_pct(before, after)
    old, new = before["batch_size"], after["batch_size"]
    start = f"A larger batch stops paying after {old}:" if number else "A larger batch never pays: already"
    answer = (
        f"{start} from {old} to {new} memory {_change(memory)} while time per image {_change(time)}"
        f"{_later(before, rows[number + 2 :])}"
    )
    firm, sentence = _said(answer, steps[: number + 1], _cost)
    return Knee(
        series=key,
        verdict="stops" if number else "never",
        best=old,
        refused=new,
        memory_growth_pct=memory,
        time_growth_pct=time,
        firm=firm,
        sentence=sentence,
    )


def _later(before: Row, larger: Sequence[Row]) -> str:
    """A word on the first of the larger batches that pays after all, straight from `before`."""
    row = next((row for row in larger if _pays(before, row)), None)
    if row is None:
        return ""
    would = "would" if _clear((before, row), _cost) else "might"
    return f", though from {before['batch_size']} straight to {row['batch_size']} {would} pay"


def _by_time(key: Series, rows: Sequence[Row], why: str) -> Knee:
    best = rows[0]
    for row in rows[1:]:
        if (time_growth_pct(best, row) or 0) < 0:
            best = row
    first, least, last = (row["batch_size"] for row in (rows[0], best, rows[-1]))
    steps = [(row, best) if row["batch_size"] < least else (best, row) for row in rows if row is not best]
    firm, sentence = _said(f"Time per image is least at {least}, of {first} to {last}", steps, _time)
    sentence = f"{sentence} Whether a larger batch pays can't be said: {why}."
    return Knee(series=key, verdict="time-only", best=least, firm=firm, sentence=sentence)


def _said(answer: str, steps: Sequence[Step], ratio: Ratio) -> tuple[bool, str]:
    """Whether an answer that rests on these steps is firm; and the sentence, which begins with `Open` if it is not."""
    rows = list({id(row): row for step in steps for row in step}.values())
    end = f"{resting(rows)}{_doubtful(rows)}."
    unknown = [row["batch_size"] for row in rows if half_width(row) is None]
    near = [
        step
        for step in steps
        if not {row["batch_size"] for row in step} & set(unknown) and not _clear(step, ratio)
    ]
    if not unknown and not near:
        return True, f"{answer}. Every difference is larger than {_what_spreads(rows)} spread{end}"
    why = []
    if near:
        what = "memory × time per image" if ratio is _cost else "time per image"
        told = [f"{_change(_percent(step, ratio))} from {_both(step)}" for step in near]
        why.append(f"That {what} {listed(told)} may be chance")
    if unknown:
        every = len(unknown) == len(rows)
        why.append(
            "How far chance moves these times is not known"
            if every
            else f"How far chance moves the times at {_sizes(unknown)} is not known"
        )
    return (
        False,
        f"Open, not decided: by these figures {answer[0].lower()}{answer[1:]}. {'. '.join(why)}{end}",
    )


def _what_spreads(rows: Sequence[Row]) -> str:
    """What the noise of these rows was seen in."""
    return (
        "the repeats"
        if all(int(row.get("repeats") or 1) > 1 for row in rows)
        else "the epochs of one process"
    )


def _both(step: Step) -> str:
    before, after = step
    return f"{before['batch_size']} to {after['batch_size']}"


def _percent(step: Step, ratio: Ratio) -> float | None:
    change = ratio(*step)
    return None if change is None else 100 * (change - 1)


def _sizes(batches: Sequence[int]) -> str:
    return listed([str(batch) for batch in sorted(batches)])


def _clear(step: Step, ratio: Ratio) -> bool:
    """Whether the noise of both rows is known and smaller than the step between them.

    The ratio spreads as the epoch times do.
    """
    before, after = step
    old, new, change = half_width(before), half_width(after), ratio(before, after)
    if old is None or new is None or change is None:
        return False
    return bool(old / before["epoch_time_s"] + change * new / after["epoch_time_s"] < abs(change - 1))


def _doubtful(rows: Sequence[Row]) -> str:
    return (
        "; some of these rows have doubts about their times"
        if any(OF_TIME & set(codes(row)) for row in rows)
        else ""
    )


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
    return f" ({full[0]} ran out of memory)" if full else ""


def _change(pct: float | None) -> str:
    whole = abs(half_up(pct or 0))
    if not whole:
        return "stays the same"
    return f"{'grows' if (pct or 0) > 0 else 'falls'} {whole} %"
