"""What a sweep says of a trial that runs, of one that has ended, and of a round, in lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from gpubench.basics.rounding import round_half_up
from gpubench.basics.words import LOGGED, WORDS, clean_line, format_list
from gpubench.core.prediction import classify_overlap
from gpubench.core.report import Report
from gpubench.plan.max_batch import is_try_experiment
from gpubench.plan.outlook import TimeLeft, format_round_number
from gpubench.plan.rounds import RoundLimits
from gpubench.render.prediction import OVERLAPS
from gpubench.render.words import (
    format_number,
    format_significant,
    format_widest_interval,
    list_sentences,
    name_leader,
)
from gpubench.schema.catalog import RATE_UNITS
from gpubench.schema.codes import REASONS
from gpubench.schema.columns import BY_NAME
from gpubench.schema.row import Row

BAR = 40
"""Cells of a bar, at most; SHORTEST_BAR at least, or none is drawn; each of several has more than SHORTEST_PART."""
SHORTEST_BAR = 8
SHORTEST_PART = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveProgress:
    """What is going on now. None: not known (yet)."""

    done: int
    """Trials finished, skipped or reused so far; the running one is number `done + 1`."""
    total: int
    trial_label: str
    trial_id: str = ""
    """Of the running unit's first job."""
    epoch: int | None = None
    """From 1, warm-up included."""
    epochs: int | None = None
    step: int | None = None
    """Steps finished in this epoch."""
    steps: int | None = None
    top1_pct: float | None = None
    """What the last evaluation gave, where training goes on until an accuracy is reached."""
    top1_target: float | None = None
    """The accuracy asked for, in per cent."""
    gpu_mem_mib: float | None = None
    gpu_util_pct: float | None = None
    cpu_util_pct: float | None = None
    elapsed_s: float = 0.0
    """Since the sweep began."""
    left: TimeLeft | None = None
    """Until it ends, estimated."""
    is_late: bool = False
    """Whether the running trial takes longer than planned."""
    note: str = ""
    """What else there is to say: "warm-up", "evaluating", "waiting for the other jobs"."""

    @property
    def part(self) -> float:
        """How far the running trial is in its steps, from 0 to 1."""
        return self.step / self.steps if self.steps and self.step is not None else 0.0


def render_progress(progress: LiveProgress, width: int) -> Text:
    """What is told of the trial under way: three lines. `width`: of the terminal, for the bar."""
    lines = [
        Text(f"[{progress.done + 1}/{progress.total}] {clean_line(progress.trial_label)}", "bold"),
        _draw_step_bar(progress, width),
        Text(_format_usage_and_time(progress), "dim"),
    ]
    return Text("\n").join(lines)


def _draw_step_bar(progress: LiveProgress, width: int) -> Text:
    step, steps = progress.step, progress.steps
    total = f"/{progress.epochs}" if progress.epochs else ""
    before = "  " if progress.epoch is None else f"  epoch {progress.epoch}{total}  "
    parts = [
        f"step {step}/{steps}" if steps and step is not None else "",
        "" if progress.top1_pct is None else format_top1(progress.top1_pct, progress.top1_target),
        clean_line(progress.note),
    ]
    after = "".join(f"  {part}" for part in parts if part)
    room = min(BAR, width - len(before) - len(after))
    if not steps or step is None or room < SHORTEST_BAR:
        return Text(f"{before.rstrip()}{after}")
    full = min(room, room * step // steps)
    return Text.assemble(before, ("━" * full, "green"), ("─" * (room - full), "dim"), after)


def _format_usage_and_time(progress: LiveProgress) -> str:
    left = [str(progress.left)] if progress.left and (progress.left.seconds or not progress.is_late) else []
    late = ["longer than planned"] if progress.left and progress.is_late else []
    parts = [
        f"GPU {progress.gpu_mem_mib:,.0f} MiB" if progress.gpu_mem_mib is not None else "",
        f"GPU {progress.gpu_util_pct:.0f} %" if progress.gpu_util_pct is not None else "",
        f"CPU {progress.cpu_util_pct:.0f} %" if progress.cpu_util_pct is not None else "",
        ", ".join(late + left),
        f"{format_clock(progress.elapsed_s)} elapsed",
    ]
    return "  " + "  ".join(part for part in parts if part)


def draw_round_bars(number: int, rounds: RoundLimits, done: int, total: int, width: int) -> Text:
    """`round 2 of 5  ━━━━━━ ━━──── ────── ────── ──────  2 of 6 done`. `width`: of the terminal.

    A bar for each round; one bar, of this round, where nobody knows how many they will be, or they are too many.
    """
    before, after = f"{format_round_number(number, rounds)}  ", f"  {done} of {total} done"
    room = min(BAR, width - len(before) - len(after))
    if room < SHORTEST_BAR or not total:
        return Text(f"{before.rstrip()}{after}")
    count = rounds.most if room // rounds.most > SHORTEST_PART else 1
    cells = (room + 1) // count - 1
    full = [cells if place < number else 0 for place in range(1, count + 1)]
    full[number - 1 if count > 1 else 0] = cells * done // total
    parts = [
        part
        for done_cells in full
        for part in (("━" * done_cells, "green"), ("─" * (cells - done_cells), "dim"), " ")
    ]
    return Text.assemble(before, *parts[:-1], after)


def format_top1(top1_pct: float, target: float | None) -> str:
    """`top-1 61.2 of 70 %`. `target`: the accuracy asked for, if one is."""
    aim = f" of {target:g}" if target is not None else ""
    return f"top-1 {round_half_up(top1_pct, 1)}{aim} %"


def format_clock(seconds: float) -> str:
    """`0:07`, `4:30`, `1:04:30`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


# ---- what has ended ----


def describe_unit_end(number: int, total: int, label: str, rows: Sequence[Row]) -> str:
    """`[3/12] batch_size=64 strategy=ddp  ok  epoch 3.21 s  2,435 MiB`, or how it ended and why.

    Of a group: `[4/6] 2 copies  ok  2.61 s, 2.60 s (2.01 and 2.00 times alone): some overlap (gain 0.25)`, or how it
    ended, which job was the first cause, and why.
    """
    row, is_group = find_failed_row(rows), len(rows) > 1
    status = str(row.status)
    if status == "ok":
        parts = [_format_job_times(rows)] if is_group else _list_trial_figures(row)
    else:
        job = f"job {row.job}" if is_group and status != "skipped" and row.job else ""
        # What the allocator has to say of a trial tells a reader nothing more.
        reason = "" if status == "oom" and not is_group else (row.reason or "").strip()
        parts = [": ".join(filter(None, [job, *reason.splitlines()[:1]]))]
    return clean_line(
        "  ".join(filter(None, [f"[{number}/{total}] {label}", WORDS.get(status, status), *parts]))
    )


def _list_trial_figures(row: Row) -> list[str]:
    parts = []
    if row.epoch_time_s is not None and not is_try_experiment(row.experiment or "", [row.steps]):
        what = "run" if row.kind == "whole run" else "epoch"
        parts.append(_format_load_rate(row) or f"{what} {round_half_up(row.epoch_time_s, 2)} s")
    if row.gpu_mem_mib is not None:
        parts.append(f"{round_half_up(row.gpu_mem_mib, 0):,} MiB")
    if row.until_top1 is not None and row.top1_pct is not None:
        parts.append(format_top1(row.top1_pct, row.until_top1))
    return parts + _list_meter_figures(row)


def _list_meter_figures(row: Row) -> list[str]:
    """`meter 243 W` of each meter that was asked for, or why it has no figure."""
    parts = []
    for column in ("rapl_power_w", "meter_power_w"):
        meter, _, unit = BY_NAME[column].heading.rpartition(" ")
        if (power := getattr(row, column)) is not None:
            parts.append(f"{meter} {format_significant(power)} {unit}")
        elif (reason := row.missing.get(column, REASONS["no-meter"])) != REASONS["no-meter"]:
            parts.append(f"{meter}: no figure: {reason}")
    return parts


def _format_load_rate(row: Row) -> str:
    """`12.3 TFLOP/s` of a known load; empty for all else."""
    rates = [(rate, BY_NAME[name].unit) for name in RATE_UNITS if (rate := getattr(row, name)) is not None]
    return ", ".join(f"{format_significant(rate)} {unit}" for rate, unit in rates)


def find_failure_log(row: Row) -> str:
    """The file with the output of processes that failed; empty for what ended otherwise."""
    return clean_line(row.log) if row.status in LOGGED and row.log else ""


def find_failed_row(rows: Sequence[Row]) -> Row:
    """The first job that ended badly by itself: others are skipped because of it. The first job where all are ok."""
    bad = [row for row in rows if row.status != "ok"]
    return next((row for row in bad if row.status != "skipped"), (bad or rows)[0])


def _format_job_times(rows: Sequence[Row]) -> str:
    times = [row.epoch_time_s for row in rows if row.epoch_time_s is not None]
    slowdowns = [row.slowdown for row in rows if row.slowdown is not None]
    gain = rows[0].overlap_gain
    # A step of a load may take microseconds.
    digits = [round_half_up(time, 2) if time >= 0.1 else format_significant(time) for time in times]
    text = ", ".join(f"{number} s" for number in digits)
    if len(slowdowns) == len(rows):
        text += f" ({format_list([format_number(value, 2) for value in slowdowns])} times alone)"
    if gain is not None:
        text += f": {OVERLAPS[classify_overlap(gain)].lower()} (gain {format_number(gain, 2)})"
    return text


def describe_round_end(number: int, rounds: RoundLimits, report: Report, time_left: TimeLeft) -> str:
    """`round 2 of 5: 128 leads; widest interval ±4 % (batch 16); about 3 min left`, once a round is over."""
    leader = name_leader(report)
    certainty = format_widest_interval(report)
    if not certainty and report.facts.processes[1] < 2:
        certainty = "each row is of one process" if report.facts.processes[1] else "no row has a time"
    if not leader and not certainty:
        certainty = next((line.text.rstrip(".") for line in list_sentences(report)), "")
    parts = [f"{leader} leads" if leader else "", certainty, str(time_left) if time_left.seconds else ""]
    return ": ".join(filter(None, [format_round_number(number, rounds), "; ".join(filter(None, parts))]))
