"""What `gpubench sweep` and `gpubench table` do, put together from the parts."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Literal

from rich.console import Console

from gpubench import environment
from gpubench.analysis.varied import Row
from gpubench.datasets.facts import DataFacts
from gpubench.errors import ResumableError, UnusableError, UsageError, unknown
from gpubench.experiment import experiment as experiments
from gpubench.experiment.experiment import Experiment, Options
from gpubench.experiment.plan import Plan, expand, plan_id
from gpubench.experiment.skips import NEEDS
from gpubench.launch.client import ForkServer, StoppedError
from gpubench.monitor import idle
from gpubench.monitor.losses import lost_before
from gpubench.monitor.missing import Unmeasured
from gpubench.monitor.nvml import Nvml, open_nvml
from gpubench.report import choice as choices
from gpubench.report import live, terminal
from gpubench.report import markdown as markdown_report
from gpubench.report import sources as sources_report
from gpubench.report.bar import bar
from gpubench.report.lost_terminal import OutlivingView, outliving_output
from gpubench.report.table import COLUMN, DETAILS, Table, tables
from gpubench.report.words import clean, many
from gpubench.result import Record
from gpubench.runner import consent, guard, host_load, left_out
from gpubench.runner.allowance import again_lines
from gpubench.runner.announcing import (
    announcement_lines,
    counted,
    dropped_lines,
    making_line,
    steps_to_images,
    training_line,
)
from gpubench.runner.bench import Bench
from gpubench.runner.estimate import words
from gpubench.runner.plans import is_newest, last_use, next_stamp
from gpubench.runner.preparing import prepare
from gpubench.runner.scratch import remove_abandoned
from gpubench.runner.sources import Disk
from gpubench.runner.state import Planned
from gpubench.runner.stopping import Stop, hear_no_more, say_at_once, stop_on_signals
from gpubench.runner.sweep import Settings, Summary, Sweep
from gpubench.runner.tables import contents
from gpubench.runner.vetting import vet
from gpubench.store import Results, write_whole

Mode = Literal["plan", "table", "quiet", "json"]
RETRY = ("failed", "timeout", "stale", "oom")
ORDERS = ("given", "random")
RESUMABLE = ResumableError.exit_code
HOST_LOOK_S = 0.3


def read_experiment(path: Path | None, options: Options, *, has_gpu: bool) -> Experiment:
    """The file's experiment, or the built-in one that suits the machine, with the options in place of its fields."""
    if path is not None:
        base = experiments.load(path)
    else:
        asks_for_gpus = options.fields.get("device") == "cuda" or {"gpus", "gpu_ids"} & set(options.fields)
        on_cpu = options.fields.get("device") == "cpu" or not (has_gpu or asks_for_gpus)
        name = "cpu.toml" if on_cpu else "gpu.toml"
        base = experiments.parse(resources.files("gpubench.builtin").joinpath(name).read_text("utf-8"), name)
        if "data" in options.fields:  # other images have a size of their own
            base = replace(base, fixed={k: v for k, v in base.fixed.items() if k != "input_size"})
    asked = experiments.with_options(base, options)
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


def check_hardware(planned: Sequence[Planned], machine: environment.Machine) -> None:
    """Raises UsageError where every trial needs more GPUs or CPUs than there are."""
    asked = [item for item in planned if not item.unit.baseline]
    if all(item.state == "skip" and item.why.startswith(NEEDS) for item in asked):
        hint = "" if machine.gpus else "; without --gpus, or with --device cpu, it runs on the CPU"
        raise UsageError(f"no trial is left: {asked[0].why}{hint if 'GPU' in asked[0].why else ''}")


def results_folder(out: Path | None, experiment: Experiment) -> Path:
    """--out, else a folder of the experiment's name under GPUBENCH_OUT or ./results."""
    return out or results_home() / experiment.name


def results_home() -> Path:
    """The place where sweeps put their folders."""
    return Path(os.environ.get("GPUBENCH_OUT", "results"))


def all_results() -> list[Path]:
    """Every results folder in the place where sweeps put theirs. Raises UnusableError where there is none."""
    home = results_home()
    found = {p.parent for pattern in ("*/trials.csv", "*/records") for p in home.glob(pattern)}
    if not found:
        raise UnusableError(f"no results in {home}; run gpubench sweep, or name a folder")
    return sorted(found)


def newest_results() -> Path:
    """The results folder in which something was last begun. Raises UnusableError where there is none."""
    return max(all_results(), key=lambda folder: (last_use(Results(folder)), folder.name))


def store_plan(work: Sweep) -> None:
    """Keeps the plan as resolved, with the facts that its trials' ids rest on.

    One that is asked again after another of its experiment (an edit was taken back) is stored anew: the last one
    says which trials of an edited model, variant or images stand in the tables.
    """
    plan, bench = work.plan, work.bench
    name, own_id = plan.experiment.name, plan_id(plan.units)
    if is_newest(bench.results, name, own_id):
        return
    for job in plan.jobs:  # for a plan that was expanded elsewhere
        bench.sources.data(job.trial.data)
        bench.sources.model(job.trial.model)
    machine, stamp = bench.machine, next_stamp(bench.results)
    facts = {
        "stored_at": stamp.stored_at,
        "number": stamp.number,
        "device": plan.device,
        "gpus": len(machine.gpus),
        "cpus": machine.cpu_count,
        **bench.sources.stored(),
    }
    toml = experiments.to_toml(plan.experiment, facts)
    bench.results.save_plan(name, own_id, toml)


def sweep(
    path: Path | None,
    options: Options,
    *,
    order: str | None,
    retry: str | None,
    fresh: bool,
    allow_busy: bool = False,
    yes: bool = False,
    wait: bool = False,
    out: Path | None,
    mode: Mode,
) -> int:
    """`gpubench sweep`: returns the exit code. `yes`: images are made without asking first."""
    nvml = open_nvml()
    usable: Nvml | None = nvml
    machine = environment.machine(nvml)
    experiment = read_experiment(path, options, has_gpu=bool(machine.gpus))
    sources = Disk(
        experiment.bad_images, lambda root: bar(f"trying all images of {root}", quiet=mode == "quiet")
    )
    plan = make_plan(experiment, machine, sources, order)
    chosen_retry = frozenset(retry.split(",")) if retry else frozenset()
    for name in chosen_retry:
        if name not in RETRY:
            raise unknown("status to retry", name, RETRY)
    results = Results(results_folder(out, experiment))
    settings = Settings(retry=chosen_retry, fresh=fresh)
    bench = Bench(
        machine=machine,
        nvml=usable,
        results=results,
        sources=sources,
        experiment=experiment.name,
        device=plan.device,
        timeout_s=experiment.timeout_s,
    )
    work = Sweep(plan=plan, bench=bench, settings=settings)
    if results.folder.exists() and not results.folder.is_dir():
        results.create()  # says what is wrong
    view = OutlivingView(live.view(Console(stderr=True, highlight=False), quiet=mode == "quiet"))
    for line in left_out_lines(sources, results if mode != "plan" else None):
        view.say(line)
    if mode == "plan":
        work.load(view.say)
        planned = work.survey()
        vet(work, planned, view.say)
        print_plan(work, planned)
        return 0
    is_new = not results.folder.exists()
    planned = work.survey()
    check_hardware(planned, machine)
    if is_new:  # before anything is written
        vet(work, planned, view.say)
    results.create()
    with contextlib.ExitStack() as endings:
        try:
            with results.locked(wait=wait, say=view.say):
                work.load(view.say)
                planned = work.survey()
                if not is_new:
                    vet(work, planned, view.say)
                for line in (*dropped_lines(plan), *again_lines(planned)):
                    view.say(line)
                to_run = any(item.state == "run" for item in planned)
                if to_run and not announced(work, planned, view, yes=yes):
                    view.say("nothing was made, nothing was run")
                    return RESUMABLE
                store_plan(work)
                store_left_out(sources, results)
                if to_run:  # heard until everything has been told: at once means at once then, too
                    stop = endings.enter_context(stop_on_signals(at_once(work, view)))
                    summary = run(work, planned, view, stop, mode, allow_busy=allow_busy)
                else:
                    summary = nothing_to_run(work, planned)
                results.check()
        finally:
            if is_new:
                with contextlib.suppress(OSError):  # it holds something, as nearly always
                    results.folder.rmdir()
        with outliving_output():
            finish(work, planned, summary, view, mode)
    if summary.interrupted:
        hear_no_more()
    if work.unwritten:
        raise UnusableError(
            f"{work.unwritten}; what was measured is kept, and the same command writes the tables"
        )
    return RESUMABLE if summary.interrupted else 1 if summary.failed or summary.timed_out else 0


def left_out_file(results: Results, facts: DataFacts) -> Path:
    """Names the images that are left out of the data with this fingerprint, as it stands in the records."""
    return results.folder / "left-out" / f"{facts.fingerprint}.txt"


def left_out_lines(sources: Disk, results: Results | None) -> list[str]:
    """What is said of images that are left out. `results`: where all their names will stand."""
    found = []
    for name, bad in sources.bad_images.items():
        facts = sources.data(name)
        used = facts.train_images + facts.val_images
        found += left_out.lines(
            bad, used, Path(str(facts.root)), left_out_file(results, facts) if results else None
        )
    return found


def store_left_out(sources: Disk, results: Results) -> None:
    """Keeps the names of the images that are left out with the results."""
    for name, bad in sources.bad_images.items():
        if bad:
            write_whole(left_out_file(results, sources.data(name)), left_out.as_text(bad))


def announced(work: Sweep, planned: Sequence[Planned], view: live.View, *, yes: bool) -> bool:
    """Says what the sweep will do, and asks before it makes many images. False where the answer is no.

    Where nobody can be asked it says so and goes on, for scripts rely on that.
    """
    steps = steps_to_images(work, planned)
    for line in announcement_lines(work, planned, steps):
        view.say(line)
    if not consent.is_much(steps):
        return True
    asks = not yes and consent.can_ask()
    alone = "" if yes or asks else " There is no terminal to ask on: they are made now."
    view.say(making_line(steps, len(os.sched_getaffinity(0))) + alone)
    return not asks or consent.agreed(steps, work.bench.results.beat)


def nothing_to_run(work: Sweep, planned: Sequence[Planned]) -> Summary:
    """Writes the tables anew, where every unit of the plan is done, skipped or has failed before."""
    remove_abandoned()
    skipped = [item for item in planned if item.state == "skip"]
    work.skips = {job.trial_id: item.why for item in skipped for job in item.unit.jobs}
    work.write_tables()
    summary = Summary(
        reused=sum(item.state == "done" for item in planned),
        skipped=len(skipped),
        stale=sum(item.stale for item in planned),
    )
    for item in planned:
        summary.add(item.ended)
    return summary


def run(
    work: Sweep,
    planned: Sequence[Planned],
    view: live.View,
    stop: Stop,
    mode: Mode,
    *,
    allow_busy: bool = False,
) -> Summary:
    """Looks around, prepares the images and runs the sweep; the fork server warms up meanwhile."""
    remove_abandoned()
    tell_host_load(work.bench.machine, view)  # before the fork server, whose start is a load of our own
    launcher = ForkServer()
    try:
        with view, contextlib.suppress(StoppedError):
            look_around(work, planned, view, allow_busy=allow_busy)
            if not prepare(work, planned, view, stop):
                return Summary(interrupted=True)
            launcher.wait_ready(work.bench.beating(stop))
            return work.run(launcher, view, stop, lambda row: emit(row, mode))
    finally:
        launcher.close()
    return Summary(interrupted=True)


def at_once(work: Sweep, view: live.View) -> list[Callable[[], None]]:
    """What a sweep that is ended by a second signal still does, in this order."""

    def tell() -> None:
        ended = many(work.ended, "trial") if work.ended else "no trial"
        say_at_once(
            f"ended at once; all that was stored is kept ({ended} of this sweep), what was under way is lost; "
            f"{goes_on(fresh=work.settings.fresh)}"
        )

    return [view.close, tell, work.abandon]


def tell_host_load(machine: environment.Machine, view: live.View) -> None:
    """Says so where other work takes CPUs. Refuses nobody: it may be over before the first trial."""
    try:
        busy = host_load.busy_pct(machine, HOST_LOOK_S)
    except Unmeasured:
        return  # each row says that its CPU use is not known, and `gpubench doctor` why
    if busy > host_load.BUSY_PCT:
        view.say(
            f"other work uses {busy:.0f} % of the CPUs, so times will be doubtful; "
            "better start again when it has ended (top shows it)"
        )


def look_around(work: Sweep, planned: Sequence[Planned], view: live.View, *, allow_busy: bool) -> None:
    """Tells who else is on the GPUs that the plan will use, which were lost, and notes the idle power of the others.

    Raises UnusableError where somebody keeps one of them busy and that is not allowed, or none is left.
    """
    bench = work.bench
    units = [item.unit for item in planned if item.state == "run"]
    if bench.nvml is None or not any(map(bench.uses_gpus, units)):
        return
    for index, why in lost_before(bench.nvml).items():
        view.say(
            f"the driver's GPU {index} is left out ({why}), so the numbers of the GPUs after it are one lower; "
            "to have it back, reset it or reboot"
        )
    work.look_at_gpus(planned, view)
    gone = {loss.gpu.uuid for loss in bench.lost.values()}
    used = {uuid for unit in units for one in bench.resolve(unit) for uuid in one.gpu_uuids} - gone
    numbers = {gpu.uuid: gpu.index for gpu in bench.machine.gpus if gpu.uuid in used}
    bench.looked_at = set(numbers.values())
    ruling = guard.rule(idle.look_around(bench.nvml, list(numbers)), numbers)
    for line in ruling.enforce(allow_busy=allow_busy):
        view.say(line)
    bench.idle_power_w, bench.no_idle_power = dict(ruling.idle_power_w), dict(ruling.no_idle_power)
    bench.idle_readings = dict(ruling.idle_readings)


def emit(row: Row, mode: Mode) -> None:
    """With --json, a line for each trial as it ends; the jobs of a group each have one."""
    if mode == "json":
        told = {k: v for k, v in row.items() if v is not None and k not in DETAILS}
        with (
            outliving_output()
        ):  # nobody may read any more; the measuring goes on, and the records have it all
            print(json.dumps(told, ensure_ascii=False), flush=True)


def print_plan(work: Sweep, planned: Sequence[Planned]) -> None:
    """`-n`: each trial's id, what becomes of it, and how long it should take. Plain text on stdout."""
    estimates = iter(work.estimates([item.unit for item in planned if item.state == "run"]))
    lines = []
    total = 0.0
    for item in planned:
        if item.state == "run":
            guess = next(estimates)
            total += guess.seconds
            most = item.unit.jobs[0].trial.until_top1 is not None
            fate = f"{'at most' if most else 'about' if guess.known else 'roughly'} {words(guess.seconds)}"
            fate += f" (what is stored is not reused: {item.why})" if item.why else ""
        elif item.state == "done":
            fate = f"done ({item.why}{', stale: other versions' if item.stale else ''})"
        else:
            before = "timed out" if item.ended == "timeout" else "failed"
            fate = "skipped: " if item.state == "skip" else f"{before} before (--retry {item.ended}): "
            fate += item.why
        lines.append(f"{item.unit.unit_id}  {work.label(item.unit):<40}  {fate}")
    lines += dropped_lines(work.plan)
    lines.append(training_line(work.plan))
    folder = work.bench.results.folder
    lines.append(f"{counted(planned)} to run, of {len(planned)}; {words(total)}; results in {folder}")
    sys.stdout.write("\n".join(lines) + "\n")


def finish(work: Sweep, planned: Sequence[Planned], summary: Summary, view: live.View, mode: Mode) -> None:
    """Prints the answer on stdout and what else there is to say on stderr."""
    for problem in work.problems:
        view.say(problem)
    if mode == "quiet":
        print(work.bench.results.folder)
    elif mode == "table":
        found = contents(work.bench.results, work.alike(), work.skips)
        terminal.show(own_tables(work, found.rows), Console(highlight=False))
    elif mode == "json":
        for row in work.reused(planned):
            emit(row, mode)
    if summary.interrupted:
        view.say(f"stopped; {goes_on(fresh=work.settings.fresh)}")
    elif summary.ran == 0 and not summary.lost:
        late = f", {summary.timed_out} timed out before" if summary.timed_out else ""
        view.say(
            f"nothing left to do: {summary.reused} done, {summary.skipped} skipped, "
            f"{summary.failed} failed before{late}"
        )
    folder = work.bench.results.folder
    where = (
        f"below the table, logs in {folder / 'logs'}" if mode == "table" else f"below gpubench table {folder}"
    )
    if summary.failed:
        again = "it" if summary.failed == 1 else "them"
        view.say(f"{summary.failed} failed: the reasons are {where}; --retry failed runs {again} again")
    if summary.timed_out:
        they, again = ("it", "it") if summary.timed_out == 1 else ("they", "them")
        limit_s = work.bench.timeout_s
        view.say(
            f"{summary.timed_out} timed out: where {they} stood at the deadline is {where}; the limit is now "
            f"{limit_s:g} s a trial, and --retry timeout --timeout {twice(limit_s)} runs {again} again with twice that"
        )
    if summary.lost:
        view.say(
            f"{summary.lost} skipped because a GPU was lost: once it is back, the same command runs them"
        )
    if summary.stale:
        view.say(f"{summary.stale} were measured under other versions; --retry stale measures them again")


def twice(limit_s: float) -> str:
    """Twice a time limit, as --timeout takes it: in whole minutes where it is some."""
    doubled = math.ceil(2 * limit_s)
    return f"{doubled // 60}m" if doubled % 60 == 0 else f"{doubled}s"


def goes_on(*, fresh: bool) -> str:
    """How a sweep that was stopped is gone on with."""
    if fresh:  # the same command would begin anew, and without --fresh the older rows count
        return "rows that were not reached are older ones; the same command measures all of them anew"
    return "to continue, run the same command again"


def own_tables(work: Sweep, rows: Sequence[Row]) -> list[Table]:
    """The table of this sweep's own trials. The folder may hold more: `gpubench table` prints them all."""
    experiment = work.plan.experiment
    ids = [job.trial_id for job in work.plan.jobs]
    mine = set(ids)
    return tables(
        [{**row, "experiment": experiment.name} for row in rows if row["trial_id"] in mine],
        axes={experiment.name: experiment.varied},
        questions={experiment.name: experiment.question},
        members={experiment.name: ids},
    )


def table(
    folder: Path | None, *, markdown: bool = False, sources: bool = False, columns: str | None = None
) -> int:
    """`gpubench table`. `sources`: where the figures come from, in place of the figures."""
    if sources and columns is not None:
        raise UsageError(
            "--sources prints no table, for which --columns would choose the columns; give one of them"
        )
    choice = choices.parse(columns, COLUMN) if columns is not None else choices.SHOW
    results, records = opened(folder)
    found = contents(results, records, choice=choice)
    for problem in found.problems:
        complain(problem)
    console = Console(highlight=False)
    if sources:
        told = sources_report.as_markdown(found.tables) if markdown else sources_report.text(found.tables)
        sys.stdout.write(terminal.encodable(told, console.encoding))
    elif markdown:
        sys.stdout.write(terminal.encodable(markdown_report.text(found.tables), console.encoding))
    else:
        terminal.show(found.tables, console)
    return 0


def opened(folder: Path | None) -> tuple[Results, list[Record]]:
    """A results folder (None: the newest one) and its records. Raises UnusableError where there are none."""
    results = Results(folder or newest_results())
    if not results.folder.is_dir():
        raise UnusableError(f"{results.folder} is not a results folder")
    told: list[str] = []
    records = results.records(told.append)
    for line in told:
        complain(line)
    if not records:
        raise UnusableError(f"{results.folder} holds no record{' that can be read' if told else 's'}")
    return results, records


def complain(line: str) -> None:
    """Says on stderr what is wrong, in one line, while the command goes on."""
    with contextlib.suppress(OSError):  # nobody may be there to read it
        print(f"gpubench: {clean(line)}", file=sys.stderr)
