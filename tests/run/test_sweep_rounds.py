"""A sweep in rounds, with scripted trials: what each measures, what ends them, what is said and stored."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections import Counter
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import scripted
from benches import Ended, Heard, count_again, run_with, sweep_of
from scripted import Script, Scripted, trains_for

from gpubench.node import environment
from gpubench.plan.command_line import make_plan
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import with_options
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.render.running import LiveProgress
from gpubench.results.rows import row_of
from gpubench.results.store import Results
from gpubench.run.announce import announcement_lines, print_plan
from gpubench.run.closing import finish
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import Protocol, SteadyWindow, TrialOrder, WholeEpochs
from gpubench.schema.record import Record
from gpubench.schema.window import WINDOW_S

BASE = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\ntrain_images = 640\n'
BASE += "[run]\n"


class Watched(Heard):
    """Keeps what is shown while a trial runs, too."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[LiveProgress] = []
        self.ended: list[str] = []
        """What is said at the end of each round."""

    def update(self, progress: LiveProgress) -> None:
        self.shown.append(progress)

    def ended_round(self, line: str) -> None:
        self.ended.append(line)


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps in rounds into it one after the other."""

    folder: Path
    view: Watched = dataclasses.field(default_factory=Watched)

    def work(
        self, *, retry: str = "", fresh: bool = False, jobs: tuple[str, ...] = (), **asked: Any
    ) -> SweepState:
        own = ("rounds", "within", "budget", "repeats", "excludes")
        options = {name: asked.pop(name) for name in own if name in asked} or {"rounds": 1}
        fields = {"batch_size": "16,32", **asked} if not jobs else asked
        experiment = with_options(parse(BASE, "x"), Options(fields=fields, jobs=jobs, **options))
        machine = scripted.computer(cpus=2)
        plan = make_plan(experiment, machine, Disk(), "given")
        again = frozenset(retry.split(",") if retry else ())
        made = sweep_of(plan, self.folder, machine, retry=again, fresh=fresh)
        made.load()
        return made

    def sweep(
        self, launcher: Scripted | None = None, *, stop: Callable[[], bool] = lambda: False, **asked: Any
    ) -> Ended:
        """`gpubench sweep` with these options."""
        work = self.work(**asked)
        work.runner.results.create()
        store_plan(work)
        self.view, launcher = Watched(), launcher or Scripted()
        summary = run_with(launcher, work, self.view, stop)
        launcher.close()
        return summary

    def closing(self, capsys: pytest.CaptureFixture[str], ended: Ended, **asked: Any) -> list[str]:
        """What is said at the end of such a sweep."""
        work, view = self.work(**asked), Heard()
        finish(work, work.pending(), ended, ended.limits, view, "quiet")
        capsys.readouterr()
        return view.lines

    def records(self) -> list[Record]:
        return Results(self.folder).records()

    def measured(self) -> list[tuple[int, int, int, str]]:
        """Batch size, round, attempt and ending of all that is stored."""
        return sorted((r.trial.batch_size or 0, r.round, r.attempt, r.status) for r in self.records())

    def rows(self) -> pd.DataFrame:
        return pd.read_csv(self.folder / "trials.csv")

    def line(self, batch: int) -> pd.Series[Any]:
        """The line of table.csv."""
        table = pd.read_csv(self.folder / "table.csv")
        return table[table["batch_size"] == batch].iloc[0]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


def by_turns(**times: tuple[float, ...]) -> Scripted:
    """Processes of `b16`, … take so many seconds an epoch, one after the other."""
    turns = {int(name[1:]): cycle(each) for name, each in times.items()}

    def choose(order: TrialOrder) -> Script:
        return (
            trains_for(next(turns[order.trial.batch_size]))
            if order.trial.batch_size in turns
            else scripted.trains
        )

    return Scripted(choose)


def fails_in(*numbers: int, batch: int = 16, script: Script = scripted.raises) -> Scripted:
    """Processes of one batch size that fail, by their numbers from 1."""
    seen: Counter[int] = Counter()

    def choose(order: TrialOrder) -> Script:
        seen[order.trial.batch_size] += 1
        fails = order.trial.batch_size == batch and seen[batch] in numbers
        return script if fails else scripted.trains

    return Scripted(choose)


def whole(batch: int, rounds: int) -> list[tuple[int, int, int, str]]:
    return [(batch, number, number, "ok") for number in range(1, rounds + 1)]


# ---- what is measured ----


@pytest.mark.slow
def test_each_round_measures_each_trial_once_more_in_a_process_of_its_own(desk: Desk) -> None:
    launcher = by_turns(b16=(1.0, 2.0, 4.0))
    assert desk.sweep(launcher, rounds=3).ran == 6
    assert desk.measured() == [*whole(16, 3), *whole(32, 3)]
    assert [line for line in desk.view.lines if line.startswith("round")] == ["round 2 of 3", "round 3 of 3"]
    rows = desk.rows()
    assert list(rows[rows["batch_size"] == 16]["round"]) == [1, 2, 3]
    assert list(rows[rows["batch_size"] == 16]["epoch_time_s"]) == pytest.approx([1.0, 2.0, 4.0])
    # ln 2 apart each: a standard error of ln(2) / sqrt(3) = 0.4002, times 4.303 is a factor of 5.596 around 2.
    line = desk.line(16)
    assert (line.repeats, line.epoch_time_s) == (3, pytest.approx(2.0))
    assert line.epoch_time_low_s == pytest.approx(2 / 5.596, rel=1e-3)
    assert line.epoch_time_high_s == pytest.approx(2 * 5.596, rel=1e-3)
    assert "3 processes a row" in (desk.folder / "table.md").read_text()


@pytest.mark.slow
def test_the_same_command_again_measures_nothing(desk: Desk) -> None:
    desk.sweep(rounds=3)
    launcher = Scripted()
    summary = desk.sweep(launcher, rounds=3)
    assert (summary.ran, summary.reused, launcher.launched) == (0, 2, [])


@pytest.mark.slow
def test_more_rounds_later_add_to_those_there_are_and_fewer_take_none_away(desk: Desk) -> None:
    desk.sweep(rounds=3)
    assert desk.sweep(rounds=4).ran == 2
    assert desk.measured() == [*whole(16, 4), *whole(32, 4)]
    assert desk.sweep(rounds=1).ran == 0
    assert desk.line(16).repeats == 4


@pytest.mark.parametrize(
    "ran", [3, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 2, 4, 5))]
)
def test_wherever_it_is_stopped_the_same_command_goes_on(desk: Desk, ran: int) -> None:
    launcher = Scripted()
    stopped = desk.sweep(launcher, rounds=3, stop=lambda: len(launcher.launched) >= ran and not launcher.left)
    assert stopped.limits.stop.is_resumable
    assert stopped.ran == ran
    desk.sweep(rounds=3)
    assert desk.measured() == [*whole(16, 3), *whole(32, 3)]


@pytest.mark.slow
def test_fresh_measures_every_round_again_and_older_ones_count_no_more(desk: Desk) -> None:
    desk.sweep(by_turns(b16=(1.0,)), rounds=3, batch_size="16")
    assert desk.sweep(by_turns(b16=(9.0,)), rounds=2, batch_size="16", fresh=True).ran == 2
    assert [(r.round, r.attempt) for r in desk.records()] == [(1, 1), (2, 2), (3, 3), (1, 4), (2, 5)]
    line = desk.line(16)
    # Round 3 was of what was measured before.
    assert (line.repeats, line.epoch_time_s) == (2, pytest.approx(9.0))
    assert desk.sweep(rounds=3, batch_size="16").ran == 1


@pytest.mark.slow
def test_what_did_not_end_ok_in_the_first_round_is_in_no_further_one(desk: Desk) -> None:
    launcher = fails_in(1, script=scripted.runs_out_of_gpu_memory)
    assert desk.sweep(launcher, rounds=3, batch_size="8,16").ran == 4
    assert Counter(launcher.batches) == {8: 3, 16: 1}
    launcher = fails_in(1)
    assert desk.sweep(launcher, rounds=3, batch_size="16", lr="0.02").failed == 1
    assert launcher.batches == [16]


@pytest.mark.slow
def test_a_failed_further_round_is_told_and_left_until_it_is_asked_for(desk: Desk) -> None:
    summary = desk.sweep(fails_in(2), rounds=3)
    assert summary.failed == 1
    assert desk.measured() == [(16, 1, 1, "ok"), (16, 2, 2, "failed"), *whole(32, 3)]
    assert desk.line(16).status == "1 ok, 1 failed"
    again = desk.sweep(rounds=3)
    assert (again.ran, again.failed) == (0, 1)
    work = desk.work(rounds=3)
    # The next time it is counted as failed, too.
    assert count_again(work).failed == 1
    assert desk.sweep(rounds=3, retry="failed").ran == 2
    assert desk.measured()[:4] == [(16, 1, 1, "ok"), (16, 2, 2, "failed"), (16, 2, 3, "ok"), (16, 3, 4, "ok")]
    assert desk.line(16).repeats == 3


@pytest.mark.slow
def test_a_further_round_out_of_memory_skips_nothing_else(desk: Desk) -> None:
    """What is larger did fit in the first round."""
    summary = desk.sweep(fails_in(2, script=scripted.runs_out_of_gpu_memory), rounds=2)
    assert (summary.ran, summary.skipped) == (4, 0)


@pytest.mark.slow
def test_repeats_are_measured_in_every_round(desk: Desk) -> None:
    launcher = Scripted()
    desk.sweep(launcher, rounds=2, repeats=3, batch_size="16")
    assert Counter(order.seed for order in launcher.launched) == {0: 2, 1: 2, 2: 2}
    assert desk.line(16).repeats == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "protocol", "kind"),
    [
        ({}, SteadyWindow(window_s=WINDOW_S["cpu"]), "steady rate"),
        ({"window": "0.4s"}, SteadyWindow(window_s=0.4), "steady rate"),
        ({"steps": "5"}, SteadyWindow(window_s=None, steps=5), "steady rate"),
        ({"epochs": "2"}, WholeEpochs(epochs=2, warmup_epochs=1), "whole epochs"),
    ],
)
def test_every_round_measures_alike(desk: Desk, asked: Any, protocol: Protocol, kind: str) -> None:
    launcher = Scripted()
    desk.sweep(launcher, rounds=2, batch_size="16", **asked)
    assert [order.protocol for order in launcher.launched] == [protocol] * 2
    first, second = desk.records()
    assert (first.round, second.round) == (1, 2)
    assert [row_of(record).kind for record in (first, second)] == [kind] * 2
    for alike in (
        lambda record: [(row["epoch"], row["warmup"], row["steps"]) for row in record.epochs],
        lambda record: {name for name, value in vars(record.result).items() if value is not None},
        lambda record: record.missing,
    ):
        assert alike(first) == alike(second)
    assert [row["warmup"] for row in first.epochs] == [True, False]


# ---- when they end ----


@pytest.mark.slow
def test_what_is_known_well_enough_drops_out(desk: Desk) -> None:
    """b16 is the same each time and sure after 3 processes; b32 is not within 2 % before the rounds are over."""
    launcher = by_turns(b16=(1.0,), b32=(1.0, 1.2))
    summary = desk.sweep(launcher, rounds=5, within="2%")
    assert Counter(launcher.batches) == {16: 3, 32: 5}
    assert summary.limits.certainty.unsure == 1
    assert desk.sweep(rounds=5, within="2%").ran == 0


@pytest.mark.slow
def test_a_record_without_its_epochs_is_measured_on_all_the_same(desk: Desk) -> None:
    desk.sweep()
    for file in (desk.folder / "records").rglob("*.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"epochs": []}))
    assert desk.sweep(rounds=2).ran == 2
    assert desk.measured() == [*whole(16, 2), *whole(32, 2)]


@pytest.mark.slow
def test_three_processes_within_the_share_are_needed_and_enough(desk: Desk) -> None:
    """ln: -0.01, 0, 0.01: a standard error of 0.01 / sqrt(3), times 4.303 is 2.48 % to either side."""
    times = (0.99005, 1.0, 1.01005)
    assert desk.sweep(by_turns(b16=times), rounds=9, within="2.6%", batch_size="16").ran == 3
    assert desk.sweep(by_turns(b16=times), rounds=4, within="2.4%", batch_size="16").ran == 1, "a fourth"


@pytest.mark.slow
def test_a_sweep_that_is_not_sure_enough_says_so_with_the_command_that_goes_on(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"rounds": 3, "within": "2%"}
    summary = desk.sweep(by_turns(b16=(1.0, 1.5), b32=(1.0,)), **asked)
    assert summary.limits.certainty.unsure == 1
    assert desk.closing(capsys, summary, **asked) == [summary.limits.certainty.closing_line()]
    work = desk.work(**asked)
    # The same command says it again.
    assert count_again(work).limits.certainty.unsure == 1


@pytest.mark.slow
def test_what_fails_every_time_is_not_tried_a_hundred_times(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = fails_in(*range(2, 200))
    summary = desk.sweep(launcher, within="2%")
    assert Counter(launcher.batches) == {16: 2, 32: 3}
    (line,) = desk.closing(capsys, summary, within="2%")
    # It does not say that the time is unknown after a hundred rounds.
    assert line.startswith("1 failed: ")


@pytest.mark.slow
def test_a_budget_ends_further_rounds_and_never_the_first(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = desk.sweep(budget="0.001s")
    assert (summary.ran, summary.limits.certainty.is_over_budget, summary.limits.stop.is_resumable) == (
        2,
        True,
        False,
    )
    assert desk.measured() == [*whole(16, 1), *whole(32, 1)]
    assert desk.closing(capsys, summary, budget="0.001s") == [summary.limits.certainty.closing_line()]
    # What is left is measured when there is time.
    assert desk.sweep(rounds=2, budget="10m").ran == 2


def test_what_is_left_out_for_the_budget_is_left_to_do(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.sweep(rounds=1)
    summary = desk.sweep(budget="0.001s")
    (line,) = desk.closing(capsys, summary, budget="0.001s")
    assert "0.001 s has no room" in line


def test_a_budget_does_not_hide_what_is_not_known(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    asked = {"within": "2%", "budget": "0.001s"}
    summary = desk.sweep(**asked)
    assert (summary.limits.certainty.is_over_budget, summary.limits.certainty.unsure) == (True, 2)
    (line,) = desk.closing(capsys, summary, **asked)
    assert "0.001 s has no room" in line
    assert "2 trials are not known" in line


# ---- which questions are open ----

ANSWERED = "every question of the table that further rounds can answer is answered, after"


@pytest.mark.slow
def test_a_budget_goes_to_what_is_open_and_ends_where_nothing_is(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """16 against 32 is clear at once, so 16 drops out. 64 takes as long as 32 in four rounds, then thrice as long."""
    launcher = by_turns(b16=(1.0,), b32=(0.25,), b64=(*(0.25, 0.26, 0.27, 0.24), *[0.75] * 96))
    summary = desk.sweep(launcher, batch_size="16,32,64", budget="10h")
    turns = Counter(launcher.batches)
    assert turns[16] == 3
    assert 6 < turns[32] == turns[64] < 40
    assert (summary.limits.certainty.is_over_budget, summary.limits.certainty.answered) == (False, turns[64])
    line = f"{ANSWERED} {turns[64]} rounds"
    assert line in desk.closing(capsys, summary, batch_size="16,32,64", budget="10h")
    assert desk.sweep(batch_size="16,32,64", budget="20h").ran == 0
    work = desk.work(batch_size="16,32,64", budget="20h")
    assert [item.state for item in work.pending()] == ["done"] * 3
    assert count_again(work).limits.certainty.answered == turns[64]


@pytest.mark.slow
def test_all_are_answered_after_three_rounds_where_all_is_clear(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    launcher = by_turns(b16=(1.0,), b32=(0.5,))
    summary = desk.sweep(launcher, budget="10h")
    assert Counter(launcher.batches) == {16: 3, 32: 3}
    assert desk.closing(capsys, summary, budget="10h") == [f"{ANSWERED} 3 rounds"]
    assert ["left of the budget" in line for line in desk.view.ended] == [True, True, False]


@pytest.mark.slow
def test_without_a_question_a_budget_is_used_up(desk: Desk) -> None:
    """One row: nothing else says what is enough."""
    launcher = Scripted()
    stopped = desk.sweep(
        launcher,
        batch_size="16",
        budget="10h",
        stop=lambda: len(launcher.launched) >= 7 and not launcher.left,
    )
    assert (stopped.ran, stopped.limits.stop.is_resumable, stopped.limits.certainty.answered) == (
        7,
        True,
        None,
    )


@pytest.mark.slow
def test_a_certainty_or_a_number_of_rounds_asks_for_more_than_answers(desk: Desk) -> None:
    launcher = by_turns(b16=(1.0, 1.1), b32=(0.2,))
    assert desk.sweep(launcher, rounds=6, budget="10h").limits.certainty.answered is None
    assert Counter(launcher.batches) == {16: 6, 32: 6}
    launcher = by_turns(b16=(1.0, 1.1), b32=(0.2,))
    desk.sweep(launcher, rounds=9, within="0.1%", budget="10h")
    assert Counter(launcher.batches) == {16: 3}


@pytest.mark.slow
def test_a_row_in_no_question_has_three_processes_and_leaves_the_budget_to_questions(desk: Desk) -> None:
    """Of two learning rates, only one has two batch sizes, and they cost about the same."""
    times = {(0.01, 16): cycle((0.5, 0.6, 0.7)), (0.01, 32): cycle((0.5, 0.7, 0.6, 0.8))}
    alone = cycle((0.3,))
    launcher = Scripted(
        lambda order: trains_for(next(times.get((order.trial.lr, order.trial.batch_size), alone)))
    )
    desk.sweep(
        launcher, lr="0.01,0.02", excludes=("lr=0.02,batch_size=32",), budget="10h",
        stop=lambda: len(launcher.launched) >= 13 and not launcher.left,
    )  # fmt: skip
    turns = Counter((order.trial.lr, order.trial.batch_size) for order in launcher.launched)
    assert turns == {(0.01, 16): 5, (0.01, 32): 5, (0.02, 16): 3}


@pytest.mark.slow
def test_a_question_that_can_not_be_answered_any_more_takes_no_budget(desk: Desk) -> None:
    """The third process of 16 fails, and what fails in a further round is in no later one."""
    launcher = fails_in(3)
    summary = desk.sweep(launcher, budget="10h")
    assert Counter(launcher.batches) == {16: 3, 32: 3}
    assert (summary.failed, summary.limits.certainty.answered) == (1, None)
    again = desk.sweep(budget="10h", retry="failed")
    assert (again.ran, again.failed, again.limits.certainty.answered) == (1, 0, 3)


@pytest.mark.slow
def test_a_repeat_that_failed_does_not_end_the_others_of_its_row(desk: Desk) -> None:
    """Of two repeats of 16 one fails in the second round. The other one can still answer whether 32 is faster."""
    times, turns = cycle((0.5, 0.8, 0.65)), Counter[tuple[int, int]]()

    def choose(order: TrialOrder) -> Script:
        turns[own := (order.trial.batch_size, order.seed)] += 1
        return scripted.raises if own == (16, 1) and turns[own] == 2 else trains_for(next(times))

    launcher = Scripted(choose)
    desk.sweep(
        launcher, budget="10h", repeats=2,
        stop=lambda: len(launcher.launched) >= 24 and not launcher.left,
    )  # fmt: skip
    assert turns[16, 1] == 2
    assert min(turns[16, 0], turns[32, 0], turns[32, 1]) > 5


@pytest.mark.slow
def test_a_group_that_is_decided_drops_out_and_so_do_its_trials_alone(desk: Desk) -> None:
    def choose(order: TrialOrder) -> Script:
        return trains_for(2.0 if order.jobs > 1 else 1.0)

    launcher = Scripted(choose)
    summary = desk.sweep(launcher, budget="10h", jobs=("batch_size=16", "batch_size=16,lr=0.02"))
    assert summary.limits.certainty.answered == 3
    assert Counter(order.jobs for order in launcher.launched) == {1: 6, 2: 6}


@pytest.mark.slow
def test_what_is_left_of_a_budget_is_the_most_that_it_may_take(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    """The announcement, the dry run and what is shown meanwhile say that questions may end it sooner."""
    until = "2 trials to run in rounds for 10 min, or until every question of the table is answered"
    work = desk.work(budget="10m")
    assert until in announcement_lines(work, work.pending())[0]
    assert until in dry_run(desk, capsys, budget="10m")[-1]

    desk.sweep(budget="10m")
    assert all(one.left.at_most == (one.left.until == "of the budget") for one in desk.view.shown)
    assert any(one.left.at_most for one in desk.view.shown)


# ---- groups ----


@pytest.mark.slow
def test_groups_take_part_and_are_compared_by_geometric_means(desk: Desk) -> None:
    """Alone 1, 2 and 4 s: 2. Together 3 s each time: 1.5 times as long."""
    alone = cycle((1.0, 2.0, 4.0))

    def choose(order: TrialOrder) -> Script:
        return trains_for(3.0) if order.jobs > 1 else trains_for(next(alone))

    desk.sweep(Scripted(choose), rounds=3, jobs=("batch_size=16", "batch_size=16,lr=0.02"))
    rows = desk.rows()
    jobs = rows[rows["group"].notna()]
    assert Counter(jobs["round"]) == {1: 2, 2: 2, 3: 2}
    table = pd.read_csv(desk.folder / "table.csv")
    together = table[table["job"].notna() & table["slowdown"].notna()]
    assert len(together) == 2
    solos = rows[rows["group"].isna()]
    for job in together.to_dict("records"):
        own = solos[solos["lr"] == job["lr"]]["epoch_time_s"]
        mean = statistics.geometric_mean(own)
        assert job["solo_epoch_time_s"] == pytest.approx(mean, rel=1e-4)
        assert job["slowdown"] == pytest.approx(3.0 / mean, rel=1e-4)


# ---- what is said ----


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "asked", "part", "is_of_one_round"),
    [
        (0, {"rounds": 3}, ": 2 trials to run in 3 rounds, roughly ", False),
        (0, {"rounds": 100}, ": 2 trials to run in 100 rounds, roughly ", False),
        (0, {"within": "2%"}, " in rounds until each time is known within 2 %, roughly ", True),
        (
            0,
            {"rounds": 5, "within": "2%", "budget": "60s"},
            " in at most 5 rounds, until each time is known within 2 % or for 60 s, roughly ",
            True,
        ),
        (2, {"rounds": 3}, ": 2 trials to run in 3 rounds, about ", False),
    ],
)
def test_the_announcement_says_how_many_rounds(
    desk: Desk, before: int, asked: dict[str, Any], part: str, is_of_one_round: bool
) -> None:
    """`before`: rounds that are measured already. `is_of_one_round`: whether the time is of one round."""
    if before:
        desk.sweep(rounds=before)
    work = desk.work(**asked)
    line = announcement_lines(work, work.pending())[0]
    assert part in line
    assert (" a round, results in" in line) == is_of_one_round


def dry_run(desk: Desk, capsys: pytest.CaptureFixture[str], **asked: Any) -> list[str]:
    work = desk.work(**asked)
    print_plan(work, work.pending())
    return capsys.readouterr().out.splitlines()


def test_a_dry_run_says_which_rounds_are_left(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    def last(**asked: Any) -> str:
        return dry_run(desk, capsys, **asked)[-1].partition("; ")[0]

    assert dry_run(desk, capsys, rounds=3)[0].endswith(" s, in 3 rounds")
    assert last(rounds=3).endswith("to run in 3 rounds")
    launcher = Scripted()
    desk.sweep(launcher, rounds=2, stop=lambda: len(launcher.launched) >= 3 and not launcher.left)
    names = sorted(line.rpartition(", in ")[2] for line in dry_run(desk, capsys, rounds=3)[:2])
    assert names == ["rounds 2 and 3", "rounds 3"]
    expected: dict[str, dict[str, Any]] = {
        "2 trials to run in 3 rounds": {"rounds": 3},
        "1 trial to run (of 2 planned) in 2 rounds": {"rounds": 2},
        "2 trials to run (of 3 planned) in 2 rounds": {"rounds": 2, "batch_size": "16,32,64"},
    }
    for line, asked in expected.items():
        assert last(**asked) == line
    assert "not reused" not in "".join(dry_run(desk, capsys, rounds=3))
    assert "done (ok)" in dry_run(desk, capsys)[0]


def test_a_dry_run_of_rounds_without_a_number_tells_of_the_next(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    def first(**asked: Any) -> str:
        return dry_run(desk, capsys, batch_size="16", **asked)[0].partition(" s ")[2]

    follow = "further rounds may follow"
    assert first(within="2%") == f"in round 1; {follow}"
    desk.sweep(rounds=1, batch_size="16")
    assert first(within="2%") == f"in round 2; {follow}"
    assert first(within="2%", rounds=2) == "in round 2"


def test_a_round_of_which_the_budget_lets_nothing_run_is_not_announced(desk: Desk) -> None:
    desk.sweep(rounds=1)
    assert desk.sweep(rounds=3, budget="0.001s").limits.certainty.is_over_budget
    assert not [line for line in desk.view.lines if line.startswith("round")]


@pytest.mark.slow
def test_json_lines_of_what_was_done_tell_every_round(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.sweep(rounds=2, batch_size="16")
    work = desk.work(rounds=3, batch_size="16")
    planned = work.pending()
    told: list[Any] = []
    ended = run_with(Scripted(), work, Heard(), emit=told.append)
    finish(work, planned, ended, ended.limits, Heard(), "json")
    before = [json.loads(line)["round"] for line in capsys.readouterr().out.splitlines()]
    assert ([row.round for row in told], before) == ([3], [1, 2])


def test_the_progress_of_a_window_is_in_steps(desk: Desk) -> None:
    desk.sweep(Scripted(lambda _: scripted.lasts(0.5)), rounds=2, batch_size="16", steps="8")
    windows = [one for one in desk.view.shown if one.steps == 8]
    assert {one.epochs for one in windows} == {None}
    assert max(one.step or 0 for one in windows) > 1


@pytest.mark.slow
def test_a_row_is_of_one_set_of_versions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older torch measured in the first round gets no further rounds by a newer one, until it is asked for."""
    desk.sweep(rounds=1)
    monkeypatch.setattr(environment, "_version", lambda package: f"{package} of tomorrow")
    later = desk.sweep(rounds=3)
    assert (later.ran, later.reused, later.stale) == (0, 2, 2)
    assert [number for _, number, *_ in desk.measured()] == [1, 1]
    assert desk.sweep(rounds=3, retry="stale").ran == 6
    assert set(desk.rows()["torch"]) == {"torch of tomorrow"}


@pytest.mark.slow
def test_a_question_about_a_row_of_other_versions_takes_no_budget(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That row gets no further rounds, so more of the other one would answer nothing."""
    desk.sweep(by_turns(b16=(1.0, 1.3, 0.8)), rounds=3, batch_size="16")
    monkeypatch.setattr(environment, "_version", lambda package: f"{package} of tomorrow")
    launcher = by_turns(b32=(1.1, 0.9, 1.2))
    assert desk.sweep(launcher, budget="10h").limits.certainty.answered is None
    assert Counter(launcher.batches) == {32: 3}
