"""Which batch size? Of each series the steps in memory x time, and a choice with what it can cost to be wrong.

The chosen row has the least memory among those within 5 % of the best rate of its series (by the estimates). Its bound
holds for any way to choose: only the row that is truly best can break it. Memory x time has no tolerance: it is least
between the rows up to which it falls and from which on it rises.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpubench.analyze.grid import plain
from gpubench.analyze.noise import borrow_noise
from gpubench.analyze.series import DEVICES, Fields, combine
from gpubench.analyze.view import Samples, View
from gpubench.core.claims import Claim, Evidence, Word
from gpubench.core.findings import BatchSizeFinding, Choice, LeastCost, Remedy
from gpubench.stats.choice import choose
from gpubench.stats.decisions import decide
from gpubench.stats.estimates import compare_rounds
from gpubench.stats.power import find_rounds_for_choice

FEWEST_SIZES = 3
"""A series of fewer is not chosen from where another has as many."""
LONGEST_ADVICE_MIN = 60.0
"""What would take longer to settle is not advised."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """Rows that differ in their batch size alone, and in what may fairly move along with it."""

    label: Mapping[str, Any]
    """The fields that tell it from other series of its table."""
    rows: tuple[int, ...]
    """Labels of the summary of what ended ok, by batch size."""
    out_of_memory: tuple[int, ...] = ()
    interrupted: tuple[int, ...] = ()
    noise: Mapping[int, float] = field(default_factory=dict)
    """Row -> the logarithm of the largest ratio that two processes of such rows were seen to differ by."""


class Processes(Protocol):
    """What the processes of each row tell, by the row's label."""

    @property
    def image_s(self) -> Mapping[int, Samples]:
        """Seconds of training an image."""

    @property
    def memory_mib(self) -> Mapping[int, Samples]:
        """GPU memory; a row without it is left out."""


def find_series(view: View) -> list[Series]:
    """The series along the batch size, of what ran alone; none where it does not vary by itself."""
    table = view.table
    is_target = bool(view.summary["until_top1"].notna().any())  # who trains to a target asks for that
    if table.axis != "batch_size" or table.is_of_tries or table.has_only_baselines or is_target:
        return []
    alone = view.alone
    fields = Fields.of(alone)
    series_codes, _ = fields.series("batch_size", table.tied)
    devices = [
        fields.codes[name] for name in DEVICES if name in table.tied
    ]  # more of them are another question
    numbers = combine(len(alone), [series_codes, *devices])
    told = [
        name for name in table.varied if name != "batch_size" and (name in DEVICES or name not in table.tied)
    ]
    noise = {row: math.log1p(part) for row, part in borrow_noise(view.summary).items()}
    series = []
    for number in dict.fromkeys(numbers.tolist()):
        members = alone[numbers == number].sort_values("batch_size", kind="stable")
        ended = members[(members["repeats"] > 0) & members["epoch_time_s"].notna()]
        first = members.iloc[0]
        series.append(
            Series(
                label={name: plain(first[name]) for name in told},
                rows=tuple(map(int, ended.index)),
                out_of_memory=tuple(map(int, members.index[members["status"] == "oom"])),
                interrupted=tuple(map(int, members.index[members["status"] == "interrupted"])),
                noise={int(row): noise[int(row)] for row in ended.index if int(row) in noise},
            )
        )
    return series


def answer(view: View) -> list[BatchSizeFinding]:
    """The finding of a table; none where the batch size does not vary by itself."""
    series = find_series(view)
    claims = decide(make_claims(series, view))
    finding = make_finding(series, view, claims, view.round_minutes)
    return [finding] if finding else []


def make_claims(series: Sequence[Series], processes: Processes) -> list[Claim]:
    """The steps of memory x time along each series, between neighbours that both know their memory."""
    claims = []
    for number, members in enumerate(series):
        for before, after in itertools.pairwise(members.rows):
            if before not in processes.memory_mib or after not in processes.memory_mib:
                continue
            noise = [members.noise[row] for row in (before, after) if row in members.noise]
            evidence = compare_rounds(
                find_cost(processes, after), find_cost(processes, before), noise=max(noise, default=None)
            )
            claims.append(
                Claim(
                    metric="memory_time",
                    candidate=after,
                    baseline=before,
                    evidence=evidence,
                    design="ordered",
                    family="batch_size",
                    series=str(number),
                )
            )
    return claims


def find_cost(processes: Processes, row: int) -> dict[Hashable, float]:
    """Memory x time of an image, process by process: the two are not independent."""
    memory, time = processes.memory_mib[row], processes.image_s[row]
    return {key: memory[key] * time[key] for key in time if key in memory}


def make_finding(
    series: Sequence[Series], processes: Processes, claims: Sequence[Claim], round_minutes: float | None
) -> BatchSizeFinding | None:
    """What the decided claims come to; None where no series has two rows to choose from.

    `round_minutes`: what a further round of the whole sweep takes.
    """
    named = [members for members in series if len(members.rows) > 1]
    if not named:
        return None
    chosen = find_fastest_series(named, processes)
    image_s, memory = processes.image_s, processes.memory_mib
    rates = {row: 1 / find_mean(image_s[row]) for row in chosen.rows}
    sizes = {row: find_mean(memory[row]) if row in memory else None for row in chosen.rows}

    def compare(row: int, other: int) -> Evidence:
        """Of the rate of a row by that of another: of the times the other way round."""
        noise = [chosen.noise[each] for each in (row, other) if each in chosen.noise]
        return compare_rounds(image_s[other], image_s[row], noise=max(noise, default=None))

    choice = choose(rates, sizes, compare)
    pick = choice.row
    others = {row: compare(row, pick) for row in chosen.rows if row != pick}
    fastest = max(rates, key=rates.__getitem__)
    as_fast, slower = sort_by_rate(others, choice)
    pick_size, fastest_size = sizes[pick], sizes[fastest]
    is_several = choice.bound is not None
    return BatchSizeFinding(
        word="sure" if choice.is_firm else "unknown" if is_several else "likely",
        claims=tuple(claims),
        rows=tuple(row for members in named for row in members.rows),
        choice=choice,
        label=chosen.label,
        fastest=fastest if fastest != pick else None,
        speed_gain=rates[fastest] / rates[pick] - 1 if fastest != pick else None,
        memory_ratio=fastest_size / pick_size if fastest != pick and fastest_size and pick_size else None,
        as_fast=as_fast,
        slower=slower,
        out_of_memory=next(iter(chosen.out_of_memory), None),
        interrupted=chosen.interrupted,
        least_cost=tuple(find_least_costs(named, processes, claims)),
        remedy=find_remedy(others, round_minutes) if is_several and not choice.is_firm else None,
    )


def find_fastest_series(series: Sequence[Series], processes: Processes) -> Series:
    """The series with the best rate, among those of at least FEWEST_SIZES where there are such."""
    large = [members for members in series if len(members.rows) >= FEWEST_SIZES] or series
    return min(large, key=lambda members: min(find_mean(processes.image_s[row]) for row in members.rows))


def sort_by_rate(others: Mapping[int, Evidence], choice: Choice) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The other rows of a series: those that may be as fast as the chosen one, and those that are slower.

    Of several processes by the bound of the choice; of one by the noise of such rows.
    """

    def is_slower(row: int) -> bool:
        evidence = others[row]
        if choice.bound is not None:
            return row not in choice.gains
        return evidence.noise is not None and evidence.center < -evidence.noise

    return tuple(row for row in others if not is_slower(row)), tuple(row for row in others if is_slower(row))


def find_least_costs(
    series: Sequence[Series], processes: Processes, claims: Sequence[Claim]
) -> list[LeastCost]:
    """Where memory x time is least, of each series with a step."""
    least = []
    for number, members in enumerate(series):
        steps = [claim for claim in claims if claim.series == str(number)]
        if len(steps) + 1 != len(members.rows) or not steps:
            continue  # a row without memory parts the series
        costs = {row: find_mean(find_cost(processes, row)) for row in members.rows}
        for word in ("sure", "likely"):
            low, high = find_range(members.rows, steps, word)
            if (low, high) != (members.rows[0], members.rows[-1]):
                break
        is_open = (low, high) == (members.rows[0], members.rows[-1])
        verdict: Word = "unknown" if is_open else word
        least.append(
            LeastCost(
                label=members.label,
                row=min(costs, key=costs.__getitem__),
                low=low,
                high=high,
                word=verdict,
            )
        )
    return least


def find_range(rows: Sequence[int], steps: Sequence[Claim], word: str) -> tuple[int, int]:
    """The rows up to which memory x time falls and from which on it rises, by steps that are at least so sure."""
    enough = ("sure",) if word == "sure" else ("sure", "likely")

    def is_shown(step: Claim, direction: str) -> bool:
        return step.decided.word in enough and step.decided.direction == direction

    falling = sum(1 for _ in itertools.takewhile(lambda step: is_shown(step, "less"), steps))
    rising = sum(1 for _ in itertools.takewhile(lambda step: is_shown(step, "more"), reversed(steps)))
    return rows[falling], rows[len(rows) - 1 - rising]


def find_remedy(others: Mapping[int, Evidence], round_minutes: float | None) -> Remedy | None:
    """The rounds that would make a choice firm; None where they take longer than anybody would wait."""
    rounds = find_rounds_for_choice(list(others.values()))
    if rounds is None:
        return None
    present = max(max(evidence.processes) for evidence in others.values())
    minutes = None if round_minutes is None else (rounds - present) * round_minutes
    if rounds <= present or (minutes is not None and minutes > LONGEST_ADVICE_MIN):
        return None
    return Remedy(rounds=rounds, minutes=minutes)


def find_mean(samples: Samples) -> float:
    """The geometric mean, about which intervals of the logarithms lie."""
    return math.exp(math.fsum(map(math.log, samples.values())) / len(samples))
