"""Rounds: how they are asked for, which units each measures, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from fakes import record

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Experiment
from gpubench.plan.experiment_file import format_experiment, parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.rounds import ONE, RoundLimits, parse_rounds
from gpubench.plan.sources import DiskSources
from gpubench.plan.state import plan_further_round
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.schema.record import Record

BASE = 'name = "x"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'

# ---- how they are asked for ----


@pytest.mark.parametrize(
    ("rounds", "most"),
    [
        (RoundLimits(), 3),
        (RoundLimits(repeats=2), 2),
        (RoundLimits(repeats=3), 1),
        (RoundLimits(number=5, repeats=3), 5),
        (RoundLimits(within_pct=2.0), 100),
        (RoundLimits(budget_s=60.0, repeats=3), 100),
        (RoundLimits(number=4, within_pct=2.0), 4),
        (ONE, 1),
    ],
)
def test_unasked_each_configuration_gets_three_processes(rounds: RoundLimits, most: int) -> None:
    """In rounds, in repeats, or both; a certainty or a budget without a number goes on until it is reached."""
    assert rounds.most == most


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ((0, None, None), "rounds: 0 is not from 1 to 100"),
        ((None, "0%", None), "within: '0%' is not a share above 0 and up to 100 %"),
        ((None, "0.02", None), "within 0.02: write 2% or 0.02%"),
        ((None, 0.07, None), 'within 0.07: write "7%" or "0.07%"'),
        ((None, None, "0s"), "budget: the time must be longer than 0"),
        ((None, None, "soon"), "budget: 'soon' is not a time"),
    ],
)
def test_what_can_not_be_meant_is_refused(asked: tuple[Any, Any, Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_rounds(*asked)
    assert says in str(caught.value)


def in_file(run: str, **options: Any) -> Experiment:
    return apply_options(parse_experiment(f"{BASE}[run]\n{run}", "x"), ExperimentOptions(**options))


def test_options_change_what_they_name_of_a_files_rounds() -> None:
    assert in_file("").rounds == RoundLimits()
    for text, pct in (('" 2 % "', 2.0), ('"0.02%"', 0.02), ("2.5", 2.5), ("1", 1.0)):
        assert in_file(f"within = {text}\n").rounds == RoundLimits(within_pct=pct)
    run = 'rounds = 5\nwithin = "2%"\nbudget = "10m"\n'
    assert in_file(run).rounds == RoundLimits(number=5, within_pct=2.0, budget_s=600.0)
    assert in_file(run, rounds=1).rounds == RoundLimits(number=1, within_pct=2.0, budget_s=600.0)
    assert in_file(run, budget="1m").rounds == RoundLimits(number=5, within_pct=2.0, budget_s=60.0)
    assert in_file("rounds = 5\n", within="1%").rounds == RoundLimits(number=5, within_pct=1.0)
    assert in_file("rounds = 1\n", within="1%").rounds == RoundLimits(within_pct=1.0)
    assert in_file("rounds = 1\n", budget="1m").rounds == RoundLimits(budget_s=60.0)
    assert in_file("rounds = 1\n", within="1%", rounds=1).rounds == RoundLimits(number=1, within_pct=1.0)
    assert in_file("", rounds=3).rounds == RoundLimits(number=3)
    assert in_file("repeats = 2\n").rounds.most == 2
    assert in_file("repeats = 2\n", repeats=3).rounds.most == 1
    assert in_file("rounds = 4\n", repeats=3).rounds.most == 4


def test_a_stored_plan_says_which_rounds_were_asked_for() -> None:
    all_three = 'rounds = 5\nwithin = "2%"\nbudget = "10m"\n'
    for run in ("", "rounds = 1\n", "repeats = 2\n", 'within = "3%"\n', all_three):
        swept = in_file(run)
        assert parse_experiment(format_experiment(swept, {}), "x").rounds == swept.rounds
    assert "rounds" not in format_experiment(in_file(""), {})


def test_only_a_budget_without_a_number_of_rounds_ends_with_the_answers() -> None:
    assert in_file("", budget="1m").rounds.is_until_answered
    assert not in_file("", budget="1m", rounds=100).rounds.is_until_answered
    assert not in_file("", budget="1m", within="2%").rounds.is_until_answered


# ---- which units, in which order ----


def plan_of(batches: str, **fields: str) -> Plan:
    given = ExperimentOptions(fields={"batch_size": batches, **fields})
    return expand_experiment(
        apply_options(parse_experiment(BASE, "x"), given), device="cpu", sources=DiskSources()
    )


def ended(units: Any, *statuses: str) -> dict[str, Record]:
    """Trial id -> an attempt that ended like this, a status a unit; `-` for none."""
    return {
        unit.unit_id: record(trial_id=unit.unit_id, status=status, reason="why")
        for unit, status in zip(units, statuses, strict=True)
        if status != "-"
    }


def told(planned: Any) -> dict[int, str]:
    return {item.unit.jobs[0].trial.batch_size: item.state for item in planned}


def test_what_ended_ok_in_the_first_round_is_measured_again() -> None:
    units = plan_of("1,2,4,8,16,32").units
    rounds = {1: ended(units, "ok", "oom", "failed", "timeout", "interrupted", "-")}
    assert told(plan_further_round(units, 2, rounds)) == {1: "run"}


def test_what_a_round_has_already_is_not_measured_twice() -> None:
    units = plan_of("1,2,4,8,16,32").units
    rounds = {
        1: ended(units, *["ok"] * 6),
        2: ended(units, "ok", "oom", "failed", "timeout", "interrupted", "-"),
    }
    assert told(plan_further_round(units, 2, rounds)) == {
        1: "done", 2: "done", 4: "failed", 8: "failed", 16: "run", 32: "run"
    }  # fmt: skip
    again = told(plan_further_round(units, 2, rounds, frozenset({"failed", "oom"})))
    assert again == {1: "done", 2: "run", 4: "run", 8: "failed", 16: "run", 32: "run"}


def test_what_failed_in_one_round_is_in_no_later_one() -> None:
    """Else a trial that fails each time would fail a hundred times where a certainty ends the rounds."""
    units = plan_of("1,2,4,8,16").units
    rounds = {1: ended(units, *["ok"] * 5), 2: ended(units, "ok", "failed", "oom", "timeout", "interrupted")}
    assert told(plan_further_round(units, 3, rounds)) == {1: "run", 16: "run"}
    assert told(plan_further_round(units, 4, rounds)) == {1: "run", 16: "run"}


BATCHES = "1,2,4,8,16,32,64,128"


def order(units: Any, number: int, rounds: Any) -> list[int]:
    return list(told(plan_further_round(units, number, rounds)))


def test_the_order_of_a_round_is_drawn_from_the_seed_and_differs_between_rounds() -> None:
    units = plan_of(BATCHES).units
    rounds = {1: ended(units, *["ok"] * 8)}
    two, four = order(units, 2, rounds), order(units, 4, rounds)
    assert sorted(two) == sorted(four) == [1, 2, 4, 8, 16, 32, 64, 128]
    assert two not in (four, four[::-1])
    assert [1, 2, 4, 8, 16, 32, 64, 128] not in (two, four)
    seeded = plan_of(BATCHES, seed="7").units
    assert order(seeded, 2, {1: ended(seeded, *["ok"] * 8)}) != two


def test_a_trial_alone_is_measured_before_and_after_its_group() -> None:
    """In two rounds each: the second goes back the way that the first came."""
    asked = apply_options(
        parse_experiment(BASE, "x"), ExperimentOptions(jobs=("batch_size=1", "batch_size=2"))
    )
    units = expand_experiment(asked, device="cpu", sources=DiskSources()).units
    first = {job.trial_id: record(trial_id=job.trial_id) for unit in units for job in unit.jobs}
    rounds = {1: first}
    for number in (2, 4, 6):
        there = [item.unit.unit_id for item in plan_further_round(units, number, rounds)]
        back = [item.unit.unit_id for item in plan_further_round(units, number + 1, rounds)]
        assert len(there) == 3
        assert back == there[::-1]
    one_job = units[-1].jobs[1].trial_id
    failed = {1: {**first, one_job: record(trial_id=one_job, status="failed")}}
    assert plan_further_round(units[-1:], 2, failed) == [], "one of its jobs did not end ok"


def test_the_order_is_the_same_when_resumed_and_when_a_unit_drops_out() -> None:
    units = plan_of(BATCHES).units
    rounds = {1: ended(units, *["ok"] * 8)}
    whole = order(units, 2, rounds)
    half = {**rounds, 2: ended(units, "ok", "-", "ok", "-", "ok", "-", "ok", "-")}
    assert order(units, 2, half) == whole
    assert order(units[:5], 2, rounds) == [batch for batch in whole if batch <= 16]


def test_every_place_of_a_round_is_as_likely() -> None:
    """Of 60 rounds that don't go back each of 3 trials comes first in 20, give or take 3.7."""
    units = plan_of("1,2,4").units
    rounds = {1: ended(units, "ok", "ok", "ok")}
    firsts = [order(units, number, rounds)[0] for number in range(2, 122, 2)]
    assert all(8 < firsts.count(batch) < 32 for batch in (1, 2, 4))
