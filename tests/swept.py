"""Folders that a scripted sweep has left, or that it has begun, and several of them in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

import scripted
from benches import run_with, sweep_of
from scripted import Scripted

from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.live import QuietView
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep_state import SweepState

ASKED = 'name = "{name}"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\n[run]\nrounds = 1\nepochs = 2\n'


def swept(
    folder: Path,
    name: str,
    batches: str,
    stop_after: int = 99,
    repeats: int | None = None,
    rounds: int | None = None,
    **fields: str,
) -> SweepState:
    """A sweep on the CPU that is stopped after so many trials. Its folder has no tables."""
    options = ExperimentOptions(fields={"batch_size": batches, **fields}, repeats=repeats, rounds=rounds)
    asked = apply_options(parse_experiment(ASKED.format(name=name), name), options)
    job = sweep_of(expand_experiment(asked, device="cpu", sources=DiskSources()), folder, scripted.computer())
    job.load()
    store_plan(job)
    launcher = Scripted()
    run_with(
        launcher,
        job,
        QuietView(),
        lambda: len(launcher.launched) >= stop_after and not launcher.left,
        has_tables=False,
    )
    return job


def merge_records(folders: Sequence[Path], *, out: Path) -> int:
    """`gpubench merge` without the tables of OUT, which take nine tenths of its time."""
    from gpubench.commands.merge import merge_folders  # brings pandas, which a sweep imports by itself

    with patch("gpubench.commands.merge._write_tables_anew"):
        return merge_folders(folders, out=out)
