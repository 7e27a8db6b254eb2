"""Rules on comparisons: like hardware, strong and weak told apart, nothing chosen to flatter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from gpubench.analysis.alike import likeness
from gpubench.analysis.audit.facts import (
    NOTHING,
    AuditedFolder,
    FurtherRounds,
    RuleFinding,
    Shown,
    does,
    first_few,
    of,
    once,
    rule_finding,
)
from gpubench.analysis.doubted import serious
from gpubench.analysis.scaling import devices, unlike_costs
from gpubench.analysis.varied import CANDIDATES, inferred, known, machine, values
from gpubench.basics.words import all_of, many
from gpubench.schema.doubts import rank
from gpubench.schema.row import Row

SCALED = ("gpus", "ranks", "batch_size")
"""Axes along which rows of one workload may be compared."""
HOLES = ("failed", "timeout", "interrupted", "missing")
OF_SOFTWARE = ("torch", "driver", "cuda")
"""Columns of which rows that are compared must agree."""


def like_hardware(facts: AuditedFolder) -> RuleFinding:
    """Rule 4: rows that are compared ran on the same model of GPU (or CPU)."""
    if not facts.ok:
        return NOTHING
    broken = []
    for table in facts.tables:
        names = sorted({name for row in table.ok if (name := machine(row))})
        if len(names) > 1:
            broken.append(f"{table.name} sets {first_few(names)} side by side")
    unknown = [row for row in facts.ok if machine(row) is None]
    unclear = [f"the hardware is not on record for {of(unknown, facts.ok)}"] if unknown else []
    names = sorted({name for row in facts.ok if (name := machine(row))})
    caps = sorted({row.gpu_mem_cap_mib for row in facts.ok if row.gpu_mem_cap_mib})
    stands = (
        f"; a cap of {first_few(f'{cap:,}' for cap in caps)} MiB stands for a smaller card's memory, not for its speed"
        if caps
        else ""
    )
    each = "each table is of one model" if len(names) > 1 else "all rows are of one model"
    return rule_finding(broken, unclear, f"{each} ({first_few(names)}){stands}")


def strong_or_weak(facts: AuditedFolder) -> RuleFinding:
    """Rule 11: where the number of devices varies, rows share their global batch or their batch a device."""
    if not facts.ok:
        return NOTHING
    broken, told = [], []
    for table in facts.tables:
        if len({devices(row) for row in table.own}) < 2:
            continue
        kinds = sorted({one.kind for one in table.comparisons})
        if kinds:
            lone = _uncompared(table)
            rest = f", {many(len(lone), 'row')} neither" if lone else ""
            told.append(f"{table.name}: {' and '.join(kinds)}{rest}")
        else:
            broken.append(
                f"{table.name}: the number of devices varies, but no two rows share their global batch or their batch "
                "a device; --batch-size N --gpus 1,2,4 is strong scaling, --batch-per-gpu N weak"
            )
    if not told:
        groups = any(len({devices(row) for row in table.merged}) > 1 for table in facts.tables)
        kept = f"no table varies the number of devices{', but for jobs of groups' if groups else ''}"
    else:
        kept = f"each efficiency is named strong or weak ({'; '.join(told)})"
    return rule_finding(broken, [], kept)


def nothing_flattered(facts: AuditedFolder) -> RuleFinding:
    """Rule 12: all that was planned is there, with the baselines that a reader would want."""
    if not facts.ok:
        return NOTHING
    counts = Counter(str(row.status) for row in facts.rows)
    unlike, unclear = _unlike_costs(facts)
    broken = [
        *_holes(counts),
        *_lacking(facts.further),
        *_unlike_versions(facts),
        *_unlike_breakdowns(facts),
        *unlike,
    ]
    if models := _dp_alone(facts):
        guessed = all(inferred(row, "strategy") for row in facts.alone if row.strategy == "dp")
        (unclear if guessed else broken).append(
            f"{first_few(models)} on several GPUs ran under dp alone{' (inferred)' if guessed else ''}; "
            "ddp is what it has to beat"
        )
    for table in facts.tables:
        several = [row for row in table.own if devices(row) > 1]
        bare = _without_single(several, facts.alone, table.tied(*SCALED))
        if bare:
            # Only a table that varies the devices claims what several of them bring.
            claims = len({devices(row) for row in table.own}) > 1
            flag = "--ranks" if bare[0].device == "cpu" else "--gpus"
            (broken if claims else unclear).append(
                f"{table.name}: {of(bare, several, 'row on several devices')} {does(bare, 'have')} none of the same "
                f"workload on one device to be set against; add 1 to {flag}"
            )
    unclear += _doubtful(facts)
    if unplanned := [table.name for table in facts.tables if table.name not in facts.planned]:
        unclear.append(f"what was planned is not on record for {first_few(unplanned)}")
    told = [f"{counts['oom']} out of memory"] if counts["oom"] else []
    told += [f"{counts['skipped']} skipped with a reason"] if counts["skipped"] else []
    planned = all_of(len(facts.rows), "planned trial")
    planned += f" of part {first_few(facts.parts)}" if facts.parts else ""
    shown = "is shown" if len(facts.rows) == 1 else "are shown"
    return rule_finding(
        broken,
        unclear,
        f"{planned} {shown}{' (' + ', '.join(told) + ')' if told else ''}, with "
        f"{'its' if len(facts.rows) == 1 else 'their'} baselines and under the same versions",
    )


def _holes(counts: Counter[str]) -> list[str]:
    holes = {status: counts[status] for status in HOLES if counts[status]}
    if not holes:
        return []
    lost = sum(holes.values())
    told = f"{lost} planned trials have" if lost > 1 else "1 planned trial has"
    each = ", ".join(f"{number} {status}" for status, number in holes.items())
    return [
        f"{told} no result ({each}); the same gpubench sweep goes on, "
        "with --retry failed,timeout for those that ended badly"
    ]


def _lacking(further: FurtherRounds) -> list[str]:
    """What further rounds lack of what was planned."""
    lost = further.failed + further.left
    if not lost:
        return []
    how = [f"{further.failed} failed"] * bool(further.failed) + [f"{further.left} left"] * bool(further.left)
    return [
        f"{lost:,} of {many(further.done + lost, 'measurement')} in further rounds {'are' if lost > 1 else 'is'} "
        f"not there ({', '.join(how)}); the same gpubench sweep goes on, "
        "with --retry failed,timeout for those that ended badly"
    ]


def _unlike_versions(facts: AuditedFolder) -> list[str]:
    return [
        f"{table.name} compares rows of {field} {first_few(found)}; --retry stale measures them alike"
        for table in facts.tables
        for field in OF_SOFTWARE
        if len(found := values(table.ok, field)) > 1
    ]


def _unlike_breakdowns(facts: AuditedFolder) -> list[str]:
    """Tables that compare rows that bear the breakdown's cost with rows that don't.

    Where one side has a row for every row of the other side, it can be read without the other.
    """
    found = []
    for table in facts.tables:
        configurations = [
            {_but_breakdown(row) for row in table.own if bool(known(row, "breakdown")) is timed}
            for timed in (True, False)
        ]
        timed, plain = configurations
        if timed - plain and plain - timed:
            bear = [row for row in table.own if known(row, "breakdown")]
            found.append(
                f"{table.name} compares unlike rows: only {of(bear, table.own, 'row')} {does(bear, 'bear')} the cost "
                "of --breakdown; measure all of them with it, or none"
            )
    return found


def _unlike_costs(facts: AuditedFolder) -> tuple[list[str], list[str]]:
    """Tables in which --breakdown cost one side of a comparison more than the other; those in which nobody knows."""
    unlike, unknown = [], []
    for table in facts.tables:
        several = [one for one in table.comparisons if one.row is not one.baseline]
        if found := unlike_costs(several):
            worst, mine, theirs = found[0]
            unlike.append(
                f"{table.name}: {len(found)} of {len(several)} efficiencies hold more of the cost of --breakdown on "
                f"one side, {mine} of every other step ({table.label(worst.row)}) against {theirs} "
                f"({table.label(worst.baseline)}); take them from rows without it"
            )
        timed = [side for one in several for side in (one.row, one.baseline) if known(side, "breakdown")]
        if any(row.breakdown_cost_pct is None for row in timed):
            unknown.append(
                f"{table.name}: what --breakdown cost is not on record for each side of its efficiencies"
            )
    return unlike, unknown


def _but_breakdown(row: Row) -> tuple[object, ...]:
    return machine(row), *(known(row, field) for field in CANDIDATES if field != "breakdown")


def _dp_alone(facts: AuditedFolder) -> list[str]:
    """Models of which some workload ran on several GPUs under DataParallel and nothing else."""
    several = [row for row in facts.alone if devices(row) > 1 and row.device != "cpu"]
    others = {likeness(row, *SCALED) for row in several if row.strategy != "dp"}
    found = [
        str(row.model) for row in several if row.strategy == "dp" and likeness(row, *SCALED) not in others
    ]
    return list(dict.fromkeys(found))


def _doubtful(facts: AuditedFolder) -> list[str]:
    """Doubts about rows that stand beside others, whatever varies between them: the worst, and where."""
    beside = [(table, row) for table in facts.tables if len(table.beside) > 1 for row in table.beside]
    doubts = [(rank(code), code, table, row) for table, row in beside for code in serious(row)]
    if not doubts:
        return []
    doubts.sort(key=lambda doubt: doubt[:2])
    _, code, table, row = doubts[0]
    compared, doubtful = once(row for _, row in beside), once(row for *_, row in doubts)
    others = first_few(other for _, other, *_ in doubts if other != code)
    also = f"; besides {others}" if others else ""
    return [
        f"{of(doubtful, compared, 'compared row')} {does(doubtful, 'carry')} doubts, "
        f"the worst {code} ({table.name}: {table.label(row)}{also}); gpubench table says more"
    ]


def _uncompared(table: Shown) -> list[Row]:
    compared = {id(one.row) for one in table.comparisons}
    return [row for row in table.own if id(row) not in compared]


def _without_single(several: Sequence[Row], rows: Sequence[Row], tied: Collection[str]) -> list[Row]:
    """The rows whose work no row on one device does. `tied`: fields that move with devices or batch size."""
    single = {likeness(row, *SCALED, tied=tied) for row in rows if devices(row) == 1} if several else set()
    return [row for row in several if likeness(row, *SCALED, tied=tied) not in single]
