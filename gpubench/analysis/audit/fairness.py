"""Rules on comparisons: like hardware, strong and weak told apart, nothing chosen to flatter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gpubench.analysis.audit.facts import NOTHING, Facts, Finding, Shown, judge, listed, of
from gpubench.analysis.scaling import devices
from gpubench.analysis.varied import Row, machine, values

HOLES = ("failed", "timeout", "interrupted", "missing")
VERSIONS = ("torch", "driver", "cuda")


def like_hardware(facts: Facts) -> Finding:
    """Rule 4: rows that are compared ran on the same model of GPU (or CPU)."""
    if not facts.ok:
        return NOTHING
    broken = []
    for table in facts.tables:
        names = sorted({machine(row) or "" for row in table.ok} - {""})
        if len(names) > 1:
            broken.append(f"{table.name} sets {listed(names)} side by side")
    unknown = [row for row in facts.ok if machine(row) is None]
    unclear = [f"{of(unknown, facts.ok)} do not say what they ran on"] if unknown else []
    names = list(dict.fromkeys(machine(row) for row in facts.ok))
    capped = sorted({row["gpu_mem_cap_mib"] for row in facts.ok if row.get("gpu_mem_cap_mib")})
    stands = (
        f"; a cap of {listed(capped)} MiB stands for a smaller card's memory, not for its speed"
        if capped
        else ""
    )
    each = "each table is of one model" if len(names) > 1 else "all rows are of one model"
    return judge(broken, unclear, f"{each} ({listed(names)}){stands}")


def strong_or_weak(facts: Facts) -> Finding:
    """Rule 11: where the number of devices varies, rows share their global batch or their batch a device."""
    if not facts.ok:
        return NOTHING
    broken, told = [], []
    for table in facts.tables:
        if len({devices(row) for row in table.merged}) < 2:
            continue
        kinds = sorted({one.kind for one in table.comparisons})
        if kinds:
            lone = _uncompared(table)
            rest = f", {len(lone)} rows neither" if lone else ""
            told.append(f"{table.name}: {' and '.join(kinds)}{rest}")
        else:
            broken.append(
                f"{table.name}: the number of devices varies, but no two rows share their global batch or their batch "
                "a device; --batch-size N --gpus 1,2,4 is strong scaling, --batch-per-gpu N weak"
            )
    if not told:
        kept = "no table varies the number of devices"
    else:
        kept = f"each efficiency is named strong or weak ({'; '.join(told)})"
    return judge(broken, [], kept)


def nothing_flattered(facts: Facts) -> Finding:
    """Rule 12: all that was planned is there, with the baselines that a reader would want."""
    if not facts.ok:
        return NOTHING
    broken, unclear = [], []
    holes = Counter(row["status"] for row in facts.rows if row["status"] in HOLES)
    if holes:
        counts = ", ".join(f"{holes[status]} {status}" for status in HOLES if holes[status])
        broken.append(
            f"{sum(holes.values())} planned trials have no result ({counts}); the same gpubench sweep goes on, "
            "--retry failed,timeout runs those again"
        )
    broken += [
        f"{table.name} compares rows of {field} {listed(found)}; --retry stale measures them alike"
        for table in facts.tables
        for field in VERSIONS
        if len(found := values(table.ok, field)) > 1
    ]
    several = [row for row in facts.alone if devices(row) > 1]
    on_gpus = [row for row in several if row.get("device") != "cpu"]
    for model in dict.fromkeys(row.get("model") for row in on_gpus):
        names = {row.get("strategy") for row in on_gpus if row.get("model") == model}
        if names == {"dp"}:
            broken.append(f"{model} on several GPUs was run under dp alone; ddp is what it has to beat")
    bare = [row for row in several if not _has_single(row, facts.alone)]
    if bare:
        most = max(devices(row) for row in bare)
        text = (
            f"{of(bare, several, 'row')} on several devices have no row on one to be set against; add 1 to "
        )
        flag = "--gpus" if bare[0].get("device") != "cpu" else "--ranks"
        varies = any(len({devices(row) for row in table.merged}) > 1 for table in facts.tables)
        (broken if varies and most > 1 else unclear).append(text + flag)
    bases = {id(one.baseline): one for table in facts.tables for one in table.comparisons}
    doubted = sorted(
        {code for one in bases.values() for code in (one.baseline.get("doubts") or "").split("+")} - {""}
    )
    if doubted:
        unclear.append(
            f"rows that others are set against carry doubts ({listed(doubted)}), which the table spells out"
        )
    unplanned = [table.name for table in facts.tables if table.name not in facts.planned]
    if unplanned:
        unclear.append(f"what was planned is not on record for {listed(unplanned)}")
    skipped = sum(row["status"] == "skipped" for row in facts.rows)
    out = sum(row["status"] == "oom" for row in facts.rows)
    told = [f"{out} out of memory" for _ in range(1) if out] + [
        f"{skipped} skipped after that" for _ in range(1) if skipped
    ]
    return judge(
        broken,
        unclear,
        f"all {len(facts.rows)} planned trials are shown{' (' + ', '.join(told) + ')' if told else ''}, with their "
        "baselines and under the same versions",
    )


def _uncompared(table: Shown) -> list[Row]:
    compared = {id(one.row) for one in table.comparisons}
    return [row for row in table.merged if id(row) not in compared]


def _has_single(row: Row, rows: Sequence[Row]) -> bool:
    return any(
        devices(other) == 1
        and all(other.get(name) == row.get(name) for name in ("model", "variant", "precision"))
        for other in rows
    )
