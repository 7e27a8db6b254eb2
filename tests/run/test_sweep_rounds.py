"""A sweep in rounds, with scripted trials: what each measures, what ends them, what is said and stored."""

from __future__ import annotations

import dataclasses
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
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results
from gpubench.run.announce import print_plan
from gpubench.run.closing import print_result
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Record

BASE = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\ntrain_images = 640\n'
BASE += "[run]\n"


@dataclasses.dataclass(kw_only=True)
class Desk:
    """A results folder, and sweeps in rounds into it one after the other."""

    folder: Path
    view: Heard = dataclasses.field(default_factory=Heard)
    last_work: SweepState = dataclasses.field(init=False)

    def work(
        self, *, retry: str = "", fresh: bool = False, jobs: tuple[str, ...] = (), **asked: Any
    ) -> SweepState:
        own = ("rounds", "within", "budget", "repeats", "excludes")
        options = {name: asked.pop(name) for name in own if name in asked} or {"rounds": 1}
        fields = {"batch_size": "16,32", **asked} if not jobs else asked
        experiment = apply_options(
            parse_experiment(BASE, "x"), ExperimentOptions(fields=fields, jobs=jobs, **options)
        )
        machine = scripted.computer(cpus=2)
        plan = make_plan(experiment, machine, DiskSources(), "given")
        again = frozenset(retry.split(",") if retry else ())
        made = sweep_of(plan, self.folder, machine, retry=again, fresh=fresh)
        made.load()
        return made

    def sweep(
        self, launcher: Scripted | None = None, *, stop: Callable[[], bool] = lambda: False, **asked: Any
    ) -> Ended:
        """`gpubench sweep` with these options."""
        work = self.work(**asked)
        work.runner.results.create_folder()
        store_plan(work)
        self.view, launcher = Heard(), launcher or Scripted()
        summary = run_with(launcher, work, self.view, stop, has_tables=False)
        self.last_work = work
        launcher.close()
        return summary

    def closing(self, capsys: pytest.CaptureFixture[str], ended: Ended, **asked: Any) -> list[str]:
        """What is said at the end of such a sweep."""
        work, view = self.work(**asked), Heard()
        print_result(work, work.list_planned_of_all_rounds(), ended, ended.limits, view, "quiet")
        capsys.readouterr()
        return view.lines

    def records(self) -> list[Record]:
        return Results(self.folder).read_records()

    def measured(self) -> list[tuple[int, int, int, str]]:
        """Batch size, round, attempt and ending of all that is stored."""
        return sorted((r.trial["batch_size"] or 0, r.round, r.attempt, r.status) for r in self.records())

    def rows(self) -> pd.DataFrame:
        self.last_work.write_tables()
        return pd.read_csv(self.folder / "trials.csv")

    def explain_stop(self, batch: int) -> pd.Series[Any]:
        """The line of table.csv."""
        self.last_work.write_tables()
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
    line = desk.explain_stop(16)
    assert (line.repeats, line.epoch_time_s) == (3, pytest.approx(2.0))
    assert line.epoch_time_low_s == pytest.approx(2 / 5.596, rel=1e-3)
    assert line.epoch_time_high_s == pytest.approx(2 * 5.596, rel=1e-3)
    assert "3 processes a row" in (desk.folder / "table.md").read_text()


@pytest.mark.slow
def test_more_rounds_later_add_to_those_there_are_and_fewer_take_none_away(desk: Desk) -> None:
    desk.sweep(rounds=3)
    assert desk.sweep(rounds=4).ran == 2
    assert desk.measured() == [*whole(16, 4), *whole(32, 4)]
    assert desk.sweep(rounds=1).ran == 0
    assert desk.explain_stop(16).repeats == 4


@pytest.mark.parametrize("ran", [3, *(pytest.param(number, marks=pytest.mark.slow) for number in (1, 4))])
def test_wherever_it_is_stopped_the_same_command_goes_on(desk: Desk, ran: int) -> None:
    launcher = Scripted()
    stopped = desk.sweep(launcher, rounds=3, stop=lambda: len(launcher.launched) >= ran and not launcher.left)
    assert stopped.limits.stop.is_resumable
    assert stopped.ran == ran
    desk.sweep(rounds=3)
    assert desk.measured() == [*whole(16, 3), *whole(32, 3)]


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
    assert desk.explain_stop(16).status == "1 ok, 1 failed"
    again = desk.sweep(rounds=3)
    assert (again.ran, again.failed) == (0, 1)
    work = desk.work(rounds=3)
    # The next time it is counted as failed, too.
    assert count_again(work).failed == 1
    assert desk.sweep(rounds=3, retry="failed").ran == 2
    assert desk.measured()[:4] == [(16, 1, 1, "ok"), (16, 2, 2, "failed"), (16, 2, 3, "ok"), (16, 3, 4, "ok")]
    assert desk.explain_stop(16).repeats == 3


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
    assert desk.closing(capsys, summary, budget="0.001s") == [summary.limits.certainty.format_closing_line()]
    # What is left is measured when there is time.
    assert desk.sweep(rounds=2, budget="10m").ran == 2


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
    """16 against 32 is clear at once, so 16 drops out; 64, which takes longer and longer, is not before five rounds."""
    launcher = by_turns(b16=(1.0,), b32=(0.25,), b64=(0.5, 0.6, *[0.75] * 96))
    summary = desk.sweep(launcher, batch_size="16,32,64", budget="10h")
    turns = Counter(launcher.batches)
    assert turns[16] == 3
    assert 3 < turns[32] == turns[64] < 20
    assert (summary.limits.certainty.is_over_budget, summary.limits.certainty.answered) == (False, turns[64])
    line = f"{ANSWERED} {turns[64]} rounds"
    assert line in desk.closing(capsys, summary, batch_size="16,32,64", budget="10h")
    assert desk.sweep(batch_size="16,32,64", budget="20h").ran == 0
    work = desk.work(batch_size="16,32,64", budget="20h")
    assert [item.state for item in work.list_planned_of_all_rounds()] == ["done"] * 3
    assert count_again(work).limits.certainty.answered == turns[64]


@pytest.mark.slow
def test_a_question_that_can_not_be_answered_any_more_takes_no_budget(desk: Desk) -> None:
    """The third process of 16 fails, and what fails in a further round is in no later one."""
    launcher = fails_in(3)
    summary = desk.sweep(launcher, budget="10h")
    assert Counter(launcher.batches) == {16: 3, 32: 3}
    assert (summary.failed, summary.limits.certainty.answered) == (1, None)
    again = desk.sweep(budget="10h", retry="failed")
    assert (again.ran, again.failed, again.limits.certainty.answered) == (1, 0, 3)


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


def dry_run(desk: Desk, capsys: pytest.CaptureFixture[str], **asked: Any) -> list[str]:
    work = desk.work(**asked)
    print_plan(work, work.list_planned_of_all_rounds())
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


@pytest.mark.slow
def test_a_row_is_of_one_set_of_versions(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an older torch measured in the first round gets no further rounds by a newer one, until it is asked for."""
    desk.sweep(rounds=1)
    monkeypatch.setattr(environment, "_find_package_version", lambda package: f"{package} of tomorrow")
    later = desk.sweep(rounds=3)
    assert (later.ran, later.reused, later.stale) == (0, 2, 2)
    assert [number for _, number, *_ in desk.measured()] == [1, 1]
    assert desk.sweep(rounds=3, retry="stale").ran == 6
    assert set(desk.rows()["torch"]) == {"torch of tomorrow"}
