"""Rules on accuracy: does it hold while scaling, is it there, is it of the same run as the speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gpubench.analysis.audit.facts import (
    ALONE,
    NONE_ALONE,
    NOTHING,
    Facts,
    Finding,
    Shown,
    details,
    judge,
    listed,
    of,
)
from gpubench.analysis.scaling import devices
from gpubench.analysis.varied import Row
from gpubench.rounding import half_up

MARGIN = 1.0
"""Points of top-1 that a row may lose against a smaller batch or fewer devices."""
SEEDS = 3
"""Repeats from which two top-1 may be called equal."""


def holds_while_scaling(facts: Facts) -> Finding:
    """Rule 1: a larger batch or more devices cost no top-1."""
    compared = aimed = lost = unsure = blind = few = 0
    worst: tuple[float, str] = (0.0, "")
    unlearned = False
    for table in facts.tables:
        for same in table.scaled():
            unlearned |= not _to_a_target(same) and not any(map(_learned, same))
            for row in same:
                before = [other for other in same if _smaller(other, row)]
                if not before:
                    continue
                compared += 1
                if _to_a_target([row, *before]):
                    aimed += 1
                    continue
                known = [other for other in before if other.get("top1_pct") is not None]
                if row.get("top1_pct") is None or not known:
                    blind += 1
                    continue
                best = max(known, key=lambda other: float(other["top1_pct"]))
                fall = best["top1_pct"] - row["top1_pct"]
                if fall > max(MARGIN, _noise(best, row)):
                    lost += 1
                    worst = max(worst, (fall, _fall(table, best, row)))
                elif fall > MARGIN:
                    unsure += 1
                elif min(best["repeats"], row["repeats"]) < SEEDS:
                    few += 1
    if not compared:
        if not facts.alone:
            return NONE_ALONE if facts.ok else NOTHING
        if any(_sizes(table.own) > 1 for table in facts.tables):
            return Finding(
                "not decidable",
                "batch sizes or devices vary, but no two rows differ in them alone; sweep them with all else equal",
            )
        if any(_sizes(table.merged) > 1 for table in facts.tables):
            return Finding("kept", "nothing is scaled: only jobs of groups differ in batch size or devices")
        return Finding(
            "kept", "nothing is scaled: all rows of a table have one batch size and as many devices"
        )
    broken = []
    if lost:
        broken.append(
            f"top-1 falls by more than {MARGIN:g} point in {lost} of {compared} rows with a larger batch or more "
            f"devices, most from {worst[1]}: their times are not those of the same training; "
            "gpubench sweep --until-top1 N times training to equal accuracy"
        )
    unclear = []
    if blind == compared:
        unclear.append("no row that was scaled has a top-1; any variant that reads images measures it")
    elif blind:
        unclear.append(f"{blind} of {compared} rows that were scaled can't be compared in top-1")
    if unlearned and blind < compared:
        unclear.append("some rows have learned no more than chance yet; train more --epochs")
    if unsure:
        unclear.append(
            f"in {unsure} of {compared} rows top-1 falls by more than {MARGIN:g} point, but so few validation "
            "images can't tell it from chance"
        )
    if few and not unlearned:
        unclear.append(
            f"no fall above {MARGIN:g} point in {few} of {compared} rows, but equal top-1 takes {SEEDS} seeds: "
            f"--repeats {SEEDS}"
        )
    scaled = f"of {compared} rows with a larger batch or more devices"
    told = [f"in {compared - aimed} {scaled} top-1 is within {MARGIN:g} point"] if compared > aimed else []
    told += [f"{aimed} {scaled} trained until the same top-1 as those before them"] if aimed else []
    return judge(broken, unclear, "; ".join(told))


def is_reported(facts: Facts) -> Finding:
    """Rule 2: every row has a top-1 on held-out images."""
    if not facts.ok:
        return NOTHING
    if not facts.alone:
        return NONE_ALONE
    without = [row for row in facts.alone if row.get("top1_pct") is None]
    if without:
        why = listed(
            (row.get("missing") or {}).get("top1_pct") or "no reason was recorded" for row in without
        )
        return Finding("broken", f"no top-1 in {of(without, facts.alone, ALONE)} ({why})")
    counts = {int(n) for row in facts.alone if (n := details(row).get("val_images"))}
    images = f" on {listed(f'{n:,}' for n in sorted(counts))} held-out images" if counts else ""
    stopped = (
        "; where training stopped at a top-1, the same images chose the moment, which flatters it a little"
        if any(row.get("time_to_top1_s") is not None for row in facts.alone)
        else ""
    )
    return Finding("kept", f"a top-1 in {of(facts.alone, facts.alone, ALONE)}{images}{stopped}")


def same_run(facts: Facts) -> Finding:
    """Rule 8: speed and accuracy of a row come from one run with one set of options."""
    timed = [row for row in facts.alone if row.get("epoch_time_s") is not None]
    if not timed:
        if facts.alone:
            return Finding("not decidable", "no row that ran alone has a time")
        return NONE_ALONE if facts.ok else NOTHING
    without = [row for row in timed if row.get("top1_pct") is None]
    untimed = [
        row for row in facts.alone if row.get("epoch_time_s") is None and row.get("top1_pct") is not None
    ]
    broken = []
    if without and untimed:
        broken.append(
            f"{len(without)} rows have a time without a top-1 and {len(untimed)} a top-1 without a time: "
            "speed and accuracy of different options"
        )
    unclear = []
    if without:
        unclear.append(
            f"no top-1 beside the time in {of(without, timed, ALONE)}, and none may be lent from elsewhere; "
            "variants that read images measure it in the same run"
        )
    return judge(broken, unclear, f"time and top-1 are of one and the same run in {of(timed, timed, ALONE)}")


def _sizes(rows: Sequence[Row]) -> int:
    """How many different pairs of batch size and devices rows have."""
    return len({(row.get("batch_size"), devices(row)) for row in rows})


def _smaller(other: Row, row: Row) -> bool:
    """Whether `other` is what `row` was scaled from: no more devices, no larger batch, not both the same."""
    here, there = (row["batch_size"], devices(row)), (other["batch_size"], devices(other))
    return other.get("strategy") in (row.get("strategy"), "single") and bool(
        there != here and there[0] <= here[0] and there[1] <= here[1]
    )


def _to_a_target(rows: list[dict[str, Any]]) -> bool:
    """Whether all trained until the same top-1, and got there."""
    targets = {row.get("until_top1") for row in rows}
    return len(targets) == 1 and None not in targets and all(row.get("time_to_top1_s") for row in rows)


def _noise(*rows: Row) -> float:
    """Two standard errors of the difference of two top-1, in points, from the number of validation images."""
    total = 0.0
    for row in rows:
        share = row["top1_pct"] / 100
        total += share * (1 - share) / max(1, details(row).get("val_images") or 1)
    return 200 * math.sqrt(total)


def _learned(row: Row) -> bool:
    """Whether top-1 lies above chance; True where that can't be told, which is another rule's business."""
    classes, images = row.get("num_classes"), details(row).get("val_images")
    if row.get("top1_pct") is None or not classes or not images:
        return True
    chance = 1 / classes
    return bool(row["top1_pct"] > 100 * (chance + 2 * math.sqrt(chance * (1 - chance) / images)))


def _fall(table: Shown, best: Row, row: Row) -> str:
    old, new = half_up(best["top1_pct"], 1), half_up(row["top1_pct"], 1)
    return f"{old} % ({table.label(best)}) to {new} % ({table.label(row)})"
