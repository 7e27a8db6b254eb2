"""Of two rows with the same doubt the worse one is named, and its figure stands first: every sentence of the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from gpubench.report.doubts import FIGURE
from gpubench.report.doubts import doubts as told
from test_doubts import CASES, QUIET, case, in_a_group
from whole_rows import row_with

from gpubench.record.doubts import RULES, DoubtEvidence, doubts
from gpubench.record.figures import Figures
from gpubench.schema.doubts import DOUBTS


def of(**result: Any) -> DoubtEvidence:
    return case(result=result)


def on(cpus: int, doubted: DoubtEvidence) -> DoubtEvidence:
    return replace(doubted, resolved=replace(doubted.resolved, cpus=cpus))


def crowded(pct: float, cpus: int = 4) -> DoubtEvidence:
    """As SLURM grants CPUs where it binds to none."""
    seen = Figures(crowding_pct=pct, max_sm_clock_mhz=1980.0)
    return on(cpus, case(result={"cpu_util_pct": 0.0, "cpu_util_trial_pct": 0.0}, seen=seen))


def unbound(granted: int, could_run_on: int) -> DoubtEvidence:
    return replace(on(granted, case()), could_run_on=could_run_on)


def left_out(skipped: int, images: int) -> DoubtEvidence:
    return replace(case(), images=images, skipped_images=skipped)


def clocked(mhz: float, highest: float = 1980.0) -> DoubtEvidence:
    return case(result={"sm_clock_mhz": mhz}, seen=Figures(max_sm_clock_mhz=highest))


def filled(mib: float, cap: int = 12288) -> DoubtEvidence:
    return case(f"gpu_mem_cap_mib = {cap}", result={"gpu_mem_mib": mib})


def holding(mib: int) -> list[str]:
    return [f"process 7 (python) held {mib} MiB on GPU 0"]


def gaps(missed: int) -> DoubtEvidence:
    part = {"samples": 100 - missed, "gaps": missed, "source": "", "period_s": 0.1}
    return case(seen=Figures(provenance={"power_w": part}))


def together(slowdown: float, jobs: int) -> DoubtEvidence:
    return replace(in_a_group(jobs), result=QUIET | {"slowdown": slowdown})


PAIRS: dict[str, list[tuple[DoubtEvidence, DoubtEvidence, str]]] = {
    "stranger": [(
        case(seen=Figures(strangers=holding(90))), case(seen=Figures(strangers=holding(614))),
        "up to 614 MiB, at least 90 MiB",
    )],
    "desktop": [(
        case(seen=Figures(desktops=holding(90))), case(seen=Figures(desktops=holding(614))),
        "up to 614 MiB, at least 90 MiB",
    )],
    "throttled": [(of(throttled_pct=6.0), of(throttled_pct=43.0), "up to 43 %, at least 6 %")],
    "low-clock": [
        (clocked(1500), clocked(345), "345 to 1500 of 1980 MHz"),
        (clocked(1000), clocked(1000, 3000), "1000 of up to 3000, at least 1980 MHz"),
        (clocked(1000, 1400), clocked(1200, 3000), "1200 of 3000 MHz"),
    ],
    "spread": [(of(epoch_time_iqr_s=0.6), of(epoch_time_iqr_s=1.6), "up to 16 %, at least 6 %")],
    "near-limit": [
        (filled(11_700), filled(12_280), "up to 12,280, at least 11,700 of 12,288 MiB"),
        (filled(11_700), filled(7_999, 8_000), "7,999 of 8,000 MiB"),
    ],
    "retries": [(of(gpu_alloc_retries=1), of(gpu_alloc_retries=30), "up to 30, at least 1 time")],
    "cpu-starved": [
        (on(4, case("workers = 8")), on(4, case("workers = 512")), "up to 512, at least 8 loader workers"),
        (on(4, case("workers = 32")), on(2, case("workers = 32")), "32 loader workers share 2 to 4 CPUs"),
        (on(4, case("workers = 32")), on(1, case("workers = 32")), "32 loader workers share 1 to 4 CPUs"),
        (on(30, case("workers = 32")), on(4, case("workers = 16")), "16 loader workers share 4 CPUs"),
    ],
    "unbound-cpus": [(unbound(4, 8), unbound(2, 8), "2 to 4 CPUs of its job, but could run on 8")],
    "other-load": [
        (of(cpu_util_pct=67.0), of(cpu_util_pct=95.0), "up to 40 %, at least 12 %"),
        (crowded(12.5), crowded(95.0), "left 0.2 to 3.5 of 4 CPUs"),
        (crowded(50.0, 2), crowded(75.0, 8), "left 2.0 of 8 CPUs"),
    ],
    "gaps": [(gaps(12), gaps(60), "up to 60 %, at least 12 %")],
    "beyond-turns": [
        (together(2.8, 2), together(4.9, 2), "up to 4.90 times, at least 2.80 times"),
        (together(6.0, 4), together(5.2, 2), "took 5.20 times as long as alone, where 2 jobs"),
    ],
    "skipped-images": [
        (left_out(3, 1000), left_out(37, 1000), "up to 37, at least 3 of 1,000 images"),
        (left_out(5, 2000), left_out(4, 100), "4 of 100 images"),
    ],
    "faster-together": [(of(slowdown=0.94), of(slowdown=0.41), "0.41 to 0.94 times")],
}  # fmt: skip
"""Code -> a mild case, a severe one, and what is said of the two."""
STEADY = "an epoch is extrapolated from {} steps, too few to tell how long one takes: use --steps {} or more"
APART = "the counter says {} J, the integral of power {} J: use the counter's"
EARLIER: dict[str, list[tuple[str, str, str]]] = {
    "short-warmup": [
        ("the first steps took 6 % longer than the last", "the first steps took 50 % longer than the last",
         "up to 50 %, at least 6 %"),
    ],
    "short-epochs": [
        ("over only 0.9 s; measure longer", "over only 0.015 s; measure longer", "0.015 to 0.9 s"),
        ("over only 0.5 s; measure longer", "over only 1e-05 s; measure longer", "1e-05 to 0.5 s"),
    ],
    "short-steps": [
        (STEADY.format(20, 64), STEADY.format(2, 64), "2 to 20 steps"),
        (STEADY.format(3, 8), STEADY.format(9, 64), "from 9 steps"),
    ],
    "short-window": [("energy was measured over 9.1 s", "energy was measured over 2.0 s", "2.0 to 9.1 s")],
    "energy": [
        (APART.format("4,000", "4,400"), APART.format("4,000", "2,000"), "power 2,000 to 4,400 J"),
        (APART.format("4,000", "3,700"), APART.format("4,000", "6,000"), "power up to 6,000 J, at least 3,700 J"),
        (APART.format("9,000", "9,900"), APART.format("1,000", "1,500"), "says 1,000 J"),
    ],
}  # fmt: skip
"""The same of sentences that only earlier versions stored."""
SENTENCES = {
    code: [(doubts(mild)[code], doubts(severe)[code], said) for mild, severe, said in some]
    for code, some in PAIRS.items()
} | EARLIER


@pytest.mark.parametrize("severe_first", [False, True])
@pytest.mark.parametrize(
    ("code", "mild", "severe", "said"),
    [pytest.param(code, *pair, id=f"{code}-{n}") for code, some in SENTENCES.items() for n, pair in enumerate(some)],
)  # fmt: skip
def test_the_severe_row_is_named_the_worst(
    code: str, mild: str, severe: str, said: str, severe_first: bool
) -> None:
    rows = [
        row_with(batch_size=batch, doubts=code, doubt_texts={code: sentence})
        for batch, sentence in ((16, mild), (32, severe))
    ]
    _, note = told(rows[::-1] if severe_first else rows, ["batch_size"])
    assert said in note
    assert "worst" in note
    assert note.endswith(": batch_size=32)")


def test_what_no_rule_raises_is_of_earlier_versions() -> None:
    assert set(EARLIER) == {doubt.code for doubt in DOUBTS if doubt.raised_by == "earlier"}
    assert not set(EARLIER) & set(RULES)


@pytest.mark.parametrize("code", RULES)
def test_every_rule_with_a_figure_is_among_them(code: str) -> None:
    assert (code in PAIRS) == bool(FIGURE.search(doubts(CASES[code][0])[code]))


def test_a_number_of_one_has_no_plural() -> None:
    assert "free some 1 time, which" in doubts(of(gpu_alloc_retries=1))["retries"]


@pytest.mark.parametrize(
    ("code", "mild", "severe"), [("low-clock", 1500, 345), ("near-limit", 90, 99), ("energy", 5, 20)]
)
def test_another_version_s_sentence_may_have_one_figure(code: str, mild: int, severe: int) -> None:
    rows = [
        row_with(batch_size=batch, doubts=code, doubt_texts={code: f"doubtful: {figure}"})
        for batch, figure in ((16, mild), (32, severe))
    ]
    note = told(rows, ["batch_size"])[-1]
    said = f"{severe} to {mild}" if severe < mild else f"up to {severe}, at least {mild}"
    assert note == f"Doubt {code}: doubtful: {said} (all rows; worst: batch_size=32)"
