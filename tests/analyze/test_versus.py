"""One way against another: which rows stand beside each other, and what is claimed of them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze import target, versus
from gpubench.analyze.questions import answer_table_questions
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import TargetFinding, VersusFinding
from gpubench.schema import catalog
from gpubench.stats.decisions import decide_claims


def answer(table: TableRows) -> list[VersusFinding]:
    return versus.make_findings(table, decide_claims(versus.make_claims(table)))


def pairs(table: TableRows) -> list[tuple[int, int]]:
    return [(claim.candidate, claim.baseline) for claim in versus.make_claims(table)]


def row(time_s: float, **facts: Any) -> dict[str, Any]:
    return {"epoch_time_s": [time_s], **facts}


def test_the_faster_way_is_the_candidate_whatever_stands_first() -> None:
    table = make_table(
        [
            row(1.0, strategy="ddp", gpus=2, batch_size=16),
            row(3.0, strategy="ddp", gpus=2, batch_size=32),
            row(4.0, strategy="dp", gpus=2, batch_size=16),
            row(2.9, strategy="dp", gpus=2, batch_size=32),
        ],
        varied=("batch_size", "strategy"),
    )
    (finding,) = answer(table)
    assert (finding.field, finding.value, finding.baseline) == ("strategy", "ddp", "dp")
    assert [(claim.candidate, claim.baseline) for claim in finding.claims] == [(10, 12), (11, 13)]
    assert [math.exp(claim.evidence.center) for claim in finding.claims] == pytest.approx([4.0, 2.9 / 3.0])
    assert [claim.decided.word for claim in finding.claims] == ["likely", "unknown"]
    assert finding.word == "likely"
    assert finding.cpu_claims == ()
    turned = make_table(
        [row(4.0, strategy="dp", gpus=2), row(1.0, strategy="ddp", gpus=2)], varied=("strategy",)
    )
    assert pairs(turned) == [(11, 10)]


def test_rows_that_differ_in_anything_else_are_no_pair() -> None:
    first = row(1.0, precision="fp32")
    for other in ({"batch_size": 48}, {"machine": "A100"}, {"model": "resnet18"}, {"lr": 0.1}):
        assert pairs(make_table([first, row(1.0, precision="bf16", **other)], varied=("precision",))) == []
    assert pairs(make_table([first, row(1.1, precision="bf16")], varied=("precision",))) == [(10, 11)]


def test_networks_are_not_ranked_by_rate_but_to_a_common_target() -> None:
    facts = {"took_s": 1.0, "gpu_mem_mib": 1000.0}
    networks = [row(1.0, model="resnet18", **facts), row(3.0, model="resnet50", **facts)]
    assert answer_table_questions(make_table(networks, varied=("model",))) == []
    reaching = [
        {**each, "until_top1": 60.0, "time_to_top1_s": [time], "epochs_to_top1": 3, "energy_to_top1_j": None}
        for each, time in zip(networks, (30.0, 10.0), strict=True)
    ]
    table = make_table(reaching, varied=("model",))
    (finding,) = target.make_findings(table, decide_claims(target.make_claims(table)))
    assert finding.order == (11, 10)


def test_whole_runs_that_end_at_a_target_are_not_said_to_be_faster() -> None:
    """One that ended after an epoch, and one that went on to the end, did unlike work."""
    target_of = {"until": "acc=60", "kind": "whole run", "took_s": 1.0, "gpu_mem_mib": 1000.0}
    runs = [
        row(1.0, precision="fp32", time_to_top1_s=[1.0], **target_of),
        row(3.0, precision="bf16", time_to_top1_s=[None], **target_of),
    ]
    (finding,) = answer_table_questions(make_table(runs, varied=("precision",)))
    assert isinstance(finding, TargetFinding)
    epochs = [{**run, "kind": "whole epochs"} for run in runs]
    findings = answer_table_questions(make_table(epochs, varied=("precision",)))
    assert {type(finding) for finding in findings} == {TargetFinding, VersusFinding}


def test_a_field_that_nobody_varied_asks_nothing() -> None:
    assert pairs(make_table([row(1.0, precision="fp32"), row(1.1, precision="bf16")])) == []


def test_jobs_of_groups_rows_without_a_time_and_two_rows_at_one_place_are_in_no_pair() -> None:
    first = row(1.0, precision="fp32")
    for others in (
        [row(1.1, precision="bf16", group="two")],
        [{"precision": "bf16", "status": "oom"}],
        [row(1.1, precision="bf16"), row(1.2, precision="bf16")],
    ):
        assert pairs(make_table([first, *others], varied=("precision",))) == []


def test_what_follows_from_a_field_by_itself_may_differ_and_what_was_asked_for_may_not() -> None:
    sgd = row(1.0, optimizer="sgd", lr=0.05)
    assert pairs(make_table([sgd, row(1.1, optimizer="adam", lr=0.001)], varied=("optimizer",))) == [(10, 11)]
    assert pairs(make_table([sgd, row(1.1, optimizer="adam", lr=0.05)], varied=("optimizer",))) == []
    both = [row(1.0, variant="crop-resize", workers=8), row(1.1, variant="synthetic", workers=0)]
    assert pairs(make_table(both, varied=("variant",))) == [(10, 11)]
    asked = [{**each, "is_workers_auto": False} for each in both]
    assert pairs(make_table(asked, varied=("variant",))) == []


def test_a_field_of_one_strategy_alone_may_have_its_default_and_no_other_value() -> None:
    ((name, default),) = catalog.find_strategy_fields("local").items()
    ddp = row(2.0, strategy="ddp", gpus=2)
    for value, expected in ((default, [(11, 10)]), (default + 1, [])):
        table = make_table([ddp, row(1.0, strategy="local", gpus=2, **{name: value})], varied=("strategy",))
        assert pairs(table) == expected


def test_a_row_without_cpu_time_is_in_no_claim_on_it() -> None:
    table = make_table(
        [row(1.0, variant="crop-resize", cpu_s_per_epoch=3.0), row(1.1, variant="pre-resized")],
        varied=("variant",),
    )
    assert [claim.metric for claim in versus.make_claims(table)] == ["images_per_s"]


def test_all_values_are_against_the_first_that_stands_beside_another() -> None:
    table = make_table(
        [
            row(9.0, strategy="single", gpus=1),
            row(1.0, strategy="ddp", gpus=2),
            row(2.0, strategy="dp", gpus=2),
            row(0.5, strategy="fsdp", gpus=2),
        ],
        varied=("gpus", "strategy"),
    )
    found = [(each.value, each.baseline, each.rows) for each in answer(table)]
    assert found == [("ddp", "dp", (11, 12)), ("fsdp", "ddp", (13, 11))]
    assert {claim.family for claim in versus.make_claims(table)} == {"versus:strategy"}


def test_variants_are_asked_for_cpu_time_by_image_as_a_question_of_its_own() -> None:
    table = make_table(
        [
            row(2.0, variant="crop-resize", cpu_s_per_epoch=10.0, images_per_epoch=1000),
            row(1.0, variant="pre-resized", cpu_s_per_epoch=2.0, images_per_epoch=500),
        ],
        varied=("variant",),
    )
    (finding,) = answer(table)
    (cpu,) = finding.cpu_claims
    assert (cpu.candidate, cpu.baseline, cpu.metric) == (11, 10, "cpu_s_per_epoch")
    assert math.exp(cpu.evidence.center) == pytest.approx(0.4)
    assert (cpu.decided.word, cpu.decided.direction) == ("likely", "less")
    assert cpu.family != finding.claims[0].family
    assert finding.word == "unknown"  # of the rates alone, which are the same


def test_where_nobody_counted_cpu_time_it_is_the_share_of_the_cpus_times_the_time() -> None:
    table = make_table(
        [
            row(10.0, variant="crop-resize", cpu_util_pct=60.0),
            row(8.0, variant="pre-resized", cpu_util_pct=20.0),
        ],
        varied=("variant",),
    )
    (finding,) = answer(table)
    assert math.exp(finding.cpu_claims[0].evidence.center) == pytest.approx(160 / 600)


def test_pairs_of_rounds_decide_and_their_family_corrects_them() -> None:
    def measure(batch: int, precision: str, *deviations: float) -> dict[str, Any]:
        return {"batch_size": batch, "precision": precision, "epoch_time_s": scatter(1.0, *deviations)}

    # Each round moves both rows alike; the second pair is sure by itself (p = 0.032), not beside the first.
    table = make_table(
        [
            measure(16, "fp32", 0.5, 0.0, -0.5),
            measure(16, "bf16", 0.3, -0.2, -0.71),
            measure(32, "fp32", 0.5, 0.0, -0.5),
            measure(32, "bf16", 0.48, -0.02, -0.5335),
            measure(64, "fp32", 0.5, 0.0, -0.5),
            measure(64, "bf16", 0.4, 0.05, -0.6),
        ],
        varied=("batch_size", "precision"),
    )
    (finding,) = answer(table)
    assert [claim.decided.word for claim in finding.claims] == ["sure", "likely", "unknown"]
    assert finding.claims[0].decided.low == pytest.approx(1.2080, abs=1e-4)
    assert finding.word == "likely"
