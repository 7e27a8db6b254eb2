"""What the product says of a results folder, in the words of the net: the only file here that knows the product.

Whoever builds the product anew replaces this file, and nothing else beside it.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpubench.analysis import over_processes, slowdown, top1
from gpubench.analysis.certainty.interval import Interval
from gpubench.analysis.noise import process_interval
from gpubench.report.reading import reading
from gpubench.report.table import Table
from held import CSVS, Claim, Figures, IntervalOf, Verdict

from gpubench.commands.merge import merged
from gpubench.schema.row import Row, TableRow

MARGIN = math.log1p(over_processes.MARGIN)
POINTS = 1.0
"""The margin of top-1."""
METRICS = (
    ("epoch_time", "_s"), ("epoch_time_growth", "_pct"), ("cost_growth", "_pct"), ("speedup", ""),
    ("strong_efficiency", "_pct"), ("weak_efficiency", "_pct"), ("slowdown", ""), ("overlap_gain", ""),
    ("images_per_joule", ""), ("top1_crossing", "_s"),
)  # fmt: skip
"""Columns that have a low and a high end: name and unit."""


def write_csvs(folder: Path) -> dict[str, str]:
    """The folder's CSVs, written anew by `gpubench merge`."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        merged([folder], out=None)
    return {name: (folder / name).read_bytes().decode() for name in CSVS}


def analyze(folder: Path) -> Figures:
    """What the folder's tables claim, and how sure it is."""
    results = reading(folder, lambda _: None)
    figures = Figures()
    for table in results.tables:
        figures.intervals += _intervals(table)
        figures.answers += [f"{table.name}: {sentence}" for sentence in table.answers]
        for claim, verdict in itertools.chain(_decisions(table), _top1(table)):
            figures.claims.append(claim)
            figures.verdicts.append(verdict)
        figures.verdicts += _sharing(table)
    return figures


def _name(row: Row) -> str:
    """The first of the attempts that a row is of: no other row of its table is of that one."""
    runs = [*row.runs, *row.not_ok] if isinstance(row, TableRow) else [row]
    return min(Path(run.log).stem if run.log else run.trial_id for run in runs or [row])


# ---- intervals ----


def _intervals(table: Table) -> Iterator[IntervalOf]:
    """Of every row: its figures with a low and a high end, and of how many processes they are."""
    for row in table.rows:
        counts = _process_counts(row)
        for metric, unit in METRICS:
            value, low, high = (getattr(row, f"{metric}{end}{unit}") for end in ("", "_low", "_high"))
            if low is not None or high is not None:
                processes = counts.get(metric, (row.repeats,))
                yield IntervalOf(table.name, _name(row), f"{metric}{unit}", value, low, high, processes)


def _process_counts(row: TableRow) -> dict[str, Sequence[int]]:
    """Of those intervals that are of more than the row's own processes."""
    intervals = {"epoch_time": process_interval(row)}
    if row.before is not None:
        intervals["epoch_time_growth"] = over_processes.time_ratio(row, row.before)
        intervals["cost_growth"] = over_processes.steady_ratio(row, row.before)
    if row.baseline is not None:
        intervals["slowdown"] = over_processes.slowdown(row, row.baseline)
    return {metric: interval.processes for metric, interval in intervals.items() if interval}


# ---- claims of one table ----


def _decisions(table: Table) -> Iterator[tuple[Claim, Verdict]]:
    """Every comparison over processes with its p-values, and what was decided of it."""
    claims = table.claims
    decided = claims.made
    decisions, holds = iter(decided.ratios), iter(decided.beside)

    def ratio(kind: str, row: Row, against: Row, interval: Interval) -> tuple[Claim, Verdict]:
        decision, log = next(decisions), interval.log
        p = {"equal": log.chance_equal(0.0), "outside": log.chance_outside(-MARGIN, MARGIN)}
        claim = _claim(table, kind, row, against, interval, p)
        adjusted = {"equal": decision.differs, "outside": decision.same}
        return claim, Verdict(claim.key, decision.word, decision.family, adjusted)

    def bound(kind: str, row: Row, against: Row, interval: Interval, p: float) -> tuple[Claim, Verdict]:
        claim = _claim(table, kind, row, against, interval, {"wrong": p})
        return claim, Verdict(claim.key, "holds" if next(holds) else "open", decided.family, {})

    for batches in claims.batches:
        if batches.ladder is None:
            continue
        for move in batches.ladder.moves:
            if not move.hole:
                yield ratio("memory x time", move.after, move.before, move.cost)
        for p in batches.ladder.beside:
            if (leap := batches.ladder.leap) is not None:
                yield bound("memory x time over several", leap.after, leap.before, leap.cost, p)
            else:
                next(holds)
    for row, interval in claims.steps:
        assert row.before is not None
        yield ratio("time along an axis", row, row.before, interval)
    for scaling, interval in claims.speedups:
        yield ratio(f"speed-up, {scaling.kind}", scaling.row, scaling.baseline, interval)
    for way in claims.alternatives:
        yield ratio(f"time, {way.field}", way.row, way.baseline, way.ratio)
    for use in claims.cpu:
        yield ratio(f"CPU time, {use.of.field}", use.of.row, use.of.baseline, use.ratio)
    for series in claims.scaled:
        for scaling, interval, p in zip(series.steps, series.ratios, series.chances, strict=False):
            yield bound(f"efficiency, {scaling.kind}", scaling.row, scaling.baseline, interval, p)
    for group in claims.groups:
        job = group.rows[0]
        yield bound("overlap gain", job, job, group.gain, slowdown.word_chance(group.gain))
    assert next(decisions, None) is None
    assert next(holds, None) is None


def _claim(table: Table, kind: str, row: Row, against: Row, interval: Interval, p: dict[str, float]) -> Claim:
    key = (table.name, kind, _name(row), _name(against))
    return Claim(key, interval.value, interval.low, interval.high, interval.processes, p)


def _sharing(table: Table) -> Iterator[Verdict]:
    """Of each job beside others."""
    for row in table.rows:
        if row.verdict is not None and row.group:
            word = " or ".join(row.verdict.words) or "none"
            yield Verdict((table.name, "sharing", _name(row), ""), word, 0, {}, row.verdict.sure)


def _top1(table: Table) -> Iterator[tuple[Claim, Verdict]]:
    """Accuracies of several seeds."""
    for pair in top1.comparisons(table.rows, table.axes, table.varied):
        decision, seeds = pair.decision, top1.seed_pair(pair.row, pair.against)
        estimate = seeds.estimate
        p = {"equal": estimate.chance_equal(0.0), "outside": estimate.chance_outside(-POINTS, POINTS)}
        key = (table.name, "top-1", _name(pair.row), _name(pair.against))
        counts = (len(seeds.one), len(seeds.other))
        adjusted = {"equal": decision.differs, "outside": decision.equal}
        yield (
            Claim(key, decision.difference, decision.low, decision.high, counts, p),
            Verdict(key, decision.word, 0, adjusted),
        )
