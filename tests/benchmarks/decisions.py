"""What decisions promise, of 1,000 simulated tables a cell: power, false answers, intervals, the bound of a choice.

`PYTHONPATH=tests python tests/benchmarks/decisions.py [TABLES]`; tests/stats/test_simulations.py judges 200 a cell.
Noise is the standard deviation of a process's logarithm; unequal noises alternate along the rows.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np
from simulated_claims import (
    HUMP,
    LADDER,
    NOISES,
    claim_difference,
    claim_others,
    claim_steps,
    foretell_rounds,
    rate_border,
    rate_choices,
    rate_others,
    rate_steps,
    rate_verdicts,
    simulate_tables,
)

from gpubench.core.claims import Claim, Design, StudentEstimate
from gpubench.stats.decisions import count_looks, decide_claims
from gpubench.stats.estimates import ALPHA, compute_interval_half_width, estimate_weighted_sum, mean

EFFECTS = (0.05, 0.10, 0.20, 0.40)
RATIOS = ((1, 1), (1, 3), (1, 10), (30, 1), (1, 30))
DESIGNS: tuple[Design, ...] = ("above", "below", "equal")
TRUTHS = {"all equal": (0, 0, 0, 0, 0), "plateau": (0, -1, -1, -1, 0), "flat end": (0, -1, -2, -2, -2)}


def print_power(tables: int) -> None:
    """Steps that are rightly sure, in per cent, by effect."""
    print("rows    noise  rounds  " + "".join(f"{effect:>6.0%}" for effect in EFFECTS))
    for name, shape in (("hump", HUMP), ("ladder", LADDER)):
        for noise, rounds in ((0.02, 3), (0.05, 3), (0.05, 5)):
            shares = [
                rate_steps(1, tables, [place * math.log1p(e) for place in shape], noise, rounds).sure
                for e in EFFECTS
            ]
            print(
                f"{name:6}  {noise:>5.0%}  {rounds:>6}  " + "".join(f"{100 * share:6.0f}" for share in shares)
            )


def print_honesty(tables: int) -> None:
    """The worst of all truths, in per cent of questions or claims."""
    for name, rate in (("steps", rate_steps), ("unordered", rate_others)):
        print(f"\n{name:10} rounds  noises  false questions  called without effect  covered (least, most)")
        for (noise, draw), rounds, ratio in itertools.product(NOISES.items(), (2, 3, 5), RATIOS):
            deviations = [0.01 * ratio[row % 2] for row in range(5)]
            rates = [rate(2, tables, truths, deviations, rounds, draw) for truths in TRUTHS.values()]
            worst, called = max(cell.false for cell in rates), max(cell.called for cell in rates)
            covered = [cell.covered for cell in rates]
            print(
                f"{noise:17} {rounds}  {ratio[0]:>2}:{ratio[1]:<2}  {100 * worst:15.1f}  {100 * called:21.1f}"
                f"  {100 * min(covered):13.1f} {100 * max(covered):5.1f}"
            )


def print_choices(tables: int) -> None:
    """Tables in which the bound holds, in per cent."""
    print("\nchoice: bound holds / is firm")
    for (noise, draw), rounds, ratio in itertools.product(NOISES.items(), (3, 5), RATIOS):
        deviations = [0.02 * ratio[row % 2] for row in range(5)]
        holds, firm = rate_choices(3, tables, (0, 0.1, 0.2, 0.18, 0.1), deviations, rounds, draw)
        print(f"{noise:17} {rounds}  {ratio[0]:>2}:{ratio[1]:<2}  {100 * holds:6.1f}  {100 * firm:6.1f}")


def print_borders(tables: int) -> None:
    """One claim whose truth lies at its border: how often it is called sure, in per cent."""
    print("\nat the border   rounds  noises   above  below  equal")
    for rounds, ratio in itertools.product((3, 5), RATIOS):
        shares = [
            rate_border(4, tables, design, [0.01 * side for side in ratio], rounds) for design in DESIGNS
        ]
        text = "".join(f"{100 * share:7.1f}" for share in shares)
        print(f"{'':16}{rounds:>6}  {ratio[0]:>2}:{ratio[1]:<2}  {text}")


def print_foretold(tables: int) -> None:
    """How often a sweep of as many rounds as were foretold from the truth decides one claim; 80 % is promised."""
    print("\nforetold: design, noise, effect: rounds, sure")
    for design, noise, effect in itertools.product(("ordered", "paired"), (0.02, 0.05), (0.03, 0.05, 0.10)):
        rounds = foretell_rounds(design, noise, effect)
        if rounds is None:
            continue
        simulated = simulate_tables(5, tables, (0, effect), noise, rounds)
        claims = [[claim_difference(table[1], table[0], design)] for table in simulated]
        print(
            f"{design:8} {noise:.0%} {effect:.0%} {rounds:4} {100 * rate_verdicts(claims, [effect]).sure:6.1f}"
        )


def print_looks(tables: int) -> None:
    """Tables of ten equal rows with anything falsely sure, in per cent: judged once, and looked at after each round."""
    print("\nlooks: claims, rounds, judged once, by looks alone, by either")
    for (name, make_claims), rounds in itertools.product(
        {"ordered": claim_steps, "paired": claim_others}.items(), (10, 20)
    ):
        once = looked = either = 0
        for table in simulate_tables(6, tables, [0.0] * 10, 0.02, rounds):
            seen = [
                decide_claims(claims, [count_looks(claim) for claim in claims])
                for last in range(3, rounds + 1)
                if (claims := make_claims([{key: row[key] for key in range(last)} for row in table]))
            ]
            is_false = is_any_sure(decide_claims(make_claims(table)))
            is_seen = any(map(is_any_sure, seen))
            once, looked, either = once + is_false, looked + is_seen, either + (is_false or is_seen)
        print(f"{name:8} {rounds:3}" + "".join(f"{100 * n / tables:7.1f}" for n in (once, looked, either)))


def is_any_sure(claims: Sequence[Claim]) -> bool:
    return any(claim.decided.word == "sure" for claim in claims)


def print_within(times: int) -> None:
    """Rounds until half the interval is 2 %: processes in the mean, and how often the interval then holds the truth."""
    print("\nwithin 2 %: noise, processes, the interval holds the truth")
    for noise in (0.005, 0.01, 0.015, 0.02, 0.03, 0.05):
        draws = np.random.default_rng(7).normal(size=(times, 100)) * noise
        stopped = [stop_within(row, 0.02) for row in draws.tolist()]
        holds = [
            abs(estimate.center) <= compute_interval_half_width(estimate, ALPHA / 2) for estimate in stopped
        ]
        mean_count = sum(estimate.degrees + 1 for estimate in stopped) / times
        print(f"{noise:.1%} {mean_count:6.1f} {100 * sum(holds) / times:6.1f}")


def stop_within(logarithms: Sequence[float], aim: float) -> StudentEstimate:
    """The estimate of the first three or more processes whose interval is narrow enough, or of all."""
    for count in range(3, len(logarithms) + 1):
        sample = logarithms[:count]
        estimate = estimate_weighted_sum(mean(sample), [(sample, 1.0)])
        if math.sinh(compute_interval_half_width(estimate, ALPHA / 2)) <= aim:
            break
    return estimate


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for show in (
        print_power, print_honesty, print_choices, print_borders, print_foretold, print_looks, print_within
    ):  # fmt: skip
        show(count)
