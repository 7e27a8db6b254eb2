"""Time and power over power limits, foretold from the limits that were measured. Pure.

Points are of one network on one kind of GPU: what differs between them is the power limit and the batch size. A model
makes of them a time and a power at any other limit; energy is their product, and the energy-delay product is energy
times time. Models work on logarithms, so that an error is a share of the figure. None is trusted: `choose_models` takes
those that were least wrong about limits that they had not seen, one for time and one for power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gpubench.core.prediction import GOALS, Goal, NextLimit, compute_goal

Floats: TypeAlias = npt.NDArray[np.float64]

FEWEST_LIMITS = 3
"""Of these and more, models can be judged by leaving a limit out."""
CLOSE = 0.02
"""A limit of which no model foretells less than so much more energy than the least measured is not worth a try."""
UNJUDGED = "physical"
"""The model for fewer. Of the published V100 and A40 traces it was least wrong from two limits."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LimitPoints:
    """What was measured, a point each: arrays of one length, all above 0."""

    batch_size: Floats
    limit_w: Floats
    time_s: Floats
    power_w: Floats

    def select(self, wanted: npt.NDArray[np.bool_]) -> LimitPoints:
        """Some of the points."""
        return LimitPoints(
            batch_size=self.batch_size[wanted],
            limit_w=self.limit_w[wanted],
            time_s=self.time_s[wanted],
            power_w=self.power_w[wanted],
        )

    @property
    def limits(self) -> Floats:
        """The limits that were measured, each once, the lowest first."""
        return np.unique(self.limit_w)


Foretold: TypeAlias = tuple[Floats, Floats]
"""Seconds and watts at each place that was asked about."""
Model: TypeAlias = Callable[[LimitPoints, Floats, Floats], Foretold]
"""(points, batch sizes, limits) -> what it foretells at each pair of these. Each batch size has a point or more."""


# ---- models of one quantity of one batch size ----

Curve: TypeAlias = Callable[[Floats, Floats, Floats], Floats]
"""(rising limits, logarithms of figures there, other limits) -> logarithms of figures at these."""


def draw_line(limits: Floats, logs: Floats, at: Floats) -> Floats:
    """A straight line between neighbouring limits, level beyond the last: what everybody would do first."""
    return np.log(np.interp(at, limits, np.exp(logs)))


def draw_monotone_curve(limits: Floats, logs: Floats, at: Floats) -> Floats:
    """A curve through all points that turns only where they do (Fritsch and Carlson 1980)."""
    if len(limits) < 2:
        return np.full(len(at), logs[0])
    from scipy.interpolate import PchipInterpolator

    return np.asarray(PchipInterpolator(np.log(limits), logs)(np.log(at)))


def fit_quadratic(limits: Floats, logs: Floats, at: Floats) -> Floats:
    """Log figure = a + b / limit + c / limit² by least squares; of fewer than three limits without the last."""
    highest = limits[-1]
    coefficients = np.polyfit(highest / limits, logs, min(2, len(limits) - 1))
    return np.polyval(coefficients, highest / at)


def _apply_to_each_batch_size(curve: Curve) -> Model:
    def foretell(points: LimitPoints, batch_size: Floats, limit_w: Floats) -> Foretold:
        foretold = np.empty((2, len(limit_w)))
        for size in np.unique(batch_size):
            known, is_asked = points.select(points.batch_size == size), batch_size == size
            order = np.argsort(known.limit_w)
            for row, figures in enumerate((known.time_s, known.power_w)):
                logs = curve(known.limit_w[order], np.log(figures[order]), limit_w[is_asked])
                foretold[row, is_asked] = np.exp(logs)
        return foretold[0], foretold[1]

    return foretell


# ---- the physical model ----

CARD_PRIOR = np.array([-1.6, 0.8, 0.4, 2.0])
"""Of the card: the logarithm of its idle power by the highest limit; the logits of the lowest voltage by the highest,
and of the clock by the highest up to which it holds; the logarithm of how sharply power bends at the limit."""
CARD_PRIOR_SD = np.array([0.5, 0.7, 0.7, 0.5])
WORK_PRIOR, WORK_PRIOR_SD = (1.0, 0.0), (2.0, 1.0)
"""Of a batch size: the logit of the share of its time that the clock scales, at full clock; the logarithm of what it
would draw without a limit by the highest limit."""
POINT_SD = 0.01
"""How far a measured figure is off, as a share of it, where points are weighed against what is known before."""
CLOCKS = np.linspace(0.02, 1.0, 200)
"""By the highest clock."""


def foretell_physically(points: LimitPoints, batch_size: Floats, limit_w: Floats) -> Foretold:
    """Under a limit a GPU lowers its clock until it draws no more; what this leaves over is drawn as a surface.

    Power is what the work would draw, or the limit, with a soft bend, as some kernels reach the limit and some do not.
    What is above the idle part pays for clock x voltage²; the voltage rises with the clock above a lowest one. Time has
    a part that the clock scales and one that it does not.
    """
    sizes, limits = (
        np.concatenate(pair) for pair in ((points.batch_size, batch_size), (points.limit_w, limit_w))
    )
    known = len(points.limit_w)
    time, power = (
        fitted[known:] * np.exp(_draw_surface(points, np.log(figures / fitted[:known]), batch_size, limit_w))
        for fitted, figures in zip(
            _fit_card(points, sizes, limits), (points.time_s, points.power_w), strict=True
        )
    )
    return time, power


def _fit_card(points: LimitPoints, batch_size: Floats, limit_w: Floats) -> Foretold:
    """By least squares. Batch sizes share the card; each has its time, the share of it that the clock scales, and what
    it would draw."""
    from scipy.optimize import least_squares

    sizes, place = np.unique(points.batch_size, return_inverse=True)
    highest, card = points.limit_w.max(), len(CARD_PRIOR)
    log_time, log_power = np.log(points.time_s), np.log(points.power_w / highest)

    def compute_logs(v: Floats, place: npt.NDArray[np.intp], limits: Floats) -> Foretold:
        idle, bend = np.exp(v[0]), np.exp(v[3])
        lowest_voltage, corner = _apply_logistic(v[1:3])
        full_time, log_draw = v[card::3][place], v[card + 2 :: 3][place]
        share = _apply_logistic(v[card + 1 :: 3][place])
        log_power = log_draw - np.logaddexp(0, bend * (log_draw - np.log(limits))) / bend
        voltage = lowest_voltage + (1 - lowest_voltage) * np.maximum(CLOCKS - corner, 0) / max(
            1 - corner, 1e-6
        )
        above_idle = (np.exp(log_power) - idle) / np.maximum(np.exp(log_draw) - idle, 1e-3)
        clock = np.interp(above_idle, CLOCKS * voltage**2, CLOCKS)
        return full_time + np.log(1 - share + share / clock), log_power

    def compute_residuals(v: Floats) -> Floats:
        time, power = compute_logs(v, place, points.limit_w / highest)
        apart = np.concatenate([time - log_time, power - log_power]) / POINT_SD
        work = (v[card:].reshape(-1, 3) - [0, *WORK_PRIOR]) / [np.inf, *WORK_PRIOR_SD]
        return np.concatenate([apart, work.ravel(), (v[:card] - CARD_PRIOR) / CARD_PRIOR_SD])

    works = [
        (log_time[place == n].min(), WORK_PRIOR[0], log_power[place == n].max() + 0.1)
        for n in range(len(sizes))
    ]
    fit = least_squares(compute_residuals, np.concatenate([CARD_PRIOR, *works]), loss="soft_l1", max_nfev=100)
    time, power = compute_logs(fit.x, np.searchsorted(sizes, batch_size), limit_w / highest)
    return np.exp(time), np.exp(power) * highest


def _apply_logistic(values: Floats) -> Floats:
    return 1 / (1 + np.exp(-values))


# ---- a smooth surface ----

SURFACE_PRIOR = np.log([0.15, 1.0, 6.0, 0.012])
"""Logarithms of how high the surface is, of its lengths along (highest limit) / limit and along log2(batch size), and
of the noise of a point; heights are shares of the figure."""
SURFACE_PRIOR_SD = np.array([1.0, 0.5, 0.8, 0.6])
LEVEL_SD = 5.0
"""Of the level of a batch size's curve, of which nothing is known before."""


def foretell_by_surface(points: LimitPoints, batch_size: Floats, limit_w: Floats) -> Foretold:
    """A smooth surface with noise over limit and batch size (a Gaussian process).

    How smooth it is and how noisy points are, it learns from all of them, and batch sizes that are close to each other
    lend each other the shape of their curves.
    """
    time = _draw_surface(points, np.log(points.time_s), batch_size, limit_w)
    power = _draw_surface(points, np.log(points.power_w), batch_size, limit_w)
    return np.exp(time), np.exp(power)


def _draw_surface(points: LimitPoints, heights: Floats, batch_size: Floats, limit_w: Floats) -> Floats:
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize

    highest = points.limit_w.max()
    here = np.stack([np.log2(points.batch_size), highest / points.limit_w])
    there = np.stack([np.log2(batch_size), highest / limit_w])
    between, across = (np.abs(here[:, :, None] - other[:, None, :]) for other in (here, there))
    mean = heights.mean()
    above = heights - mean

    def compute_covariance(v: Floats, apart: Floats) -> Floats:
        height, length, batch_length, _ = np.exp(v)
        steps = np.sqrt(3) * apart[1] / length
        alike = (1 + steps) * np.exp(-steps - apart[0] / batch_length)  # Matérn's of 3/2
        covariance: Floats = height**2 * alike + LEVEL_SD**2 * (apart[0] == 0)
        return covariance

    def factor_covariance(v: Floats) -> Any:
        noise = np.exp(2 * v[3]) * np.eye(len(above))
        return cho_factor(compute_covariance(v, between) + noise, lower=True)

    def compute_loss(v: Floats) -> float:
        factor = factor_covariance(v)
        unlikely = above @ cho_solve(factor, above) / 2 + np.log(np.diag(factor[0])).sum()
        return float(unlikely + (((v - SURFACE_PRIOR) / SURFACE_PRIOR_SD) ** 2).sum() / 2)

    bounds = np.stack([SURFACE_PRIOR - 3 * SURFACE_PRIOR_SD, SURFACE_PRIOR + 3 * SURFACE_PRIOR_SD], axis=1)
    v = minimize(compute_loss, SURFACE_PRIOR, method="L-BFGS-B", bounds=bounds).x
    drawn: Floats = mean + compute_covariance(v, across).T @ cho_solve(factor_covariance(v), above)
    return drawn


MODELS: Mapping[str, Model] = {
    "line": _apply_to_each_batch_size(draw_line),
    "monotone": _apply_to_each_batch_size(draw_monotone_curve),
    "quadratic": _apply_to_each_batch_size(fit_quadratic),
    "physical": foretell_physically,
    "surface": foretell_by_surface,
}


# ---- which model, and how far it is off ----


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Validation:
    """How far off foretold figures were."""

    time_error: Floats
    """Of each foretold point, the logarithm of foretold by measured."""
    power_error: Floats
    regret: Mapping[Goal, Floats]
    """Of each batch size that was foretold, how much more the limit costs that would be taken, by foretold and known
    points, than the best of them (0.01: 1 %)."""

    @property
    def energy_error(self) -> Floats:
        """As `time_error`."""
        return self.time_error + self.power_error


def judge_foretold(points: LimitPoints, is_asked: npt.NDArray[np.bool_], model: Model) -> Validation:
    """Holds what a model foretells of some points, from all others, against what was measured."""
    time, power = model(points.select(~is_asked), points.batch_size[is_asked], points.limit_w[is_asked])
    believed_time, believed_power = points.time_s.copy(), points.power_w.copy()
    believed_time[is_asked], believed_power[is_asked] = time, power
    regret: dict[Goal, Floats] = {}
    for goal in GOALS:
        believed = compute_goal(believed_time, believed_power, goal)
        truth = compute_goal(points.time_s, points.power_w, goal)
        curves = [points.batch_size == size for size in np.unique(points.batch_size[is_asked])]
        regret[goal] = np.array(
            [truth[curve][believed[curve].argmin()] / truth[curve].min() - 1 for curve in curves]
        )
    return Validation(
        time_error=np.log(time / points.time_s[is_asked]),
        power_error=np.log(power / points.power_w[is_asked]),
        regret=regret,
    )


def judge_left_out_limits(
    groups: Sequence[LimitPoints], choose: Callable[[Sequence[LimitPoints]], str]
) -> Validation:
    """Each limit in its turn is left out of all points, and foretold by the model that `choose` takes by the others.

    `groups`: points of one card, a group a network. A batch size that has no other limit is not asked about.
    """
    parts = []
    for limit in np.unique(np.concatenate([points.limit_w for points in groups])):
        known = [points.select(points.limit_w != limit) for points in groups]
        model = MODELS[choose(known)]
        for points, rest in zip(groups, known, strict=True):
            is_asked = (points.limit_w == limit) & np.isin(points.batch_size, rest.batch_size)
            if is_asked.any():
                is_used = (points.limit_w != limit) | is_asked
                parts.append(judge_foretold(points.select(is_used), is_asked[is_used], model))
    return join_validations(parts)


def choose_model(groups: Sequence[LimitPoints]) -> str:
    """The name of the model that was least wrong in energy, in the mean over all points, each foretold without its
    limit; UNJUDGED for fewer than FEWEST_LIMITS limits, and where no point can be foretold so.

    `groups`: as for `judge_left_out_limits`.
    """
    if len(np.unique(np.concatenate([points.limit_w for points in groups]))) < FEWEST_LIMITS:
        return UNJUDGED

    def compute_mean_error(name: str) -> float:
        errors = judge_left_out_limits(groups, lambda _: name).energy_error
        return float(np.abs(errors).mean()) if errors.size else np.inf

    errors = {name: compute_mean_error(name) for name in MODELS}
    best = min(errors, key=errors.__getitem__)
    return best if errors[best] < np.inf else UNJUDGED


def join_validations(parts: Sequence[Validation]) -> Validation:
    """Those of several, as one; of none, an empty one."""
    return Validation(
        time_error=np.concatenate([np.empty(0), *(part.time_error for part in parts)]),
        power_error=np.concatenate([np.empty(0), *(part.power_error for part in parts)]),
        regret={
            goal: np.concatenate([np.empty(0), *(part.regret[goal] for part in parts)]) for goal in GOALS
        },
    )


# ---- what to measure next ----


def suggest_limit(points: LimitPoints, batch_size: float, limits: Floats) -> NextLimit | None:
    """The limit at which some model foretells the least energy; None where that is more than was measured by CLOSE.

    So a limit is measured where models disagree whether it is the best, and none where all agree that it is not. Of
    fewer than FEWEST_LIMITS no model can be judged: then the one in their middle. `limits`: those that may be set;
    what was measured is left out.
    """
    curve = points.select(points.batch_size == batch_size)
    unknown = np.setdiff1d(limits, curve.limit_w)
    if not unknown.size:
        return None
    sizes = np.full(len(unknown), batch_size)
    best = (curve.time_s * curve.power_w).min()
    foretold = np.array([np.multiply(*model(points, sizes, unknown)) for model in MODELS.values()])
    is_blind = len(curve.limit_w) < FEWEST_LIMITS
    far = np.abs(unknown - curve.limit_w.mean()) if is_blind else foretold.min(axis=0)
    place = int(far.argmin())
    ratios = foretold[:, place] / best - 1
    if ratios.min() >= CLOSE and not is_blind:
        return None
    return NextLimit(limit_w=float(unknown[place]), low=float(ratios.min()), high=float(ratios.max()))
