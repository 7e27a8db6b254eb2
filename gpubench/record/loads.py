"""What a known load's events amount to: its ending, the time of its step, and its rate by the arithmetic. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from gpubench.plan.plan import Job
from gpubench.record.epochs import EpochRow, compute_timing_columns, make_steady_rate_rows, make_windows
from gpubench.record.outcome import Outcome, classify_ending
from gpubench.record.training import collect_allocator_columns
from gpubench.schema.attempt import Attempt
from gpubench.schema.catalog import LOADS, RATE_UNITS
from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.columns import BY_NAME
from gpubench.schema.epoch_times import NO_EPOCHS, NO_P95
from gpubench.schema.events import Hello, Result
from gpubench.schema.record import Ended
from gpubench.schema.workload import WORKLOADS

OF_IMAGES = ("images_per_epoch", "images_per_s", "data_wait_pct", "first_batch_s")
"""Columns of time that a load does not have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRow(EpochRow):
    """Warm-up or window of a load, whose step is told as its one image."""

    def to_record_row(self) -> dict[str, Any]:
        """As of any window, with its steps."""
        of_networks = ("images", "data_wait_s", "first_batch_s", "train_loss", "top1_pct")
        return {
            name: value for name, value in EpochRow.to_record_row(self).items() if name not in of_networks
        }


def make_load_outcome(
    job: Job,
    done: Attempt,
    forced: tuple[Ended, str] | None = None,
    shared: tuple[float, float] | None = None,
) -> Outcome:
    """All that an attempt's events say, as `make_outcome` of a training does."""
    load = LOADS[job.trial.model]
    last_word = WORKLOADS["load"].last_word
    status, reason = forced or classify_ending(done.events, last_word, 1, done.last_words, done.nodes)
    rows = [
        LoadRow(**asdict(row))
        for row in make_steady_rate_rows(done.events, ranks=1, batch_size=1, shared=shared)
    ]
    hello = next((event for event in done.events if isinstance(event, Hello)), None)
    outcome = Outcome(
        status=status,
        reason=reason,
        cuda=hello.cuda if hello else None,
        epochs=rows,
        windows=make_windows(rows, 1),
        unexplained=REASONS["load"],
    )
    result = next((event for event in done.events if isinstance(event, Result)), None)
    if status != "ok" or result is None:
        return outcome
    columns = compute_timing_columns(rows, is_stream=True, images_per_epoch=1)
    missing = dict.fromkeys(("epochs_measured", "epoch_time_iqr_s"), NO_EPOCHS)
    missing |= dict.fromkeys(("step_time_ms_p95",) if "step_time_ms_p95" not in columns else (), NO_P95)
    missing |= {
        name: format_reason("other-work", BY_NAME[name].unit) for name in RATE_UNITS if name != load.rate
    }
    if "epoch_time_s" in columns:
        per_s = load.count(job.trial.batch_size) / columns["epoch_time_s"]
        columns[load.rate] = per_s / RATE_UNITS[load.rate]
    columns = {name: value for name, value in columns.items() if name not in OF_IMAGES}
    columns |= {"cpu_probe_ms": result.cpu_probe_ms} | collect_allocator_columns([result])
    return replace(
        outcome,
        result=columns,
        missing=missing,
        phases=dict(result.phases),
        held=dict(result.memory.devices) if result.memory else {},
    )
