"""What a command's file and options ask for: an experiment, and its plan on this kind of machine."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from pathlib import Path

from gpubench.basics.errors import unknown
from gpubench.node import environment
from gpubench.plan import experiment_file
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import Options, with_options
from gpubench.plan.plan import Plan, expand
from gpubench.plan.sources import Disk

ORDERS = ("given", "random")


def read_experiment(path: Path | None, options: Options, *, has_gpu: bool) -> Experiment:
    """The file's experiment, or the built-in one that suits the machine, with the options in place of its fields."""
    if path is not None:
        base = experiment_file.load(path)
    else:
        asks_for_gpus = options.fields.get("device") == "cuda" or {"gpus", "gpu_ids"} & set(options.fields)
        on_cpu = options.fields.get("device") == "cpu" or not (has_gpu or asks_for_gpus)
        name = "cpu.toml" if on_cpu else "gpu.toml"
        base = experiment_file.parse(
            resources.files("gpubench.builtin").joinpath(name).read_text("utf-8"), name
        )
        # Who names images, or trains on them, wants them read; and other images have a size of their own.
        without = {"variant"} if {"data", "epochs", "until_top1"} & options.fields.keys() else set()
        without |= {"input_size"} if "data" in options.fields else set()
        base = replace(base, fixed={k: v for k, v in base.fixed.items() if k not in without})
    asked = with_options(base, options)
    # Other axes ask another question than the built-in one, and so do jobs that run together. Its name stays: with it
    # the results folder, where rows of trials alone may be that jobs can be compared with.
    same = path is not None or (asked.varied, asked.groups) == (base.varied, base.groups)
    return asked if same else replace(asked, question="")


def make_plan(experiment: Experiment, machine: environment.Machine, sources: Disk, order: str | None) -> Plan:
    """The plan of an experiment for this kind of machine."""
    if order is not None and order not in ORDERS:
        raise unknown("order", order, ORDERS)
    device = "cuda" if machine.gpus else "cpu"
    order = order or ("random" if experiment.repeats > 1 else "given")
    return expand(experiment, device=device, sources=sources, order=order, cpus=machine.cpu_count)
