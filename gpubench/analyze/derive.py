"""What the rows of a table say beside each other: growth, slowdown, speed-up, cost, and how sure each of these is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from gpubench.analyze.frames import Members, Runs, Summary, summarize_configurations
from gpubench.analyze.intervals import (
    Floats,
    Indices,
    LogMeans,
    LogRatios,
    ProcessFigures,
    compute_node_shares,
    compute_row_ratios,
)
from gpubench.analyze.series import (
    DEVICES,
    Axes,
    EncodedFields,
    combine_codes,
    encode_values,
    find_tied_fields,
    list_asked_fields,
)
from gpubench.core.prediction import classify_overlap
from gpubench.schema.columns import CONFIRMED, CPU_SPEED, DERIVED, MEASURED, UNCONFIRMED
from gpubench.schema.doubts import find_doubt
from gpubench.stats.estimates import ALPHA, compute_interval_half_width, estimate_combined_work

LABELS = ("before", "alone", "strong_baseline", "weak_baseline")
"""Columns of a summary that hold labels of its rows."""
TIME_COLUMNS = tuple(
    column.name
    for column in (*MEASURED, *CPU_SPEED)
    if column.name == "epoch_time_source" or column.unit not in ("", "MiB", "images")
)
"""Figures that a few first steps don't tell: of time, energy and use."""

PROCESS_COLUMNS = (
    "round", "repeat", "epoch_time_s", "steady_step_s", "energy_j", "step_error_pct", "solo_epoch_time_s",
    "has_all_figures", "top1_crossing_s", "top1_crossing",
)  # fmt: skip
"""Figures of processes that rows are compared by."""


@dataclass(frozen=True, kw_only=True)
class RowArrangement:
    """How the rows of a table stand together."""

    axes: Axes = ()
    """Those that were asked for, as far as a plan tells."""
    axis: str | None = None
    """The field along which rows are ordered; None where no number varies."""
    tied: tuple[str, ...] = ()
    """The fields that may move along it."""
    varied: tuple[str, ...] = ()
    """Fields that differ between rows."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields that are equal in all rows, with their values."""
    has_only_baselines: bool = False
    """Whether all trials alone are there because jobs are compared with them."""
    is_of_tries: bool = False
    """Whether its rows are tries of the largest batch size, which tell of memory alone."""


def build_table_summary(
    runs: Runs, axes: Axes, *, is_of_tries: bool = False
) -> tuple[Summary, Members, RowArrangement]:
    """The rows of one table in the order of reading, labelled from 0, with all that they say beside each other.

    `runs`: in planned order, not empty. `is_of_tries`: a few first steps each, which tell of memory alone.
    """
    if is_of_tries:
        runs = drop_non_memory_figures(runs)
    fields = EncodedFields.from_frame(runs)
    has_only_baselines = "copies" not in list_asked_fields(axes) and _has_only_baselines(runs)
    axis = None if has_only_baselines else fields.find_axis(axes)
    tied = fields.find_fields_tied_to_axis(axis, axes) if axis else ()
    summary, members = summarize_configurations(runs)
    summary["unit"] = _number_job_groups(summary)
    fields = EncodedFields.from_frame(summary)
    order = _find_row_order(summary, fields, axis, tied)
    fields = fields.take(order)
    summary = summary.iloc[order].reset_index(drop=True)
    members["row"] = np.argsort(order)[members["row"].to_numpy()]
    members = members.sort_values("row", kind="stable", ignore_index=True)
    repeats = summary["repeats"].to_numpy()
    rows = RowArrays(summary, fields, ProcessFigures.from_members(repeats, members, runs, PROCESS_COLUMNS))
    if rows.is_job.any():
        _fill_slowdowns(rows, members, runs)
    if axis:
        _fill_growth_along_axis(rows, axis, tied)
    _fill_speed_ups(rows, find_tied_fields(axes, "gpus", "ranks"), find_tied_fields(axes, "batch_size"))
    _fill_energy_and_intervals(rows)
    # How jobs share CPUs holds for their trials alone, too: by themselves these share none.
    sharing = fields.codes["cpu_sharing"]
    of_groups = np.unique(sharing[~fields.is_alone])
    words = fields
    if len(of_groups) == 1:
        codes = {**fields.codes, "cpu_sharing": np.where(fields.is_alone, of_groups[0], sharing)}
        words = replace(fields, codes=codes)
    has_batch_size = bool(summary["batch_size"].notna().any())
    varied = words.list_varied_fields(axes) or ("batch_size" if has_batch_size else "command",)
    arrangement = RowArrangement(
        axes=axes, axis=axis, tied=tied, varied=varied, has_only_baselines=has_only_baselines, is_of_tries=is_of_tries,
        fixed={name: value for name, value in words.find_fixed_fields().items() if name not in varied},
    )  # fmt: skip
    return rows.to_summary(), members, arrangement


def classify_overlap_gains(gain: pd.Series[Any]) -> pd.Series[Any]:
    """The plain word for an overlap gain; missing where that is."""
    words = [None if np.isnan(value) else classify_overlap(value) for value in gain]
    return pd.Series(words, index=gain.index, dtype=object)


def drop_non_memory_figures(runs: Runs) -> Runs:
    """The runs without the figures and the doubts that are not of memory."""
    runs = runs.assign(**{name: runs[name].where(np.zeros(len(runs), dtype=bool)) for name in TIME_COLUMNS})
    codes = runs["doubts"].map(
        lambda cell: "+".join(code for code in cell.split("+") if "memory" in find_doubt(code).about) or None,
        na_action="ignore",
    )
    return runs.assign(doubts=codes)


def _has_only_baselines(runs: Runs) -> bool:
    """Whether all trials alone are there because jobs are compared with them, not with each other."""
    wanted = runs["solo_id"].dropna()
    alone = runs.loc[runs["group"].isna(), "trial_id"]
    return len(wanted) > 0 and bool(alone.isin(wanted).all())


# ---- order ----


def _number_job_groups(summary: Summary) -> pd.Series[Any]:
    """The number of the group that each job ran in, those of one name one after the other; missing for rows alone.

    Without an id, the second row of a job is one of a second group of that name.
    """
    jobs = summary.loc[summary["group"].notna(), ["group", "group_id", "job", "allowance"]]
    group, ids = encode_values(jobs["group"]), encode_values(jobs["group_id"])
    has_id = ids >= 0
    namesakes = pd.Series(combine_codes(len(jobs), [group, encode_values(jobs["job"])]))
    again = namesakes.groupby(namesakes).cumcount().to_numpy()
    unit = combine_codes(
        len(jobs),
        [group, ids, np.where(has_id, encode_values(jobs["allowance"]), -1), np.where(has_id, -1, again)],
    )
    order = np.lexsort((unit, group))
    numbers = encode_values(unit[order])[np.argsort(order)]
    return pd.Series(numbers, index=jobs.index, dtype="Int64").reindex(summary.index)


def _find_row_order(summary: Summary, fields: EncodedFields, axis: str | None, tied: tuple[str, ...]) -> Any:
    """The places of the rows in the order of reading: series by series, each ascending along `axis`; then groups."""
    alone = np.flatnonzero(fields.is_alone)
    jobs = summary.loc[~fields.is_alone, ["job", "unit"]]
    if axis and len(alone):
        named, every = fields.take(alone).encode_series(axis, tied)
        begin = pd.Series(np.arange(len(every))).groupby(every).transform("min").to_numpy()
        first = pd.Series(begin).groupby(named).transform("min").to_numpy()
        values = summary[axis].iloc[alone].to_numpy("float64", na_value=np.inf)
        alone = alone[np.lexsort((np.arange(len(alone)), begin, values, first))]
    numbers = jobs["job"].str.extract(r"^(\d+) of \d+$")[0].fillna("0").astype("int64")
    by_unit = jobs.assign(number=numbers).sort_values(["unit", "number"], kind="stable")
    return np.concatenate([alone, by_unit.index])


# ---- rows beside each other ----


class RowArrays:
    """The rows of one table as arrays, and what is worked out of them."""

    def __init__(self, summary: Summary, fields: EncodedFields, processes: ProcessFigures) -> None:
        self.summary = summary
        self.fields = fields
        self.processes = processes
        self.size = len(summary)
        self.machine = encode_values(summary["machine"])
        self.is_job = summary["group"].notna().to_numpy()
        self.is_ok = (summary["status"] == "ok").to_numpy()
        self.repeats = summary["repeats"].to_numpy()
        self.columns: dict[str, Any] = {
            column.name: np.full(self.size, np.nan) for column in DERIVED if column.name not in summary
        }
        self.labels = {name: np.full(self.size, -1) for name in LABELS}

    def get_column(self, name: str) -> Floats:
        """A column of numbers, as worked out so far; to be written to."""
        if name not in self.columns:
            self.columns[name] = self.summary[name].to_numpy("float64", na_value=np.nan).copy()
        values: Floats = self.columns[name]
        return values

    def get_positive_column(self, name: str) -> Floats:
        """Of rows that ended ok, a figure that is above 0."""
        values = self.get_column(name)
        return np.where(self.is_ok & (values > 0), values, np.nan)

    def fill_interval_ends(self, name: str, unit: str, rows: Indices, ends: tuple[Floats, Floats]) -> None:
        """Puts both ends of an interval into `NAME_lowUNIT` and `NAME_highUNIT`."""
        for end, values in zip(("low", "high"), ends, strict=True):
            self.get_column(f"{name}_{end}{unit}")[rows] = values

    def to_summary(self) -> Summary:
        """The summary with all that was worked out."""
        labels = {
            name: pd.arrays.IntegerArray(labels.astype(np.int64), labels < 0)
            for name, labels in self.labels.items()
        }
        rest = self.summary.drop(columns=[name for name in self.columns if name in self.summary])
        added = pd.DataFrame({**self.columns, **labels}, index=self.summary.index)
        whole = [
            name for name in self.columns if name in self.summary and self.summary[name].dtype == "Int64"
        ]
        added = added.astype(dict.fromkeys(whole, "Int64"))
        return pd.concat([rest, added], axis=1).copy()  # of columns that lie together, not each by itself


def _compare_image_times(
    rows: RowArrays, numerator: Indices, denominator: Indices, figure: str = "epoch_time_s"
) -> LogRatios:
    """The ratios of the time of an image; of epochs where a row does not know its images."""
    ratios = compute_row_ratios(rows.processes, rows.machine, numerator, denominator, figure)
    images = rows.get_column("batch_size" if figure == "steady_step_s" else "images_per_epoch")
    factor = images[denominator] / images[numerator]
    return ratios.scale(np.where(np.isfinite(factor), factor, 1.0))


def _compute_time_ratios(
    rows: RowArrays, numerator: Indices, denominator: Indices, compared: LogRatios
) -> Floats:
    """Time of an image of these rows by that of others; missing where one did not end ok.

    Of rows of several processes it is the figure that its interval belongs to, which may be over some of their rounds.
    """
    time, images = rows.get_positive_column("epoch_time_s"), rows.get_column("images_per_epoch")
    per_image = images[denominator] / images[numerator]
    ratio = time[numerator] / time[denominator] * np.where(np.isfinite(per_image), per_image, 1.0)
    ratios: Floats = np.where(np.isnan(compared.log + ratio), ratio, np.exp(compared.log))
    return ratios


def _fill_growth_along_axis(rows: RowArrays, axis: str, tied: tuple[str, ...]) -> None:
    """Fills `before`, and growth of memory, time and memory × time against the row before in the same series.

    Only neighbours are compared: a row before without a figure leaves the growth empty, for bridging the gap would show
    two steps as if they were one. So do two rows at one place, and what moved on the way and may not.
    """
    alone = np.flatnonzero(~rows.is_job)
    fields = rows.fields.take(alone)
    named, _ = fields.encode_series(axis, tied)
    place = combine_codes(len(alone), [named, fields.codes[axis]])
    is_only = np.bincount(place)[place] == 1
    before, after = np.arange(len(alone) - 1), np.arange(1, len(alone))
    fair = (named[before] == named[after]) & is_only[before] & is_only[after]
    fair &= (fields.codes[axis] >= 0)[after] & fields.is_fair_step(before, after)
    current, previous = alone[after[fair]], alone[before[fair]]
    rows.labels["before"][current] = previous

    memory, source = rows.get_positive_column("gpu_mem_mib"), encode_values(rows.summary["gpu_mem_source"])
    with np.errstate(over="ignore"):
        memory_ratio = memory[current] / memory[previous]
    # A ratio of damaged figures that no float can hold is not known: its logarithm would be infinite.
    is_known = (source[current] == source[previous]) & (memory_ratio > 0) & np.isfinite(memory_ratio)
    memory_ratio = np.where(is_known, memory_ratio, np.nan)
    rows.get_column("gpu_mem_growth_pct")[current] = 100 * (memory_ratio - 1)
    times = _compare_image_times(rows, current, previous)
    ratio = _compute_time_ratios(rows, current, previous, times)
    rows.get_column("epoch_time_growth_pct")[current] = 100 * (ratio - 1)
    rows.fill_interval_ends(
        "epoch_time_growth", "_pct", current, times.where(~np.isnan(ratio)).compute_ends(100, 1)
    )

    steady = _compare_image_times(rows, current, previous, "steady_step_s")
    is_steady = ~np.isnan(steady.log) & (rows.summary["kind"] != "steady rate").to_numpy()[current]
    costs = steady.where(is_steady, times).scale(memory_ratio)
    rows.get_column("cost_growth_pct")[current] = 100 * (np.exp(costs.log) - 1)
    rows.fill_interval_ends("cost_growth", "_pct", current, costs.compute_ends(100, 1))


def _fill_speed_ups(rows: RowArrays, tied: set[str], tied_to_batch: set[str]) -> None:
    """Fills speed-up and efficiency of rows on several devices, and the rows that they are against.

    Strong: both rows have the same global batch; weak: the same batch a device. The baseline is `single` on one device
    where it was measured, else the fewest devices under the same strategy; where two rows could be it, there is none.
    `tied`, `tied_to_batch`: fields that move with the devices, and with the batch size.
    """
    alone = np.flatnonzero(~rows.is_job & ~np.isnan(rows.get_positive_column("epoch_time_s")))
    fields = rows.fields.take(alone)
    devices = fields.devices
    if len(np.unique(devices)) < 2:
        return
    batch = rows.get_column("batch_size")[alone]
    is_single = (devices == 1) & (fields.frame["strategy"] == "single").to_numpy()
    for name, share in (("strong", batch), ("weak", batch / devices)):
        named, _ = fields.encode_series(
            "batch_size", {*DEVICES, *tied, *(tied_to_batch if name == "weak" else ())}
        )
        place = combine_codes(len(alone), [named, encode_values(share)])
        has_single = np.bincount(place, is_single)[place] > 0
        rivals = combine_codes(len(alone), [place, np.where(has_single, -1, fields.strategy)])
        is_candidate = is_single | ~has_single
        fewest = np.full(rivals.max() + 1, np.inf)
        np.minimum.at(fewest, rivals[is_candidate], devices[is_candidate])
        is_fewest = is_candidate & (devices == fewest[rivals])
        baselines = np.full(rivals.max() + 1, -1)
        baselines[rivals[is_fewest]] = np.flatnonzero(is_fewest)
        baseline = baselines[rivals]
        is_compared = (np.bincount(rivals, is_fewest)[rivals] == 1) & ~np.isnan(share)
        is_compared &= np.isin(baseline, baseline[is_compared & (devices > devices[baseline])])
        scaled, compared_with = alone[is_compared], alone[baseline[is_compared]]
        rows.labels[f"{name}_baseline"][scaled] = compared_with
        times = _compare_image_times(rows, compared_with, scaled)
        speedup = _compute_time_ratios(rows, compared_with, scaled, times)
        times = times.where(scaled != compared_with)
        share_of_devices = 100 * devices[baseline[is_compared]] / devices[is_compared]
        rows.get_column(f"{name}_efficiency_pct")[scaled] = speedup * share_of_devices
        rows.fill_interval_ends(f"{name}_efficiency", "_pct", scaled, times.compute_ends(share_of_devices))
        is_new = np.isnan(rows.get_column("speedup")[scaled])  # that of the strong one where a row has both
        rows.get_column("speedup")[scaled[is_new]] = speedup[is_new]
        low, high = times.compute_ends()
        rows.fill_interval_ends("speedup", "", scaled[is_new], (low[is_new], high[is_new]))


# ---- jobs together ----


def _fill_slowdowns(rows: RowArrays, members: Members, runs: Runs) -> None:
    """Fills, of jobs of several processes: `alone`, `solo_epoch_time_s`, `slowdown`; and the overlap gain of groups."""
    _match_solo_rows(rows, members, runs)
    jobs = np.flatnonzero(rows.labels["alone"] >= 0)
    alone = rows.labels["alone"][jobs]
    times = rows.get_column("epoch_time_s")
    rows.get_column("solo_epoch_time_s")[jobs] = times[alone]
    rows.get_column("slowdown")[jobs] = times[jobs] / times[alone]
    slowdowns = compute_row_ratios(
        rows.processes, rows.machine, jobs, alone, "epoch_time_s", by_processes=True
    )
    rows.fill_interval_ends("slowdown", "", jobs, slowdowns.compute_ends())
    units = rows.summary["unit"].to_numpy("int64", na_value=-1)
    has_id = rows.is_job & rows.summary["group_id"].notna().to_numpy()
    groups = combine_codes(rows.size, [units, encode_values(rows.summary["hardware"])])[has_id]
    for _, places in pd.Series(np.flatnonzero(has_id)).groupby(groups):
        if (rows.repeats[places] > 1).any():
            _fill_overlap_gain(rows, places.to_numpy())


def _match_solo_rows(rows: RowArrays, members: Members, runs: Runs) -> None:
    """The row of the same trial alone of each job of several processes, where all its runs were compared with one."""
    ok = members[members["is_ok"]]
    row = ok["row"].to_numpy()
    ended = runs.loc[ok["run"], ["trial_id", "solo_id", "machine"]]
    is_job = rows.is_job[row]
    trials = ended["trial_id"].where(~is_job, ended["solo_id"])
    key = combine_codes(len(row), [encode_values(trials), encode_values(ended["machine"])])
    solo = np.full(len(row), -1)  # of each key
    solo[key[~is_job]] = row[~is_job]
    is_compared = is_job & (rows.repeats > 1)[row] & (solo[key] >= 0)
    least, most = np.full(rows.size, rows.size), np.full(rows.size, -1)
    np.minimum.at(least, row[is_compared], solo[key[is_compared]])
    np.maximum.at(most, row[is_compared], solo[key[is_compared]])
    rows.labels["alone"] = np.where(least == most, most, -1)


def _fill_overlap_gain(rows: RowArrays, jobs: Indices) -> None:
    """Fills the overlap gain of a group from the slowdowns of its jobs, with its interval over processes.

    Where not all of its jobs are there, or have a slowdown, it stays the median of the runs that had one.
    """
    size = np.nanmax([0, *rows.get_column("jobs_of_group")[jobs]])
    if len(jobs) < max(2, size) or np.isnan(rows.get_column("slowdown")[jobs]).any():
        return
    gain = float((np.sum(1 / rows.get_column("slowdown")[jobs]) - 1) / (len(jobs) - 1))
    ends = _compute_overlap_gain_interval(rows, jobs)
    if ends is not None and len(np.unique(rows.repeats[jobs])) > 1:
        gain = ends[0]  # of the runs that all jobs have, as its interval is
    rows.get_column("overlap_gain")[jobs] = gain
    if ends is not None and np.isfinite(ends[2]):
        rows.fill_interval_ends("overlap_gain", "", jobs, (np.array(ends[1]), np.array(ends[2])))


def _compute_overlap_gain_interval(rows: RowArrays, jobs: Indices) -> tuple[float, float, float] | None:
    """The overlap gain of a group with its 95 % interval, by the runs that all jobs have; None where a job or its trial
    alone is of one process. Infinite where these were on unlike nodes."""
    if (rows.repeats[jobs] < 2).any():
        return None
    figures, row, node = rows.processes.figures, rows.processes.row, rows.processes.node
    alone: dict[Hashable, Floats] = {}
    names: list[Hashable] = []
    runs: list[dict[Any, tuple[float, str]]] = []
    nodes = []
    for job in jobs:
        is_of_job = row == job
        places = (np.nan_to_num(figures[name][is_of_job], nan=-1) for name in ("repeat", "round"))
        outcomes = zip(figures["epoch_time_s"][is_of_job], node[is_of_job], strict=True)
        runs.append(dict(zip(zip(*places, strict=True), outcomes, strict=True)))
        solo_id = rows.summary["solo_id"].iloc[job]
        names.append(solo_id if isinstance(solo_id, str) else job)
        solo = rows.labels["alone"][job]
        if solo >= 0:
            alone[names[-1]] = figures["epoch_time_s"][row == solo]
            nodes.append(compute_node_shares(node[row == solo]))
        else:
            solos = figures["solo_epoch_time_s"][is_of_job]
            alone[names[-1]] = solos[~np.isnan(solos)]
    common = [key for key in sorted(runs[0]) if all(run.get(key, (np.nan,))[0] > 0 for run in runs)]
    if len(common) < 2 or any(len(times) < 2 or np.isnan(times).any() for times in alone.values()):
        return None
    together = [(name, [run[key][0] for key in common]) for name, run in zip(names, runs, strict=True)]
    work = estimate_combined_work(alone, together)  # type: ignore[arg-type]  # arrays are sequences
    if work.welch is None:
        return None
    half = compute_interval_half_width(work.welch, ALPHA / 2)
    shares = compute_node_shares([runs[0][key][1] for key in common])
    if any(nodes_alone != shares for nodes_alone in nodes):
        half = math.inf
    gain, low, high = ((math.exp(work.center + end) - 1) / (len(jobs) - 1) for end in (0.0, -half, half))
    return gain, low, high


# ---- each row by itself ----


def _fill_energy_and_intervals(rows: RowArrays) -> None:
    """Fills what follows from a row's own figures: energy, the interval of its time, when it crossed a top-1."""
    images, energy = rows.get_column("images_per_epoch"), rows.get_column("energy_j")
    energy = np.where(energy > 0, energy, np.nan)
    rows.columns["images_per_joule"] = images / energy
    rows.columns["edp_js"] = energy * rows.get_column("epoch_time_s")
    processes = rows.processes
    if not len(processes.row):
        return
    _fill_top1_crossings(rows)
    every = np.arange(rows.size)
    times = LogMeans.from_groups(processes.row, processes.compute_logs("epoch_time_s"), rows.size)
    is_timed = times.count > 1
    rows.fill_interval_ends("epoch_time", "_s", every, _compute_mean_interval_ends(times))
    whole = processes.figures["has_all_figures"].astype(bool)
    has_whole = np.bincount(processes.row, whole, rows.size) > 0
    joules = np.where(whole | ~has_whole[processes.row], processes.compute_logs("energy_j"), np.nan)
    low, high = (
        np.where(is_timed, end, np.nan)
        for end in _compute_mean_interval_ends(LogMeans.from_groups(processes.row, joules, rows.size))
    )
    rows.fill_interval_ends("images_per_joule", "", every, (images / high, images / low))
    errors = (
        np.where(
            np.isnan(processes.compute_logs("epoch_time_s")), np.nan, processes.figures["step_error_pct"]
        )
        / 100
    )
    within = LogMeans.from_groups(processes.row, errors**2, rows.size)
    rows.columns["within_pct"] = np.where(is_timed, 100 * np.sqrt(within.mean), np.nan)
    between = 100 * np.sqrt(np.maximum(times.variance - within.mean, 0))
    rows.columns["between_pct"] = np.where(is_timed & (within.count == times.count), between, np.nan)


def _compute_mean_interval_ends(means: LogMeans) -> tuple[Floats, Floats]:
    """Both ends of the intervals of geometric means; NaN where one is infinite, or there is none."""
    return LogRatios(log=means.mean, half=means.compute_half_width()).compute_ends()


def _fill_top1_crossings(rows: RowArrays) -> None:
    """When the seeds of a row crossed a top-1: their geometric mean, empty where not every one did.

    Those that did are the quick ones. Confirmed only where each was.
    """
    processes = rows.processes
    is_first = processes.figures["round"] == 1
    row, logs = processes.row[is_first], processes.compute_logs("top1_crossing_s")[is_first]
    seeds = np.bincount(row, minlength=rows.size)
    crossed = LogMeans.from_groups(row, logs, rows.size)
    several, all_crossed = seeds > 1, (crossed.count == seeds) & (seeds > 1)
    words = (processes.figures["top1_crossing"] == CONFIRMED)[is_first]
    confirmed = np.bincount(row, words, rows.size) == seeds
    low, high = (np.where(all_crossed, end, np.nan) for end in _compute_mean_interval_ends(crossed))
    rows.fill_interval_ends("top1_crossing", "_s", np.arange(rows.size), (low, high))
    times = np.where(all_crossed, np.exp(crossed.mean), np.nan)
    rows.columns["top1_crossing_s"] = np.where(several, times, rows.get_column("top1_crossing_s"))
    kinds = pd.Series(np.where(confirmed, CONFIRMED, UNCONFIRMED), dtype=object).where(all_crossed, None)
    rows.columns["top1_crossing"] = kinds.where(several, rows.summary["top1_crossing"])
