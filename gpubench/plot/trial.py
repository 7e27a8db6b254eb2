"""One trial's samples over its life: GPU use, CPU use, memory and power, the measured epochs shaded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.basics.words import clean
from gpubench.plot import style
from gpubench.plot.description import SHADED, Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries, Shade
from gpubench.plot.shared import PERCENT, caption
from gpubench.plot.subject import Subject
from gpubench.plot.table import PlotTable, label
from gpubench.results.samples_file import Samples, readings
from gpubench.schema.epoch_times import STEADY
from gpubench.schema.record import Record
from gpubench.schema.samples import STEP_TIME

FULL = PERCENT[-1]
MOST_POINTS = 400
"""Of one series: more can't be told apart at a column's width, and make files large."""
CPU = "cpu_busy_s"
GAP = 5.0
"""Samples that lie so many times further apart than they mostly do have a gap between them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Metric:
    """What one panel shows of the samples."""

    title: str
    names: tuple[str, ...]
    """Of the samples, the best first: the first that is there is drawn."""
    share: bool = False
    """Whether it is a share of what there is."""


METRICS = (
    Metric(title="GPU use (%)", names=("gpu_util_pct", "gpu_util_buffer_pct"), share=True),
    Metric(title="CPU use (%)", names=(CPU,), share=True),
    Metric(title="GPU memory (MiB)", names=("gpu_process_mem_mib", "gpu_device_mem_mib")),
    Metric(title="power (W)", names=("power_w", "power_buffer_w")),
)


def pictures(subject: Subject) -> Sequence[Picture]:
    """That of the first trial that ended ok and has samples."""
    places = {trial: place for place, trial in enumerate(dict.fromkeys(subject.table.runs["trial_id"]))}
    ended = [one for one in subject.records if one.status == "ok" and one.round == 1]
    for record in sorted(ended, key=lambda one: places[one.trial_id]):
        if found := of_record(subject, record):
            return (found,)
    return ()


def of_record(subject: Subject, record: Record, part: str = "") -> Picture | None:
    """That of this attempt; None where it has no samples. `part`: as its file is told from others."""
    if subject.results is None:
        return None
    path = subject.results.part("samples", record.trial_id, record.attempt, "csv")
    samples = readings(path, record, subject.tell)
    return described(subject.table, subject.results.read_whole(record), samples, part) if samples else None


def described(table: PlotTable, record: Record, samples: Samples, part: str = "") -> Picture | None:
    """The picture of a record's samples; None where nothing of it was sampled. Pure."""
    cpus = record.resolved.get("cpus") or record.environment.get("cpu_count")
    spans = measured(record, samples)
    panels = []
    most_of = 1
    for metric in METRICS:
        name = next((name for name in metric.names if any(name == known for _, known in samples)), None)
        if name is None:
            continue
        lines = {device: values for (device, known), values in samples.items() if known == name}
        if name == CPU:
            lines = {"": _use(next(iter(lines.values())), cpus)}
        longest = max(len(values) for values in lines.values())
        size = max(1, -(-longest // MOST_POINTS))
        most_of = max(most_of, size)
        series = tuple(
            PlottedSeries(
                name=f"GPU {device}" if device else "",
                look=look if device else style.BLACK,
                points=thinned(values, size),
                marked=False,
            )
            for look, (device, values) in enumerate(sorted(lines.items()))
            if len(values) > 1
        )
        if series:
            most = max(p.y or 0 for one in series for p in one.points)
            panels.append((metric, series, FULL if metric.share else most))
    if not panels:
        return None
    end = max(p.x for _, series, _ in panels for one in series for p in one.points)
    rows = [row for row in table.rows if record.trial_id in table.trial_ids[id(row)]]
    name = clean(label(rows[0], table.varied)) if rows else record.trial_id
    is_stream = record.result.epoch_time_source == STEADY
    shaded = f" {SHADED}the measured {'window' if is_stream else 'epochs'}." if spans else ""
    means = f" Drawn: means of up to {most_of:,} readings in a row." if most_of > 1 else ""
    return Picture(
        name="trial",
        part=part,
        experiment=table.name,
        of=table.title,
        shows=f"one trial over its life, {name or record.trial_id}",
        panels=tuple(
            Panel(
                kind="lines",
                x=PlottedAxis(title="since its launch (s)", top=end),
                y=PlottedAxis(title=metric.title, top=top, ticks=PERCENT if metric.share else ()),
                series=series,
                spans=spans,
            )
            for metric, series, top in panels
        ),
        caption=caption(
            table, f"Trial {record.trial_id}, what was sampled of it.{shaded}{means}", rows, intervals=False
        ),
    )


def measured(record: Record, samples: Samples) -> tuple[Shade, ...]:
    """When its measured epochs were, in the samples' time; those that warmed up are left out."""
    launched = record.span.launched if record.span else _launched(record, samples)
    if launched is None:
        return ()
    warm = {epoch.get("epoch") for epoch in record.epochs if epoch.get("warmup")}
    return tuple(
        Shade(
            low=window.t0 - launched,
            high=window.t1 - launched,
            name="window" if record.result.epoch_time_source == STEADY else f"epoch {window.epoch}",
        )
        for window in record.windows
        if window.epoch not in warm
    )


def _launched(record: Record, samples: Samples) -> float | None:
    """On the clock of the windows; of a version that did not keep it, by the end of the last step, which has both."""
    steps = [time for (_, metric), values in samples.items() if metric == STEP_TIME for time, _ in values]
    if not steps or not record.windows:
        return None
    return max(window.t1 for window in record.windows) - max(steps)


def _use(busy: Sequence[tuple[float, float]], cpus: object) -> list[tuple[float, float]]:
    """Per cent of so many CPUs between every two readings of their busy seconds, told at the later one.

    Readings out of turn may lie too near to each other for the kernel's ticks of 10 ms: these are taken together.
    """
    if not isinstance(cpus, (int, float)) or not cpus:
        return []
    found = []
    before = busy[0] if busy else None
    for time, total in busy[1:]:
        if before is not None and time - before[0] >= 0.5:
            found.append((time, min(FULL, FULL * (total - before[1]) / (time - before[0]) / float(cpus))))
            before = time, total
    return found


def thinned(values: Sequence[tuple[float, float]], size: int) -> tuple[PlottedPoint, ...]:
    """Means of every `size` readings, and a gap wherever readings are missing."""
    parts = [values[place : place + size] for place in range(0, len(values), size)]
    means = [(_mean(t for t, _ in part), _mean(v for _, v in part)) for part in parts]
    apart = sorted(b[0] - a[0] for a, b in itertools.pairwise(means))
    usual = apart[len(apart) // 2] if apart else 0.0
    points: list[PlottedPoint] = []
    for place, (time, value) in enumerate(means):
        if place and usual and time - means[place - 1][0] > GAP * usual:
            points.append(
                PlottedPoint(name="gap", x=(time + means[place - 1][0]) / 2, y=None, status="missing")
            )
        points.append(PlottedPoint(name=f"{time:.1f} s", x=time, y=value))
    return tuple(points)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
