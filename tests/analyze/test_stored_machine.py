"""Which machine's results answer, and what they tell of it; images and model files that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import scripted
from msgspec import structs

from gpubench.analyze.predict import RecordedSources, choose_measured_machine
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.schema.record import Record, Status

GPU = "NVIDIA H200, 143771 MiB"


def record(number: int, key: str, status: Status = "ok", **facts: Any) -> Record:
    cuda = "MiB" in key
    environment = {
        "cpu_name": "Xeon" if cuda else key,
        "gpu_count": 4 if cuda else 0,
        "cpu_count": 16,
        "host": "far",
    }
    return Record(
        trial_id=f"t{number:012}",
        config_id=f"c{number:012}",
        experiment="e",
        status=status,
        machine_key=key,
        trial={"data": "birds", "model": "nets.py:net", **facts.pop("trial", {})},
        resolved={"device": "cuda" if cuda else "cpu", "train_images": 96, "num_classes": 3},
        environment=environment,
        started_at=f"2026-11-20 09:{number:02}:00",
        **facts,
    )


def test_this_machine_comes_first_however_few_its_results_are() -> None:
    folders = [[record(n, GPU) for n in range(3)], [record(9, "CPU")]]
    found = choose_measured_machine([*folders[0], *folders[1]], scripted.computer(cpus=3))
    assert (found.key, found.device, found.other_machines) == ("CPU", "cpu", (GPU,))
    assert [r.trial_id for r in found.records] == ["t000000000009"]
    assert (found.is_here, found.machine.cpu_count) == (True, 3)


def test_else_the_machine_with_most_results_and_they_are_never_mixed() -> None:
    far = [record(n, GPU) for n in range(3)]
    found = choose_measured_machine([*far, record(7, "Epyc"), record(8, "Epyc")], scripted.computer(cpus=3))
    assert (found.key, found.is_here, found.other_machines, found.device) == (GPU, False, ("Epyc",), "cuda")
    assert {r.machine_key for r in found.records} == {GPU}
    assert (len(found.machine.gpus), found.machine.cpu_count, found.machine.host) == (4, 16, "far")


def test_a_published_log_comes_last() -> None:
    log = [record(n, "Titan, 12196 MiB", source="published log") for n in range(3)]
    assert choose_measured_machine([*log, record(9, GPU)], scripted.computer()).key == GPU
    assert choose_measured_machine(log, scripted.computer()).key == "Titan, 12196 MiB"


def test_the_cpu_of_a_machine_with_gpus_is_the_same_machine() -> None:
    mixed = [record(1, GPU), record(2, "Xeon"), record(3, "Epyc")]
    found = choose_measured_machine(mixed, scripted.computer())
    assert ({r.machine_key for r in found.records}, found.other_machines) == ({GPU, "Xeon"}, ("Epyc",))
    assert choose_measured_machine(mixed, scripted.computer(), "cpu").device == "cpu"


def measured_where(one: Record, **environment: Any) -> Record:
    return structs.replace(one, environment={**one.environment, **environment})


def test_gpus_hidden_at_present_are_there() -> None:
    here = scripted.computer(gpus=1, cpus=2)
    own = measured_where(record(1, GPU), cpu_name=here.cpu_name)
    found = choose_measured_machine([own], here)
    assert (len(found.machine.gpus), found.machine.cpu_count) == (4, 2)
    elsewhere = choose_measured_machine([record(1, GPU)], here)
    assert (elsewhere.is_here, len(elsewhere.machine.gpus), elsewhere.cpus) == (True, 1, 2)


@pytest.mark.parametrize("newer", [1, 2])
def test_two_hosts_with_one_gpu_model_do_not_become_a_third(newer: int) -> None:
    large = measured_where(record(newer, GPU), cpu_count=64, host="large")
    small = measured_where(record(3 - newer, GPU), gpu_count=1, cpu_count=16, host="small", cpu_name="Epyc")
    found = choose_measured_machine([large, small], scripted.computer())
    assert (len(found.machine.gpus), found.machine.cpu_count) == (4, 64)
    assert (found.machine.host, found.machine.cpu_name) == ("large", "Xeon")


def test_of_rows_with_as_many_gpus_the_newest_counts() -> None:
    rows = [measured_where(record(n, GPU), cpu_count=cpus) for n, cpus in ((1, 64), (3, 8), (2, 32))]
    found = choose_measured_machine(rows, scripted.computer())
    assert (len(found.machine.gpus), found.cpus) == (4, 8)


def test_a_log_need_not_tell_how_many_cpus_there_were() -> None:
    found = choose_measured_machine(
        [measured_where(record(2, GPU), cpu_count=None), record(1, GPU)], scripted.computer()
    )
    assert (len(found.machine.gpus), found.cpus, found.machine.cpu_count) == (4, None, 1)


def test_failed_trials_alone_say_nothing_of_a_machine() -> None:
    with pytest.raises(UnusableError, match=r"no trial in these results ended ok$"):
        choose_measured_machine([record(1, GPU, "oom"), record(2, GPU, "failed")], scripted.computer())
    with pytest.raises(UnusableError, match="ended ok with device cpu"):
        choose_measured_machine([record(1, GPU)], scripted.computer(), "cpu")


def test_a_copied_folder_counts_once_and_another_run_of_a_trial_beside_it() -> None:
    same, again = record(1, GPU), structs.replace(record(1, GPU), started_at="2026-11-21 10:00:00")
    assert len(choose_measured_machine([same, same, again], scripted.computer()).records) == 2


def test_images_and_models_that_are_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = [
        record(1, GPU, data={"fingerprint": "f1", "train_images": 100, "size": 28}),
        record(2, GPU, data={"fingerprint": "none"}),
    ]
    facts = RecordedSources(told).find_data_facts("birds")
    assert (facts.fingerprint, facts.train_images, facts.num_classes, facts.size) == ("f1", 100, 3, 28)
    # Of a resident batch alone, what it left open.
    assert RecordedSources(told[1:]).find_data_facts("birds").train_images == 96
    assert RecordedSources(told).find_model_fingerprint("nets.py:net") == ""
    with pytest.raises(UsageError, match=r"there is no file other\.py"):
        RecordedSources(told).find_model_fingerprint("other.py:net")
    with pytest.raises(UsageError, match="unknown data 'bees'"):
        RecordedSources(told).find_data_facts("bees")
    (tmp_path / "nets.py").write_text("")
    assert RecordedSources(told).find_model_fingerprint("nets.py:net").endswith(":net"), (
        "the disk comes first"
    )
