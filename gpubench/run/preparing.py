"""Sees to it that the images of a plan lie on disk before its first trial, with a word on how far that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from gpubench.basics.errors import UsageError
from gpubench.datasets import locate
from gpubench.plan.plan import format_unit_label
from gpubench.plan.state import PlannedUnit
from gpubench.render.live import View
from gpubench.render.running import LiveProgress
from gpubench.run.sweep_state import SweepState

VIEW_PERIOD_S = 0.25


class _StoppedError(Exception):
    """The user stopped the making of images."""


def make_images(
    state: SweepState, planned: Sequence[PlannedUnit], view: View, should_stop: Callable[[], bool]
) -> bool:
    """Makes, resizes or decodes what the trials to run need. False where it was stopped."""
    began = time.monotonic()
    for images in state.list_wanted_images(planned):
        label = "; ".join(map(str, locate.plan_making_steps(*images)))
        shown = 0.0

        def progress(done: int, total: int, label: str = label) -> None:
            nonlocal shown
            state.runner.claims.touch_heartbeat()
            if should_stop():
                raise _StoppedError
            now = time.monotonic()
            if label and now - shown > VIEW_PERIOD_S:
                shown = now
                view.update(
                    LiveProgress(
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
            state.runner.folders.ensure_folder(images, progress)
        except _StoppedError:
            return False
        except UsageError as error:
            # Something is wrong with these images: the trials that need them fail with that reason. What is wrong
            # with the machine (a full disk) ends the sweep instead.
            view.say(f"images: {error}")
    return True


def wait_until_node_ready(
    state: SweepState, planned: Sequence[PlannedUnit], view: View, should_stop: Callable[[], bool]
) -> bool:
    """Waits until trials can start, and says what for. False where it was stopped.

    The fork server imports torch, which may take half a minute where its files are not in memory yet.
    """
    ahead = state.runner.make_poll_with_heartbeat(should_stop)
    number = next(index for index, item in enumerate(planned) if item.state == "run")
    began = time.monotonic()
    shown = 0.0

    def waits() -> bool:
        nonlocal shown
        now = time.monotonic()
        if now - shown > VIEW_PERIOD_S:
            shown = now
            view.update(
                LiveProgress(
                    done=number,
                    total=len(planned),
                    trial_label=format_unit_label(state.plan, planned[number].unit),
                    elapsed_s=now - began,
                    note="starting torch: the first time this takes up to half a minute",
                )
            )
        return ahead()

    return state.runner.node.wait_ready(waits)
