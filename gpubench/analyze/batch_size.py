"""Which batch size? Of each series the steps in memory x time, and a choice with what it can cost to be wrong.

The chosen row has the least memory among those within 5 % of the best rate of its series (by the estimates). Its bound
holds for any way to choose: only the row that is truly best can break it. Memory x time has no tolerance: it is least
between the rows up to which it falls and from which on it rises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpubench.analyze.grid import to_python_value
from gpubench.analyze.series import DEVICES, combine_codes
from gpubench.analyze.table_rows import Figures, TableRows, average_log, group_by, make_rounds_remedy
from gpubench.core.claims import Certainty, Claim, Evidence
from gpubench.core.findings import BatchSizeFinding, Choice, LeastCost, Remedy
from gpubench.schema.catalog import LOADS
from gpubench.stats.choice import make_row_choice
from gpubench.stats.power import find_rounds_for_choice

WORK = ("model", "width", "input_size", "num_classes", "data", "machine")
"""What is trained, and where: each such work has a choice of its own, for nobody takes one for the other."""
FEWEST_SIZES = 3
"""A series of fewer is not chosen from where another has as many."""


@dataclass(frozen=True, kw_only=True)
class BatchSeries:
    """Rows that differ in their batch size alone, and in what may fairly move along with it."""

    label: Mapping[str, Any]
    """The fields that tell it from other series of its table."""
    rows: tuple[int, ...]
    """Labels of the summary of what ended ok, by batch size."""
    out_of_memory: tuple[int, ...] = ()
    interrupted: tuple[int, ...] = ()
    number: int = 0
    """Its place among the series of its table."""
    work: int = 0
    """What WORK it is of."""


def find_series(rows: TableRows) -> list[BatchSeries]:
    """The series along the batch size, of what ran alone; none where it does not vary by itself.

    Nor of known loads, of which it is the size of the problem: another size is other work.
    """
    fields = rows.fields
    is_target = bool(rows.is_to_target.any())  # who trains to a target asks for that
    is_shared = bool(rows.is_job.any())  # beside groups, trials alone are what jobs are compared with
    if rows.axis != "batch_size" or rows.is_of_tries or is_target or is_shared:
        return []
    along, _ = fields.encode_series("batch_size", rows.tied)
    devices = [name for name in DEVICES if name in rows.tied]  # more of them are another question
    numbers = combine_codes(len(fields), [along, *(fields.codes[name] for name in devices)])
    works = combine_codes(len(fields), [fields.codes[name] for name in WORK])
    names = [
        name for name in rows.varied if name != "batch_size" and (name in DEVICES or name not in rows.tied)
    ]
    order = np.argsort(rows.summary["batch_size"].to_numpy("float64", na_value=np.inf), kind="stable")
    labels, statuses = rows.summary.index.to_numpy(), rows.summary["status"].to_numpy(dtype=object)
    values = {name: rows.summary[name].tolist() for name in names}
    series = []
    is_load = rows.summary["model"].isin(LOADS).to_numpy()
    for number in np.unique(numbers[~is_load]):
        places = order[numbers[order] == number]
        is_oom, is_interrupted = (statuses[places] == status for status in ("oom", "interrupted"))
        series.append(
            BatchSeries(
                label={name: to_python_value(values[name][places[0]]) for name in names},
                rows=tuple(row for row in labels[places].tolist() if row in rows.rates),
                out_of_memory=tuple(labels[places[is_oom]].tolist()),
                interrupted=tuple(labels[places[is_interrupted]].tolist()),
                number=int(number),
                work=int(works[places[0]]),
            )
        )
    return series


def make_claims(rows: TableRows) -> list[Claim]:
    """The steps of memory x time along each series, between neighbours that both know their memory."""
    costs = collect_memory_time_costs(rows)
    return [
        rows.make_claim(
            "memory_time", costs, after, before, design="ordered",
            family=f"batch_size:{members.work}", series=str(members.number),
        )
        for members in find_series(rows)
        for before, after in itertools.pairwise(members.rows)
        if before in costs and after in costs
    ]  # fmt: skip


def collect_memory_time_costs(rows: TableRows) -> Figures:
    """Memory x time of an image, process by process: the two are not independent."""
    seconds = rows.ended_processes["epoch_time_s"].astype("float64") / rows.images
    return rows.collect(rows.ended_processes["gpu_mem_mib"].astype("float64") * seconds)


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[BatchSizeFinding]:
    """What the decided claims come to: a finding for each WORK of which a series has two rows to choose from."""
    return [
        _make_work_finding(rows, series, [claim for claim in claims if claim.family == f"batch_size:{work}"])
        for work, series in group_by(find_series(rows), lambda members: members.work).items()
        if any(len(members.rows) > 1 for members in series)
    ]


def _make_work_finding(
    rows: TableRows, series: Sequence[BatchSeries], claims: Sequence[Claim]
) -> BatchSizeFinding:
    """The finding of one work."""
    named = [members for members in series if len(members.rows) > 1]
    rates, memory = (
        {row: math.exp(average_log(samples)) for row, samples in figures.items()}
        for figures in (rows.rates, rows.collect(rows.ended_processes["gpu_mem_mib"].astype("float64")))
    )
    chosen = find_fastest_series(named, rates)

    def compare(row: int, other: int) -> Evidence:
        return rows.compare(rows.rates, row, other)

    choice = make_row_choice(
        {row: rates[row] for row in chosen.rows}, {row: memory.get(row) for row in chosen.rows}, compare
    )
    pick = choice.row
    rivals = {row: compare(row, pick) for row in chosen.rows if row != pick}
    fastest = max(chosen.rows, key=rates.__getitem__)
    as_fast, slower = split_rivals_by_speed(rivals, choice)
    is_several = choice.bound is not None
    return BatchSizeFinding(
        # Of one process a row: where none is slower beyond the noise, nothing tells the sizes apart.
        word="sure" if choice.is_firm else "likely" if slower and not is_several else "unknown",
        claims=tuple(claims),
        rows=tuple(row for members in named for row in members.rows),
        choice=choice,
        label=chosen.label,
        fastest=fastest if fastest != pick else None,
        speed_gain=rates[fastest] / rates[pick] - 1 if fastest != pick else None,
        memory_ratio=memory[fastest] / memory[pick]
        if fastest != pick and {fastest, pick} <= memory.keys()
        else None,
        as_fast=as_fast,
        slower=slower,
        out_of_memory=next(iter(chosen.out_of_memory), None),
        interrupted=chosen.interrupted,
        least_cost=tuple(find_least_costs(series, collect_memory_time_costs(rows), claims)),
        remedy=find_choice_remedy(rivals, rows.round_minutes, rows.seeds)
        if is_several and not choice.is_firm
        else None,
    )


def find_fastest_series(series: Sequence[BatchSeries], rates: Mapping[int, float]) -> BatchSeries:
    """The series with the best rate, among those of at least FEWEST_SIZES where there are such."""
    large = [members for members in series if len(members.rows) >= FEWEST_SIZES] or series
    return max(large, key=lambda members: max(rates[row] for row in members.rows))


def split_rivals_by_speed(
    rivals: Mapping[int, Evidence], choice: Choice
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The other rows of a series: those that may be as fast as the chosen one, and those that are slower.

    Of several processes by the bound of the choice; of one by the noise of such rows.
    """

    def is_slower(row: int) -> bool:
        evidence = rivals[row]
        if choice.bound is not None:
            return row not in choice.gains
        return evidence.noise is not None and evidence.center < -evidence.noise

    return tuple(row for row in rivals if not is_slower(row)), tuple(row for row in rivals if is_slower(row))


def find_least_costs(
    series: Sequence[BatchSeries], costs: Figures, claims: Sequence[Claim]
) -> list[LeastCost]:
    """Where memory x time is least, of each series of which every row knows it."""
    least = []
    for members in series:
        steps = [claim for claim in claims if claim.series == str(members.number)]
        if not steps or len(steps) + 1 != len(members.rows):
            continue
        every = (members.rows[0], members.rows[-1])
        ranges: list[tuple[Certainty, tuple[int, int]]] = [
            (word, find_least_cost_range(members.rows, steps, word)) for word in ("sure", "likely")
        ]
        word, (low, high) = next((answer for answer in ranges if answer[1] != every), ("unknown", every))
        least.append(
            LeastCost(
                label=members.label,
                row=min(members.rows, key=lambda row: math.exp(average_log(costs[row]))),
                low=low,
                high=high,
                word=word,
            )
        )
    return least


def find_least_cost_range(rows: Sequence[int], steps: Sequence[Claim], word: Certainty) -> tuple[int, int]:
    """The rows up to which memory x time falls and from which on it rises, by steps that are at least so sure."""
    enough = ("sure",) if word == "sure" else ("sure", "likely")

    def is_shown(step: Claim, direction: str) -> bool:
        return step.decided.word in enough and step.decided.direction == direction

    falling = sum(1 for _ in itertools.takewhile(lambda step: is_shown(step, "less"), steps))
    rising = sum(1 for _ in itertools.takewhile(lambda step: is_shown(step, "more"), reversed(steps)))
    return rows[falling], rows[len(rows) - 1 - rising]


def find_choice_remedy(
    rivals: Mapping[int, Evidence], round_minutes: float | None, repeats: int
) -> Remedy | None:
    """The rounds that would make a choice firm; None where they take longer than anybody would wait."""
    wanted = find_rounds_for_choice(list(rivals.values()))
    if wanted is None:
        return None
    present = max(max(evidence.processes) for evidence in rivals.values())
    return make_rounds_remedy(wanted, present, present, round_minutes, repeats)
