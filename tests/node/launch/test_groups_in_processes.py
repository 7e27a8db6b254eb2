"""Jobs side by side, with real processes: one beginning, one end, and every way in which a group can break."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading

import psutil
import pytest
from benches import run_with, sweep_of
from family import Onlooker, blamed, left, line_of, nobody_left
from scripted import SIGKILLED

from gpubench.node import environment
from gpubench.plan.experiment_file import parse
from gpubench.plan.options import with_options
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
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


def warmed_up(ran):
    return max(epoch.t1 for epoch in ran.outcome.epochs if epoch.warmup and epoch.epoch == 0)


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
@pytest.mark.parametrize("count", [2, 3])
def test_no_job_begins_before_all_are_warm(train_together, count):
    """The last takes long to warm up; its neighbours, which read images, wait for it."""
    quick = [{"model": MODELS + "tiny"}, {"model": "lenet", "batch_size": 64}][: count - 1]
    together = all_ok(train_together(*quick, SLOW))
    assert len(together) == count
    released, _ = one_window(together)
    assert max(warmed_up(ran) for ran in together) == warmed_up(together[-1]) <= released
    assert all(ran.outcome.phases["wait_for_jobs"] > 0 for ran in together)


@pytest.mark.slow
@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=["fast-slow", "slow-fast"])
def test_a_fast_job_trains_until_a_slow_one_has_measured(train_together, order):
    jobs = [FAST | {"batch_size": 8}, SLOW | {"epochs": 3}]
    together = all_ok(train_together(*(jobs[k] for k in order)))
    released, stopped = one_window(together)
    fast, slow = (together[order.index(k)] for k in (0, 1))
    (filling,) = events(fast, Filling)
    ended = filling.at + fast.outcome.phases["fill"]
    assert released < filling.at < measured(slow)[-1].t1 <= stopped <= ended
    # Not idly: in each tenth of what the slow one still measured.
    at = [step["at"] for step in steps_told(fast)]
    edges = [filling.at + k / 10 * (stopped - filling.at) for k in range(11)]
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


@pytest.mark.parametrize(
    ("ddp", "single"), [(FAST, SLOW), (SLOW, FAST), (FAST, FAST)], ids=["fast", "slow", "alike"]
)
@pytest.mark.parametrize(
    "first", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["ddp-single", "single-ddp"]
)
def test_ranks_end_their_filler_after_the_same_step(train_together, ddp, single, first):
    jobs = [ddp | DDP, single]
    together = all_ok(train_together(*(jobs if first else jobs[::-1])))
    one_window(together)
    several, one = together if first else together[::-1]
    last = [max(s["step"] for s in steps_told(several) if s["rank"] == rank) for rank in (0, 1)]
    assert last[0] == last[1] >= 2 * len(several.step_ms)
    assert len(events(several, End)) == 2 * 2
    assert len(events(several, Filling)) == len(events(one, Filling)) == 1
    assert [len(ran.step_ms) for ran in (several, one)] == [8 if job is FAST else 4 for job in (ddp, single)]


@pytest.mark.slow
def test_two_groups_of_ranks_with_loaders(train_together):
    jobs = [{"model": "lenet", **DDP, "workers": 2, "batch_size": batch} for batch in (16, 64)]
    together = all_ok(train_together(*jobs))
    one_window(together)
    assert [len(ran.step_ms) for ran in together] == [16, 4]


def test_without_a_warm_up_the_wait_is_no_part_of_the_first_step(train_together):
    late = {"model": MODELS + "slow_to_build", "data": None}
    quick, _ = all_ok(train_together(FAST, late, epochs=1, warmup_epochs=0))
    assert quick.outcome.phases["first_step"] < quick.outcome.phases["wait_for_jobs"]
    assert events(quick, Begin)[0].measured


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
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("model", "status", "reason"),
    [
        ("raises", "failed", "ValueError: the moon is full"),
        ("raises_late", "failed", "ValueError: the moon is new"),
        ("raises_as_a_filler", "failed", "ValueError: no more to give"),
        ("raises_when_built", "failed", "ValueError: 4 classes are too many"),
        (
            "runs_out_of_gpu_memory",
            "oom",
            "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        ),
        (
            "runs_out_of_gpu_memory_late",
            "oom",
            "OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB.",
        ),
        ("is_killed_late", "failed", f"rank 0 {SIGKILLED}"),
    ],
)
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
    [(0, "hangs", 3, 0), (1, "hangs", 3, 0), (0, "hangs_late", 4, 1)],
    ids=["warm-up", "warm-up, second", "measured"],
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


def test_what_has_failed_is_no_timeout(train_together):
    """Its leader still waits for the other rank, which is deaf, when the deadline comes."""
    model = MODELS + "second_rank_raises_and_first_hangs"
    together = train_together(ENDLESS, {"model": model, **DDP, "data": None}, timeout_s=4)
    status, reason = taken_along(together, 1)
    assert (status, reason[-8:]) == ("failed", "(rank 1)")


def test_jobs_that_are_equally_late_have_all_timed_out(train_together):
    together = train_together(ENDLESS, ENDLESS, timeout_s=2)
    assert [ran.status for ran in together] == ["timeout"] * 2
    assert all("within 2 s; rank 0 was" in ran.reason for ran in together)
    assert [ran.done.cut_by for ran in together] == [None, None]


def test_a_stop_interrupts_all(train_together, server):
    stop = threading.Event()
    onlooker = Onlooker(server, lambda jobs: all(job.measured for job in jobs), lambda _: stop.set())
    together = train_together(ENDLESS, ENDLESS, should_stop=stop.is_set, look=onlooker)
    assert [(ran.status, ran.reason) for ran in together] == [("interrupted", "the sweep was stopped")] * 2
    assert left(onlooker.seen, within=1) == []


def test_a_job_that_was_done_does_not_count_where_its_neighbour_broke(train_together):
    whole, broken = train_together(
        {"model": MODELS + "tiny"}, {"model": MODELS + "breaks_at_the_end", "data": None}
    )
    assert taken_along([whole, broken], 1) == ("failed", "ValueError: too many to count")
    assert events(whole, Result), "it had reported all"


# ---------------------------------------------------------------- and as it is stored


def stored(folder, server, *models, **fields):
    """Records of a sweep over one group of these models: by the trials alone, and by the group."""
    options = Options(
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
    experiment = with_options(parse('name = "test"\n[run]\nrounds = 1\n', "test"), options)
    machine = environment.machine(None)
    sources = Disk()
    plan = expand(experiment, device="cpu", sources=sources, cpus=machine.cpu_count)
    sweep = sweep_of(plan, folder, machine, sources=sources)
    sweep.runner.results.create()
    run_with(server, sweep, QuietView())
    records = sweep.runner.results.records()
    group = sorted((r for r in records if r.group_id), key=lambda r: r.job)
    return [r for r in records if not r.group_id], group


@pytest.mark.slow
def test_a_group_is_stored_after_its_jobs_alone(server, tmp_path):
    alone, group = stored(tmp_path / "r", server, "tiny", "slow_step")
    assert [record.status for record in (*alone, *group)] == ["ok"] * 4
    solos = {record.trial.model: record for record in alone}
    for record in group:
        solo = solos[record.trial.model]
        span = record.together
        assert all(span["released"] <= w.t0 < w.t1 <= span["stopped"] for w in record.windows if w.epoch > 0)
        assert record.result.solo_id == solo.trial_id
        assert record.result.slowdown == record.result.epoch_time_s / solo.result.epoch_time_s
        assert [e["steps"] for e in record.epochs] == [e["steps"] for e in solo.epochs]
        assert solo.trial_id in record.missing["top1_pct"]
    assert len({record.together["released"] for record in group}) == 1


@pytest.mark.slow
def test_streams_are_measured_while_all_jobs_measure(server, tmp_path):
    """A window of the slow one is of three steps of 0.2 s: the fast one, which has its own sooner, measures on."""
    alone, group = stored(tmp_path / "r", server, "tiny", "slow_pass", window="0.1s")
    assert [record.status for record in (*alone, *group)] == ["ok"] * 4
    solos = {record.trial.model: record for record in alone}
    fast, slow = ({w.epoch: w for w in record.windows}[1] for record in group)
    assert abs(fast.t0 - slow.t0) < 0.25
    assert min(fast.t1, slow.t1) - max(fast.t0, slow.t0) > 3 * 0.2 - 0.05
    for record, window in zip(group, (fast, slow), strict=True):
        solo = solos[record.trial.model]
        assert record.together["released"] <= window.t0
        assert (
            [row["warmup"] for row in record.epochs]
            == [row["warmup"] for row in solo.epochs]
            == [True, False]
        )
        rate = record.epochs[1]["images"] / (window.t1 - window.t0)
        assert record.result.images_per_s == pytest.approx(rate, rel=1e-6)
        assert record.result.slowdown == record.result.epoch_time_s / solo.result.epoch_time_s
        assert record.missing["top1_pct"] == solo.missing["top1_pct"]


@pytest.mark.slow
@pytest.mark.parametrize("models", [("tiny", "raises_late"), ("is_killed_late", "tiny")])
def test_a_broken_group_has_a_row_for_each_job(server, tmp_path, models):
    _, group = stored(tmp_path / "r", server, *models)
    broken = models.index("tiny") ^ 1
    culprit, taken = group[broken], group[broken ^ 1]
    assert (culprit.status, taken.status) == ("failed", "skipped")
    assert taken.reason == f"job {culprit.job} failed: {culprit.reason}"
    for record in group:
        assert "overlap_gain" not in vars(record.result)
        assert "slowdown" not in vars(record.result)
        assert record.missing["overlap_gain"]


# ---------------------------------------------------------------- killed from outside


LOADING = {"model": MODELS + "slow_step", "workers": 2, "batch_size": 4, "warmup_epochs": 0}
"""Its first epoch takes seconds, and its loader has workers all the while."""


def all_measure(jobs):
    return all(job.measured for job in jobs)


def all_are_in_an_epoch(jobs):
    return all(job.measured and job.step for job in jobs)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["waiting", "measured"])
@pytest.mark.parametrize(
    ("victim", "words"),
    [
        (lambda tree: tree.ranks[0], "rank 0 was ended by SIGKILL"),
        (lambda tree: tree.leader, f"the process that leads the trial {SIGKILLED}"),
        (lambda tree: tree.workers[0], "DataLoader worker"),
    ],
    ids=["rank", "leader", "loader worker"],
)
def test_a_killed_process_ends_the_group(train_together, server, when, victim, words):
    """The second of two; while it waits for the first to be warm, or in the span of all."""
    jobs, so_far = [LOADING, LOADING], all_are_in_an_epoch
    if when == "waiting":
        if "worker" in words:
            pytest.skip("a loader has no workers between epochs")
        jobs = [{"model": MODELS + model, "workers": 2} for model in ("hangs", "tiny")]
        so_far = lambda progress: progress[1].waiting  # noqa: E731
    onlooker = Onlooker(server, so_far, lambda trees: victim(trees[1]).kill())
    together = train_together(*jobs, look=onlooker)
    status, reason = taken_along(together, 1)
    assert (status, words in reason) == ("failed", True), reason
    assert len(onlooker.seen) >= 4
    assert left(onlooker.seen, within=1) == []


def test_a_rank_of_several_that_is_killed(train_together, server):
    onlooker = Onlooker(server, all_measure, lambda trees: trees[0].ranks[1].kill())
    together = train_together(ENDLESS | DDP, ENDLESS, look=onlooker)
    status, reason = taken_along(together, 0)
    assert status == "failed"
    assert blamed(reason) == (1, "SIGKILL")
    assert len(onlooker.seen) == 5
    assert left(onlooker.seen, within=1) == []


@pytest.mark.slow
def test_the_server_serves_on_and_keeps_its_files(train_together, server):
    process = psutil.Process(server.pid)
    ours = psutil.Process(os.getpid())
    before = process.num_fds(), ours.num_fds()
    for model in ("is_killed_late", "tiny", "runs_out_of_gpu_memory", "tiny"):
        ran = train_together({"model": MODELS + model}, {"model": MODELS + "tiny"}, data=None)
        assert (ran[1].status == "ok") == (model == "tiny")
    assert nobody_left(server)
    assert (process.num_fds(), ours.num_fds()) == before
    assert process.num_threads() == 1


# ---------------------------------------------------------------- the server itself


class Meddling:
    """A launcher that does something to its server before it launches the second job."""

    def __init__(self, server, act):
        self.server, self.act, self.launched = server, act, 0

    def launch(self, order, should_stop):
        self.launched += 1
        if self.launched == 2:
            self.act(psutil.Process(self.server.pid))
        return self.server.launch(order, should_stop)


def kill(process):
    process.kill()
    process.wait()


def kill_soon(process):
    """It has the order, and does not carry it out."""
    process.send_signal(signal.SIGSTOP)
    threading.Timer(0.3, process.kill).start()


@pytest.mark.slow
def test_a_server_that_dies_between_two_launches(train_together, own_server):
    """The second job gets a server of its own; the first is gone, and the group with it."""
    before = own_server.pid
    together = train_together(ENDLESS, ENDLESS, launcher=Meddling(own_server, kill))
    status, reason = taken_along(together, 0)
    assert status == "failed"
    assert reason.startswith("the fork server ")
    assert own_server.pid != before
    assert nobody_left(own_server)
    all_ok(train_together(FAST, FAST, launcher=own_server))


@pytest.mark.slow
def test_a_server_that_dies_while_it_launches_the_second(train_together, own_server):
    meddling = Meddling(own_server, kill_soon)
    together = train_together(ENDLESS, ENDLESS, ENDLESS, launcher=meddling)
    assert [ran.done.cut_by for ran in together] == [1, None, 1]
    assert together[1].status == "failed"
    assert together[1].done.forced == ("failed", together[1].reason)
    assert meddling.launched == 2
    all_ok(train_together(FAST, FAST, launcher=own_server))


@pytest.mark.slow
def test_a_server_that_is_killed_under_a_group(train_together, own_server):
    onlooker = Onlooker(own_server, all_are_in_an_epoch, lambda _: psutil.Process(own_server.pid).kill())
    together = train_together(LOADING, LOADING, launcher=own_server, look=onlooker)
    status, reason = taken_along(together, 0)
    assert (status, reason.partition(";")[0]) == ("failed", f"the fork server {SIGKILLED}")
    assert left(onlooker.seen, within=1) == []
    all_ok(train_together(FAST, FAST, launcher=own_server))


def test_a_parent_that_breaks_off_leaves_nobody_behind(train_together, server):
    def break_off(_):
        raise KeyboardInterrupt

    onlooker = Onlooker(server, all_are_in_an_epoch, break_off)
    with pytest.raises(KeyboardInterrupt):
        train_together(LOADING, LOADING, look=onlooker)
    assert left(onlooker.seen, within=1) == []
