"""Which attempt at a unit counts: by endings, numbers, rounds, claims, folders, machines and allowances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fakes import record
from msgspec import structs

from gpubench.results.counting import (
    count_attempts_without_first_round,
    find_attempt_allowance,
    find_record_host,
    find_unit_id,
    group_by_attempt,
    identify_attempt,
    key_records_as_counting,
    list_superseded_records,
    make_start_key,
    select_counting_by_round,
    select_counting_of_first_round,
    select_counting_records,
)
from gpubench.schema.record import Record


def store(attempt: int, status: str = "ok", **fields: Any) -> Record:
    """An attempt at one and the same trial."""
    return record(attempt=attempt, status=status, **fields)


def numbers(records: Sequence[Record], number: int = 1) -> list[int]:
    """Numbers of the attempts that count in a round."""
    return [job.attempt for job in select_counting_by_round(records).get(number, {}).values()]


@pytest.mark.parametrize(
    ("statuses", "counts"),
    [
        (("ok",), 1),
        (("failed", "ok"), 2),
        (("ok", "ok"), 2),
        (("ok", "failed"), 1),
        (("oom", "interrupted"), 1),
        (("failed", "timeout"), 2),
        (("failed", "ok", "interrupted"), 2),
        (("interrupted", "oom", "failed", "timeout"), 2),
    ],
)
def test_the_last_that_is_final_counts_else_the_last(statuses: tuple[str, ...], counts: int) -> None:
    records = [store(number, status) for number, status in enumerate(statuses, 1)]
    assert numbers(records) == [counts]
    assert numbers(records[::-1]) == [counts]
    assert numbers(records, 2) == []


def test_numbers_tell_what_came_later_not_clocks() -> None:
    records = [store(2, started_at="2026-11-20 08:00:00"), store(1, started_at="2026-11-20 09:00:00")]
    assert numbers(records) == [2]
    assert [job.attempt for job in sorted(records, key=make_start_key)] == [2, 1]


def test_attempts_of_one_second_are_sorted_by_trial_and_number() -> None:
    records = [store(2), store(1), store(1, trial_id="t0000000000a")]
    in_second = [(job.trial_id, job.attempt) for job in sorted(records, key=make_start_key)]
    assert in_second == [("t0000000000a", 1), ("t0123456789a", 1), ("t0123456789a", 2)]


def test_a_further_round_counts_behind_the_first_that_counts() -> None:
    first, second, third = store(1), store(2, round=2), store(3, round=3)
    assert {
        number: len(jobs) for number, jobs in select_counting_by_round([third, first, second]).items()
    } == {
        1: 1,
        2: 1,
        3: 1,
    }
    anew = store(3)
    assert select_counting_by_round([first, second, anew])[1].popitem()[1] is anew
    assert sorted(select_counting_by_round([first, second, anew])) == [1]
    again = store(4, round=2)
    assert numbers([first, second, anew, again], 2) == [4]
    assert numbers([store(5), store(5, round=2, started_at="2026-11-21 00:00:00")], 2) == []


def test_further_rounds_alone_count_nowhere_and_are_told() -> None:
    others = [store(2, round=2), store(3, round=3)]
    assert select_counting_by_round(others) == {}
    assert count_attempts_without_first_round(others) == {"t0123456789a": 2}
    assert count_attempts_without_first_round([*others, store(1)]) == {}
    assert count_attempts_without_first_round([*others, store(1, reference=True)]) == {"t0123456789a": 3}


def test_what_was_measured_for_its_node_alone_counts_nowhere() -> None:
    assert numbers([store(1), store(2, reference=True)]) == [1]
    assert select_counting_records([store(2, reference=True)]) == {}


def test_each_machine_and_each_allowance_has_one_that_counts() -> None:
    few = store(1, resolved={"cpus": 1, "workers": 1})
    many = store(2, resolved={"cpus": 8, "workers": 4})
    other = store(3, machine_key="H200")
    assert list(select_counting_records([few, many, other]).values()) == [few, many, other]
    assert [
        (trial_id, machine, number) for trial_id, machine, number, _ in select_counting_records([few, other])
    ] == [
        ("t0123456789a", "CPU", 1),
        ("t0123456789a", "H200", 1),
    ]
    assert select_counting_of_first_round([few, many, other]) == {
        ("t0123456789a", "CPU"): many,
        ("t0123456789a", "H200"): other,
    }
    assert find_attempt_allowance([few]) != find_attempt_allowance([many])
    assert find_attempt_allowance([few]) == find_attempt_allowance(
        [store(7, resolved={"cpus": 1, "workers": 1})]
    )


def test_what_is_to_count_counts_whatever_came_later() -> None:
    failed, later = store(1, "failed"), store(2, round=3)
    assert list(key_records_as_counting([failed, later]).values()) == [failed, later]
    assert [number for *_, number, _ in key_records_as_counting([failed, later])] == [1, 3]


# ---- groups ----


def store_group(attempt: int, *statuses: str, **fields: Any) -> list[Record]:
    return [
        store(attempt, status, trial_id=f"t00000000000{place}", group_id="g1", job=str(place), **fields)
        for place, status in enumerate(statuses)
    ]


def test_the_jobs_of_a_group_come_from_one_attempt() -> None:
    whole, part = store_group(1, "ok", "ok"), store_group(2, "ok", "failed")
    assert group_by_attempt([*whole, *part]) == [whole, part]
    assert list(select_counting_of_first_round([*part, *whole]).values()) == whole
    assert [find_unit_id(job) for job in whole] == ["g1", "g1"]
    assert find_unit_id(store(1)) == "t0123456789a"


def test_the_host_tells_first_attempts_of_one_second_apart_and_else_the_machine() -> None:
    hosts = [store(1, environment={"host": host}) for host in ("n1", "n2")]
    machines = [store(1, machine_key=name) for name in ("A", "B")]
    assert (
        [len(jobs) for jobs in group_by_attempt(hosts)]
        == [len(jobs) for jobs in group_by_attempt(machines)]
        == [1, 1]
    )
    assert [find_record_host(job) for job in (*hosts, store(1))] == ["n1", "n2", ""]
    unlike = store_group(1, "ok", "ok")
    unlike[1] = structs.replace(unlike[1], machine_key="another")
    assert identify_attempt(unlike[0]) == identify_attempt(unlike[1])


# ---- several folders ----


def test_of_two_folders_the_one_that_measured_last_counts_with_all_its_rounds() -> None:
    early = [
        store(1, folder_id="aa", started_at="2026-11-01 00:00:00"),
        store(2, round=2, folder_id="aa", started_at="2026-11-01 01:00:00"),
    ]
    late = [store(1, folder_id="bb", started_at="2026-11-02 00:00:00")]
    assert select_counting_by_round([*late, *early]) == {1: {("t0123456789a", "CPU"): late[0]}}
    further = store(3, round=2, folder_id="aa", started_at="2026-11-03 00:00:00")
    chosen = select_counting_by_round([*early, *late, further])
    assert [jobs["t0123456789a", "CPU"] for jobs in chosen.values()] == [early[0], further]


def test_of_two_folders_what_ended_goes_before_what_did_not() -> None:
    ended = store(1, folder_id="aa", started_at="2026-11-01 00:00:00")
    failed = store(1, "failed", folder_id="bb", started_at="2026-11-02 00:00:00")
    only_further = store(9, round=2, folder_id="cc", started_at="2026-11-03 00:00:00")
    for records in ([ended, failed, only_further], [only_further, failed, ended]):
        assert list(select_counting_of_first_round(records).values()) == [ended]


def test_of_two_folders_that_began_in_one_second_always_the_same_counts() -> None:
    records = [store(1, attempt_id=f"1-{name}", folder_id=name) for name in ("aa", "bb")]
    assert [
        select_counting_of_first_round(order).popitem()[1].folder_id for order in (records, records[::-1])
    ] == [
        "bb",
        "bb",
    ]


# ---- claims ----


def claimed(attempt: int, number: object, status: str = "ok", **fields: Any) -> Record:
    return store(attempt, status, claim=f"t0123456789a-r1-m00000000.{number}", **fields)


def test_the_record_of_the_highest_claim_counts_whoever_stored_later() -> None:
    frozen, heir = claimed(2, 1), claimed(1, 2)
    assert numbers([frozen, heir]) == [1]
    assert list_superseded_records([frozen, heir]) == [frozen]
    assert list_superseded_records([claimed(1, 9), claimed(2, 10)]) == [
        claimed(1, 9)
    ]  # by number, not by text


def test_one_that_ended_goes_before_a_higher_claim_that_was_stopped() -> None:
    ended, stopped = claimed(1, 1), claimed(2, 2, "interrupted")
    assert numbers([ended, stopped]) == [1]
    assert list_superseded_records([stopped, ended]) == [stopped]
    both = [claimed(1, 1, "failed"), claimed(2, 2, "interrupted")]
    assert list_superseded_records(both) == both[:1]


def test_only_claims_of_the_same_unit_and_round_in_the_same_folder_supersede() -> None:
    first, unclaimed = claimed(1, 1), store(2)
    further = store(3, round=2, claim="t0123456789a-r2-m00000000.2")
    elsewhere = claimed(1, 3, folder_id="bb")
    assert list_superseded_records([first, unclaimed, further, elsewhere]) == []
    assert numbers([first, unclaimed]) == [2]
    assert sorted(select_counting_by_round([first, further])) == [1, 2]


def test_what_is_no_number_of_a_claim_is_the_lowest() -> None:
    for text in ("x", "", "99999999", "²"):
        assert list_superseded_records([claimed(1, text), claimed(2, 1)]) == [claimed(1, text)]
    assert list_superseded_records([claimed(1, 1), claimed(2, 9_999_999)]) == [claimed(1, 1)]


def test_all_jobs_of_a_superseded_group_are_listed() -> None:
    name = "g1-r1-m00000000"
    frozen, heir = (
        store_group(2, "ok", "ok", claim=f"{name}.1"),
        store_group(1, "ok", "ok", claim=f"{name}.2"),
    )
    assert list_superseded_records([*heir, *frozen]) == frozen
    assert list(select_counting_of_first_round([*frozen, *heir]).values()) == heir
