"""Sweeps in a batch job that ends: what has no time is not begun, and the next job goes on."""

from __future__ import annotations

import time
from pathlib import Path

import scripted
from benches import Ended, Heard, run_with, sweep_of
from scripted import Scripted

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.plan.wall_time import WallTime
from gpubench.schema.order import TrialOrder

BASE = 'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n[run]\nepochs = 2\n'
SMALL, LARGE = 256, 256_000
"""Images of an epoch: of seconds, and of a quarter of an hour, by what is stored or guessed."""


def sweep(
    folder: Path, left_s: float, whole_s: float, *, rounds: int = 1, **fields: str
) -> tuple[Ended, Scripted]:
    options = ExperimentOptions(fields={"batch_size": "16", **fields}, rounds=rounds)
    plan = expand_experiment(
        apply_options(parse_experiment(BASE, "test"), options),
        device="cpu",
        sources=DiskSources(),
        order="given",
    )
    work = sweep_of(plan, folder, scripted.computer())
    work.runner.results.create_folder()
    work.load()
    wall_time = WallTime(job="SLURM job 7", ends_s=time.monotonic() + left_s, whole_s=whole_s)
    launcher = Scripted()
    return run_with(launcher, work, Heard(), wall_time=wall_time, has_tables=False), launcher


def lengths(launcher: Scripted) -> list[int | None]:
    return [order.data.train_images for order in launched(launcher)]


def launched(launcher: Scripted) -> list[TrialOrder]:
    return list(launcher.launched)


def test_what_has_no_time_is_left_and_shorter_ones_run(tmp_path: Path) -> None:
    sweep(tmp_path, 60, 1e6, train_images=str(SMALL))  # how fast it is is known now
    summary, launcher = sweep(tmp_path, 60, 1e6, train_images=f"{LARGE},{2 * SMALL}")
    assert lengths(launcher) == [2 * SMALL]
    assert len(summary.limits.batch_job.late.waiting) == 1
    assert not summary.limits.batch_job.late.never
    assert "SLURM job 7 has" in summary.limits.batch_job.late.explain_stop()

    # The next job has time for it.
    summary, launcher = sweep(tmp_path, 1e6, 1e6, train_images=f"{LARGE},{2 * SMALL}")
    assert lengths(launcher) == [LARGE]
    assert not summary.limits.batch_job.late.waiting


def test_what_no_such_job_can_measure_is_told_apart(tmp_path: Path) -> None:
    sweep(tmp_path, 60, 60, train_images=str(SMALL))
    summary, launcher = sweep(tmp_path, 60, 60, train_images=f"{SMALL},{LARGE}")
    assert lengths(launcher) == []
    assert len(summary.limits.batch_job.late.never) == 1
    assert not summary.limits.batch_job.late.waiting


def test_a_guess_does_not_keep_the_first_unit_of_a_job_from_running(tmp_path: Path) -> None:
    summary, launcher = sweep(tmp_path, 60, 60, train_images=str(LARGE))
    assert lengths(launcher) == [LARGE]
    assert not summary.limits.batch_job.late.never
