"""The meters of a sweep: opened once, and read for each unit on behalf of the watchers of its jobs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from gpubench.basics.errors import UsageError
from gpubench.node.watch.meters.growing_csv import GrowingCsv
from gpubench.node.watch.meters.meter import PERIOD_S, Meter, Reading
from gpubench.node.watch.meters.over_http import HttpMeter
from gpubench.node.watch.meters.rapl import Rapl
from gpubench.node.watch.pacing import Clock
from gpubench.schema.missing import Unmeasured
from gpubench.schema.samples import HOST, Samples, Series
from gpubench.schema.watched import WatchedMeter

METERS: Mapping[str, Callable[[str], Meter]] = {
    "rapl": lambda _: Rapl(),
    "csv": lambda text: GrowingCsv(text.removeprefix("csv:")),
    "http": HttpMeter,
    "https": HttpMeter,
}
"""What stands before the first colon -> what opens it, given the whole."""


def open_meters(texts: Sequence[str]) -> list[Meter]:
    """The meters that were asked for. Raises UsageError, and UnusableError for one that can't be read."""
    meters: list[Meter] = []
    for text in texts:
        kind = text.partition(":")[0]
        if kind not in METERS or (kind == "rapl") != (text == kind):
            raise UsageError(f"--meter {text!r}: give rapl, csv:PATH or http://HOST/PATH")
        meters.append(METERS[kind](text))
        if len({meter.metric for meter in meters}) < len(meters):
            raise UsageError(
                f"--meter {text}: rapl and one other meter can be read; a CSV may hold the sum of several"
            )
    return meters


class MeterReader:
    """What meters tell while one unit runs: the same for all its jobs."""

    def __init__(self, meters: Sequence[Meter], clock: Clock) -> None:
        self._meters = meters
        self._clock = clock
        self._read_at = -math.inf
        self._told: list[list[Reading | Unmeasured]] = [[] for _ in meters]
        for meter in meters:
            meter.start()

    @property
    def has_meters(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._meters)

    @property
    def has_late_meter(self) -> bool:
        """Whether what is drawn now is told only later."""
        return any(meter.is_late for meter in self._meters)

    def read_all(self) -> None:
        """Fetches what they have told; nothing, where that was done just now."""
        if (now := self._clock()) - self._read_at < PERIOD_S / 2:
            return
        self._read_at = now
        for meter, told in zip(self._meters, self._told, strict=True):
            told += meter.read_new()

    def add_to(self, samples: Samples, *, is_shared: bool) -> tuple[WatchedMeter, ...]:
        """Adds all readings to these samples, on the host's clock but as late as they came; returns whose they are.

        `is_shared`: whether several jobs ran.
        """
        for meter, told in zip(self._meters, self._told, strict=True):
            readings = [item for item in told if isinstance(item, Reading)]
            # No reading comes before it was taken: the quickest one tells best how the meter's clock stands.
            ahead = min((reading.arrived - reading.at for reading in readings), default=0.0)
            samples.store_series(meter.metric, HOST, Series())
            by_time: dict[float, list[float]] = {}
            """Where times are told in whole seconds, several readings have the same one."""
            latest = -math.inf
            for item in told:
                if isinstance(item, Unmeasured):
                    samples.note_gap(meter.metric, str(item))
                elif item.at < latest:
                    samples.note_gap(meter.metric, "the meter's clock went back")
                else:
                    latest = item.at
                    by_time.setdefault(item.at, []).append(item.watts)
            for at, watts in by_time.items():
                samples.add_reading(at + ahead, meter.metric, fmean(watts))
        return tuple(
            WatchedMeter(meter.name, meter.metric, meter.period_s, meter.is_late, is_shared)
            for meter in self._meters
        )
