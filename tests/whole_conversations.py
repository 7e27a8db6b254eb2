"""What the ranks of a whole trial tell, message by message, from which tests make damaged conversations."""

from __future__ import annotations

import json
import time
from typing import Any

import scripted

from gpubench.node.launch.conversation import Conversation
from gpubench.record.outcome import Outcome, outcome
from gpubench.record.recording import step_samples, windows_of

Event = dict[str, Any]
LAUNCHED = time.monotonic()
NOW = 1e9
LACKING = {
    "step_drift_pct": None,
    "parts": None,
    "no_exchange": None,
    "exchange_mib": None,
    "until_top1": None,
}
PARTS = dict.fromkeys(("copy_ms", "forward_ms", "backward_ms", "optimizer_ms", "step_ms"), 1.0) | {
    "comm_ms": 0.5, "comm_hidden_ms": 0.1, "cost_pct": None,
}  # fmt: skip
HELD = {"peak": 3.0, "at_settle": 2.0, "allocated_peak": 1.0}
MEMORY = {"allocated_mib": 1.0, "reserved_mib": 3.0, "retries": 0, "devices": {"0": HELD}}


def spec(**fields: Any) -> dict[str, Any]:
    return {
        "ranks": 1, "epochs": 3, "warmup_epochs": 1, "steps": None, "warmup_steps": 0, "until_top1": None,
        "batch_size": 16, "data_spec": {"train_images": 100}, "gpu_uuids": ["GPU-0"],
    } | fields  # fmt: skip


def told(order: dict[str, Any], **result: Any) -> list[Event]:
    """A whole trial, as its ranks tell it."""
    events = list(scripted.trains_for(1e-6)(order))  # its next epoch begins a moment after
    for event in events:
        if event["event"] == "steps":
            event["end_us"] = list(range(1, len(event["end_us"]) + 1))
        if event["event"] == "result":
            event |= LACKING | {"memory": None} | result
    return [*events, *({"event": "rank-exit", "rank": 0, "code": 0, "killed": False, "at": 1.0} for _ in "1")]


def heard(order: dict[str, Any], events: list[Event]) -> list[Event]:
    """The same, come through as messages."""
    clock = iter([LAUNCHED] * order["ranks"])
    conversation = Conversation(order, lambda: next(clock, NOW))
    return [
        conversation.take(event["rank"] if order["ranks"] > 1 else 0, json.dumps(event).encode())
        for event in events
    ]


def reckoned(came: list[Event]) -> Outcome:
    """What the parent makes of the events of one rank."""
    ended = outcome(
        came, ranks=1, batch_size=16, workers=2, prefetch=2, steps=None, no_quality="none", forced=None, last_words=""
    )  # fmt: skip
    windows_of(ended)
    step_samples(came, 0.0)
    return ended


WHOLE = told(spec())
RICH = told(
    spec(), parts=PARTS, memory=MEMORY, quality=[61.5, None], step_drift_pct=-1.5, exchange_mib=2.0, gmacs_missing="no"
)  # fmt: skip
