"""`gpubench predict`: what jobs would do to each other, from stored rows of the same trials alone. Runs nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gpubench.analyze.folder import Folder, read_folders
from gpubench.analyze.predict import NO_JOBS, list_measured, predict_experiment
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands.folders import exit_code_of, print_text, warn
from gpubench.core.prediction import NoPrediction
from gpubench.node import environment
from gpubench.node.environment import Machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.options import job_option
from gpubench.plan.sweep_options import Options
from gpubench.render import prediction as render
from gpubench.render.terminal import WIDEST, WIDTH
from gpubench.results.home import all_results


def predict(
    paths: Sequence[Path], options: Options, *, experiment: Path | None = None, markdown: bool = False
) -> int:
    """Answers for the jobs of `options` or `experiment`; without any: the groups that ran, and how far they were off.

    0, or 4 where no group that is asked about can be answered, or a folder can't be read. `paths`: none stands for all
    in the place where sweeps put theirs. Raises UsageError for jobs that make no sense, and UnusableError where no
    trial ended ok.
    """
    asks = bool(options.jobs or options.pairs or "copies" in options.fields or experiment)
    if not asks and options.fields:
        raise UsageError(NO_JOBS)
    machine = environment.machine(open_nvml())
    folders = read_folders(paths or all_results(), warn)
    if asks:
        device = _find_device(options)
        predictions = predict_experiment(folders, options, machine, path=experiment, device=device)
    else:
        predictions = list_measured(folders, machine)
    console = Console()
    command = _write_sweep(folders, machine) if paths else "gpubench sweep"
    if markdown:
        text = render.write_markdown(predictions, command=command)
    else:
        width = min(console.width, WIDEST) if console.is_terminal else WIDTH
        text = render.write_text(predictions, command=command, width=width, is_rich=console.is_terminal)
    print_text(text)
    is_refused = asks and all(isinstance(group, NoPrediction) for group in predictions.groups)
    return UnusableError.exit_code if is_refused else exit_code_of(paths, folders)


def _write_sweep(folders: Sequence[Folder], machine: Machine) -> str:
    """The sweep that measures into the first of the folders with rows of this machine; else into the first."""
    keys = {environment.machine_key(machine, kind) for kind in (["cuda", "cpu"] if machine.gpus else ["cpu"])}
    mine = [folder for folder in folders if any(record.machine_key in keys for record in folder.records)]
    return shlex.join(["gpubench", "sweep", "--out", str((mine or folders)[0].path)])


def _find_device(options: Options) -> str | None:
    """The device that all jobs of the command line ask for; None where they leave it open or differ."""
    common = options.fields.get("device")
    devices = {job_option(text).get("device", common) for text in options.jobs} or {common}
    only = devices.pop() if len(devices) == 1 else None
    return only if only in ("cuda", "cpu") else None
