"""Many tasks on one plan: what a claim costs, how long planning takes, and what deaths cost. Run by hand:

    python tests/benchmarks/joined_tasks.py [--what claims,plan,simulated] [--folder FOLDER] [--units 20000]
        [--processes 4] [--tasks 1000] [--plan-units 100000] [--unit 30] [--deaths 0.05] [--requeue 60]

`claims`: real processes on a real folder (`--folder`: of the file system that is asked about). Each takes a unit, reads
what lies beside its records, stores a record and gives the unit back, as a sweep does, but trains nothing;
so all of the time is the cost of sharing. Prints claims a second, milliseconds of one, names in a directory, and how
often a unit was stored twice (never, or the command fails).

`plan`: how long each task takes to work out a plan of so many units, which of them stay together and which are done.

`simulated`: so many tasks on so many units whose times vary by half (lognormal), each beginning at a place of its own
and going around, as sweeps beside others do. Tasks die at random, so many times an hour each, and come back after
`--requeue` seconds; their unit is taken over by whoever meets it next. Prints how much work is lost, how long the
slowest task takes against the mean, and how many claims a second the file system sees. No file is touched.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from large_results import _real, _record, planned

from gpubench.plan.shards import list_lots
from gpubench.plan.skips import OutOfMemory
from gpubench.plan.state import survey
from gpubench.results.file_names import part_name
from gpubench.results.store import Results
from gpubench.results.whole_file import write_new
from gpubench.store.work_claims import WorkClaims, WorkItem

MACHINE = "NVIDIA H200, 143771 MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", default="claims,plan,simulated")
    parser.add_argument("--folder", type=Path, help="for claims; default: a temporary one")
    parser.add_argument("--units", type=int, default=20_000, help="of claims")
    parser.add_argument("--processes", type=int, default=4, help="of claims")
    parser.add_argument("--tasks", type=int, default=1000, help="simulated")
    parser.add_argument("--plan-units", type=int, default=100_000, help="of plan and simulated")
    parser.add_argument("--unit", type=float, default=30.0, help="mean seconds of a unit, simulated")
    parser.add_argument("--deaths", type=float, default=0.05, help="of each task in an hour, simulated")
    parser.add_argument(
        "--requeue", type=float, default=60.0, help="seconds until a dead task is back, simulated"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        claim(options)
        return
    what = options.what.split(",")
    if "claims" in what:
        claims(options)
    if "plan" in what:
        plan(options.plan_units)
    if "simulated" in what:
        simulated(options)


# ---------------------------------------------------------------- claims


def claims(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        own = [sys.executable, __file__, "--folder", folder, "--units", str(options.units)]
        own += ["--processes", str(options.processes)]
        children = [
            subprocess.Popen(
                [*own, "--one", str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for n in range(options.processes)
        ]
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()  # it has its plan
        began = time.monotonic()
        told = [child.communicate("go\n")[0] for child in children]
        seconds = time.monotonic() - began
        stored = Counter(path.name.rpartition("-")[0] for path in Path(folder).glob("records/*/*.json"))
        names = [len(list(one.iterdir())) for one in Path(folder, "records").iterdir()]
    if any(child.returncode for child in children) or set(stored.values()) != {1}:
        sys.exit(f"units stored twice: {[unit for unit, times in stored.items() if times > 1]}; {told}")
    each = [float(line) for text in told for line in text.split()]
    print(
        f"claims: {len(stored)} units by {options.processes} processes in {seconds:.1f} s: "
        f"{len(stored) / seconds:.0f} a second; one takes {1e3 * statistics.median(each):.1f} ms in the median, "
        f"{1e3 * statistics.quantiles(each, n=100)[98]:.1f} ms at the 99th percentile; at most {max(names)} names in a "
        "directory; none was stored twice"
    )


def claim(options: argparse.Namespace) -> None:
    """One of the processes: goes around from a place of its own."""
    made, real = planned(options.units), _real()
    jobs = {unit.unit_id: unit.jobs[0] for unit in made.units}
    ids = list(jobs)
    cut = int(len(ids) * options.one / options.processes)
    results = Results(options.folder)
    took: list[float] = []
    done: set[str] = set()
    own_claims = WorkClaims(options.folder)
    print("ready", flush=True)
    sys.stdin.readline()
    for unit_id in ids[cut:] + ids[:cut]:
        began = time.monotonic()
        if unit_id in done or own_claims.take(WorkItem(unit_id, 1, MACHINE)) != "mine":
            continue
        done |= {record.trial_id for record in results.newer_records(beside=[unit_id])}
        if unit_id not in done:
            record = options.folder / part_name("records", unit_id, "1", "json")
            write_new(record, _record(real, jobs[unit_id]))
            done.add(unit_id)
            own_claims.note_stored()
        took.append(time.monotonic() - began)
    own_claims.give_back()
    print("\n".join(f"{one:.6f}" for one in took))


# ---------------------------------------------------------------- the plan


def plan(units: int) -> None:
    began = time.monotonic()
    made = planned(units)
    expanded = time.monotonic()
    together = list_lots(made, by_memory=False)
    tied = time.monotonic()
    survey(made, {}, oom=OutOfMemory(), room=None, environment={})
    over = time.monotonic()
    print(
        f"plan: {len(made.units)} units in {expanded - began:.1f} s; {len(together)} that stay together in "
        f"{tied - expanded:.1f} s; which are done in {over - tied:.1f} s"
    )


# ---------------------------------------------------------------- simulated


def simulated(options: argparse.Namespace) -> None:
    run = Run(options, random.Random(1))
    run.go()
    busy = run.done_s + run.lost_s
    print(
        f"simulated: {options.tasks} tasks, {options.plan_units} units of {options.unit:g} s, {options.deaths:g} "
        f"deaths an hour each: over after {run.now / 60:.1f} min; {run.deaths} deaths lost "
        f"{100 * run.lost_s / busy:.2f} % of the work; the slowest task ended "
        f"{run.now / statistics.fmean(run.ended):.3f} times as late as the mean; "
        f"{run.claims / run.now:.1f} claims a second"
    )
    equal = Run(options, random.Random(2), equal=20)
    equal.go()
    print(
        f"simulated: 20 equal units for each task, no deaths: the slowest ended "
        f"{equal.now / statistics.fmean(equal.ended):.3f} times as late as the mean"
    )


class Run:
    """One simulation. `equal`: so many equal units for each task, and nobody dies."""

    def __init__(self, options: argparse.Namespace, chance: random.Random, equal: int = 0) -> None:
        self._chance, self._requeue_s = chance, options.requeue
        self._rate = 0.0 if equal else options.deaths / 3600
        count = equal * options.tasks if equal else options.plan_units
        sigma = 0.0 if equal else 0.472  # of a lognormal whose coefficient of variation is a half
        self._units = [options.unit * chance.lognormvariate(-(sigma**2) / 2, sigma) for _ in range(count)]
        self._next = list(range(count + 1))
        """From each unit on the next one that is free; the last stands for none."""
        self._left: list[int] = []
        """Units of the dead, which whoever comes next takes over."""
        self._places = [int(chance.random() * count) for _ in range(options.tasks)]
        self.ended: list[float] = []
        self.now = self.done_s = self.lost_s = 0.0
        self.deaths = self.claims = 0

    def go(self) -> None:
        # Each starts up to ten seconds late, as jobs do.
        free = [(self._chance.uniform(0, 10), task) for task in range(len(self._places))]
        heapq.heapify(free)
        while free:
            self.now, task = heapq.heappop(free)
            unit = self._take(task)
            if unit is None:
                self.ended.append(self.now)
                continue
            self.claims += 1
            seconds = self._units[unit]
            dies = self._chance.expovariate(self._rate) if self._rate else seconds
            if dies < seconds:
                self.deaths += 1
                self.lost_s += dies
                self._left.append(unit)
                heapq.heappush(free, (self.now + dies + self._requeue_s, task))
            else:
                self.done_s += seconds
                heapq.heappush(free, (self.now + seconds, task))

    def _take(self, task: int) -> int | None:
        if self._left:
            return self._left.pop()
        for start in (self._places[task], 0):
            unit = self._free(start)
            if unit < len(self._units):
                self._next[unit] = unit + 1
                self._places[task] = unit + 1
                return unit
        return None

    def _free(self, unit: int) -> int:
        path = []
        while self._next[unit] != unit:
            path.append(unit)
            unit = self._next[unit]
        for one in path:
            self._next[one] = unit
        return unit


if __name__ == "__main__":
    main()
