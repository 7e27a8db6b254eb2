"""Real trials for every test that wants one: a warm fork server, an easy set of images, a way to run them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gpubench import catalog, environment
from gpubench.datasets import folder
from gpubench.datasets.facts import DataFacts
from gpubench.experiment.plan import Job
from gpubench.launch.attempt import Attempt, Order, Progress, attempt, last_words
from gpubench.launch.client import ForkServer, Launcher
from gpubench.launch.outcome import Outcome, outcome
from gpubench.monitor.nvml import open_nvml
from gpubench.monitor.watcher import Watcher
from gpubench.runner import resolve as resolving
from gpubench.trial import make

SIZE = 28
CLASSES = ((230, 40, 40), (40, 230, 40), (40, 40, 230), (220, 220, 60))


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    """One warm fork server for all tests: starting it takes seconds."""
    running = ForkServer()
    yield running
    running.close()


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
    spec: dict[str, Any]
    watcher: Watcher

    @property
    def status(self) -> str:
        return self.outcome.status

    @property
    def reason(self) -> str:
        return self.outcome.reason

    @property
    def seconds(self) -> float:
        return self.done.finished - self.done.launched


def no_look(progress: Progress) -> None:
    """Nobody looks on."""


Train = Callable[..., Ran]


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
        launcher: Launcher = server,
        timeout_s: float = 60,
        should_stop: Callable[[], bool] = lambda: False,
        look: Callable[[Progress], None] = no_look,
        known_gmacs: float | None = 0.0,
        **fields: Any,
    ) -> Ran:
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
        trial = make(values)
        facts = folder.scan(data) if data else no_data()
        variant = catalog.Variant(files="resized", cpu=cpu) if data else catalog.VARIANTS["synthetic"]
        job = Job(trial=trial, trial_id="t0", config_id="c0", variant=variant)
        nvml = open_nvml() if trial.device != "cpu" else None
        machine = environment.machine(nvml)
        resolved = resolving.resolve(job, machine, facts, "cpu")
        with tempfile.TemporaryDirectory(dir=tmp_path) as scratch:
            log = Path(scratch) / "trial.log"
            log.touch()
            spec = resolving.spec(
                job,
                resolved,
                data=resolving.data_spec(job, resolved, facts, data),
                log=log,
                scratch=Path(scratch),
                known_gmacs=known_gmacs,
            )
            watcher = Watcher(nvml, machine, resolved.gpu_uuids, resolved.cpu_ids)
            (done,) = attempt(
                [Order(spec=spec, watcher=watcher)],
                launcher,
                timeout_s=timeout_s,
                should_stop=should_stop,
                look=lambda progress: look(*progress),
            )
            ended = outcome(
                done.events,
                ranks=resolved.processes,
                batch_size=trial.batch_size,
                steps=trial.steps,
                no_quality="the validation split is empty" if data else "synthetic images",
                forced=done.forced,
                last_words=last_words(log),
            )
            return Ran(done=done, outcome=ended, log=log.read_text(), spec=spec, watcher=watcher)

    return run


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
