"""Columns of the host: CPU time of the trial's CPUs and of its process tree, and the tree's memory. Pure.

Of a trial over several nodes: the mean use of all its CPUs, the highest of any node, and the sums of CPU seconds and
memory over the nodes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from gpubench.node.watch import metrics
from gpubench.schema.codes import REASONS, SOURCES, format_reason
from gpubench.schema.missing import Unmeasured
from gpubench.schema.watched import SourcedFigure, WatchedTrial

_FULL = 1.1
"""Share of the CPUs' time up to which it may be the ticks' noise that hides in 100 %."""
_TREE_SOURCE = SOURCES["tree-cpu"]


def _make_figure_over_nodes(
    of_host: Callable[[WatchedTrial], SourcedFigure],
    put: Callable[[Sequence[WatchedTrial], list[float]], float],
) -> Callable[[WatchedTrial], SourcedFigure]:
    """A column's maker, from that of one node's figure and from how those of several are put together."""

    def make(watched: WatchedTrial) -> SourcedFigure:
        figures = [of_host(host) for host in watched.hosts]
        if len(figures) == 1:
            return figures[0]
        return replace(
            figures[0],
            value=put(watched.hosts, [float(figure.value) for figure in figures]),
            source=f"{figures[0].source}, on each of {len(figures)} nodes",
            samples=sum(figure.samples for figure in figures),
            gaps=sum(figure.gaps for figure in figures),
        )

    return make


def _average_over_cpus(hosts: Sequence[WatchedTrial], shares: list[float]) -> float:
    return sum(host.cpus * share for host, share in zip(hosts, shares, strict=True)) / sum(
        host.cpus for host in hosts
    )


def _compute_cpu_util(watched: WatchedTrial, metric: str, source: str) -> SourcedFigure:
    """The mean share of the CPUs' time over the windows."""
    spent = sum(_compute_node_cpu_s(watched, metric, w.t0, w.t1) for w in watched.measured)
    share = spent / sum(_compute_usable_cpu_s(watched, w.t0, w.t1) for w in watched.measured)
    return _make_cpu_figure(watched, metric, _convert_to_capped_percent(watched, share), source)


def _find_max_cpu_util(watched: WatchedTrial) -> SourcedFigure:
    """The busiest interval between two samples inside a window; at least its busiest window as a whole."""
    series = watched.samples.find_series(watched.cpu_metric)
    shares: list[float] = []
    for window in watched.measured:
        edges = [window.t0]
        for t in [*(t for t in series.times if window.t0 < t < window.t1), window.t1]:
            # Shorter ones (an edge's sample just after a regular one) would be noise of the 10 ms ticks.
            if t - edges[-1] >= metrics.TOTALS_S / 2:
                edges.append(t)
        for t0, t1 in [(window.t0, window.t1), *pairwise(edges)]:
            shares.append(
                _compute_node_cpu_s(watched, watched.cpu_metric, t0, t1)
                / _compute_usable_cpu_s(watched, t0, t1)
            )
    _convert_to_capped_percent(watched, shares[0])
    return _make_cpu_figure(watched, watched.cpu_metric, 100 * min(max(shares), 1.0), watched.cpu_source)


def compute_crowding_pct(watched: WatchedTrial) -> float | None:
    """How much of a number of CPUs is in use once all others of the affinity are; below 0 where more than it are idle.

    All work counts, the trial's own too. None: the trial has CPUs of its own, or the kernel did not tell. Of several
    nodes: where it is most.
    """
    known = []
    for host in watched.hosts:
        with contextlib.suppress(Unmeasured):  # it serves a doubt alone
            if host.spare_cpus > 0:
                busy = sum(_compute_node_cpu_s(host, metrics.CPU_HOST, w.t0, w.t1) for w in host.measured)
                known.append(100 * (busy / host.measured_s - host.spare_cpus) / host.cpus)
    return max(known, default=None)


def _convert_to_capped_percent(watched: WatchedTrial, share: float) -> float:
    """The share in per cent, 100 at most. Raises Unmeasured where that would hide more than the ticks' noise."""
    if share > _FULL:
        raise Unmeasured(format_reason("elsewhere", f"{share:.1f}", f"{watched.cpus:g}"))
    return 100 * min(share, 1.0)


def _compute_median_epoch_cpu_s(watched: WatchedTrial) -> SourcedFigure:
    spent = [_compute_node_cpu_s(watched, metrics.CPU_TREE, w.t0, w.t1) / w.epochs for w in watched.measured]
    return _make_cpu_figure(watched, metrics.CPU_TREE, median(spent), _TREE_SOURCE)


def compute_tree_cpu_s_by_epoch(watched: WatchedTrial) -> dict[int, float | None]:
    return {window.epoch: compute_tree_cpu_s(watched, window.t0, window.t1) for window in watched.windows}


def compute_tree_cpu_s(watched: WatchedTrial, t0: float, t1: float) -> float | None:
    """CPU seconds of the trial's process tree between two times, on all nodes; None: not covered."""
    try:
        return sum(_compute_node_cpu_s(host, metrics.CPU_TREE, t0, t1) for host in watched.hosts)
    except Unmeasured:  # the reason stands beside cpu_s_per_epoch
        return None


def _find_tree_memory(watched: WatchedTrial) -> SourcedFigure:
    series = watched.samples.find_series(metrics.TREE_MEMORY)
    if not series.values:
        raise Unmeasured(series.reason or REASONS["before-memory"])
    return SourcedFigure(max(series.values), SOURCES["smaps"], None, len(series.values), series.gaps)


def _compute_node_cpu_s(watched: WatchedTrial, metric: str, t0: float, t1: float) -> float:
    """CPU seconds between two times."""
    return watched.samples.compute_growth_between(metric, t0, t1, metrics.TOTALS_GAP_S)


def _compute_usable_cpu_s(watched: WatchedTrial, t0: float, t1: float) -> float:
    """CPU seconds that the trial's CPUs had: wall time, less what the hypervisor took."""
    usable = watched.cpus * (t1 - t0)
    if watched.samples.find_series(metrics.CPU_STOLEN).values:
        usable -= _compute_node_cpu_s(watched, metrics.CPU_STOLEN, t0, t1)
    if usable <= 0:
        raise Unmeasured(REASONS["empty-window"])
    return usable


def _make_cpu_figure(watched: WatchedTrial, metric: str, value: float, source: str) -> SourcedFigure:
    series = watched.samples.find_series(metric)
    inside = sum(len(series.between(w.t0, w.t1)) for w in watched.measured)
    return SourcedFigure(value, source, metrics.TOTALS_S, inside, series.gaps)


COLUMNS: dict[str, Callable[[WatchedTrial], SourcedFigure]] = {
    "cpu_util_pct": _make_figure_over_nodes(
        lambda host: _compute_cpu_util(host, host.cpu_metric, host.cpu_source), _average_over_cpus
    ),
    "cpu_util_max_pct": _make_figure_over_nodes(_find_max_cpu_util, lambda _, shares: max(shares)),
    "cpu_util_trial_pct": _make_figure_over_nodes(
        lambda host: _compute_cpu_util(host, metrics.CPU_TREE, _TREE_SOURCE), _average_over_cpus
    ),
    "cpu_s_per_epoch": _make_figure_over_nodes(_compute_median_epoch_cpu_s, lambda _, seconds: sum(seconds)),
    "host_mem_mib": _make_figure_over_nodes(_find_tree_memory, lambda _, mib: sum(mib)),
}
