"""Which rows a table's open questions are about, and what sweeps that follow them do to its answers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from gpubench.analysis.claims import Claims, claims, opened
from gpubench.analysis.decided import Decided
from gpubench.analysis.repeats import merge_repeats
from gpubench.analysis.scaling import comparisons
from gpubench.report.table import build
from scipy import stats
from simulated_processes import Array, mean_times
from test_claims import AXES, around, group_rows, process, rounds_of

from gpubench.schema.row import Row

QUIET, WILD = (0.0, 0.001, -0.001), (0.0, 0.2, -0.2)


def times(center: float, apart: Sequence[float], rounds: int = 3) -> list[float]:
    return [center * float(np.exp(apart[number % len(apart)])) for number in range(rounds)]


def asked(rows: Sequence[Row], axes=AXES, each: int = 1) -> list[set[str]]:
    """Ids of the trials of each open question of these rows' table."""
    found = build("one", rows, axes=axes).claims
    return [{run.trial_id for row in rows for run in row.runs} for rows in opened(found, found.settled(each))]


def batches(*rows: tuple[float, Sequence[float]], rounds: int = 3) -> list[Row]:
    """Batch sizes 16, 32, … with these times, each trial in so many rounds."""
    return [
        row
        for place, (center, apart) in enumerate(rows)
        for row in rounds_of(
            16 << place, times(center, apart, rounds), trial_id=str(16 << place), config_id=f"c{place}"
        )
    ]


def test_a_step_between_batch_sizes_is_open_with_both_of_its_rows():
    rows = batches((20, QUIET), (10, QUIET), (9, WILD))
    assert asked(rows) == [{"32", "64"}]
    assert asked(batches((20, QUIET), (10, QUIET), (8, QUIET))) == []


def test_two_processes_answer_nothing():
    assert asked(batches((20, QUIET), (10, QUIET), rounds=2)) == [{"16", "32"}]


def test_a_leap_is_open_where_the_answer_rests_on_it():
    """From 32 to 64 costs more and from 64 to 128 less; whether 128 pays straight after 32 is not known."""
    noise, other = (0.0, 0.05, -0.05), (0.05, -0.05, 0.0)
    rows = batches((20, QUIET), (10, noise), (30, noise), (9.8, other), rounds=9)
    assert asked(rows) == [{"32", "128"}]


def test_against_a_baseline_and_along_an_axis_both_rows_are_named():
    devices = [
        row
        for count, center, apart in ((1, 10, QUIET), (2, 5.3, QUIET), (4, 5, WILD))
        for row in rounds_of(
            64, times(center, apart), gpus=count, strategy="ddp" if count > 1 else "single",
            config_id=f"g{count}", trial_id=f"g{count}",
        )
    ]  # fmt: skip
    assert asked(devices, [("gpus",)]) == [{"g1", "g4"}]
    loaders = [
        row
        for count, center, apart in ((1, 10, QUIET), (2, 6, QUIET), (4, 6, WILD))
        for row in rounds_of(64, times(center, apart), workers=count, config_id=f"w{count}", trial_id=f"w{count}")
    ]  # fmt: skip
    assert asked(loaders, [("workers",)]) == [{"w2", "w4"}]
    ways = [
        row
        for name, center, apart in (("fp32", 10, QUIET), ("tf32", 6, QUIET), ("bf16", 6, WILD))
        for row in rounds_of(64, times(center, apart), precision=name, config_id=name, trial_id=name)
    ]
    assert asked(ways, [("precision",)]) == [{"fp32", "bf16"}]


def test_an_open_group_is_open_with_the_trial_alone():
    clear, unclear = (
        group_rows(around(10), around(one, apart)) for one, apart in ((10.2, 0.001), (10.3, 0.1))
    )
    assert asked(clear, ()) == []
    (ids,) = asked(unclear, ())
    assert ids == {f"{name}-{number}" for name in ("t16", "j1", "j2") for number in range(5)}


def test_what_the_table_has_decided_may_still_be_measured_on():
    """A look that comes before all others must leave room for those that follow."""
    rows = batches((20, (0.0, 0.1, -0.1)), (10, (0.1, 0.0, -0.1)), rounds=3)
    (answer, *_) = build("one", rows, axes=AXES).answers
    assert answer.startswith("Every larger batch pays")
    assert asked(rows) == [{"16", "32"}]


def test_rounds_of_several_processes_are_one_look_each():
    """Six processes of each row are the fourth look where a round makes one, and the second where it makes three."""

    rows = [
        process(batch, time, number % 3, round=1 + number // 3, trial_id=f"{batch}-{number % 3}")
        for batch, center in ((16, 10.0), (32, 8.0))
        for number, time in enumerate([*around(center, 0.04), center])
    ]
    assert asked(rows, each=3) == []
    assert asked(rows, each=1) == [{f"{batch}-{number}" for batch in (16, 32) for number in range(3)}]


# ---- what following them does to the answers ----

Rule = Callable[[Claims], Decided]


def against_the_first(seen: Sequence[Sequence[float]]) -> Claims:
    """The claims of a table in which each row is set against the first."""
    rows = [
        row
        for place, own in enumerate(seen, start=1)
        for row in rounds_of(
            64, list(own), gpus=place, strategy="ddp" if place > 1 else "single", config_id=f"g{place}",
            trial_id=str(place - 1),
        )
    ]  # fmt: skip
    return claims([], [], comparisons(merge_repeats(rows)), [], [], along=False)


def swept(table: Array, rule: Rule | None) -> Claims:
    """A table's claims after rounds over it, in which rows drop out that are in no question open by this rule."""
    seen: list[list[float]] = [[] for _ in table]
    rows = set(range(len(table)))
    found = against_the_first(seen)
    for number in range(table.shape[1]):
        for row in rows:
            seen[row].append(float(table[row, number]))
        if rule is not None and number >= 2 and rows:
            found = against_the_first(seen)
            rows = {int(row.trial_id) for both in opened(found, rule(found)) for row in both}
    return against_the_first(seen)


def differs(found: Claims) -> bool:
    return any(one.word in ("slower", "faster") for one in found.made.ratios)


@functools.cache
def shares(tables: int, rounds: int) -> tuple[float, float, float]:
    """Tables of ten equal rows with a false difference: all rounds of all rows; rows that drop out by the rule of
    sweeps; and by the words of the table itself."""
    draw = np.random.default_rng(12)
    times = mean_times(draw, tables * 10, rounds, 1.0).reshape(tables, 10, rounds)
    rules: list[Rule | None] = [None, Claims.settled, lambda found: found.made]
    all_, dropping, hasty = (np.mean([differs(swept(one, rule)) for one in times]) for rule in rules)
    return float(all_), float(dropping), float(hasty)


def test_rows_that_drop_out_hardly_add_false_differences():
    """Twenty looks by the words of the table itself would make them several times as many."""
    tables, rounds = 60, 12
    kept, dropping, hasty = shares(tables, rounds)
    assert dropping <= kept + 2 / tables
    assert dropping <= stats.binom.ppf(0.95, tables, 0.05) / tables
    assert hasty > 2 * max(dropping, 0.05), "the simulation sees what the looks are made stricter for"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_at_most_one_table_in_twenty_has_a_false_difference_where_rows_drop_out():
    tables, rounds = 1000, 20
    kept, dropping, hasty = shares(tables, rounds)
    assert abs(dropping - kept) <= 0.01
    assert dropping <= stats.binom.ppf(0.95, tables, 0.05) / tables
    assert hasty > 0.15
