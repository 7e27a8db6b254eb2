"""What is said of findings, warnings and rows: a sentence a template."""

from __future__ import annotations

from dataclasses import replace

import pytest
import reports
from reports import make_claim

from gpubench.core.findings import BatchSizeFinding, NetworkSizeFinding, Remedy, SharingFinding, Top1Finding
from gpubench.core.report import Warned
from gpubench.render import words
from gpubench.schema.doubts import DOUBTS


def write(report, place=0):
    return words.write_finding(report, report.findings[place])


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"batch_size": 128, "gpus": 2, "strategy": "ddp"}, "batch 128 on 2 GPUs (ddp)"),
        ({"batch_size": 1024, "gpus": 1, "strategy": "single"}, "batch 1,024 on 1 GPU"),
        ({"batch_size": 16, "strategy": "dp"}, "batch 16 with dp"),
        ({"gpus": 4, "nodes": 2, "strategy": "ddp"}, "4 GPUs on 2 nodes (ddp)"),
        ({"ranks": 2, "strategy": "ddp"}, "2 processes (ddp)"),
        ({"strategy": "ddp"}, "ddp"),
        ({"model": "resnet50", "width": 1.0, "precision": "bf16", "lr": 0.1}, "resnet50, bf16, lr 0.1"),
        ({"model": "lenet", "width": 4.0}, "lenet, width 4"),
        ({"workers": 1, "cpus": 4, "copies": 1}, "1 worker, 4 CPUs"),
        ({"variant": "a\x1b[31mb\nc", "seed": None}, "ab c"),
        ({"prefetch": 4, "cudnn_benchmark": True}, "prefetch 4, cuDNN benchmark"),
        ({"breakdown": False, "gpu_mem_cap_mib": 12288}, "no breakdown, GPU memory capped at 12,288 MiB"),
        ({"width": 0.5}, "width 0.5"),
        ({"window": 0.5}, "0.5 s window"),
        ({"gpu_name": "NVIDIA H200", "batch_size": 8}, "batch 8, H200"),
        ({}, ""),
    ],
)
def test_a_row_is_named_in_words(fields, name):
    assert words.name_row(fields) == name


@pytest.mark.parametrize(
    ("candidate", "baseline", "name"),
    [
        ({"batch_size": 128, "gpus": 2}, {"batch_size": 64, "gpus": 2}, "batch 64 → 128, 2 GPUs"),
        (
            {"batch_size": 64, "gpus": 2, "strategy": "ddp"},
            {"batch_size": 64, "gpus": 1, "strategy": "single"},
            "1 GPU → 2 GPUs (ddp), batch 64",
        ),
    ],
)
def test_a_change_names_what_differs_first(candidate, baseline, name):
    assert words.name_change(candidate, baseline) == name


def test_figures_have_three_digits_and_round_half_up():
    assert [
        words.format_significant(value) for value in (0.0062, 4.9, 36.05, 1234.5, 0.0, float("inf"), 0.9996)
    ] == [
        "0.00620",
        "4.90",
        "36.1",
        "1,235",
        "0",
        "–",
        "1.00",
    ]
    assert [words.format_gib(mib) for mib in (430, 7168, 43315, 117760)] == ["0.42", "7.0", "42.3", "115"]
    assert [words.format_percent(share) for share in (0.00001, 0.0004, 0.006, 0.0096, 0.146, 0)] == [
        "<0.01 %",
        "0.04 %",
        "0.6 %",
        "1 %",
        "15 %",
        "0 %",
    ]
    assert [words.format_change(percent) for percent in (62.2, -5.4, 0.2, -0.3)] == [
        "+62 %",
        "−5 %",
        "0 %",
        "0 %",
    ]
    assert [words.format_points(points) for points in (2.5, -0.3, 0.0)] == ["+2.5", "−0.3", "0.0"]
    assert [words.format_ratio(ratio) for ratio in (0.785, 9.994, 10, 12.34)] == [
        "0.79",
        "9.99",
        "10.0",
        "12.3",
    ]


def test_a_firm_choice_carries_its_bound():
    assert write(reports.batch_sizes()) == [
        "Take batch 128 on 2 GPUs (ddp): 1.74 s an epoch, 2,948 images/s, 7.0 GiB; no other size is more than 15 % "
        "faster (95 %). 256 is 2 % faster for 1.74 times the memory.",
        "Memory × time is least at batch 16 to 32 for 1 GPU, 32 to 64 for 2 GPUs (ddp) (sure); 128 (64 to 256) for 2 "
        "GPUs (dp) (likely).",
    ]


def test_a_choice_that_is_not_firm_says_how_much_faster_others_may_be_and_what_tells():
    assert write(reports.not_sure()) == [
        "Not sure: batch 64: 388 images/s. 128 may be up to 45 % faster, 32 up to 7 % (95 %); 8 and 16 are slower. "
        "--rounds 16 (about 4 min more) tells."
    ]


@pytest.mark.parametrize(
    ("bound", "end"),
    [(0.0, "no other size is faster (95 %)."), (0.004, "no other size is more than 0.4 % faster (95 %).")],
)
def test_a_bound_of_nothing_is_not_told_as_a_share(bound, end):
    report = reports.batch_sizes()
    choice = replace(report.findings[0].choice, bound=bound)
    finding = replace(report.findings[0], choice=choice, fastest=None)
    assert words.write_finding(report, finding)[0].endswith(end)


def test_a_bound_that_is_far_off_is_not_told_whole():
    report = reports.not_sure()
    choice = replace(report.findings[0].choice, gains={4: float("inf"), 2: 10.0})
    text = words.write_finding(report, replace(report.findings[0], choice=choice))[0]
    assert "128 may be over 1,000 % faster, 32 up to 1,000 % (95 %)" in text


def test_a_choice_of_one_process_names_who_may_be_as_fast_and_what_ran_out_of_memory():
    assert write(reports.one_process())[0] == (
        "Take batch 128 with ddp: 6,097 images/s, 4.3 GiB. 256 may be as fast. 512 ran out of memory."
    )


def test_a_choice_of_one_process_that_nothing_tells_apart_is_not_sure():
    report = reports.one_process()
    finding = replace(report.findings[0], word="unknown", as_fast=(2, 4), slower=(0,), out_of_memory=None)
    assert words.write_finding(report, finding)[0] == (
        "Not sure: batch 128 with ddp: 6,097 images/s, 4.3 GiB. 64 and 256 may be as fast; 16 is slower."
    )


def test_without_a_row_that_ran_there_is_no_answer():
    report = reports.one_process()
    assert words.write_finding(report, BatchSizeFinding(word="unknown", out_of_memory=0)) == [
        "No answer: batch 16 ran out of memory."
    ]
    assert words.write_finding(report, BatchSizeFinding(word="unknown")) == ["No answer."]


def test_a_remedy_is_advised_with_its_minutes_where_they_are_known():
    report = reports.not_sure()
    for minutes, advice in ((60.0, "--rounds 9 (about 60 min more) tells."), (None, "--rounds 9 tells.")):
        finding = replace(report.findings[0], remedy=Remedy(rounds=9, minutes=minutes))
        assert words.write_finding(report, finding)[0].endswith(f" are slower. {advice}")
    finding = replace(report.findings[0], remedy=None)
    assert words.write_finding(report, finding)[0].endswith("are slower.")


def test_another_finding_with_a_remedy_says_it_once_unless_it_is_sure():
    report = reports.batch_sizes()
    versus = replace(report.findings[2], word="likely", remedy=Remedy(rounds=5, minutes=0.2))
    assert words.write_finding(report, versus)[-1].endswith(
        "(sure). --rounds 5 (about 1 min more) tells more."
    )
    assert words.write_finding(report, replace(versus, word="sure"))[-1].endswith("batch size (sure).")


def test_speed_ups_are_put_together_by_how_sure_they_are():
    assert write(reports.batch_sizes(), 1) == [
        "2 GPUs (ddp) against 1: 1.60 to 1.86 times as fast at batch 64 to 512 (sure, efficiency 80 to 93 %), 0.78 to "
        "0.94 times at batch 16 and 32 (unknown)."
    ]


def test_what_is_decided_to_be_slower_stands_apart_from_what_is_faster():
    report = reports.batch_sizes()
    claims = tuple(make_claim(10 + n, 20 + n, ratio) for n, ratio in enumerate((0.5, 0.6, 2.0, 3.0)))
    versus = replace(report.findings[2], claims=claims)
    assert words.write_finding(report, versus) == [
        "ddp is 2.00 to 3.00 times as fast as dp at batch 64 and 128 (sure), 0.50 to 0.60 times at batch 16 and 32 "
        "(sure)."
    ]


def test_ways_to_do_the_same_are_compared_with_their_cpu_time():
    report = reports.batch_sizes()
    cpu = tuple(
        make_claim(n, n + 1, ratio, word, metric="cpu_s_per_epoch")
        for n, (ratio, word) in enumerate(((0.42, "sure"), (0.58, "likely")))
    )
    versus = replace(report.findings[2], cpu_claims=cpu)
    assert words.write_finding(report, versus) == [
        "ddp is 1.28 to 4.45 times as fast as dp at every batch size (sure); it takes 42 to 58 % less CPU time "
        "(likely)."
    ]


def test_more_cpu_time_is_said_as_more():
    report = reports.batch_sizes()
    cpu = (make_claim(1, 2, 1.25, "unknown", metric="cpu_s_per_epoch"),)
    (text,) = words.write_finding(report, replace(report.findings[2], cpu_claims=cpu))
    assert text.endswith("; it takes 25 % more CPU time (unknown).")


def test_three_sizes_side_by_side_are_a_span_and_two_are_not():
    report = reports.batch_sizes()
    claims = [
        make_claim(10 + n, 20 + n, 2.0, "sure" if n in (0, 1, 3, 4, 5) else "unknown") for n in range(6)
    ]
    (text,) = words.write_finding(report, replace(report.findings[2], claims=tuple(claims)))
    assert "at batch 16, 32 and 128 to 512 (sure), 2.00 times at batch 64 (unknown)" in text


def test_rows_that_no_batch_size_tells_apart_are_counted():
    report = reports.network_sizes()
    report = replace(report, labels={row: {"model": "a"} for row in report.labels})
    claims = (make_claim(10, 0, 2.0), make_claim(11, 1, 1.1, "unknown"))
    versus = replace(reports.batch_sizes().findings[2], claims=claims)
    assert words.write_finding(report, versus) == [
        "ddp is 2.00 times as fast as dp in 1 of 2 rows (sure), 1.10 times in 1 of 2 rows (unknown)."
    ]
    assert words.write_finding(report, replace(versus, claims=claims[:1])) == [
        "ddp is 2.00 times as fast as dp (sure)."
    ]


def test_the_network_size_from_which_more_devices_are_faster():
    assert write(reports.network_sizes()) == [
        "2 GPUs (ddp) are faster from mobilenet_v2 on (0.30 GMACs an image): 1.49 to 1.79 times (sure). Smaller ones "
        "are slower (0.70 to 0.77 times). mobilenet_v3_large: unknown."
    ]


def test_more_devices_that_are_faster_nowhere_or_nobody_knows_where():
    report = reports.network_sizes()
    finding = report.findings[0]
    assert isinstance(finding, NetworkSizeFinding)
    slower = replace(finding, first_faster=None, claims=finding.claims[:2])
    assert words.write_finding(report, slower) == [
        "2 GPUs (ddp) are slower at every network size: 0.70 to 0.77 times (sure)."
    ]
    unknown = replace(finding, first_faster=None, word="unknown", claims=finding.claims[:3])
    assert words.write_finding(report, unknown) == [
        "Unknown from what network size on 2 GPUs (ddp) are faster: 0.70 to 1.17 times. Slower: lenet and mlp x16 "
        "(0.70 to 0.77 times). mobilenet_v3_large: unknown."
    ]


def test_jobs_together_are_put_together_by_what_sharing_gives():
    assert write(reports.sharing()) == [
        "Sharing is worth it (sure): 2 × batch 16 get 1.90 times as much done as one after the other (≥ 1.59), 3 × "
        "batch 16 2.95 times (≥ 2.47).",
        "Sharing gains nothing (sure): 2 × batch 128 get 1.00 times as much done as one after the other (≤ 1.09), 3 × "
        "batch 128 1.00 times (≤ 1.09).",
    ]


def test_groups_without_a_verdict_say_why():
    assert write(reports.pairs()) == [
        "Sharing gains little or nothing (sure): resnet50 64 & mobilenet_v2 256 get 0.98 times as much done as one "
        "after the other (≤ 1.17).",
        "Unknown: mobilenet_v2 16 & resnet50 64 (there mobilenet_v2 16 ran faster than alone).",
        "No answer: 2 × batch 1,408: out of memory.",
    ]


def test_a_group_whose_times_alone_are_not_known_says_so():
    report = reports.sharing()
    group = replace(report.findings[0].groups[0], work=None, bound=None, word="unknown", gains=None)
    assert words.write_finding(report, SharingFinding(word="unknown", groups=(group,))) == [
        "No answer: 2 × batch 16: no times alone."
    ]


def test_a_group_of_its_own_name_of_which_only_full_overlap_is_excluded():
    report = reports.pairs()
    group = replace(
        report.findings[0].groups[1], name="three jobs", word="likely", gains=None, work=1.56, bound=None
    )
    assert words.write_finding(report, SharingFinding(word="likely", groups=(group,))) == [
        "No full overlap (likely): three jobs get 1.56 times as much done as one after the other."
    ]


def test_who_reaches_the_target_first_and_with_what_energy():
    report = reports.target()
    assert write(report) == [
        "Likely batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s and 32 takes 66.2 s. 64 may be "
        "as fast with another seed. 256: interrupted.",
        "Energy to 60 %: no difference shown (10.5 to 11.7 kJ).",
    ]
    finding = replace(
        report.findings[0], word="sure", as_fast=(), order=(2, 1), unreached=(0,), energy_word="likely"
    )
    assert words.write_finding(report, finding) == [
        "Batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s. 32 did not reach it. 256: "
        "interrupted.",
        "Energy to 60 %: least with batch 64, 10.5 kJ of 10.5 to 11.7 (likely).",
    ]
    some = replace(finding, energy_word="unknown", least_energy=1, costlier=(2,), costlier_word="likely")
    assert words.write_finding(report, some)[1] == (
        "Energy to 60 %: 128 takes more than 64, 11.7 against 10.5 kJ (likely); between the others no "
        "difference is shown."
    )
    assert words.write_finding(report, replace(some, are_others_alike=False))[1].endswith("kJ (likely).")
    assert (
        words.write_finding(report, replace(finding, order=()))[0] == "No answer: no row reached 60 % top-1."
    )
    assert words.write_finding(report, replace(finding, word="unknown"))[0].startswith(
        "Not sure: batch 128 reaches"
    )


def test_the_only_row_that_was_trained_is_the_first_of_none():
    report = reports.target()
    alone = replace(report.findings[0], word="unknown", order=(1,), as_fast=(), interrupted=())
    assert words.write_finding(report, alone) == ["Batch 64 reaches 60 % top-1: 46.8 s, 9 epochs."]
    others_failed = replace(alone, unreached=(0, 2))
    assert words.write_finding(report, others_failed) == [
        "Not sure: batch 64 reaches 60 % top-1 first: 46.8 s, 9 epochs. 32 and 128 did not reach it."
    ]


def test_whether_top1_stays_the_same():
    report = reports.published()
    finding = report.findings[1]
    assert isinstance(finding, Top1Finding)
    assert words.write_finding(report, finding) == [
        "Unknown whether top-1 stays the same with pre-resized: +9.0 to +25.0 points (one seed)."
    ]
    changed = replace(finding, word="sure", seeds=3, claims=finding.claims[:1])
    assert words.write_finding(report, changed) == [
        "Top-1 changes with pre-resized: +9.0 points (3 seeds, sure)."
    ]
    claim = finding.claims[0]
    same = replace(claim, verdict=replace(claim.decided, word="sure", direction="same"))
    assert words.write_finding(report, replace(changed, claims=(same,))) == [
        "Top-1 stays the same with pre-resized: +9.0 points (3 seeds, sure)."
    ]


@pytest.mark.parametrize(("field", "name"), [("batch_size", "another batch size"), ("gpus", "other GPUs")])
def test_top1_along_numbers_is_told_of_the_field(field, name):
    report = reports.published()
    finding = replace(report.findings[1], field=field, value=None, baseline=None)
    assert words.write_finding(report, finding)[0].startswith(
        f"Unknown whether top-1 stays the same with {name}:"
    )


@pytest.mark.parametrize(
    ("warned", "text"),
    [
        (
            Warned(code="single-process", rows=(2, 3), figures={"noise": 0.4}),
            "In 2 of 18 rows there was one process, so nothing is sure: such rows were seen to differ by up to 40 % "
            "(--rounds 3).",
        ),
        (
            Warned(code="first-batch", rows=(2, 3), figures={"low": 0.11, "high": 0.48}),
            "In 2 of 18 rows the first batch takes 11 to 48 % of the epoch, so longer epochs favour larger batches.",
        ),
        (
            Warned(code="one-process", rows=(1,), figures={"noise": 0.4}),
            "One process a row, so nothing is sure: such rows were seen to differ by up to 40 % (--rounds 3).",
        ),
        (
            Warned(code="desktop", rows=(*range(6), *range(10, 16), *range(20, 26))),
            "In all 18 rows a desktop used the GPU.",
        ),
        (Warned(code="of {another}\x07 version", rows=(1,)), "In 1 of 18 rows of {another}  version"),
    ],
)
def test_a_kind_of_warning_is_one_line(warned, text):
    assert words.write_warning(reports.batch_sizes(), warned) == text


def test_a_share_that_is_one_figure_is_no_span_and_one_row_is_not_counted():
    report = reports.batch_sizes()
    warned = Warned(code="first-batch", rows=(2,), figures={"low": 0.2, "high": 0.204})
    assert "the first batch takes 20 % of the epoch" in words.write_warning(report, warned)
    both = replace(report, labels={2: {}, 3: {}})
    assert (
        words.write_warning(both, Warned(code="desktop", rows=(2, 3)))
        == "In both rows a desktop used the GPU."
    )
    report = replace(report, labels={2: {}})
    assert (
        words.write_warning(report, Warned(code="desktop", rows=(2,)))
        == "In the only row a desktop used the GPU."
    )


def test_an_ending_names_cap_and_sizes_but_not_what_the_allocator_says():
    report = reports.one_process()
    row = report.rows[5]
    assert words.describe_ending(report, row) == "out of memory: the cap is 12 GiB; 1,024 and 2,048 skipped"
    plain = replace(report, facts=replace(report.facts, fixed={}))
    assert words.describe_ending(plain, replace(row, skipped=())) == "out of memory"
    hung = replace(row, status="timeout", reason="it hung.", skipped=())
    assert words.describe_ending(report, hung) == "timed out: it hung"
    left = replace(row, status="missing", reason=None, skipped=(64, 128))
    assert words.describe_ending(plain, left) == "not run yet; 64 and 128 neither"


def test_jobs_that_nothing_tells_apart_are_named_by_what_all_rows_have():
    report = reports.sharing()
    report = replace(report, labels={}, facts=replace(report.facts, fixed={"batch_size": 1408}))
    assert words.name_group(report, report.findings[0].groups[0]) == "2 × batch 1,408"
    report = replace(report, facts=replace(report.facts, fixed={}))
    assert words.name_group(report, report.findings[0].groups[0]) == "2 × the same job"


def test_lines_that_weaken_all_answers_come_before_further_findings():
    ranks = [(line.kind, line.rank) for line in words.write_lines(reports.one_process())]
    assert ranks == [("answer", 0), ("finding", 4), ("finding", 2), ("warning", 1), ("warning", 3)]
    assert [line.rank for line in words.write_lines(reports.sharing())] == [0, 2]


def test_every_doubt_has_its_line():
    assert {doubt.code for doubt in DOUBTS} <= words.ROW_WARNINGS.keys()
    assert not words.ROW_WARNINGS.keys() & words.TABLE_WARNINGS.keys()


def test_headings_come_from_columns_unless_a_table_needs_shorter_ones():
    report = reports.target()
    column = reports.make_column
    assert words.write_headings(report, column("time_to_top1_s")) == ("", "s to 60 %")
    assert words.write_headings(report, column("host_mem_mib")) == ("", "host MiB")
    assert words.write_headings(report, column("epoch_time_s", {"gpus": 2, "strategy": "ddp"})) == (
        "2 GPUs (ddp)",
        "epoch s",
    )
    assert words.write_headings(reports.sharing(), column("epoch_time_s")) == ("", "together s")
    assert words.write_headings(reports.batch_sizes(), column("time_to_top1_s")) == ("", "s to top-1")


def test_the_question_is_the_experiments_or_else_the_first_findings():
    assert words.ask(reports.target()).startswith("Which batch size reaches 60 %")
    assert words.ask(reports.not_sure()) == "Which batch size is best?"
    assert words.ask(replace(reports.not_sure(), findings=())) == ""


def test_facts_begin_with_what_matters_most():
    assert words.describe_facts(reports.network_sizes()) == [
        "network-size",
        "2 × H200, 32 CPUs",
        "3 processes a row",
        "synthetic",
        "bf16",
        "batch 256",
    ]
    facts = replace(reports.network_sizes().facts, processes=(2, 3), images=10240)
    parts = words.describe_facts(replace(reports.network_sizes(), facts=facts))
    assert (parts[2], parts[-1]) == ("2 to 3 processes a row", "10,240 images")
    assert words.describe_facts(reports.published())[2] == "from a published log"
    none = replace(facts, processes=(0, 0))
    assert not any(
        "process" in part for part in words.describe_facts(replace(reports.network_sizes(), facts=none))
    )


def test_a_claim_as_a_row():
    report = reports.batch_sizes()
    assert words.write_claim(report, report.findings[1].claims[2]) == (
        "1 GPU → 2 GPUs (ddp), batch 64",
        "images/s",
        "1.60",
        "1.44–1.76",
        "0.010",
        "more, sure",
    )
    above = make_claim(1, 1, 1.9, low=1.59, p=0.0001, metric="work", design="above", limit=0.0953)
    assert words.write_claim(report, above)[1:] == (
        "work done ≥ 1.10",
        "1.90",
        "≥ 1.59",
        "< 0.001",
        "more, sure",
    )
    below = make_claim(1, 1, 0.98, "unknown", high=1.17, metric="work", design="below", limit=0.0953)
    assert words.write_claim(report, below)[1:] == ("work done ≤ 1.10", "0.98", "≤ 1.17", "–", "unknown")
    points = reports.published().findings[1].claims[0]
    assert words.write_claim(reports.published(), points)[1:4] == ("top-1", "+9.0", "–")


def test_claims_on_jobs_name_their_group_and_a_target_is_filled_in():
    report = reports.sharing()
    slowdown = make_claim(0, 0, 1.05, metric="slowdown")
    assert words.write_claim(report, slowdown)[:2] == ("batch 16 (1 of 2) in 2 × batch 16", "slowdown")
    second = replace(slowdown, candidate=1)
    assert words.write_claim(report, second)[0] == "batch 16 (2 of 2) in 2 × batch 16"
    work = make_claim(1, 1, 1.9, metric="work", design="above")
    assert words.write_claim(report, work)[0] == "2 × batch 16"
    seconds = make_claim(2, 1, 0.8, metric="time_to_top1_s")
    assert words.write_claim(reports.target(), seconds)[1] == "s to 60 %"


def test_what_would_settle_a_finding():
    finding = replace(reports.not_sure().findings[0], remedy=Remedy(rounds=8, minutes=1200.2))
    assert words.write_remedy(finding) == "8 rounds give 80 % power (about 1,201 min more): --rounds 8."
    assert words.write_remedy(replace(finding, remedy=None)) == ""
    seeds = replace(finding, remedy=Remedy(rounds=8, minutes=None, is_of_seeds=True))
    assert words.write_remedy(seeds) == "8 seeds give 80 % power: --repeats 8."


def test_the_best_configuration_as_a_command():
    fields = {
        "model": "resnet50", "batch_size": 128, "gpus": 2, "gpu_ids": (0, 1), "strategy": "ddp", "precision": "bf16",
        "variant": "crop-resize", "lr": 0.1, "breakdown": True, "data": "my images", "seed": 3, "workers": None,
    }  # fmt: skip
    assert words.best_command(fields) == (
        "gpubench sweep --model resnet50 --variant crop-resize --data 'my images' --batch-size 128 --gpus 2 "
        "--strategy ddp --precision bf16 --set lr=0.1 --breakdown"
    )
    assert words.best_command({"batch_size": 64, "window": 3.0, "steps": 100}) == (
        "gpubench sweep --batch-size 64 --steps 100"
    )
    assert words.best_command({"batch_size": 64, "gpu_ids": (0, 1)}) == (
        "gpubench sweep --batch-size 64 --gpu-ids 0+1"
    )


def test_what_the_bound_of_a_choice_rests_on():
    report = reports.batch_sizes()
    finding = report.findings[0]
    row, *_ = (label for label in finding.choice.series if label != finding.choice.row)
    choice = replace(finding.choice, gains={row: 0.146}, bound=0.146)
    text = words.write_bounds(report, replace(finding, choice=choice))
    size = report.labels[row]["batch_size"]
    assert f"together): {size} up to 15 %; the others are slower." in text
    alone = words.write_bounds(report, replace(finding, choice=replace(choice, gains={}, bound=0.0)))
    assert alone.endswith("together): all are slower.")
    assert words.write_bounds(report, replace(finding, choice=replace(choice, bound=None))) == ""


def test_naming_twice_as_many_rows_looks_at_twice_as_many_fields():
    asked = []

    class Label(dict):
        def get(self, *arguments):
            asked.append(arguments)
            return super().get(*arguments)

    report = reports.batch_sizes()
    counts = []
    for rows in (50, 100):
        asked.clear()
        labels = {row: Label(batch_size=row, lr=0.1, strategy="ddp") for row in range(rows)}
        assert words.name_apart(replace(report, labels=labels), range(rows))[7] == "batch 7"
        counts.append(len(asked))
    assert counts[1] == 2 * counts[0] > 0


def test_equal_names_are_numbered_and_stay_unlike_others():
    assert words.number_equal(["a", "a (2)", "a", "b", "a"]) == ["a", "a (2)", "a (3)", "b", "a (4)"]
