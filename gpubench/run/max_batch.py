"""`gpubench sweep --find-max-batch`: tries batch sizes at the edge of GPU memory, after a sweep and from its rows.

Each try is a trial of a few steps, stored like any other under an experiment of its own, `NAME-max-batch`. So what was
tried once is not tried again, and a search that was stopped goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpubench.basics.errors import UsageError
from gpubench.plan.experiment import Axis, Experiment
from gpubench.plan.max_batch import (
    STEPS,
    TRY,
    MemoryEdge,
    choose_next_batch_size,
    find_memory_edge,
    make_try_experiment_name,
)
from gpubench.plan.plan import Job, Plan, expand_experiment
from gpubench.plan.rounds import RoundLimits
from gpubench.plan.shares import choose_device
from gpubench.plan.skips import make_memory_chain_key
from gpubench.plan.state import list_chains_of_records
from gpubench.results.counting import select_counting_of_first_round
from gpubench.results.rows import make_row
from gpubench.run.limits import Limits, SweepSummary
from gpubench.run.sweep_state import SweepState
from gpubench.schema.cell import format_cell
from gpubench.schema.row import Row
from gpubench.stats.memory_line import FEWEST_SIZES, fit_line_to_largest_sizes

MOST_TRIES = 16
"""Of one configuration in one go."""
MOST_IMAGES = 1 << 20
"""Of an epoch without images: the length of one of which a few steps are run costs nothing."""
WIDE = 2.0
"""An interval that reaches so many times as far as its value, or so small a part of it, tells nothing."""
BY_DRIVER = ("nvml-process", "nvml-device-delta", "published-log")
"""Sources of memory that hold all that a card must have; the allocator's own count leaves CUDA's context out."""
BADLY = {"failed": "failed", "timeout": "timed out"}
NOT_ASKED = ("batch_size", "until_top1")
"""Fields of a trial that a try does not take over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MaxBatchSearch:
    """One configuration of a plan whose largest batch is looked for."""

    name: str
    """`strategy=ddp`; empty where the plan has one configuration."""
    job: Job
    """Its trial with the largest batch size."""
    experiment: Experiment
    """Of the tries, without a batch size yet."""
    multiple: int
    """Batch sizes are multiples of it."""
    most: int
    """Images of an epoch, which no batch can be larger than."""


def list_max_batch_searches(state: SweepState, whole: Plan | None = None) -> list[MaxBatchSearch]:
    """What is looked for: each configuration of the plan that trains alone on GPUs, whatever its batch sizes.

    `whole`: the plan of which the sweep runs a part, where it does: configurations are named and numbered in it, so
    that what was found of the parts can be put together.
    Raises UsageError where there is none.
    """
    plan, largest = whole or state.plan, dict[Any, Job]()
    for unit in plan.units:
        job = unit.jobs[0]
        trains_alone = not (unit.is_group or unit.baseline) and job.trial.workload == "training"
        if not trains_alone or choose_device(job.trial, plan.device) != "cuda":
            continue
        key = make_memory_chain_key(job.trial, job.variant.make_definition())
        if key not in largest or largest[key].trial.batch_size < job.trial.batch_size:
            largest[key] = job
    if not largest:
        raise UsageError(
            "--find-max-batch fills GPU memory: no trial of this plan trains by itself on a GPU; leave the option out"
        )
    mine = {unit.unit_id for unit in state.plan.units}
    return [
        _make_max_batch_search(state, job, number, len(largest) > 1)
        for number, job in enumerate(largest.values(), start=1)
        if job.trial_id in mine
    ]


def _make_max_batch_search(state: SweepState, job: Job, number: int, several: bool) -> MaxBatchSearch:
    experiment, t = state.plan.experiment, job.trial
    given = {name: value for name, value in t.asdict().items() if name not in NOT_ASKED} | TRY
    fixed = {name: value for name, value in given.items() if value is not None}
    images = t.train_images or state.runner.find_data_facts(job).train_images
    if job.variant.files == "none":
        fixed["train_images"] = images = MOST_IMAGES
    fields = [
        field for axis in experiment.varied for field in axis if field != "batch_size" and field in fixed
    ]
    name = " ".join(f"{field}={format_cell(fixed[field])}" for field in fields) if several else ""
    return MaxBatchSearch(
        name=name,
        job=job,
        experiment=Experiment(
            name=make_try_experiment_name(experiment.name, number if several else None),
            question=f"What is the largest batch that fits{f' with {name}' if name else ''}?",
            fixed=fixed,
            variants=experiment.variants,
            rounds=RoundLimits(number=1),
            timeout_s=experiment.timeout_s,
            bad_images=experiment.bad_images,
        ),
        multiple=t.devices * t.accumulate,
        most=images,
    )


def find_known_memory_edge(state: SweepState, search: MaxBatchSearch) -> tuple[MemoryEdge, list[float]]:
    """Where the edge is, as far as stored trials of this machine tell, and where the line through memory puts it."""
    # Of some size: all have what counts here.
    tries = plan_batch_size_tries(state, search, [search.job.trial.batch_size])
    keys = {
        make_memory_chain_key(job.trial, job.variant.make_definition()) for job in (search.job, *tries.jobs)
    }
    machine = state.runner.find_machine_key(search.job)
    tried = [
        (batch, record)
        for (_, key), record in select_counting_of_first_round(state.records).items()
        if key == machine and record.group is None
        for chain, batch in list_chains_of_records([record])
        if chain in keys
    ]
    # Of each batch size that ran the last one stored.
    ran = {batch: record for batch, record in tried if record.status == "ok"}
    full = [batch for batch, record in tried if record.status == "oom"]
    guesses = estimate_largest_sizes([make_row(record) for record in ran.values()], search.multiple)
    return find_memory_edge(list(ran), full), guesses


def estimate_largest_sizes(rows: Sequence[Row], multiple: int) -> list[float]:
    """Batch sizes at which memory may end by the line through these rows, the best first; none where there is no line.

    `rows`: of trials that ended ok, one a batch size. `multiple`: batch sizes are multiples of it.
    """
    known = [row for row in rows if row.batch_size and row.gpu_mem_mib]
    rooms: set[float] = set()
    for row in known:
        # A trial may take of each GPU what the driver leaves, and no more than its cap.
        free = None if row.gpu_total_mib is None else row.gpu_total_mib - (row.gpu_reserved_mib or 0)
        if limits := [mib for mib in (row.gpu_mem_cap_mib, free) if mib is not None]:
            rooms.add(min(limits))
    sources = {row.gpu_mem_source for row in known}
    room = rooms.pop() if len(rooms) == 1 else None
    if len(known) < FEWEST_SIZES or room is None or len(sources) > 1 or not sources & {*BY_DRIVER}:
        return []
    line = fit_line_to_largest_sizes([(row.batch_size or 0, row.gpu_mem_mib or 0.0) for row in known])
    reached = line.solve_batch_size(room) if line else None
    if reached is None:
        return []
    value, low, high = reached
    is_narrow = high <= WIDE * value and low * WIDE >= value
    return [math.floor(size / multiple) * multiple for size in reached] if is_narrow else []


def plan_batch_size_tries(state: SweepState, search: MaxBatchSearch, sizes: Sequence[int]) -> Plan:
    """The tries of these batch sizes."""
    axis = Axis(fields=("batch_size",), values=tuple((size,) for size in sorted(sizes)))
    experiment = replace(search.experiment, axes=(axis,))
    return expand_experiment(
        experiment,
        device=state.plan.device,
        sources=state.runner.sources,
        cpus=state.runner.node.machine.cpu_count,
    )


def search_max_batch(
    state: SweepState,
    search: MaxBatchSearch,
    run: Callable[[SweepState], tuple[SweepSummary, Limits]],
    say: Callable[[str], None],
    keep: Callable[[SweepState], None],
) -> Iterator[tuple[SweepSummary, Limits]]:
    """Tries one size after the other until the edge is found, and says where it is. What each try came to.

    `run`: runs a sweep. `keep`: keeps the plan of what was tried.
    """
    sizes: list[int] = []
    tries: SweepState | None = None
    begin = f"{search.name}: " if search.name else ""
    try:
        for _ in range(MOST_TRIES):
            edge_known, guesses = find_known_memory_edge(state, search)
            size = choose_next_batch_size(edge_known, guesses, search.multiple, search.most)
            if size is None:
                break
            sizes = sorted({*sizes, size})
            tries = SweepState(
                plan=plan_batch_size_tries(state, search, sizes),
                runner=replace(state.runner, experiment=search.experiment.name),
                retry=state.retry & BADLY.keys(),
            )
            tries.load(lambda _: None)
            first_round = tries.list_planned_of_round(1)
            item = next(item for item in first_round if item.unit.jobs[0].trial.batch_size == size)
            if item.state != "run":
                before = f"{BADLY[item.ended]} before" if item.ended else f"is not tried ({item.why})"
                again = f"; --retry {item.ended} tries it again" if item.ended else ""
                say(f"{begin}a batch of {size:,} {before}, so the search ends there{again}")
                return
            summary, limits = run(tries)
            yield summary, limits
            state.records = tries.records
            if summary.elsewhere:
                say(f"{begin}another sweep tries a batch of {size:,} now; the same command goes on later")
                return
            if limits.is_resumable or limits.batch_job.late.never:
                return
            if summary.failed or summary.timed_out:
                status = BADLY["failed" if summary.failed else "timeout"]
                folder = state.runner.results.folder
                say(
                    f"{begin}a batch of {size:,} {status}, so the search ends there; "
                    f"gpubench table {folder} says why"
                )
                return
        say(describe_max_batch(search, find_known_memory_edge(state, search)[0]))
    finally:
        if tries is not None:
            keep(tries)
            tries.write_tables()  # anew: what the tries ask stands in their plan, of which there is one for all


def describe_searches(searched: Sequence[MaxBatchSearch]) -> str:
    """What a search will do."""
    times = "" if len(searched) == 1 else f" for each of {len(searched)} configurations"
    return (
        f"then batch sizes are tried at the edge of GPU memory: at most {MOST_TRIES} trials of {STEPS} steps{times} "
        "(--find-max-batch)"
    )


def describe_max_batch(search: MaxBatchSearch, edge_known: MemoryEdge) -> str:
    """What the search came to."""
    begin = f"{search.name}: " if search.name else ""
    if not edge_known.ran:
        return f"{begin}no batch size has run"
    ran = f"{begin}the largest batch that ran is {edge_known.ran:,}"
    if edge_known.full is not None:
        is_found = edge_known.is_settled(search.multiple)
        unfinished = "" if is_found else f"; {MOST_TRIES} tries were not enough, the same command goes on"
        return f"{ran}, the smallest that ran out of memory {edge_known.full:,}{unfinished}"
    if edge_known.ran >= search.most // search.multiple * search.multiple:
        return f"{ran}, which is as many images as an epoch has"
    return f"{ran}; none ran out of memory yet, the same command goes on"
