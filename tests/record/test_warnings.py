"""Each doubt: where it is raised, where it is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import scripted
from fakes import resolve_alone
from whole_epochs import epoch_rows_of

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.plan import GroupMembership, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.record.epochs import make_windows
from gpubench.record.figures import WatchedFigures
from gpubench.record.outcome import Outcome
from gpubench.record.warnings import RULES, WarningEvidence, find_warnings
from gpubench.schema.doubts import DOUBTS

QUIET: dict[str, Any] = {
    "epoch_time_s": 10.0,
    "epoch_time_iqr_s": 0.1,
    "energy_j": 4000.0,
    "energy_sampled_j": 4010.0,
    "gpu_mem_mib": 9000.0,
    "gpu_alloc_retries": 0,
    "gpu_util_pct": 95.0,
    "sm_clock_mhz": 1900.0,
    "throttled_pct": 1.0,
    "cpu_util_pct": 60.0,
    "cpu_util_trial_pct": 55.0,
}


def case(
    fields: str = "",
    result: dict[str, Any] | None = None,
    seen: WatchedFigures | None = None,
    status: Any = "ok",
    **told: Any,
) -> WarningEvidence:
    """A blameless result, but for what is given."""
    text = f'name = "t"\n[fixed]\nvariant = "synthetic"\ninput_size = 32\n{fields}\n[run]\nepochs = 3\n'
    (job,) = expand_experiment(parse_experiment(text, "t"), device="cuda", sources=DiskSources()).jobs
    facts = DiskSources().find_data_facts(job.trial.data)
    epochs = epoch_rows_of(3)
    machine = scripted.computer(4, "NVIDIA H200")
    return WarningEvidence(
        job=job,
        resolved=resolve_alone(job, machine, facts, "cuda"),
        ended=Outcome(
            **{"status": status, "epochs": (own := told.pop("epochs", epochs)), **told},
            windows=make_windows(own, (QUIET | (result or {})).get("images_per_epoch")),
        ),
        seen=seen or WatchedFigures(max_sm_clock_mhz=1980.0),
        result=QUIET | (result or {}),
        gpu_mib=143_771,
    )


def in_a_group(size: int) -> WarningEvidence:
    """The blameless case, as one of so many jobs of a group."""
    blameless = case()
    solo = blameless.job
    membership = GroupMembership(group="g", group_id="g1", number=0, size=size, solo=solo)
    return replace(blameless, job=replace(solo, membership=membership))


def test_a_blameless_result_has_none() -> None:
    assert find_warnings(case()) == {}


CASES: dict[str, tuple[WarningEvidence, str]] = {
    "stranger": (case(seen=WatchedFigures(strangers=["process 7 (python) held 614 MiB on GPU 0"])), "process 7"),
    "desktop": (case(seen=WatchedFigures(desktops=["process 8 (Xorg) held 90 MiB on GPU 0"])), "Xorg"),
    "throttled": (case(result={"throttled_pct": 43.0, "throttle_reasons": "power cap"}), "43 % of the time"),
    "low-clock": (case(result={"sm_clock_mhz": 1200.0}), "1200 of 1980 MHz"),
    "slow-reading": (case(phases={"command": 20.0, "reading": 1.4}), "for 7 % of its time"),
    "spread": (case(result={"epoch_time_iqr_s": 0.9}), "9 %"),
    "near-limit": (case(result={"gpu_mem_mib": 140_000.0}), "140,000 of 143,771 MiB"),
    "retries": (case(result={"gpu_alloc_retries": 3}), "3 times"),
    "unbound-cpus": (replace(case(), could_run_on=96), "could run on 96: it may have shared them"),
    "cpu-starved": (case("workers = 512"), "512 loader workers"),
    "other-load": (case(result={"cpu_util_pct": 90.0}), "35 %"),
    "gaps": (
        case(seen=WatchedFigures(provenance={"power_w": {"samples": 80, "gaps": 20, "source": "", "period_s": 0.1}})),
        "20 % of the samples of power_w",
    ),
    "diverged": (case(missing={"loss": "the loss is not a finite number: training diverged"}), "diverged"),
    "dp": (case('strategy = "dp"\ngpus = 2\nmemory_format = "contiguous"'), "prefer ddp"),
    "dp-channels-last": (case('strategy = "dp"\ngpus = 2'), "contiguous"),
    "compile-cache": (case('execution = "compile"'), "compile the model"),
    "breakdown": (case("breakdown = true", result={"breakdown_cost_pct": 1.25}), "breakdown_cost_pct"),
    "skipped-images": (
        replace(case(), images=1_281_167, skipped_images=37),
        "37 of 1,281,167 images could not be decoded and were left out"),
    "shared-gpu": (replace(case(), shared_gpus=1), "divided by the busy time"),
    "faster-together": (case(result={"slowdown": 0.9}), "measure more processes of both (--rounds 5)"),
    "beyond-turns": (
        replace(in_a_group(2), result=QUIET | {"slowdown": 3.9}), "2 jobs one after the other would take 2"),
    "solo-stale": (replace(case(), stale_solo=True), "--retry stale"),
}  # fmt: skip


@pytest.mark.parametrize("code", RULES)
def test_each_is_raised_with_its_figure(code: str) -> None:
    doubted, words = CASES[code]
    found = find_warnings(doubted)
    assert words in found[code]
    assert "\n" not in found[code]
    assert set(found) - {code} <= {"dp"}, "and no other"


def test_of_a_command_of_less_than_a_second_its_start_is_much() -> None:
    assert "slow-reading" not in find_warnings(case(phases={"command": 0.9, "reading": 0.3}))


def test_a_cap_stands_for_the_card() -> None:
    near = case("gpu_mem_cap_mib = 12288", result={"gpu_mem_mib": 12000.0})
    assert "of 12,288 MiB" in find_warnings(near)["near-limit"]


@pytest.mark.parametrize(
    ("columns", "worst"),
    [
        ({"a": (1, 2), "b": (100, 60)}, "38 % of the samples of b "),
        ({"a": (1, 2)}, None),
        ({"b": (100, 3), "c": (3, 3), "d": (1, 1)}, "50 % of the samples of c "),
        ({"b": (27, 3)}, None),
        ({"meter_power_w": (3, 30), "rapl_power_w": (3, 30), "meter_source": (3, 30)}, None),
    ],
)
def test_a_column_with_too_few_gaps_to_count_hides_no_other(
    columns: dict[str, tuple[int, int]], worst: str | None
) -> None:
    """`columns`: samples and gaps of each."""
    told = {
        name: {"samples": samples, "gaps": gaps, "source": "", "period_s": 0.1}
        for name, (samples, gaps) in columns.items()
    }
    said = find_warnings(case(seen=WatchedFigures(provenance=told, max_sm_clock_mhz=1980.0))).get("gaps")
    assert said is None if worst is None else said is not None and said.startswith(worst)


def test_an_idle_gpu_s_low_clock_is_no_doubt() -> None:
    assert find_warnings(case(result={"sm_clock_mhz": 345.0, "gpu_util_pct": 10.0})) == {}


@pytest.mark.parametrize(
    ("asked", "result", "doubts"),
    [
        ("power_limit_w = 200", {"throttled_pct": 90.0, "throttle_reasons": "power cap"}, set()),
        (
            "power_limit_w = 200",
            {"throttled_pct": 90.0, "throttle_reasons": "power cap, heat"},
            {"throttled"},
        ),
        ("sm_clock_limit_mhz = 900", {"throttled_pct": 90.0, "throttle_reasons": "power cap"}, {"throttled"}),
        ("power_limit_w = 200", {"sm_clock_mhz": 900.0}, set()),
        ("sm_clock_limit_mhz = 900", {"sm_clock_mhz": 900.0}, set()),
    ],
)
def test_clocks_that_an_asked_for_limit_lowers_are_no_doubt(
    asked: str, result: dict[str, Any], doubts: set[str]
) -> None:
    assert set(find_warnings(case(asked, result=result))) == doubts


def test_a_trial_that_failed_is_doubted_for_what_may_be_why_alone() -> None:
    strange = WatchedFigures(strangers=["process 7 (python) held 614 MiB on GPU 0"])
    failed = replace(case(seen=strange, status="failed"), result={})
    assert set(find_warnings(failed)) == {"stranger"}


@pytest.mark.parametrize("code", RULES)
def test_what_may_be_why_a_trial_failed_is_told_of_any_ending(code: str) -> None:
    doubted, _ = CASES[code]
    failed = find_warnings(replace(doubted, ended=replace(doubted.ended, status="failed")))
    assert (code in failed) == (code in {"stranger", "desktop", "cpu-starved", "dp", "dp-channels-last"})


@pytest.mark.parametrize(("theirs", "doubted"), [(None, False), (40.0, False), (25.0, True), (0.0, True)])
def test_what_the_other_jobs_of_a_group_do_is_no_other_load(theirs: float | None, doubted: bool) -> None:
    busy = case(result={"cpu_util_pct": 98.0, "cpu_util_trial_pct": 55.0})
    found = find_warnings(replace(busy, others_cpu_pct=theirs))
    assert ("other-load" in found) == doubted


@pytest.mark.parametrize(
    ("crowding", "own", "theirs", "left"),
    [
        (None, 50.0, 0.0, None),
        (-200.0, 50.0, 0.0, None),
        (60.0, 50.0, 0.0, None),
        (61.0, 50.0, 0.0, "14.2"),
        (100.0, 50.0, 0.0, "8.0"),
        (100.0, 50.0, 45.0, None),
        (100.0, 50.0, None, None),
        (100.0, 0.0, 0.0, "0.0"),
    ],
)
def test_other_load_where_cpus_are_a_number_is_judged_by_the_host(
    crowding: float | None, own: float, theirs: float | None, left: str | None
) -> None:
    """As SLURM grants them where it binds to none: `cpu_util_pct` is then the trial's own use."""
    seen = WatchedFigures(crowding_pct=crowding, max_sm_clock_mhz=1980.0)
    one = case(result={"cpu_util_pct": own, "cpu_util_trial_pct": own}, seen=seen)
    one = replace(one, others_cpu_pct=theirs, resolved=replace(one.resolved, cpus=16))
    said = find_warnings(one).get("other-load")
    if left is None:
        assert said is None
    else:
        assert said is not None
        assert f" {left} of 16 CPUs " in said


def test_jobs_that_take_turns_do_not_hinder_each_other() -> None:
    three = replace(in_a_group(3), result=QUIET | {"slowdown": 3.32})
    assert "beyond-turns" not in find_warnings(three)


def test_the_rules_raise_all_that_nothing_else_does() -> None:
    assert set(RULES) == {doubt.code for doubt in DOUBTS if doubt.raised_by == "rule"}


def test_a_number_of_one_has_no_plural() -> None:
    assert "free some 1 time, which" in find_warnings(case(result={"gpu_alloc_retries": 1}))["retries"]
