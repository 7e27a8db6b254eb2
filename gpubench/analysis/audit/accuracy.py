"""Rules on accuracy: does it hold while scaling, is it there, is it of the same run as the speed."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpubench.analysis.alike import way
from gpubench.analysis.audit.facts import (
    ALONE,
    NONE_ALONE,
    NOTHING,
    AuditedFolder,
    RuleFinding,
    Shown,
    details,
    does,
    first_few,
    measured,
    of,
    rule_finding,
)
from gpubench.analysis.certainty.accuracy import (
    MARGIN,
    SEEDS,
    AccuracyDecision,
    SeedPair,
    decide_top1,
)
from gpubench.analysis.certainty.mean_estimate import LEVEL, mean
from gpubench.analysis.scaling import devices
from gpubench.analysis.top1 import seed_pair
from gpubench.basics.rounding import half_up
from gpubench.basics.words import many
from gpubench.schema.row import Row

DIFFERENT_DEVICES = "a larger batch or more devices"


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchStep:
    """A row beside the next smaller one, and the top-1 of the seeds of both; without those unknown."""

    table: Shown
    before: Row
    after: Row
    seeds: SeedPair
    """Of the larger one against the smaller one."""

    @property
    def known(self) -> bool:
        return bool(self.seeds.one and self.seeds.other)

    @property
    def fall(self) -> float:
        """By how many points the mean top-1 falls."""
        return mean(self.seeds.other) - mean(self.seeds.one)

    def told(self) -> str:
        """Both means, as `28.1 % (batch_size=32) to 18.0 % (batch_size=64)`."""
        sides = ((self.seeds.other, self.before), (self.seeds.one, self.after))
        return " to ".join(f"{half_up(mean(top1), 1)} % ({self.table.label(row)})" for top1, row in sides)


def holds_while_scaling(facts: AuditedFolder) -> RuleFinding:
    """Rule 1: a larger batch or more devices cost no top-1, by tests that know how far seeds differ.

    Each row is compared with the next smaller one, by the tests that stand below tables (`certainty.accuracy`). It is
    kept where each falls by less than MARGIN: a test of equivalence towards one side, for more top-1 is no loss; all
    must pass, so it needs no correction. It is broken where the mean top-1 of SEEDS seeds or more differs and is lower
    (corrected by Holm for all rows), but for a fall that was shown to be less than MARGIN.
    """
    steps, aimed, unlearned = _steps(facts)
    if not steps and not aimed:
        return _nothing_scaled(facts)
    compared = len(steps) + aimed
    rows = f"of {compared} rows with {DIFFERENT_DEVICES}"
    blind = [step for step in steps if not step.known]
    few = [step for step in steps if step.known and not step.seeds.testable]
    decided = zip(steps, decide_top1([step.seeds for step in steps]), strict=True)
    loses = [
        (step, decision) for step, decision in decided if decision is not None and decision.loses > LEVEL
    ]
    lost = [(step, decision) for step, decision in loses if decision.word == "lower"]
    unsure = [step for step, decision in loses if decision.word != "lower"]
    broken = [_broken(lost, rows)] if lost else []
    unclear = []
    if steps and len(blind) == len(steps):
        unclear.append("no row that was scaled has a top-1; --epochs measures it")
    elif blind:
        unclear.append(f"{len(blind)} {rows} can't be compared in top-1, which one of the two lacks")
    if unlearned and len(blind) < len(steps):
        unclear.append("some rows have learned no more than chance yet; train more --epochs")
    if few:
        worst = max(few, key=lambda step: step.fall)
        seen = f" (the largest fall seen is from {worst.told()})" if worst.fall > 0 else ""
        unclear.append(
            f"in {len(few)} {rows} top-1 is of fewer than {SEEDS} runs on one side or both, and how far runs differ is "
            f"not known{seen}; --repeats {SEEDS} measures it"
        )
    if unsure:
        unclear.append(
            f"in {len(unsure)} {rows} runs differ too much to tell whether top-1 falls by {MARGIN:g} point; more "
            "--repeats"
        )
    told = []
    if steps:
        told.append(
            f"in {len(steps)} {rows} top-1 falls by less than {MARGIN:g} point against the next smaller one "
            f"(equivalence test of {SEEDS} seeds or more each, {100 * (1 - LEVEL):g} %)"
        )
    if aimed:
        told.append(f"{aimed} {rows} trained until the same top-1 as the next smaller one")
    return rule_finding(broken, unclear, "; ".join(told))


def _broken(lost: Sequence[tuple[BatchStep, AccuracyDecision]], rows: str) -> str:
    worst, decision = max(lost, key=lambda one: one[0].fall)
    least, most = half_up(-decision.high, 1), half_up(-decision.low, 1)
    return (
        f"top-1 falls in {len(lost)} {rows}, most from {worst.told()}, by {half_up(worst.fall, 1)} points (95 % "
        f"interval {least} to {most}): their times are not those of the same training; gpubench sweep --until-top1 N "
        "times training to equal accuracy"
    )


def _steps(facts: AuditedFolder) -> tuple[list[BatchStep], int, bool]:
    """Rows to compare in top-1; how many others aimed at one; whether of some series no row has learned anything."""
    steps: list[BatchStep] = []
    aimed, unlearned = 0, False
    for table in facts.tables:
        for same in table.scaled():
            unlearned |= not _to_a_target(same) and not any(map(_learned, same))
            for row, before in zip(same, next_smaller(same), strict=True):
                if before is None:
                    continue
                if _to_a_target([row, before]):
                    aimed += 1
                    continue
                steps.append(BatchStep(table=table, before=before, after=row, seeds=seed_pair(row, before)))
    return steps, aimed, unlearned


def next_smaller(same: Sequence[Row]) -> list[Row | None]:
    """What each row is compared with: of those that it was scaled from, the one with most devices, then largest batch.

    A row is scaled from one of its own strategy, or `single`, with no more devices and no larger batch, not both the
    same. One baseline that its size alone chooses: the best of several noisy figures would flatter the baseline.
    The work grows with the rows (and, to sort them, a little faster), not with their square.
    """
    before = {shared: _steps_down(same, shared) for shared in dict.fromkeys(map(way, same))}
    return [before[way(row)].get(_size(row)) for row in same]


Size = tuple[int, int]
"""Devices and batch size."""


def _size(row: Row) -> Size:
    return devices(row), row.batch_size or 0


def _steps_down(same: Sequence[Row], shared: tuple[Any, ...]) -> dict[Size, Row]:
    """Each size of a row that shares so, or of `single`, and the row at the next smaller size; without the smallest."""
    at: dict[Size, Row] = {}
    for wanted in (shared, way(Row(fields={"strategy": "single"}))):
        for row in same:
            if way(row) == wanted:
                at.setdefault(_size(row), row)
    below: dict[Size, Row] = {}
    # Of fewer devices, from few to many, those whose smallest batch no later ones undercut: only they can be next.
    fewer: list[tuple[int, list[int]]] = []
    for count, sizes in itertools.groupby(sorted(at), key=operator.itemgetter(0)):
        batches = [batch for _, batch in sizes]
        while fewer and fewer[-1][1][0] > batches[0]:
            fewer.pop()
        if fewer:
            there, theirs = fewer[-1]
            below[count, batches[0]] = at[there, theirs[bisect.bisect(theirs, batches[0]) - 1]]
        for small, large in itertools.pairwise(batches):
            below[count, large] = at[count, small]
        fewer.append((count, batches))
    return below


def _nothing_scaled(facts: AuditedFolder) -> RuleFinding:
    if not facts.alone:
        return NONE_ALONE if facts.ok else NOTHING
    if any(_sizes(table.own) > 1 for table in facts.tables):
        return RuleFinding(
            "not decidable",
            "batch sizes or devices vary, but no two rows differ in them alone; sweep them with all else equal",
        )
    if any(_sizes(table.merged) > 1 for table in facts.tables):
        return RuleFinding("kept", "nothing is scaled: only jobs of groups differ in batch size or devices")
    return RuleFinding(
        "kept", "nothing is scaled: all rows of a table have one batch size and as many devices"
    )


def is_reported(facts: AuditedFolder) -> RuleFinding:
    """Rule 2: every row has a top-1 on held-out images."""
    if not facts.ok:
        return NOTHING
    if not facts.alone:
        return NONE_ALONE
    rates = [row for row in facts.alone if row.kind == "steady rate"]
    without = [row for row in facts.alone if row.top1_pct is None and row.kind != "steady rate"]
    if rates and not without:
        return RuleFinding(
            "not decidable",
            f"{of(rates, facts.alone, ALONE)} {does(rates, 'measure')} a rate, which says nothing of what is learnt; "
            "--epochs judges the network in the end",
        )
    if without:
        why = first_few(row.missing.get("top1_pct") or "no reason was recorded" for row in without)
        return RuleFinding("broken", f"no top-1 in {of(without, facts.alone, ALONE)} ({why})")
    counts = {int(n) for row in facts.alone if (n := details(row).val_images)}
    images = f" on {first_few(f'{n:,}' for n in sorted(counts))} held-out images" if counts else ""
    stopped = (
        "; where training stopped at a top-1, the same images chose the moment, which flatters it a little"
        if any(row.time_to_top1_s is not None for row in facts.alone)
        else ""
    )
    return RuleFinding("kept", f"a top-1 in {of(facts.alone, facts.alone, ALONE)}{images}{stopped}")


def same_run(facts: AuditedFolder) -> RuleFinding:
    """Rule 8: speed and accuracy of a row come from one run with one set of options."""
    timed = [row for row in facts.alone if row.epoch_time_s is not None]
    if not timed:
        if facts.alone:
            return RuleFinding("not decidable", "no row that ran alone has a time")
        return NONE_ALONE if facts.ok else NOTHING
    without = [row for row in timed if row.top1_pct is None]
    untimed = [row for row in facts.alone if row.epoch_time_s is None and row.top1_pct is not None]
    broken = []
    if without and untimed:
        broken.append(
            f"{many(len(without), 'row')} {does(without, 'have')} a time without a top-1 and {len(untimed)} a top-1 "
            "without a time: "
            "speed and accuracy of different options"
        )
    unclear = []
    if without:
        unclear.append(
            f"no top-1 beside the time in {of(without, timed, ALONE)}, and none may be lent from elsewhere; "
            "--epochs measures it in the same run"
        )
    single = [row for row in timed if measured(row) not in facts.of_rounds]
    rounds = [row for row in timed if measured(row) in facts.of_rounds]
    kept = [f"time and top-1 are of one and the same run in {of(single, timed, ALONE)}"] * bool(single)
    if rounds:
        kept.append(
            f"in {of(rounds, timed, ALONE)} top-1 is of the first round, and the time is over the processes of all "
            "rounds, that one's among them, with the same options"
        )
    return rule_finding(broken, unclear, "; ".join(kept))


def _sizes(rows: Sequence[Row]) -> int:
    """How many different pairs of batch size and devices rows have."""
    return len({(row.batch_size, devices(row)) for row in rows})


def _to_a_target(rows: Sequence[Row]) -> bool:
    """Whether all trained until the same top-1, and got there."""
    targets = {row.until_top1 for row in rows}
    return len(targets) == 1 and None not in targets and all(row.time_to_top1_s for row in rows)


def _learned(row: Row) -> bool:
    """Whether top-1 lies above chance; True where that can't be told, which is another rule's business."""
    classes, images = row.num_classes, details(row).val_images
    if row.top1_pct is None or not classes or not images:
        return True
    chance = 1 / classes
    return bool(row.top1_pct > 100 * (chance + 2 * math.sqrt(chance * (1 - chance) / images)))
