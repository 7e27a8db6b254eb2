"""The next few units of a further round, made ready side by side while none is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gpubench.plan.ahead import Need, need, together
from gpubench.plan.further import Turn
from gpubench.plan.plan import Unit
from gpubench.plan.state import Planned
from gpubench.schema.record import Record
from gpubench.sweep.bench import Bench

Look = Callable[[int, int, int], None]
"""Told of how many processes, in how many trials, are made ready, and how many of these trials are."""


@dataclass(kw_only=True, slots=True)
class Preparation:
    """What was made ready on a bench, in the order of a round."""

    bench: Bench
    _of: tuple[int, range] = (0, range(0))
    """The round, and the places in it, that was last looked at."""
    _refused: set[str] = field(default_factory=set)
    """Ids of units that could not be made ready: that is not tried again."""
    _seconds: dict[str, float] = field(default_factory=dict)
    """Unit id -> its part of the seconds in which it was made ready."""

    def make_ready(
        self,
        turn_of: Callable[[Unit], Turn],
        round_: int,
        place: int,
        planned: Sequence[Planned],
        first: Mapping[str, Record],
        has_time: Callable[[int], bool],
        should_stop: Callable[[], bool],
        look: Look,
    ) -> None:
        """Makes the unit at this place ready, with those after it that there is room for; once for all of these.

        `first`: trial id -> the attempt that counts in the first round. `has_time`: whether the unit at a place may
        still be run.
        """
        if self._of[0] == round_ and place in self._of[1]:
            return
        self.bench.discard()
        self._seconds = {}
        machine = self.bench.node.machine
        found: list[tuple[int, Unit, Need | None]] = []
        for index in range(place, len(planned)):
            if planned[index].state == "run":
                unit = planned[index].unit
                found.append((index, unit, self._need(unit, first) if has_time(index) else None))
                if found[-1][2] is None or len(found) > machine.cpu_count:
                    break
        memory = {gpu.index: gpu.memory_mib for gpu in machine.gpus}
        count = together([one for *_, one in found], memory, machine.cpu_count)
        if not count:
            return
        units = [unit for _, unit, _ in found[:count]]
        processes = sum(one.processes for *_, one in found[:count] if one)
        began = time.monotonic()
        self.bench.prepare(
            [(unit, turn_of(unit)) for unit in units],
            should_stop,
            lambda ready: look(processes, count, ready),
        )
        self._seconds = dict.fromkeys((one.unit_id for one in units), (time.monotonic() - began) / count)
        self._refused |= self._seconds.keys() - self.bench.waiting
        # One that could not be made ready is run as ever, and nobody waits then: others may be why it could not.
        kept = next((k for k, unit in enumerate(units) if unit.unit_id in self._refused), count)
        self.bench.discard([unit.unit_id for unit in units[kept:]])
        self._of = round_, range(place, found[kept - 1][0] + 1 if kept else place)

    def _need(self, unit: Unit, first: Mapping[str, Record]) -> Need | None:
        if unit.unit_id in self._refused or self.bench.lost_to(unit):
            return None
        return need(unit, self.bench.resolve(unit), first)

    def seconds(self, unit: Unit) -> float:
        """What it took to make a unit ready in this round; 0 where it was not."""
        return self._seconds.get(unit.unit_id, 0.0)
