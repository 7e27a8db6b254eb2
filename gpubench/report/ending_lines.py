"""How a trial or a group has ended, in one line of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.sharing import verdict_words
from gpubench.basics import words
from gpubench.basics.rounding import half_up
from gpubench.basics.words import LOGGED, WORDS, clean, listed
from gpubench.plan.max_batch import are_tries
from gpubench.report.live_progress import top1_so_far
from gpubench.schema.row import Row
from gpubench.schema.verdict import Verdict


def finished_line(number: int, total: int, label: str, row: Row) -> str:
    """`[3/12] batch_size=64 strategy=ddp  ok  epoch 3.21 s  2,435 MiB`, or how it ended and why."""
    status = str(row.status)
    parts = [f"[{number}/{total}] {label}", WORDS.get(status, status)]
    if status == "ok":
        if row.epoch_time_s is not None and not are_tries(row.experiment or "", [row]):
            parts.append(f"epoch {half_up(row.epoch_time_s, 2)} s")
        parts += [f"{half_up(row.gpu_mem_mib):,} MiB"] if row.gpu_mem_mib is not None else []
        if row.until_top1 is not None and row.top1_pct is not None:
            parts.append(top1_so_far(row.top1_pct, row.until_top1))
    elif status != "oom" and row.reason:
        parts.append(row.reason.strip().splitlines()[0])
    return clean("  ".join(parts))


def group_line(number: int, total: int, label: str, rows: Sequence[Row]) -> str:
    """`[4/6] 3 copies  ok  2.61 s, 2.60 s, 2.62 s (2.01, 2.00 and 2.02 times alone): partly parallel, overlap gain …`.

    Of a group that ended otherwise: how, which job was the first cause, and why.
    """
    cause = first_cause(rows)
    status = str(cause.status)
    parts = [f"[{number}/{total}] {label}", WORDS.get(status, status)]
    if status == "ok":
        parts.append(_times(rows))
    else:
        reason = [line.strip() for line in (cause.reason or "").strip().splitlines()[:1]]
        job = [f"job {cause.job}"] if status != "skipped" and cause.job else []
        parts.append(": ".join([*job, *reason]))
    return clean("  ".join(part for part in parts if part))


def log_of(row: Row) -> str:
    """The file with the output of processes that failed; empty for what ended otherwise."""
    return clean(row.log) if row.status in LOGGED and row.log else ""


def first_cause(rows: Sequence[Row]) -> Row:
    """The first job that ended badly by itself: others are skipped because of it. The first job where all are ok."""
    bad = [row for row in rows if row.status != "ok"]
    return next((row for row in bad if row.status != "skipped"), (bad or rows)[0])


def _times(rows: Sequence[Row]) -> str:
    times = [row.epoch_time_s for row in rows if row.epoch_time_s is not None]
    slowdowns = [row.slowdown for row in rows if row.slowdown is not None]
    gain = rows[0].overlap_gain
    said = ", ".join(f"{half_up(time, 2)} s" for time in times)
    if len(slowdowns) == len(rows):
        said += f" ({listed([words.number(value, 2) for value in slowdowns])} times alone)"
    if gain is not None:
        found: Verdict = rows[0].verdict or Verdict()
        verdict = verdict_words(found, gain) if found.words else "no verdict"
        said += f": {verdict}, overlap gain {words.number(gain, 2)}, from one process each"
    return said
