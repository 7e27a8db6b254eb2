"""What a command's events amount to: its ending, its epochs or its whole run, the figures that it printed. Pure."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gpubench.plan.plan import Job
from gpubench.record.epochs import WindowRow
from gpubench.record.outcome import Outcome, classify_ending
from gpubench.schema.attempt import Attempt
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.command import MOST_EPOCHS, parse_metric_patterns, parse_metric_target
from gpubench.schema.epoch_times import FEWEST_TIMES, MEASURED, NO_SPREAD, WHOLE_RUN
from gpubench.schema.events import CommandEnded, EpochBegan, EpochEnded, Event, MetricSeen
from gpubench.schema.record import Ended
from gpubench.schema.trial import Trial
from gpubench.schema.watched import Window
from gpubench.schema.workload import WORKLOADS

READ_LATE_S = 0.05
"""So much later than it was printed a line may be read."""
TO_TARGET = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")


def make_command_outcome(job: Job, done: Attempt, forced: tuple[Ended, str] | None = None) -> Outcome:
    """All that an attempt's events say. `forced`: the ending that the parent gave (timeout, interrupted), if it did."""
    t = job.trial
    last_word = WORKLOADS[t.workload].last_word
    status, reason = forced or classify_ending(done.events, last_word, 1, done.last_words, done.nodes)
    end = next((event for event in done.events if isinstance(event, CommandEnded)), None)
    rows = make_command_rows(done.events, end, t)
    if status == "ok" and end is not None and end.epochs_from == "pattern" and not rows:
        status, reason = (
            "failed",
            (
                f"--epoch-pattern {t.epoch_pattern} was found in fewer than two lines of its output: an epoch "
                "lasts from one to the next"
            ),
        )
    if status == "ok" and any(row.t0 == row.t1 for row in rows):
        rows, status, reason = (
            [],
            "failed",
            (
                f"several of the lines that --epoch-pattern {t.epoch_pattern} finds came at one moment: have the "
                "command print each at once (python -u, stdbuf -oL), or mark its epochs by gpubench.epoch()"
            ),
        )
    outcome = Outcome(
        status=status,
        reason=reason,
        epochs=rows,
        windows=[Window(row.t0, row.t1, row.epoch, not row.warmup) for row in rows],
        unexplained=REASONS["command"],
    )
    return outcome if status != "ok" or end is None else _add_command_figures(outcome, t, done.events, end)


def find_run_span(events: Sequence[Event]) -> tuple[float, float] | None:
    """From when to when a command ran; None where it has not ended well."""
    return next(((event.began, event.at) for event in events if isinstance(event, CommandEnded)), None)


def make_command_rows(events: Sequence[Event], end: CommandEnded | None, t: Trial) -> list[WindowRow]:
    """A row each epoch that the command told of; where it told of none, one of its whole run, once that has ended."""
    epochs = [event for event in events if isinstance(event, EpochEnded)]
    if not epochs:
        # One that reached its target within its first epoch has neither an epoch nor a whole run to compare.
        if end is None or end.epochs_from is not None:
            return []
        if t.until is not None and any(isinstance(event, EpochBegan) for event in events):
            return []
        return [WindowRow(epoch=0, warmup=False, t0=end.began, t1=end.at, epoch_time_s=end.at - end.began)]
    asked = t.warmup_epochs if t.warmup_epochs is not None else 1
    warmup = min(asked, len(epochs) - 1)
    return [
        WindowRow(
            epoch=event.epoch,
            warmup=number < warmup,
            t0=event.t0,
            t1=event.t1,
            epoch_time_s=event.t1 - event.t0,
        )
        for number, event in enumerate(epochs)
    ]


def _add_command_figures(outcome: Outcome, t: Trial, events: Sequence[Event], end: CommandEnded) -> Outcome:
    """The columns of time, and the figures that were looked for."""
    times = [row.epoch_time_s for row in outcome.counted]
    result: dict[str, Any] = {"epoch_time_s": statistics.median(times)} if times else {}
    missing: dict[str, str] = {}
    if not times:
        missing |= dict.fromkeys(("epoch_time_s", "epochs_measured"), REASONS["first-epoch"])
    elif end.epochs_from is None:
        result["epoch_time_source"] = WHOLE_RUN
        missing |= dict.fromkeys(("epochs_measured", "epoch_time_iqr_s"), REASONS["whole-run"])
    else:
        result |= {"epoch_time_source": MEASURED, "epochs_measured": len(times)}
        if len(times) >= FEWEST_TIMES:
            low, _, high = statistics.quantiles(times, n=4, method="inclusive")
            result["epoch_time_iqr_s"] = high - low
        else:
            missing["epoch_time_iqr_s"] = NO_SPREAD
    if t.train_images is not None and times:
        result["images_per_epoch"] = t.train_images
        result["images_per_s"] = t.train_images / result["epoch_time_s"]
    else:
        missing |= dict.fromkeys(("images_per_epoch", "images_per_s"), REASONS["no-images"])
    seen = [event for event in events if isinstance(event, MetricSeen)]
    latest = {event.name: event.value for event in seen}
    if printed := {name: value for name, value in latest.items() if value is not None}:
        result["printed"] = printed
    columns, why_not = compute_time_to_target(t, list_epoch_begins(events, end), seen, end)
    return replace(
        outcome,
        result=result | columns,
        missing=missing | why_not,
        phases={
            "before_epochs": min([row.t0 for row in outcome.epochs], default=end.at) - end.began,
            "command": end.at - end.began,
            "reading": end.reading_s,
        },
    )


def list_epoch_begins(events: Sequence[Event], end: CommandEnded) -> list[float]:
    """When the epochs began that a command told of, the one under way at its end included."""
    ended = [event for event in events if isinstance(event, EpochEnded)]
    begins = {event.t0 for event in ended} | {event.at for event in events if isinstance(event, EpochBegan)}
    if end.epochs_from == "pattern":  # with the line that ends one the next begins
        begins |= {event.t1 for event in ended}
    return sorted(begins)


def compute_time_to_target(
    t: Trial, begins: Sequence[float], seen: Sequence[MetricSeen], end: CommandEnded
) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns of time to a figure, and why they are empty.

    The time is from the begin of the first epoch that the script has marked, else from the command's begin: a line may
    stand at an epoch's end as well. `begins`: of its epochs; none where it tells of none.
    """
    if t.until is None:
        return {}, dict.fromkeys(TO_TARGET, REASONS["no-command-target"])
    target = parse_metric_target(t.until, [pattern.name for pattern in parse_metric_patterns(t.metrics)])
    values = [event for event in seen if event.name == target.name and event.value is not None]
    reached = next((event for event in values if (event.value or 0.0) >= target.value), None)
    if reached is None:
        why = (
            format_reason("command-target-missed", target.name, f"{values[-1].value:g}", f"{target.value:g}")
            if values
            else format_reason("command-target-unseen", target.name)
        )
        return {}, dict.fromkeys(TO_TARGET, why)
    columns: dict[str, Any] = {
        "time_to_top1_s": reached.at - (begins[0] if begins and t.epoch_pattern is None else end.began)
    }
    missing = {"energy_to_top1_j": REASONS["energy-on-the-way"]}
    if not begins:
        return columns, missing | {"epochs_to_top1": REASONS["whole-run"]}
    # A line that a script prints between two epochs is read when the next has just begun.
    shortest_s = min((later - begin for begin, later in itertools.pairwise(begins)), default=math.inf)
    late_s = min(READ_LATE_S, shortest_s / 2) if t.epoch_pattern is None else 0.0
    epochs = max(1, sum(begin <= reached.at - late_s for begin in begins))
    if epochs >= MOST_EPOCHS:
        return columns, missing | {"epochs_to_top1": format_reason("many-epochs", MOST_EPOCHS)}
    return columns | {"epochs_to_top1": epochs}, missing
