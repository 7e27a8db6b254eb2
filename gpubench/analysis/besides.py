"""What the batch sizes of a series tell beside where a larger one stops paying.

By another memory, or another time, the answer may be another size; most of the rate may be had with a smaller one; and
some sizes are beaten by none in both memory and time. All of it is by the figures as they stand, without a test, and
says so: who wants to know whether a step is chance finds that in the answer. Shares of the best rate have intervals.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.decided import between
from gpubench.analysis.front import front
from gpubench.analysis.growth import epoch_time, gpu_mem
from gpubench.analysis.noise import beginning, begun, resting
from gpubench.analysis.over_processes import steady, steady_ratio, time_ratio
from gpubench.basics.rounding import half_up
from gpubench.basics.words import listed
from gpubench.schema.row import Row

FigureOf = Callable[[Row], float | None]
MOST_OF_PCT = 95.0
"""Per cent of the best rate that count as most of it."""


def besides(rows: Sequence[Row], *, over_processes: bool) -> list[str]:
    """Where another memory or time gives another answer; empty where none does.

    `rows`: of one series, ascending. `over_processes`: whether it was judged so.
    """
    timed = [row for row in rows if epoch_time(row) is not None]
    weighed = [row for row in timed if gpu_mem(row) is not None]
    if len(timed) < 2:
        return []
    told = _judged(timed, over_processes=over_processes)
    other = per_image_s if told is steady_s else steady_s
    said = []
    if len(weighed) > 1 and len({row.gpu_mem_source for row in weighed}) == 1:
        best = _answer(weighed, gpu_mem, told, straight=over_processes)
        if (by := _answer(weighed, allocated, told, straight=over_processes)) and by != best:
            said.append(
                f"By the allocator's peak, which is of tensors alone, {_words(by, weighed)} by these figures"
            )
        if (by := _answer(weighed, gpu_mem, other, straight=over_processes)) and by != best:
            how = (
                "By whole epochs, the fill of their loaders included,"
                if told is steady_s
                else "By the steady steps alone, without the fill of each epoch,"
            )
            said.append(f"{how} {_words(by, weighed)} by these figures")
    return [f"{one[0].upper()}{one[1:]}." for one in said]


def in_one_line(rows: Sequence[Row], *, over_processes: bool) -> str:
    """Which size nearly reaches the best rate, and which no other beats in both memory and time; empty likewise."""
    timed = [row for row in rows if epoch_time(row) is not None]
    if len(timed) < 2:
        return ""
    weighed = [row for row in timed if gpu_mem(row) is not None]
    told = _judged(timed, over_processes=over_processes)
    most = _most(timed, told, over_processes=over_processes)
    said = "; ".join(filter(None, (most, _fronts(timed, weighed, told))))
    start = "" if over_processes else beginning(timed)
    return f"{begun(start, said)}{'' if start else resting(timed)}."


def _judged(timed: Sequence[Row], *, over_processes: bool) -> FigureOf:
    """The time by which the answer is found."""
    return steady_s if over_processes and all(steady_s(row) for row in timed) else per_image_s


def per_image_s(row: Row) -> float | None:
    """Seconds an image of whole epochs; of an epoch where the row does not know its images."""
    time = epoch_time(row)
    return time / (row.images_per_epoch or 1) if time else None


def steady_s(row: Row) -> float | None:
    """Seconds an image of steady steps."""
    if row.status != "ok" or not row.batch_size:
        return None
    if (found := steady(row)) is not None:
        # The geometric mean, about which the intervals lie.
        return statistics.geometric_mean(found.values)
    if row.steady_step_s is None or row.repeats > 1 or row.kind == "steady rate":
        return None
    return row.steady_step_s / row.batch_size


def allocated(row: Row) -> float | None:
    """The allocator's peak in MiB."""
    return row.gpu_mem_allocated_mib or None if row.status == "ok" else None


def _answer(rows: Sequence[Row], memory: FigureOf, time: FigureOf, *, straight: bool) -> int | None:
    """The batch size that these figures answer with; None where one is missing.

    `straight`: the cheapest of all; else the last before the first that does not pay.
    """
    costs = []
    for row in rows:
        mib, seconds = memory(row), time(row)
        if not mib or not seconds:
            return None
        costs.append(mib * seconds)
    place = costs.index(min(costs)) if straight else 0
    while not straight and place + 1 < len(costs) and costs[place + 1] < costs[place]:
        place += 1
    return rows[place].batch_size


def _words(best: int, rows: Sequence[Row]) -> str:
    if best == rows[-1].batch_size:
        return f"every larger batch pays, up to {best},"
    return (
        f"a larger batch stops paying after {best}" if best != rows[0].batch_size else "no larger batch pays"
    )


def _most(rows: Sequence[Row], time: FigureOf, *, over_processes: bool) -> str:
    """Which size nearly reaches the best rate, with its share of it and that of the next smaller one; open where an
    interval holds the border, of these or of what another size could make of it; and by which times, where whole epochs
    say another.
    """
    enough, best, smaller = _enough(rows, time)
    shown = _enough(rows, per_image_s)[0]
    said = (
        f"{enough.batch_size} is the smallest of these sizes that reaches {MOST_OF_PCT:g} % of the best rate"
    )
    if enough is not shown:
        said += f" of steady steps (of whole epochs: {shown.batch_size})"
    if not over_processes:
        return said
    ratio = steady_ratio if time is steady_s else time_ratio
    below = smaller[-1:]
    shares = {row.batch_size: ratio(best, row) for row in (enough, *below) if row is not best}
    told = [
        f"{'' if batch == enough.batch_size else f'{batch} reaches '}{half_up(100 * share.value)} % of it "
        f"({_ends(share)} %)"
        for batch, share in shares.items()
        if share is not None
    ]
    others = [row for row in rows if row not in (enough, best, *below)]
    against = [(row, ratio(best, row) if row in smaller else ratio(row, enough)) for row in others]
    border = MOST_OF_PCT / 100
    reach = [row for row, share in against if row in smaller and share and share.high >= border]
    faster = [row for row, share in against if row not in smaller and share and share.low < border]
    told += [
        f"{listed([str(row.batch_size) for row in found])} may {may}"
        for found, may in ((reach, "reach it, too"), (faster, f"be faster than {enough.batch_size}"))
        if found
    ]
    unsure = any(share is None or share.low < border < share.high for share in shares.values())
    unsure = unsure or bool(reach or faster) or any(share is None for _, share in against)
    start = "Open, by these figures " if unsure else ""
    return f"{start}{said}{': ' if told else ''}{listed(told)}"


def _ends(share: Interval) -> str:
    """`94 to 98`, of a share in per cent; with a tenth where the ends would look alike."""
    whole = between(100 * share.low, 100 * share.high, 0)
    near, far = whole.split(" to ")
    return whole if near != far else between(100 * share.low, 100 * share.high, 1)


def _enough(rows: Sequence[Row], time: FigureOf) -> tuple[Row, Row, Sequence[Row]]:
    """The smallest size that reaches most of the best rate; that with the best; those smaller than the first."""
    known = [(row, seconds) for row in rows if (seconds := time(row))]
    best, least = min(known, key=lambda one: one[1])
    place = next(n for n, (_, seconds) in enumerate(known) if least / seconds >= MOST_OF_PCT / 100)
    return known[place][0], best, [row for row, _ in known[:place]]


def _fronts(timed: Sequence[Row], weighed: Sequence[Row], time: FigureOf) -> str:
    """Which sizes no other beats in both memory and time, and which in both energy and time."""
    by_memory = _front(weighed, gpu_mem, time) if len({row.gpu_mem_source for row in weighed}) == 1 else None
    measured = all(joules(row) for row in timed) and len({row.energy_source for row in timed}) == 1
    by_energy = _front(timed, joules, time) if measured else None
    if by_memory is None and by_energy is None:
        return ""
    first, kind = (by_memory, "memory") if by_memory is not None else (by_energy or [], "energy")
    known = weighed if by_memory is not None else timed
    if len(first) == len(known):
        said = f"by these figures each size is on the Pareto front of time and {kind}: none is beaten in both"
    else:
        said = f"by these figures on the Pareto front of time and {kind}, beaten in both by no other: {listed(first)}"
    if by_memory is None or by_energy is None:
        return said
    sizes = "each size" if len(by_energy) == len(timed) else listed(by_energy)
    return f"{said}; on that of time and energy: {sizes}"


def _front(rows: Sequence[Row], figure: FigureOf, time: FigureOf) -> list[str] | None:
    """The sizes on the Pareto front of this figure and time; None of fewer than two."""
    known = [(row, (cost, s)) for row in rows if (cost := figure(row)) and (s := time(row))]
    if len(known) < 2:
        return None
    best = front([point for _, point in known])
    return [str(row.batch_size) for (row, _), on_it in zip(known, best, strict=True) if on_it]


def joules(row: Row) -> float | None:
    """Energy an image in J; of an epoch where the row does not know its images."""
    return row.energy_j / (row.images_per_epoch or 1) if row.energy_j and row.status == "ok" else None
