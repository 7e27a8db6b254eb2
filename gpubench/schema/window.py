"""How long a process measures: its warm-up and its window, in steps that are fixed before they begin. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean

WINDOW_S = {"cuda": 3.75, "cpu": 2.5}
"""Seconds of a window that nobody asked for, by device (tests/benchmarks/README.md says how they were found). On a GPU
SHORT of it is what a figure of energy takes."""
FEWEST_STEPS = 3
"""Steps of a window, however long they are."""
SHORT = 0.8
"""Part of the asked window below which one that came out shorter gets as many steps again."""
WARM_UP_STEPS = 10
WARM_UP_S = 1.0
"""Seconds of the warm-up after its first step."""


def choose_window_s(window_s: float | None, device: str) -> float:
    """Seconds of a window on `device` (cuda or cpu): as asked for, else its default."""
    return window_s or WINDOW_S[device]


def count_block_steps(wave: int, sync_every: int | None, *, breakdown: bool) -> tuple[int, int]:
    """Steps of a block, with whole waves and without: a window holds whole blocks, so that none of its parts is cut.

    `wave`: loader workers of a rank, whose batches are made side by side and come in a burst; 0 without loaders.
    `sync_every`: steps from one averaging of the ranks' models to the next. `breakdown`: one of two steps is marked.
    """
    plain = math.lcm(sync_every or 1, 2 if breakdown else 1)
    return math.lcm(max(1, wave), plain), plain


def count_warm_up_steps(ahead: int) -> int:
    """Steps of a warm-up at least. `ahead`: batches that a rank's loaders hold ready together."""
    return max(WARM_UP_STEPS, ahead)


def count_missing_warm_up_steps(step_s: Sequence[float], wave: int) -> int:
    """Steps that a warm-up still lacks to WARM_UP_S after its first step, and one wave behind what loaders held ready.

    `step_s`: seconds of each of its steps. A step takes as long as it does from then on only when that is used up.
    """
    lacking = math.ceil((WARM_UP_S - sum(step_s[1:])) / max(compute_late_step_s(step_s, wave), 1e-6))
    return max(0, lacking, wave if wave > 1 else 0)


def compute_late_step_s(step_s: Sequence[float], wave: int) -> float:
    """Mean seconds of the later half of these steps, in whole waves, one at least where there are as many steps."""
    half = max(1, len(step_s) // 2)
    if 1 < wave <= len(step_s):
        half = max(1, half // wave) * wave
    return fmean(step_s[-half:])


def count_window_steps(window_s: float, step_s: float, block: int, plain: int) -> int:
    """Steps of a window of `window_s` seconds, in whole blocks. `step_s`: seconds of the slowest rank's step.

    `block`, `plain`: of `count_block_steps`. Whole waves are taken only while they fit into twice the window.
    """
    wanted = max(FEWEST_STEPS, math.ceil(window_s / max(step_s, 1e-6)))
    whole = math.ceil(wanted / block) * block
    return whole if whole * step_s <= 2 * window_s else math.ceil(wanted / plain) * plain
