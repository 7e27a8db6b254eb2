"""A sweep: one plan on one bench, what became of it so far, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gpubench.basics.errors import UnusableError
from gpubench.core.report import Report
from gpubench.plan.plan import Unit
from gpubench.plan.state import Planned
from gpubench.plan.wall_time import WallTime
from gpubench.record.together import ALONE, GroupPrediction
from gpubench.render.live import LiveReport, View
from gpubench.schema.record import Record
from gpubench.store.work_claims import list_workers
from gpubench.sweep.losses import none_left
from gpubench.sweep.survey import Survey

MOST_REWRITES = 10


@dataclass(kw_only=True, slots=True)
class Sweep(Survey):
    """One plan on one bench. `run` of run.py runs it."""

    wall_time: WallTime | None = None
    """How long the batch job may still run; None: nobody ends it."""
    skips: dict[str, str] = field(default_factory=dict)
    """Trial id -> why this sweep skipped it."""
    ended: int = 0
    """How many trials have ended in this sweep otherwise than by its being stopped."""
    problems: list[str] = field(default_factory=list)
    """Plans of the folder that could not be read when the tables were last made, one line each."""
    unwritten: str = ""
    """Why not all tables could be written when that was last tried."""
    _has_left: bool = False
    _told: set[int] = field(default_factory=set)
    """GPUs whose loss has been said."""

    # ---- while it runs ----

    def look_at_gpus(self, left: Sequence[Planned], view: View) -> None:
        """Says which GPUs were lost since the last look. `left`: what is still to be done, in order.

        Raises UnusableError where no GPU is left and all that is left to run needs one.
        """
        self.bench.look_for_losses()
        on_cpu = (item.state == "run" and not self.bench.uses_gpus(item.unit) for item in left)
        if not self.bench.has_gpus_left and not any(on_cpu):
            raise none_left(self.bench.lost.values())
        self.tell_losses(view)

    def tell_losses(self, view: View) -> None:
        """Each once."""
        for number in sorted(self.bench.lost.keys() - self._told):
            self._told.add(number)
            view.say(
                f"{self.bench.lost[number].words}. Trials that need it are skipped, the others go on "
                "with the GPUs that are left"
            )

    def predict(self, unit: Unit) -> GroupPrediction:
        """What the trials alone, as far as they were measured here, say of a group."""
        if not unit.is_group:
            return ALONE
        from gpubench.sweep.predicting import predict_group

        return predict_group(unit, self.bench.resolve(unit), self.chosen())

    def keep(self, records: Sequence[Record]) -> None:
        """Takes the records of a unit that has just ended."""
        self.records += records
        self.measured |= {(record.trial_id, record.attempt_name) for record in records}
        self.ended += sum(record.status != "interrupted" for record in records)

    # ---- its tables ----

    def report(self) -> list[Report]:
        """The tables of this sweep's own trials as they are now."""
        from gpubench.sweep import tables

        return tables.report_plan(self.bench.results.folder, self.plan, self.alike(), self.skips)

    def stand(self) -> LiveReport:
        """The first of them, for whoever looks on."""
        from gpubench.sweep import tables

        return tables.stand(self.bench.results.folder, self.plan, self.alike(), self.skips)

    def write_tables(self) -> None:
        """All tables of the folder, from what is held here, as far as they can be written."""
        from gpubench.sweep import tables

        self.problems = []
        try:
            tables.write_folder(self.bench.results, self.records, self.skips, self.problems.append)
        except UnusableError as error:
            self.unwritten = str(error)
        else:
            self.unwritten = ""

    # ---- after ----

    def leave(self) -> None:
        """Gives back what is claimed, and writes the tables of all that the folder holds by then. Once."""
        if self._has_left:
            return
        self._has_left = True
        self.bench.cpu_hold.release()
        self.bench.claims.give_back()
        self.reload()
        self.write_tables()
        for _ in range(MOST_REWRITES):  # of two that end at once, one may write over what it has not read
            if self.unwritten or not self.reload():
                break
            self.write_tables()

    def claim_first(self, planned: Sequence[Planned]) -> None:
        """Claims what it will begin with, so that others see it at work while it makes ready."""
        from gpubench.sweep.work_queue import WorkQueue

        WorkQueue.build(self, self.bench.claims).claim_first(planned)

    def list_others(self) -> list[str]:
        """Who else is at work in the folder: `process 7 on host`."""
        workers = list_workers(self.bench.results.folder)
        return list(dict.fromkeys(worker.who for worker in workers if worker.is_alive))

    def abandon(self) -> None:
        """What a process that is about to end at once still clears away."""
        self.bench.node.abandon()
        self.bench.claims.give_back()
