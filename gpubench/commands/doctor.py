"""What `gpubench doctor` does, put together from the parts."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from gpubench.basics.errors import ResumableError, UnusableError
from gpubench.basics.stopping import hear_no_more, say_at_once, stop_on_signals
from gpubench.commands.sweep import run
from gpubench.doctor import answer
from gpubench.doctor import noise as noises
from gpubench.doctor.checks import examine
from gpubench.doctor.context import CheckContext, Told, triable
from gpubench.doctor.probe import Probe
from gpubench.node import environment
from gpubench.node.node import this_machine
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.experiment import Experiment
from gpubench.plan.options import Options
from gpubench.plan.sources import Disk
from gpubench.report import live
from gpubench.report.lost_terminal import OutlivingView
from gpubench.results import kept_noise
from gpubench.results.store import Results
from gpubench.sweep.bench import Bench
from gpubench.sweep.preflight import announced
from gpubench.sweep.stored_plan import store_plan
from gpubench.sweep.sweep import Sweep


def doctor(*, as_json: bool) -> int:
    """`gpubench doctor`: returns the exit code, `UnusableError`'s where no sweep can run here."""
    nvml = open_nvml()
    machine = environment.machine(nvml)
    waiting = Console(stderr=True).status("torch is imported and tried in a child ...", spinner="line")
    with Probe([gpu.uuid for gpu in triable(machine.gpus, nvml.devices)]) as probe:

        def ask_torch() -> Told:
            with waiting:
                return probe.told()

        context = CheckContext(
            nvml=nvml,
            machine=machine,
            environ=os.environ,
            experiment=read_experiment(None, Options(), has_gpu=bool(machine.gpus)),
            ask_torch=ask_torch,
        )
        if as_json:
            findings = list(examine(context))
            print(answer.as_json(findings))
        else:
            findings = answer.show(examine(context), Console(highlight=False))
    return UnusableError.exit_code if any(finding.forbids for finding in findings) else 0


def noise(asked: Experiment | None = None, *, yes: bool = False) -> int:
    """`gpubench doctor --noise`: measures how far processes of one configuration differ here, and keeps that.

    `asked`: what is measured in place of the built-in configurations. `yes`: images are made without asking first.
    Returns the exit code.
    """
    node = this_machine()
    experiment = asked or noises.noise_experiment(has_gpu=bool(node.machine.gpus))
    kept_noise.folder()  # says what is wrong before anything is measured
    sources = Disk(experiment.bad_images)
    plan = make_plan(experiment, node.machine, sources, None)
    view = OutlivingView(live.view(Console(stderr=True, highlight=False), quiet=False))
    view.say(noises.before(experiment, len(plan.units)))
    with tempfile.TemporaryDirectory(prefix="gpubench-noise-") as scratch:
        results = Results(Path(scratch) / experiment.name)
        work = Sweep(plan=plan, bench=Bench.of(plan, node, results, sources))
        results.create()
        with results.locked(say=view.say):
            planned = work.pending()
            if not announced(work, planned, view, yes=yes):
                view.say("nothing was made, nothing was run")
                return ResumableError.exit_code
            store_plan(work)
            with stop_on_signals(_at_once(work, view, scratch)) as stop:
                summary = run(work, planned, view, stop, "quiet")
        if summary.interrupted:
            hear_no_more()
            view.say("stopped; nothing is kept. The same command measures it anew")
            return ResumableError.exit_code
        measured = noises.measured_noise(results, work.records, experiment.rounds.most)
    lacking = noises.lacking(len(plan.units), measured, work.records)
    if not measured:
        raise UnusableError(f"{lacking}; nothing is kept")
    found = noises.machine_noise(node.machine, work.bench.machine_key(plan.jobs[0]), measured, work.records)
    path = kept_noise.keep(found)
    for line in noises.lines(found):
        print(line)
    for line in filter(None, (lacking, noises.disturbed(work.records))):
        view.say(line)
    print(f"kept in {path}: it stands in where a row of this machine is of one process")
    return 1 if lacking else 0


def _at_once(work: Sweep, view: live.View, scratch: str) -> list[Callable[[], None]]:
    """What a second signal still leaves to be done, in this order."""

    def tell() -> None:
        say_at_once("ended at once; nothing is kept")

    def clear() -> None:
        shutil.rmtree(scratch, ignore_errors=True)

    return [view.close, tell, work.abandon, clear]
