"""Real trials for every test that wants one: a warm fork server, an easy set of images, a way to run them."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from fakes import resolve_alone
from msgspec import structs
from PIL import Image
from warm_command import WarmCommand

from gpubench.datasets import folder
from gpubench.datasets.facts import DataFacts
from gpubench.node import environment
from gpubench.node.launch.attempt import run_attempt
from gpubench.node.launch.fork_server import ForkServer
from gpubench.node.watch.nvml import open_nvml
from gpubench.node.watch.watcher import Watcher
from gpubench.plan.plan import GroupMembership, Job, Unit
from gpubench.plan.resolve import ResolvedTrial, make_data_spec, make_trial_order, resolve_unit_trials
from gpubench.record.outcome import Outcome
from gpubench.record.recording import list_step_rows
from gpubench.record.training import make_outcome
from gpubench.schema import catalog
from gpubench.schema.attempt import Attempt, JobProgress
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended
from gpubench.schema.trial import make_trial

SIZE = 28
CLASSES = ((230, 40, 40), (40, 230, 40), (40, 40, 230), (220, 220, 60))


# Under nohup, or in the background of a shell: commands that tests start must hear these all the same, and a handler is
# not handed on as SIG_IGN is.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Threads of a rank that wait for each other spin, and take from the tests beside them what they wait for: half of all
# CPU time of a trial on a busy host.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")


# Examples share the machine with other tests: how long one takes says nothing of the code.
hypothesis.settings.register_profile("shared machine", deadline=None)
hypothesis.settings.load_profile("shared machine")


def pytest_xdist_auto_num_workers() -> int:
    """Two a core: half of their time tests wait for processes that start, sleep or end."""
    return 2 * len(os.sched_getaffinity(0))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests of a GPU may be asked for where there is only one."""
    if item.get_closest_marker("multigpu") and torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA GPUs")


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder for all users: pytest's own, and TMPDIR perhaps, lie where only root may go."""
    shared = Path(tempfile.mkdtemp(dir="/tmp"))
    shared.chmod(0o1777)
    umask = os.umask(0o022)
    yield shared
    os.umask(umask)
    shutil.rmtree(shared)


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    """One warm fork server for all tests: starting it takes seconds."""
    running = ForkServer()
    yield running
    running.close()


@pytest.fixture(scope="session")
def warm_command() -> Iterator[WarmCommand]:
    """Starts `gpubench` commands that need not import anything first."""
    warm = WarmCommand()
    yield warm
    warm.close()


@pytest.fixture(scope="session")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 training and 64 validation images of 28 × 28 in four classes that a colour tells apart."""
    root = tmp_path_factory.mktemp("colours")
    draw = np.random.default_rng(0)
    for split, count in (("train", 256), ("val", 64)):
        for k in range(count):
            target = root / split / f"class{k % 4}"
            target.mkdir(parents=True, exist_ok=True)
            noise = draw.normal(0, 30, (SIZE, SIZE, 3))
            pixels = np.clip(np.array(CLASSES[k % 4]) + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(target / f"{k:04}.png")
    return root


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """One trial, over."""

    done: Attempt
    outcome: Outcome
    log: str
    order: TrialOrder
    step_ms: list[float]
    """Of each measured step, as stored."""

    @property
    def status(self) -> str:
        return self.outcome.status

    @property
    def reason(self) -> str:
        return self.outcome.reason

    @property
    def seconds(self) -> float:
        return self.done.finished - self.done.launched


def no_look(progress: object) -> None:
    """Nobody looks on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """One trial, as a test wants it."""

    job: Job
    facts: DataFacts
    data: Path | None

    def order(self, resolved: ResolvedTrial, scratch: Path, known_gmacs: float | None) -> TrialOrder:
        """The order to its processes, whose log and files lie in `scratch`."""
        log = scratch / "trial.log"
        log.touch()
        made = make_trial_order(
            self.job,
            resolved,
            data=make_data_spec(self.job, resolved, self.facts, self.data),
            log=log,
            known_gmacs=known_gmacs,
        )
        return structs.replace(made, scratch=scratch)

    def ran(self, resolved: ResolvedTrial, order: TrialOrder, done: Attempt) -> Ran:
        """What came of it."""
        log = order.log
        taken_along: tuple[Ended, str] | None = None
        if done.cut_by is not None:
            taken_along = ("skipped", f"job {done.cut_by} of the group has ended")
        ended = make_outcome(self.job, resolved, done, taken_along or done.forced)
        steps = list_step_rows(done.events, done.launched)
        return Ran(
            done=done,
            outcome=ended,
            log=log.read_text(),
            order=order,
            step_ms=[ms for *_, ms in steps],
        )


def asked(*, data: Path | None, cpu: tuple[Any, ...] = (), **fields: Any) -> Asked:
    """Small defaults, and any trial field by name."""
    values: dict[str, Any] = {
        "model": "lenet",
        "device": "cpu",
        "batch_size": 32,
        "workers": 1 if data else 0,
        "epochs": 2,
        "cpus": 1,
        "memory_format": "contiguous",
        "input_size": SIZE,
        **({} if data else {"num_classes": 4, "train_images": 256}),
        **fields,
    }
    variant = catalog.InputVariant(files="resized", cpu=cpu) if data else catalog.VARIANTS["synthetic"]
    job = Job(trial=make_trial(values), trial_id="t0", config_id="c0", variant=variant)
    return Asked(job=job, facts=folder.collect_folder_facts(data) if data else no_data(), data=data)


@pytest.fixture(scope="session")
def ask() -> Callable[..., Asked]:
    """Makes a trial as `train` runs it: for tests that run it in their own way."""
    return asked


Train = Callable[..., Ran]
TrainTogether = Callable[..., list[Ran]]


@pytest.fixture
def train(server: ForkServer, colours: Path, tmp_path: Path) -> Train:
    """Runs a trial as the runner does: small defaults, and any trial field by name.

    `cpu`: transforms in place of none. `data=None`: the synthetic variant.
    `known_gmacs=None`: count them.
    """

    def run(
        *,
        data: Path | None = colours,
        cpu: tuple[Any, ...] = (),
        launcher: ForkServer = server,
        timeout_s: float = 60,
        should_stop: Callable[[], bool] = lambda: False,
        look: Callable[[JobProgress], None] = no_look,
        known_gmacs: float | None = 0.0,
        scratch_in: Path = tmp_path,
        **fields: Any,
    ) -> Ran:
        one = asked(data=data, cpu=cpu, **fields)
        nvml = open_nvml() if one.job.trial.device != "cpu" else None
        machine = environment.make_machine(nvml)
        resolved = resolve_alone(one.job, machine, one.facts, "cpu")
        with tempfile.TemporaryDirectory(dir=scratch_in) as scratch:
            order = one.order(resolved, Path(scratch), known_gmacs)
            watcher = Watcher(nvml, machine, resolved.gpu_uuids, resolved.cpu_ids)
            (done,) = run_attempt(
                [order],
                [watcher],
                launcher,
                timeout_s=timeout_s,
                should_stop=should_stop,
                look=lambda progress: look(*progress),
            )
            return one.ran(resolved, order, done)

    return run


@pytest.fixture
def train_together(server: ForkServer, colours: Path, tmp_path: Path) -> TrainTogether:
    """Runs jobs side by side as the runner does: trial fields of each, and those that all have.

    They share CPUs, and read the coloured images unless `data=None`. A job that another's end took along is `skipped`.
    """

    def run(
        *jobs: dict[str, Any],
        launcher: ForkServer = server,
        timeout_s: float = 60,
        should_stop: Callable[[], bool] = lambda: False,
        look: Callable[[Sequence[JobProgress]], None] = no_look,
        **fields: Any,
    ) -> list[Ran]:
        alone = [asked(**{"data": colours, **fields, **own}) for own in jobs]
        group = [replace(one, job=placed(one.job, k, len(jobs))) for k, one in enumerate(alone)]
        facts = {id(one.job): one.facts for one in group}
        nvml = open_nvml() if any(one.job.trial.device != "cpu" for one in group) else None
        machine = environment.make_machine(nvml)
        unit = Unit(tuple(one.job for one in group))
        resolved = resolve_unit_trials(unit, machine, lambda job: facts[id(job)], "cpu")
        with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
            orders = []
            for k, (one, mine) in enumerate(zip(group, resolved, strict=True)):
                scratch = Path(folder) / str(k)
                scratch.mkdir()
                orders.append(one.order(mine, scratch, 0.0))
            watchers = [Watcher(nvml, machine, mine.gpu_uuids, mine.cpu_ids) for mine in resolved]
            done = run_attempt(
                orders, watchers, launcher, timeout_s=timeout_s, should_stop=should_stop, look=look
            )
            over = zip(group, resolved, orders, done, strict=True)
            return [one.ran(mine, spec, end) for one, mine, spec, end in over]

    return run


def placed(job: Job, number: int, size: int) -> Job:
    """The job as one of a group."""
    membership = GroupMembership(group="together", group_id="g0", number=number, size=size, solo=job)
    return replace(job, membership=membership)


def no_data() -> DataFacts:
    return DataFacts(
        name="",
        kind="none",
        root=None,
        fingerprint="",
        train_images=256,
        val_images=0,
        num_classes=4,
        size=None,
    )
