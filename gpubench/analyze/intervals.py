"""95 % intervals of the columns of table.csv, over processes, on the log scale. All pairs of rows at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.schema import hosts

LEVEL = 0.05
FEWEST_ROUNDS = 3
"""Rounds in common from which rows are compared round by round."""
Floats: TypeAlias = npt.NDArray[np.float64]
Places: TypeAlias = npt.NDArray[np.int64]


def t_quantile(probability: Any, degrees: Any) -> Any:
    """The value below which Student's distribution has this probability."""
    from scipy.special import stdtrit

    return stdtrit(degrees, probability)


def mean_interval(values: pd.Series[Any]) -> pd.DataFrame:
    """The geometric mean of the values under each label, with Student's interval on the log scale.

    Columns `center`, `low`, `high`; a line a label that has two values or more.
    """
    logs = np.log(values.dropna()).groupby(level=0)
    table = pd.DataFrame({"n": logs.size(), "mean": logs.mean(), "error": _standard_deviation(logs)})
    table = table[table["n"] > 1]
    half = t_quantile(1 - LEVEL / 2, table["n"] - 1) * table["error"] / np.sqrt(table["n"])
    with np.errstate(over="ignore"):
        ends = {"low": np.exp(table["mean"] - half), "high": np.exp(table["mean"] + half)}
    return pd.DataFrame({"center": np.exp(table["mean"]), **ends})


def _standard_deviation(groups: Any) -> pd.Series[Any]:
    """Of values that are all the same it is 0, whatever their sums come to."""
    deviation: pd.Series[Any] = groups.std()
    return deviation.where(groups.max() != groups.min(), deviation * 0.0)


def processes_of(summary: pd.DataFrame, members: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """A line a process that ended ok, of rows that have several.

    Columns `row`, `round`, `node`, `first_node`, `is_placed` (each process of the row was in a round of its own on its
    node), `is_first_placed` (likewise of first nodes), `epoch_time_s`, `steady_step_s`, `energy_j`, `step_error_pct`,
    `solo_epoch_time_s`, `repeat`, `has_all_figures`, `top1_crossing_s`, `top1_crossing`.
    """
    several = members[members["is_ok"] & (summary["repeats"] > 1).reindex(members["row"]).to_numpy()]
    names = [
        "round", "repeat", "epoch_time_s", "steady_step_s", "energy_j", "step_error_pct", "solo_epoch_time_s",
        "has_all_figures", "top1_crossing_s", "top1_crossing",
    ]  # fmt: skip
    processes = runs.loc[several["run"], names].reset_index(drop=True)
    processes.insert(0, "row", several["row"].to_numpy())
    processes["node"] = runs.loc[several["run"], "host"].fillna("").to_numpy()
    different = processes["node"].unique()
    firsts = {node: hosts.first(node) for node in different}
    processes["first_node"] = processes["node"].map(firsts)
    processes["width"] = processes["node"].map({node: hosts.count(node) for node in different})
    placed = ~processes.duplicated(["row", "round", "node"], keep=False)
    processes["is_placed"] = placed.groupby(processes["row"]).transform("all")
    placed = ~processes.duplicated(["row", "round", "first_node"], keep=False)
    processes["is_first_placed"] = processes["is_placed"] & placed.groupby(processes["row"]).transform("all")
    return processes


def compare_rows(
    summary: pd.DataFrame,
    processes: pd.DataFrame,
    over: Places,
    under: Places,
    figure: str,
    *,
    whole_rounds: bool = False,
) -> pd.DataFrame:
    """How the geometric means of two rows' processes compare: a line a pair, missing where a row has one process.

    `over`, `under`: labels of the summary. `figure`: a column of `processes` that is above 0. Columns `log` (of the
    ratio), `half` (half the width of its 95 % interval, infinite between unlike nodes, of which nobody knows what they
    differ by), `is_by_rounds`, `is_by_some_rounds` (one of both has other rounds, too).

    Rows that were measured in FEWEST_ROUNDS or more in common, each on the same node, are compared round by round,
    others by all their processes with Welch's standard error, never narrower than either side alone would leave it. A
    trial over several nodes is set beside one over fewer by its first node. `whole_rounds`: round by round only where
    both have the same rounds, by the nodes as they are.
    """
    table = pd.DataFrame({"over": over, "under": under})
    values = processes[figure].astype("float64")
    processes = processes.assign(log=np.log(values.where(values > 0)))
    sides = processes.groupby("row").agg(
        n=("log", "size"), known=("log", "count"), mean=("log", "mean"), least=("log", "min"), most=("log", "max"),
        variance=("log", "var"), width=("width", "max"), is_placed=("is_placed", "first"),
        is_first_placed=("is_first_placed", "first"),
    )  # fmt: skip
    sides["variance"] = sides["variance"].where(sides["least"] != sides["most"], 0.0)
    sides = sides[(sides["n"] > 1) & (sides["known"] == sides["n"])]
    a, b = (sides.reindex(table[side]).reset_index(drop=True) for side in ("over", "under"))
    is_first = (a["width"] != b["width"]) & a["width"].notna() & b["width"].notna() & (not whole_rounds)

    rounds = _pair_rounds(table, processes, is_first)
    common = rounds.groupby("pair")["apart"]
    count = common.size().reindex(table.index, fill_value=0)
    placed_rounds = [
        side["n"].where(
            side["is_first_placed"].where(is_first, side["is_placed"]).fillna(False).astype(bool), 0
        )
        for side in (a, b)
    ]
    is_same_rounds = (count == placed_rounds[0]) & (count == placed_rounds[1])
    known = a["n"].notna() & b["n"].notna()
    by_rounds = known & (count >= FEWEST_ROUNDS) & (is_same_rounds | (not whole_rounds))

    parts = [side["variance"] / side["n"] for side in (a, b)]
    total, degrees = parts[0] + parts[1], [side["n"] - 1 for side in (a, b)]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / (parts[0] ** 2 / degrees[0] + parts[1] ** 2 / degrees[1])
    welch = _half_width(total, freedom)
    for part, free in zip(parts, degrees, strict=True):
        welch = np.fmax(welch, _half_width(part, free))
    welch = welch.where(~_is_apart(summary, processes, table, is_first), np.inf)
    pairs = _half_width((_standard_deviation(common) ** 2 / common.size()), common.size() - 1)
    log = common.mean().reindex(table.index).where(by_rounds, a["mean"] - b["mean"])
    return pd.DataFrame(
        {
            "log": log.where(known),
            "half": pairs.reindex(table.index).where(by_rounds, welch).where(known),
            "is_by_rounds": by_rounds,
            "is_by_some_rounds": by_rounds & ~is_same_rounds,
        }
    )


def _half_width(variance: pd.Series[Any], degrees: pd.Series[Any]) -> pd.Series[Any]:
    """Half the width of Student's interval; 0 where nothing varies."""
    half = pd.Series(t_quantile(1 - LEVEL / 2, degrees) * np.sqrt(variance), index=variance.index)
    return half.where(variance != 0, 0.0)


def _pair_rounds(table: pd.DataFrame, processes: pd.DataFrame, is_first: pd.Series[Any]) -> pd.DataFrame:
    """Columns `pair` and `apart` (difference of both sides' logarithms): a line a round that a pair has in common."""
    sides = []
    for name in ("over", "under"):
        side = table[[name]].rename(columns={name: "row"})
        side["pair"], side["is_first"] = side.index, is_first.to_numpy()
        side = side.merge(processes, on="row")
        placed = side["is_first_placed"].where(side["is_first"], side["is_placed"])
        side["place"] = side["first_node"].where(side["is_first"], side["node"])
        sides.append(side.loc[placed.astype(bool), ["pair", "round", "place", "log"]])
    rounds = sides[0].merge(sides[1], on=["pair", "round", "place"])
    rounds["apart"] = rounds["log_x"] - rounds["log_y"]
    return rounds


def _is_apart(
    summary: pd.DataFrame, processes: pd.DataFrame, table: pd.DataFrame, is_first: pd.Series[Any]
) -> pd.Series[Any]:
    """Whether two rows had unlike shares of their processes on the nodes of one kind of machine."""
    if processes["node"].nunique() < 2:
        return pd.Series(False, index=table.index)
    machines = [summary["machine"].reindex(table[side]).fillna("").to_numpy() for side in ("over", "under")]
    shares = {name: node_shares(processes, name) for name in ("node", "first_node")}
    sides = [
        np.where(is_first, *(shares[name].reindex(table[side]).to_numpy() for name in ("first_node", "node")))
        for side in ("over", "under")
    ]
    return pd.Series((machines[0] == machines[1]) & (sides[0] != sides[1]), index=table.index)


def node_shares(processes: pd.DataFrame, node: str) -> pd.Series[Any]:
    """Row -> on which nodes its processes were, each with its share of them, as text."""
    counts = processes.groupby(["row", node]).size()
    share = counts / counts.groupby(level=0).transform("sum")
    words = counts.index.get_level_values(1) + ":" + share.astype(str).to_numpy()
    return pd.Series(words, index=counts.index.get_level_values(0)).groupby(level=0).agg(" ".join)


def overlap_gain_interval(
    alone: dict[str, Floats], together: Floats, names: list[str]
) -> tuple[float, float, float] | None:
    """The overlap gain of jobs with its 95 % interval: (sum of alone / together - 1) / (n - 1).

    `alone`: times of the processes of each trial alone, by its name. `together`: jobs × runs of the group. `names`: of
    each job's trial alone. The sum is taken to first order on the log scale (the delta method), where each ratio has
    its share of the sum as its weight; copies of one trial share its times alone. None where a sample has one process.
    """
    logs = {name: np.log(times) for name, times in alone.items()}
    if together.shape[1] < 2 or any(len(logs[name]) < 2 for name in names):
        return None
    shared = np.log(together)
    rates = np.exp(np.array([logs[name].mean() for name in names]) - shared.mean(axis=1))
    weights = rates / rates.sum()
    samples = [
        (logs[name], float(weights[[other == name for other in names]].sum()))
        for name in dict.fromkeys(names)
    ]
    samples.append((weights @ shared, 1.0))
    parts = np.array([weight**2 * _variance(sample) / len(sample) for sample, weight in samples])
    degrees = np.array([len(sample) - 1 for sample, _ in samples])
    half = 0.0
    if parts.sum():
        freedom = parts.sum() ** 2 / (parts**2 / degrees).sum()
        halves = t_quantile(1 - LEVEL / 2, [freedom, *degrees]) * np.sqrt([parts.sum(), *parts])
        half = float(halves[np.array([True, *(parts > 0)])].max())
    center, scale = float(np.log(rates.sum())), 1 / (len(names) - 1)
    with np.errstate(over="ignore"):
        return tuple(scale * (float(np.exp(center + end)) - 1) for end in (0.0, -half, half))  # type: ignore[return-value]


def _variance(sample: Floats) -> float:
    return 0.0 if sample.min() == sample.max() else float(sample.var(ddof=1))
