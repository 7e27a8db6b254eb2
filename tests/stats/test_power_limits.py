"""Models of time and power over power limits: what each is right about, how they are judged, and published traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from power_traces import CARDS, read_trace

from gpubench.core.prediction import GOALS
from gpubench.render import limits
from gpubench.stats import power_limits
from gpubench.stats.power_limits import (
    MODELS,
    Floats,
    Foretold,
    LimitPoints,
    choose_model,
    judge_foretold,
    judge_left_out_limits,
    suggest_limit,
)

LIMITS = (100.0, 125.0, 150.0, 175.0, 200.0, 225.0, 250.0)


def make_points(
    time_s: Sequence[float],
    power_w: Sequence[float],
    *,
    batch_size: float = 64.0,
    limits: Sequence[float] = LIMITS,
) -> LimitPoints:
    return LimitPoints(
        batch_size=np.full(len(limits), batch_size),
        limit_w=np.array(limits),
        time_s=np.array(time_s, dtype=float),
        power_w=np.array(power_w, dtype=float),
    )


def join_points(*groups: LimitPoints) -> LimitPoints:
    names = ("batch_size", "limit_w", "time_s", "power_w")
    return LimitPoints(**{name: np.concatenate([getattr(each, name) for each in groups]) for name in names})


def make_card_points(batch_size: float, seconds: float, share: float, draw: float) -> LimitPoints:
    """A card of 40 W idle, without noise: up to 60 % of its clock at 0.7 of its voltage, from there on in proportion.

    `share`: of the time at full clock, in which the clock counts. `draw`: W without a limit.
    """
    clocks = np.linspace(0.01, 1, 1000)
    voltages = np.where(clocks < 0.6, 0.7, 0.7 + 0.3 * (clocks - 0.6) / 0.4)
    power = np.minimum(LIMITS, draw)
    clock = np.interp((power - 40) / (draw - 40), clocks * voltages**2, clocks)
    return make_points(list(seconds * (1 - share + share / clock)), list(power), batch_size=batch_size)


def foretell_at(model: str, points: LimitPoints, batch_size: float, *limits: float) -> Foretold:
    return MODELS[model](points, np.full(len(limits), batch_size), np.array(limits))


# ---- the traces ----


def test_the_traces_hold_the_figures_that_they_are_known_for() -> None:
    points = read_trace("v100")["imagenet", "resnet50", "adadelta"]
    points = points.select(points.batch_size == 256)
    order = np.argsort(points.limit_w)
    limits, time, power = (values[order] for values in (points.limit_w, points.time_s, points.power_w))
    energy = time * power
    assert list(limits) == list(LIMITS)
    assert (time[-1], power[-1], energy[-1]) == pytest.approx((3514.99, 220.25, 774177), rel=1e-5)
    assert (time[2], power[2], energy[2]) == pytest.approx((4148.66, 144.59, 599874), rel=1e-4)
    assert (energy[2] / energy[-1], time[2] / time[-1]) == pytest.approx((1 - 0.225, 1.180), abs=5e-4)
    edp = energy * time
    assert limits[edp.argmin()] == 175
    assert edp.min() / edp[-1] == pytest.approx(1 - 0.093, abs=5e-4)


def test_the_best_limit_of_the_v100_saves_a_fifth_of_the_energy_in_the_median() -> None:
    savings = []
    for points in read_trace("v100").values():
        for size in np.unique(points.batch_size):
            curve = points.select(points.batch_size == size)
            energy = curve.time_s * curve.power_w
            savings.append(1 - energy.min() / energy[curve.limit_w.argmax()])
    assert len(savings) == 68
    assert (np.median(savings), max(savings)) == pytest.approx((0.226, 0.399), abs=5e-4)


# ---- models ----


def test_a_line_halves_what_lies_between_neighbours() -> None:
    points = make_points([10, 8], [100, 180], limits=(100.0, 200.0))
    time, power = foretell_at("line", points, 64, 150)
    assert (time[0], power[0]) == pytest.approx((9, 140))


def test_a_monotone_curve_stays_between_its_neighbours() -> None:
    points = make_points([40, 10, 9.9, 9.8], [100, 150, 151, 152], limits=(100.0, 150.0, 200.0, 250.0))
    time, power = foretell_at("monotone", points, 64, 160, 175, 190, 240)
    assert all(np.diff([10, *time]) < 0)
    assert all(np.diff([150, *power]) > 0)
    assert time[1] == pytest.approx(9.95, abs=0.03)


@pytest.mark.parametrize("known", [2, 3, 5])
def test_a_quadratic_in_the_inverse_of_the_limit_is_foretold(known: int) -> None:
    """Two limits leave a straight line in 1 / limit."""
    bend = 0 if known == 2 else 3e4
    times = [float(np.exp(1 + 100 / limit + bend / limit**2)) for limit in LIMITS]
    points = make_points(times, list(LIMITS))
    is_asked = ~np.isin(np.arange(7), [0, 6, 3, 1, 5][:known])
    judged = judge_foretold(points, is_asked, MODELS["quadratic"])
    assert judged.time_error == pytest.approx(np.zeros(7 - known), abs=1e-9)


def test_the_physical_model_foretells_a_card_from_two_limits_of_each_batch_size() -> None:
    points = join_points(
        make_card_points(32, 100, 0.5, 210),
        make_card_points(64, 90, 0.7, 260),
        make_card_points(128, 80, 0.9, 300),
    )
    is_asked = (points.limit_w > 100) & (points.limit_w < 250)
    physical = judge_foretold(points, is_asked, MODELS["physical"])
    line = judge_foretold(points, is_asked, MODELS["line"])
    assert np.median(np.abs(physical.time_error)) < 0.03
    assert np.abs(physical.power_error).max() < 0.05
    assert np.median(np.abs(line.time_error)) > 0.08
    with_middle = judge_foretold(points, is_asked & (points.limit_w != 175), MODELS["physical"])
    assert np.median(np.abs(with_middle.time_error)) < 0.003
    assert np.abs(with_middle.time_error).max() < 0.02


def test_work_that_never_reaches_a_limit_is_foretold_unchanged() -> None:
    points = make_points([50.0] * 7, [38.0] * 7)
    for model in MODELS:
        time, power = foretell_at(model, points.select(points.limit_w != 175), 64, 175)
        assert (time[0], power[0]) == pytest.approx((50, 38), rel=0.01), model


def test_a_surface_takes_the_shape_of_a_batch_size_beside_it() -> None:
    """A batch size that was measured at its ends alone, beside one that was measured at all limits."""
    points = join_points(make_card_points(32, 100, 0.8, 260), make_card_points(64, 30, 0.8, 260))
    is_asked = (points.batch_size == 64) & (points.limit_w > 100) & (points.limit_w < 250)
    judged = judge_foretold(points, is_asked, MODELS["surface"])
    assert np.abs(judged.time_error).max() < 0.01
    assert np.abs(judged.power_error).max() < 0.02
    alone = points.select(points.batch_size == 64)
    assert np.abs(judge_foretold(alone, is_asked[7:], MODELS["surface"]).time_error).max() > 0.03


def test_a_surface_smoothes_noise_and_keeps_what_is_told_by_many() -> None:
    noise = [0.02, -0.02, 0.02, -0.02, 0.02, -0.02]
    points = make_points(list(50 * np.exp(noise)), [38.0] * 6, limits=LIMITS[:6])
    time, _ = foretell_at("surface", points, 64, 137)
    assert time[0] == pytest.approx(50, rel=0.006)


# ---- how they are judged ----


@pytest.fixture
def spied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[float], set[float]]]:
    """(limits that a model was given, limits that it was asked about) of each call; all models are straight lines."""
    calls: list[tuple[set[float], set[float]]] = []
    line = MODELS["line"]

    def spy(points: LimitPoints, batch_size: Floats, limit_w: Floats) -> Foretold:
        calls.append((set(points.limit_w), set(limit_w)))
        return line(points, batch_size, limit_w)

    monkeypatch.setattr(power_limits, "MODELS", {"first": spy, "second": spy})
    return calls


def test_each_model_has_words() -> None:
    assert limits.MODELS.keys() == MODELS.keys()


def test_neither_model_nor_choice_sees_the_limit_that_is_left_out(
    spied: list[tuple[set[float], set[float]]],
) -> None:
    points = make_card_points(64, 90, 0.7, 260)
    looks: list[set[float]] = []

    def choose(groups: Sequence[LimitPoints]) -> str:
        looks.append(set(groups[0].limit_w))
        return choose_model(groups)

    judge_left_out_limits([points], choose)
    assert looks == [set(LIMITS) - {limit} for limit in LIMITS]
    assert all(not known & asked for known, asked in spied)
    outer = [(known, asked) for known, asked in spied if len(known) == 6]
    assert [asked for _, asked in outer] == [{limit} for limit in LIMITS]
    inner = [(known, asked) for known, asked in spied if len(known) == 5]
    assert len(inner) == 7 * 6 * 2
    assert len(spied) == len(outer) + len(inner)


def test_a_batch_size_without_another_limit_lends_nothing_to_the_limit_that_is_left_out(
    spied: list[tuple[set[float], set[float]]],
) -> None:
    points = join_points(
        make_points([9, 8, 7], [1, 1, 1], limits=(100.0, 150.0, 200.0)),
        make_points([5], [1], batch_size=128, limits=(150.0,)),
    )
    judged = judge_left_out_limits([points], lambda _: "first")
    assert len(judged.time_error) == 3
    assert [known for known, asked in spied if asked == {150.0}] == [{100.0, 200.0}]


def test_errors_and_regrets_are_those_that_can_be_worked_out_by_hand() -> None:
    """At 150 W a line foretells 9 s and 140 W where 8 s and 150 W were measured: 1,260 J in place of 1,200 J."""
    points = make_points([10, 8, 8], [100, 150, 180], limits=(100.0, 150.0, 200.0))
    judged = judge_foretold(points, points.limit_w == 150, MODELS["line"])
    assert judged.time_error == pytest.approx([np.log(9 / 8)])
    assert judged.power_error == pytest.approx([np.log(140 / 150)])
    assert judged.energy_error == pytest.approx([np.log(1260 / 1200)])
    assert [judged.regret[goal] for goal in GOALS] == [
        pytest.approx([0.0]),  # 1,000 J at 100 W stays the least
        pytest.approx(
            [10_000 / 9_600 - 1]
        ),  # 11,340 J s are foretold at 150 W, where 9,600 are the least: 10,000 are taken
    ]
    dearer = make_points([10, 10, 8], [150, 150, 150], limits=(100.0, 150.0, 200.0))
    judged = judge_foretold(dearer, dearer.limit_w == 200, MODELS["line"])
    assert judged.regret["energy"] == pytest.approx([0.25])


def test_the_model_that_is_right_is_chosen_and_two_limits_choose_nothing() -> None:
    times = [float(np.exp(1 + 100 / limit + 3e4 / limit**2)) for limit in LIMITS]
    points = make_points(times, list(LIMITS))
    assert choose_model([points]) == "quadratic"
    two = points.select(np.isin(points.limit_w, [100, 250]))
    assert choose_model([two]) == "physical"
    apart = [points.select(points.limit_w == limit) for limit in LIMITS]
    assert choose_model(apart) == "physical"  # three limits and more, and none has another beside it
    assert judge_left_out_limits([two], choose_model).time_error.size == 2


# ---- what to measure next ----


def test_a_limit_is_suggested_where_a_model_foretells_less_than_was_measured() -> None:
    points = read_trace("v100")["imagenet", "resnet50", "adadelta"]
    curve = points.select(points.batch_size == 256)
    ends = curve.select(np.isin(curve.limit_w, [100, 175, 250]))
    wanted = suggest_limit(ends, 256, np.array(LIMITS))
    assert wanted is not None
    assert wanted.limit_w in (125, 150)  # 150 is the best, 125 is 3 % more
    assert wanted.low < -0.05 < wanted.high
    assert suggest_limit(curve, 256, np.array(LIMITS)) is None
    two = suggest_limit(curve.select(np.isin(curve.limit_w, [100, 250])), 256, np.array(LIMITS))
    assert two is not None
    assert two.limit_w == 175  # the middle, whatever models say


def test_nothing_is_suggested_where_all_models_agree_that_the_lowest_limit_is_the_best() -> None:
    times = [10.0] * 7
    points = make_points(times, list(LIMITS))
    known = points.select(np.isin(points.limit_w, [100, 150, 200, 250]))
    assert suggest_limit(known, 64, np.array(LIMITS)) is None


@pytest.mark.slow
@pytest.mark.parametrize(("card", "share"), [("v100", 0.60), ("a40", 0.56)])
def test_the_chosen_model_is_little_more_than_half_as_wrong_as_a_line(card: str, share: float) -> None:
    """tests/benchmarks/README.md says why it is not less: what is left is noise of single measurements."""
    groups = list(read_trace(card).values())
    chosen = judge_left_out_limits(groups, lambda _: "surface")
    line = judge_left_out_limits(groups, lambda _: "line")
    errors = [np.median(np.abs(judged.energy_error)) for judged in (chosen, line)]
    assert errors[0] < share * errors[1]
    assert chosen.regret["energy"].mean() < 0.5 * line.regret["energy"].mean()
    assert CARDS == ("v100", "a40")
