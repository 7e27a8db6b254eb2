"""How well time, power and energy under power limits are foretold, on the published traces of two GPUs.

`PYTHONPATH=tests python tests/benchmarks/power_prediction.py [v100|a40]`; ten minutes a GPU, and none is needed. Errors
are medians of |log(foretold / measured)| in per cent; a configuration is a network, optimizer and batch size. README.md
has what it printed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
from power_traces import CARDS, read_trace

from gpubench.stats.power_limits import (
    MODELS,
    LimitPoints,
    Validation,
    choose_model,
    join_validations,
    judge_foretold,
    judge_left_out_limits,
    suggest_limit,
)

HEAD = f"{'':34} {'time':>6} {'power':>6} {'energy':>7} {'EDP':>6}   {'regret energy':>13} {'EDP':>6}"
Groups = Sequence[LimitPoints]
Choose = Callable[[Groups], str]


def always(name: str, _: Groups) -> str:
    """A choice that is made before."""
    return name


def print_line(name: str, judged: Validation, *more: object) -> None:
    """Median errors, then mean regrets, all in per cent."""
    time, energy = judged.time_error, judged.energy_error
    errors = [100 * np.median(np.abs(error)) for error in (time, judged.power_error, energy, energy + time)]
    regrets = [100 * judged.regret[goal].mean() for goal in ("energy", "edp")]
    print(f"{name:34}", "{:6.2f} {:6.2f} {:7.2f} {:6.2f}   {:13.2f} {:6.2f}".format(*errors, *regrets), *more)


def iterate_curves(groups: Groups) -> Iterator[LimitPoints]:
    """The points of each configuration."""
    for points in groups:
        for size in np.unique(points.batch_size):
            yield points.select(points.batch_size == size)


def is_never_limited(curve: LimitPoints, lowest: float) -> bool:
    """Whether a configuration draws less than the lowest limit under all limits, so that none changes anything."""
    return bool(curve.power_w.max() < lowest)


def drop_never_limited(points: LimitPoints, lowest: float) -> LimitPoints:
    kept = [c.batch_size[0] for c in iterate_curves([points]) if not is_never_limited(c, lowest)]
    return points.select(np.isin(points.batch_size, kept))


def compute_share_of_halves(groups: Groups, name: str) -> float:
    """In how many configurations the median error of energy is at most half of the line's."""
    halves = [
        np.median(np.abs(judged.energy_error)) <= np.median(np.abs(line.energy_error)) / 2
        for points in groups
        for size in np.unique(points.batch_size)
        for judged, line in [
            [judge_size_left_out(points, size, model) for model in (name, "line")],
        ]
    ]
    return 100 * float(np.mean(halves))


def judge_size_left_out(points: LimitPoints, size: float, model: str) -> Validation:
    """Each limit left out of a group, as it is foretold for one of its batch sizes."""
    parts = []
    for limit in points.limits:
        is_asked = (points.batch_size == size) & (points.limit_w == limit)
        if is_asked.any():
            is_used = is_asked | (points.limit_w != limit)
            parts.append(judge_foretold(points.select(is_used), is_asked[is_used], MODELS[model]))
    return join_validations(parts)


def judge_points_left_out(groups: Groups, model: str) -> Validation:
    """Each point is left out by itself: the other batch sizes were measured at its limit."""
    return join_validations(
        [
            judge_foretold(points, np.arange(len(points.limit_w)) == place, MODELS[model])
            for points in groups
            for place in range(len(points.limit_w))
        ]
    )


def judge_few_limits(groups: Groups, choose: Choose, *, has_middle: bool, has_full: bool) -> Validation:
    """All limits are foretold from the lowest and the highest, and with `has_middle` from the one in the middle.

    `has_full`: the middle batch size of each network was measured at all limits, and is not asked about.
    """
    masks = []
    for points in groups:
        sizes, limits = np.unique(points.batch_size), points.limits
        places = [0, len(limits) // 2, -1] if has_middle else [0, -1]
        is_known = np.isin(points.limit_w, limits[places])
        if has_full:
            is_known |= points.batch_size == sizes[len(sizes) // 2]
        masks.append(~is_known)
    known = [points.select(~is_asked) for points, is_asked in zip(groups, masks, strict=True)]
    model = MODELS[choose(known)]
    return join_validations(
        [judge_foretold(points, is_asked, model) for points, is_asked in zip(groups, masks, strict=True)]
    )


def suggest(known: LimitPoints, limits: Sequence[float]) -> float | None:
    wanted = suggest_limit(known, known.batch_size[0], np.array(limits))
    return None if wanted is None else wanted.limit_w


def halve_widest_gap(known: LimitPoints, limits: Sequence[float]) -> float | None:
    """The limit closest to the middle of the widest gap between measured ones; None where no gap has one."""
    for low, high in sorted(pairwise(known.limits.tolist()), key=lambda gap: gap[0] - gap[1]):
        if inside := [limit for limit in limits if low < limit < high]:
            return inside[int(np.abs(np.array(inside) - (low + high) / 2).argmin())]
    return None


def follow_advice(
    curve: LimitPoints, advise: Callable[[LimitPoints, Sequence[float]], float | None]
) -> list[float]:
    """The regret in energy of the best measured limit after 2 to 5 measurements of a configuration, and how many were
    taken: the lowest and the highest limit come first, then what is advised, as long as something is."""
    energy, limits, regrets = curve.time_s * curve.power_w, curve.limits.tolist(), []
    is_known = np.isin(curve.limit_w, [limits[0], limits[-1]])
    for _ in range(4):
        regrets.append(energy[is_known].min() / energy.min() - 1)
        wanted = advise(curve.select(is_known), limits) if len(regrets) < 4 else None
        is_known |= curve.limit_w == wanted
    return [*regrets, is_known.sum()]


def print_card(card: str) -> None:
    groups = list(read_trace(card).values())
    curves = list(iterate_curves(groups))
    lowest = min(points.limit_w.min() for points in groups)
    print(f"\n{card}: {len(curves)} configurations\n\nEach limit left out of all configurations\n{HEAD}")
    for name in MODELS:
        print_line(name, judge_left_out_limits(groups, partial(always, name)))
    names: Counter[str] = Counter()

    def choose(known: Groups) -> str:
        name = choose_model(known)
        names[name] += 1
        return name

    print_line("chosen, nested", judge_left_out_limits(groups, choose), dict(names))
    share = compute_share_of_halves(groups, names.most_common(1)[0][0])
    print(f"In {share:.0f} % of configurations the median error of energy is at most half of the line's.")

    kept = [points for each in groups if (points := drop_never_limited(each, lowest)).limit_w.size]
    quiet = [curve.time_s * curve.power_w for curve in curves if is_never_limited(curve, lowest)]
    scatter = np.concatenate([np.log(energy) - np.log(energy).mean() for energy in quiet])
    print(f"\nWithout {len(quiet)} configurations that draw less than {lowest:g} W under every limit")
    print(f"(the energies of those lie {100 * np.median(np.abs(scatter)):.2f} % from their own mean)\n{HEAD}")
    for name in ("line", "monotone"):
        print_line(name, judge_left_out_limits(kept, partial(always, name)))
    print_line("chosen, nested", judge_left_out_limits(kept, choose_model))

    print(f"\nEach point left out by itself\n{HEAD}")
    for name in MODELS:
        print_line(name, judge_points_left_out(groups, name))

    for has_middle in (False, True):
        for has_full in (False, True):
            title = "lowest, middle and highest limit" if has_middle else "lowest and highest limit"
            also = ", one batch size of each network at all" if has_full else ""
            print(f"\nMeasured at the {title}{also}\n{HEAD}")
            for name in (*MODELS, ""):
                chosen = partial(always, name) if name else choose_model
                judged = judge_few_limits(groups, chosen, has_middle=has_middle, has_full=has_full)
                print_line(name or "chosen", judged)

    print(
        "\nRegret in energy after 2, 3, 4, 5 measurements of each configuration alone, and how many were taken"
    )
    for title, advise in (("as suggested", suggest), ("middle of the widest gap", halve_widest_gap)):
        *regrets, taken = np.mean([follow_advice(curve, advise) for curve in curves], axis=0)
        print(f"{title:26}", "  ".join(f"{100 * regret:5.2f} %" for regret in regrets), f"  {taken:.1f}")


if __name__ == "__main__":
    for card in sys.argv[1:] or CARDS:
        print_card(card)
