"""The published logs' figures of groups, through the whole path: sweep, records, table."""

from __future__ import annotations

from pathlib import Path

import pytest
from group_desk import Desk, times


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(folder=tmp_path / "results")


LOG = {
    # alone, together, overlap gain, GPUs (of one process each), batches
    "four GPUs": ((19.6, 12.8, 11.3), (51.0, 28.0, 22.5), 0.17, ("0+1+2+3,strategy=dp",) * 3, (32, 64, 128)),
    "own GPUs": ((16.2, 15.4, 11.3), (28.5, 28.5, 28.5), 0.25, ("0", "1", "2+3,strategy=dp"), (32, 64, 128)),
    "one GPU": ((21.5, 13.6), (32.5, 23.1), 0.25, ("0", "0"), (16, 32)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LOG)
def test_the_logs_figures_through_the_whole_path(desk: Desk, name: str) -> None:
    alone, together, gain, gpus, batches = LOG[name]
    desk.gpus = 4
    by = times(dict(zip(batches, alone, strict=True)), dict(zip(batches, together, strict=True)))
    jobs = [f"batch_size={batch},gpu_ids={ids}" for batch, ids in zip(batches, gpus, strict=True)]
    desk.sweep(*jobs, by=by, epochs="4")
    found = desk.table()
    assert list(found["overlap_gain"].round(2)) == [gain] * len(jobs)
    assert list(found["slowdown"]) == pytest.approx(
        [t / a for t, a in zip(together, alone, strict=True)], rel=1e-5
    )
    assert set(found["sharing"]) == {"some"}
    work = sum(a / t for t, a in zip(together, alone, strict=True))
    assert f" {work:.2f} " in (desk.folder / "table.md").read_text(encoding="utf-8")
