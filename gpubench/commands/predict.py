"""`gpubench predict`: what jobs would do to each other, or a trial under other power limits, from stored rows of trials
alone. Runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gpubench.analyze.folder import read_folders
from gpubench.analyze.predict import NO_JOBS, collect_past_predictions, predict_experiment_slowdowns
from gpubench.analyze.predict_limits import predict_power_limits
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands.folders import choose_read_exit_code, print_text, print_warning
from gpubench.core.prediction import NoPrediction
from gpubench.node import environment
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.plan.values import parse_field_values
from gpubench.render import limits as render_limits
from gpubench.render import prediction as render
from gpubench.render.terminal import WIDEST, WIDTH
from gpubench.results.home import list_all_results_folders


def predict(
    paths: Sequence[Path],
    options: ExperimentOptions,
    *,
    experiment: Path | None = None,
    markdown: bool = False,
) -> int:
    """Answers for the jobs of `options` or `experiment`; without any: the groups that ran, and how far they were off.

    0, or 4 where no group that is asked about can be answered, or a folder can't be read. `paths`: none stands for all
    in the place where sweeps put theirs. Raises UsageError for jobs that make no sense, and UnusableError where no
    trial ended ok.
    """
    asks = bool(options.jobs or options.pairs or "copies" in options.fields or experiment)
    if not asks and options.fields:
        raise UsageError(NO_JOBS)
    machine = environment.make_machine(open_nvml())
    folders = read_folders(paths or list_all_results_folders(), print_warning)
    if asks:
        device = options.fields.get("device")
        predictions = predict_experiment_slowdowns(
            folders, options, machine, path=experiment, device=device if device in ("cuda", "cpu") else None
        )
    else:
        predictions = collect_past_predictions(folders, machine)
    _print_prediction(render, predictions, markdown)
    is_refused = asks and all(isinstance(group, NoPrediction) for group in predictions.groups)
    return UnusableError.exit_code if is_refused else choose_read_exit_code(paths, folders)


def predict_limits(
    paths: Sequence[Path],
    options: ExperimentOptions,
    *,
    experiment: Path | None = None,
    markdown: bool = False,
) -> int:
    """Answers for power limits between those of stored rows; `options` may name some as `power_limit_w`.

    Exit codes and `paths` as for `predict`. Raises UsageError for other options, and UnusableError where no
    configuration was measured under two limits.
    """
    wanted = options.fields.get("power_limit_w")
    if experiment or options != ExperimentOptions(fields={} if wanted is None else {"power_limit_w": wanted}):
        raise UsageError("--power goes with results folders, --set power_limit_w=VALUES and --markdown alone")
    wanted_w = None if wanted is None else parse_field_values("power_limit_w", wanted)
    folders = read_folders(paths or list_all_results_folders(), print_warning)
    _print_prediction(render_limits, predict_power_limits(folders, wanted_w), markdown)
    return choose_read_exit_code(paths, folders)


def _print_prediction(renderer: Any, predictions: Any, is_markdown: bool) -> None:
    """By the functions `format_text` and `format_markdown` of a module of `render`."""
    console = Console()
    if is_markdown:
        text = renderer.format_markdown(predictions)
    else:
        width = min(console.width, WIDEST) if console.is_terminal else WIDTH
        text = renderer.format_text(predictions, width=width, is_rich=console.is_terminal)
    print_text(text)
