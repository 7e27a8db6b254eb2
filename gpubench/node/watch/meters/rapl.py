"""RAPL: the energy counters of the CPUs' packages and of their memory, which Linux shows under powercap."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.node.watch.meters.meter import PERIOD_S, Reading
from gpubench.node.watch.pacing import Clock
from gpubench.schema.missing import Unmeasured

ROOT = Path("/sys/class/powercap")
_ZONES = ("package", "dram")
"""Beginnings of the names of those that are added up: a package's cores are in it, and `psys` has all of them again."""


class Rapl:
    """The mean power since the last reading, of all packages and their memory together."""

    name = "rapl"
    metric = "rapl_w"
    period_s = PERIOD_S
    is_late = False

    def __init__(self, root: Path = ROOT, clock: Clock = time.monotonic) -> None:
        """Raises UnusableError where there are no counters, or they may not be read."""
        self._clock = clock
        self._last: tuple[float, list[int]] | None = None
        try:
            zones = [
                zone
                for zone in sorted(root.glob("intel-rapl:*"))
                if (zone / "name").read_text().startswith(_ZONES)
            ]
            self._counters = [zone / "energy_uj" for zone in zones]
            # One count more than the largest value is 0 again.
            self._ranges = [int((zone / "max_energy_range_uj").read_text()) + 1 for zone in zones]
            self._read_counters()
        except PermissionError as error:
            raise UnusableError(
                f"--meter rapl: {error.filename} may not be read by this user; an administrator permits it until the "
                f"next boot by: chmod a+r {root}/intel-rapl:*/energy_uj"
            ) from None
        except (OSError, ValueError) as error:
            raise UnusableError(f"--meter rapl: the counters under {root} can't be read: {error}") from None
        if not self._counters:
            raise UnusableError(
                f"--meter rapl: no counters under {root}/intel-rapl:*; virtual machines and containers have none, "
                "elsewhere: modprobe intel_rapl_msr"
            )

    def start(self) -> None:
        self._last = None
        self.read_new()

    def read_new(self) -> Sequence[Reading | Unmeasured]:
        try:
            now, counts = self._clock(), self._read_counters()
        except (OSError, ValueError) as error:
            self._last = None
            return [Unmeasured(f"RAPL: {error}")]
        before, self._last = self._last, (now, counts)
        if before is None or now <= before[0]:
            return []
        grown = sum(
            (new - old) % range_ for old, new, range_ in zip(before[1], counts, self._ranges, strict=True)
        )
        return [Reading(now, 1e-6 * grown / (now - before[0]), now)]

    def _read_counters(self) -> list[int]:
        return [int(counter.read_bytes()) for counter in self._counters]
