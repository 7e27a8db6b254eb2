"""What the reports of `gpubench table --json` promise, of 1,000 simulated tables of five batch sizes a cell:

    PYTHONPATH=tests python tests/benchmarks/promises.py [TABLES]

Whole reports, from rows to data, about a sixth of a second each; decisions.py judges more cells by the function that
decides. Noise is the standard deviation of a process's logarithm. Printed in per cent: of the steps those that are
rightly sure, of the tables those with a step that is falsely sure, of the steps without an effect those that are called
likely, of the steps those whose interval holds the truth, of the tables those in which the bound of the choice holds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from simulated_claims import HUMP, NOISES, Draw, draw_normal
from simulated_reports import answer_batch_size, rate_reports

POWER = (
    (0.02, 3, (0.05, 0.10, 0.20)),
    (0.05, 3, (0.05, 0.10, 0.20, 0.40)),
    (0.05, 5, (0.05, 0.10, 0.20)),
)
RATIOS = ((1, 1), (30, 1))


def main(tables: int) -> None:
    print(f"{'':34}  right  false  likely  covered  bound holds")
    for noise, rounds, effects in POWER:
        for effect in effects:
            truths = [math.log(1 + place * effect) for place in HUMP]
            print_cell(f"hump {effect:.0%}, noise {noise:.0%}", tables, truths, noise, rounds)
    for (name, draw), ratio in ((noise, ratio) for noise in NOISES.items() for ratio in RATIOS):
        deviations = [0.01 * ratio[row % 2] for row in range(5)]
        print_cell(f"all equal, {name}, {ratio[0]}:{ratio[1]}", tables, [0.0] * 5, deviations, 3, draw)


def print_cell(
    name: str,
    tables: int,
    truths: Sequence[float],
    deviations: float | Sequence[float],
    rounds: int,
    draw: Draw = draw_normal,
) -> None:
    rates = rate_reports(answer_batch_size(1, tables, truths, deviations, rounds, draw), truths)
    shares = (rates.sure, rates.false, rates.likely, rates.covered, rates.bounded)
    columns = "".join(f"{100 * share:8.1f}" for share in shares)
    print(f"{name + f', {rounds} rounds':36}{columns}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
