"""What `gpubench sweep` does, put together from the parts."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from gpubench.basics import slurm_job
from gpubench.basics.errors import ResumableError, UnusableError, UsageError, unknown
from gpubench.basics.quiet_pipe import outliving_output
from gpubench.basics.stopping import Stop, hear_no_more, say_at_once, stop_on_signals
from gpubench.basics.words import many
from gpubench.node.cluster import cluster
from gpubench.node.node import this_machine
from gpubench.plan import shards
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.plan import Plan
from gpubench.plan.sources import Disk
from gpubench.plan.state import Planned
from gpubench.plan.sweep_options import Mode, Options, RunOptions
from gpubench.render import live
from gpubench.render.live import SafeView
from gpubench.render.progress_bar import show_progress
from gpubench.results.allowance import again_lines
from gpubench.results.home import results_folder
from gpubench.results.plans import whole_epochs_before
from gpubench.results.store import Results
from gpubench.sweep import max_batch
from gpubench.sweep.announcing import (
    dropped_lines,
)
from gpubench.sweep.bench import Bench
from gpubench.sweep.closing import emit, finish, goes_on, others_words
from gpubench.sweep.dry_run import print_plan
from gpubench.sweep.job_time import job_time
from gpubench.sweep.left_out import left_out_lines, store_left_out
from gpubench.sweep.preflight import announced, check_given_gpus, check_hardware, look_around, other_load
from gpubench.sweep.preparing import await_start, prepare
from gpubench.sweep.run import load_tables
from gpubench.sweep.run import run as run_sweep
from gpubench.sweep.stored_plan import has_others, store_plan
from gpubench.sweep.summary import Summary
from gpubench.sweep.survey import Settings
from gpubench.sweep.sweep import Sweep
from gpubench.sweep.vetting import vet

RETRY = ("failed", "timeout", "stale", "oom")
RESUMABLE = ResumableError.exit_code


def sweep(path: Path | None, options: Options, run_options: RunOptions) -> int:
    """`gpubench sweep`: returns the exit code."""
    mode = run_options.mode
    own = None if run_options.shard is None else shards.Shard.parse(run_options.shard)
    node = this_machine()
    experiment = read_experiment(path, options, has_gpu=bool(node.machine.gpus))
    results = Results(results_folder(run_options.out, experiment))
    sources = Disk(
        experiment.bad_images,
        lambda root: show_progress(f"trying all images of {root}", quiet=mode == "quiet"),
    )
    whole = make_plan(experiment, node.machine, sources, run_options.order)
    begun_by = {} if experiment.says_how_long else whole_epochs_before(results, experiment.name)
    if begun_by:
        by_epochs = dataclasses.replace(experiment, fixed={**begun_by, **experiment.fixed})
        earlier = make_plan(by_epochs, node.machine, sources, run_options.order)
        if any(results.next_attempt(unit.unit_id) > 1 for unit in earlier.units):
            whole = earlier
    plan = whole if own is None else shards.part(whole, own)
    chosen_retry = frozenset(run_options.retry.split(",")) if run_options.retry else frozenset()
    for name in chosen_retry:
        if name not in RETRY:
            raise unknown("status to retry", name, RETRY)
    settings = Settings(retry=chosen_retry, fresh=run_options.fresh)
    spans_nodes = any(job.trial.nodes > 1 for unit in plan.units for job in unit.jobs)
    if spans_nodes and slurm_job.is_one_of_several_tasks():
        raise UsageError(
            "a sweep over several nodes starts their processes by itself: start it once, by "
            "srun --nodes=1 --ntasks=1"
        )
    nodes = (
        cluster(node, run_options.agents, run_options.network, may_share=run_options.allow_busy)
        if spans_nodes
        else None
    )
    work = Sweep(plan=plan, bench=Bench.of(plan, node, results, sources, nodes), settings=settings)
    searched = max_batch.searches(work, whole) if run_options.find_max_batch else []
    if results.folder.exists() and not results.folder.is_dir():
        results.create()  # says what is wrong
    console = Console(stderr=True, highlight=False)
    view = SafeView(live.view(console, quiet=mode == "quiet", tables=mode == "table"))
    work.bench.claims.say = view.say
    if own is not None:
        view.say(shards.words(whole, plan, own))
        if not plan.units:
            return 0
    if begun_by and whole.jobs[0].trial.epochs is not None:
        view.say(
            f"{results.folder} was begun by whole epochs and goes on by them (--epochs {begun_by['epochs']}); in "
            "another folder (--out) the steady rate is measured"
        )
    for line in left_out_lines(sources, results if mode != "plan" else None):
        view.say(line)
    if mode == "plan":
        work.load(view.say)
        planned = work.pending()
        vet(work, planned, view.say)
        runs = any(item.state == "run" for item in planned)
        print_plan(work, planned, other_load(node) if runs else "")
        if searched:
            print(max_batch.announcement(searched))
        check_hardware(planned, node.machine)
        return 0
    is_new = not results.folder.exists()
    planned = work.pending()
    check_hardware(planned, node.machine)
    check_given_gpus(planned, node.machine, is_by_machine=path is None and "device" not in options.fields)
    if is_new:  # before anything is written
        vet(work, planned, view.say)
    results.create()
    with contextlib.ExitStack() as endings:
        try:
            with giving_back(work):
                work.load(view.say)
                planned = work.pending()
                if not is_new:
                    vet(work, planned, view.say)
                for line in (*dropped_lines(plan), *again_lines(planned)):
                    view.say(line)
                to_run = any(item.state == "run" for item in planned)
                if to_run:
                    tell_others(work, whole, view)
                if to_run and not announced(work, planned, view, yes=run_options.yes):
                    view.say("nothing was made, nothing was run")
                    return RESUMABLE
                store_plan(work, whole, own)
                store_left_out(sources, results)
                stop = Stop(())
                if (
                    to_run or searched
                ):  # heard until everything has been told: at once means at once then, too
                    stop = endings.enter_context(stop_on_signals(at_once(work, view)))
                if to_run or searched:
                    work.wall_time = job_time(view.say)
                if to_run:
                    summary = run(work, planned, view, stop, mode, allow_busy=run_options.allow_busy)
                else:
                    summary = nothing_to_run(work, planned)
                tried, found = Summary(), list[str]()
                if searched and not summary.is_resumable:
                    tried = search(
                        work, searched, console, stop, mode, found.append, allow_busy=run_options.allow_busy
                    )
                results.check()
        finally:
            if is_new:
                with contextlib.suppress(OSError):  # it holds something, as nearly always
                    results.folder.rmdir()
        with outliving_output():
            finish(work, planned, summary, view, mode)
            for line in found:
                view.say(line)
            if tried.interrupted:
                view.say(f"stopped; {goes_on(fresh=False)}")
            elif tried.late.waiting:
                view.say(f"{tried.late.line()}; {goes_on(fresh=False)}")
    never = [late for late in (summary.late, tried.late) if late.never]
    summary.include(tried)
    if summary.is_resumable:
        hear_no_more()
    if work.unwritten:
        raise UnusableError(
            f"{work.unwritten}; what was measured is kept, and the same command writes the tables"
        )
    if summary.is_resumable:
        return RESUMABLE
    if never:  # another job of this length would not measure it either
        raise UnusableError(f"{never[0].too_short()}; ask for a longer one (sbatch --time)")
    return 1 if summary.failed or summary.timed_out else 0


def tell_others(work: Sweep, whole: Plan, view: live.View) -> None:
    """Says who else is at work in the folder."""
    others = work.list_others()
    if not others:
        return
    view.say(f"{others_words(others)} at work in {work.bench.results.folder}: this sweep takes what is left")
    if has_others(work, whole):
        view.say(
            "its plan is another one than those in the folder, so it works through that; "
            "where all were to share one, give each the same command"
        )


@contextlib.contextmanager
def giving_back(work: Sweep) -> Iterator[None]:
    """However a sweep ends: what it has claimed is free again."""
    try:
        yield
    finally:
        work.bench.cpu_hold.release()
        work.bench.claims.give_back()


def nothing_to_run(work: Sweep, planned: Sequence[Planned]) -> Summary:
    """Writes the tables anew, where every unit of the plan is done, skipped or has failed before."""
    work.bench.node.clear()
    skipped = [item for item in planned if item.state == "skip"]
    work.skips = {job.trial_id: item.why for item in skipped for job in item.unit.jobs}
    work.leave()
    summary = Summary(
        reused=sum(item.state == "done" for item in planned),
        skipped=len(skipped),
        stale=sum(item.stale for item in planned),
        unsure=work.unsure(),
        answered=work.answered(),
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
    """Looks around, prepares the images and runs the sweep; the node makes ready for trials meanwhile."""
    node = work.bench.node
    node.clear()
    node.start()
    try:
        with view:
            look_around(work, planned, view, allow_busy=allow_busy)
            work.bench.results.identify(work.records)
            work.claim_first(planned)
            load_tables()  # while torch starts
            if not (prepare(work, planned, view, stop) and await_start(work, planned, view, stop)):
                return Summary(interrupted=True)
            return run_sweep(work, view, stop, lambda row: emit(row, mode))
    finally:
        node.close()


def search(
    work: Sweep,
    searched: Sequence[max_batch.Search],
    console: Console,
    stop: Stop,
    mode: Mode,
    tell: Callable[[str], None],
    *,
    allow_busy: bool,
) -> Summary:
    """Looks for the largest batch of each configuration, one try after the other. `tell`: is given what was found."""

    def each(tries: Sweep) -> Summary:
        view = SafeView(live.view(console, quiet=mode == "quiet", tables=False))
        return run(tries, tries.pending(), view, stop, mode, allow_busy=allow_busy)

    whole = Summary()
    for one in searched:
        for summary in max_batch.find(work, one, each, tell, store_plan):
            whole.include(summary)
        if whole.is_resumable:
            break
    return whole


def at_once(work: Sweep, view: live.View) -> list[Callable[[], None]]:
    """What a sweep that is ended by a second signal still does, in this order."""

    def tell() -> None:
        ended = many(work.ended, "trial") if work.ended else "no trial"
        say_at_once(
            f"ended at once; all that was stored is kept ({ended} of this sweep), what was under way is lost; "
            f"{goes_on(fresh=work.settings.fresh)}"
        )

    return [view.close, tell, work.abandon]
