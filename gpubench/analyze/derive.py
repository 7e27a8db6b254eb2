"""What the rows of a table say beside each other: growth, slowdown, overlap gain, speed-up, cost, and how sure each is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.frames import Members, Runs, Summary, summarize
from gpubench.analyze.intervals import (
    Floats,
    compare_rows,
    mean_interval,
    overlap_gain_interval,
    processes_of,
)
from gpubench.analyze.series import (
    DEVICES,
    Axes,
    Fields,
    asked_fields,
    combine,
    encode,
    tied_fields,
)
from gpubench.schema.columns import DERIVED, MEASURED
from gpubench.schema.doubts import doubt_of
from gpubench.schema.top1_crossing import CONFIRMED, UNCONFIRMED

LABELS = ("before", "alone", "strong_baseline", "weak_baseline")
"""Columns of a summary that hold labels of its rows."""
OF_TIME = tuple(
    column.name
    for column in MEASURED
    if column.name == "epoch_time_source" or column.unit not in ("", "MiB", "images")
)
"""Figures that a few first steps don't tell: of time, energy and use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """The rows of one table."""

    summary: Summary
    """In the order of reading, labelled from 0."""
    members: Members
    axis: str | None
    tied: tuple[str, ...]
    varied: tuple[str, ...]
    fixed: Mapping[str, Any]
    has_only_baselines: bool


def build_summary(runs: Runs, axes: Axes, *, is_of_tries: bool = False) -> Built:
    """The rows of one table, with all that they say beside each other.

    `runs`: in planned order, not empty. `is_of_tries`: a few first steps each, which tell of memory alone.
    """
    if is_of_tries:
        runs = keep_memory(runs)
    fields = Fields.of(runs)
    has_only_baselines = "copies" not in asked_fields(axes) and _are_baselines(runs)
    axis = None if has_only_baselines else fields.find_axis(axes)
    tied = fields.find_tied(axis, axes) if axis else ()
    summary, members = summarize(runs)
    summary["unit"] = _number_units(summary)
    order = _order_rows(summary, axis, tied)
    summary, members = _reorder(summary, members, order)
    processes = processes_of(summary, members, runs)
    for column in DERIVED:
        if column.name not in summary:
            summary[column.name] = np.nan
    for name in LABELS:
        summary[name] = pd.array([None] * len(summary), dtype="Int64")
    _compare_with_alone(summary, members, processes, runs)
    if axis:
        _grow(summary, processes, axis, tied)
    _scale(summary, processes, tied_fields(axes, "gpus", "ranks"), tied_fields(axes, "batch_size"))
    _finish(summary, processes)
    words = _with_words_of_groups(Fields.of(summary))
    varied = words.varied(axes) or ("batch_size",)
    fixed = {name: value for name, value in words.fixed().items() if name not in varied}
    return Built(
        summary=summary, members=members, axis=axis, tied=tied, varied=varied, fixed=fixed,
        has_only_baselines=has_only_baselines,
    )  # fmt: skip


def sharing_word(gain: pd.Series[Any]) -> pd.Series[Any]:
    """The plain word for an overlap gain: none up to 0.1, full from 0.9, else some; missing where it is."""
    words = np.select([gain.isna(), gain <= 0.1, gain >= 0.9], ["", "none", "full"], "some")
    return pd.Series(words, index=gain.index, dtype=object).where(gain.notna(), None)


def keep_memory(runs: Runs) -> Runs:
    """The runs without the figures and the doubts that are not of memory."""
    runs = runs.assign(**{name: runs[name].where(False) for name in OF_TIME})
    codes = runs["doubts"].map(
        lambda cell: "+".join(code for code in cell.split("+") if "memory" in doubt_of(code).about) or None,
        na_action="ignore",
    )
    return runs.assign(doubts=codes)


def _are_baselines(runs: Runs) -> bool:
    """Whether all trials alone are there because jobs are compared with them, not with each other."""
    wanted = runs["solo_id"].dropna()
    alone = runs.loc[runs["group"].isna(), "trial_id"]
    return len(wanted) > 0 and bool(alone.isin(wanted).all())


def _with_words_of_groups(fields: Fields) -> Fields:
    """The fields of rows alone with the groups' word on how CPUs are shared: by itself a trial shares none."""
    words = fields.codes["cpu_sharing"]
    of_groups = np.unique(words[~fields.alone])
    if len(of_groups) != 1:
        return fields
    return fields.replace("cpu_sharing", np.where(fields.alone, of_groups[0], words))


# ---- order ----


def _number_units(summary: Summary) -> pd.Series[Any]:
    """The number of the group that each job ran in, those of one name one after the other; missing for rows alone.

    Without an id, the second row of a job is one of a second group of that name.
    """
    jobs = summary[summary["group"].notna()]
    group, ids = encode(jobs["group"]), encode(jobs["group_id"])
    has_id = ids >= 0
    again = jobs.groupby(["group", "job"], dropna=False).cumcount().to_numpy()
    unit = combine(
        len(jobs),
        [group, ids, np.where(has_id, encode(jobs["allowance"]), -1), np.where(has_id, -1, again)],
    )
    order = np.lexsort((unit, group))
    numbers = np.empty(len(jobs), dtype=np.int64)
    numbers[order] = encode(unit[order])
    return pd.Series(numbers, index=jobs.index, dtype="Int64").reindex(summary.index)


def _order_rows(summary: Summary, axis: str | None, tied: tuple[str, ...]) -> Any:
    """The places of the rows in the order of reading: series by series, each ascending along `axis`; then groups."""
    alone = np.flatnonzero(summary["group"].isna())
    jobs = summary[summary["group"].notna()]
    if axis and len(alone):
        named, every = Fields.of(summary.iloc[alone]).series(axis, tied)
        begin = pd.Series(np.arange(len(every))).groupby(every).transform("min").to_numpy()
        first = pd.Series(begin).groupby(named).transform("min").to_numpy()
        values = summary[axis].iloc[alone].to_numpy("float64", na_value=np.inf)
        alone = alone[np.lexsort((np.arange(len(alone)), begin, values, first))]
    numbers = jobs["job"].str.extract(r"^(\d+) of \d+$")[0].fillna("0").astype("int64")
    by_unit = jobs.index[np.lexsort((np.arange(len(jobs)), numbers, jobs["unit"]))]
    return np.concatenate([alone, by_unit.to_numpy()])


def _reorder(summary: Summary, members: Members, order: Any) -> tuple[Summary, Members]:
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    members = members.assign(row=place[members["row"].to_numpy()]).sort_values("row", kind="stable")
    return summary.iloc[order].reset_index(drop=True), members.reset_index(drop=True)


# ---- rows beside each other ----


def _compare_with_alone(summary: Summary, members: Members, processes: pd.DataFrame, runs: Runs) -> None:
    """Fills, of jobs of several processes: `alone`, `solo_epoch_time_s`, `slowdown`, and the overlap gain of groups."""
    is_job = summary["group"].notna()
    if is_job.any():
        _find_alone(summary, members, runs)
        alone = summary["alone"].dropna().astype("int64")
        time, solo = summary["epoch_time_s"].loc[alone.index], summary["epoch_time_s"].loc[alone]
        summary.loc[alone.index, "solo_epoch_time_s"] = solo.to_numpy()
        summary.loc[alone.index, "slowdown"] = time.to_numpy() / solo.to_numpy()
        compared = compare_rows(
            summary, processes, alone.index.to_numpy(), alone.to_numpy(), "epoch_time_s", whole_rounds=True
        )
        _put_ends(summary, "slowdown", "", alone.index, compared, 1.0, 0.0)
        _gain(summary, processes)
        summary["sharing"] = sharing_word(summary["overlap_gain"])


def _find_alone(summary: Summary, members: Members, runs: Runs) -> None:
    """The row of the same trial alone of each job of several processes, where all its runs were compared with one."""
    ok = members[members["is_ok"]]
    ok = ok.assign(
        **{name: runs.loc[ok["run"], name].to_numpy() for name in ("trial_id", "solo_id", "machine")}
    )
    is_job = summary["group"].notna().loc[ok["row"]].to_numpy()
    keys = ["trial_id", "machine"]
    solos = ok[~is_job].drop_duplicates(keys, keep="last").set_index(keys)["row"].rename("alone")
    several = is_job & (summary["repeats"] > 1).loc[ok["row"]].to_numpy()
    jobs = ok.loc[several, ["row", "solo_id", "machine"]].rename(columns={"solo_id": "trial_id"})
    beside = jobs.join(solos, on=keys).dropna(subset="alone").groupby("row")["alone"]
    only = beside.first()[beside.nunique() == 1]
    summary.loc[only.index, "alone"] = only.astype("int64").to_numpy()


def _gain(summary: Summary, processes: pd.DataFrame) -> None:
    """Fills the overlap gain of groups any job of which is of several processes, from the slowdowns of its jobs."""
    hardware = encode(summary["hardware"])
    jobs = summary[summary["group"].notna() & summary["group_id"].notna()]
    jobs = jobs.assign(hardware=hardware[jobs.index])
    runs_of_row = dict(list(processes.groupby("row")))
    for _, group in jobs.groupby(["unit", "hardware"]):
        if (group["repeats"] < 2).all():
            continue
        slowdowns = group["slowdown"].to_numpy()
        count, size = (
            len(group),
            int(group["jobs_of_group"].max(skipna=True) or 0) if group["jobs_of_group"].notna().any() else 0,
        )
        if count < 2:
            continue
        gain = (np.sum(1 / slowdowns) - 1) / (count - 1)
        ends = _gain_interval(summary, group, runs_of_row)
        if ends is not None and group["repeats"].nunique() > 1 and not np.isnan(gain):
            gain = ends[0]
        if np.isnan(gain) or count < size:
            continue
        summary.loc[group.index, "overlap_gain"] = gain
        if ends is not None and np.isfinite(ends[2]):
            summary.loc[group.index, ["overlap_gain_low", "overlap_gain_high"]] = ends[1:]


def _gain_interval(
    summary: Summary, group: pd.DataFrame, runs_of_row: Mapping[int, pd.DataFrame]
) -> tuple[float, float, float] | None:
    """The overlap gain of a group over its processes; None where a job or its trial alone is of one."""
    if (group["repeats"] < 2).any():
        return None
    times: list[pd.Series[Any]] = []
    alone: dict[str, Floats] = {}
    names: list[str] = []
    nodes: pd.Series[Any] | None = None
    unlike = False
    samples = []
    for place, (row, job) in enumerate(group.iterrows()):
        runs = runs_of_row[row]  # type: ignore[index]
        known = runs[runs["epoch_time_s"].notna()].set_index(["repeat", "round"])
        times.append(known["epoch_time_s"][~known.index.duplicated(keep="last")])
        if nodes is None:
            nodes = known["node"][~known.index.duplicated(keep="last")]
        name = str(job["solo_id"]) if isinstance(job["solo_id"], str) else str(place)
        if pd.notna(job["alone"]):
            solo = runs_of_row.get(int(job["alone"]))
            if solo is None or solo["epoch_time_s"].isna().any():
                return None
            alone[name] = solo["epoch_time_s"].to_numpy()
            samples.append((solo["node"], summary.loc[int(job["alone"]), "machine"]))
        else:
            alone[name] = runs["solo_epoch_time_s"].dropna().to_numpy()
        names.append(name)
    together = pd.concat(times, axis=1, join="inner").sort_index()
    if len(together) < 2:
        return None
    ends = overlap_gain_interval(alone, together.to_numpy().T, names)
    assert nodes is not None
    mine = nodes.reindex(together.index).value_counts(normalize=True).sort_index()
    for other, machine in samples:
        theirs = other.value_counts(normalize=True).sort_index()
        unlike |= not mine.equals(theirs)
    return (ends[0], ends[1], np.inf) if ends is not None and unlike else ends


def _put_ends(
    summary: Summary, name: str, unit: str, rows: Any, compared: pd.DataFrame, factor: Any, shift: float
) -> None:
    """Fills `NAME_lowUNIT` and `NAME_highUNIT` of these rows: both ends of a ratio, times `factor`, less `shift`."""
    with np.errstate(over="ignore"):
        for end, sign in (("low", -1), ("high", 1)):
            values = factor * (
                np.exp(compared["log"].to_numpy() + sign * compared["half"].to_numpy()) - shift
            )
            summary.loc[rows, f"{name}_{end}{unit}"] = np.where(np.isfinite(values), values, np.nan)


def _compare_times(
    summary: Summary, processes: pd.DataFrame, over: Any, under: Any, figure: str = "epoch_time_s"
) -> pd.DataFrame:
    """`compare_rows` of the time of an image; of epochs where a row does not know its images."""
    compared = compare_rows(summary, processes, over, under, figure)
    divisor = "batch_size" if figure == "steady_step_s" else "images_per_epoch"
    each = summary[divisor].astype("float64")
    ratio = np.log(each.loc[under].to_numpy() / each.loc[over].to_numpy())
    return compared.assign(log=compared["log"] + np.where(np.isfinite(ratio), ratio, 0.0))


def _time_ratios(summary: Summary, over: Any, under: Any, compared: pd.DataFrame) -> Floats:
    """Time of an image of these rows by that of others; missing where one did not end ok.

    Of rows that are compared by some of their rounds, over these: the figure that its interval belongs to.
    """
    time = summary["epoch_time_s"].where((summary["status"] == "ok") & (summary["epoch_time_s"] > 0))
    images = summary["images_per_epoch"].astype("float64")
    ratio = time.loc[over].to_numpy() / time.loc[under].to_numpy()
    per_image = images.loc[under].to_numpy() / images.loc[over].to_numpy()
    ratio = ratio * np.where(np.isfinite(per_image), per_image, 1.0)
    by_some = compared["is_by_some_rounds"].to_numpy() & ~np.isnan(ratio)
    with np.errstate(invalid="ignore"):
        ratios: Floats = np.where(by_some, np.exp(compared["log"].to_numpy()), ratio)
    return ratios


def _grow(summary: Summary, processes: pd.DataFrame, axis: str, tied: tuple[str, ...]) -> None:
    """Fills `before`, and growth of memory, time and memory × time against the row before in the same series.

    Only neighbours are compared: a row before without a figure leaves the growth empty, for bridging the gap would show
    two steps as if they were one. So do two rows at one place, and what moved on the way and may not.
    """
    alone = np.flatnonzero(summary["group"].isna())
    if len(alone) < 2:
        return
    fields = Fields.of(summary.iloc[alone])
    named, _ = fields.series(axis, tied)
    values = fields.codes[axis]
    place = combine(len(alone), [named, values])
    is_only = np.bincount(place)[place] == 1
    before, after = np.arange(len(alone) - 1), np.arange(1, len(alone))
    fair = (named[before] == named[after]) & is_only[before] & is_only[after]
    fair &= summary[axis].notna().to_numpy()[alone[after]] & fields.is_fair_step(before, after)
    rows, others = alone[after[fair]], alone[before[fair]]
    summary.loc[rows, "before"] = others
    memory = summary["gpu_mem_mib"].where((summary["status"] == "ok") & (summary["gpu_mem_mib"] > 0))
    sources = [summary["gpu_mem_source"].fillna("").loc[side].to_numpy() for side in (rows, others)]
    more_memory = memory.loc[rows].to_numpy() / memory.loc[others].to_numpy()
    more_memory = np.where(sources[0] == sources[1], more_memory, np.nan)
    summary.loc[rows, "gpu_mem_growth_pct"] = 100 * (more_memory - 1)
    compared = _compare_times(summary, processes, rows, others)
    ratio = _time_ratios(summary, rows, others, compared)
    summary.loc[rows, "epoch_time_growth_pct"] = 100 * (ratio - 1)
    compared.loc[np.isnan(ratio), "log"] = np.nan
    _put_ends(summary, "epoch_time_growth", "_pct", rows, compared, 100, 1)
    steady = processes["steady_step_s"].where(
        (summary["kind"].loc[processes["row"]] != "steady rate").to_numpy()
    )
    costs = _compare_times(summary, processes.assign(steady_step_s=steady), rows, others, "steady_step_s")
    costs = costs.where(costs["log"].notna(), _compare_times(summary, processes, rows, others))
    costs["log"] += np.log(more_memory)
    _put_ends(summary, "cost_growth", "_pct", rows, costs, 100, 1)
    summary.loc[rows, "cost_growth_pct"] = 100 * (np.exp(costs["log"].to_numpy()) - 1)


SHARES = ("strong", "weak")
"""Strong: both rows have the same global batch. Weak: the same batch a device."""


def _scale(summary: Summary, processes: pd.DataFrame, tied: set[str], tied_to_batch: set[str]) -> None:
    """Fills speed-up and efficiency of rows on several devices, and the rows that they are against.

    That is `single` on one device where it was measured, else the fewest devices under the same strategy; where two
    rows could be it, there is none. `tied`, `tied_to_batch`: fields that move with the devices, and with the batch
    size.
    """
    is_timed = summary["group"].isna() & (summary["status"] == "ok") & (summary["epoch_time_s"] > 0)
    alone = np.flatnonzero(is_timed)
    fields = Fields.of(summary.iloc[alone])
    devices = fields.devices
    if len(np.unique(devices)) < 2:
        return
    batch = summary["batch_size"].to_numpy("float64", na_value=np.nan)[alone]
    is_single = (devices == 1) & (fields.frame["strategy"] == "single").to_numpy()
    for name, share in zip(SHARES, (batch, batch / devices), strict=True):
        free = {*DEVICES, *tied, *(tied_to_batch if name == "weak" else ())}
        named, _ = fields.series("batch_size", free)
        place = combine(len(alone), [named, encode(share)])
        has_single = np.bincount(place, is_single)[place] > 0
        way = combine(len(alone), [place, np.where(has_single, -1, fields.way)])
        is_candidate = np.where(has_single, is_single, True) & ~np.isnan(share)
        table = pd.DataFrame({"way": way, "devices": np.where(is_candidate, devices, np.inf)})
        fewest = table.groupby("way")["devices"].transform("min").to_numpy()
        is_fewest = is_candidate & (devices == fewest)
        count = np.bincount(way, is_fewest)[way]
        first = np.full(way.max() + 1, -1)
        first[way[is_fewest]] = np.flatnonzero(is_fewest)
        baseline = first[way]
        has = (count == 1) & ~np.isnan(share)
        useful = np.unique(baseline[has & (devices > devices[baseline])])
        has &= np.isin(baseline, useful)
        rows, others = alone[has], alone[baseline[has]]
        summary.loc[rows, f"{name}_baseline"] = others
        compared = _compare_times(summary, processes, others, rows)
        speedup = _time_ratios(summary, others, rows, compared)
        compared.loc[rows == others, "log"] = np.nan
        efficiency = 100 * devices[baseline[has]] / devices[has]
        summary.loc[rows, f"{name}_efficiency_pct"] = speedup * efficiency
        _put_ends(summary, f"{name}_efficiency", "_pct", rows, compared, efficiency, 0)
        is_new = summary["speedup"].loc[rows].isna().to_numpy()  # that of the strong one where a row has both
        summary.loc[rows[is_new], "speedup"] = speedup[is_new]
        _put_ends(summary, "speedup", "", rows[is_new], compared[is_new], 1.0, 0.0)


# ---- each row by itself ----


def _finish(summary: Summary, processes: pd.DataFrame) -> None:
    """Fills what follows from a row's own figures: energy, the interval of its time, when it crossed a top-1."""
    images, energy = summary["images_per_epoch"].astype("float64"), summary["energy_j"]
    energy = energy.where(energy > 0)
    summary["images_per_joule"] = images / energy
    summary["edp_js"] = energy * summary["epoch_time_s"]
    if not len(processes):
        return
    _fill_crossings(summary, processes)
    by_row = processes.set_index("row")
    times = mean_interval(by_row["epoch_time_s"])
    summary.loc[times.index, ["epoch_time_low_s", "epoch_time_high_s"]] = times[["low", "high"]].to_numpy()
    whole = by_row["has_all_figures"]
    has_whole = whole.groupby(level=0).transform("any")
    joules = by_row["energy_j"][(whole | ~has_whole) & (by_row["energy_j"] > 0)]
    energy_ends = mean_interval(joules)
    energy_ends = energy_ends[energy_ends.index.isin(times.index)]
    counts = images.loc[energy_ends.index]
    summary.loc[energy_ends.index, "images_per_joule_low"] = counts / energy_ends["high"]
    summary.loc[energy_ends.index, "images_per_joule_high"] = counts / energy_ends["low"]
    timed = by_row[by_row["epoch_time_s"].notna() & by_row.index.isin(times.index)]
    squares = ((timed["step_error_pct"] / 100) ** 2).groupby(level=0)
    within = squares.mean()
    summary.loc[within.index, "within_pct"] = 100 * np.sqrt(within)
    logs = np.log(timed["epoch_time_s"]).groupby(level=0)
    total = logs.var().where(logs.max() != logs.min(), 0.0)
    between = 100 * np.sqrt((total - within).clip(lower=0))
    summary.loc[between.index, "between_pct"] = between.where(squares.count() == squares.size())
    ends = [
        column
        for column in summary
        if str(column).endswith(("_low", "_high", "_low_s", "_high_s", "_low_pct", "_high_pct"))
    ]
    summary[ends] = summary[ends].where(np.isfinite(summary[ends]))


def _fill_crossings(summary: Summary, processes: pd.DataFrame) -> None:
    """When the seeds of a row crossed a top-1: their geometric mean, empty where not every one did.

    Those that did are the quick ones. Confirmed only where each was.
    """
    first = processes[processes["round"] == 1].set_index("row")
    groups = first["top1_crossing_s"].groupby(level=0)
    rows = groups.size().index[groups.size() > 1]
    summary.loc[rows, ["top1_crossing_s", "top1_crossing"]] = [np.nan, None]
    known = rows[(groups.count() == groups.size()).loc[rows]]
    if not len(known):
        return
    times = mean_interval(first["top1_crossing_s"].loc[known])
    columns = ["top1_crossing_s", "top1_crossing_low_s", "top1_crossing_high_s"]
    summary.loc[known, columns] = times[["center", "low", "high"]].to_numpy()
    confirmed = (first["top1_crossing"].loc[known] == CONFIRMED).groupby(level=0).all()
    summary.loc[known, "top1_crossing"] = np.where(confirmed.loc[known], CONFIRMED, UNCONFIRMED)
