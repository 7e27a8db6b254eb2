"""Rows of epochs, as tests make them up."""

from __future__ import annotations

from typing import Any

from gpubench.record.epochs import EpochRow


def epoch_row(**fields: Any) -> EpochRow:
    """A blameless measured epoch of ten seconds, but for what is given."""
    whole: dict[str, Any] = {
        "epoch": 0, "warmup": False, "t0": 100.0, "t1": 110.0, "epoch_time_s": 10.0, "steps": 10, "images": 640,
        "data_wait_s": 0.0, "data_wait_s_by_rank": None, "first_batch_s": 0.5, "steady_step_s": 0.9, "steady_steps": 9,
        "step_times_s": (), "train_loss": 1.0, "top1_pct": None,
    }  # fmt: skip
    return EpochRow(**whole | fields)


def epoch_rows_of(count: int, **fields: Any) -> list[EpochRow]:
    """So many that are alike; the first is a warm-up."""
    return [epoch_row(epoch=number, warmup=number == 0, **fields) for number in range(count)]
