"""The readings of one attempt, thinned to what a picture can show."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from statistics import median_high

from gpubench.analyze.folder import Folder
from gpubench.core.report import Report
from gpubench.core.trace import TracePoint, TrialPhase, TrialTrace
from gpubench.results.packed import is_file_or_member
from gpubench.results.samples_file import Samples, read_samples_file
from gpubench.results.store import Results
from gpubench.schema.epoch_times import STEADY
from gpubench.schema.record import Record
from gpubench.schema.samples import STEP_TIME

MOST_POINTS = 400
"""Of one panel: more can't be told apart, and make files large."""
GAP = 5.0
"""Readings that lie so many times further apart than they mostly do have a gap between them."""
SHORTEST_S = 0.5
"""Between two readings of busy seconds: nearer ones stand at the mercy of the kernel's ticks of 10 ms."""
CPU = "cpu_busy_s"
METRICS: Mapping[str, tuple[str, ...]] = {
    "gpu_util_pct": ("gpu_util_pct", "gpu_util_buffer_pct"),
    "cpu_util_pct": (CPU,),
    "gpu_mem_mib": ("gpu_process_mem_mib", "gpu_device_mem_mib"),
    "power_w": ("power_w", "power_buffer_w"),
}
"""Column of trials.csv -> metrics of the samples, the best first: the first that is there counts."""

Line = Sequence[tuple[float, float]]
"""Seconds since the launch, and what was read."""


def make_recommended_trace(folder: Folder, report: Report, tell: Callable[[str], None]) -> TrialTrace | None:
    """The trial whose life is worth a look: that of the recommended row, else of the first whose samples are there.

    `tell`: is given a line for each file of samples that is damaged.
    """
    members = folder.members[folder.members["is_ok"]]
    runs = members.groupby("row")["run"].agg(list).to_dict()
    first = [] if report.recommended_row is None else [report.recommended_row]
    for row in (*first, *report.labels):
        for run in runs.get(row, ()):
            trace = make_run_trace(folder, run, row, tell)
            if trace is not None:
                return trace
    return None


def make_run_trace(folder: Folder, run: int, row: int, tell: Callable[[str], None]) -> TrialTrace | None:
    """The life of a run of a row; None where it is no attempt that counts, or nothing of it was sampled."""
    if run >= len(folder.records):
        return None
    record = folder.records[run]
    results = Results(folder.path)
    path = results.make_attempt_file_path("samples", record.trial_id, record.attempt_name, "csv")
    if not is_file_or_member(path):
        return None
    return build_time_trace(record, read_samples_file(path, tell), row)


def build_time_trace(record: Record, samples: Samples, row: int) -> TrialTrace | None:
    """An attempt's life; None where nothing of it was sampled. `row`: that it belongs to."""
    cpus = record.resolved.get("cpus") or record.environment.get("cpu_count")
    panels = {}
    for column, metrics in METRICS.items():
        metric = next((name for name in metrics if any(name == known for _, known in samples)), None)
        lines = [values for (_, known), values in samples.items() if known == metric]
        if metric == CPU:
            lines = [compute_cpu_use(line, cpus) for line in lines]
        points = thin_readings([line for line in lines if len(line) > 1])
        if points:
            panels[column] = points
    if not panels:
        return None
    figures = {column: record.result.get(column) for column in METRICS}
    phases = tuple(list_phases(record, samples))
    return TrialTrace(row=row, trial_id=record.trial_id, panels=panels, phases=phases, figures=figures)


def compute_cpu_use(busy: Line, cpus: object) -> list[tuple[float, float]]:
    """Per cent of so many CPUs between every two readings of their busy seconds, at the time of the later one."""
    if not isinstance(cpus, (int, float)) or not cpus:
        return []
    shares = []
    before = busy[0]
    for seconds, total in busy[1:]:
        if seconds - before[0] >= SHORTEST_S:
            share = 100 * (total - before[1]) / (seconds - before[0]) / cpus
            shares.append((seconds, min(100.0, share)))
            before = seconds, total
    return shares


def thin_readings(lines: Sequence[Line]) -> tuple[TracePoint, ...]:
    """Means of all readings of a bin, at most MOST_POINTS bins; with several lines the least and the most of a line's
    mean, too."""
    if not lines:
        return ()
    width = max(line[-1][0] for line in lines) / MOST_POINTS
    # The usual gap between readings, where that is wider.
    width = max(
        width, *(median_high(after[0] - before[0] for before, after in pairwise(line)) for line in lines)
    )
    bins: dict[int, list[list[tuple[float, float]]]] = {}
    for line in lines:
        for place, group in groupby(line, key=lambda reading: int(reading[0] / (width or 1.0))):
            bins.setdefault(place, []).append(list(group))
    points: list[TracePoint] = []
    piece = 0
    for _, members in sorted(bins.items()):
        means = [math.fsum(value for _, value in readings) / len(readings) for readings in members]
        times = [seconds for readings in members for seconds, _ in readings]
        seconds = math.fsum(times) / len(times)
        piece += bool(points) and seconds - points[-1].seconds > GAP * (width or 1.0)
        points.append(
            TracePoint(
                seconds=seconds,
                mean=math.fsum(means) / len(means),
                low=min(means),
                high=max(means),
                piece=piece,
            )
        )
    return tuple(points)


def list_phases(record: Record, samples: Samples) -> list[TrialPhase]:
    """Warm-up and window, or epochs, in the time of the samples; none where the launch is not known."""
    launched = record.span.launched if record.span else find_launch_time(record, samples)
    if launched is None:
        return []
    is_stream = record.result.get("epoch_time_source") == STEADY
    warm = {epoch.get("epoch") for epoch in record.epochs if epoch.get("warmup")}
    return [
        TrialPhase(
            name="warm-up" if window.epoch in warm else "window" if is_stream else f"epoch {window.epoch}",
            begin=window.t0 - launched,
            end=window.t1 - launched,
            is_measured=window.epoch not in warm,
        )
        for window in record.windows
    ]


def find_launch_time(record: Record, samples: Samples) -> float | None:
    """When the trial was launched, on the clock of the windows; for records of a version that did not keep it, by the
    end of the last step, which both clocks have."""
    steps = [seconds for (_, metric), line in samples.items() if metric == STEP_TIME for seconds, _ in line]
    if not steps or not record.windows:
        return None
    return max(window.t1 for window in record.windows) - max(steps)
