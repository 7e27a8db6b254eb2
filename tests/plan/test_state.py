"""What is to become of each trial: done, to run, skipped, or failed before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from fakes import Given, record
from msgspec import structs

from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.skips import KnownOutOfMemory, NodeCapacity
from gpubench.plan.state import (
    STALE_BY,
    PlannedUnit,
    collect_out_of_memory,
    is_record_stale,
    list_units_by_round,
    merge_planned_rounds,
    plan_first_round,
)
from gpubench.schema import catalog
from gpubench.schema.record import Record, Status

HERE = dict.fromkeys(STALE_BY, "1.0")
ROOM = NodeCapacity(gpus=1, cpus=2)


def judge(plan: Plan, chosen: Mapping[str, Record] = MappingProxyType({}), **more: Any) -> list[PlannedUnit]:
    """What is to become of each unit in the first round, by the attempts that count."""
    given: dict[str, Any] = {"oom": KnownOutOfMemory(), "room": ROOM, "environment": HERE, **more}
    return plan_first_round(plan, chosen, **given)


def judge_known(
    plan: Plan, chosen: Mapping[str, Record], retry: str = "", *, fresh: bool = False
) -> list[str]:
    """The states, where what ran out of memory is known by the same attempts."""
    oom = collect_out_of_memory(chosen.values())
    planned = judge(plan, chosen, oom=oom, retry={retry} - {""}, fresh=fresh)
    assert all(item.why for item in planned if item.state != "run"), "always with the reason"
    return states(planned)


def states(planned: Iterable[PlannedUnit]) -> list[str]:
    return [item.state for item in planned]


@pytest.fixture
def plan() -> Plan:
    batches = Axis(("batch_size",), ((16,), (32,), (64,)))
    asked = Experiment(name="t", fixed={"model": "lenet"}, axes=(batches,), variants=catalog.VARIANTS)
    return expand_experiment(asked, device="cuda", sources=Given())


def tried(plan: Plan, *endings: tuple[Status, ...], torch: str = "1.0") -> dict[str, Record]:
    """The attempts that count, by unit and job, in the plan's order."""
    attempts = {}
    for unit, statuses in zip(plan.units, endings, strict=False):
        solos = [{"trial_id": j.membership.solo.trial_id, "attempt": 1} for j in unit.jobs if j.membership]
        for job, status in zip(unit.jobs, statuses, strict=False):
            of_group: dict[str, Any] = {}
            if job.membership:
                of_group = {"group": job.membership.group, "group_id": job.membership.group_id}
                of_group["together"] = {"solos": solos}
            attempts[job.trial_id] = record(
                trial_id=job.trial_id,
                status=status,
                reason=f"why {status}",
                environment=HERE | {"torch": torch},
                trial=job.trial.as_json_dict(),
                variant_definition=job.variant.make_definition(),
                **of_group,
            )
    return attempts


def stored(plan: Plan, *statuses: Status, torch: str = "1.0") -> dict[str, Record]:
    """Those of trials alone."""
    return tried(plan, *((status,) for status in statuses), torch=torch)


@pytest.mark.parametrize(
    ("statuses", "retry", "fresh", "expected"),
    [
        ((), "", False, ["run", "run", "run"]),
        (("ok", "oom"), "", False, ["done", "done", "skip"]),
        (("ok", "oom"), "oom", False, ["done", "run", "run"]),
        (("ok", "oom", "ok"), "", False, ["done", "done", "done"]),
        (("oom", "failed", "interrupted"), "", False, ["done", "skip", "skip"]),
        (("failed", "timeout", "interrupted"), "", False, ["failed", "failed", "run"]),
        (("failed", "timeout", "ok"), "failed", False, ["run", "failed", "done"]),
        (("failed", "timeout", "ok"), "timeout", False, ["failed", "run", "done"]),
        (("ok", "oom", "failed"), "", True, ["run", "run", "run"]),
    ],
)
def test_a_trial_is_judged_by_how_it_ended(
    plan: Plan, statuses: tuple[Status, ...], retry: str, fresh: bool, expected: list[str]
) -> None:
    assert judge_known(plan, stored(plan, *statuses), retry, fresh=fresh) == expected


def test_what_other_versions_measured_is_stale_and_runs_again_if_asked_for(plan: Plan) -> None:
    chosen = stored(plan, "ok", "failed", torch="0.9")
    kept = judge(plan, chosen)
    assert [(item.state, item.stale) for item in kept] == [("done", True), ("failed", True), ("run", False)]
    assert states(judge(plan, chosen, retry={"stale"})) == ["run", "failed", "run"]


@pytest.mark.parametrize("name", STALE_BY)
def test_each_version_counts(name: str) -> None:
    assert not is_record_stale(record(environment=HERE | {"host": "elsewhere"}), HERE)
    assert is_record_stale(record(environment=HERE | {name: "2.0"}), HERE)


def test_too_few_gpus(plan: Plan) -> None:
    room = NodeCapacity(0, 2)
    assert states(judge(plan, room=room)) == ["skip"] * 3
    assert states(judge(plan, stored(plan, "ok"), room=room)) == ["done", "skip", "skip"], (
        "what is measured stays"
    )


def test_what_another_plan_found_out_of_memory_is_skipped_here_too(plan: Plan) -> None:
    (smallest,) = stored(plan, "oom").values()
    elsewhere = structs.replace(smallest, trial_id="t-of-another-plan")
    assert states(judge(plan, oom=collect_out_of_memory([elsewhere]))) == ["run", "skip", "skip"]
    other = structs.replace(smallest, variant_definition={"files": "none", "cpu": [], "gpu": []})
    assert states(judge(plan, oom=collect_out_of_memory([other]))) == ["run"] * 3
    odd = structs.replace(smallest, trial={"a_field_of": "the future"})
    assert collect_out_of_memory([odd]) == KnownOutOfMemory()


# ---- groups ----


def plan_copies(**fields: Any) -> Plan:
    """Two and three equal jobs; alone first, which is the same trial for both."""
    asked = Experiment(
        name="t",
        fixed={"model": "lenet", "variant": "synthetic", **fields},
        axes=(Axis(("copies",), ((2,), (3,))),),
        variants=catalog.VARIANTS,
    )
    return expand_experiment(asked, device="cuda", sources=Given())


@pytest.fixture
def groups() -> Plan:
    return plan_copies()


OK: tuple[Status, ...] = ("ok",)


def test_a_group_that_ran_before_its_baselines_runs_again_once_they_are_there(groups: Plan) -> None:
    chosen = tried(groups, OK, OK * 2, OK * 3)
    last = groups.units[2].jobs[1].trial_id
    for job in groups.units[2].jobs:
        chosen[job.trial_id] = structs.replace(chosen[last], together={"solos": [None] * 3})
    baseline = groups.units[0].jobs[0].trial_id
    lost = chosen | {baseline: structs.replace(chosen[baseline], status="failed")}
    newer = chosen | {baseline: structs.replace(chosen[baseline], attempt=2)}
    assert states(judge(groups, chosen)) == ["done", "done", "run"]
    assert states(judge(groups, lost)) == ["failed", "done", "done"]
    assert states(judge(groups, newer)) == ["done", "run", "run"], "measured again since"
    full = newer | {last: structs.replace(chosen[last], status="oom")}
    assert states(judge(groups, full)) == ["done", "run", "done"], "there is nothing to compare"


@pytest.mark.parametrize(
    ("endings", "retry", "expected"),
    [
        ((), "", ["run", "run", "run"]),
        ((OK, OK * 2, OK * 3), "", ["done", "done", "done"]),
        ((OK, OK, OK * 2), "", ["done", "run", "run"]),  # a job is missing: all run again
        ((OK, ("oom", "skipped")), "", ["done", "done", "skip"]),
        ((OK, ("skipped", "oom"), OK * 3), "", ["done", "done", "done"]),  # what is measured stays
        ((OK, ("oom", "skipped")), "oom", ["done", "run", "run"]),
        ((OK, OK * 2, ("skipped", "skipped", "oom")), "", ["done", "done", "done"]),
        ((OK, (), ("skipped", "skipped", "oom")), "", ["done", "run", "done"]),  # fewer may fit
        ((("oom",),), "", ["done", "skip", "skip"]),
        ((("oom",),), "oom", ["run", "run", "run"]),
        ((OK, ("failed", "skipped"), ("skipped", "timeout", "skipped")), "", ["done", "failed", "failed"]),
        ((OK, ("failed", "skipped"), ("skipped", "timeout", "skipped")), "failed", ["done", "run", "failed"]),
        ((OK, ("failed", "skipped"), ("skipped", "timeout", "skipped")), "timeout", ["done", "failed", "run"]),
        ((OK, ("interrupted", "interrupted")), "", ["done", "run", "run"]),
        ((("failed",), ("ok", "ok")), "", ["failed", "done", "run"]),
        ((OK, ("oom", "failed")), "", ["done", "failed", "run"]),  # not known to have run out of memory
    ],
)  # fmt: skip
def test_a_group_is_judged_by_how_all_its_jobs_ended(
    groups: Plan, endings: tuple[tuple[Status, ...], ...], retry: str, expected: list[str]
) -> None:
    assert judge_known(groups, tried(groups, *endings), retry) == expected


def test_a_failed_group_is_told_with_the_reason_of_the_job_that_failed(groups: Plan) -> None:
    assert judge(groups, tried(groups, OK, ("skipped", "failed")))[1].why == "why failed"


@pytest.mark.parametrize(
    ("unit", "job", "stale", "again"),
    [
        (1, 1, [False, True], ["done", "run"]),  # one of its jobs
        (0, 0, [True, True], ["run", "run"]),  # the trial alone that it is compared with
    ],
)
def test_a_stale_job_makes_the_group_stale_and_so_does_a_stale_trial_alone(
    groups: Plan, unit: int, job: int, stale: list[bool], again: list[str]
) -> None:
    chosen = tried(groups, OK, OK * 2)
    trial_id = groups.units[unit].jobs[job].trial_id
    chosen[trial_id] = structs.replace(chosen[trial_id], environment=HERE | {"torch": "0.9"})
    kept = judge(groups, chosen)[:2]
    assert (states(kept), [item.stale for item in kept]) == (["done", "done"], stale)
    assert states(judge(groups, chosen, retry={"stale"}))[:2] == again


@pytest.mark.parametrize(
    ("cpus", "is_of_plan", "expected"),
    [
        (3, False, ["run", "run", "run"]),
        (2, False, ["run", "run", "skip"]),
        (1, False, ["skip", "skip", "skip"]),
        (1, True, ["run", "skip", "skip"]),  # somebody asked for the trial itself
    ],
)
def test_a_baseline_is_skipped_where_all_of_its_groups_are(
    cpus: int, is_of_plan: bool, expected: list[str]
) -> None:
    plan = plan_copies(cpu_sharing="pinned")
    alone, *groups = plan.units
    plan = replace(plan, units=(replace(alone, baseline=not is_of_plan), *groups))
    planned = judge(plan, room=NodeCapacity(gpus=1, cpus=cpus))
    assert states(planned) == expected
    baseline, first, _ = planned
    if baseline.state == "skip":
        assert baseline.why == f"only {first.unit.group} needs it: {first.why}"


def test_jobs_that_were_taken_along_ran_out_of_nothing(groups: Plan) -> None:
    chosen = tried(groups, OK, ("oom", "skipped"))
    found = collect_out_of_memory(chosen.values())
    assert not found.chains  # alone each of them may fit
    assert [len(fits) for fits in found.groups] == [2]
    odd = [structs.replace(r, trial={"a_field_of": "the future"}) for r in chosen.values()]
    assert collect_out_of_memory(odd) == KnownOutOfMemory()


def test_what_is_stored_under_another_allowance_runs_again_and_says_why(plan: Plan) -> None:
    first, second, _ = (job.trial_id for job in plan.jobs)
    found = judge(plan, unlike={first: "measured on 1 CPU"})
    assert [(item.state, item.why) for item in found] == [
        ("run", "measured on 1 CPU"),
        ("run", ""),
        ("run", ""),
    ]
    fresh = judge(plan, unlike={second: "so"}, fresh=True)
    assert [item.why for item in fresh] == ["", "", ""], "asked for"


def test_what_is_done_at_first_may_be_left_or_failed_in_a_later_round(plan: Plan) -> None:
    first, second, third = plan.units
    planned = [PlannedUnit(first, "done"), PlannedUnit(second, "done"), PlannedUnit(third, "skip", "no room")]
    failed = PlannedUnit(second, "failed", "why", ended="failed")
    later = [
        (2, [PlannedUnit(first, "run"), failed, PlannedUnit(third, "run")]),
        (3, [PlannedUnit(first, "done"), PlannedUnit(second, "done")]),
        (4, [PlannedUnit(first, "run")]),
    ]
    assert merge_planned_rounds(planned, later) == [
        PlannedUnit(first, "run", rounds=(2, 4)),
        failed,
        planned[2],
    ]
    retried = (5, [PlannedUnit(second, "run")])
    assert merge_planned_rounds(planned, [*later, retried])[1] == PlannedUnit(second, "run", rounds=(5,))
    assert merge_planned_rounds(planned, []) == planned


def test_what_the_first_round_has_before_it_later_ones_have_too(plan: Plan) -> None:
    chosen = stored(plan, "ok", "failed")
    first = judge(plan, chosen)
    rounds = list_units_by_round(first, {1: chosen}, most=3, is_open_ended=False)
    done, failed, missing = (unit.unit_id for unit in plan.units)
    assert {
        number: {item.unit.unit_id: item.state for item in items} for number, items in rounds.items()
    } == {
        1: {done: "done", failed: "failed", missing: "run"},
        2: {done: "run", missing: "run"},
        3: {done: "run", missing: "run"},
    }


def test_what_was_measured_under_other_versions_is_in_no_further_round(plan: Plan) -> None:
    chosen = stored(plan, "ok", "ok", "ok")
    (other, *_) = stored(plan, "ok", torch="0.9").values()
    chosen[other.trial_id] = other
    first = judge(plan, chosen)
    rounds = list_units_by_round(first, {1: chosen}, most=2, is_open_ended=False)
    assert sorted(item.unit.unit_id for item in rounds[2]) == sorted(u.unit_id for u in plan.units[1:])
    (again,) = list_units_by_round(
        first[:1], {1: chosen, 2: {other.trial_id: other}}, most=2, is_open_ended=False
    )[2]
    # What it had in them is still there.
    assert again.state == "done"
    unknown = judge(plan, chosen, environment={})
    assert len(list_units_by_round(unknown, {1: chosen}, most=2, is_open_ended=False)[2]) == 3, (
        "versions that nobody tells"
    )


def test_of_an_open_round_only_what_has_begun_is_listed(plan: Plan) -> None:
    chosen = stored(plan, "ok", "ok")
    first = judge(plan, chosen)
    assert list(list_units_by_round(first, {1: chosen}, most=9, is_open_ended=True)) == [1]
    begun = {1: chosen, 2: stored(plan, "interrupted")}
    rounds = list_units_by_round(first, begun, most=9, is_open_ended=True)
    assert [(item.unit, item.state) for item in rounds[2]] == [(plan.units[0], "run")]
    assert list(rounds) == [1, 2]
