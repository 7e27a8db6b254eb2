"""May jobs share the machine? The work of groups, on which sides of its borders it lies, and spoilt times alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
from made_up_tables import make_table, scatter

from gpubench.analyze import sharing
from gpubench.analyze.table_rows import TableRows
from gpubench.core.findings import MeasuredJobGroup, SharingFinding
from gpubench.stats.decisions import decide_claims

QUIET = (-0.01, 0.0, 0.01)


def answer(table: TableRows) -> SharingFinding:
    (finding,) = sharing.make_findings(table, decide_claims(sharing.make_claims(table)))
    return finding


def alone(name: str, times: Sequence[float]) -> dict[str, Any]:
    return {"trial_id": name, "epoch_time_s": list(times)}


def job(unit: int, solo: str, times: Sequence[float], **facts: Any) -> dict[str, Any]:
    return {
        "group": f"group {unit}", "unit": unit, "jobs_of_group": 2, "solo_id": solo, "trial_id": f"{unit}-{solo}",
        "epoch_time_s": list(times), **facts,
    }  # fmt: skip


def share(
    *slowdowns: float, deviations: Sequence[float] = QUIET, noise: float | None = None
) -> MeasuredJobGroup:
    """A group of jobs of unlike trials that take so many times as long as alone."""
    count = len(slowdowns)
    rows = [alone(str(number), scatter(1.0, *deviations)) for number in range(count)]
    rows += [
        job(0, str(number), scatter(slowed, *reversed(deviations)), jobs_of_group=count)
        for number, slowed in enumerate(slowdowns)
    ]
    (group,) = answer(make_table(rows, noise)).groups
    return group


@pytest.mark.parametrize(
    ("slowdowns", "overlaps", "gains", "is_lower"),
    [
        ((2.0, 2.0), ("none",), False, False),
        ((1.25, 1.25), ("some",), True, True),
        ((1.0, 1.0), ("full",), True, True),
        ((3.0, 3.0, 3.0), ("none",), False, False),
        ((1.5, 1.5, 1.5), ("some",), True, True),
        ((4.0, 1.02), ("some",), True, True),
    ],
)
def test_the_one_overlap_that_is_left(
    slowdowns: tuple[float, ...], overlaps: tuple[str, ...], gains: bool, is_lower: bool
) -> None:
    group = share(*slowdowns)
    assert group.work == pytest.approx(sum(1 / each for each in slowdowns))
    assert (group.overlaps, group.gains, group.is_lower_bound) == (overlaps, gains, is_lower)
    assert group.word == "sure"
    assert group.bound is not None
    assert (group.bound < group.work) == is_lower


def test_the_borders_are_a_tenth_and_nine_tenths_of_the_way_to_the_number_of_jobs() -> None:
    assert sharing.compute_overlap_borders(2) == pytest.approx((1.1, 1.9))
    assert sharing.compute_overlap_borders(3) == pytest.approx((1.2, 2.8))


def test_what_noise_leaves_open_is_not_excluded_and_rounds_would_tell() -> None:
    unsure = share(1.75, 1.75, deviations=(-0.1, 0.0, 0.1))  # work 1.14, a little above the border of 1.1
    assert (unsure.overlaps, unsure.gains, unsure.word) == (("none", "some"), None, "sure")
    assert unsure.is_lower_bound is False
    open_ = share(1.75, 1.75, deviations=(-0.5, 0.0, 0.5))
    assert (open_.overlaps, open_.word, open_.bound) == (("none", "some", "full"), "unknown", None)
    gain = share(1.0, 1.0, deviations=(-0.1, 0.0, 0.1))
    assert (gain.overlaps, gain.gains, gain.is_lower_bound) == (("some", "full"), True, True)


def test_rounds_that_would_settle_whether_sharing_gains() -> None:
    rows = [
        alone("a", scatter(1.0, -0.1, 0.0, 0.1)),
        *(job(0, "a", scatter(1.75, 0.1, 0.0, -0.1)) for _ in "12"),
    ]
    remedy = answer(make_table(rows)).remedy
    assert remedy is not None
    assert remedy.rounds > 3
    settled = [alone("a", scatter(1.0, *QUIET)), *(job(0, "a", scatter(1.25, *QUIET)) for _ in "12")]
    assert answer(make_table(settled)).remedy is None


def test_of_one_process_a_word_is_likely_beyond_the_noise_and_has_no_bound() -> None:
    group = share(
        1.2, 1.25, deviations=(0.0,), noise=0.3
    )  # work 1.63: 1.1 times 1.35 is below, 1.9 by it is, too
    assert (group.overlaps, group.word, group.bound, group.gains) == (("some", "full"), "likely", None, True)
    group = share(1.2, 1.25, deviations=(0.0,), noise=0.4)
    assert (group.overlaps, group.word, group.gains) == (("none", "some", "full"), "unknown", None)
    assert share(1.2, 1.25, deviations=(0.0,)).word == "unknown"  # of which nobody knows the noise


def test_copies_share_the_times_of_their_trial_alone_and_runs_count_that_all_jobs_ended() -> None:
    both = [alone("a", [1.0, 1.0, 1.0]), job(0, "a", [1.6, 2.0, 2.5]), job(0, "a", [1.6, 2.5], round=[1, 3])]
    table = make_table(both)
    work = [claim for claim in sharing.make_claims(table) if claim.metric == "work"]
    assert len(work) == 4
    assert work[0].evidence.processes == (2, 3)
    (group,) = answer(table).groups
    assert group.work == pytest.approx(2 / 2.0)  # of rounds 1 and 3: the geometric mean of 1.6 and 2.5


def test_where_no_row_is_of_a_trial_alone_the_stored_times_count_each_once() -> None:
    rows = [
        job(0, "a", [2.0, 2.0, 2.0], solo_epoch_time_s=[1.0, 1.0, 1.21]),
        job(0, "b", [4.0, 4.0, 4.0], solo_epoch_time_s=[2.0, 2.0, 2.0]),
    ]
    table = make_table(rows)
    (group,) = answer(table).groups
    assert group.work == pytest.approx(1.1 / 2 + 2 / 4)
    assert [claim.metric for claim in sharing.make_claims(table)] == ["work"] * 4


def test_copies_share_stored_times_alone_by_the_trial_that_they_are_of() -> None:
    def count(*solos: str | None) -> int:
        rows = [job(0, "a", [2.0, 2.1], solo_epoch_time_s=[1.0, 1.1], solo_id=solo) for solo in solos]
        return len(sharing.make_claims(make_table(rows))[0].evidence.processes)

    assert count("a", "a") == 2  # the runs of the group, and the trial alone
    assert count("a", "b") == 3
    assert count(None, None) == 3


def test_groups_of_one_name_are_told_apart_by_what_their_jobs_agree_in() -> None:
    def pair(unit: int, variant: str) -> list[dict[str, Any]]:
        return [
            job(unit, "a", [1.5], group="two", variant=variant, batch_size=size, solo_epoch_time_s=1.0)
            for size in (16, 32)
        ]

    rows = [*pair(0, "crop-resize"), *pair(1, "pre-resized")]
    groups = answer(make_table(rows, varied=("variant", "batch_size"))).groups
    assert [group.name for group in groups] == ["two", "two"]
    assert [dict(group.label) for group in groups] == [{"variant": "crop-resize"}, {"variant": "pre-resized"}]
    (only,) = answer(make_table(rows[:2], varied=("batch_size",))).groups
    assert dict(only.label) == {}


def test_a_time_alone_that_is_beaten_beside_others_spoils_every_group_that_is_compared_with_it() -> None:
    rows = [
        alone("slow", scatter(1.5, *QUIET)),
        alone("b", scatter(1.0, *QUIET)),
        job(0, "slow", scatter(1.0, *QUIET)),
        job(0, "b", scatter(1.3, *QUIET)),
        job(1, "slow", scatter(1.6, *QUIET)),
        job(1, "b", scatter(1.2, *QUIET)),
        job(2, "b", scatter(2.0, *QUIET)),
        job(2, "b", scatter(2.0, *QUIET)),
    ]
    finding = answer(make_table(rows))
    assert [group.spoilt_by for group in finding.groups] == [12, 12, None]
    assert [group.word for group in finding.groups] == ["unknown", "unknown", "sure"]
    assert finding.groups[1].overlaps == ("none", "some", "full")
    assert (finding.groups[1].gains, finding.groups[1].bound) == (None, None)
    assert finding.groups[1].work == pytest.approx(1.5 / 1.6 + 1 / 1.2)
    assert finding.word == "sure"


def test_a_job_that_is_faster_by_chance_spoils_nothing() -> None:
    rows = [
        alone("a", scatter(1.0, -0.1, 0.0, 0.1)),
        *(job(0, "a", scatter(0.97, 0.1, -0.1, 0.0)) for _ in range(2)),
    ]
    (group,) = answer(make_table(rows)).groups
    assert group.spoilt_by is None
    once = make_table([alone("a", [1.0]), job(0, "a", [0.9]), job(0, "a", [0.9])], noise=0.2)
    assert answer(once).groups[0].spoilt_by is None
    beyond = make_table([alone("a", [1.0]), job(0, "a", [0.8]), job(0, "a", [0.9])], noise=0.2)
    assert answer(beyond).groups[0].spoilt_by == 11


def test_a_group_with_a_job_that_did_not_end_has_no_work() -> None:
    failed = [alone("a", [1.0]), job(0, "a", [1.5]), {**job(0, "a", []), "status": "oom"}]
    lost = [alone("a", [1.0]), job(0, "a", [1.5])]
    unknown = [job(0, "a", [1.5]), job(0, "b", [1.5])]
    for rows in (failed, lost, unknown):
        (group,) = answer(make_table(rows)).groups
        assert (group.work, group.word, group.overlaps, group.jobs) == (None, "unknown", (), 2)


def test_a_trial_alone_on_another_machine_is_no_baseline() -> None:
    rows = [{**alone("a", [1.0]), "machine": "A100"}, job(0, "a", [1.5]), job(0, "a", [1.5])]
    assert answer(make_table(rows)).groups[0].work is None


def test_a_trial_alone_without_a_time_is_no_baseline_of_a_slowdown() -> None:
    rows = [alone("0", [math.nan] * 3), alone("1", scatter(1.0, *QUIET))]
    rows += [job(0, number, scatter(2.0, *QUIET)) for number in ("0", "1")]
    claims = sharing.make_claims(make_table(rows))
    assert [claim.baseline for claim in claims if claim.metric == sharing.SLOWDOWN] == [11]


def test_the_prediction_stands_beside_the_measurement() -> None:
    both = [
        alone("a", [1.0]),
        job(0, "a", [1.5], predicted_slowdown=1.25),
        job(0, "a", [1.5], predicted_slowdown=2),
    ]
    assert answer(make_table(both)).groups[0].predicted_work == pytest.approx(1.3)
    assert answer(make_table([*both[:2], job(0, "a", [1.5])])).groups[0].predicted_work is None


def test_words_of_the_column_and_of_all_groups_together() -> None:
    rows = [
        alone("a", scatter(1.0, *QUIET)),
        *(job(0, "a", scatter(2.0, *QUIET)) for _ in range(2)),
        *(job(1, "a", scatter(1.75, 0.3, 0.0, -0.3)) for _ in range(2)),
    ]
    finding = answer(make_table(rows))
    assert [group.overlaps for group in finding.groups] == [("none",), ("none", "some")]
    assert finding.word == "sure"
    assert finding.rows == (11, 12, 13, 14)


def test_without_groups_nothing_is_asked() -> None:
    table = make_table([alone("a", [1.0])])
    assert sharing.make_findings(table, decide_claims(sharing.make_claims(table))) == []
