"""Watchers of made-up and of sleeping processes, on a clock of their own."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.node.watch.watcher import Watcher
from gpubench.record.figures import WatchedFigures, compute_watched_figures
from gpubench.schema.watched import Window


class Clock:
    """Stands still until it is set."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def watch(watchers: Watcher | Sequence[Watcher], clock: Clock, seconds: float) -> None:
    """Samples as the runner's loop does, on a clock that jumps from deadline to deadline."""
    watched = [watchers] if isinstance(watchers, Watcher) else watchers
    end = clock.now + seconds
    while (nearest := min(w.next_deadline() for w in watched)) <= end + 1e-9:
        clock.now = max(clock.now, nearest)
        for watcher in watched:
            watcher.sample_due()
    clock.now = end


def make_figures(watcher: Watcher, *windows: Window | tuple[float, float]) -> WatchedFigures:
    """What it saw in these windows; a pair of times is a measured one."""
    whole = [w if isinstance(w, Window) else Window(*w, 1, True) for w in windows]
    return compute_watched_figures(watcher.make_watched().replace_windows(whole))
