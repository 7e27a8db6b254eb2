"""Sees to it that the images of a plan lie on disk before its first trial, with a word on how far that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gpubench.datasets import locate
from gpubench.report.live import Progress, View
from gpubench.runner.state import Planned
from gpubench.runner.sweep import Sweep

VIEW_PERIOD_S = 0.25


class _StoppedError(Exception):
    """The user stopped the making of images."""


def prepare(sweep: Sweep, planned: Sequence[Planned], view: View, should_stop: Callable[[], bool]) -> bool:
    """Makes, resizes or decodes what the trials to run need. False where it was stopped."""
    wanted: dict[tuple[str, str, int], None] = {}
    for item in planned:
        if item.state == "run":
            unit = item.unit
            wanted[(unit.trial.data, unit.variant.files, sweep.resolve(unit).input_size)] = None
    began = time.monotonic()
    for data, files, size in wanted:
        steps = locate.plan_of(data, files, size)  # type: ignore[arg-type]
        label = "; ".join(steps)
        shown = 0.0

        def progress(done: int, total: int, label: str = label) -> None:
            nonlocal shown
            sweep.results.beat()
            if should_stop():
                raise _StoppedError
            now = time.monotonic()
            if label and now - shown > VIEW_PERIOD_S:
                shown = now
                view.update(
                    Progress(
                        done=0,
                        total=len(planned),
                        trial_label=f"images: {label}",
                        step=done,
                        steps=total,
                        elapsed_s=now - began,
                        note="making images",
                    )
                )

        try:
            locate.ready(data, files, size, progress)  # type: ignore[arg-type]
        except _StoppedError:
            return False
    return True
