"""Limits on GPUs: set for trials, and as before after any end of sweep and guardian."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pynvml
import pytest
from file_nvml import DriverFile, replace_library
from kills import FOREIGN, GIVEN, make_environment, run_limited_sweep

from gpubench.basics.errors import UnusableError
from gpubench.doctor.gpus import check_left_limits
from gpubench.node.limits import guardian as guarding
from gpubench.node.limits.guard import LimitGuard
from gpubench.node.limits.guardian import GpuLimit, GuardedGpu, Guardian
from gpubench.node.limits.kept import choose_state_folder, put_back_left_settings
from gpubench.node.watch.nvml import NvmlError, PynvmlSetter
from gpubench.results.store import Results
from gpubench.schema.gpu_look import NoRightToSetError, WantedLimits
from gpubench.schema.missing import Unmeasured
from gpubench.schema.record import Record

A, B = GIVEN
ANY_CONTEXT: Any = None
"""The doctor's check of what is left asks for none."""
SET_POWER, LIMIT_CLOCK, FREE_CLOCK = (
    "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks",
)  # fmt: skip
WANTED = {
    A: WantedLimits(power_w=frozenset({200, 300}), clock_mhz=frozenset({900})),
    B: WantedLimits(power_w=frozenset({200})),
}
BEFORE = {A: 650_500, B: 300_000}


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DriverFile]:
    """Three GPUs, two of them given, for this process and those that it starts."""
    for name, value in make_environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    made = DriverFile.create(tmp_path / "driver.json", A, B, FOREIGN)
    for uuid, limit in BEFORE.items():
        made.change(uuid, limit_mw=limit)
    replace_library(pynvml, monkeypatch.setattr)
    yield made
    assert made.read_gpu(FOREIGN)["sets"] == 0


def is_as_before(driver: DriverFile) -> bool:
    gpus = {uuid: driver.read_gpu(uuid) for uuid in GIVEN}
    return all(gpus[uuid]["limit_mw"] == BEFORE[uuid] and gpus[uuid]["clocks"] is None for uuid in GIVEN)


def list_kept() -> list[str]:
    return sorted(path.name for path in choose_state_folder().glob("*"))


def limit(uuid: str, watts: int | None = None, mhz: int | None = None) -> GpuLimit:
    return GpuLimit(uuid=uuid, power_limit_w=watts, sm_clock_limit_mhz=mhz)


def set_one_after_the_other(guard: LimitGuard, *limits: list[GpuLimit]) -> None:
    for each in limits:
        guard.set_limits(each)


def test_limits_hold_until_others_do_and_all_is_as_before_in_the_end(driver: DriverFile) -> None:
    guard = LimitGuard(WANTED)
    assert is_as_before(driver), "nothing is changed before a trial wants it"
    assert list_kept() == [f"{A}.json", f"{B}.json"]
    for first, second, told in (
        (limit(A, 200, 900), limit(B, 200), (200_000, [345, 900], 200_000)),
        (limit(A, 300), limit(B), (300_000, None, BEFORE[B])),
        (limit(A, None, 900), limit(B, 200), (BEFORE[A], [345, 900], 200_000)),
    ):
        guard.set_limits([first, second, limit(FOREIGN, 200)])
        a, b = driver.read_gpu(A), driver.read_gpu(B)
        assert (a["limit_mw"], a["clocks"], b["limit_mw"]) == told
    sets = driver.read_gpu(B)["sets"]
    guard.set_limits([limit(B, 200)])
    assert driver.read_gpu(B)["sets"] == sets, "what is set so already is left alone"
    guard.close()
    guard.close()
    assert is_as_before(driver)
    assert list_kept() == []


@pytest.mark.parametrize("kill", ["before", "after"])
@pytest.mark.parametrize(("call", "at"), [(SET_POWER, 1), (SET_POWER, 2), (LIMIT_CLOCK, 1), (FREE_CLOCK, 1)])
def test_a_guardian_that_is_killed_inside_a_call_is_stood_in_for(
    driver: DriverFile, call: str, at: int, kill: str
) -> None:
    guard = LimitGuard(WANTED)
    driver.inject(**{call: [{"at": at, "kill": kill}]})
    with pytest.raises(UnusableError, match="was killed: all GPUs are as before"):
        set_one_after_the_other(guard, [limit(A, 200, 900), limit(B, 200)], [limit(A, 300), limit(B)])
    guard.close()
    assert is_as_before(driver)
    assert list_kept() == []


@pytest.mark.parametrize("call", [SET_POWER, FREE_CLOCK])
@pytest.mark.parametrize("fault", [{"error": pynvml.NVML_ERROR_UNKNOWN}, {"kill": "before"}])
def test_a_guardian_that_fails_or_is_killed_as_it_puts_back(
    driver: DriverFile, call: str, fault: dict[str, str]
) -> None:
    """It tries again; where it is gone, the sweep does."""
    guard = LimitGuard(WANTED)
    guard.set_limits([limit(A, 200, 900), limit(B, 200)])
    driver.inject(**{call: [{"at": 1, **fault}, {"at": 2, **({"error": 3} if "error" in fault else {})}]})
    guard.close()
    assert is_as_before(driver)
    assert list_kept() == []


@pytest.mark.parametrize("error", [pynvml.NVML_ERROR_UNKNOWN, pynvml.NVML_ERROR_NO_PERMISSION])
def test_what_cannot_be_put_back_is_told_kept_and_repaired_later(driver: DriverFile, error: int) -> None:
    guard = LimitGuard(WANTED)
    guard.set_limits([limit(A, 200, 900), limit(B, 200)])
    driver.inject(**{SET_POWER: [{"at": "every", "error": error}]})
    with pytest.raises(UnusableError) as caught:
        guard.close()
    assert f"sudo nvidia-smi -i {A} -pl 650.5 && sudo nvidia-smi -i {A} -rgc" in str(caught.value)
    assert str(pynvml.NVMLError(error)) in str(caught.value)
    assert list_kept() == [f"{A}.json", f"{B}.json"]
    findings = list(check_left_limits(ANY_CONTEXT))
    assert [finding.verdict for finding in findings] == ["no", "no"]
    assert findings[1].remedy == f"sudo nvidia-smi -i {B} -pl 300"
    driver.inject()
    findings = list(check_left_limits(ANY_CONTEXT))
    assert [finding.verdict for finding in findings] == ["ok", "ok"]
    assert "it is set as before again: 650.5 W and no clock limit" in findings[0].found
    assert is_as_before(driver)
    assert list(check_left_limits(ANY_CONTEXT)) == []


def test_what_somebody_else_has_set_meanwhile_stays(driver: DriverFile) -> None:
    guard = LimitGuard(WANTED)
    guard.set_limits([limit(A, 200), limit(B, 200)])
    driver.change(A, limit_mw=555_000)
    guard.set_limits([limit(A)])
    assert driver.read_gpu(A)["limit_mw"] == 555_000
    guard.close()
    assert (driver.read_gpu(A)["limit_mw"], driver.read_gpu(B)["limit_mw"]) == (555_000, BEFORE[B])
    assert list_kept() == []


@pytest.mark.parametrize("clocks_alone", [False, True])
def test_without_the_right_nothing_is_set(driver: DriverFile, clocks_alone: bool) -> None:
    with driver.open_state() as state:
        state["may_set"] = False
    wanted = {A: WantedLimits(clock_mhz=frozenset({900}))} if clocks_alone else WANTED
    with pytest.raises(NoRightToSetError, match="Insufficient Permissions"):
        LimitGuard(wanted)
    assert (driver.read_gpu(A)["sets"], list_kept()) == (0, [])


@pytest.mark.parametrize("where", ["processes", "desktop"])
def test_a_gpu_that_somebody_else_is_on_is_not_changed(
    driver: DriverFile, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(guarding, "ALONE_S", 0.0)
    gpu = GuardedGpu(uuid=A, power_limits_w=(200,), has_clock_limits=False)
    guardian = Guardian(PynvmlSetter())
    driver.change(A, **{where: [1 << 30]})
    with pytest.raises(NvmlError, match=r"process 1073741824 \(.*\) is on it"):
        guardian.guard([gpu])
    guardian.put_all_back()
    driver.change(A, **{where: []})
    guardian.guard([gpu])
    driver.change(A, **{where: [1 << 30]})
    sets = driver.read_gpu(A)["sets"]
    with pytest.raises(NvmlError, match="is on it"):
        guardian.set_limit(limit(A, 200))
    assert driver.read_gpu(A)["sets"] == sets
    assert guardian.put_all_back() == ""


def test_this_user_s_own_desktop_is_no_obstacle_and_its_computing_is(
    driver: DriverFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarding, "ALONE_S", 0.0)
    gpu = GuardedGpu(uuid=A, power_limits_w=(200,), has_clock_limits=False)
    driver.change(A, desktop=[os.getpid()])
    guardian = Guardian(PynvmlSetter())
    guardian.guard([gpu])
    assert guardian.put_all_back() == ""
    driver.change(A, desktop=[], processes=[os.getpid()])
    with pytest.raises(NvmlError, match="is on it"):
        guardian.guard([gpu])
    guardian.put_all_back()


def test_a_process_that_has_just_ended_is_waited_for(driver: DriverFile) -> None:
    guard = LimitGuard(WANTED)
    driver.change(A, processes=[1 << 30])
    ends = threading.Timer(0.5, lambda: driver.change(A, processes=[]))
    ends.start()
    guard.set_limits([limit(A, 200)])
    assert driver.read_gpu(A)["limit_mw"] == 200_000
    ends.join()
    guard.close()
    assert is_as_before(driver)


def test_a_driver_that_sets_something_else_is_no_limit(driver: DriverFile) -> None:
    guard = LimitGuard(WANTED)
    driver.inject(**{SET_POWER: [{"at": 1, "instead": {"limit_mw": 480_000}}]})
    with pytest.raises(Unmeasured, match="200 W was asked for, and 480 W is read back"):
        guard.set_limits([limit(A, 200)])
    assert is_as_before(driver), "which could not be told from somebody else's later"
    driver.inject(**{SET_POWER: [{"at": 1, "instead": {"limit_mw": 200_400}}]})
    guard.set_limits([limit(A, 200)])
    guard.close()
    assert is_as_before(driver)


def test_two_sweeps_do_not_limit_one_gpu(driver: DriverFile) -> None:
    guard = LimitGuard(WANTED)
    guard.set_limits([limit(A, 200)])
    assert put_back_left_settings() == [], "its sweep lives"
    with pytest.raises(Unmeasured, match="another sweep sets limits on the same GPU"):
        LimitGuard({A: WANTED[A]})
    assert driver.read_gpu(A)["limit_mw"] == 200_000
    guard.close()
    assert is_as_before(driver)


# ---- what is left on disk ----


def leave(driver: DriverFile, **changes: object) -> None:
    """Sweep and guardian killed, at 200 W; and then the file changed so."""
    guard = LimitGuard({A: WantedLimits(power_w=frozenset({200}))})
    guard.set_limits([limit(A, 200)])
    process = psutil.Process(guard._process.pid)
    process.kill()
    process.wait()
    guard._control.close()
    path = choose_state_folder() / f"{A}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    assert driver.read_gpu(A)["limit_mw"] == 200_000


def test_what_another_boot_has_set_the_driver_has_forgotten(driver: DriverFile) -> None:
    leave(driver, boot="another")
    assert put_back_left_settings() == []
    assert driver.read_gpu(A)["limit_mw"] == 200_000, "somebody's own, since"
    assert list_kept() == []


def test_what_an_administrator_has_repaired_is_forgotten(driver: DriverFile) -> None:
    leave(driver)
    driver.change(A, limit_mw=400_000)
    sets = driver.read_gpu(A)["sets"]
    assert put_back_left_settings() == []
    assert (driver.read_gpu(A)["limit_mw"], driver.read_gpu(A)["sets"], list_kept()) == (400_000, sets, [])


def test_a_file_that_nobody_understands_is_told_and_kept(driver: DriverFile) -> None:
    leave(driver, power_limit_w="much")
    (left,) = put_back_left_settings()
    assert "can't be read: power_limit_w must be a number" in left.trouble
    assert list_kept() == [f"{A}.json"]
    assert "then remove that file" in left.remedy


def test_what_a_sweep_has_left_is_not_taken_for_what_was_set_before(driver: DriverFile) -> None:
    leave(driver)
    driver.inject(**{SET_POWER: [{"at": "every", "error": pynvml.NVML_ERROR_UNKNOWN}]})
    assert [left.trouble for left in put_back_left_settings()] == ["power limit: Unknown Error"]
    with pytest.raises(Unmeasured, match="has limits that a killed sweep has left: gpubench doctor says why"):
        LimitGuard({A: WANTED[A]})
    driver.inject()
    assert [left.trouble for left in put_back_left_settings()] == [""]
    assert is_as_before(driver)


def test_gpus_of_other_machines_are_left_alone(driver: DriverFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home may be shared by hosts."""
    leave(driver)
    (choose_state_folder() / f"{A}.json").rename(choose_state_folder() / "GPU-elsewhere.json")
    assert put_back_left_settings() == []
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: (_ for _ in ()).throw(pynvml.NVMLError(9)))
    assert put_back_left_settings() == []
    assert list_kept() == ["GPU-elsewhere.json"]


# ---- sweeps ----


def sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], util_pct: float = 0.0, **fields: str
) -> tuple[int, str, list[Record]]:
    """Exit code, what it said, its records."""
    code = run_limited_sweep(tmp_path / "r", 0.0, util_pct, **fields)
    folder = Results(tmp_path / "r")
    return code, capsys.readouterr().out, folder.read_records() if folder.folder.exists() else []


@pytest.mark.usefixtures("driver")
def test_each_record_tells_the_limit_that_it_was_measured_under(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], driver: DriverFile
) -> None:
    code, said, records = sweep(tmp_path, capsys, power_limit_w="200,300", gpu_ids="0+1")
    assert (code, [record.status for record in records]) == (0, ["ok", "ok"])
    limits = [(r.trial["power_limit_w"], r.environment["gpu_power_limit_w"]) for r in records]
    assert limits == [(200, 200), (300, 300)]
    assert "GPU 1 is limited for its trials (power 200 W and 300 W); afterwards 300 W" in said
    assert is_as_before(driver)
    assert list_kept() == []
    _, _, records = sweep(tmp_path, capsys, gpu_ids="1")
    assert records[-1].environment["gpu_power_limit_w"] == 300
    assert records[-1].environment["gpu_default_limit_w"] == 700


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"power_limit_w": "150,200,800"}, "GPU 0 takes a power_limit_w of 200 to 700 W, not 150 and 800"),
        ({"sm_clock_limit_mhz": "2000"}, "GPU 0 takes a sm_clock_limit_mhz of 345 to 1980 MHz, not 2000"),
    ],
)
def test_a_limit_that_a_gpu_cannot_have_is_refused(
    driver: DriverFile, tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: dict[str, str], words: str
) -> None:
    code, said, records = sweep(tmp_path, capsys, **fields)
    assert (code, records) == (4, [])
    assert words in said
    assert driver.read_gpu(A)["sets"] == 0


def test_a_gpu_whose_processes_cannot_be_seen_is_not_changed_either(
    driver: DriverFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, records = sweep(tmp_path, capsys, 40.0, power_limit_w="200")
    assert (code, records) == (4, [])
    assert "somebody else works on GPU 0, so its limits are not changed" in said
    assert driver.read_gpu(A)["sets"] == 0


def test_without_the_right_the_command_is_told_and_what_is_set_so_is_measured(
    driver: DriverFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with driver.open_state() as state:
        state["may_set"] = False
    code, said, records = sweep(tmp_path, capsys, power_limit_w="250,300", gpus="2")
    assert (code, records) == (4, [])
    assert f"power_limit_w=250 alone is measured after `sudo nvidia-smi -i {A} -pl 250 && sudo" in said
    code, said, _ = sweep(tmp_path, capsys, sm_clock_limit_mhz="900")
    assert code == 4
    assert f"`sudo nvidia-smi -i {A} -lgc 345,900`, without sm_clock_limit_mhz" in said
    for uuid in GIVEN:
        driver.change(uuid, limit_mw=250_000)
    code, said, records = sweep(tmp_path, capsys, power_limit_w="250", gpus="2")
    assert (code, [record.status for record in records]) == (0, ["ok"])
    assert records[0].environment["gpu_power_limit_w"] == 250
    assert "limited" not in said
    assert [driver.read_gpu(uuid)["sets"] for uuid in GIVEN] == [0, 0]


def test_a_limit_that_is_not_set_fails_its_trial_alone(
    driver: DriverFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    driver.inject(**{SET_POWER: [{"at": 3, "error": pynvml.NVML_ERROR_TIMEOUT}]})
    _, _, records = sweep(tmp_path, capsys, power_limit_w="200,250,300")
    endings = {record.trial["power_limit_w"]: (record.status, record.reason) for record in records}
    assert endings == {200: ("ok", ""), 250: ("failed", "power limit: Timeout"), 300: ("ok", "")}
    assert is_as_before(driver)


def run_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpubench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)


@pytest.mark.slow
def test_the_commands_themselves_limit_and_repair(driver: DriverFile, tmp_path: Path) -> None:
    def sweep_under(limits: str) -> subprocess.CompletedProcess[str]:
        options = [
            "--gpus",
            "2",
            "--rounds",
            "1",
            "--out",
            str(tmp_path / "r"),
            "--set",
            f"power_limit_w={limits}",
        ]
        return run_command("sweep", *options, "--", "sleep", "0.1")

    leave(driver)
    done = sweep_under("200,300")
    assert done.returncode == 0, done.stderr
    assert f"{A} was left with a sweep's limits; it is set as before again: 650.5 W" in done.stderr
    assert "GPU 0 is limited for its trials (power 200 W and 300 W); afterwards 650.5 W" in done.stderr
    records = Results(tmp_path / "r").read_records()
    assert {record.trial["power_limit_w"] for record in records} == {200, 300}
    assert all(r.environment["gpu_power_limit_w"] == r.trial["power_limit_w"] for r in records)
    assert is_as_before(driver)
    refused = sweep_under("100")
    assert (refused.returncode, refused.stderr.count("takes a power_limit_w of 200 to 700 W, not 100")) == (
        4,
        1,
    )
    leave(driver)
    assert (
        f"{A} was left with a sweep's limits; it is set as before again: 650.5 W"
        in run_command("doctor").stdout
    )
    assert is_as_before(driver)
    assert list_kept() == []


# ---- kills at random moments ----


def kill(folder: Path, count: int, *arguments: str) -> None:
    """So many sweeps. None leaves a limit changed, whoever is killed."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("kills.py")), str(folder), str(count), *arguments],
        env=make_environment(folder), capture_output=True, text=True, check=True,
    )  # fmt: skip
    ended = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(ended) == count
    for one in ended:
        assert one["is_as_before"], one
        assert (one["trouble"], one["hanging"], one["foreign_sets"], one["files"]) == ([], 0, 0, []), one
        assert not one["kept"] or "and" in one["victim"], "of two, one that lives puts back"
    assert count < 20 or any(one["was_changed"] for one in ended), "some were killed while a limit was set"


def test_few_random_kills(tmp_path: Path) -> None:
    kill(tmp_path, 6, "1")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 20))
def test_two_hundred_random_kills(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, 20, str(seed))


@pytest.mark.slow
def test_random_kills_of_the_command_itself(tmp_path: Path) -> None:
    kill(tmp_path, 20, "3", "gpubench sweep")
