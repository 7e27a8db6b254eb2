"""The parts of a step and what its ranks exchanged, over all ranks. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from gpubench.schema.codes import REASONS, format_reason
from gpubench.schema.events import Result

STEP_TIMES = ("copy_ms", "forward_ms", "backward_ms", "optimizer_ms")
EXCHANGE = ("comm_ms", "comm_hidden_ms", "comm_pct", "slowest_rank")
NOISE = 0.02
"""Ranks whose own work differs by less than this share of a step are equally fast."""


def summarize_breakdown(results: Sequence[Result]) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns of the breakdown and of the exchange, and why some are empty. `results`: every rank's last event.

    Times are means over the ranks of each rank's median.
    """
    why_alone = results[0].no_exchange
    columns: dict[str, Any] = {}
    missing: dict[str, str] = {}
    if why_alone:
        missing |= dict.fromkeys((*EXCHANGE, "comm_mib_per_step"), why_alone)
    elif results[0].exchange_mib is None:
        missing["comm_mib_per_step"] = REASONS["exchange-untold"]
    else:
        columns["comm_mib_per_step"] = results[0].exchange_mib
    medians_by_rank = {r.rank: r.breakdown for r in results if r.breakdown}
    if len(medians_by_rank) < len(results):
        why = REASONS["no-breakdown"]
        return columns, dict.fromkeys((*STEP_TIMES, *EXCHANGE, "breakdown_cost_pct"), why) | missing
    medians = list(medians_by_rank.values())
    columns |= {name: statistics.fmean(getattr(p, name) for p in medians) for name in STEP_TIMES}
    costs = [p.cost_pct for p in medians if p.cost_pct is not None]
    if costs:
        columns["breakdown_cost_pct"] = statistics.fmean(costs)
    else:
        missing["breakdown_cost_pct"] = REASONS["few-marked-steps"]
    if why_alone:
        return columns, missing
    waits = {rank: p.comm_ms for rank, p in medians_by_rank.items() if p.comm_ms is not None}
    hidden = [p.comm_hidden_ms for p in medians if p.comm_hidden_ms is not None]
    if len(waits) < len(medians) or len(hidden) < len(medians):
        return columns, missing | dict.fromkeys(EXCHANGE, REASONS["exchange-unseen"])
    comm_ms, step_ms = statistics.fmean(waits.values()), statistics.fmean(p.step_ms for p in medians)
    columns |= {
        "comm_ms": comm_ms,
        "comm_hidden_ms": statistics.fmean(hidden),
        "comm_pct": 100 * comm_ms / step_ms,
    }
    is_alike = max(waits.values()) - min(waits.values()) < NOISE * step_ms
    # Who waits least for the others, since all take equally long together.
    columns["slowest_rank"] = None if is_alike else min(waits, key=waits.__getitem__)
    if is_alike:
        missing["slowest_rank"] = format_reason("no-slowest-rank", f"{100 * NOISE:g}")
    return columns, missing
