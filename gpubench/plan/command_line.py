"""What a command's file and options ask for: an experiment, and its plan on this kind of machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from gpubench.basics.errors import make_unknown_name_error
from gpubench.node import environment
from gpubench.plan import experiment_file
from gpubench.plan.experiment import COMMAND_TIMEOUT_S, Experiment
from gpubench.plan.options import apply_options, parse_job_option
from gpubench.plan.plan import Plan, expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ORDERS, ExperimentOptions
from gpubench.plan.values import format_field_value
from gpubench.schema import trial
from gpubench.schema.catalog import LOADS, VARIANTS
from gpubench.schema.command import SCRIPT_SUFFIXES, join_command, split_command

OF_THE_WORK = (
    "model", "width", "input_size", "num_classes", "variant", "data", "train_images", "precision", "memory_format",
    "execution", "cudnn_benchmark", "optimizer", "accumulate", "prefetch",
)  # fmt: skip
"""Fields of the work, none of where it runs."""


def read_experiment(path: Path | None, options: ExperimentOptions, *, has_gpu: bool) -> Experiment:
    """The file's experiment, or the built-in one that suits the machine, with the options in place of its fields."""
    command = join_command(options.command) if options.command else None
    if path is not None:
        base = experiment_file.read_experiment_file(path, command)
    elif command is not None:
        name = derive_command_name(command)
        base = Experiment(
            name=name, fixed={"command": command}, variants=VARIANTS, timeout_s=COMMAND_TIMEOUT_S
        )
    elif list_asked_models(options) <= LOADS.keys():
        base = Experiment(name="loads", variants=VARIANTS)
    else:
        asks_for_gpus = options.fields.get("device") == "cuda" or {"gpus", "gpu_ids"} & set(options.fields)
        on_cpu = options.fields.get("device") == "cpu" or not (has_gpu or asks_for_gpus)
        name = "cpu.toml" if on_cpu else "gpu.toml"
        base = experiment_file.parse_experiment(
            resources.files("gpubench.builtin").joinpath(name).read_text("utf-8"), name
        )
        # Who names images, or trains on them, wants them read; and other images have a size of their own.
        without = {"variant"} if {"data", "epochs", "until_top1"} & options.fields.keys() else set()
        without |= {"input_size"} if "data" in options.fields else set()
        base = replace(base, fixed={k: v for k, v in base.fixed.items() if k not in without})
    changed = apply_options(base, options)
    if command is not None:
        return changed
    # Other axes ask another question than the built-in one, and so do jobs that run together. Its name stays: with it
    # the results folder, where rows of trials alone may be that jobs can be compared with.
    is_same_question = path is not None or (changed.varied, changed.groups) == (base.varied, base.groups)
    return changed if is_same_question else replace(changed, question="")


def list_asked_models(options: ExperimentOptions) -> set[str]:
    """The models that the options name, of each job where they give jobs; among them an empty one where they don't."""
    given = options.fields.get("model")
    jobs = [parse_job_option(text).get("model", given) for text in options.jobs]
    return {name.strip() for text in jobs or [given] for name in (text or "").split(",")}


def derive_command_name(command: str) -> str:
    """What an experiment is called that runs this command: by its script, else by its program, without its ending."""
    words = split_command(command)
    script = next((word for word in words if Path(word).suffix in SCRIPT_SUFFIXES), words[0])
    return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(script).stem).lstrip("._-") or "command"


def make_plan(
    experiment: Experiment, machine: environment.Machine, sources: DiskSources, order: str | None
) -> Plan:
    """The plan of an experiment for this kind of machine."""
    if order is not None and order not in ORDERS:
        raise make_unknown_name_error("order", order, ORDERS)
    device = "cuda" if machine.gpus else "cpu"
    order = order or ("random" if experiment.repeats > 1 else "given")
    return expand_experiment(experiment, device=device, sources=sources, order=order, cpus=machine.cpu_count)


def infer_fields_from_trials(
    options: ExperimentOptions, trials: Iterable[Mapping[str, Any]], usual: Mapping[str, Any]
) -> dict[str, str]:
    """Fields of the work that nobody gives, as all stored trials that fit agree in them; as text.

    Whoever asks about copies on a folder of one network means that network, not the built-in experiment's. Of copies
    whose batch size nobody gives it is those of the trials. `trials`: what each asked for. `usual`: what is taken of a
    field otherwise.
    """
    given = {*options.fields, *(name for text in options.jobs for name in parse_job_option(text))}
    wanted = {name: options.fields[name].split(",") for name in OF_THE_WORK if name in options.fields}
    rows = [
        row
        for row in trials
        if all(
            row.get(name) is None or format_field_value(row[name]) in texts for name, texts in wanted.items()
        )
    ]
    filled: dict[str, Any] = {}
    for name in OF_THE_WORK:
        values = {row.get(name) for row in rows}
        if name not in given and len(values) == 1 and not values & {None, usual[name]}:
            filled[name] = values.pop()
    if filled.get("variant") not in (None, *VARIANTS):
        del filled["variant"]  # a user's own one, which only their file defines
    for name in (name for name in OF_THE_WORK if name not in given):
        rows = [row for row in rows if row.get(name) in (None, filled.get(name, usual[name]))] or rows
    texts = {name: format_field_value(value) for name, value in filled.items()}
    sizes = sorted({row["batch_size"] for row in rows if row.get("batch_size")})
    if sizes and "batch_size" not in given and not options.jobs:
        texts["batch_size"] = ",".join(map(str, sizes))
    return texts


def find_usual_values(experiment: Experiment) -> dict[str, Any]:
    """What a sweep of this experiment takes of a field that nobody gives."""
    return {**trial.make_trial({}).asdict(), **experiment.fixed}
