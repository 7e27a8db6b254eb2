"""How well time, power and energy under power limits are foretold, on the published traces of two GPUs.

`PYTHONPATH=tests python tests/benchmarks/power_prediction.py [v100|a40]`; half an hour, no GPU is needed. Errors are
medians of |log(foretold / measured)| in per cent; a configuration is one network, optimizer and batch size. README.md
has what it printed.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from power_traces import CARDS, read_trace

from gpubench.stats.power_limits import (
    MODELS,
    Floats,
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


def format_line(name: str, judged: Validation) -> str:
    """Median errors, then mean regrets, all in per cent."""
    time, energy = judged.time_error, judged.energy_error
    errors = [100 * np.median(np.abs(error)) for error in (time, judged.power_error, energy, energy + time)]
    regrets = [100 * judged.regret[goal].mean() for goal in ("energy", "edp")]
    return f"{name:34} " + "{:6.2f} {:6.2f} {:7.2f} {:6.2f}   {:13.2f} {:6.2f}".format(*errors, *regrets)


def iterate_curves(groups: Groups) -> Iterator[tuple[LimitPoints, LimitPoints]]:
    """Each configuration with its group."""
    for points in groups:
        for size in np.unique(points.batch_size):
            yield points.select(points.batch_size == size), points


def is_never_limited(curve: LimitPoints, lowest: float) -> bool:
    """Whether a configuration draws less than the lowest limit under all limits, so that none changes anything."""
    return bool(curve.power_w.max() < lowest)


def judge_points_left_out(groups: Groups, model: str) -> Validation:
    """Each point is left out by itself: the other batch sizes were measured at its limit."""
    parts = []
    for points in groups:
        for place in range(len(points.limit_w)):
            is_asked = np.arange(len(points.limit_w)) == place
            parts.append(judge_foretold(points, is_asked, MODELS[model]))
    return join_validations(parts)


def judge_few_limits(
    groups: Groups, places: Sequence[int], choose: Callable[[Groups], str], full: bool
) -> Validation:
    """All limits are foretold from those at these places. `full`: the middle batch size of each network was measured at
    all limits, and is not asked about."""
    parts = []
    for points in groups:
        sizes, limits = np.unique(points.batch_size), points.limits
        is_known = np.isin(points.limit_w, limits[list(places)])
        if full:
            is_known |= points.batch_size == sizes[len(sizes) // 2]
        parts.append((points, ~is_known))
    model = MODELS[choose([points.select(~is_asked) for points, is_asked in parts])]
    return join_validations([judge_foretold(points, is_asked, model) for points, is_asked in parts])


def follow_suggestions(groups: Groups, *, is_suggested: bool) -> list[float]:
    """The mean regret in energy of the best measured limit after 2 to 5 measurements of each configuration alone.

    The lowest and the highest limit come first; then what is suggested, as long as something is, or else the middle of
    the widest gap.
    """
    regrets = []
    for curve, _ in iterate_curves(groups):
        energy, taken, is_over, lines = (
            curve.time_s * curve.power_w,
            {0, int(curve.limit_w.argmax())},
            False,
            [],
        )
        taken = {int(curve.limit_w.argmin()), int(curve.limit_w.argmax())}
        for _ in range(4):
            lines.append(energy[list(taken)].min() / energy.min() - 1)
            known = curve.select(np.isin(np.arange(len(energy)), list(taken)))
            if is_over:
                continue
            if is_suggested:
                wanted = suggest_limit(known, curve.batch_size[0], curve.limit_w)
                is_over = wanted is None
                if wanted is not None:
                    taken.add(int(np.flatnonzero(curve.limit_w == wanted.limit_w)[0]))
            else:
                low, high = max(pairwise(known.limits), key=lambda gap: gap[1] - gap[0])
                inside = np.flatnonzero((curve.limit_w > low) & (curve.limit_w < high))
                if not inside.size:
                    is_over = True
                    continue
                taken.add(int(inside[np.abs(curve.limit_w[inside] - (low + high) / 2).argmin()]))
        regrets.append([*lines, len(taken)])
    means: Floats = np.array(regrets).mean(axis=0)
    return [float(mean) for mean in means]


def print_card(card: str) -> None:
    groups = list(read_trace(card).values())
    curves = [curve for curve, _ in iterate_curves(groups)]
    lowest = min(points.limit_w.min() for points in groups)
    print(f"\n{card}: {len(curves)} configurations\n\nEach limit left out of all configurations\n{HEAD}")
    judged = {name: judge_left_out_limits(groups, lambda _, name=name: name) for name in MODELS}
    names: Counter[str] = Counter()

    def choose(known: Groups) -> str:
        name = choose_model(known)
        names[name] += 1
        return name

    chosen = judge_left_out_limits(groups, choose)
    for name, validation in judged.items():
        print(format_line(name, validation))
    print(format_line("chosen, nested", chosen), dict(names))

    quiet = [curve for curve in curves if is_never_limited(curve, lowest)]
    scatter = np.concatenate(
        [np.log(c.time_s * c.power_w) - np.log(c.time_s * c.power_w).mean() for c in quiet]
    )
    floor = 100 * np.median(np.abs(scatter))
    print(
        f"\n{len(quiet)} configurations draw less than {lowest:g} W under every limit, so limits change nothing:"
    )
    print(f"their energies lie {floor:.2f} % (median) from their own mean, which nobody foretells.")
    kept = [
        points.select(
            ~np.isin(points.batch_size, [c.batch_size[0] for c in quiet if c.power_w[0] in points.power_w])
        )
        for points in groups
    ]
    kept = [points for points in kept if points.limit_w.size]
    print(f"The others\n{HEAD}")
    for name in ("line", "monotone"):
        print(format_line(name, judge_left_out_limits(kept, lambda _, name=name: name)))
    print(format_line("chosen, nested", judge_left_out_limits(kept, choose_model)))

    print(f"\nEach point left out by itself\n{HEAD}")
    for name in MODELS:
        print(format_line(name, judge_points_left_out(groups, name)))

    for title, places in (("lowest and highest", (0, -1)), ("lowest, middle, highest", (0, None, -1))):
        for full in (False, True):
            print(f"\nMeasured at {title}{', one batch size of each network at all' if full else ''}\n{HEAD}")
            for name in MODELS:
                print(format_line(name, judge_few(groups, places, lambda _, name=name: name, full)))
            print(format_line("chosen", judge_few(groups, places, choose_model, full)))

    print(
        "\nRegret in energy after 2, 3, 4, 5 measurements of each configuration alone, and measurements taken, mean"
    )
    for is_suggested in (True, False):
        *regrets, taken = follow_suggestions(groups, is_suggested=is_suggested)
        text = "  ".join(f"{100 * regret:5.2f} %" for regret in regrets)
        print(f"{'as suggested' if is_suggested else 'middle of the widest gap':26} {text}   {taken:.1f}")


def judge_few(
    groups: Groups, places: Sequence[int | None], choose: Callable[[Groups], str], full: bool
) -> Validation:
    """As judge_few_limits; None is the middle."""
    middle = len(groups[0].limits) // 2
    return judge_few_limits(groups, [middle if place is None else place for place in places], choose, full)


if __name__ == "__main__":
    for card in sys.argv[1:] or CARDS:
        print_card(card)
