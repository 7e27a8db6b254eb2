"""A trial that is there for groups alone runs where one of them does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import Given

from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity
from gpubench.plan.state import STALE_BY, plan_first_round
from gpubench.schema import catalog


def plan_of(*copies: int) -> Plan:
    """Groups of so many equal jobs, each pinned to its own CPUs, and the trial alone that all are compared with."""
    asked = Experiment(
        name="t",
        fixed={"model": "lenet", "variant": "synthetic", "cpu_sharing": "pinned"},
        axes=(Axis(("copies",), tuple((number,) for number in copies)),),
        variants=catalog.VARIANTS,
    )
    return expand_experiment(asked, device="cuda", sources=Given())


@pytest.mark.parametrize(
    ("cpus", "states"),
    [
        (3, ["run", "run", "run"]),
        (2, ["run", "run", "skip"]),
        (1, ["skip", "skip", "skip"]),
    ],
)
def test_a_baseline_is_skipped_where_all_of_its_groups_are(cpus: int, states: list[str]) -> None:
    plan = plan_of(2, 3)
    planned = plan_first_round(
        plan,
        {},
        oom=KnownOutOfMemory(),
        room=NodeCapacity(gpus=1, cpus=cpus),
        environment=dict.fromkeys(STALE_BY, "1.0"),
    )
    assert [item.unit for item in planned] == list(plan.units)
    assert [item.state for item in planned] == states
    baseline, first, _ = planned
    if baseline.state == "skip":
        assert baseline.why == f"only {first.unit.group} needs it: {first.why}"


def test_a_trial_of_the_plan_itself_runs_though_all_of_its_groups_are_skipped() -> None:
    plan = plan_of(2, 3)
    alone, *groups = plan.units
    planned = plan_first_round(
        replace(plan, units=(replace(alone, baseline=False), *groups)),
        {},
        oom=KnownOutOfMemory(),
        room=NodeCapacity(gpus=1, cpus=1),
        environment=dict.fromkeys(STALE_BY, "1.0"),
    )
    assert [item.state for item in planned] == ["run", "skip", "skip"]
