"""The driver loses a GPU while a sweep runs: the sweep stops and says so, and goes on once the GPU is back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import scripted
from benches import Ended, Heard, run_with, sweep_of
from fake_nvml import FakeNvml, gpu, refused
from scripted import Script, Scripted

from gpubench.basics.errors import UnusableError
from gpubench.plan.experiment_file import parse_experiment
from gpubench.plan.options import apply_options
from gpubench.plan.plan import expand_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results
from gpubench.run.stored_plan import store_plan
from gpubench.schema.order import TrialOrder

BASE = (
    'name = "test"\n[fixed]\nmodel = "lenet"\nvariant = "synthetic"\ninput_size = 28\n'
    "[run]\nrounds = 1\nepochs = 2\n"
)


@dataclass
class Losing(FakeNvml):
    """Every call on a lost GPU says so."""

    lost: dict[str, str] = field(default_factory=dict)
    """uuid -> what the driver says of it."""

    def fail(self, call: str, uuid: str) -> None:
        if uuid in self.lost:
            raise refused(call, self.lost[uuid])
        super().fail(call, uuid)


def sweep(folder: Path, nvml: Losing, script: Script) -> Ended:
    experiment = apply_options(
        parse_experiment(BASE, "test"), ExperimentOptions(fields={"batch_size": "16,32,64"})
    )
    plan = expand_experiment(experiment, device="cuda", sources=DiskSources(), order="given")
    work = sweep_of(plan, folder, scripted.computer(2), nvml=nvml)
    work.load()
    work.runner.results.create_folder()
    store_plan(work)
    launcher = Scripted(lambda _: script)
    try:
        return run_with(launcher, work, Heard())
    finally:
        launcher.close()


@pytest.mark.slow
@pytest.mark.parametrize(("index", "words"), [(0, "GPU is lost"), (1, "Unknown Error")])
def test_a_lost_gpu_ends_the_sweep_after_its_trial_and_the_same_command_goes_on(
    tmp_path: Path, words: str, index: int
) -> None:
    nvml, folder = Losing(), tmp_path / "results"

    def loses(order: TrialOrder) -> Iterator[scripted.Event]:
        nvml.lost[gpu(index).uuid] = words
        yield from scripted.trains(order)

    with pytest.raises(
        UnusableError, match=rf"the driver has lost GPU {index} \({words}\); reset it or reboot"
    ):
        sweep(folder, nvml, loses)
    assert [record.status for record in Results(folder).read_records()] == ["ok"]
    assert (folder / "trials.csv").exists()
    nvml.lost.clear()
    again = sweep(folder, nvml, scripted.trains)
    assert (again.ran, again.reused, again.limits.is_resumable) == (2, 1, False)
    assert [record.status for record in Results(folder).read_records()] == ["ok"] * 3


def test_a_call_that_fails_otherwise_is_no_loss(tmp_path: Path) -> None:
    nvml = Losing(lost={gpu(0).uuid: "Insufficient Permissions"})
    ended = sweep(tmp_path / "results", nvml, scripted.trains)
    assert (ended.ran, ended.limits.is_resumable) == (3, False)
