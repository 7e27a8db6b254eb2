"""Jobs side by side, with real processes: one beginning, one end, and every way in which a group can break."""

from __future__ import annotations

import itertools
import json
import threading

import pytest
from benches import run_with, sweep_of
from family import Onlooker, left, line_of, nobody_left
from scripted import SIGKILLED

from gpubench.node import environment
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.render.live import QuietView
from gpubench.schema.events import Begin, End, Filling, Result, Warm

MODELS = "tests/train/user_models.py:"
FAST = {"model": MODELS + "tells_steps", "data": None}
SLOW = {"model": MODELS + "slow_and_tells_steps", "data": None, "train_images": 128}
ENDLESS = {"model": MODELS + "slow_step", "data": None, "train_images": 32, "epochs": 5000}
DDP = {"ranks": 2, "cpus": 2, "strategy": "ddp"}


@pytest.fixture(autouse=True)
def _nobody_left(server):
    """Whatever a test did to its group, none of the processes outlives it, not even as a zombie."""
    server.wait_ready()
    yield
    assert nobody_left(server)


def events(ran, kind):
    return [event for event in ran.done.events if isinstance(event, kind)]


def measured(ran):
    return [epoch for epoch in ran.outcome.epochs if not epoch.warmup]


def steps_told(ran):
    """What the ranks said of their steps."""
    return [json.loads(line) for line in ran.log.splitlines() if line.startswith('{"rank"')]


def all_ok(together):
    assert [(ran.status, ran.reason) for ran in together] == [("ok", "")] * len(together)
    assert [ran.done.cut_by for ran in together] == [None] * len(together)
    return together


def one_window(together):
    """When all began and all were told to stop; every measured window lies between."""
    ((released, stopped),) = {(ran.done.released, ran.done.stopped) for ran in together}
    for ran in together:
        ready = events(ran, Warm)
        assert sorted(event.rank for event in ready) == list(range(ran.order.ranks))
        for event in events(ran, End):
            if event.measured:
                assert released <= event.t0 < event.t1 <= stopped
    return released, stopped


# ---------------------------------------------------------------- the span in which all train


@pytest.mark.slow
def test_a_fast_job_trains_until_a_slow_one_has_measured(train_together):
    together = all_ok(train_together(SLOW | {"epochs": 3}, FAST | {"batch_size": 8}))
    released, stopped = one_window(together)
    slow, fast = together
    (filling,) = events(fast, Filling)
    ended = filling.at + fast.outcome.phases["fill"]
    assert released < filling.at < measured(slow)[-1].t1 <= stopped <= ended
    # Not idly: in each third of what the slow one still measured.
    at = [step["at"] for step in steps_told(fast)]
    edges = [filling.at + k / 3 * (stopped - filling.at) for k in range(4)]
    for low, high in itertools.pairwise(edges):
        assert any(low <= moment < high for moment in at)


@pytest.mark.slow
def test_fillers_are_not_counted(train_together, train):
    """The figures are of the steps that were asked for, and the network learns what it learns alone."""
    fields = {"model": "lenet", "epochs": 3, "batch_size": 48}
    fast, _ = all_ok(train_together(fields, SLOW | {"epochs": 3}))
    alone = train(**fields)
    assert fast.outcome.phases["fill"] > sum(epoch.epoch_time_s for epoch in measured(fast))
    assert [(e.epoch, e.warmup) for e in fast.outcome.epochs] == [(0, True), (1, False), (2, False)]
    assert {(e.steps, e.images) for e in fast.outcome.epochs} == {(5, 240)}
    assert len(fast.step_ms) == len(alone.step_ms) == 10
    assert sum(fast.step_ms) <= 1e3 * sum(epoch.epoch_time_s for epoch in measured(fast))
    assert len(events(fast, Begin)) == len(events(fast, End)) == 3
    for column in ("images_per_epoch", "epochs_measured"):
        assert fast.outcome.result[column] == alone.outcome.result[column]
    assert fast.outcome.phases["measured"] == sum(epoch.epoch_time_s for epoch in measured(fast))
    for mine, same in zip(fast.outcome.epochs, alone.outcome.epochs, strict=True):
        assert mine.train_loss == same.train_loss
    assert "top1_pct" not in fast.outcome.result


def test_ranks_end_their_filler_after_the_same_step(train_together):
    together = train_together(FAST | DDP, SLOW)
    one_window(together)
    several, one = together
    last = [max(s["step"] for s in steps_told(several) if s["rank"] == rank) for rank in (0, 1)]
    assert last[0] == last[1] >= 2 * len(several.step_ms)
    assert len(events(several, End)) == 2 * 2
    assert len(events(several, Filling)) == len(events(one, Filling)) == 1
    assert [len(ran.step_ms) for ran in (several, one)] == [8, 4]


# ---------------------------------------------------------------- one ends, and with it all


def taken_along(together, by):
    """The reason of the job that ended by itself; all others were cut by it."""
    culprit = together[by]
    for place, ran in enumerate(together):
        assert ran.done.cut_by == (None if place == by else by)
        assert ran.done.launched <= ran.done.finished
        assert ran.done.forced is None or place == by
    assert {ran.status for ran in together if ran is not culprit} == {"skipped"}
    return culprit.status, culprit.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "model", "status", "reason"),
    [
        (0, "raises", "failed", "ValueError: the moon is full"),
        (1, "raises_late", "failed", "ValueError: the moon is new"),
        (0, "raises_as_a_filler", "failed", "ValueError: no more to give"),
        (1, "raises_when_built", "failed", "ValueError: 4 classes are too many"),
        (0, "runs_out_of_gpu_memory_late", "oom", "OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB."),
        (1, "is_killed_late", "failed", f"rank 0 {SIGKILLED}"),
    ],
)  # fmt: skip
def test_a_job_that_ends_takes_its_neighbours_along(train_together, place, model, status, reason):
    jobs = [ENDLESS, ENDLESS]
    jobs.insert(place, {"model": MODELS + model, "data": None})
    together = train_together(*jobs)
    assert taken_along(together, place) == (status, reason)
    late = model.endswith(("_late", "_filler"))
    assert all((ran.done.released is not None) == late for ran in together)
    assert {ran.done.stopped for ran in together} == {None}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "model", "timeout_s", "epochs_done"),
    [(1, "hangs", 3, 0), (0, "hangs_late", 4, 1)],
    ids=["warm-up", "measured"],
)
def test_the_one_that_hangs_is_the_one_that_timed_out(train_together, place, model, timeout_s, epochs_done):
    jobs = [{"model": MODELS + "tiny", "workers": 2}]
    jobs.insert(place, {"model": MODELS + model})
    together = train_together(*jobs, timeout_s=timeout_s)
    status, reason = taken_along(together, place)
    assert status == "timeout"
    where = f"rank 0 was in user_models.py:{line_of('_block', 2)} _block"
    assert reason.startswith(f"did not end within {timeout_s} s; {where}")
    assert len(together[place].outcome.epochs) == epochs_done
    assert bool(events(together[1 - place], Filling)) == bool(epochs_done)


def test_a_stop_interrupts_all(train_together, server):
    stop = threading.Event()
    onlooker = Onlooker(server, lambda jobs: all(job.measured for job in jobs), lambda _: stop.set())
    together = train_together(ENDLESS, ENDLESS, should_stop=stop.is_set, look=onlooker)
    assert [(ran.status, ran.reason) for ran in together] == [("interrupted", "the sweep was stopped")] * 2
    assert left(onlooker.seen, within=1) == []


@pytest.mark.slow
def test_a_job_that_was_done_does_not_count_where_its_neighbour_broke(train_together):
    whole, broken = train_together(
        {"model": MODELS + "tiny"}, {"model": MODELS + "breaks_at_the_end", "data": None}
    )
    assert taken_along([whole, broken], 1) == ("failed", "ValueError: too many to count")
    assert events(whole, Result), "it had reported all"


# ---------------------------------------------------------------- and as it is stored


def stored(folder, server, *models, **fields):
    """Records of a sweep over one group of these models: by the trials alone, and by the group."""
    options = ExperimentOptions(
        fields={
            "variant": "synthetic",
            "train_images": "128",
            "batch_size": "16",
            "num_classes": "4",
            "input_size": "28",
            "cpus": "1",
            **(fields or {"epochs": "2"}),
        },
        jobs=tuple(f"model={MODELS}{model}" for model in models),
        timeout="60s",
    )
    experiment = apply_options(parse_experiment('name = "test"\n[run]\nrounds = 1\n', "test"), options)
    machine = environment.make_machine(None)
    sources = DiskSources()
    plan = expand_experiment(experiment, device="cpu", sources=sources, cpus=machine.cpu_count)
    sweep = sweep_of(plan, folder, machine, sources=sources)
    sweep.runner.results.create_folder()
    run_with(server, sweep, QuietView())
    records = sweep.runner.results.read_records()
    group = sorted((r for r in records if r.group_id), key=lambda r: r.job)
    return [r for r in records if not r.group_id], group


@pytest.mark.slow
def test_streams_are_measured_while_all_jobs_measure(server, tmp_path):
    """A window of the slow one is of three steps of 0.2 s: the fast one, which has its own sooner, measures on."""
    alone, group = stored(tmp_path / "r", server, "tiny", "slow_pass", window="0.1s")
    assert [record.status for record in (*alone, *group)] == ["ok"] * 4
    solos = {record.trial["model"]: record for record in alone}
    fast, slow = ({w.epoch: w for w in record.windows}[1] for record in group)
    assert abs(fast.t0 - slow.t0) < 0.25
    assert min(fast.t1, slow.t1) - max(fast.t0, slow.t0) > 3 * 0.2 - 0.05
    for record, window in zip(group, (fast, slow), strict=True):
        solo = solos[record.trial["model"]]
        assert record.together["released"] <= window.t0
        assert (
            [row["warmup"] for row in record.epochs]
            == [row["warmup"] for row in solo.epochs]
            == [True, False]
        )
        rate = record.epochs[1]["images"] / (window.t1 - window.t0)
        assert record.result["images_per_s"] == pytest.approx(rate, rel=1e-6)
        assert record.result["slowdown"] == record.result["epoch_time_s"] / solo.result["epoch_time_s"]
        assert record.missing["top1_pct"] == solo.missing["top1_pct"]


# ---------------------------------------------------------------- killed from outside


LOADING = {"model": MODELS + "slow_step", "workers": 2, "batch_size": 4, "warmup_epochs": 0}
"""Its first epoch takes seconds, and its loader has workers all the while."""


def all_are_in_an_epoch(jobs):
    return all(job.measured and job.step for job in jobs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "victim", "words"),
    [
        ("measured", lambda tree: tree.ranks[0], "rank 0 was ended by SIGKILL"),
        ("waiting", lambda tree: tree.leader, f"the process that leads the trial {SIGKILLED}"),
        ("measured", lambda tree: tree.workers[0], "DataLoader worker"),
    ],
    ids=["rank", "leader", "loader worker"],
)
def test_a_killed_process_ends_the_group(train_together, server, when, victim, words):
    """The second of two; while it waits for the first to be warm, or in the span of all."""
    jobs, so_far = [LOADING, LOADING], all_are_in_an_epoch
    if when == "waiting":
        jobs = [{"model": MODELS + model, "workers": 2} for model in ("hangs", "tiny")]
        so_far = lambda progress: progress[1].waiting  # noqa: E731
    onlooker = Onlooker(server, so_far, lambda trees: victim(trees[1]).kill())
    together = train_together(*jobs, look=onlooker)
    status, reason = taken_along(together, 1)
    assert (status, words in reason) == ("failed", True), reason
    assert len(onlooker.seen) >= 4
    assert left(onlooker.seen, within=1) == []
