"""The parts of a step and what its ranks exchanged, over all ranks. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

PARTS = ("copy_ms", "forward_ms", "backward_ms", "optimizer_ms")
EXCHANGE = ("comm_ms", "comm_hidden_ms", "comm_pct", "slowest_rank")
UNSEEN = "the strategy does not tell when its ranks exchange: that is in forward, backward or optimizer"
NOISE = 0.02
"""Ranks whose own work differs by less than this share of a step are equally fast."""


def broken_down(results: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """Columns of the breakdown and of the exchange, and why some are empty. `results`: every rank's last event.

    Times are means over the ranks of each rank's median.
    """
    why_alone: str | None = results[0].get("no_exchange")
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    if why_alone:
        missing |= dict.fromkeys((*EXCHANGE, "comm_mib_per_step"), why_alone)
    elif results[0].get("exchange_mib") is None:
        missing["comm_mib_per_step"] = "the strategy does not tell how much its ranks exchange"
    else:
        found["comm_mib_per_step"] = results[0]["exchange_mib"]
    told = {r["rank"]: r["parts"] for r in results if r.get("parts")}
    if len(told) < len(results):
        why = "the parts of steps were not timed (--breakdown)"
        return found, dict.fromkeys((*PARTS, *EXCHANGE, "breakdown_cost_pct"), why) | missing
    mean = {
        name: statistics.fmean(p[name] for p in told.values())
        for name in next(iter(told.values()))
        if name.endswith("_ms") and all(p[name] is not None for p in told.values())
    }
    found |= {name: mean.get(name) for name in PARTS}
    costs = [p["cost_pct"] for p in told.values() if p["cost_pct"] is not None]
    if costs:
        found["breakdown_cost_pct"] = statistics.fmean(costs)
    else:
        missing["breakdown_cost_pct"] = "too few steps to compare marked ones with plain ones"
    if not why_alone and "comm_ms" not in mean:
        missing |= dict.fromkeys(EXCHANGE, UNSEEN)
    elif not why_alone:
        found |= {"comm_ms": mean["comm_ms"], "comm_hidden_ms": mean["comm_hidden_ms"]}
        found["comm_pct"] = 100 * mean["comm_ms"] / mean["step_ms"]
        found["slowest_rank"] = _slowest({rank: p["comm_ms"] for rank, p in told.items()}, mean["step_ms"])
        if found["slowest_rank"] is None:
            missing["slowest_rank"] = f"the ranks' own work differs by less than {100 * NOISE:g} % of a step"
    return found, missing


def _slowest(waits_ms: Mapping[int, float], step_ms: float) -> int | None:
    """The rank that waits least for the others, since all take equally long together; None where they are alike."""
    if max(waits_ms.values()) - min(waits_ms.values()) < NOISE * step_ms:
        return None
    return min(waits_ms, key=waits_ms.__getitem__)
