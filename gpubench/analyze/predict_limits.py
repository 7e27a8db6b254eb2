"""Time, power and energy under power limits that were not measured, from rows that differ in limit and batch size.

Rows are of trials alone. Those of one network, all else equal, are looked at together, for batch sizes that are close
to each other behave alike; one model is chosen for a machine, by all of its networks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder
from gpubench.analyze.frames import Summary
from gpubench.analyze.grid import to_python_value
from gpubench.analyze.predict import summarize_solo_runs
from gpubench.analyze.series import CANDIDATES, EncodedFields, combine_codes
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.core.prediction import LimitCurve, LimitPrediction, LimitRow
from gpubench.stats.power_limits import (
    FEWEST_LIMITS,
    MODELS,
    Floats,
    LimitPoints,
    choose_model,
    judge_left_out_limits,
    suggest_limit,
)

AXES = ("batch_size", "power_limit_w")
"""What points of one network differ in."""
FIGURES = ("batch", "limit", "seconds", "watts")
"""The columns that `select_limit_rows` adds, as the fields of `LimitPoints` stand."""
NAMES = ("model", "command", "batch_size")
"""Fields that name a configuration; others do where they vary."""
STEPS_W = (5, 10, 25, 50, 100)
MOST_STEPS = 8
"""Into how many steps the limits between the lowest and the highest are divided where nobody names limits."""


def predict_power_limits(
    folders: Sequence[Folder], wanted_w: Sequence[int] | None = None
) -> tuple[LimitPrediction, ...]:
    """One prediction a machine and kind of time. `wanted_w`: limits to foretell; None: even steps.

    Nothing is foretold beyond the limits that were measured. Raises UnusableError where no configuration was measured
    under two limits, UsageError for a wanted limit that is not measured and lies between no two that are.
    """
    runs = pd.concat([folder.runs.iloc[: len(folder.records)] for folder in folders], ignore_index=True)
    predictions = []
    for rows in summarize_solo_runs(runs).values():
        rows = select_limit_rows(rows)
        for machine, of_machine in rows.groupby("machine", sort=False):
            prediction = predict_machine_limits(str(machine), of_machine, wanted_w)
            predictions += [prediction] if prediction.curves else []
    if not predictions:
        raise UnusableError(
            "no configuration was measured under two power limits: gpubench sweep --set power_limit_w=150,200,250"
        )
    answered = {
        row.limit_w for prediction in predictions for curve in prediction.curves for row in curve.rows
    }
    for limit in wanted_w or ():
        if limit not in answered:
            raise UsageError(
                f"power_limit_w={limit} is beyond the limits that were measured: nothing is foretold there"
            )
    return tuple(predictions)


def select_limit_rows(rows: Summary) -> Summary:
    """The rows of a known power limit that have time and energy, with FIGURES: watts are of one GPU, in the mean.

    A limit that was left to the card is what the card was set to. A command without a batch size has 1.
    """
    number = {
        name: rows[name].astype("float64")
        for name in (
            "batch_size",
            "power_limit_w",
            "gpu_power_limit_w",
            "epoch_time_s",
            "energy_j",
            "power_w",
            "gpus",
        )
    }
    seconds = number["epoch_time_s"]
    rows = rows.assign(
        batch=number["batch_size"].fillna(1.0),
        limit=number["power_limit_w"].fillna(number["gpu_power_limit_w"]),
        seconds=seconds,
        watts=(number["energy_j"] / seconds).fillna(number["power_w"])
        / number["gpus"].where(number["gpus"] > 0),
    )
    return rows[(rows["status"] == "ok") & (rows[[*FIGURES]] > 0).all(axis=1)]


def predict_machine_limits(machine: str, rows: Summary, wanted_w: Sequence[int] | None) -> LimitPrediction:
    """`rows`: of one machine and kind of time, as `select_limit_rows` leaves them."""
    fields = EncodedFields.from_frame(rows)
    codes = [fields.encode_workload_field(name, AXES) for name in CANDIDATES if name not in AXES]
    networks = [network for _, network in rows.groupby(combine_codes(len(rows), codes))]
    groups = [make_limit_points(network) for network in networks]
    model = choose_model(groups)
    judged, line = (
        judge_left_out_limits(groups, choose_model),
        judge_left_out_limits(groups, lambda _: "line"),
    )
    is_judged = rows["limit"].nunique() >= FEWEST_LIMITS and judged.energy_error.size > 0
    varied = [name for name in fields.list_varied_fields() if name != "power_limit_w"]
    return LimitPrediction(
        machine=machine,
        model=model,
        curves=tuple(
            curve
            for network, points in zip(networks, groups, strict=True)
            for curve in predict_curves(network, points, model, varied, wanted_w)
        ),
        energy_error=float(np.median(np.abs(judged.energy_error))) if is_judged else None,
        line_error=float(np.median(np.abs(line.energy_error))) if is_judged else None,
        regret=float(judged.regret["energy"].mean()) if is_judged else None,
    )


def make_limit_points(rows: Summary) -> LimitPoints:
    """Those of one network; rows that differ in nothing that counts are one point."""
    middle = rows[[*FIGURES]].groupby(["batch", "limit"], as_index=False).median()
    batch_size, limit_w, time_s, power_w = (middle[name].to_numpy() for name in FIGURES)
    return LimitPoints(batch_size=batch_size, limit_w=limit_w, time_s=time_s, power_w=power_w)


def predict_curves(
    rows: Summary, points: LimitPoints, model: str, varied: Sequence[str], wanted_w: Sequence[int] | None
) -> list[LimitCurve]:
    """A curve for each batch size of one network that was measured under two limits or more.

    `varied`: the fields that name it.
    """
    curves = []
    for size in np.unique(points.batch_size):
        known = points.select(points.batch_size == size)
        lowest, highest = known.limits[[0, -1]]
        if lowest == highest:
            continue
        wanted = list_even_limits(lowest, highest) if wanted_w is None else np.array(wanted_w, "float64")
        unknown = np.setdiff1d(wanted[(wanted > lowest) & (wanted < highest)], known.limit_w)
        row = rows[rows["batch"] == size].iloc[0]
        gpus = float(row["gpus"])
        foretold = MODELS[model](points, np.full(len(unknown), size), unknown) if unknown.size else ((), ())
        lines = [
            *zip(known.limit_w, known.time_s, known.power_w, [True] * len(known.limit_w), strict=True),
            *zip(unknown, *foretold, [False] * len(unknown), strict=True),
        ]
        curves.append(
            LimitCurve(
                fields={name: to_python_value(row[name]) for name in (*NAMES, *varied)},
                rows=tuple(
                    LimitRow(
                        limit_w=float(limit),
                        time_s=float(time),
                        power_w=float(power) * gpus,
                        is_measured=is_measured,
                    )
                    for limit, time, power, is_measured in sorted(lines)
                ),
                next_limit=suggest_limit(points, size, unknown) if unknown.size else None,
            )
        )
    return curves


def list_even_limits(lowest: float, highest: float) -> Floats:
    """Multiples of a round step, in W, from the lowest to the highest."""
    step = next((step for step in STEPS_W if highest - lowest <= MOST_STEPS * step), STEPS_W[-1])
    return np.arange(np.ceil(lowest / step), highest / step) * step
