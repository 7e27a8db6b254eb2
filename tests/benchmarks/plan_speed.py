"""How long a plan of 100,000 trials takes in a fresh process. Run by hand:

    python tests/benchmarks/plan_speed.py [--trials 100000] [--runs 5]

Printed for each run: milliseconds from the experiment to its trials with ids, and those of the whole process.
Target: 3,000 ms for 100,000 trials.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

TARGET_MS = 3000.0

ONE_RUN = """
import time
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources

trials = {trials}
text = "name = 'speed'\\n[fixed]\\nmodel = 'lenet'\\ndata = 'procedural:1000000'\\n"
asked = apply_options(parse_experiment(text, "speed"), ExperimentOptions(fields={{
    "batch_size": f"1:{{trials // 100}}:1", "seed": "1:20:1", "workers": "0,1,2,4,8"}}))
began = time.perf_counter()
plan = expand_experiment(asked, device="cpu", sources=DiskSources())
print(1e3 * (time.perf_counter() - began))
assert len(plan.units) == trials // 100 * 100, len(plan.units)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    times = []
    for number in range(options.runs):
        began = time.perf_counter()
        code = ONE_RUN.format(trials=options.trials)
        run = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
        whole = 1e3 * (time.perf_counter() - began)
        times.append(float(run.stdout))
        print(f"run {number + 1}: {times[-1]:,.0f} ms, whole process {whole:,.0f} ms")
    best = min(times)
    print(f"fastest {best:,.0f} ms for {options.trials:,} trials; target {TARGET_MS:,.0f} ms for 100,000")
    sys.exit(0 if best <= TARGET_MS * options.trials / 100_000 else 1)


if __name__ == "__main__":
    main()
