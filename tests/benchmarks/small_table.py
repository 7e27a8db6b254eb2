"""CPU time of a small folder's tables, beside that of `import pandas`, which no table goes without.

python tests/benchmarks/small_table.py [FOLDER] [--runs 10]

Both in fresh processes, in alternation: the ratio moves far less than seconds where other work is on the machine.
Target: 4 times.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
from pathlib import Path

from statistics_of_pairs import median_interval

FOLDER = Path(__file__).parents[2] / "results" / "h200-cpus-2026"
PROGRAM = """
import sys
from pathlib import Path
from gpubench.analyze.folder import read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.render import terminal
print(terminal.format_text(make_folder_reports([read_folder(Path(sys.argv[1]), print)])))
"""


def measure_cpu(*arguments: str) -> float:
    """Seconds of CPU time of Python with these arguments."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    measure_cpu("-c", PROGRAM, str(options.folder))  # on a warm disk
    pairs = [
        (measure_cpu("-c", PROGRAM, str(options.folder)), measure_cpu("-c", "import pandas"))
        for _ in range(options.runs)
    ]
    columns = {
        "tables, s": [table for table, _ in pairs],
        "import pandas, s": [pandas for _, pandas in pairs],
        "ratio": [table / pandas for table, pandas in pairs],
    }
    for name, values in columns.items():
        middle, low, high = median_interval(values)
        print(f"{name}: median {middle:.2f} ({low:.2f} … {high:.2f})")


if __name__ == "__main__":
    main()
