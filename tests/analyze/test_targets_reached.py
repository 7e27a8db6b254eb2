"""Who reaches the target first: what is compared, the noise of one seed, and what did not reach it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze import target
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import TargetFinding
from gpubench.stats.decisions import decide_claims


def answer(table: TableRows) -> list[TargetFinding]:
    return target.make_findings(table, decide_claims(target.make_claims(table)))


def row(times: Sequence[float | None], epochs: float = 10, **facts: Any) -> dict[str, Any]:
    return {
        "until_top1": 60.0, "epochs_to_top1": epochs, "time_to_top1_s": list(times), "epoch_time_s": 1.0,
        "energy_to_top1_j": [None if time is None else 100 * time for time in times],
        "repeat": list(range(len(times))), "round": [1] * len(times), **facts,
    }  # fmt: skip


def test_rows_in_the_order_in_which_they_reach_it_and_those_that_may_be_as_fast() -> None:
    table = make_table(
        [
            row([66.2], epochs=7, energy_to_top1_j=[11600.0]),
            row([46.8], epochs=9, energy_to_top1_j=[10500.0]),
            row([36.1], epochs=13, energy_to_top1_j=[11700.0]),
            {"until_top1": 60.0, "status": "interrupted"},
        ],
        noise=math.log(1.05),
    )
    (finding,) = answer(table)
    assert (finding.order, finding.as_fast, finding.word) == ((12, 11, 10), (11,), "likely")
    assert (finding.interrupted, finding.unreached, finding.target_pct) == ((13,), (), 60.0)
    assert (finding.least_energy, finding.energy_word) == (11, "unknown")


def test_a_seed_may_take_two_epochs_more_or_less_and_its_process_has_a_pace_of_its_own() -> None:
    table = make_table([row([10.0], epochs=10), row([20.0], epochs=20)], noise=0.3)
    claim = target.make_claims(table)[0]
    assert claim.evidence.noise == pytest.approx(math.hypot(0.3, 0.2, 0.1))
    assert math.exp(claim.evidence.center) == pytest.approx(0.5)
    unknown = make_table([row([10.0], epochs=float("nan")), row([20.0], epochs=20)], noise=0.3)
    assert target.make_claims(unknown)[0].evidence.noise is None


def test_each_pair_is_a_claim_of_seconds_and_one_of_joules_in_families_of_their_own() -> None:
    claims = target.make_claims(make_table([row([30.0]), row([10.0]), row([20.0])]))
    pairs = [(claim.metric, claim.candidate, claim.baseline) for claim in claims]
    assert pairs == [
        ("time_to_top1_s", 11, 12), ("time_to_top1_s", 11, 10), ("time_to_top1_s", 12, 10),
        ("energy_to_top1_j", 11, 12), ("energy_to_top1_j", 11, 10), ("energy_to_top1_j", 12, 10),
    ]  # fmt: skip
    assert len({claim.family for claim in claims}) == 2


def test_over_several_seeds_the_first_is_sure_and_so_is_the_least_energy() -> None:
    table = make_table([row(scatter(20.0, -0.05, 0.0, 0.04)), row(scatter(10.0, -0.04, 0.0, 0.06))])
    (finding,) = answer(table)
    assert (finding.order, finding.as_fast, finding.word) == ((11, 10), (), "sure")
    assert (finding.least_energy, finding.energy_word) == (11, "sure")
    assert finding.remedy is None


def test_rounds_of_one_seed_are_no_evidence_of_another() -> None:
    rounds = {"repeat": [0] * 3, "round": [1, 2, 3]}
    near = [row([20.0, 20.1, 20.3], epochs=10, **rounds), row([18.0, 18.1, 18.3], epochs=9, **rounds)]
    (finding,) = answer(make_table(near, noise=math.log(1.05)))
    (claim, _) = finding.claims
    assert (claim.evidence.processes, claim.decided.p) == ((1, 1), None)
    assert (finding.word, finding.as_fast, finding.remedy) == ("unknown", (10,), None)
    assert claim.evidence.center == pytest.approx(
        math.log((18.0 * 18.1 * 18.3 / 20.0 / 20.1 / 20.3) ** (1 / 3))
    )


def test_each_seed_counts_once_however_many_rounds_it_has() -> None:
    seeds = {"repeat": [0, 0, 1, 1, 2, 2], "round": [1, 2, 1, 2, 1, 2]}
    table = make_table([row([10.0, 10.2, 12.0, 12.2, 11.0, 11.2], **seeds), row([20.0] * 6, **seeds)])
    (claim, _) = target.make_claims(table)
    assert claim.evidence.processes == (3, 3)
    assert claim.evidence.pairs is not None
    assert claim.evidence.pairs.degrees == 2


def test_seeds_settle_who_is_first_and_each_takes_a_training_of_all_rows() -> None:
    rows = [
        row(scatter(1.0, *each), took_s=30.0) for each in ((-0.05, 0.0, 0.05), (0.12, 0.09, 0.06))
    ]  # of three seeds each: a round takes three minutes
    (finding,) = answer(make_table(rows))
    assert finding.remedy is not None
    assert finding.remedy.is_of_seeds
    assert finding.remedy.minutes == finding.remedy.rounds - 3


def test_the_least_energy_is_known_only_against_all_others() -> None:
    quiet, loud = (-0.01, 0.0, 0.012), (-0.3, 0.1, 0.3)
    table = make_table(
        [row(scatter(1.0, *quiet)), row(scatter(3.0, *quiet)), row(scatter(1.2, *loud))], noise=None
    )
    (finding,) = answer(table)
    assert (finding.as_fast, finding.word, finding.energy_word) == ((12,), "sure", "unknown")
    assert (finding.least_energy, finding.costlier, finding.costlier_word) == (10, (11,), "sure")
    assert finding.remedy is not None


def test_a_row_that_not_every_seed_brought_there_is_unreached() -> None:
    table = make_table([row([10.0, None, 11.0]), row([20.0, 21.0, 22.0])])
    (finding,) = answer(table)
    assert (finding.order, finding.unreached, finding.least_energy) == ((11,), (10,), 11)
    (nobody,) = answer(make_table([row([None, None])]))
    assert (nobody.order, nobody.unreached, nobody.least_energy, nobody.word) == ((), (10,), None, "unknown")


def test_rows_are_ordered_by_means_however_many_seeds_they_have() -> None:
    (finding,) = answer(make_table([row([10.0, 10.5, 10.2]), row([20.0])]))
    assert (finding.order, finding.least_energy) == ((10, 11), 10)


def test_what_other_rows_differ_by_does_not_matter_to_the_least_energy() -> None:
    quiet, loud = (-0.01, 0.0, 0.012), (-0.1, 0.02, 0.1)
    times = scatter(1.0, *quiet), scatter(5.0, *loud), scatter(5.1, *reversed(loud))
    (finding,) = answer(make_table([row(each) for each in times]))
    assert finding.claims[-1].decided.word == "unknown"
    assert finding.energy_word == "sure"


def test_a_row_some_of_whose_runs_were_interrupted_is_not_one_that_was() -> None:
    (finding,) = answer(make_table([row([10.0]) | {"status": ["ok"]}, row([None])]))
    assert (finding.order, finding.unreached, finding.interrupted) == ((10,), (11,), ())
    table = make_table([row([10.0])])
    table.summary["status"] = "interrupted"
    assert answer(table)[0].interrupted == ()


def test_unlike_targets_images_and_machines_are_questions_of_their_own() -> None:
    for other in ({"until_top1": 70.0}, {"data": "cifar10"}, {"machine": "A100"}):
        findings = answer(make_table([row([10.0]), row([20.0], **other)]))
        assert [finding.order for finding in findings] == [(10,), (11,)]
        assert [finding.claims for finding in findings] == [(), ()]


def test_jobs_of_groups_planned_rows_and_trainings_without_a_target_are_not_asked() -> None:
    rows = [
        row([10.0], group="two"),
        {"until_top1": 60.0, "machine": None, "status": "missing"},
        row([9.0], until_top1=None),
    ]
    assert answer(make_table(rows)) == []


@pytest.mark.parametrize(
    ("command", "is_without"),
    [(None, False), ("a {lr}", True), ("a {seed}", False), ("a --seed {repeat}", False)],
)
def test_a_command_that_is_given_neither_seed_nor_repeat_is_without_a_seed(
    command: str | None, *, is_without: bool
) -> None:
    table = make_table([row([10.0], command=command)])
    assert target.is_seedless(table, 10) == is_without
