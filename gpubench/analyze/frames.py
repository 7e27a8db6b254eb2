"""Rows of records as the frame `Runs`, and runs of one configuration as the frame `Summary`.

This is the border: what comes in are objects, a record each; behind it are columns alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.analyze.series import Codes, combine_codes, encode_values
from gpubench.schema.cell import format_cell
from gpubench.schema.columns import (
    BY_NAME,
    COLUMNS,
    CPU_SPEED,
    GPU_SETTINGS,
    MEASURED,
    TAKEN_NAMES,
    TRIAL,
    Column,
    make_printed_column,
    make_setting_column,
)
from gpubench.schema.command import split_settings
from gpubench.schema.doubts import SPREAD_PCT
from gpubench.schema.kinds import find_column_kind, format_value_text
from gpubench.schema.row import Row, collect_columns
from gpubench.stats.outliers import FEWEST_OUTLIERS, find_outliers

Runs: TypeAlias = pd.DataFrame
"""A line a process: every attempt that counts, then planned trials without one (`status` skipped or missing).

All columns of trials.csv under their names, in their units, with the dtypes of their definition: whole numbers Int64,
other numbers float64, yes or no boolean, lists as tuples and text as objects (`started_at` is text). Besides:

- `source`, `kind` (epoch_times.Kind), `log` (relative path), `machine` (GPU model, CPU model on a CPU), `allowance`
- `steady_step_s`, `took_s`, `gpu_total_mib`, `gpu_reserved_mib`, `val_images`, `image_files`
- `images`: KnownImages, None where not known
- `together`, `asked`, `doubt_texts`, `missing`, `printed`, `variant_definition`: mappings
- a column for each placeholder of commands that is no field (`list_setting_columns`), and for each figure that they
  printed (`list_printed_columns`), under the names that their user gave them
- `is_asked_known`, `is_gpu_ids_auto`, `is_workers_auto`: whether the record tells what was left to the machine, and
  whether these fields were
- `jobs_of_group`: how many jobs its group has, as far as the record tells
- `has_all_figures`: False for further rounds of versions before 0.2, which measured the time alone
- `superseded`, `elsewhere` (another part of the plan measures it), `further_rounds` (attempts of later rounds that
  don't count, for the first one can't be read)
"""
Summary: TypeAlias = pd.DataFrame
"""A line a configuration on one allocation, in each table that shows it. Its labels count from 0 through all tables.

All columns of `Runs` that are no objects, of several processes what they tell together, and the derived columns of
schema/columns.py. Besides:

- `table` (place among `Folder.tables`), `repeats` (processes that ended ok), `reached` (those that got to a top-1),
  `endings` (`ok`, or `2 ok, 1 failed`), `unit` (number of the group of jobs that ran together, else missing)
- `before`: label of the row before along the table's axis; `alone`: label of the row of the same trial alone;
  `strong_baseline`, `weak_baseline`: label of the row on fewer devices; each missing where there is none
- `outliers` (processes further from the others than chance explains), `outlier_ratio` (the farthest over the median)
"""
Members: TypeAlias = pd.DataFrame
"""Which runs a row of the summary is of: columns `row` (label of Summary), `run` (label of Runs), `is_ok`."""

DETAILS = (
    "source", "log", "allowance", "steady_step_s", "took_s", "gpu_total_mib", "gpu_reserved_mib",
    "together", "images", "asked", "doubt_texts", "missing", "printed", "variant_definition",
)  # fmt: skip
"""Attributes of a row that are no columns of trials.csv."""
OBJECTS = ("together", "images", "asked", "doubt_texts", "missing", "printed", "variant_definition")
"""Those that a summary leaves out."""
FIGURES: tuple[Column, ...] = tuple(
    column for column in (*TRIAL[-2:], *MEASURED, *CPU_SPEED) if column.name not in ("group_id", "doubts")
)
"""Of which several processes have one value together."""
EVERY_ROUND = frozenset({
    "epoch_time_s", "images_per_s", "step_time_ms_p50", "step_time_ms_p95", "first_batch_s", "data_wait_pct", "copy_ms",
    "forward_ms", "backward_ms", "comm_ms", "comm_hidden_ms", "optimizer_ms", "comm_pct", "solo_epoch_time_s",
    "slowdown", "overlap_gain",
})  # fmt: skip
"""Those that further rounds of versions before 0.2 measured as well as the first: a row of such rounds shows what they
have together, of all others what the first found."""
GEOMETRIC = frozenset({"epoch_time_s", "solo_epoch_time_s"})
"""Times, about whose geometric mean their interval lies."""
NEEDS_ALL_PROCESSES = frozenset({"epochs_to_top1", "time_to_top1_s", "energy_to_top1_j"})
"""Known only where every process has it: the median of the lucky ones alone would flatter."""


# ---- runs ----


def build_runs(rows: Sequence[Row]) -> Runs:
    """The frame of these rows, labelled from 0 in their order, without what other rows tell of them."""
    names = (*(column.name for column in COLUMNS), *DETAILS, "kind", "has_all_figures")
    values = collect_columns(rows, names)
    series = {
        column.name: convert_to_column_dtype(values[column.name], find_column_kind(column))
        for column in COLUMNS
    }
    series |= {name: convert_to_column_dtype(values[name], "text") for name in ("source", "kind", "log")}
    numbers = ("steady_step_s", "took_s", "gpu_total_mib", "gpu_reserved_mib")
    series |= {name: convert_to_column_dtype(values[name], "number") for name in numbers}
    series |= {name: make_object_series(values[name]) for name in ("allowance", *OBJECTS)}
    images = values["images"]
    series["val_images"] = convert_to_column_dtype([known and known.val_images for known in images], "whole")
    series["image_files"] = convert_to_column_dtype([known and known.files for known in images], "text")
    series["jobs_of_group"] = convert_to_column_dtype(
        [facts.get("jobs") for facts in values["together"]], "whole"
    )
    requests: Sequence[Mapping[str, Any]] = values["asked"]
    series["is_asked_known"] = np.array([bool(fields) for fields in requests], dtype=bool)
    for field in ("gpu_ids", "workers"):
        auto = [bool(fields) and fields.get(field) is None for fields in requests]
        series[f"is_{field}_auto"] = np.array(auto, dtype=bool)
    series["has_all_figures"] = np.array(values["has_all_figures"], dtype=bool)
    frame = pd.DataFrame(series, index=pd.RangeIndex(len(rows)))
    for column, texts in _collect_settings(frame).items():
        frame[column.name] = convert_to_column_dtype(
            [None if text is None else column.holds(text) for text in texts],
            find_column_kind(column),
        )
    for column in list_printed_columns(frame):
        printed = [figures.get(column.name) for figures in values["printed"]]
        frame[column.name] = convert_to_column_dtype(printed, "number")
    frame["machine"] = name_machines(frame)
    return frame


def list_setting_columns(runs: Runs) -> list[Column]:
    """The columns of commands' placeholders that are no fields, in order of first appearance."""
    return list(_collect_settings(runs))


def _collect_settings(runs: Runs) -> dict[Column, list[str | None]]:
    """The same, with the value of each run."""
    settings = [split_settings(text) if isinstance(text, str) else {} for text in runs["settings"]]
    names = dict.fromkeys(name for given in settings for name in given)
    by_name = {name: [given.get(name) for given in settings] for name in names if name not in TAKEN_NAMES}
    return {
        make_setting_column(name, [text for text in texts if text is not None]): texts
        for name, texts in by_name.items()
    }


def list_printed_columns(runs: Runs) -> list[Column]:
    """The columns of figures that were looked for in commands' output, in order of first appearance.

    None of one that is called as a placeholder of another command is: rows are told apart by that.
    """
    asked = runs["metrics"].dropna().unique()
    names = dict.fromkeys(line.partition("=")[0] for patterns in asked for line in patterns.splitlines())
    names |= dict.fromkeys(name for figures in runs["printed"] for name in figures)
    taken = TAKEN_NAMES | {column.name for column in list_setting_columns(runs)}
    return [make_printed_column(name) for name in names if name not in taken]


def name_machines(rows: pd.DataFrame) -> pd.Series[Any]:
    """The GPU model of each row, on a CPU the CPU model. GPUs of one model that are set unlike are unlike machines."""
    machines = rows["gpu_name"].where(rows["device"] != "cpu", rows["cpu_name"])
    for name, values in find_unlike_settings(rows).items():
        machines = machines.where(values.isna(), machines + f", {name} " + values.map(format_cell))
    return machines


def find_unlike_settings(rows: pd.DataFrame) -> dict[str, pd.Series[Any]]:
    """The columns of `GPU_SETTINGS` in which GPUs of one model differ, with their values; missing ones don't count.

    A power limit that the trial itself asked for is none of them: its field tells of it.
    """
    settings = rows[[column.name for column in GPU_SETTINGS]].astype(object)
    settings["gpu_power_limit_w"] = settings["gpu_power_limit_w"].where(rows["power_limit_w"].isna())
    most = settings.groupby(rows["gpu_name"]).nunique().max()
    return {column.name: settings[column.name] for column in GPU_SETTINGS if most[column.name] > 1}


def convert_to_column_dtype(values: Sequence[Any], form: str) -> Any:
    """The values of a column of this kind (`schema.kinds`) as the dtype that it asks for."""
    if form == "number":
        return np.array(values, dtype="float64")
    if form == "whole":
        try:
            return pd.array(values, dtype="Int64")
        except (TypeError, ValueError):  # a median of two counts
            return np.array(values, dtype="float64")
    if form == "yes or no":
        return pd.array(values, dtype="boolean")
    if form == "list":
        return make_object_series([tuple(value) if isinstance(value, list) else value for value in values])
    # Where rows are grouped pandas hands text over to Arrow, which takes no lone surrogates.
    return make_object_series(
        [
            format_value_text(value) if isinstance(value, str) and not value.isascii() else value
            for value in values
        ]
    )


def make_object_series(values: Sequence[Any]) -> pd.Series[Any]:
    """One object each, text, too: of a hundred columns of a few lines, Arrow's would take most of the time."""
    array = np.empty(len(values), dtype=object)
    array[:] = values  # numpy would make a matrix of tuples of one length
    return pd.Series(array, dtype=object)


# ---- one line a configuration ----


def number_runs_by_configuration(runs: Runs) -> pd.DataFrame:
    """Which runs are of one configuration on one allocation, in the order of the summary.

    Columns `row` (the number of the configuration, in order of first appearance), `hardware` (machines of the jobs that
    ran together) and `position` (of the run); a line a run, those that ended ok before the others of their row. Runs
    are alike in config_id, group, job and hardware, and in the CPUs and loaders that they got there; a planned one,
    which has none yet, joins the first.
    """
    size = len(runs)
    position = np.arange(size)
    ids = runs["config_id"].where(runs["config_id"] != "", pd.Series(position, index=runs.index).astype(str))
    config = combine_codes(
        size, [encode_values(ids), encode_values(runs["group"]), encode_values(runs["job"])]
    )
    hardware = find_hardware_of_runs(runs)
    is_placed = runs["machine"].notna().to_numpy()
    got = [encode_values(hardware), *(encode_values(runs[name]) for name in ("cpus", "workers", "allowance"))]
    place = combine_codes(size, got)
    first_place = np.full(size, -1)  # of each configuration
    first_place[config[is_placed][::-1]] = place[is_placed][::-1]
    place = np.where(is_placed, place, first_place[config])
    is_joining = ~is_placed & (place >= 0)
    row = combine_codes(size, [config, place])
    begin = np.full(size, size)
    np.minimum.at(begin, row[~is_joining], position[~is_joining])
    is_bad = (runs["status"] != "ok").to_numpy()
    order = np.lexsort((is_joining, is_bad, begin[row], config))
    number = np.cumsum(np.diff(row[order], prepend=-1) != 0) - 1
    return pd.DataFrame(
        {
            "row": number,
            "position": order,
            "is_bad": is_bad[order],
            "hardware": hardware.to_numpy(dtype=object)[order],
        }
    )


def find_hardware_of_runs(runs: Runs) -> pd.Series[Any]:
    """The machine of each run; of a job those of all of its group, for one on a CPU may run beside one on a GPU."""
    machines = runs["machine"].astype(object)
    jobs = runs.loc[runs["group_id"].notna() & runs["machine"].notna(), ["group_id", "allowance", "machine"]]
    if jobs["machine"].nunique() < 2:
        return machines
    jobs = jobs.assign(host=runs["host"].fillna(runs["machine"]))
    keys = ["group_id", "allowance", "host"]
    beside = (
        jobs.drop_duplicates().sort_values("machine").groupby(keys, dropna=False)["machine"].agg(" + ".join)
    )
    machines[jobs.index] = jobs.join(beside.rename("all"), on=keys)["all"].to_numpy()
    return machines


def summarize_configurations(runs: Runs) -> tuple[Summary, Members]:
    """A line a configuration, labelled from 0 in order of first appearance, with what its processes tell together.

    `runs`: of one table. Times are geometric means over the processes that ended ok, other figures medians (GEOMETRIC,
    NEEDS_ALL_PROCESSES and `_aggregate_figures` name the rules); where only one did, they are its own.
    What compares rows comes later.
    """
    order = number_runs_by_configuration(runs)
    number, position, is_ok = (
        order["row"].to_numpy(),
        order["position"].to_numpy(),
        ~order["is_bad"].to_numpy(),
    )
    members = pd.DataFrame({"row": number, "run": runs.index[position], "is_ok": is_ok})
    is_first = np.diff(number, prepend=-1) > 0
    summary = runs.iloc[position[is_first]].reset_index(drop=True).drop(columns=[*OBJECTS])
    summary["hardware"] = order["hardware"].to_numpy()[is_first]
    rows = runs[["status", "reason", "group_id", "doubts", "epoch_time_s", "time_to_top1_s"]].iloc[position]
    rows.index = pd.RangeIndex(len(rows))
    summary["repeats"] = np.bincount(number, is_ok, len(summary)).astype(np.int64)
    reached = is_ok & rows["time_to_top1_s"].notna().to_numpy()
    summary["reached"] = np.bincount(number, reached, len(summary)).astype(np.int64)
    summary["endings"] = _format_endings(rows["status"], number)
    bad = ~is_ok & rows["reason"].fillna("").ne("").to_numpy()
    summary["reason"] = rows["reason"][bad].groupby(number[bad]).first().reindex(summary.index)
    ids = rows["group_id"][rows["group_id"].fillna("").ne("")]
    summary["group_id"] = ids.groupby(number[ids.index]).min().reindex(summary.index)
    is_pooled = is_ok & (summary["repeats"] > 1).to_numpy()[number]
    if is_pooled.any():
        _fill_aggregates(summary, runs.iloc[position[is_pooled]].reset_index(drop=True), number[is_pooled])
    summary["doubts"] = _join_all_doubts(rows, number, summary)
    return summary, members


def _format_endings(statuses: pd.Series[Any], number: Codes) -> pd.Series[Any]:
    """How the runs of each row ended: `ok`, or `2 ok, 1 failed`."""
    counts = statuses.groupby([number, statuses.to_numpy()], sort=False).size()
    rows, words = counts.index.get_level_values(0), counts.index.get_level_values(1)
    texts = np.where(rows.duplicated(keep=False), counts.astype(str) + " " + words, words)
    return pd.Series(texts, index=rows, dtype=object).groupby(level=0).agg(", ".join)


def _fill_aggregates(summary: Summary, pool: pd.DataFrame, number: Codes) -> None:
    """Puts what several processes tell together into the rows that they are of. `pool`: those that ended ok."""
    whole = pool["has_all_figures"].to_numpy()
    has_whole = np.bincount(number, whole, len(summary)) > 0
    first = whole | ~has_whole[number]
    every_figure = (*FIGURES, *list_printed_columns(pool))
    figures = [column for column in every_figure if pool[column.name].notna().any()]
    every = [column for column in figures if column.name in EVERY_ROUND]
    first_round = [column for column in figures if column.name not in EVERY_ROUND]
    aggregates = pd.concat(
        [
            _aggregate_figures(pool, number, every),
            _aggregate_figures(pool[first], number[first], first_round),
        ],
        axis=1,
    )
    for column in (*every, *first_round):
        _fill_figure(summary, column, aggregates[column.name])
    times = pool["epoch_time_s"].set_axis(pd.Index(number)).dropna()
    wide = compute_interquartile_ranges(times).reindex(aggregates.index)
    _fill_figure(summary, BY_NAME["epoch_time_iqr_s"], wide)
    rows = aggregates.index
    s = summary.loc[rows]
    rate = s["images_per_epoch"].astype("float64") / s["epoch_time_s"]
    summary.loc[rows, "images_per_s"] = rate.where(rate.notna(), s["images_per_s"])
    slowdown = s["epoch_time_s"] / s["solo_epoch_time_s"]
    summary.loc[rows, "slowdown"] = slowdown.where(slowdown.notna(), s["slowdown"])


def _aggregate_figures(pool: pd.DataFrame, number: Codes, columns: Sequence[Column]) -> pd.DataFrame:
    """What the runs of each row tell together: a column a figure, a line a row."""
    forms = {column.name: find_column_kind(column) for column in columns}
    numbers = [name for name, form in forms.items() if form in ("whole", "number") and name != "slowest_rank"]
    values = pool[numbers].astype("float64")
    groups = values.groupby(number)
    aggregates = groups.median()
    for name in GEOMETRIC.intersection(numbers):
        aggregates[name] = np.exp(np.log(values[name]).groupby(number).mean())
    for name in NEEDS_ALL_PROCESSES.intersection(numbers):
        aggregates[name] = aggregates[name].where(groups[name].count() == groups.size())
    for name in forms.keys() - set(numbers):
        members = pool[name].groupby(number)
        first = members.first().astype(object)
        if name == "slowest_rank":  # ranks have no median
            aggregates[name] = first.where(members.nunique(dropna=False) == 1)
        elif name == "full_together":
            aggregates[name] = _join_frequent_codes(pool[name], number)
        elif name == "solo_id":  # where no two share one, any will do
            aggregates[name] = first
        else:
            aggregates[name] = first.where(members.nunique() < 2, "mixed")
    return aggregates


def _join_frequent_codes(words: pd.Series[Any], number: Codes) -> pd.Series[Any]:
    """The words, joined by +, that at least half of the runs of each row have."""
    codes = pd.Series(words.str.split("+").to_numpy(), index=number).explode().dropna()
    counts = codes.groupby([codes.index, codes.to_numpy()], sort=False).size()
    rows, names = counts.index.get_level_values(0), counts.index.get_level_values(1)
    is_frequent = 2 * counts.to_numpy() >= np.bincount(number)[rows]
    return pd.Series(names[is_frequent], index=rows[is_frequent], dtype=object).groupby(level=0).agg("+".join)


def _fill_figure(summary: Summary, column: Column, values: pd.Series[Any]) -> None:
    """Puts these figures into their rows, with the dtype that the column asks for."""
    form = find_column_kind(column)
    if form not in ("whole", "number"):
        texts = summary[column.name].astype(object)
        texts[values.index] = values.astype(object)
        summary[column.name] = texts
        return
    numbers = summary[column.name].to_numpy("float64", na_value=np.nan).copy()
    numbers[values.index] = values.to_numpy("float64", na_value=np.nan)
    is_whole = form == "whole" and bool((np.isnan(numbers) | (numbers == np.floor(numbers))).all())
    summary[column.name] = pd.array(numbers, dtype="Int64") if is_whole else numbers


def _join_all_doubts(rows: pd.DataFrame, number: Codes, summary: Summary) -> pd.Series[Any]:
    """The codes of the doubts of all runs of each row, and of what its processes raise together, as one cell."""
    parts = [pd.Series(rows["doubts"].str.split("+").to_numpy(), index=number).explode().dropna()]
    is_ok = (rows["status"] == "ok").to_numpy()
    times = rows["epoch_time_s"][is_ok]
    times.index = pd.Index(number[is_ok])
    is_spread = is_epoch_time_scattered(times).reindex(summary.index, fill_value=False) & (
        summary["kind"] != "steady rate"
    )
    summary["outliers"], summary["outlier_ratio"] = _compute_outlier_columns(times.dropna(), len(summary))
    for code, has in (("spread", is_spread & (summary["repeats"] > 1)), ("outlier", summary["outliers"] > 0)):
        parts.append(pd.Series(code, index=summary.index[has], dtype=object))
    codes = pd.concat(parts)
    codes = codes[codes != ""]
    pairs = pd.DataFrame({"row": codes.index, "code": codes.to_numpy()}).drop_duplicates()
    joined = pairs.sort_values("code").groupby("row")["code"].agg("+".join)
    return joined.reindex(summary.index).astype(object)


def is_epoch_time_scattered(times: pd.Series[Any]) -> pd.Series[Any]:
    """Whether epoch times under one label differ by more than SPREAD_PCT of their median.

    From three on their interquartile range counts; of two, their difference.
    """
    times = times.dropna()
    groups = times.groupby(level=0)
    count, middle = groups.count(), groups.median()
    wide = (
        compute_interquartile_ranges(times).reindex(count.index).where(count > 2, groups.max() - groups.min())
    )
    return (count > 1) & (wide > SPREAD_PCT / 100 * middle)


def compute_interquartile_ranges(values: pd.Series[Any]) -> pd.Series[Any]:
    """Of the known values under each label that has two or more."""
    groups = values.groupby(level=0)
    return (groups.quantile(0.75) - groups.quantile(0.25))[groups.count() > 1]


def _compute_outlier_columns(
    times: pd.Series[Any], size: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """How many outliers the processes of each row have, and the farthest of these over the median; NaN without any."""
    counts, ratios = np.zeros(size, dtype=np.int64), np.full(size, np.nan)
    number = times.index.to_numpy()
    for row in np.flatnonzero(np.bincount(number, minlength=size) >= FEWEST_OUTLIERS):
        values = times.to_numpy()[number == row]
        if places := find_outliers(values):
            counts[row] = len(places)
            ratio = values[places] / np.median(values)
            ratios[row] = ratio[np.argmax(np.abs(np.log(ratio)))]
    return counts, ratios
