"""What is said of findings, warnings and rows: each template stands once in a table below."""

from __future__ import annotations

from dataclasses import replace

import pytest
import reports
from reports import make_claim

from gpubench.analyze.report import AFFECTED_COLUMNS, is_weakening_shown_figure
from gpubench.core.findings import BatchSizeFinding, LimitAim, Remedy, SharingFinding
from gpubench.core.report import Report, ReportWarning
from gpubench.render import words
from gpubench.schema.doubts import DOUBTS


def vary(report: Report, place=0, **changes):
    """A report, and one of its findings with other values."""
    return report, replace(report.findings[place], **changes)


def vary_choice(report: Report, finding=(), /, **changes):
    """A report, and its first finding with another choice, and what `finding` says."""
    return vary(report, choice=replace(report.findings[0].choice, **changes), **dict(finding))


def vary_group(report: Report, word, place=0, **changes):
    """A report, and a finding on one of its groups of jobs, with other values."""
    group = replace(report.findings[0].groups[place], word=word, **changes)
    return report, SharingFinding(word=word, groups=(group,))


def compare_strategies(*ratios_and_words, **changes):
    """A report, and its finding on ddp against dp with claims of these ratios at batch 16, 32 and so on."""
    claims = tuple(
        make_claim(10 + n, 20 + n, ratio, word) for n, (ratio, word) in enumerate(ratios_and_words)
    )
    return vary(reports.batch_sizes(), 2, claims=claims, **changes)


def compare_networks(count):
    """A report whose rows have no batch size, and its finding on so many of them."""
    report = reports.network_sizes()
    claims = (make_claim(10, 0, 2.0), make_claim(11, 1, 1.1, "unknown"))
    versus = replace(reports.batch_sizes().findings[2], claims=claims[:count])
    return replace(report, labels={row: {"model": "a"} for row in report.labels}), versus


def claim_cpu_time(*ratios_and_words):
    return tuple(
        make_claim(n, n + 1, ratio, word, metric="cpu_s_per_epoch")
        for n, (ratio, word) in enumerate(ratios_and_words)
    )


SIZES = reports.batch_sizes()
NOT_SURE = reports.not_sure()
ONE_PROCESS = reports.one_process()
BARE = {"fastest": None, "least_cost": ()}
NETWORKS = reports.network_sizes()
LIMITS = reports.power_limits()
TARGET = reports.target()
TOP1 = reports.published()
TOP1_CLAIM = TOP1.findings[1].claims[0]
FIRST = {"word": "sure", "as_fast": (), "order": (2, 1), "unreached": (0,), "energy_word": "likely"}
COSTLIER = FIRST | {"energy_word": "unknown", "least_energy": 1, "costlier": (2,), "costlier_word": "likely"}
ALONE = {"word": "unknown", "order": (1,), "as_fast": (), "interrupted": ()}
FINDINGS = {
    # Which batch size.
    "a choice with its bound": (vary(SIZES), [
        "Take batch 128 on 2 GPUs (ddp): 1.74 s an epoch, 2,948 images/s, 7.0 GiB; no other size is more than 15 % "
        "faster (95 %). 256 is 2 % faster for 1.74 times the memory.",
        "Memory × time is least at batch 16 to 32 for 1 GPU, 32 to 64 for 2 GPUs (ddp) (sure); 128 (64 to 256) for 2 "
        "GPUs (dp) (likely).",
    ]),
    "a bound of nothing": (vary_choice(SIZES, BARE, bound=0.0), [
        "Take batch 128 on 2 GPUs (ddp): 1.74 s an epoch, 2,948 images/s, 7.0 GiB; no other size is faster (95 "
        "%).",
    ]),
    "a choice that is not firm": (vary(NOT_SURE), [
        "Not sure: batch 64: 388 images/s. 128 may be up to 45 % faster, 32 up to 7 % (95 %); 8 and 16 are "
        "slower. --rounds 16 (about 4 min more) tells.",
    ]),
    "further rounds of unknown length": (vary(NOT_SURE, remedy=Remedy(rounds=9, minutes=None)), [
        "Not sure: batch 64: 388 images/s. 128 may be up to 45 % faster, 32 up to 7 % (95 %); 8 and 16 are "
        "slower. --rounds 9 tells.",
    ]),
    "no advice, and no size that is slower": (vary(NOT_SURE, remedy=None, slower=()), [
        "Not sure: batch 64: 388 images/s. 128 may be up to 45 % faster, 32 up to 7 % (95 %).",
    ]),
    "bounds that say nothing, and more than three": (
        vary_choice(NOT_SURE, {"remedy": None, "slower": ()}, gains={0: 9.1, 1: 9.0, 2: 0.4, 4: 0.3}), [
        "Not sure: batch 64: 388 images/s. 8 may be over 900 % faster, 16 up to 900 %, 32 up to 40 %, 1 more by less "
        "(95 %).",
    ]),
    "a choice of one process": (vary(ONE_PROCESS), [
        "Take batch 128 with ddp: 6,097 images/s, 4.3 GiB. 256 may be as fast. 512 ran out of memory.",
        "Memory × time is least at batch 128 (32 to 128) for ddp (likely).",
    ]),
    "sizes of one process that nothing tells apart": (
        vary(ONE_PROCESS, word="unknown", as_fast=(2, 4), slower=(0,), out_of_memory=None, least_cost=()), [
        "Not sure: batch 128 with ddp: 6,097 images/s, 4.3 GiB. 64 and 256 may be as fast; 16 is slower.",
    ]),
    "more sizes than a sentence names": (
        vary(ONE_PROCESS, word="unknown", as_fast=(2, 4) * 7, slower=(0,), out_of_memory=None, least_cost=()), [
        "Not sure: batch 128 with ddp: 6,097 images/s, 4.3 GiB. 64, 256, 64 and 11 more may be as fast; 16 is slower.",
    ]),
    "no row with memory enough": ((ONE_PROCESS, BatchSizeFinding(word="unknown", out_of_memory=0)), [
        "No answer: batch 16 ran out of memory.",
    ]),
    "no row at all": ((ONE_PROCESS, BatchSizeFinding(word="unknown")), [
        "No answer.",
    ]),
    # Which power limit.
    "a limit with what it saves and costs": (vary(LIMITS), [
        "Take 150 W: 22 % less energy for 18 % more time (sure); no other limit takes more than 3 % less energy (95 "
        "%).",
    ]),
    "by energy x time, one of several series": (
        vary(LIMITS, aim=LimitAim(goal="edp"), label={"batch_size": 64, "gpus": 2}), [
        "Take 150 W for batch 64 on 2 GPUs: 8 % less energy × time, 22 % less energy for 18 % more time (sure); no "
        "other limit takes more than 3 % less energy × time (95 %).",
    ]),
    "with a bound on time, and nothing that may take less": (
        vary_choice(LIMITS, {"aim": LimitAim(at_most_slower=0.2)}, bound=0.0, gains={}), [
        "Take 150 W: 22 % less energy for 18 % more time (sure); no other limit of those at most 20 % slower takes "
        "less energy (95 %).",
    ]),
    "a saving that is likely and a time that is unknown": (
        vary_choice(LIMITS, {"word": "likely", "chosen_claims": {
            "energy_j": make_claim(0, 2, 0.775, "likely", metric="energy_j"),
            "epoch_time_s": make_claim(0, 2, 0.98, "unknown", metric="epoch_time_s"),
        }}, bound=0.4, is_firm=False), [
        "Take 150 W: 22 % less energy (likely) for 2 % less time (unknown); another one may take up to 29 % less "
        "energy (95 %).",
    ]),
    "a limit that nothing is known of": (
        vary_choice(LIMITS, {"word": "unknown", "remedy": Remedy(rounds=5, minutes=3), "chosen_claims": {
            metric: make_claim(0, 2, 0.775, "unknown", metric=metric) for metric in ("energy_j", "epoch_time_s")
        }}, bound=0.4, is_firm=False), [
        "Not sure: 150 W: 22 % less energy for 22 % less time (unknown); another one may take up to 29 % less energy "
        "(95 %). --rounds 5 (about 3 min more) tells.",
    ]),
    "a limit of one process": (
        vary_choice(LIMITS, {"word": "unknown", "chosen_claims": {
            metric: make_claim(0, 2, 0.775, "unknown", metric=metric) for metric in ("energy_j", "epoch_time_s")
        }}, bound=None, is_firm=False), [
        "Not sure: 150 W: 22 % less energy for 22 % less time (unknown).",
    ]),
    "no limit that saves": (vary_choice(LIMITS, {"chosen_claims": {}}, row=2), [
        "Leave it at 250 W: no lower limit takes less energy (sure).",
    ]),
    "none of those that are fast enough, by energy x time": (
        vary_choice(
            LIMITS, {"chosen_claims": {}, "word": "unknown", "aim": LimitAim(goal="edp", at_most_slower=0.05)}, row=2
        ), [
        "Leave it at 250 W: no lower limit of those at most 5 % slower takes less energy × time (unknown).",
    ]),
    # More devices, and one way against another.
    "speed-ups by how sure they are": (vary(SIZES, 1), [
        "2 GPUs (ddp) against 1: 1.60 to 1.86 times as fast at batch 64 to 512 (sure, efficiency 80 to 93 %), "
        "0.78 to 0.94 times at batch 16 and 32 (unknown).",
    ]),
    "faster and slower rows": (compare_strategies(*((ratio, "sure") for ratio in (0.5, 0.6, 2.0, 3.0))), [
        "ddp is 2.00 to 3.00 times as fast as dp at batch 64 and 128 (sure), 0.50 to 0.60 times at batch 16 and"
        " 32 (sure).",
    ]),
    "three sizes side by side and two": (
        compare_strategies(*((2.0, "sure" if n in (0, 1, 3, 4, 5) else "unknown") for n in range(6))), [
        "ddp is 2.00 times as fast as dp at batch 16, 32 and 128 to 512 (sure), 2.00 times at batch 64 "
        "(unknown).",
    ]),
    "rows that no batch size tells apart": (compare_networks(2), [
        "ddp is 2.00 times as fast as dp in 1 of 2 rows (sure), 1.10 times in 1 of 2 rows (unknown).",
    ]),
    "the only row": (compare_networks(1), [
        "ddp is 2.00 times as fast as dp (sure).",
    ]),
    "less CPU time": (vary(SIZES, 2, cpu_claims=claim_cpu_time((0.42, "sure"), (0.58, "likely"))), [
        "ddp is 1.28 to 4.45 times as fast as dp at every batch size (sure); it takes 42 to 58 % less CPU time "
        "(likely).",
    ]),
    "more CPU time": (vary(SIZES, 2, cpu_claims=claim_cpu_time((1.25, "unknown"))), [
        "ddp is 1.28 to 4.45 times as fast as dp at every batch size (sure); it takes 25 % more CPU time "
        "(unknown).",
    ]),
    "a likely finding and what tells more": (
        vary(SIZES, 2, word="likely", remedy=Remedy(rounds=5, minutes=0.2)), [
        "ddp is 1.28 to 4.45 times as fast as dp at every batch size (sure). --rounds 5 (about 1 min more) "
        "tells more.",
    ]),
    # From what network size.
    "a network size": (vary(NETWORKS), [
        "2 GPUs (ddp) are faster from mobilenet_v2 on (0.30 GMACs an image): 1.49 to 1.79 times (sure). Smaller"
        " ones are slower (0.70 to 0.77 times). mobilenet_v3_large: unknown.",
    ]),
    "slower at every size": (vary(NETWORKS, first_faster=None, claims=NETWORKS.findings[0].claims[:2]), [
        "2 GPUs (ddp) are slower at every network size: 0.70 to 0.77 times (sure).",
    ]),
    "nobody knows from what size": (
        vary(NETWORKS, first_faster=None, word="unknown", claims=NETWORKS.findings[0].claims[:3]), [
        "Unknown from what network size on 2 GPUs (ddp) are faster: 0.70 to 1.17 times. Slower: lenet and mlp "
        "x16 (0.70 to 0.77 times). mobilenet_v3_large: unknown.",
    ]),
    # Jobs together.
    "groups by what sharing gives": (vary(reports.sharing()), [
        "Sharing is worth it (sure): 2 × batch 16 get 1.90 times as much done as one after the other (≥ 1.59), "
        "3 × batch 16 2.95 times (≥ 2.47).",
        "Sharing gains nothing (sure): 2 × batch 128 get 1.00 times as much done as one after the other (≤ "
        "1.09), 3 × batch 128 1.00 times (≤ 1.09).",
    ]),
    "groups without a verdict": (vary(reports.pairs()), [
        "Sharing gains little or nothing (sure): resnet50 64 & mobilenet_v2 256 get 0.98 times as much done as "
        "one after the other (≤ 1.17).",
        "Unknown: mobilenet_v2 16 & resnet50 64 (there mobilenet_v2 16 ran faster than alone).",
        "No answer: 2 × batch 1,408: out of memory.",
    ]),
    "a group without times alone": (
        vary_group(reports.sharing(), "unknown", work=None, bound=None, gains=None), [
        "No answer: 2 × batch 16: no times alone.",
    ]),
    "a named group of which full overlap is excluded": (
        vary_group(reports.pairs(), "likely", 1, name="three jobs", gains=None, work=1.56, bound=None), [
        "No full overlap (likely): three jobs get 1.56 times as much done as one after the other.",
    ]),
    # Who reaches the target.
    "the likely first at the target": (vary(TARGET), [
        "Likely batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s and 32 takes 66.2 s. 64 "
        "may be as fast with another seed. 256: interrupted.",
        "Energy to 60 %: no difference shown (10.5 to 11.7 kJ).",
    ]),
    "the sure first, and the least energy": (vary(TARGET, **FIRST), [
        "Batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s. 32 did not reach it. 256: "
        "interrupted.",
        "Energy to 60 %: least with batch 64, 10.5 kJ of 10.5 to 11.7 (likely).",
    ]),
    "one that takes more energy": (vary(TARGET, **COSTLIER), [
        "Batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s. 32 did not reach it. 256: "
        "interrupted.",
        "Energy to 60 %: 128 takes more than 64, 11.7 against 10.5 kJ (likely); between the others no "
        "difference is shown.",
    ]),
    "one that takes more energy, and differences": (vary(TARGET, **COSTLIER, are_others_alike=False), [
        "Batch 128 reaches 60 % top-1 first: 36.1 s, 13 epochs; 64 takes 46.8 s. 32 did not reach it. 256: "
        "interrupted.",
        "Energy to 60 %: 128 takes more than 64, 11.7 against 10.5 kJ (likely).",
    ]),
    "nobody at the target": (vary(TARGET, **FIRST | {"order": ()}), [
        "No answer: no row reached 60 % top-1.",
    ]),
    "the only one that reached it": (vary(TARGET, **ALONE, unreached=(0, 2)), [
        "Not sure: batch 64 reaches 60 % top-1 first: 46.8 s, 9 epochs. 32 and 128 did not reach it.",
    ]),
    # Whether top-1 stays the same.
    "top-1 of one seed": (vary(TOP1, 1), [
        "Unknown whether top-1 stays the same with pre-resized: +9.0 to +25.0 points (one seed).",
    ]),
    "top-1 that changes": (vary(TOP1, 1, word="sure", seeds=3, claims=(TOP1_CLAIM,)), [
        "Top-1 changes with pre-resized: +9.0 points (3 seeds, sure).",
    ]),
    "top-1 that stays the same": (
        vary(TOP1, 1, word="sure", seeds=3, claims=(
            replace(TOP1_CLAIM, verdict=replace(TOP1_CLAIM.decided, word="sure", direction="same")),)), [
        "Top-1 stays the same with pre-resized: +9.0 points (3 seeds, sure).",
    ]),
    "top-1 along batch sizes": (vary(TOP1, 1, field="batch_size", value=None, baseline=None), [
        "Unknown whether top-1 stays the same with another batch size: +9.0 to +25.0 points (one seed).",
    ]),
    "top-1 along GPUs": (vary(TOP1, 1, field="gpus", value=None, baseline=None), [
        "Unknown whether top-1 stays the same with other GPUs: +9.0 to +25.0 points (one seed).",
    ]),
}  # fmt: skip


@pytest.mark.parametrize(("place", "lines"), FINDINGS.values(), ids=FINDINGS)
def test_a_finding_in_words(place, lines):
    report, finding = place
    assert words.format_finding_lines(report, finding) == lines


NAMES = [
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
]


@pytest.mark.parametrize(("fields", "name"), NAMES)
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
    assert words.describe_row_difference(candidate, baseline) == name


@pytest.mark.parametrize(
    ("form", "texts"),
    [
        (words.format_significant, {0.0062: "0.00620", 4.9: "4.90", 36.05: "36.1", 1234.5: "1,235", 0.0: "0",
                                    float("inf"): "–", 0.9996: "1.00"}),
        (words.format_gib, {430: "0.42", 7168: "7.0", 43315: "42.3", 117760: "115"}),
        (words.format_percent, {0.00001: "<0.01 %", 0.0004: "0.04 %", 0.006: "0.6 %", 0.0096: "1 %", 0.146: "15 %",
                                0: "0 %"}),
        (words.format_change, {62.2: "+62 %", -5.4: "−5 %", 0.2: "0 %", -0.3: "0 %"}),
        (words.format_points, {2.5: "+2.5", -0.3: "−0.3", 0.0: "0.0"}),
        (words.format_ratio, {0.785: "0.79", 9.994: "9.99", 10: "10.0", 12.34: "12.3"}),
    ],
)  # fmt: skip
def test_figures_have_three_digits_and_round_half_up(form, texts):
    assert {value: form(value) for value in texts} == texts


WARNINGS = [
    (
        SIZES,
        ReportWarning(code="single-process", rows=(2, 3), figures={"noise": 0.4}),
        "In 2 of 18 rows there was one process, so nothing is sure: such rows were seen to differ by up to 40 % "
        "(--rounds 3).",
    ),
    (
        SIZES,
        ReportWarning(code="first-batch", rows=(2, 3), figures={"low": 0.11, "high": 0.48}),
        "In 2 of 18 rows the first batch takes 11 to 48 % of the epoch, so longer epochs favour larger batches.",
    ),
    (
        SIZES,
        ReportWarning(code="first-batch", rows=(2,), figures={"low": 0.2, "high": 0.204}),
        "In 1 of 18 rows the first batch takes 20 % of the epoch, so longer epochs favour larger batches.",
    ),
    (
        SIZES,
        ReportWarning(code="one-process", rows=(1,), figures={"noise": 0.4}),
        "One process a row, so nothing is sure: such rows were seen to differ by up to 40 % (--rounds 3).",
    ),
    (
        SIZES,
        ReportWarning(code="desktop", rows=(*range(6), *range(10, 16), *range(20, 26))),
        "In all 18 rows a desktop used the GPU.",
    ),
    (
        replace(SIZES, labels={2: {}, 3: {}}),
        ReportWarning(code="desktop", rows=(2, 3)),
        "In both rows a desktop used the GPU.",
    ),
    (
        replace(SIZES, labels={2: {}}),
        ReportWarning(code="desktop", rows=(2,)),
        "In the only row a desktop used the GPU.",
    ),
    (
        SIZES,
        ReportWarning(code="of {another}\x07 version", rows=(1,)),
        "In 1 of 18 rows of {another}  version",
    ),
]


@pytest.mark.parametrize(("report", "warned", "text"), WARNINGS)
def test_a_kind_of_warning_is_one_line(report, warned, text):
    assert words.format_warning(report, warned) == text


UNCAPPED = replace(ONE_PROCESS, facts=replace(ONE_PROCESS.facts, fixed={}))
ENDINGS = [
    (ONE_PROCESS, {}, "out of memory: the cap is 12 GiB; 1,024 and 2,048 skipped"),
    (UNCAPPED, {"skipped": ()}, "out of memory"),
    (ONE_PROCESS, {"status": "timeout", "reason": "it hung.", "skipped": ()}, "timed out: it hung"),
    (
        UNCAPPED,
        {"status": "missing", "reason": None, "skipped": (64, 128)},
        "not run yet; 64 and 128 neither",
    ),
]


@pytest.mark.parametrize(("report", "changes", "text"), ENDINGS)
def test_an_ending_names_cap_and_sizes_but_not_what_the_allocator_says(report, changes, text):
    assert words.describe_ending(report, replace(report.rows[5], **changes)) == text


def test_jobs_that_nothing_tells_apart_are_named_by_what_all_rows_have():
    report = reports.sharing()
    report = replace(report, labels={}, facts=replace(report.facts, fixed={"batch_size": 1408}))
    assert words.name_group(report, report.findings[0].groups[0]) == "2 × batch 1,408"
    report = replace(report, facts=replace(report.facts, fixed={}))
    assert words.name_group(report, report.findings[0].groups[0]) == "2 × the same job"


def test_lines_that_weaken_all_answers_come_before_further_findings():
    ranks = [(line.kind, line.rank) for line in words.list_sentences(reports.one_process())]
    assert ranks == [("answer", 0), ("finding", 4), ("finding", 2), ("warning", 1), ("warning", 3)]
    assert [line.rank for line in words.list_sentences(reports.sharing())] == [0, 2]


@pytest.mark.parametrize(
    ("report", "text"),
    [(TOP1, "likely: from a published log"), (ONE_PROCESS, "likely: one run each"), (SIZES, "sure")],
)
def test_an_answer_says_how_sure_it_is(report, text):
    assert words.name_certainty(report, report.findings[0]) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1200, "1,200 rows are left out for want of room: here has all."),
        (1, "1 row is left out for want of room: here has all."),
    ],
)
def test_what_has_no_room_is_counted(count, text):
    assert words.describe_left_out(count, "row", "here") == text


def test_every_doubt_that_a_table_tells_or_no_record_words_has_its_line():
    columns = {name for names in AFFECTED_COLUMNS.values() for name in names}
    told = {doubt.code for doubt in DOUBTS if is_weakening_shown_figure(doubt.code, columns)}
    unworded = {doubt.code for doubt in DOUBTS if doubt.raised_by in ("processes", "folder")}
    assert told | unworded | {"spread", "faster-together"} <= words.ROW_WARNINGS.keys()
    assert not words.ROW_WARNINGS.keys() & words.TABLE_WARNINGS.keys()


def test_headings_come_from_columns_unless_a_table_needs_shorter_ones():
    report = reports.target()
    column = reports.make_column
    assert words.format_column_heading(report, column("time_to_top1_s")) == ("", "s to 60 %")
    assert words.format_column_heading(report, column("host_mem_mib")) == ("", "host MiB")
    assert words.format_column_heading(report, column("epoch_time_s", {"gpus": 2, "strategy": "ddp"})) == (
        "2 GPUs (ddp)",
        "epoch s",
    )
    assert words.format_column_heading(reports.sharing(), column("epoch_time_s")) == ("", "together s")
    assert words.format_column_heading(reports.batch_sizes(), column("time_to_top1_s")) == ("", "s to top-1")


def test_the_question_is_the_experiments_or_else_the_first_findings():
    assert words.format_question(TARGET) == TARGET.question
    assert words.format_question(NOT_SURE) == words.QUESTIONS["batch_size"]
    assert words.format_question(replace(NOT_SURE, findings=())) == ""


def test_facts_begin_with_what_matters_most():
    assert words.list_heading_facts(NETWORKS) == [
        "network-size",
        "2 × H200, 32 CPUs",
        "3 processes a row",
        "synthetic",
        "bf16",
        "batch 256",
    ]
    facts = replace(NETWORKS.facts, processes=(2, 3), images=10240)
    parts = words.list_heading_facts(replace(NETWORKS, facts=facts))
    assert parts[2].startswith("2 to 3 processes")
    assert parts[-1] == "10,240 images"
    assert "published" in words.list_heading_facts(reports.published())[2]
    none = replace(facts, processes=(0, 0))
    assert not any("process" in part for part in words.list_heading_facts(replace(NETWORKS, facts=none)))


SLOWDOWN = make_claim(0, 0, 1.05, metric="slowdown")
CLAIMS = [
    (
        SIZES,
        SIZES.findings[1].claims[2],
        ("1 GPU → 2 GPUs (ddp), batch 64", "images/s", "1.60", "1.44–1.76", "0.010", "more, sure"),
    ),
    (
        reports.sharing(),
        make_claim(1, 1, 1.9, low=1.59, p=0.0001, metric="work", design="above", limit=0.0953),
        ("2 × batch 16", "work done ≥ 1.10", "1.90", "≥ 1.59", "< 0.001", "more, sure"),
    ),
    (
        reports.sharing(),
        make_claim(20, 20, 0.98, "unknown", high=1.17, metric="work", design="below", limit=0.0953),
        ("2 × batch 128", "work done ≤ 1.10", "0.98", "≤ 1.17", "–", "unknown"),
    ),
    (TOP1, TOP1_CLAIM, ("batch 32 → 16", "top-1", "+9.0", "–", "–", "unknown")),
    (
        reports.sharing(),
        SLOWDOWN,
        ("batch 16 (1 of 2) in 2 × batch 16", "slowdown", "1.05", "–", "–", "more, sure"),
    ),
    (
        reports.sharing(),
        replace(SLOWDOWN, candidate=1),
        ("batch 16 (2 of 2) in 2 × batch 16", "slowdown", "1.05", "–", "–", "more, sure"),
    ),
    (
        TARGET,
        make_claim(2, 1, 0.8, metric="time_to_top1_s"),
        ("batch 64 → 128", "s to 60 %", "0.80", "–", "–", "less, sure"),
    ),
]


@pytest.mark.parametrize(("report", "claim", "row"), CLAIMS)
def test_a_claim_as_a_row(report, claim, row):
    assert words.make_claim_cells(report, claim) == row


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (
            Remedy(rounds=8, minutes=1200.2),
            "8 rounds give 80 % power (about 1,201 min more): --rounds 8.",
        ),
        (Remedy(rounds=8, minutes=None, is_of_seeds=True), "8 seeds give 80 % power: --repeats 8."),
        (None, ""),
    ],
)
def test_what_would_settle_a_finding(remedy, text):
    assert words.format_remedy(replace(NOT_SURE.findings[0], remedy=remedy)) == text


@pytest.mark.parametrize(
    ("fields", "command"),
    [
        (
            {
                "model": "resnet50", "batch_size": 128, "gpus": 2, "gpu_ids": (0, 1), "strategy": "ddp",
                "precision": "bf16", "variant": "crop-resize", "lr": 0.1, "breakdown": True, "data": "my images",
                "seed": 3, "workers": None,
            },
            "gpubench sweep --model resnet50 --variant crop-resize --data 'my images' --batch-size 128 --gpus 2 "
            "--strategy ddp --precision bf16 --set lr=0.1 --breakdown",
        ),
        ({"batch_size": 64, "window": 3.0, "steps": 100}, "gpubench sweep --batch-size 64 --steps 100"),
        ({"batch_size": 64, "gpu_ids": (0, 1)}, "gpubench sweep --batch-size 64 --gpu-ids 0+1"),
    ],
)  # fmt: skip
def test_the_best_configuration_as_a_command(fields, command):
    assert words.format_sweep_command(fields) == command


BOUNDS_HEAD = "By how much each other size may be faster (95 % for all of them together)"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"gains": {10: 0.146}, "bound": 0.146}, f"{BOUNDS_HEAD}: 16 up to 15 %; the others are slower."),
        ({"gains": {}, "bound": 0.0}, f"{BOUNDS_HEAD}: all are slower."),
        ({"bound": None}, ""),
    ],
)
def test_what_the_bound_of_a_choice_rests_on(changes, text):
    assert words.format_bounds(*vary_choice(SIZES, **changes)) == text


@pytest.mark.parametrize(
    ("gains", "text"),
    [
        ({1: 0.031}, "175 W up to 3 %; the others take more."),
        ({}, "all take more."),
        ({1: 0.25, 2: 0.04}, "175 W up to 20 %, 250 W up to 4 %."),
    ],
)
def test_what_the_bound_of_a_power_limit_rests_on(gains, text):
    bounds = words.format_bounds(*vary_choice(LIMITS, gains=gains))
    assert bounds == f"How much less each other limit may take (95 % for all of them together): {text}"


def test_naming_twice_as_many_rows_looks_at_twice_as_many_fields():
    lookups = []

    class Label(dict):
        def get(self, *arguments):
            lookups.append(arguments)
            return super().get(*arguments)

    counts = []
    for rows in (50, 100):
        lookups.clear()
        labels = {row: Label(batch_size=row, lr=0.1, strategy="ddp") for row in range(rows)}
        assert words.name_rows_apart(replace(SIZES, labels=labels), range(rows))[7] == "batch 7"
        counts.append(len(lookups))
    assert counts[1] == 2 * counts[0] > 0


def test_equal_names_are_numbered_and_stay_unlike_others():
    assert words.number_equal_names(["a", "a (2)", "a", "b", "a"]) == ["a", "a (2)", "a (3)", "b", "a (4)"]


@pytest.mark.parametrize(
    ("text", "started"),
    [("batch 64", "Batch 64"), ("t=0.9 g=30", "t=0.9 g=30"), ("by 3 %", "By 3 %"), ("", "")],
)
def test_a_sentence_begins_with_a_capital_unless_a_user_s_name_stands_there(text: str, started: str) -> None:
    assert words.start_sentence(text) == started
