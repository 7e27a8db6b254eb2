"""From how many devices on efficiency lies under a bound, and what Amdahl's law makes of speed-ups."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from gpubench.analysis.amdahl import share_of
from gpubench.analysis.claims import opened
from gpubench.analysis.efficiency import Scaled, sentence
from gpubench.analysis.scaling import Comparison
from gpubench.report.table import Table, build
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from whole_rows import changed, row_with

from gpubench.schema.row import Row


def around(time: float, apart: float = 0.001) -> list[float]:
    """Five processes whose logarithms lie evenly about that of this time."""
    return [time * math.exp(apart * step) for step in (-2, -1, 0, 1, 2)]


def table(*rows: tuple[int, list[float]], weak: bool = False, **more) -> Table:
    return built(runs(*rows, weak=weak, **more), weak=weak)


def runs(*rows: tuple[int, list[float]], weak: bool = False, **more) -> list[Row]:
    return [
        row_with(
            model="resnet34", config_id=f"g{gpus}{more}", trial_id=f"g{gpus}-{number}", repeat=number, status="ok",
            batch_size=64 * (gpus if weak else 1), epoch_time_s=time, images_per_epoch=10_240, device="cuda",
            gpu_name="H", gpus=gpus, **{"strategy": "ddp" if gpus > 1 else "single"} | more,
        )
        for gpus, times in rows
        for number, time in enumerate(times)
    ]  # fmt: skip


def built(rows: list[Row], *, weak: bool = False) -> Table:
    axes = [("strategy",), ("gpus", *(["batch_size"] if weak else []))]
    return build("one", rows, axes=axes)


def said(found: Table) -> list[str]:
    return [one for one in found.answers if "fficiency of ddp (" in one]


def by_efficiency(*each: float, apart: float = 0.001) -> Table:
    """One GPU in 80 s, then 2, 4, 8, … with these efficiencies."""
    rows = [(1, around(80.0))]
    rows += [(2 << place, around(80.0 / (2 << place) / one, apart)) for place, one in enumerate(each)]
    return table(*rows)


START = "Efficiency of ddp (strong scaling against single on 1 GPU)"


@pytest.mark.parametrize(
    ("each", "words"),
    [
        ((0.95, 0.9, 0.85), "stays above 80 % up to 8 GPUs."),
        ((0.95, 0.75, 0.5), "falls under 80 % from 4 GPUs on."),
        ((0.7, 0.6, 0.5), "falls under 80 % from 2 GPUs on."),
        ((0.95, 0.8, 0.5), "is above 80 % on 2, under it on 8 and open on 4 GPUs."),
        ((0.7, 0.9, 0.5), "is above 80 % on 4 and under it on 2 and 8 GPUs."),
        ((0.8, 0.8), "is neither shown to lie above 80 % nor under it, on 2 and 4 GPUs."),
    ],
)
def test_what_is_shown_of_each_number_of_devices(each, words):
    (found,) = said(by_efficiency(*each))
    assert found.startswith(f"{START} {words}")


def test_of_two_numbers_of_devices_the_efficiency_says_all():
    assert said(by_efficiency(0.7)) == []


def test_of_one_process_it_is_by_these_figures():
    found = table((1, [80.0]), (2, [44.0]), (4, [30.0]))
    assert said(found) == [f"By one process each, e{START[1:]} falls under 80 % from 4 GPUs on."]
    from_log = [changed(row, source="published log") for row in found.trials]
    logged = build("one", from_log, axes=[("gpus",)])
    assert said(logged) == [f"{START} falls under 80 % from 4 GPUs on by these figures."]
    assert found.claims.count == 0


def test_its_claims_are_of_the_tables_family_and_keep_a_budget_going():
    sure, unsure = by_efficiency(0.95, 0.5), by_efficiency(0.95, 0.8, apart=0.0005)
    assert sure.claims.count == 4  # two speed-ups, and on which side of the bound each of them lies
    assert opened(sure.claims, sure.claims.made) == []
    ((baseline, row),) = opened(unsure.claims, unsure.claims.made)
    assert (baseline.gpus, row.gpus) == (1, 4)


def test_efficiencies_at_the_bound_are_seldom_said_to_lie_on_a_side_of_it():
    draw = np.random.default_rng(5)
    tables = 100
    told = 0
    for _ in range(tables):
        rows = [(gpus, [100 / gpus / share * math.exp(0.02 * one) for one in draw.normal(size=5)])
                for gpus, share in ((1, 1.0), (2, 0.8), (4, 0.8))]  # fmt: skip
        (found,) = said(table(*rows))
        told += " is neither shown " not in found
    # Of 100 tables at a rate of 5 %, 10 or more would be chance of one in twenty.
    assert told <= stats.binom.ppf(0.95, tables, 0.05)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.floats(0.3, 1.1), min_size=2, max_size=4),
    st.floats(0.0001, 0.2),
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_does_not_matter(each, apart, chance):
    rows = [(1, around(80.0))]
    rows += [(2 << place, around(80.0 / (2 << place) / one, apart)) for place, one in enumerate(each)]
    mixed = [(gpus, chance.sample(times, len(times))) for gpus, times in rows]
    chance.shuffle(mixed)
    assert said(table(*mixed)) == said(table(*rows))


@given(st.floats(0, 0.99), st.integers(2, 64))
def test_a_share_gives_the_speed_up_that_asks_for_it(share, count):
    speedup = 1 / (share + (1 - share) / count)
    assert share_of(speedup, count) == pytest.approx(share, abs=1e-9)


def test_one_serial_share_explains_all_speed_ups():
    """Of a share of 10 %: 1 / (0.1 + 0.9 / 2) = 1.82 and 1 / (0.1 + 0.9 / 4) = 3.08."""
    (found,) = said(table((1, around(100)), (2, around(55)), (4, around(32.5))))
    assert found == (
        f"{START} falls under 80 % from 4 GPUs on. By Amdahl's law a serial share of 9.9 to 10.1 % (95 %) would "
        "explain all of these speed-ups."
    )


def test_of_another_strategy_on_as_many_devices_the_law_says_nothing():
    """Without more devices there is no serial share: 1 - 1 / n is 0."""
    rows = [(1, around(100)), (2, around(55)), (4, around(32.5))]
    found = built([*runs(*rows), *runs((1, around(101)), strategy="ddp")])
    assert said(found) == said(table(*rows))


def test_a_law_that_does_not_fit_gives_no_share():
    """Two GPUs ask for 2 × 0.55 − 1 = 10 %, four for (4 × 0.4 − 1) / 3 = 20 %."""
    (found,) = said(table((1, around(100)), (2, around(55)), (4, around(40))))
    assert found.endswith(
        "Amdahl's law does not fit: by each speed-up alone the serial share would be 9.7 to 10.3 % on 2 and 19.9 to "
        "20.1 % on 4, and none from 0 to 100 % is in all of these (95 %)."
    )
    (faster,) = said(table((1, around(100)), (2, around(45)), (4, around(22))))
    assert "Amdahl's law does not fit: " in faster


@pytest.mark.parametrize(
    "found",
    [
        table((1, around(100)), (2, around(110)), (4, around(130)), weak=True),
        table((2, around(100)), (4, around(55)), (8, around(32))),
        table((1, [100.0]), (2, [55.0]), (4, [32.5])),
    ],
    ids=["weak scaling", "no row on one device", "one process"],
)
def test_where_the_points_do_not_allow_it_no_law_is_fitted(found):
    assert said(found)
    assert "Amdahl" not in " ".join(found.answers)


def test_the_side_that_is_told_is_the_one_that_was_tested():
    """The figure shown is of all rounds; where two rows share only some of them, these were tested."""

    @dataclass(frozen=True, kw_only=True)
    class Shown(Comparison):
        @property
        def efficiency_pct(self) -> float:
            return 80.3

    found = by_efficiency(0.79, 0.79)
    (of,) = found.claims.scaled
    steps = [
        Shown(kind=one.kind, row=one.row, baseline=one.baseline, speedup=one.speedup) for one in of.steps
    ]
    assert max(Scaled(steps=steps).chances) < 0.01
    assert sentence(Scaled(steps=steps), [True, True]).endswith("falls under 80 % from 2 GPUs on.")
