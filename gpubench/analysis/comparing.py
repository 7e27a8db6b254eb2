"""What two sides' rows of the same trials say of each other: time, memory, energy and top-1. Pure.

All claims of one comparison are one family, corrected by Holm, as those of a table are (`certainty/decision.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpubench.analysis import top1
from gpubench.analysis.certainty import accuracy
from gpubench.analysis.certainty import interval as intervals
from gpubench.analysis.certainty.decision import adjusted
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.certainty.mean_estimate import LEVEL, MeanEstimate, mean
from gpubench.analysis.growth import epoch_time, gpu_mem
from gpubench.analysis.matching import Matching, Pair
from gpubench.analysis.over_processes import MARGIN, Sample, epochs, per_image, time_ratio
from gpubench.schema.row import TableRow

FigureName = Literal["time", "memory", "energy", "top1"]
FIGURES: tuple[FigureName, ...] = ("time", "memory", "energy", "top1")
Word = Literal["less", "more", "same", "open"]
"""Of B against A. Less time is faster."""
Basis = Literal["processes", "rounds", "exact", "one process", "too few seeds", "unlike"]
"""What an answer rests on; the last three are of one that is open because nothing was tested."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FigureBeside:
    """One figure of one pair of rows: of B against A."""

    a: float
    b: float
    change: float
    """In per cent of A's; of top-1 in percentage points."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval of the change."""
    word: Word = "open"
    basis: Basis
    why: str = ""
    """Of `unlike`: why nothing can be said."""
    beyond: bool = False
    """Whether it is shown that B takes more than the threshold more."""
    within: bool = False
    """Whether it is shown that B does not."""
    interval: Interval | None = None
    """Of the ratio, where both sides have several processes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Beside:
    """Two rows of one trial that both ended ok."""

    a: TableRow
    b: TableRow
    figures: Mapping[FigureName, FigureBeside]


@dataclass(frozen=True, kw_only=True, slots=True)
class SideBySide:
    """Two sides, compared."""

    beside: Sequence[Beside]
    not_ok: Sequence[Pair]
    """Pairs of which one did not end ok, or neither."""
    matching: Matching
    family: int
    """How many claims were corrected for."""
    threshold: float | None
    """0.05: more than 5 % more is a regression."""
    asked: tuple[FigureName, ...] = FIGURES
    """The figures that were to be compared."""

    @property
    def lacking(self) -> list[FigureName]:
        """Those that no pair has on both sides, where some were asked for by name, or where no pair has any."""
        there = {name for one in self.beside for name in one.figures}
        by_name = len(self.asked) < len(FIGURES)
        return (
            [name for name in self.asked if name not in there]
            if self.beside and (by_name or not there)
            else []
        )

    @property
    def guessed(self) -> bool:
        """Whether its pairs are a guess: then no regression is looked for."""
        return bool(self.matching.set_aside)

    @property
    def checked(self) -> bool:
        """Whether any figure was held against the threshold, or a trial that broke was."""
        figures = {name for one in self.beside for name in one.figures}
        return not self.guessed and bool(figures & COSTS or self.broken)

    @property
    def regressions(self) -> list[tuple[Beside, FigureName]]:
        """What takes shown to be more than the threshold more."""
        return [(one, name) for one in self.beside for name, found in one.figures.items() if found.beyond]

    @property
    def broken(self) -> list[Pair]:
        """Trials that ended ok in A, and badly in B; none where that both are one trial is a guess."""
        if self.guessed:
            return []
        return [(a, b) for a, b in self.not_ok if a.status == "ok" and b.status in BAD]

    @property
    def undecided(self) -> bool:
        """Whether a regression beyond the threshold is not excluded somewhere: of what was measured in A, too."""
        gone = [a for a, b in self.not_ok if a.status == "ok" and b.status not in BAD]
        gone += [row for row in self.matching.only_a if row.status == "ok"]
        gone += [row for one in self.matching.several for row in one.a]
        return (
            not self.checked
            or bool(gone)
            or any(
                not found.within and not found.beyond
                for one in self.beside
                for name, found in one.figures.items()
                if name in COSTS
            )
        )


BAD = ("oom", "failed", "timeout")
MEMORY_SPREAD = 0.003
"""By how much, at most, memory of processes of one configuration was seen to differ: on one GPU, by `MEMORY_SOURCE`."""
MEMORY_SOURCE = "nvml-process"
COSTS: frozenset[FigureName] = frozenset({"time", "memory", "energy"})
"""Figures of which more is worse, so that a threshold is for them. Top-1 is in points, where less is worse."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """A figure whose difference has an estimate: the logarithm of a ratio, or points."""

    estimate: MeanEstimate
    margin: float
    basis: Basis
    a: float
    b: float
    is_ratio: bool = True
    processes: tuple[int, int] = (1, 1)


def compared(
    matching: Matching,
    *,
    of: Collection[FigureName] = FIGURES,
    threshold: float | None = None,
    by_rounds: bool = False,
) -> SideBySide:
    """What may be said of each pair. `of`: the figures that are compared, chosen before they are seen.

    `by_rounds`: both sides are of one folder, so that rows that share rounds are compared round by round. Rounds of
    two folders have nothing in common but their numbers. Pairs that are a guess are not held against the threshold.
    """
    limit = None if matching.set_aside else threshold
    good = [pair for pair in matching.pairs if all(row.status == "ok" for row in pair)]
    found: list[dict[FigureName, FigureBeside | _Claim]] = []
    for a, b in good:
        each = {name: _OF[name](a, b, by_rounds) for name in FIGURES if name in of}
        found.append({name: one for name, one in each.items() if one is not None})
    claims = [one for mine in found for one in mine.values() if isinstance(one, _Claim)]
    decided = {id(claim): made for claim, made in zip(claims, _decided(claims, limit), strict=True)}
    return SideBySide(
        beside=[
            Beside(
                a=a,
                b=b,
                figures={
                    name: decided[id(one)] if isinstance(one, _Claim) else _against(one, limit)
                    for name, one in mine.items()
                },
            )
            for (a, b), mine in zip(good, found, strict=True)
        ],
        not_ok=[pair for pair in matching.pairs if any(row.status != "ok" for row in pair)],
        matching=matching,
        family=len(claims),
        threshold=threshold,
        asked=tuple(name for name in FIGURES if name in of),
    )


# ---- one figure of one pair ----


def _time(a: TableRow, b: TableRow, by_rounds: bool) -> FigureBeside | _Claim | None:
    mine, others = epoch_time(a), epoch_time(b)
    if mine is None or others is None:
        return None
    images = a.images_per_epoch, b.images_per_epoch
    if None in images and not (images == (None, None) and _same_images(a, b)):
        return FigureBeside(
            a=mine, b=others, change=_change(mine, others), basis="unlike", why="images an epoch not known"
        )
    if None not in images:
        mine, others = mine / (images[0] or 1), others / (images[1] or 1)
    figure = per_image if None not in images else epochs
    samples = [figure(row) or Sample(values=(time,)) for row, time in ((a, mine), (b, others))]
    if by_rounds and (ratio := time_ratio(b, a)) is not None:
        shared = len(ratio.log.parts) == 1  # of pairs, where there are rounds in common
        return _Claim(
            estimate=ratio.log,
            margin=_MARGIN,
            basis="rounds" if shared else "processes",
            a=mine,
            b=others,
            processes=(ratio.processes[0], ratio.processes[1]),
        )
    return _claim(samples[0], samples[1], a=mine, b=others)


def _memory(a: TableRow, b: TableRow, by_rounds: bool) -> FigureBeside | None:  # noqa: ARG001 - all have one form
    mine, others = gpu_mem(a), gpu_mem(b)
    if mine is None or others is None:
        return None
    change = _change(mine, others)
    if a.gpu_mem_source != b.gpu_mem_source:
        return FigureBeside(a=mine, b=others, change=change, basis="unlike", why="from unlike sources")
    apart = math.log(others / mine)
    word: Word = "same" if abs(apart) <= _MARGIN else "more" if apart > 0 else "less"
    return FigureBeside(a=mine, b=others, change=change, word=word, basis="exact")


def _energy(
    a: TableRow,
    b: TableRow,
    by_rounds: bool,  # noqa: ARG001 - of the first round alone
) -> FigureBeside | _Claim | None:
    found = []
    for row in (a, b):
        images, joules = row.images_per_epoch, row.energy_j
        if not images or not joules:
            return None
        whole = [run for run in row.runs if run.has_all_figures] or list(row.runs)
        each = [run.energy_j / images for run in whole if run.energy_j]
        found.append((joules / images, Sample(values=tuple(sorted(each or [joules / images])))))
    (mine, first), (others, second) = found
    if a.energy_source != b.energy_source:
        change = _change(mine, others)
        return FigureBeside(a=mine, b=others, change=change, basis="unlike", why="from unlike sources")
    return _claim(first, second, a=mine, b=others)


def _top1(
    a: TableRow,
    b: TableRow,
    by_rounds: bool,  # noqa: ARG001 - of the first round alone
) -> FigureBeside | _Claim | None:
    mine, others = a.top1_pct, b.top1_pct
    if mine is None or others is None or a.until_top1 or b.until_top1:
        return None
    images = {row.images.val_images for row in (a, b) if row.images} - {None}
    if len(images) > 1:
        return FigureBeside(
            a=mine, b=others, change=others - mine, basis="unlike", why="judged by unlike images"
        )
    pair = top1.seed_pair(b, a)
    if not pair.testable:
        return FigureBeside(a=mine, b=others, change=others - mine, basis="too few seeds")
    return _Claim(
        estimate=pair.estimate,
        margin=accuracy.MARGIN,
        basis="processes",
        a=mean(pair.other),
        b=mean(pair.one),
        is_ratio=False,
    )


_OF: Mapping[FigureName, Callable[[TableRow, TableRow, bool], FigureBeside | _Claim | None]] = {
    "time": _time,
    "memory": _memory,
    "energy": _energy,
    "top1": _top1,
}
_MARGIN = math.log1p(MARGIN)


def _same_images(a: TableRow, b: TableRow) -> bool:
    """Whether epochs of both go over the same images, though nobody knows how many."""
    return (
        a.source == b.source
        and all(a.fields.get(name) == b.fields.get(name) for name in ("data", "train_images"))
        and a.host == b.host
        and a.gpu_name == b.gpu_name
    )


def _claim(under: Sample, over: Sample, *, a: float, b: float) -> FigureBeside | _Claim:
    """Over by under, by their processes."""
    found = intervals.ratio(over.values, under.values)
    if found is None:
        return FigureBeside(a=a, b=b, change=_change(a, b), basis="one process")
    return _Claim(
        estimate=found.log, margin=_MARGIN, basis="processes", a=a, b=b, processes=(len(over), len(under))
    )


def _change(a: float, b: float) -> float:
    return 100 * (b / a - 1)


# ---- all of them together ----


def _decided(claims: Sequence[_Claim], threshold: float | None) -> list[FigureBeside]:
    estimates = [claim.estimate for claim in claims]
    differs = adjusted([one.chance_equal(0.0) for one in estimates])
    same = adjusted([one.estimate.chance_outside(-one.margin, one.margin) for one in claims])
    made = []
    for claim, unlike, alike in zip(claims, differs, same, strict=True):
        word: Word = "open"
        if alike <= LEVEL:
            word = "same"
        elif unlike <= LEVEL:
            word = "more" if claim.estimate.center > 0 else "less"
        half = claim.estimate.half_width()
        center = claim.estimate.center
        change, low, high = (_told(end, claim) for end in (center, center - half, center + half))
        made.append(
            FigureBeside(
                a=claim.a,
                b=claim.b,
                change=change,
                low=low,
                high=high,
                word=word,
                basis=claim.basis,
                interval=_interval(claim),
            )
        )
    if threshold is None:
        return made
    costs = [place for place, claim in enumerate(claims) if claim.is_ratio]
    far = math.log1p(threshold)
    # Two-sided, so that the corrected 95 % interval lies beyond it.
    beyond = adjusted([min(1.0, 2 * estimates[place].chance_at_most(far)) for place in costs])
    within = adjusted([estimates[place].chance_at_least(far) for place in costs])
    for place, shown, excluded in zip(costs, beyond, within, strict=True):
        made[place] = replace(made[place], beyond=shown <= LEVEL, within=excluded <= LEVEL)
    return made


def _interval(claim: _Claim) -> Interval | None:
    if not claim.is_ratio or min(claim.processes) < 2:
        return None
    return Interval(log=claim.estimate, processes=claim.processes)


def _told(end: float, claim: _Claim) -> float:
    """A point of the estimate as a change."""
    if not claim.is_ratio:
        return end
    try:
        return 100 * math.expm1(end)
    except OverflowError:  # of two processes that differ much nothing is known upwards
        return math.inf


def _against(one: FigureBeside, threshold: float | None) -> FigureBeside:
    """Memory beside the threshold: between that and what equal processes differ by, nothing is shown."""
    if threshold is None or one.basis != "exact":
        return one
    more = round(one.b / one.a - 1, 9)  # 1003 MiB are 0.3 % more than 1000, not a last digit above it
    return replace(one, beyond=more > max(threshold, MEMORY_SPREAD), within=more <= threshold)


def counted(found: Iterable[FigureBeside]) -> dict[Word, int]:
    """How many have each answer."""
    counts: dict[Word, int] = {"less": 0, "more": 0, "same": 0, "open": 0}
    for one in found:
        counts[one.word] += 1
    return counts
