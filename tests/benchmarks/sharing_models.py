"""How well models of sharing foretell the groups that are stored in results/, side by side.

    python tests/benchmarks/sharing_models.py [--log]

For each stored group on H200s: how many times as long as alone its jobs took, and what each model says of it from the
rows of the trials alone. Then each model's mean and worst error over all jobs, and both again by leave-one-group-out:
the one constant that models have, `SLICING`, is fitted to the other groups before a group is foretold. `--log` adds the
group of the published log.

Where one model of two is better by a mean error, the last lines say how sure that is: groups are drawn anew, with
replacement, 10,000 times.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpubench.analysis.prediction import SLICING, Demand, demand, predict
from gpubench.predict.measured import measured_groups, rows_of
from gpubench.results.store import Results
from gpubench.schema.row import Row, TableRow

FOLDERS = ("h200-copies-2026", "h200-pairs-2026", "h200-cpus-2026", "h200x4-groups-2026")
SLICINGS = [number / 200 for number in range(61)]
"""What is tried for `SLICING`."""
DRAWS = 10_000

LOG = (("32@1", 16.2, 0.59, 28.5), ("64@1", 15.4, 0.61, 28.5), ("128@2", 11.3, 0.766, 28.5))
"""The published log's jobs on GPUs of their own: s alone, part of the CPUs, s together."""

Resource = tuple[str, Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job of a stored group."""

    demand: Demand
    """As this version reads the row alone, with what waits for gradients."""
    measured: float
    loaders: int = 0
    rank_busy: float = 0.0

    @property
    def cpu_pace(self) -> float:
        """How fast it runs for each CPU that every one of its busy processes gets; of the model before."""
        whole = (self.demand.cpu_s or 0.0) / self.demand.epoch_time_s
        loading = whole - self.demand.ranks * self.rank_busy
        paces = [self.loaders / loading] if self.loaders and loading > 0 else []
        paces += [1 / self.rank_busy] if self.rank_busy else []
        return min(paces, default=1 / whole if whole else math.inf)

    def parts(self, *, without_wait: bool) -> dict[Resource, float]:
        """Resource -> what part of it the job uses alone."""
        one = self.demand
        gpu_s = (one.gpu_work_s if without_wait else one.gpu_s) or 0.0
        found: dict[Resource, float] = {
            ("cpu", one.cpu_set): (one.cpu_s or 0.0) / one.epoch_time_s / one.cpus
        }
        found |= {("gpu", gpu): gpu_s / one.epoch_time_s for gpu in one.gpus}
        return {resource: min(1.0, part) for resource, part in found.items() if part}


@dataclass(frozen=True, kw_only=True)
class Group:
    name: str
    jobs: tuple[Job, ...]


Model = Callable[[Sequence[Job], float], Sequence[float]]
"""Jobs of a group, and `SLICING` -> how many times as long as alone each takes."""


# ---------------------------------------------------------------- the models


def two_lines(jobs: Sequence[Job], slicing: float, *, without_wait: bool) -> list[float]:
    """Each job takes as many times as long as the fullest of its resources is asked for by all, in sum."""
    parts = [job.parts(without_wait=without_wait) for job in jobs]
    load = {
        r: sum(mine.get(r, 0.0) for mine in parts) / _left(r, parts, slicing) for one in parts for r in one
    }
    return [max([1.0, *(load[resource] for resource in mine)]) for mine in parts]


def by_process(jobs: Sequence[Job], slicing: float, *, without_wait: bool) -> list[float]:
    """The model before: CPUs are divided among processes; every resource again and again, until nothing changes."""
    parts = [job.parts(without_wait=without_wait) for job in jobs]
    weights = [
        {r: part * job.cpu_pace if r[0] == "cpu" else 1.0 for r, part in mine.items()}
        for job, mine in zip(jobs, parts, strict=True)
    ]
    return _settled(parts, weights, slicing)


def equal_parts(jobs: Sequence[Job], slicing: float) -> list[float]:
    """The same, but that every job gets an equal part of the CPUs."""
    parts = [job.parts(without_wait=True) for job in jobs]
    return _settled(parts, [dict.fromkeys(mine, 1.0) for mine in parts], slicing)


def by_need(jobs: Sequence[Job], slicing: float) -> list[float]:
    """The same, but that jobs on full CPUs slow down alike."""
    parts = [job.parts(without_wait=True) for job in jobs]
    weights = [{r: part if r[0] == "cpu" else 1.0 for r, part in mine.items()} for mine in parts]
    return _settled(parts, weights, slicing)


def kept(jobs: Sequence[Job], slicing: float) -> Sequence[float]:
    """The model of this version: as before, but that every resource is divided once."""
    found = predict([job.demand for job in jobs], slicing=slicing)
    assert found is not None
    return found.slowdowns


MODELS: dict[str, Model] = {
    "shipped before": lambda jobs, slicing: by_process(jobs, slicing, without_wait=False),
    "before, without waiting": lambda jobs, slicing: by_process(jobs, slicing, without_wait=True),
    "before, without waiting, CPUs in equal parts": equal_parts,
    "before, without waiting, alike on full CPUs": by_need,
    "kept: the same, divided once": kept,
    "two lines": lambda jobs, slicing: two_lines(jobs, slicing, without_wait=False),
    "two lines, without waiting": lambda jobs, slicing: two_lines(jobs, slicing, without_wait=True),
}
SHOWN = (
    "shipped before",
    "before, without waiting",
    "kept: the same, divided once",
    "two lines, without waiting",
)
"""Those whose figures stand group by group."""


def _left(resource: Resource, parts: Sequence[dict[Resource, float]], slicing: float) -> float:
    turns = resource[0] == "gpu" and sum(resource in mine for mine in parts) > 1
    return 1 - slicing if turns else 1.0


def _settled(
    parts: Sequence[dict[Resource, float]], weights: Sequence[dict[Resource, float]], slicing: float
) -> list[float]:
    users = {r: [i for i, mine in enumerate(parts) if r in mine] for one in parts for r in one}
    paces = [dict.fromkeys(mine, 1.0) for mine in parts]
    for _ in range(1_000):
        moved = 0.0
        for resource, those in users.items():
            wants = []
            for i in those:
                elsewhere = min((p for other, p in paces[i].items() if other != resource), default=1.0)
                wants.append((parts[i][resource] * elsewhere, weights[i][resource]))
            level = _fair_level(wants, _left(resource, parts, slicing))
            for i in those:
                pace = min(1.0, level * weights[i][resource] / parts[i][resource])
                moved = max(moved, abs(pace - paces[i][resource]))
                paces[i][resource] = pace
        if moved < 1e-12:
            break
    return [max(1.0, 1 / min(mine.values(), default=1.0)) for mine in paces]


def _fair_level(wants: Sequence[tuple[float, float]], available: float) -> float:
    """What each may have for each unit of its weight. `wants`: (part of the resource, weight)."""
    left, weight = available, sum(own for _, own in wants)
    if sum(want for want, _ in wants) <= available:
        return math.inf
    for want, own in sorted(wants, key=lambda one: one[0] / one[1]):
        if want * weight >= left * own:
            return left / weight
        left -= want
        weight -= own
    return math.inf


# ---------------------------------------------------------------- what is stored


def stored(results: Path) -> Iterator[Group]:
    """Groups of which all jobs were measured, together and alone, with the rows alone that they were compared with."""
    for folder in FOLDERS:
        rows = rows_of(Results(results / folder).records())
        alone = {(row.trial_id, row.epoch_time_s): row for row in rows if not row.group and row.round == 1}
        for members in measured_groups([rows]):
            if all(row.slowdown for row in members) and len(members) == (
                members[0].together.jobs if members[0].together else 0
            ):
                jobs = [_job(row, alone) for row in sorted(members, key=lambda row: row.job or "")]
                yield Group(name=_name(members), jobs=tuple(jobs))


def _job(row: TableRow, alone: dict[Any, Row]) -> Job:
    """What was measured over all processes, and the row alone that was there before the group first ran."""
    first = row.runs[0]
    solo, where = alone[first.solo_id, first.solo_epoch_time_s], first.placement
    assert where is not None
    assert row.slowdown
    found = demand(
        solo,
        gpus=where.gpu_ids,
        cpus=where.cpus,
        cpu_set=frozenset(where.cpu_ids),
        others=list(alone.values()),
    )
    assert found is not None
    waits = solo.data_wait_pct
    busy = 1 - waits / 100 if waits is not None else 0.0
    return Job(demand=found, measured=row.slowdown, loaders=solo.workers or 0, rank_busy=busy)


def _name(members: Sequence[Row]) -> str:
    variants = {row.variant for row in members}
    group = members[0].group or ""
    if group.endswith("copies"):
        return f"{group}, batch {members[0].batch_size}"
    return f"{group}, {variants.pop()}" if variants != {"synthetic"} else group


def of_the_log() -> Group:
    jobs = [
        Job(
            demand=Demand(
                epoch_time_s=alone, cpu_s=alone * part, gpu_s=0.0, gpus=(number,), cpus=1.0, cpu_set=""
            ),
            measured=together / alone,
        )
        for number, (_, alone, part, together) in enumerate(LOG)
    ]
    return Group(name="the log's three on GPUs of their own", jobs=tuple(jobs))


# ---------------------------------------------------------------- what comes out


def errors(model: Model, group: Group, slicing: float) -> list[float]:
    """Of each job, in per cent; above 0: more slowdown was foretold than came."""
    found = model(group.jobs, slicing)
    return [100 * (said / job.measured - 1) for said, job in zip(found, group.jobs, strict=True)]


def leaving_one_out(model: Model, groups: Sequence[Group]) -> tuple[list[list[float]], set[float]]:
    """The errors on each group, with `SLICING` from the others; and which values that had."""
    of_each = {slicing: [errors(model, group, slicing) for group in groups] for slicing in SLICINGS}
    found, fitted = [], set()
    for place in range(len(groups)):
        best = min(
            SLICINGS,
            key=lambda slicing: mean_error(of_each[slicing][:place] + of_each[slicing][place + 1 :]),
        )
        fitted.add(best)
        found.append(of_each[best][place])
    return found, fitted


def mean_error(of_groups: Sequence[Sequence[float]]) -> float:
    return statistics.fmean(abs(error) for one in of_groups for error in one)


def worst_error(of_groups: Sequence[Sequence[float]]) -> float:
    return max(abs(error) for one in of_groups for error in one)


def interval(more: Sequence[Sequence[float]], less: Sequence[Sequence[float]]) -> tuple[float, float]:
    """95 % interval of how much larger the mean error of the first is."""
    draw = random.Random(0)
    places = range(len(more))
    found = sorted(
        mean_error([more[i] for i in drawn]) - mean_error([less[i] for i in drawn])
        for drawn in (draw.choices(places, k=len(more)) for _ in range(DRAWS))
    )
    return found[round(0.025 * DRAWS)], found[round(0.975 * DRAWS) - 1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", action="store_true", help="with the group of the published log")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[2] / "results")
    options = parser.parse_args()
    groups = [*stored(options.results), *([of_the_log()] if options.log else [])]
    jobs = sum(len(group.jobs) for group in groups)
    say = sys.stdout.write

    def cells(values: Sequence[float], form: str) -> str:
        return " / ".join(format(value, form) for value in values)

    say(f"{len(groups)} groups, {jobs} jobs: times as long as alone, and the error in per cent\n\n")
    say("| group | measured | " + " | ".join(f"{name} | %" for name in SHOWN) + " |\n")
    say("|" + " :--- |" * (2 + 2 * len(SHOWN)) + "\n")
    for group in groups:
        row = [group.name, cells([job.measured for job in group.jobs], ".2f")]
        for name in SHOWN:
            said = MODELS[name](group.jobs, SLICING)
            row += [cells(said, ".2f"), cells(errors(MODELS[name], group, SLICING), "+.0f")]
        say("| " + " | ".join(row) + " |\n")

    left_out: dict[str, list[list[float]]] = {}
    say(
        f"\n| model | mean % | worst % | leaving one out: mean % | worst % | SLICING fitted (shipped: {SLICING}) |\n"
    )
    say("| :--- | ---: | ---: | ---: | ---: | :--- |\n")
    for name, model in MODELS.items():
        all_of_it = [errors(model, group, SLICING) for group in groups]
        left_out[name], fitted = leaving_one_out(model, groups)
        say(
            f"| {name} | {mean_error(all_of_it):.1f} | {worst_error(all_of_it):.1f} | {mean_error(left_out[name]):.1f} "
            f"| {worst_error(left_out[name]):.1f} | {min(fitted):.3f} to {max(fitted):.3f} |\n"
        )

    own = left_out["kept: the same, divided once"]
    say("\nMean error, leaving one out, above that of the kept model, and its 95 % interval over groups:\n")
    for name, other in left_out.items():
        if other is not own:
            low, high = interval(other, own)
            say(f"- {name}: {mean_error(other) - mean_error(own):+.1f} points ({low:+.1f} to {high:+.1f})\n")

    waits = [(group.name, job.demand.wait) for group in groups for job in group.jobs if job.demand.ranks > 1]
    say("\nWaiting for gradients, of the GPUs' busy time alone:\n")
    for group_name, wait in waits:
        how = "measured" if wait and wait.measured else "estimated, at least"
        say(f"- {group_name}: {f'{100 * wait.part:.0f} % ({how})' if wait else 'not known'}\n")


if __name__ == "__main__":
    main()
