"""`gpubench sweep`: a plan is made of what was asked for, announced, measured, and summed up."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console

from gpubench.basics import slurm_job
from gpubench.basics.errors import ResumableStopError, UnusableError, UsageError
from gpubench.basics.quiet_pipe import ignore_lost_output
from gpubench.basics.stopping import (
    ignore_stop_signals,
    listen_for_stop_signals,
    write_unbuffered_stderr_line,
)
from gpubench.basics.words import format_count
from gpubench.commands.folders import parse_known_names
from gpubench.node.cluster import make_cluster
from gpubench.node.node import Node, make_this_node
from gpubench.plan import shards
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.experiment import Experiment
from gpubench.plan.plan import Plan
from gpubench.plan.sources import DiskSources
from gpubench.plan.state import PlannedUnit
from gpubench.plan.sweep_options import RETRY, ExperimentOptions, RunOptions
from gpubench.render import live
from gpubench.render.progress_bar import show_progress
from gpubench.results.home import choose_results_folder
from gpubench.results.plans import find_epochs_of_old_version
from gpubench.results.store import Results
from gpubench.run import max_batch
from gpubench.run.announce import (
    announce_and_confirm_sweep,
    list_dropped_lines,
    list_not_reused_lines,
    print_plan,
)
from gpubench.run.checks import (
    check_enough_hardware,
    check_slurm_gpus_seen,
    describe_other_load,
    try_user_code,
)
from gpubench.run.closing import describe_other_workers, print_result, print_row_if_json
from gpubench.run.gpu_limits import describe_left_limits
from gpubench.run.images import list_left_out_lines, store_left_out_names
from gpubench.run.limits import Limits, SweepSummary, find_wall_time, format_continuation
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep import run_sweep
from gpubench.run.sweep_state import SweepState
from gpubench.run.unit_runner import UnitRunner

RESUMABLE = ResumableStopError.exit_code


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SweepRequest:
    """What was asked for, and where it stands."""

    options: RunOptions
    whole: Plan
    """All of it, where this sweep runs a part."""
    shard: shards.Shard | None
    state: SweepState
    epochs_before: dict[str, int]
    """The epochs by which the folder was begun, where this sweep goes on by them; else empty."""
    is_by_machine: bool
    """Whether the experiment was chosen by the hardware that is seen."""
    searches: Sequence[max_batch.MaxBatchSearch]

    def make_view(self, *, tables: bool = True) -> live.View:
        """What shows the sweep while it runs. `tables`: whether also what is known so far."""
        console = Console(stderr=True, highlight=False)
        mode = self.options.mode
        return live.choose_view(console, quiet=mode == "quiet", tables=tables and mode == "table")

    def run(
        self, state: SweepState, planned: Sequence[PlannedUnit], limits: Limits, view: live.View
    ) -> SweepSummary:
        """Runs the sweep, or tries of a batch size after it."""
        options = self.options
        return run_sweep(
            state, planned, limits, view, lambda row: print_row_if_json(row, options.mode),
            allow_busy=options.allow_busy,
        )  # fmt: skip


def sweep(path: Path | None, options: ExperimentOptions, run_options: RunOptions) -> int:
    """`gpubench sweep`: returns the exit code."""
    request = make_sweep_request(path, options, run_options)
    state, plan, results = request.state, request.state.plan, request.state.runner.results
    if results.folder.exists() and not results.folder.is_dir():
        results.create_folder()  # says what is wrong
    view = request.make_view()
    state.runner.claims.say = view.say
    for left in state.runner.node.left_limits:
        view.say(f"{describe_left_limits(left)}{f'; {left.remedy}' if left.trouble else ''}")
    if request.shard is not None:
        view.say(shards.describe_shard(request.whole, plan, request.shard))
        if not plan.units:
            return 0
    if request.epochs_before and request.whole.jobs[0].trial.epochs is not None:
        view.say(
            f"{results.folder} was begun by whole epochs and goes on by them (--epochs "
            f"{request.epochs_before['epochs']}); in another folder (--out) the steady rate is measured"
        )
    is_plan_only = run_options.mode == "plan"
    for line in list_left_out_lines(state.runner.sources, None if is_plan_only else results):
        view.say(line)
    return show_plan(request, view) if is_plan_only else measure_plan(request, view)


def make_sweep_request(
    path: Path | None, options: ExperimentOptions, run_options: RunOptions
) -> SweepRequest:
    """The plan of a command line on this machine. Raises UsageError for what can't be planned."""
    shard = None if run_options.shard is None else shards.Shard.parse(run_options.shard)
    node = make_this_node(run_options.meters)
    experiment = read_experiment(path, options, has_gpu=bool(node.machine.gpus))
    results = Results(choose_results_folder(run_options.out, experiment))
    is_quiet = run_options.mode == "quiet"
    sources = DiskSources(
        experiment.bad_images, lambda root: show_progress(f"trying all images of {root}", quiet=is_quiet)
    )
    epochs_before = {} if experiment.is_length_given else find_epochs_of_old_version(results, experiment.name)
    whole = make_plan_as_begun(experiment, epochs_before, node, sources, results, run_options.order)
    plan = shards.select_shards(whole, () if shard is None else (shard,))
    retry = frozenset(parse_known_names("status to retry", run_options.retry or None, RETRY))
    nodes = None
    if any(job.trial.nodes > 1 for unit in plan.units for job in unit.jobs):
        if slurm_job.is_one_of_several_tasks():
            raise UsageError(
                "a sweep over several nodes starts their processes by itself: start it once, by "
                "srun --nodes=1 --ntasks=1"
            )
        nodes = make_cluster(node, run_options.agents, run_options.network, may_share=run_options.allow_busy)
    state = SweepState(
        plan=plan,
        runner=UnitRunner.build(plan, node, results, sources, nodes),
        retry=retry,
        fresh=run_options.fresh,
    )
    return SweepRequest(
        options=run_options,
        whole=whole,
        shard=shard,
        state=state,
        epochs_before=epochs_before,
        is_by_machine=path is None and "device" not in options.fields,
        searches=max_batch.list_max_batch_searches(state, whole) if run_options.find_max_batch else [],
    )


def make_plan_as_begun(
    experiment: Experiment,
    epochs_before: dict[str, int],
    node: Node,
    sources: DiskSources,
    results: Results,
    order: str | None,
) -> Plan:
    """The plan; by whole epochs, where nothing says how long to measure and the folder holds such trials of it."""
    plan = make_plan(experiment, node.machine, sources, order)
    if epochs_before:
        by_epochs = dataclasses.replace(experiment, fixed={**epochs_before, **experiment.fixed})
        earlier = make_plan(by_epochs, node.machine, sources, order)
        if any(results.find_next_attempt_number(unit.unit_id) > 1 for unit in earlier.units):
            return earlier
    return plan


def show_plan(request: SweepRequest, view: live.View) -> int:
    """`-n`: what would run. Returns the exit code."""
    state = request.state
    state.load(view.say)
    planned = state.list_planned_of_all_rounds()
    try_user_code(state, planned, view.say)
    has_work = any(item.state == "run" for item in planned)
    print_plan(state, planned, describe_other_load(state.runner.node) if has_work else "")
    if request.searches:
        print(max_batch.describe_searches(request.searches))
    check_enough_hardware(planned, state.runner.node.machine)
    return 0


def measure_plan(request: SweepRequest, view: live.View) -> int:
    """Measures what is left of the plan, and says what came of it. Returns the exit code."""
    state, results, machine = request.state, request.state.runner.results, request.state.runner.node.machine
    is_new = not results.folder.exists()
    planned = state.list_planned_of_all_rounds()
    check_enough_hardware(planned, machine)
    check_slurm_gpus_seen(planned, machine, is_by_machine=request.is_by_machine)
    if is_new:  # before anything is written
        try_user_code(state, planned, view.say)
    results.create_folder()
    with contextlib.ExitStack() as signals:
        try:
            with contextlib.ExitStack() as work:
                work.callback(state.give_back)
                state.load(view.say)
                planned = state.list_planned_of_all_rounds()
                if not is_new:
                    try_user_code(state, planned, view.say)
                for line in (*list_dropped_lines(state.plan), *list_not_reused_lines(planned)):
                    view.say(line)
                has_work = any(item.state == "run" for item in planned)
                if has_work:
                    if workers := state.list_other_workers():
                        view.say(
                            f"{describe_other_workers(workers)} at work in {results.folder}: "
                            "this sweep takes what is left"
                        )
                    if not announce_and_confirm_sweep(state, planned, view, yes=request.options.yes):
                        view.say("nothing was made, nothing was run")
                        return RESUMABLE
                store_plan(state, request.whole, request.shard)
                store_left_out_names(state.runner.sources, results)
                limits = Limits.build(state, lambda: False)
                if has_work or request.searches:
                    # Heard until everything has been said: at once means at once then, too.
                    stop = signals.enter_context(
                        listen_for_stop_signals(list_steps_at_sudden_end(state, view))
                    )
                    limits = Limits.build(state, stop, find_wall_time(view.say))
                if has_work:
                    summary = request.run(state, planned, limits, view)
                else:
                    summary = write_tables_without_running(state, planned, limits)
                lines: list[str] = []
                searched = [(summary, limits)]
                if not limits.is_resumable:
                    searched += search_largest_batches(request, limits, lines.append)
                results.check_not_removed()
        finally:
            if is_new:
                with contextlib.suppress(OSError):  # it holds something, as nearly always
                    results.folder.rmdir()
        with ignore_lost_output():
            print_result(state, planned, summary, limits, view, request.options.mode)
            for line in lines:
                view.say(line)
            for _, limits_of_tries in searched[1:]:
                if limits_of_tries.is_resumable:
                    view.say(next(filter(None, (limit.format_closing_line() for limit in limits_of_tries))))
    return decide_sweep_exit_code(state, searched)


def decide_sweep_exit_code(state: SweepState, ended: Sequence[tuple[SweepSummary, Limits]]) -> int:
    """The exit code of a sweep and its tries. Raises UnusableError where something was not written, or never fits."""
    is_resumable = any(limits.is_resumable for _, limits in ended)
    if is_resumable:
        ignore_stop_signals()
    if state.unwritten:
        raise UnusableError(
            f"{state.unwritten}; what was measured is kept, and the same command writes the tables"
        )
    if is_resumable:
        return RESUMABLE
    for _, limits in ended:
        limits.batch_job.raise_if_unit_too_long()
    return int(any(summary.failed or summary.timed_out for summary, _ in ended))


def write_tables_without_running(
    state: SweepState, planned: Sequence[PlannedUnit], limits: Limits
) -> SweepSummary:
    """Writes the tables anew, where every unit of the plan is done, skipped or has failed before."""
    state.runner.node.remove_abandoned_folders()
    skipped = [item for item in planned if item.state == "skip"]
    state.skips = {job.trial_id: item.why for item in skipped for job in item.unit.jobs}
    state.release_and_write_tables()
    summary = SweepSummary(
        reused=sum(item.state == "done" for item in planned),
        skipped=len(skipped),
        stale=sum(item.stale for item in planned),
    )
    for item in planned:
        summary.count_bad_ending(item.ended)
    limits.certainty.refresh_certainty(state)
    return summary


def search_largest_batches(
    request: SweepRequest, limits: Limits, say: Callable[[str], None]
) -> Iterator[tuple[SweepSummary, Limits]]:
    """Looks for the largest batch of each configuration, one try after the other. `say`: is given where the edge is."""

    def run_tries(tries: SweepState) -> tuple[SweepSummary, Limits]:
        limits_of_tries = Limits.build(tries, limits.stop.is_asked, limits.batch_job.wall_time)
        planned, view = tries.list_planned_of_all_rounds(), request.make_view(tables=False)
        return request.run(tries, planned, limits_of_tries, view), limits_of_tries

    for configuration in request.searches:
        is_resumable = False
        for ended in max_batch.search_max_batch(request.state, configuration, run_tries, say, store_plan):
            yield ended
            is_resumable = ended[1].is_resumable
        if is_resumable:
            return


def list_steps_at_sudden_end(state: SweepState, view: live.View) -> list[Callable[[], None]]:
    """What a sweep that is ended by a second signal still does, in this order."""

    def say() -> None:
        ended = format_count(state.ended, "trial") if state.ended else "no trial"
        write_unbuffered_stderr_line(
            f"ended at once; all that was stored is kept ({ended} of this sweep), what was under way is lost; "
            f"{format_continuation(fresh=state.fresh)}"
        )

    return [view.close, say, state.clean_up_before_exit]
