"""How far a sweep is while a trial runs: in three lines, and as a bar for each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpubench.basics.encodable import encodable
from gpubench.basics.rounding import half_up
from gpubench.basics.words import clean
from gpubench.plan.outlook import place
from gpubench.plan.rounds import Rounds

if TYPE_CHECKING:
    from rich.text import Text

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
    epoch: int | None = None
    """From 1, warm-up included."""
    epochs: int | None = None
    step: int | None = None
    """Steps finished in this epoch."""
    steps: int | None = None
    evaluated: int = 0
    """Epochs that were evaluated, where training goes on until an accuracy is reached."""
    top1_pct: float | None = None
    """What the last of these evaluations gave."""
    top1_target: float | None = None
    """The accuracy asked for, in per cent."""
    gpu_mem_mib: float | None = None
    gpu_util_pct: float | None = None
    cpu_util_pct: float | None = None
    elapsed_s: float = 0.0
    """Since the sweep began."""
    left_s: float | None = None
    """Until it ends, estimated."""
    until: str = ""
    """What ends it, where that is not its last round: "to ± 2 %"."""
    at_least: bool = False
    """Whether nobody knows yet how much more than `left_s` it may be."""
    at_most: bool = False
    """Whether it may end earlier, when no question of the table is open any more."""
    is_late: bool = False
    """Whether the running trial takes longer than planned."""
    note: str = ""
    """What else there is to say: "warm-up", "evaluating", "waiting for the other jobs"."""


def frame(progress: LiveProgress, width: int, encoding: str = "utf-8") -> Text:
    """What is told of the trial under way: three lines, each at most `width` cells wide."""
    from rich.text import Text

    head = f"[{progress.done + 1}/{progress.total}] {clean(progress.trial_label)}"
    lines = [Text(_fit(head, width), "bold"), _bar(progress, width), Text(_vitals(progress, width), "dim")]
    for line in lines:
        line.plain = encodable(line.plain, encoding)
    return Text("\n", no_wrap=True, overflow="ellipsis").join(lines)


def _bar(progress: LiveProgress, width: int) -> Text:
    from rich.text import Text

    before, after = _epochs(progress), _steps(progress)
    room = min(40, width - len(before) - len(after))
    if not progress.steps or progress.step is None or room < 8:
        return Text(_fit(f"{before.rstrip()}{after}", width))
    full = min(room, room * progress.step // progress.steps)
    return Text.assemble(before, ("━" * full, "green"), ("─" * (room - full), "dim"), after)


def _epochs(progress: LiveProgress) -> str:
    if progress.epoch is None:
        return "  "
    of = f"/{progress.epochs}" if progress.epochs else ""
    return f"  epoch {progress.epoch}{of}  "


def _steps(progress: LiveProgress) -> str:
    parts = [f"step {progress.step}/{progress.steps}"] if progress.steps and progress.step is not None else []
    if progress.top1_pct is not None:
        parts.append(top1_so_far(progress.top1_pct, progress.top1_target))
    parts += [clean(progress.note)] if progress.note else []
    return "".join(f"  {part}" for part in parts)


def _vitals(progress: LiveProgress, width: int) -> str:
    parts = [
        f"GPU {progress.gpu_mem_mib:,.0f} MiB" if progress.gpu_mem_mib is not None else "",
        f"GPU {progress.gpu_util_pct:.0f} %" if progress.gpu_util_pct is not None else "",
        f"CPU {progress.cpu_util_pct:.0f} %" if progress.cpu_util_pct is not None else "",
        _left(progress),
        f"{clock(progress.elapsed_s)} elapsed",
    ]
    return _fit("  " + "  ".join(part for part in parts if part), width)


def _left(progress: LiveProgress) -> str:
    if progress.left_s is None:
        return ""
    if progress.is_late and not progress.left_s:
        return "longer than planned"
    about = "at least " if progress.at_least else "at most " if progress.at_most else "~"
    left = f"{about}{clock(progress.left_s)} left{f' {progress.until}' if progress.until else ''}"
    return f"longer than planned, {left}" if progress.is_late else left


def rounds_bar(number: int, rounds: Rounds, done: int, total: int, width: int) -> Text:
    """`round 2 of 5  ━━━━━━ ━━──── ────── ────── ──────  2 of 6 done`, at most `width` cells wide.

    A bar for each round; one bar, of this round, where nobody knows how many they will be, or they are too many.
    """
    from rich.text import Text

    before, after = f"{place(number, rounds)}  ", f"  {done} of {total} done"
    room = min(BAR, width - len(before) - len(after))
    if room < SHORTEST_BAR or not total:
        return Text(_fit(f"{before.rstrip()}{after}", width))
    count = rounds.most if room // rounds.most > SHORTEST_PART else 1
    each = (room + 1) // count - 1
    full = [each if one < number else 0 for one in range(1, count + 1)]
    full[number - 1 if count > 1 else 0] = each * done // total
    parts = [part for one in full for part in (("━" * one, "green"), ("─" * (each - one), "dim"), " ")]
    return Text.assemble(before, *parts[:-1], after)


def top1_so_far(top1_pct: float, target: float | None) -> str:
    """`top-1 61.2 of 70 %`. `target`: the accuracy asked for, if one is."""
    of = f" of {target:g}" if target is not None else ""
    return f"top-1 {half_up(top1_pct, 1)}{of} %"


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def clock(seconds: float) -> str:
    """`0:07`, `4:30`, `1:04:30`."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
