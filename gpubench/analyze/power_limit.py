"""Which power limit? Each limit against the highest one of its series, in energy, time and energy x time of an image.

The chosen one takes the least energy (or energy x time), by the estimates, of those that are not too slow. Its bound
holds for any way to choose: only the row that is truly best can break it. What it saves is a claim that any of its
rivals might have made, so all of them share the 5 %; what it costs in time is a further question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from gpubench.analyze.grid import to_python_value
from gpubench.analyze.series import combine_codes
from gpubench.analyze.table_rows import Figures, TableRows, average_log
from gpubench.core.claims import Claim, Evidence
from gpubench.core.findings import PowerLimitFinding
from gpubench.stats.choice import bound_rival_gain, make_row_choice

FIELD = "power_limit_w"
METRICS = {"energy": "energy_j", "edp": "edp_js"}
"""What shall be least -> the metric of its claims."""
TIME = "epoch_time_s"


def list_series(rows: TableRows) -> list[tuple[int, ...]]:
    """The rows that differ in their limit alone and know time and energy, the lowest limit first, two or more each.

    One that leaves the limit to the card has the card's; where that is not known it comes last. None where jobs share
    GPUs, and to a target.
    """
    is_asked_otherwise = rows.is_of_tries or bool(rows.is_job.any() or rows.is_to_target.any())
    if FIELD not in rows.varied or is_asked_otherwise:
        return []
    along, _ = rows.fields.encode_series(FIELD, rows.tied if rows.axis == FIELD else ())
    number = combine_codes(len(along), [along])
    limits = rows.summary[FIELD].astype("float64").fillna(rows.summary["gpu_power_limit_w"].astype("float64"))
    order = np.argsort(limits.to_numpy(na_value=np.inf), kind="stable")
    labels, known = rows.summary.index.to_numpy(), collect_figures(rows)["energy_j"]
    series = [
        tuple(row for row in labels[order[number[order] == place]].tolist() if row in known)
        for place in range(number.max(initial=-1) + 1)
    ]
    return [members for members in series if len(members) > 1]


def collect_figures(rows: TableRows) -> Mapping[str, Figures]:
    """Metric -> what an image takes of it, process by process; those that lack energy are left out of all."""
    seconds = rows.ended_processes[TIME].astype("float64") / rows.images
    joules = rows.ended_processes["energy_j"].astype("float64") / rows.images
    return {
        "energy_j": rows.collect(joules),
        "edp_js": rows.collect(joules * seconds),
        TIME: rows.collect(seconds.where(joules.notna())),
    }


def make_claims(rows: TableRows) -> list[Claim]:
    """Each limit against the highest, metric by metric; a metric of a series is a family."""
    return [
        rows.make_claim(
            metric, figures, row, members[-1], family=f"power_limit:{metric}:{members[-1]}", series=str(members[-1])
        )
        for members in list_series(rows)
        for metric, figures in collect_figures(rows).items()
        for row in members[:-1]
    ]  # fmt: skip


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[PowerLimitFinding]:
    """A finding a series."""
    return [
        _make_series_finding(rows, members, [claim for claim in claims if claim.series == str(members[-1])])
        for members in list_series(rows)
    ]


def _make_series_finding(
    rows: TableRows, members: tuple[int, ...], claims: Sequence[Claim]
) -> PowerLimitFinding:
    aim, metric = rows.limit_aim, METRICS[rows.limit_aim.goal]
    figures = collect_figures(rows)
    costs, times = figures[metric], figures[TIME]
    too_slow = tuple(
        row
        for row in members[:-1]
        if aim.at_most_slower is not None
        and not is_fast_enough(rows.compare(times, row, members[-1]), len(members) - 1, aim.at_most_slower)
    )
    allowed = [row for row in members if row not in too_slow]
    worth = {row: {place: 1 / cost for place, cost in costs[row].items()} for row in allowed}
    means = {row: math.exp(average_log(samples)) for row, samples in worth.items()}
    choice = make_row_choice(
        means,
        {row: 1 / mean for row, mean in means.items()},
        lambda row, other: rows.compare(worth, row, other),
    )
    of_chosen = {claim.metric: claim for claim in claims if claim.candidate == choice.row}
    gain = [of_chosen[metric]] if of_chosen else []
    answer = rows.summarize_claims(gain, claims)
    if not gain:
        answer["word"] = "sure" if choice.is_firm else "unknown"
    return PowerLimitFinding(
        **answer | {"claims": tuple(claims), "rows": members},
        choice=choice,
        label={name: to_python_value(rows.get(choice.row, name)) for name in rows.varied if name != FIELD},
        aim=aim,
        baseline=members[-1],
        chosen_claims=of_chosen,
        too_slow=too_slow,
    )


def is_fast_enough(slower: Evidence, rivals: int, at_most: float) -> bool:
    """Whether a row is shown to take at most so much more time, 95 % for all `rivals` at once; of one process, whether
    it is measured so. `slower`: of its time by the baseline's."""
    bound = bound_rival_gain(slower, rivals)
    return (math.expm1(slower.center) if bound is None else bound) <= at_most
