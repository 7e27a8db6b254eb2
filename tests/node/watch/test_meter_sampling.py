"""Meters as they are asked for, and as the watchers of one unit share them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import scripted
from fake_nvml import FakeNvml, gpu
from recorded_meter import RecordedMeter
from watched import Clock, watch

from gpubench.basics.errors import UsageError
from gpubench.node.watch import metrics
from gpubench.node.watch.meters.meter import Reading
from gpubench.node.watch.meters.sampling import open_meters
from gpubench.node.watch.watcher import Watcher, make_watchers
from gpubench.schema.samples import HOST
from gpubench.schema.watched import WatchedTrial

ALLOWED = tuple(sorted(os.sched_getaffinity(0)))
G0 = gpu(0).uuid


def side_by_side(clock: Clock, meter: RecordedMeter, *gpus: list[str]) -> list[Watcher]:
    watchers = make_watchers(
        FakeNvml(answers={"power_w": {G0: 300}}), scripted.computer(1), [(ids, ALLOWED) for ids in gpus], clock,
        [meter],
    )  # fmt: skip
    for watcher in watchers:
        watcher.attach_to_trial(os.getpid())
    return watchers


def read(seen: WatchedTrial, metric: str, device: str = HOST) -> list[float]:
    return seen.samples.find_series(metric, device).times


@pytest.mark.parametrize("text", ["", "plug", "rapl:0", "ftp://plug/", "csv", "RAPL"])
def test_what_is_no_meter_is_refused_with_what_there_is(text: str) -> None:
    with pytest.raises(UsageError, match=r"give rapl, csv:PATH or http://HOST/PATH"):
        open_meters([text])


def test_one_external_meter_at_most(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a.csv", "b.csv")]
    for file in files:
        file.write_text("time,watts\n")
    assert [meter.name for meter in open_meters([f"csv:{files[0]}"])] == [f"csv:{files[0]}"]
    with pytest.raises(UsageError, match="rapl and one other meter can be read"):
        open_meters([f"csv:{file}" for file in files])


def test_all_jobs_of_a_unit_have_the_same_readings_and_it_is_asked_ten_times_a_second() -> None:
    clock = Clock()
    meter = RecordedMeter([Reading(1000.0 + k, 100.0, 1000.0 + k) for k in range(3)])
    watchers = side_by_side(clock, meter, [], [], [])
    watch(watchers, clock, 2)
    assert meter.looks == 21
    for watcher in watchers:
        seen = watcher.make_watched()
        assert read(seen, "meter_w") == [1000.0, 1001.0, 1002.0]
        (of,) = seen.meters
        assert (of.name, of.metric, of.is_late, of.is_shared) == (meter.name, "meter_w", True, True)
    (alone,) = side_by_side(clock, meter, [])
    assert [meter.is_shared for meter in alone.make_watched().meters] == [False]
    assert meter.looks == 1, "for each unit it begins anew"


@pytest.mark.parametrize(("is_late", "gpus"), [(True, []), (True, [G0]), (False, [])])
def test_what_a_late_meter_is_aligned_by_is_sampled_until_it_has_told_all(
    is_late: bool, gpus: list[str]
) -> None:
    clock = Clock()
    meter = RecordedMeter(is_late=is_late)
    (watcher,) = side_by_side(clock, meter, gpus)
    watch(watcher, clock, 2)
    watcher.sample_final_memory()
    ended = clock.now
    assert watcher.has_late_meter == is_late
    while is_late and clock.now < ended + metrics.LATE_S:
        clock.now = watcher.next_deadline()
        watcher.sample_after_trial()
    seen = watcher.make_watched()
    loads, powers = read(seen, metrics.CPU_LOAD), read(seen, metrics.POWER, "0")
    assert bool(loads) == (is_late and not gpus)
    for times in (loads, powers if gpus else []):
        if times:
            assert times[-1] == pytest.approx(ended + metrics.LATE_S, abs=0.11)
            assert len(times) == pytest.approx(10 * (2 + metrics.LATE_S), abs=2)
    # What is not its business is not sampled any more: the trial is gone.
    assert read(seen, metrics.CPU_TREE)[-1] == ended
    assert not gpus or read(seen, "gpu_util_pct", "0")[-1] == ended


def test_without_meters_nothing_more_is_sampled() -> None:
    clock = Clock()
    (watcher,) = make_watchers(None, scripted.computer(0), [([], ALLOWED)], clock)
    watcher.attach_to_trial(os.getpid())
    # Nor does it wake for what a meter or a GPU would have told: its CPU is the trial's.
    assert watcher.next_deadline() == clock.now + metrics.TOTALS_S
    watch(watcher, clock, 1)
    seen = watcher.make_watched()
    assert seen.meters == ()
    assert not {"meter_w", "rapl_w", metrics.CPU_LOAD} & seen.samples.by_metric.keys()


def test_its_samples_are_on_the_clock_of_the_trial() -> None:
    clock = Clock()
    meter = RecordedMeter([Reading(k / 2, 50.0 + k, 1000 + k / 2) for k in range(4)])
    (watcher,) = side_by_side(clock, meter, [])
    rows = [row for row in watcher.make_watched().samples.list_rows(1000.0) if row[2] == "meter_w"]
    assert rows == [(k / 2, HOST, "meter_w", 50.0 + k) for k in range(4)]
