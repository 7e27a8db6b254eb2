"""The seam between a sweep and a machine where trials run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import scripted
from benches import node_of
from scripted import Scripted

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
