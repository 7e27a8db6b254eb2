"""What the ranks of a whole trial tell, message by message, from which tests make damaged conversations."""

from __future__ import annotations

import json
from typing import Any

import scripted

from gpubench.node.launch.event_checker import parse_event
from gpubench.schema.events import Told
from gpubench.schema.order import SteadyWindow, TrialOrder
from gpubench.schema.validation import convert_to_plain

Message = dict[str, Any]
STEP_TIMES = dict.fromkeys(("copy_ms", "forward_ms", "backward_ms", "optimizer_ms", "step_ms"), 1.0) | {
    "comm_ms": 0.5, "comm_hidden_ms": 0.1, "cost_pct": None,
}  # fmt: skip
HELD = {"peak": 3.0, "at_settle": 2.0, "allocated_peak": 1.0}
MEMORY = {"allocated_mib": 1.0, "reserved_mib": 3.0, "retries": 0, "devices": {"0": HELD}}


def order(**fields: Any) -> TrialOrder:
    return scripted.order(gpu_uuids=("GPU-0",), **fields)


def plainly(event: Told) -> Message:
    """What its message holds."""
    made: Message = json.loads(json.dumps(convert_to_plain(event)))
    return made


def told(asked: TrialOrder, **result: Any) -> list[Message]:
    """A whole trial, as its ranks tell it."""
    lines = [*scripted.trains_for(1e-6)(asked), scripted.exits(0)]  # its next epoch begins a moment after
    messages = [plainly(line) for line in lines]
    for message in messages:
        if message["event"] == "steps":
            message["end_us"] = list(range(1, len(message["end_us"]) + 1))
        if message["event"] == "result":
            message |= result
    return messages


def heard(messages: list[Message]) -> list[Told]:
    """What comes of them in the parent."""
    return [parse_event(message["rank"], json.dumps(message).encode()) for message in messages]


WHOLE = told(order())
RICH = told(
    order(), breakdown=STEP_TIMES, memory=MEMORY, quality=[61.5, None], exchange_mib=2.0, gmacs_missing="no"
)
STREAM = order(protocol=SteadyWindow(window_s=None, steps=4))
STREAMED = told(STREAM)
