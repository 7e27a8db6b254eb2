"""The seam between a sweep and a machine where trials run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import scripted
from benches import node_of
from recorded_meter import RecordedMeter
from scripted import Scripted

from gpubench.node.launch import attempt
from gpubench.node.watch import metrics
from gpubench.schema.attempt import Attempt
from gpubench.schema.order import TrialOrder


def test_a_trial_s_folder_is_made_and_removed_where_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below the node's own place for temporary files, and for each job another."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    node, seen = node_of(scripted.computer()), []

    def notes(order: TrialOrder) -> scripted.Script:
        seen.append((order.scratch, order.scratch.is_dir(), order.data.left_out))
        return scripted.raises

    node.launcher = Scripted(notes)
    orders = [scripted.order(jobs=2), scripted.order(jobs=2)]
    node.run_unit(
        orders, [(), ("a.png", "b.png")], timeout_s=5, should_stop=lambda: False, look=lambda _: None
    )
    (first, *_), (second, *_) = seen
    assert first != second
    assert [(folder.parents[1], is_there) for folder, is_there, _ in seen] == [(tmp_path, True)] * 2
    assert [names is not None and Path(names).parent for *_, names in seen] == [False, second]
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- meters


def _run_with_meter(
    monkeypatch: pytest.MonkeyPatch, late_s: float, script: scripted.Script, stops: bool
) -> Attempt:
    """One attempt beside a late meter. `stops`: whether the sweep is to stop once the trial has ended."""
    monkeypatch.setattr(attempt, "LATE_S", late_s)
    node = node_of(scripted.computer())
    node.meters = [RecordedMeter()]
    node.launcher = launcher = Scripted(lambda _: script)
    (done,) = node.run_unit(
        [scripted.order()], [()], timeout_s=60, should_stop=lambda: stops and launcher.left == 0,
        look=lambda _: None,
    )  # fmt: skip
    return done


def test_after_a_trial_a_late_meter_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    done = _run_with_meter(monkeypatch, 0.7, scripted.trains, stops=False)
    assert done.forced is None
    times = done.watched.samples.find_series(metrics.CPU_LOAD).times
    assert times[-1] >= done.finished + 0.5, "that is no time of the trial's own"


@pytest.mark.parametrize(("script", "stops"), [(scripted.trains, True), (scripted.raises, False)])
def test_nobody_waits_for_a_meter_who_stops_or_has_no_figures(
    monkeypatch: pytest.MonkeyPatch, script: scripted.Script, stops: bool
) -> None:
    """Who waited would hang: the meter is said to be an hour late."""
    done = _run_with_meter(monkeypatch, 3600.0, script, stops)
    assert done.forced is None, "what it has measured counts"
