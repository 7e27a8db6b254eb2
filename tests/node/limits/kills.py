"""Sweeps that limit made-up GPUs, each killed at a random moment: `PYTHONPATH=tests python kills.py FOLDER COUNT SEED`.

Each is a process of its own, with a guardian of its own; their driver is `file_nvml.py`. What runs in place of training
is a script that takes 20 ms; with a fourth argument it is `gpubench sweep -- sleep 0.1`. Prints a line of JSON a sweep;
`test_limits.py` judges them.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
import scripted
from benches import Heard
from file_nvml import DriverFile

from gpubench.basics.errors import GpubenchError
from gpubench.basics.stopping import listen_for_stop_signals
from gpubench.node.limits.kept import put_back_left_settings
from gpubench.node.node import make_this_node
from gpubench.plan.command_line import make_plan, read_experiment
from gpubench.plan.sources import DiskSources
from gpubench.plan.sweep_options import ExperimentOptions
from gpubench.results.store import Results
from gpubench.run import checks
from gpubench.run.limits import Limits
from gpubench.run.stored_plan import store_plan
from gpubench.run.sweep import import_table_modules, measure_rounds
from gpubench.run.sweep_state import SweepState
from gpubench.run.unit_runner import UnitRunner
from gpubench.schema.gpu_look import GpuLook

TESTS = Path(__file__).parents[2]
_NAMES = os.environ["CUDA_VISIBLE_DEVICES"].split(",") if "FILE_DRIVER" in os.environ else ()
GIVEN = tuple(_NAMES) or (f"GPU-{os.getpid()}-a", f"GPU-{os.getpid()}-b")
"""Two GPUs of the tests of one process: locks are the host's."""
FOREIGN = "GPU-foreign"
VICTIMS = (
    "sweep",
    "guardian",
    "sweep and guardian",
    "guardian and sweep",
    "sweep by SIGTERM",
    "sweep twice by SIGTERM",
)
END_S = 60.0


def make_environment(folder: Path) -> dict[str, str]:
    """For processes that ask the made-up driver; nothing of theirs lies outside the folder."""
    path = [str(TESTS / "file_nvml_library"), str(TESTS.parent), str(TESTS), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "FILE_DRIVER": str(folder / "driver.json"),
        "XDG_STATE_HOME": str(folder / "state"),
        "CUDA_VISIBLE_DEVICES": ",".join(GIVEN),
    }


def run_limited_sweep(results: Path, seconds: float = 0.02, util_pct: float = 0.0, **fields: str) -> int:
    """What `gpubench sweep` does from the look at the GPUs on; returns its exit code."""
    node, view = make_this_node(), Heard()
    options = {
        "model": "lenet",
        "variant": "synthetic",
        "input_size": "28",
        "batch_size": "16",
        "epochs": "1",
    } | fields
    experiment = read_experiment(None, ExperimentOptions(fields=options, rounds=1), has_gpu=True)
    plan = make_plan(experiment, node.machine, DiskSources(), "given")
    state = SweepState(plan=plan, runner=UnitRunner.build(plan, node, Results(results), DiskSources()))
    state.load()
    state.runner.results.create_folder()
    store_plan(state)
    planned = state.list_planned_of_all_rounds()
    units = [item.unit for item in planned if item.state == "run"]
    look = GpuLook(power_w=75.0, util_pct=util_pct, compute=(), desktop=())
    node.launcher = scripted.Scripted(lambda _: scripted.lasts(seconds))  # type: ignore[assignment]
    try:
        with listen_for_stop_signals([state.clean_up_before_exit]) as stop:
            limits = Limits.build(state, stop)
            try:
                checks.guard_limits(
                    state, units, dict.fromkeys(GIVEN, look), {u: n for n, u in enumerate(GIVEN)}, view
                )
                print(*view.lines, sep="\n")
                measure_rounds(state, limits, view, lambda _: None)
            finally:
                node.close()
    except GpubenchError as error:
        print(error)
        return error.exit_code
    return 75 if limits.is_resumable else 0


AXES = {"gpu_ids": "0,0+1", "power_limit_w": "200,300,450", "sm_clock_limit_mhz": "900"}


def start_sweep(folder: Path, *, is_command: bool) -> int:
    """Starts one, with scripted trials, or `gpubench sweep` itself, whose trials are commands. Its process id."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    if pid := os.fork():
        return pid
    with (folder / "out").open("w") as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    if is_command:
        options = [
            f"--{name.replace('_', '-')}={values}" for name, values in AXES.items() if name == "gpu_ids"
        ]
        options += [f"--set={name}={values}" for name, values in AXES.items() if name != "gpu_ids"]
        options += ["--rounds=1", f"--out={folder / 'results'}", "--", "sleep", "0.1"]
        os.execv(sys.executable, [sys.executable, "-m", "gpubench", "sweep", *options])
    code = 99
    with contextlib.suppress(Exception):
        code = run_limited_sweep(folder / "results", **AXES)
    os._exit(code)


def kill_at_random(folder: Path, moment: random.Random, life_s: float, *, is_command: bool) -> dict[str, Any]:
    """One sweep, killed. What became of it, and of the GPUs."""
    driver = DriverFile.create(folder / "driver.json", *GIVEN, FOREIGN, slow_s=0.01)
    before = {uuid: moment.choice([700_000, 650_500, 300_000]) for uuid in GIVEN}
    for uuid, limit in before.items():
        driver.change(uuid, limit_mw=limit)
    victim, delay_s = moment.choice(VICTIMS), moment.uniform(0, life_s)
    pid = start_sweep(folder, is_command=is_command)
    time.sleep(delay_s)
    guardians = [
        child
        for child in psutil.Process(pid).children()
        if "gpubench.node.limits.guardian" in child.cmdline()
    ]
    targets: Sequence[tuple[Any, int]] = {
        "sweep": [(pid, signal.SIGKILL)],
        "guardian": [("guardian", signal.SIGKILL)],
        "sweep and guardian": [(pid, signal.SIGKILL), ("guardian", signal.SIGKILL)],
        "guardian and sweep": [("guardian", signal.SIGKILL), (pid, signal.SIGKILL)],
        "sweep by SIGTERM": [(pid, signal.SIGTERM)],
        "sweep twice by SIGTERM": [(pid, signal.SIGTERM), (pid, signal.SIGTERM)],
    }[victim]
    changed = any(
        driver.read_gpu(uuid)["limit_mw"] != before[uuid] or driver.read_gpu(uuid)["clocks"] for uuid in GIVEN
    )
    for number, (target, what) in enumerate(targets):
        time.sleep(moment.choice([0, moment.uniform(0, 0.05)]) if number else 0)
        for process in [pid] if target == pid else [guardian.pid for guardian in guardians]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, what)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    _, alive = psutil.wait_procs(guardians, timeout=END_S)
    kept = sorted(path.name for path in (folder / "state").rglob("GPU-*.json"))
    left = [outcome.trouble for outcome in put_back_left_settings()]
    gpus = {uuid: driver.read_gpu(uuid) for uuid in (*GIVEN, FOREIGN)}
    return {
        "victim": victim,
        "delay_s": round(delay_s, 3),
        "code": code,
        "was_changed": changed,
        "kept": kept,
        "trouble": [trouble for trouble in left if trouble],
        "hanging": len(alive),
        "is_as_before": all(gpus[u]["limit_mw"] == before[u] and gpus[u]["clocks"] is None for u in GIVEN),
        "foreign_sets": gpus[FOREIGN]["sets"],
        "files": sorted(path.name for path in (folder / "state").rglob("*") if path.is_file()),
    }


def main() -> None:
    """Sweeps one after the other; the first is not killed, and tells how long one lasts."""
    folder, count, seed, is_command = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), len(sys.argv) > 4
    if "FILE_DRIVER" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], make_environment(folder))
    import_table_modules()  # which the first sweep alone would pay for
    DriverFile.create(folder / "driver.json", *GIVEN, FOREIGN)
    began = time.monotonic()
    start_sweep(folder, is_command=is_command)
    assert os.wait()[1] == 0, (folder / "out").read_text()
    life_s = time.monotonic() - began
    moment = random.Random(seed)
    for _ in range(count):
        print(json.dumps(kill_at_random(folder, moment, life_s, is_command=is_command)), flush=True)


if __name__ == "__main__":
    main()
