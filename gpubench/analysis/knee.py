"""Where a larger batch stops paying: it pays while GPU memory × time per image falls.

Rows of several processes are decided over these (`paying.py`). Of rows of one process the answer is open unless every
step that it rests on is clear of the noise, and the noise is known; and then it begins with that one process, for what
differs from process to process is not in it. A step is from one batch size to the next:
none leads over a size that was asked for and has no figures.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from gpubench.analysis.alike import DEVICES
from gpubench.analysis.besides import besides, in_one_line
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import Decided, decided, plain_change
from gpubench.analysis.doubted import of_time
from gpubench.analysis.growth import epoch_time, gpu_mem, memory_growth_pct, series, time_growth_pct
from gpubench.analysis.holes import beyond, fitting, unknown
from gpubench.analysis.memory_line import largest_that_fits
from gpubench.analysis.noise import (
    beginning,
    begun,
    half_width,
    processes,
    resting,
    together,
)
from gpubench.analysis.paying import Answer, Ladder, answer, ladder
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.settle import NOT_KNOWN, Further
from gpubench.analysis.varied import as_asked, solo
from gpubench.basics.words import listed
from gpubench.schema.row import Row, TableRow

Series = tuple[tuple[str, Any], ...]
Step = tuple[Row, Row]
Ratio = Callable[[Row, Row], float | None]
"""The figure of a step's second row over that of its first."""
ROUND_UNDER_WAY = 2
"""Processes of a row that a second round has measured already, where it has not come to others yet."""
KneeVerdict = Literal["stops", "never", "always", "hole", "time-only", "too-few", "open"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Knee:
    """The answer for one series of batch sizes."""

    series: Series
    """The (field, value) pairs that tell this series from the others."""
    verdict: KneeVerdict
    """`stops`, `never` (not even the first step pays), `always` (as far as measured), `hole` (the size after `best` has
    no figures, a larger one has), `time-only` (no memory figure to weigh), `too-few` (fewer than two batch sizes have
    figures), `open` (several processes, and not every step that the answer rests on is decided)."""
    best: int | None = None
    """The last batch size that paid, else the first; for `time-only` that of the least time."""
    refused: int | None = None
    """The next batch size, which no longer pays."""
    memory_growth_pct: float | None = None
    """How much memory grows from `best` to `refused`."""
    time_growth_pct: float | None = None
    """How much time per image grows from `best` to `refused`."""
    firm: bool = False
    """Whether the noise of every step up to this answer is known, and smaller than the step. Of one process that is
    the noise that one process saw."""
    sentence: str
    besides: tuple[str, ...] = ()
    """Other answers: by the allocator's peak, by steady steps or by whole epochs."""
    remark: str = ""
    """Which size nearly reaches the best rate; which are beaten by none in both time and memory, or energy; how many
    images fit."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Batches:
    """The batch sizes of one series."""

    series: Series
    rows: Sequence[Row]
    """Ascending."""
    ladder: Ladder | None
    """What is claimed of them where all rows with figures are of several processes; else None."""

    @property
    def ratios(self) -> list[Interval]:
        """What is claimed over processes, to be decided together with whatever else the table claims."""
        return self.ladder.ratios if self.ladder else []

    @property
    def beside(self) -> list[float]:
        """p-values of its other claims."""
        return self.ladder.beside if self.ladder else []


def knees(rows: Sequence[Row], tied: Collection[str] = (), how: Further = NOT_KNOWN) -> list[Knee]:
    """One Knee for each series with at least two batch sizes; its claims are a family by themselves."""
    found = batches(merge_repeats(rows), tied)
    made = decided([one for of in found for one in of.ratios], [one for of in found for one in of.beside])
    return told(found, made, how)


def batches(merged: Sequence[TableRow], tied: Collection[str] = ()) -> list[Batches]:
    """Each series with at least two batch sizes. `merged`: repeats merged. `tied` fields move with the batch size.

    Jobs of a group are left out (they ran at the same time), and so is a series with two rows of one size.
    """
    alone = [row for row in solo(merged) if row.batch_size]
    found = []
    for key, members in series(alone, "batch_size", set(tied) - set(DEVICES)).items():
        if len({row.batch_size for row in members}) == len(members) > 1:
            ordered = sorted(members, key=_batch)
            found.append(Batches(series=key, rows=ordered, ladder=_ladder(ordered)))
    return found


def told(found: Sequence[Batches], made: Decided, how: Further) -> list[Knee]:
    """The answers. `made`: begins with the decisions on the ratios of all `found`, and on their other claims."""
    ratios, others, family = iter(made.ratios), iter(made.beside), made.family
    knees = []
    for of in found:
        if of.ladder is None:
            knee = _knee(of.series, of.rows)
        else:
            words = [next(ratios).word for _ in of.ratios]
            leap = [next(others) for _ in of.beside]
            knee = _decided(of.series, of.ladder, answer(of.ladder, words, any(leap), family, how))
        said = besides(of.rows, over_processes=of.ladder is not None)
        line = in_one_line(of.rows, over_processes=of.ladder is not None)
        fits = largest_that_fits(of.rows)
        knees.append(
            replace(
                knee,
                sentence=_named(of.series, knee.sentence),
                besides=tuple(_named(of.series, one) for one in said),
                remark=_named(of.series, f"{line} {fits}".strip()) if line or fits else "",
            )
        )
    return knees


def _ladder(ordered: Sequence[Row]) -> Ladder | None:
    timed, weighed, why = _figures(ordered)
    used = _without_stragglers(timed if why else weighed)
    return ladder(ordered, used, why) if len(used) > 1 else None


def _without_stragglers(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, without those that stayed at one process while others got three: no further round measures these.

    One such row, which failed in the second round say, must not take their claims from all others. While a second
    round is under way nobody is left behind yet.
    """
    several = [row for row in rows if processes(row) > 1]
    return several if len(several) > 1 and max(map(processes, several)) > ROUND_UNDER_WAY else rows


def _decided(key: Series, of: Ladder, found: Answer) -> Knee:
    """The knee of an answer over processes."""
    refused = found.refused
    verdict: KneeVerdict = "time-only" if of.by_time else "open"
    if not of.by_time and found.firm:
        ends: dict[int | None, KneeVerdict] = {
            of.weighed[0].batch_size: "never",
            of.weighed[-1].batch_size: "always",
        }
        verdict = ends.get(found.best, "stops")
    return Knee(
        series=key,
        verdict=verdict,
        best=found.best,
        refused=refused.after.batch_size if refused else None,
        memory_growth_pct=100 * (refused.memory - 1) if refused else None,
        time_growth_pct=100 * (refused.time.value - 1) if refused else None,
        firm=found.firm,
        sentence=found.sentence,
    )


def _batch(row: Row) -> int:
    """The batch size, which all rows have that get here."""
    return row.batch_size or 0


def _named(key: Series, sentence: str) -> str:
    name = " ".join(f"{field}={as_asked(value)}" for field, value in key if value is not None)
    return f"{name}: {sentence[0].lower()}{sentence[1:]}" if name else sentence


def _knee(key: Series, ordered: Sequence[Row]) -> Knee:
    timed, weighed, why = _figures(ordered)
    if len(timed) < 2:
        having = f"only {timed[0].batch_size} has an epoch time" if timed else "no row has an epoch time"
        reasons = {
            row.missing.get("epoch_time_s") for row in ordered if row.status == "ok" and row not in timed
        }
        having += f" ({why_none})" if len(reasons) == 1 and (why_none := reasons.pop()) else ""
        sentence = f"Too few figures to say where a larger batch stops paying: {having}."
        return Knee(series=key, verdict="too-few", sentence=sentence)
    return _by_time(key, ordered, timed, why) if why else _weigh(key, ordered, weighed)


def _figures(ordered: Sequence[Row]) -> tuple[list[Row], list[Row], str | None]:
    """The sizes with a time, those of them with memory, too, and why memory can't be weighed; None where it can."""
    timed = [row for row in ordered if epoch_time(row) is not None]
    weighed = [row for row in timed if gpu_mem(row) is not None]
    if len({row.gpu_mem_source for row in weighed}) > 1:
        return timed, weighed, "memory figures come from different sources"
    if len(weighed) < 2:
        on_cpu = all(row.device == "cpu" for row in timed)
        return timed, weighed, "a CPU has no GPU memory" if on_cpu else "GPU memory was not measured"
    return timed, weighed, None


def _weigh(key: Series, ordered: Sequence[Row], weighed: Sequence[Row]) -> Knee:
    # Memory is per GPU: a step that also changed the devices would be no question of the batch size alone.
    below, rest = _around(ordered, weighed[0])
    paid = [weighed[0]]
    larger = weighed[1:]
    while larger and rest[0] is larger[0] and _pays(paid[-1], rest[0]):
        paid, rest, larger = [*paid, rest[0]], rest[1:], larger[1:]
    best = paid[-1]
    steps = list(itertools.pairwise(paid))
    always = f"Every larger batch pays, up to {best.batch_size}"
    if not larger:
        firm, sentence = _said(f"{always}{beyond(rest)}", steps, _cost, below)
        return Knee(series=key, verdict="always", best=best.batch_size, firm=firm, sentence=sentence)
    if rest[0] is larger[0]:
        return _refused(key, steps, (best, larger[0]), below, rest[1:], larger[1:])
    later = _later(best, larger)
    none = f"No batch larger than {best.batch_size} is known to pay"
    words = _straight(best, later, "and" if steps else "though")
    holes = [*below, *_around(rest, larger[0])[0]]
    _, sentence = _said(f"{always if steps else none}{words}", steps, _cost, holes, later)
    return Knee(series=key, verdict="hole", best=best.batch_size, sentence=sentence)


def _refused(
    key: Series,
    steps: Sequence[Step],
    refused: Step,
    below: Sequence[Row],
    rest: Sequence[Row],
    larger: Sequence[Row],
) -> Knee:
    """The answer where all of `steps` pay and `refused` does not.

    `below`: sizes without figures. `rest`: all sizes above; `larger`: those of them with figures.
    """
    before, after = refused
    memory, time = memory_growth_pct(before, after), time_growth_pct(before, after)
    old, new = before.batch_size, after.batch_size
    later = _later(before, larger)
    known = set(map(id, larger))
    open_above = beyond([row for row in fitting(rest) if id(row) not in known])
    if steps:
        start = f"A larger batch stops paying after {old}: from {old} to {new}"
    elif later or open_above:
        start = f"From {old} the next larger batch doesn't pay: to {new}"
    else:
        start = f"A larger batch never pays: already from {old} to {new}"
    answer = (
        f"{start} memory {plain_change(memory)} while time per image {plain_change(time)}"
        f"{_straight(before, later, 'though')}{open_above}"
    )
    firm, sentence = _said(answer, [*steps, refused], _cost, below, later)
    return Knee(
        series=key,
        verdict="stops" if steps else "never",
        best=old,
        refused=new,
        memory_growth_pct=memory,
        time_growth_pct=time,
        firm=firm,
        sentence=sentence,
    )


def _later(before: Row, larger: Sequence[Row]) -> list[Row]:
    """The first of the larger batches that pays after all, straight from `before`; none or one."""
    first = next((row for row in larger if _pays(before, row)), None)
    return [] if first is None else [first]


def _straight(before: Row, later: Sequence[Row], joint: str) -> str:
    """A word on the batch of `_later`."""
    return "".join(
        f", {joint} from {before.batch_size} straight to {row.batch_size} "
        f"{'would' if _clear((before, row), _cost) else 'might'} pay"
        for row in later
    )


def _by_time(key: Series, ordered: Sequence[Row], rows: Sequence[Row], why: str) -> Knee:
    best = rows[0]
    for row in rows[1:]:
        if (time_growth_pct(best, row) or 0) < 0:
            best = row
    first, least, last = map(_batch, (rows[0], best, rows[-1]))
    steps = [(row, best) if _batch(row) < least else (best, row) for row in rows if row is not best]
    below, above = _around(ordered, rows[-1])
    holes = [row for row in below if epoch_time(row) is None]
    answer = f"Time per image is least at {least}, of {first} to {last}{beyond(above)}"
    firm, sentence = _said(answer, steps, _time, holes)
    sentence = f"{sentence} Whether a larger batch pays can't be said: {why}."
    return Knee(series=key, verdict="time-only", best=least, firm=firm, sentence=sentence)


def _around(ordered: Sequence[Row], row: Row) -> tuple[Sequence[Row], Sequence[Row]]:
    """The sizes below this row's, and those above."""
    index = next(index for index, one in enumerate(ordered) if one is row)
    return ordered[:index], ordered[index + 1 :]


def _said(
    answer: str, steps: Sequence[Step], ratio: Ratio, holes: Sequence[Row], beside: Sequence[Row] = ()
) -> tuple[bool, str]:
    """Whether an answer that rests on these steps is firm; and the sentence, which begins with `Open` if it is not,
    and with the process that each row is of where that is one.

    `holes`: sizes without figures that it would have to know. `beside`: rows that it speaks of besides.
    """
    rows = list({id(row): row for step in steps for row in step}.values())
    used = [*rows, *beside]
    noiseless = [_batch(row) for row in rows if half_width(row) is None]
    near = [
        step
        for step in steps
        if not {row.batch_size for row in step} & set(noiseless) and not _clear(step, ratio)
    ]
    if not noiseless and not near and not holes:
        start = beginning(used)
        end = f"{'' if start else resting(used)}{_doubtful(used)}."
        return True, f"{begun(start, answer)}. Every difference is larger than {_what_spreads(rows)}{end}"
    why = [unknown(holes)] if holes else []
    if near:
        what = "memory × time per image" if ratio is _cost else "time per image"
        told = [f"{plain_change(_percent(step, ratio))} from {_both(step)}" for step in near]
        why.append(f"That {what} {listed(told)} may be chance")
    if noiseless:
        every = len(noiseless) == len(rows)
        why.append(
            "How far chance moves these times is not known"
            if every
            else f"How far chance moves the times at {_sizes(noiseless)} is not known"
        )
    return (
        False,
        f"Open, not decided: by these figures {answer[0].lower()}{answer[1:]}. "
        f"{'. '.join(why)}{resting(used)}{_doubtful(used)}.",
    )


def _what_spreads(rows: Sequence[Row]) -> str:
    """What the noise of these rows was seen in."""
    if all(processes(row) > 1 for row in rows):
        return "the repeats spread"
    return "the epochs of one process spread"


def _both(step: Step) -> str:
    before, after = step
    return f"{before.batch_size} to {after.batch_size}"


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
    old, new, change = _relative_half_width(before), _relative_half_width(after), ratio(before, after)
    if old is None or new is None or change is None:
        return False
    moved = together(old, change * new)
    return moved < abs(change - 1)


def _relative_half_width(row: Row) -> float | None:
    """How far chance may have moved an epoch time, as a part of it."""
    half, time = half_width(row), row.epoch_time_s
    return None if half is None or not time else half / time


def _doubtful(rows: Sequence[Row]) -> str:
    return "; some of these rows have doubts about their times" if any(map(of_time, rows)) else ""


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
