"""What intervals, decisions and standard errors promise, against simulated truth: the tables of docs/certainty.md.

PYTHONPATH=tests python tests/benchmarks/certainty.py [--samples 10000] [TABLE ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from scipy.special import polygamma, psi, stdtrit
from simulated_processes import Array, mean_times, resembling, stalling

from gpubench.analysis.certainty.decision import STRICTER, Decision, decide
from gpubench.analysis.certainty.interval import Interval, interval, overlap_gain, ratio, ratio_by_rounds
from gpubench.analysis.certainty.mean_estimate import LEVEL
from gpubench.analysis.certainty.outliers import outliers
from gpubench.analysis.certainty.power import settling_ratio, smallest_effect
from gpubench.stats.steps import FEWEST_STEPS, step_mean

COUNTS = (3, 5, 10)
BETWEEN = (0, 1, 4)


def told(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> None:
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for line in lines:
        print("| " + " | ".join(str(cell) for cell in line) + " |")
    print()


def pct(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def holds(found: Iterable[Interval | None], truth: float) -> float:
    there = [one for one in found if one is not None]
    return sum(one.low <= truth <= one.high for one in there) / len(there)


def middle_width(found: Iterable[Interval | None]) -> float:
    return float(np.median([one.half_pct for one in found if one is not None]))


def coverage(draw: np.random.Generator, samples: int) -> None:
    """One figure, and ratios of two."""
    print(
        "Coverage of 95 % intervals: one time; a ratio of as many processes each; of three against as many\n"
    )
    lines = []
    for count in COUNTS:
        for between in BETWEEN:
            some, others, three = (mean_times(draw, samples, n, between) for n in (count, count, 3))
            quiet = mean_times(draw, samples, count, between) ** 0.25
            lines.append(
                (
                    count,
                    between,
                    pct(holds(map(interval, some.tolist()), 1.0)),
                    pct(holds(map(ratio, some.tolist(), others.tolist()), 1.0)),
                    pct(holds(map(ratio, some.tolist(), quiet.tolist()), 1.0)),
                    pct(holds(map(ratio, three.tolist(), others.tolist()), 1.0)),
                )
            )
    heads = (
        "processes",
        "between / within",
        "time",
        "ratio",
        "ratio, one side a quarter as noisy",
        "3 against as many",
    )
    told(heads, lines)


def with_outliers(draw: np.random.Generator, samples: int) -> None:
    print("One process in twenty is 30 % slower\n")
    lines = []
    usual = 1.3**0.05
    for count in COUNTS:
        for between in BETWEEN:
            some, others = (mean_times(draw, samples, count, between, outliers=True) for _ in range(2))
            found = list(map(interval, some.tolist()))
            ratios = list(map(ratio, some.tolist(), others.tolist()))
            slow = some > 1.2
            flagged = [outliers(line) for line in some.tolist()] if count >= 5 else []
            right = [
                set(places) == set(np.flatnonzero(line).tolist())
                for places, line in zip(flagged, slow, strict=bool(flagged))
                if line.any()
            ]
            lines.append(
                (
                    count,
                    between,
                    pct(holds(found, 1.0)),
                    pct(holds(found, usual)),
                    pct(holds(ratios, 1.0)),
                    pct(sum(r.log.chance_equal(0) <= 0.05 for r in ratios if r) / samples),
                    pct(sum(right) / len(right)) if right else "",
                )
            )
    heads = (
        "processes",
        "between / within",
        "holds the usual process",
        "holds the mean of all processes",
        "ratio",
        "false *differs*",
        "flagged, just the slow ones",
    )
    told(heads, lines)


def gains(draw: np.random.Generator, samples: int) -> None:
    print("Coverage of overlap gains; two copies of one trial, and three different jobs (truth 0.5)\n")
    lines = []
    for count in COUNTS:
        row: list[object] = [count]
        for jobs in (("a", "a"), ("a", "b", "c")):
            slow = len(jobs) / (1 + 0.5 * (len(jobs) - 1))
            for sd in (0.02, 0.1):
                run = draw.normal(0, sd, (samples, 1, count))
                both = np.exp(run + draw.normal(0, sd / 2, (samples, len(jobs), count))) * slow
                alone = np.exp(draw.normal(0, sd, (samples, len(jobs), count)))
                found = [
                    overlap_gain(
                        dict(zip(jobs, solo, strict=True)), [(j, t) for j, t in zip(jobs, times, strict=True)]
                    )
                    for solo, times in zip(alone.tolist(), both.tolist(), strict=True)
                ]
                row.append(pct(holds(found, 0.5)))
        lines.append(row)
    told(("processes", "2 copies, sd 2 %", "sd 10 %", "3 jobs, sd 2 %", "sd 10 %"), lines)


def alike(draw: np.random.Generator, samples: int) -> None:
    print(
        "Tables of ten equal rows, each against the next (9) or the first (9): a false *differs*; and a false *same*\n"
    )
    lines = []
    tables = max(200, samples // 5)
    for count in COUNTS:
        for between in BETWEEN:
            rows = mean_times(draw, tables * 10, count, between).reshape(tables, 10, count)
            noisy = np.exp(np.log(rows) * draw.choice([1, 10], (tables, 10, 1)))
            line: list[object] = [count, between]
            next_ones, first = [(n, n + 1) for n in range(9)], [(0, n + 1) for n in range(9)]
            line += [
                pct(_wrong(table, pairs, ("slower", "faster")))
                for table in (rows, noisy)
                for pairs in (next_ones, first)
            ]
            apart = rows * (1.05 ** np.arange(10))[None, :, None]
            line.append(pct(_wrong(apart, next_ones, ("same",), margin=0.05)))
            lines.append(line)
    heads = (
        "processes",
        "between / within",
        "next",
        "first",
        "next, noise differs tenfold",
        "first, likewise",
        "*same*, at the margin",
    )
    told(heads, lines)


def _wrong(
    tables: Array, pairs: Sequence[tuple[int, int]], words: Sequence[str], margin: float = 0.02
) -> float:
    """The share of tables with any of these words."""
    wrong = 0
    for rows in tables.tolist():
        found = [r for one, other in pairs if (r := ratio(rows[one], rows[other]))]
        wrong += any(one.word in words for one in decide(found, margin))
    return wrong / len(tables)


def power(draw: np.random.Generator, samples: int) -> None:
    print(
        "The smallest effect that shows with power 0.8: alone, and among ten; drawn: how often it then did\n"
    )
    lines = []
    for sd in (0.002, 0.02, 0.05, 0.13):
        for count in (2, *COUNTS):
            parts = np.exp(sd * _exactly(count)).tolist()
            found = ratio(parts, parts)
            assert found
            alone, among = (smallest_effect(found, level) for level in (0.05, 0.005))
            sides = draw.normal(0, sd, (2, min(samples, 4000), count))
            seen = [ratio(a, b) for a, b in zip(np.exp(sides[0]) * alone, np.exp(sides[1]), strict=True)]
            shown = sum(r.log.chance_equal(0) <= 0.05 for r in seen if r) / len(seen)
            lines.append((pct(sd), count, *(pct(effect - 1) for effect in (alone, among)), pct(shown, 0)))
    told(("noise (sd)", "processes each", "alone", "among ten", "drawn, alone"), lines)
    print(
        "Processes on each side that settle it: a difference of so much, or equality within 2 % where there is none\n"
    )
    lines = []
    for sd in (0.002, 0.02, 0.05, 0.13):
        parts = np.exp(sd * _exactly(10))
        row: list[object] = [pct(sd)]
        for effect in (1.01, 1.02, 1.05, 1.1, 1.3):
            found = ratio((parts * effect).tolist(), parts.tolist())
            assert found
            row.append(settling_ratio(found, 0.02).difference)
        found = ratio(parts.tolist(), parts.tolist())
        assert found
        lines.append((*row, settling_ratio(found, 0.02).equality))
    told(("noise (sd)", "1 %", "2 %", "5 %", "10 %", "30 %", "equal within 2 %"), lines)


def _exactly(count: int) -> Array:
    """So many values whose mean is 0 and whose standard deviation is 1."""
    values = np.arange(count) - (count - 1) / 2
    return values / values.std(ddof=1)


def steps(draw: np.random.Generator, samples: int) -> None:
    print(
        "Standard errors of the mean of steps: how many windows have none (too short), how many intervals miss among\n"
        "all windows, and the standard error over the true one; beside it other ways\n"
    )
    samples = min(samples, 2000)
    lines = []
    for length in (50, 100, 200, 400, 1000):
        kinds: list[tuple[str, Array, float]] = [
            (f"correlation {r:g}", 1 + 0.05 * resembling(draw, (samples, length), r), 1.0)
            for r in (0, 0.5, 0.9)
        ]
        kinds.append(("every eighth stalls", stalling(draw, samples, length), 1.375))
        for name, windows, truth in kinds:
            found = [step_mean(line) for line in windows.tolist()]
            there = [one for one in found if one]
            missed = sum(
                abs(one.seconds - truth) > one.seconds * one.error * stdtrit(one.batches - 1, 0.975)
                for one in there
            )
            true = np.std([one.seconds for one in there]) if there else math.nan
            size = (
                math.sqrt(np.mean([(one.error * one.seconds) ** 2 for one in there])) / true
                if there
                else math.nan
            )
            means = windows.mean(axis=1)
            others = [_missed(means, truth, *way(windows)) for way in (_plain, _few, _many, _overlapping)]
            lines.append(
                (
                    length,
                    name,
                    pct(1 - len(there) / samples, 0),
                    pct(missed / samples),
                    f"{size:.2f}",
                    *(pct(other) for other in others),
                )
            )
    heads = (
        "steps",
        "",
        "none",
        "misses",
        "over the true",
        "plain: misses",
        "5 batches",
        "20 batches",
        "overlapping, √n",
    )
    told(heads, lines)


def _missed(means: Array, truth: float, error: Array, freedom: float) -> float:
    return float((abs(means - truth) > error * stdtrit(freedom, 0.975)).mean())


def _plain(windows: Array) -> tuple[Array, float]:
    length = windows.shape[1]
    return windows.std(axis=1, ddof=1) / math.sqrt(length), length - 1


def _in_batches(count: int) -> Callable[[Array], tuple[Array, float]]:
    def way(windows: Array) -> tuple[Array, float]:
        size = windows.shape[1] // count
        batches = windows[:, -count * size :].reshape(len(windows), count, size).mean(axis=2)
        return batches.std(axis=1, ddof=1) / math.sqrt(count), count - 1

    return way


_few, _many = _in_batches(5), _in_batches(20)


def _overlapping(windows: Array) -> tuple[Array, float]:
    length = windows.shape[1]
    size = int(math.sqrt(length))
    sums = np.cumsum(np.pad(windows, ((0, 0), (1, 0))), axis=1)
    means = (sums[:, size:] - sums[:, :-size]) / size
    squares = ((means - windows.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return np.sqrt(squares * size / ((length - size + 1) * (length - size))), 1.5 * (length / size - 1)


MSER = 5
"""Steps to a batch of MSER-5 (White 1997)."""


def steady_from(steps: Sequence[float], of_batch: Callable[[Sequence[float]], float]) -> int | None:
    """How many steps at the beginning MSER-5 leaves out; None where the least lies in its last half.

    The cut with which the standard error of what remains would be least, were it independent. `of_batch`: what stands
    for a batch of steps; White takes the mean.
    """
    if len(steps) < FEWEST_STEPS:
        return None
    left = len(steps) % MSER
    batches = np.array([of_batch(steps[place : place + MSER]) for place in range(left, len(steps), MSER)])
    half = len(batches) // 2
    errors = [batches[cut:].var() / (len(batches) - cut) for cut in range(half + 1)]
    cut = int(np.argmin(errors))
    if cut == half:
        return None
    return left + MSER * cut if cut else 0


def beginnings(draw: np.random.Generator, samples: int) -> None:
    print(
        "What MSER-5 would leave out: a start that falls by e every ten steps, or stalls that come at any time\n"
    )
    samples = min(samples, 1000)
    lines = []
    ways = {"mean": np.mean, "median": np.median}
    for length in (50, 100, 400):
        for slow, stalls in ((0.0, 0.0), (0.1, 0.0), (0.5, 0.0), (0.0, 0.02), (0.0, 0.1)):
            windows = 1 + 0.05 * resembling(draw, (samples, length), 0.5)
            windows += slow * np.exp(-np.arange(length) / 10)
            windows += 2 * (draw.random((samples, length)) < stalls)
            line = [length, pct(slow, 0), pct(stalls, 0), pct(windows.mean() / (1 + 2 * stalls) - 1, 2)]
            for of_batch in ways.values():
                cuts = [steady_from(window, of_batch) for window in windows.tolist()]
                means = [window[cut or 0 :].mean() for window, cut in zip(windows, cuts, strict=True)]
                left = float(np.mean(means)) / (1 + 2 * stalls) - 1
                line += [pct(left, 2), pct(cuts.count(None) / samples, 0)]
            lines.append(line)
    told(
        (
            *("steps", "first step slower by", "steps that stall", "bias of all"),
            *(f"{what} by {way}s" for way in ways for what in ("bias left", "no cut")),
        ),
        lines,
    )


def moderation(draw: np.random.Generator, samples: int) -> None:
    print(
        "Three processes a row, ten rows: intervals by each row's own variance, by all rows' pooled, and moderated\n"
    )
    lines = []
    tables = max(500, samples // 5)
    for name, variances in (
        ("all alike", np.ones(10)),
        ("from 1 to 100, evenly on the log scale", np.logspace(0, 2, 10)),
        ("nine of 1, one of 100", np.r_[np.ones(9), 100.0]),
        ("five of 1, five of 100", np.r_[np.ones(5), 100 * np.ones(5)]),
    ):
        values = draw.normal(size=(tables, 10, 3)) * np.sqrt(variances)[None, :, None]
        own = values.var(axis=2, ddof=1)
        for way, (used, freedom) in {
            "own": (own, np.full((tables, 1), 2.0)),
            "pooled": (np.repeat(own.mean(axis=1, keepdims=True), 10, axis=1), np.full((tables, 1), 20.0)),
            "moderated": _moderated(own, 2.0),
        }.items():
            half = np.sqrt(used / 3) * stdtrit(freedom, 0.975)
            inside = (abs(values.mean(axis=2)) <= half).mean(axis=0)
            wide = np.median(half / np.sqrt(variances / 3), axis=0)
            lines.append(
                (
                    name,
                    way,
                    pct(inside.mean()),
                    pct(inside[0]),
                    pct(inside[-1]),
                    f"{wide[0]:.1f}",
                    f"{wide[-1]:.1f}",
                )
            )
    told(
        (
            "variances",
            "by",
            "coverage",
            "quietest row",
            "noisiest row",
            "half width of the quietest, in true errors",
            "noisiest",
        ),
        lines,
    )


def _moderated(own: Array, freedom: float) -> tuple[Array, Array]:
    """Variances drawn towards their common one, as limma does (Smyth 2004), and their freedom."""
    logs = np.log(own) - psi(freedom / 2) + math.log(freedom / 2)
    spread = logs.var(axis=1, ddof=1) - polygamma(1, freedom / 2)
    prior = np.array([2 * _inverse_trigamma(one) if one > 0 else math.inf for one in spread])[:, None]
    finite = np.where(np.isinf(prior), 1e9, prior)
    common = np.exp(logs.mean(axis=1, keepdims=True) + psi(finite / 2) - np.log(finite / 2))
    return (finite * common + freedom * own) / (finite + freedom), np.minimum(finite + freedom, 10 * freedom)


def _inverse_trigamma(value: float) -> float:
    found = 0.5 + 1 / value
    for _ in range(50):
        now = float(polygamma(1, found))
        found += now * (1 - now / value) / float(polygamma(2, found))
    return found


def drift(draw: np.random.Generator, samples: int) -> None:
    print(
        "Ten rows in rounds of random order, the machine slower by so much at the end: Welch and pairs by rounds\n"
    )
    lines: list[Sequence[object]] = []
    tables = max(500, samples // 5)
    for much in (0.0, 0.05, 0.2):
        for sd in (0.002, 0.02):
            for count in COUNTS:
                place = (
                    np.argsort(draw.random((tables, count, 10)), axis=2)
                    + 10 * np.arange(count)[None, :, None]
                )
                logs = draw.normal(0, sd, place.shape) + math.log1p(much) * place / (10 * count - 1)
                sides = np.exp(logs[:, :, :2]).transpose(2, 0, 1).tolist()
                welch = [ratio(a, b) for a, b in zip(*sides, strict=True)]
                pairs = [
                    ratio_by_rounds(dict(enumerate(a)), dict(enumerate(b)))
                    for a, b in zip(*sides, strict=True)
                ]
                line: list[object] = [pct(much, 0), pct(sd), count]
                for found in (welch, pairs):
                    line += [pct(holds(found, 1.0)), f"{middle_width(found):.2f} %"]
                lines.append(line)
    told(("drift", "noise (sd)", "rounds", "Welch", "half width", "pairs", "half width"), lines)


ROUNDS = 20
Rule = Callable[[Sequence[Interval]], Sequence[Decision]]
"""What counts as decided at a look after a round; rows in nothing that is open drop out."""


def dropping(draw: np.random.Generator, samples: int) -> None:
    print(
        "Tables of equal rows with any false *slower* or *faster*: all rows in all of 10 and 20 rounds, and where\n"
        "rows in no open question drop out\n"
    )
    tables = max(200, samples // 5)
    next_ones, first = [(n, n + 1) for n in range(9)], [(0, n + 1) for n in range(9)]
    lines = []
    for name, pairs in (("next", next_ones), ("first", first), ("two rows", next_ones[:1])):
        rows = 1 + max(map(max, pairs))
        for between, unlike in ((0, False), (1, False), (4, False), (1, True)) if rows > 2 else ((1, False),):
            times = mean_times(draw, tables * rows, ROUNDS, between).reshape(tables, rows, ROUNDS)
            if unlike:
                times = np.exp(np.log(times) * draw.choice([1, 10], (tables, rows, 1)))
            kept = _false_after(times, pairs, None)
            dropped = _false_after(times, pairs, _of_sweeps)
            noise = f"{between}{', differs tenfold' if unlike else ''}"
            lines.append((name, noise, *(pct(one) for one in (*kept, *dropped))))
    heads = ("compared", "between / within", "all, 10", "all, 20", "dropping, 10", "dropping, 20")
    told(heads, lines)
    print("Rows that do differ, each by so much from the next; noise of 2 %; up to 20 rounds\n")
    lines = []
    for apart in (0.01, 0.05, 0.1, 0.3, 1.0):
        times = np.exp(draw.normal(0, 0.02, (min(tables, 500), 10, ROUNDS)))
        times *= ((1 + apart) ** np.arange(10))[None, :, None]
        found = [_swept(table, next_ones, _of_sweeps) for table in times.tolist()]
        ended = [max(len(row) for row in seen) for seen in found]
        lines.append(
            (
                pct(apart, 0),
                pct(sum(len(row) for seen in found for row in seen) / times.size),
                f"{np.median(ended):.0f}",
                pct(
                    sum(all(one != "open" for one in _words(seen, next_ones)) for seen in found) / len(found)
                ),
            )
        )
    told(("apart", "measured of 20 rounds", "rounds (median)", "all decided in the end"), lines)


def stopping(draw: np.random.Generator, samples: int) -> None:
    print(
        "Tables of ten equal rows with any false *slower* or *faster* after 20 rounds, where rows drop out by the\n"
        "words of the table itself, by looks that spend all of the level together, and by those of sweeps\n"
    )
    tables = max(200, samples // 5)
    times = mean_times(draw, tables * 10, ROUNDS, 1).reshape(tables, 10, ROUNDS)
    rules: list[Rule] = [_own_words, _spending_all, _of_sweeps]
    lines = []
    for name, pairs in (
        ("next", [(n, n + 1) for n in range(9)]),
        ("first", [(0, n + 1) for n in range(9)]),
    ):
        lines.append((name, *(pct(_false_after(times, pairs, rule)[1]) for rule in rules)))
    told(("compared", "the table's words", "spending all", "of sweeps"), lines)


def _own_words(found: Sequence[Interval]) -> Sequence[Decision]:
    return decide(found, 0.02)


def _of_sweeps(found: Sequence[Interval], level: float = LEVEL) -> Sequence[Decision]:
    return decide(found, 0.02, level, looks=[one.processes[0] - 2 for one in found])


def _spending_all(found: Sequence[Interval]) -> Sequence[Decision]:
    # A level of 1 would take for decided what has no chance at all.
    return _of_sweeps(found, min(LEVEL * STRICTER, 1 - 1e-9))


def _false_after(tables: Array, pairs: Sequence[tuple[int, int]], rule: Rule | None) -> tuple[float, float]:
    """The share of tables with a false difference after 10 rounds, and after 20."""
    wrong = [0, 0]
    for table in tables.tolist():
        seen = _swept(table, pairs, rule)
        for place, rounds in enumerate((10, ROUNDS)):
            then = [{number: time for number, time in row.items() if number < rounds} for row in seen]
            wrong[place] += bool({"slower", "faster"} & set(_words(then, pairs)))
    return wrong[0] / len(tables), wrong[1] / len(tables)


def _swept(
    table: Sequence[Sequence[float]], pairs: Sequence[tuple[int, int]], rule: Rule | None
) -> list[dict[int, float]]:
    """What rounds over a table measure: of each row its times by round. `rule`: None where no row drops out."""
    seen: list[dict[int, float]] = [{} for _ in table]
    rows = set(range(len(table)))
    for number in range(ROUNDS):
        for row in rows:
            seen[row][number] = table[row][number]
        if rule is not None and number >= 2:
            words = _words(seen, pairs, rule)
            rows = {row for pair, word in zip(pairs, words, strict=True) if word == "open" for row in pair}
    return seen


def _words(
    seen: Sequence[dict[int, float]], pairs: Sequence[tuple[int, int]], rule: Rule = _own_words
) -> list[str]:
    found = [one for a, b in pairs if (one := ratio_by_rounds(seen[b], seen[a]))]
    return [one.word for one in rule(found)]


def within(draw: np.random.Generator, samples: int) -> None:
    print(
        "A time whose rounds end once half its 95 % interval is at most 2 % of it, from three processes on\n"
        "(--within); and tables of ten such equal rows, compared by the rounds that both have, with any false\n"
        "*slower* or *faster*\n"
    )
    lines = []
    for noise in (0.005, 0.01, 0.015, 0.02, 0.03, 0.05):
        ends = [
            stopped(times, 2.0) for times in np.exp(draw.normal(0, noise, (samples, MOST_ROUNDS))).tolist()
        ]
        found = [interval(times) for times in ends]
        wrong = [0, 0]
        tables = samples // 10
        for place in range(tables):
            rows = [dict(enumerate(times)) for times in ends[10 * place : 10 * place + 10]]
            for way, pairs in enumerate(([(n, n + 1) for n in range(9)], [(0, n + 1) for n in range(9)])):
                wrong[way] += bool({"slower", "faster"} & set(_words(rows, pairs)))
        lines.append(
            (
                pct(noise),
                f"{np.mean([len(times) for times in ends]):.1f}",
                pct(holds(found, 1.0)),
                *(pct(count / tables) for count in wrong),
            )
        )
    told(("noise", "processes, in the mean", "holds the truth", "false, next", "false, first"), lines)


MOST_ROUNDS = 100


def stopped(times: Sequence[float], within_pct: float) -> Sequence[float]:
    """The times of the processes until they are known as well as that, three at least, as a sweep looks at them."""
    for count in range(3, len(times)):
        known = interval(times[:count])
        if known is not None and known.half_pct <= within_pct:
            return times[:count]
    return times


def following(draw: np.random.Generator, samples: int) -> None:
    print(
        "Tables of equal rows, each against the next, with any false *slower* or *faster*: after three rounds; after\n"
        "as many more as the table itself asks for, once; and after asking up to five times, while anything is open\n"
    )
    lines = []
    for rows, tables in ((2, samples // 2), (10, samples // 10)):
        for noise in (0.01, 0.03, 0.1):
            times = np.exp(draw.normal(0, noise, (tables, rows, MOST_ROUNDS))).tolist()
            wrong = np.mean([followed(table, 5) for table in times], axis=0)
            lines.append((rows, pct(noise), *(pct(wrong[asked]) for asked in (0, 1, 5))))
    told(("rows", "noise", "three rounds", "asked once", "asked up to five times"), lines)


def followed(table: Sequence[Sequence[float]], times: int) -> list[bool]:
    """Whether anything false is said after three rounds, and after the advice was followed once, twice, …"""
    rounds, said = 3, []
    while True:
        seen = [dict(enumerate(row[:rounds])) for row in table]
        pairs = [one for a, b in itertools.pairwise(seen) if (one := ratio_by_rounds(b, a))]
        words = [one.word for one in decide(pairs, 0.02)]
        said.append({"slower", "faster"} & set(words) != set())
        opened = [one for one, word in zip(pairs, words, strict=True) if word == "open"]
        wanted = [settling_ratio(one, 0.02, LEVEL / len(pairs)).fewest for one in opened]
        if len(said) > times or not opened or any(one is None or one > MOST_ROUNDS for one in wanted):
            return said + said[-1:] * (times + 1 - len(said))
        rounds = max(rounds + 1, *(one for one in wanted if one))


TABLES = {
    one.__name__: one
    for one in (
        coverage,
        with_outliers,
        gains,
        alike,
        power,
        steps,
        beginnings,
        moderation,
        drift,
        dropping,
        stopping,
        within,
        following,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--samples", type=int, default=10_000)
    options = parser.parse_args()
    for name in options.tables or TABLES:
        TABLES[name](np.random.default_rng(12), options.samples)


if __name__ == "__main__":
    main()
