"""`gpubench predict` over folders whose figures were made up, so that the answers can be worked out by hand."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import committed
import pytest
import scripted
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands import predict as predict_command
from gpubench.node.environment import Machine
from gpubench.plan.command_line import read_experiment
from gpubench.plan.options import Options
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.results.store import Results
from gpubench.schema import trial
from gpubench.schema.catalog import VARIANTS, BadImages
from gpubench.schema.record import AskedFields, Record, ResultColumns, Status

GPU = "NVIDIA H200, 143771 MiB"
SAID = "NVIDIA H200, 143,771 MiB"
CPUS = 8
FAR = scripted.computer(gpus=2, cpus=CPUS)
"""The machine that has measured."""


def alone(
    batch_size: int, *, epoch: float = 4.0, cpu: float | None = 8.0, busy: float | None = 3.0, **more: Any
) -> Record:
    """A trial alone on one GPU: 4 s per epoch, 2 of 8 CPUs, 3 s of its GPU.

    `more`: parts of the record, or trial fields that were asked for.
    """
    status: Status = more.pop("status", "ok")
    resolved = {"workers": CPUS // 2, "cpus": CPUS, **more.pop("resolved", {})}
    facts = {
        key: more.pop(key)
        for key in ("machine_key", "started_at", "doubts", "data", "attempt")
        if key in more
    }
    asked = {"batch_size": batch_size, "workers": CPUS // 2, **more}
    experiment = read_experiment(None, Options(fields={k: str(v) for k, v in asked.items()}), has_gpu=True)
    (unit,) = expand(experiment, device="cuda", sources=Disk(), cpus=CPUS).units
    (job,) = unit.jobs
    data = Disk().data(job.trial.data)
    return Record(
        trial_id=job.trial_id,
        config_id=job.config_id,
        experiment="alone",
        status=status,
        trial=job.trial.model_dump(mode="json"),
        variant_definition=job.variant.definition(),
        resolved={
            "device": "cuda", "gpus": 1, "gpu_ids": [0], "input_size": 224, "num_classes": data.num_classes,
            "train_images": data.train_images, **resolved,
        },
        result={
            "epoch_time_s": epoch, "epoch_time_iqr_s": 0.0, "epochs_measured": 3, "cpu_s_per_epoch": cpu,
            "gpu_busy_s_per_epoch": busy,
        },
        environment={"cpu_name": "CPU", "gpu_name": "NVIDIA H200", "gpu_count": 2, "cpu_count": CPUS, "mps": "off"},
        **{"machine_key": GPU, "data": data.as_dict(), "started_at": "2026-11-20 09:00:00", **facts},
    )  # fmt: skip


def together(batch: int, slowdowns: Sequence[float], predicted: Sequence[float], at: str) -> list[Record]:
    """Equal jobs of one group, measured at this minute."""
    group_id, size = f"g{batch:012}", len(slowdowns)
    return [
        alone(batch, started_at=f"2026-11-20 {at}:00").model_copy(
            update={
                "trial_id": f"j{batch:08}{number:04}",
                "config_id": f"c{batch:08}{number:04}",
                "group": f"{size} copies",
                "group_id": group_id,
                "job": f"{number + 1} of {size}",
                "result": ResultColumns(
                    {
                        "epoch_time_s": 4.0,
                        "slowdown": slow,
                        "predicted_slowdown": told,
                        "group_id": group_id,
                    }
                ),
            }
        )
        for number, (slow, told) in enumerate(zip(slowdowns, predicted, strict=True))
    ]


def folder(path: Path, *units: Record | list[Record]) -> Path:
    for number, unit in enumerate(units):
        records = unit if isinstance(unit, list) else [unit.model_copy(update={"attempt": number + 1})]
        Results(path).save(records, [[] for _ in records], ["t"])
    return path


class Asked:
    """`predict` as the command line calls it, and what it wrote."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *folders: Path, experiment: Path | None = None, markdown: bool = False, pairs: bool = False,
                 jobs: Sequence[str] = (), bad_images: str | None = None, **fields: str) -> str:  # fmt: skip
        options = Options(fields=fields, jobs=tuple(jobs), pairs=pairs, bad_images=bad_images)
        code = predict_command.predict(list(folders), options, experiment=experiment, markdown=markdown)
        out, err = self._capsys.readouterr()
        assert (code, err) == (0, "")
        return out


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(capsys)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is the one that has measured."""
    monkeypatch.setattr(predict_command.environment, "machine", lambda _: FAR)


def answers(text: str) -> str:
    """Without the last line, which names the folders."""
    return text.partition("\nBy the rows in ")[0]


TWO = ("batch_size=16,workers=4", "batch_size=32,workers=4")

# ---------------------------------------------------------------- answers


@pytest.mark.usefixtures("far")
def test_two_jobs_on_one_gpu(tmp_path: Path, asked: Asked) -> None:
    """Each needs 0.75 of the GPU, of which 0.885 is left to two: 1.69 times as long."""
    place = folder(tmp_path / "one", alone(16), alone(32))
    assert asked(place, jobs=TWO) == (
        f"By results of {SAID} (2 GPUs, 8 CPUs).\n"
        "\n"
        "16 workers=4 & 32 workers=4\n"
        "\n"
        "                                     alone  predicted    times\n"
        "job                                      s          s  as long\n"
        "-----------------------------------  -----  ---------  -------\n"
        "1 of 2: mobilenet_v2 crop-resize 16   4.00       6.78     1.69\n"
        "2 of 2: mobilenet_v2 crop-resize 32   4.00       6.78     1.69\n"
        "\n"
        "Predicted: partly parallel (overlap gain 0.18); jobs would wait for GPU time.\n"
        "One epoch of each job that uses it takes at least 6.00 s of GPU 0, and 2.00 s of the CPUs.\n"
        "Each row is of one process only.\n"
        "\n"
        f"By the rows in {place}, no group has been predicted and measured on {SAID} so far; "
        f"`gpubench sweep --out {place}` with two or more --job, or with --copies, does both.\n"
    )


def test_elsewhere_it_says_whose_results_they_are(tmp_path: Path, asked: Asked) -> None:
    mine = folder(tmp_path / "one", alone(16), alone(32))
    other = folder(tmp_path / "two", alone(16, epoch=9.0, machine_key="Titan, 12196 MiB"))
    text = asked(mine, other, jobs=TWO)
    assert text.startswith(
        f"By results of {SAID} (2 GPUs, 8 CPUs), which is not this machine. "
        "Results of Titan, 12,196 MiB are left out.\n"
    )
    assert "9.00" not in text


@pytest.mark.usefixtures("far")
def test_rows_lie_in_several_folders_or_wherever_sweeps_put_them(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = folder(tmp_path / "one", alone(16)), folder(tmp_path / "two", alone(32))
    (tmp_path / "empty" / "records").mkdir(parents=True)
    named = asked(one, two, tmp_path / "empty", jobs=TWO)
    monkeypatch.setenv("GPUBENCH_OUT", str(tmp_path))
    assert answers(asked(jobs=TWO)) == answers(named)
    with pytest.raises(UnusableError, match=r"32 .*was not measured alone"):
        asked(one, jobs=TWO)


@pytest.mark.usefixtures("far")
def test_repeats_are_told_by_their_geometric_mean(tmp_path: Path, asked: Asked) -> None:
    again = [alone(16, epoch=epoch, seed=seed) for seed, epoch in enumerate((3.9, 4.5, 9.0))]
    text = asked(folder(tmp_path, *again), copies="2", batch_size="16", workers="4")
    assert text.count("5.41") == 2  # the third root of 3.9 × 4.5 × 9.0
    assert "9.00" not in text


@pytest.mark.usefixtures("far")
def test_other_gpus_will_do_and_other_workers_are_told(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32, workers=8, resolved={"workers": 8}))
    text = asked(place, jobs=["batch_size=16,workers=4,gpu_ids=1", "batch_size=32,workers=4,gpu_ids=1"])
    assert "mobilenet_v2 crop-resize 16@1   4.00" in text
    assert "6.00 s of GPU 1" in text
    assert "mobilenet_v2 crop-resize 32@1: would have 4 workers, had 8 alone.\n" in text
    assert "16@1: would" not in text


@pytest.mark.usefixtures("far")
def test_the_row_with_the_same_workers_counts(tmp_path: Path, asked: Asked) -> None:
    more = alone(16, epoch=1.0, workers=8, resolved={"workers": 8}, started_at="2026-11-21 09:00:00")
    text = asked(folder(tmp_path, alone(16), more), batch_size="16", copies="2", workers="4")
    assert "4.00" in text
    assert "alone." not in text


@pytest.mark.usefixtures("far")
def test_an_allowance_of_other_cpus_is_no_repeat(tmp_path: Path, asked: Asked) -> None:
    fewer = alone(16, epoch=8.0, resolved={"cpus": 4}, started_at="2026-11-21 09:00:00")
    ask = {"batch_size": "16", "copies": "2", "workers": "4"}
    own, others = folder(tmp_path / "a", alone(16)), folder(tmp_path / "b", fewer)
    assert answers(asked(own, others, **ask)) == answers(asked(own, **ask))
    assert "all jobs: would have 8 CPUs, had 4 alone.\n" in asked(others, **ask)


@pytest.mark.usefixtures("far")
def test_doubtful_rows_make_doubtful_answers(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16, doubts={"other-load": "Busy.", "short-epochs": "Short."}), alone(32))
    text = asked(place, jobs=TWO)
    assert "mobilenet_v2 crop-resize 16: row alone has doubts (other-load, short-epochs).\n" in text
    assert "Predicted: perhaps partly parallel (overlap gain 0.18); by these rows jobs would wait for" in text
    assert "Somebody else's work" in text


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("code", ["other-load", "stranger"])
@pytest.mark.parametrize("busy", [0.2, 1.5, 4.0])
@pytest.mark.parametrize("markdown", [True, False])
def test_no_verdict_from_rows_beside_other_work_is_sure(
    tmp_path: Path, asked: Asked, code: str, busy: float, markdown: bool
) -> None:
    """Of one process or of three, one of which was disturbed; whatever the verdict."""
    one = [alone(16, busy=busy, doubts={code: "Busy."}), alone(32, busy=busy)]
    three = [alone(16, busy=busy, seed=seed) for seed in (7, 9)]
    for place in (folder(tmp_path / "one", *one), folder(tmp_path / "three", *one, *three)):
        text = asked(place, jobs=TWO, markdown=markdown)
        (verdict,) = (line for line in text.splitlines() if "Predicted: " in line)
        assert "Predicted: perhaps " in verdict
        assert "by these rows" in verdict
        assert verdict.endswith(
            "Somebody else's work took a part of the machine while trials ran alone, so on a quiet one jobs may slow "
            "each other down more than this."
        )


def wide(batch: int, busy: float, **more: Any) -> Record:
    """An epoch of 100 steps; on two GPUs unless said otherwise."""
    record = alone(batch, busy=busy, resolved={"gpus": 2, "gpu_ids": [0, 1], **more.pop("resolved", {})},
                   **{"gpus": 2, "strategy": "ddp"} | more)  # fmt: skip
    result = ResultColumns({**vars(record.result), "images_per_epoch": 100 * batch})
    return record.model_copy(update={"result": result})


@pytest.mark.usefixtures("far")
def test_waiting_for_gradients_is_estimated_by_rows_of_one_gpu(tmp_path: Path, asked: Asked) -> None:
    """Each GPU is busy for 3 of 4 s; one that has 8 images a step, as each of them, is so for 1.5 s."""
    ask = {"batch_size": "16", "copies": "2", "gpus": "2", "strategy": "ddp", "workers": "4"}
    place = folder(tmp_path / "one", wide(16, 6.0))
    assert "at least 6.00 s of each of GPU 0 and GPU 1" in asked(place, **ask)
    single = wide(8, 1.5, gpus=1, strategy="single", resolved={"gpus": 1, "gpu_ids": [0]})
    text = asked(place, folder(tmp_path / "two", single), **ask)
    assert "at least 3.00 s of each of GPU 0 and GPU 1" in text
    assert "left out: at least 50 % of the GPU time of 1 of 2: mobilenet_v2 crop-resize 16" in text
    assert "Predicted: parallel" in text


# ---------------------------------------------------------------- no answer


@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    ("record", "why"),
    [
        (
            alone(64),
            r"resize 32 was not measured alone on NVIDIA H200, 143,771 MiB; to measure: gpubench sweep ",
        ),
        (alone(32, memory_format="contiguous"), r"\(the nearest row has memory_format=contiguous\)"),
        (alone(32, status="oom"), r"\(alone it ended as out of memory\)|out of memory alone"),
        (alone(32, status="failed"), r"\(alone it ended as failed\)"),
        (
            alone(32, data={"fingerprint": "other"}).model_copy(update={"config_id": "c1"}),
            r"has other images of that name\)",
        ),
    ],
)
def test_a_job_that_was_not_measured_alone(tmp_path: Path, asked: Asked, record: Record, why: str) -> None:
    place = folder(tmp_path, alone(16), record)
    with pytest.raises(UnusableError, match=why):
        asked(place, jobs=TWO)


@pytest.mark.usefixtures("far")
def test_what_is_missing_can_be_typed_as_it_stands(tmp_path: Path, asked: Asked) -> None:
    many = "model=resnet34,batch_size=32,cudnn_benchmark=true,gpu_ids=0+1,cpus=4,lr=0.0123456789,width=1.0"
    jobs = ["batch_size=16,workers=4", many]
    with pytest.raises(UnusableError) as raised:
        asked(folder(tmp_path, alone(16)), jobs=jobs)
    order, _, out = str(raised.value).partition("to measure: gpubench sweep ")[2].partition(" --out ")
    assert "\n" not in str(raised.value)
    assert out == str(tmp_path)
    fields = dict(word.split("=") for word in order.split() if word != "--set")
    experiment = read_experiment(None, Options(fields=fields), has_gpu=True)
    (unit,) = expand(experiment, device="cuda", sources=Disk(), cpus=CPUS).units
    t = unit.jobs[0].trial
    assert (t.model, t.batch_size, t.gpu_ids, t.cpus, t.strategy) == ("resnet34", 32, (0, 1), 4, "ddp")
    assert (t.cudnn_benchmark, t.lr) == (True, 0.0123456789), (
        "all digits of a number, lest it be another trial"
    )


@pytest.mark.usefixtures("far")
def test_what_was_not_measured_alone_is_named_in_place_of_a_number(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16, busy=None), alone(32))
    with pytest.raises(UnusableError, match="not known of the trials alone: GPU seconds an epoch"):
        asked(place, jobs=TWO)
    apart = asked(place, jobs=[f"{job},gpu_ids={n}" for n, job in enumerate(TWO)])
    assert "jobs would wait for nothing that they share" in apart, "on GPUs of their own it plays no part"


@pytest.mark.usefixtures("far")
def test_what_nobody_asked_for_is_as_in_the_rows_and_is_said(tmp_path: Path, asked: Asked) -> None:
    """The folder holds resnet50 in bf16 alone: that is meant, not the built-in experiment's network."""
    others = {"model": "resnet50", "precision": "bf16"}
    place = folder(tmp_path, alone(16, **others), alone(32, **others))
    said = asked(place, jobs=TWO)
    assert "What was not asked for is as in these rows: model=resnet50, precision=bf16." in said
    assert "1 of 2: resnet50 crop-resize 16" in said
    copies = asked(place, copies="2")
    assert "model=resnet50, precision=bf16, batch_size=16,32." in copies
    assert "2 copies (batch_size=32)" in copies
    assert "2 copies (batch_size=64)" not in copies
    with pytest.raises(UnusableError, match="mobilenet_v2 crop-resize 16 was not measured alone"):
        asked(place, copies="2", model="mobilenet_v2", batch_size="16")


@pytest.mark.usefixtures("far")
def test_more_than_the_machine_has(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32))
    with pytest.raises(UnusableError, match="needs 6 GPUs, this machine shows 2"):
        asked(place, jobs=["batch_size=16,gpu_ids=5", "batch_size=32"])
    with pytest.raises(UnusableError, match="needs 16 CPUs for jobs pinned"):
        asked(place, cpu_sharing="pinned", cpus="8", copies="2", batch_size="16")


@pytest.mark.usefixtures("far")
def test_what_makes_no_sense(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16))
    for fields in ({"batch_size": "16"}, {"batch_size": "16", "copies": "1"}):
        with pytest.raises(UsageError, match="there are no jobs to predict"):
            asked(place, **fields)
    with pytest.raises(UsageError, match="runs beside none"):
        asked(place, jobs=["batch_size=16"])
    with pytest.raises(UnusableError, match="is not a results folder"):
        asked(place, tmp_path / "gone", jobs=TWO)


@pytest.mark.usefixtures("far")
def test_rows_of_the_cpu_answer_for_jobs_on_the_cpu(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32))
    with pytest.raises(UnusableError, match="no trial in these results ended ok with device cpu"):
        asked(place, jobs=[f"{job},device=cpu" for job in TWO])
    mixed = [TWO[0], f"{TWO[1]},device=cpu"]
    with pytest.raises(UnusableError, match=r"32 device=cpu .*was not measured alone"):
        asked(place, jobs=mixed)


@pytest.mark.usefixtures("far")
def test_what_is_measured_by_the_advised_command_is_found_by_the_same_question(
    tmp_path: Path, asked: Asked
) -> None:
    """The command is whole, the last thing in its line, and writes where predict looks."""
    place = folder(tmp_path / "my results", alone(16))
    with pytest.raises(UnusableError) as raised:
        asked(place, jobs=["batch_size=16", "batch_size=32", "batch_size=64"], pairs=True, workers="4")
    assert (
        f"by the rows in {place}, mobilenet_v2 crop-resize 32 was not measured alone on {SAID} (2 groups"
        in str(raised.value)
    )
    order = str(raised.value).partition("; to measure: ")[2]
    assert shlex.split(order)[-2:] == ["--out", str(place)]
    assert order.endswith(f" --out '{place}'")


@pytest.mark.usefixtures("far")
def test_of_several_folders_the_first_with_rows_of_this_machine_is_for_more(
    tmp_path: Path, asked: Asked
) -> None:
    other = folder(tmp_path / "other", alone(32, machine_key="Titan, 12196 MiB"))
    own = folder(tmp_path / "own", alone(16))
    with pytest.raises(UnusableError, match=rf"by the rows in {other} and {own}, .* --out {own}$"):
        asked(other, own, jobs=TWO)


@pytest.mark.usefixtures("far")
def test_what_lies_where_sweeps_put_it_needs_no_folder(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path / "one", alone(16))
    monkeypatch.setenv("GPUBENCH_OUT", str(tmp_path))
    with pytest.raises(UnusableError, match=rf"by the rows in {tmp_path}, .* --set workers=4$"):
        asked(jobs=TWO)


def test_what_another_machine_lacks_is_to_be_measured_there(tmp_path: Path, asked: Asked) -> None:
    with pytest.raises(UnusableError, match="; to measure, on such a machine: gpubench sweep "):
        asked(folder(tmp_path, alone(16)), jobs=TWO)


@pytest.mark.usefixtures("far")
def test_where_nothing_ended_ok_the_command_measures_into_the_same_folder(
    tmp_path: Path, asked: Asked
) -> None:
    place = folder(tmp_path, alone(16))
    with pytest.raises(
        UnusableError, match=rf"; to measure some: gpubench sweep --out {place} --device cpu$"
    ):
        asked(place, jobs=[f"{job},device=cpu" for job in TWO])


@pytest.mark.usefixtures("far")
def test_a_file_s_own_variant_is_measured_by_the_file_with_the_same_options(
    tmp_path: Path, asked: Asked
) -> None:
    (tmp_path / "file.toml").write_text(
        'name = "own"\n[variants.crop-resize]\ncpu = ["RandomHorizontalFlip"]\n'
    )
    place = folder(tmp_path / "one", alone(16))
    with pytest.raises(UnusableError) as raised:
        asked(place, experiment=tmp_path / "file.toml", jobs=TWO, width="0.5", bad_images="skip")
    order = str(raised.value).partition("; to measure: ")[2]
    said = f"gpubench sweep {tmp_path / 'file.toml'} --set width=0.5 --job {TWO[0]} --job {TWO[1]} --bad-images skip"
    assert order == f"{said} --out {place}"


# ---------------------------------------------------------------- several groups

FILE = """
name = "several"
[fixed]
model = "mobilenet_v2"
workers = 4
[axes]
precision = ["fp32", "bf16"]
[[group]]
name = "small"
jobs = [{batch_size = 16}, {batch_size = 32}]
[[group]]
name = "large"
jobs = [{batch_size = 16}, {batch_size = 64}]
"""


@pytest.mark.usefixtures("far")
def test_every_group_of_a_file_is_answered_where_it_can(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "file.toml").write_text(FILE)
    place = folder(
        tmp_path / "one", alone(16), alone(32), alone(16, precision="bf16"), alone(32, precision="bf16")
    )
    text = asked(place, experiment=tmp_path / "file.toml")
    heads = [line for line in text.splitlines() if line.startswith(("small", "large"))]
    assert heads == [
        "small (precision=fp32)", "large (precision=fp32)", "small (precision=bf16)", "large (precision=bf16)"
    ]  # fmt: skip
    assert text.count("Predicted: partly parallel") == 2
    assert text.count(", mobilenet_v2 crop-resize 64 was not measured alone on ") == 2
    orders = [line for line in text.splitlines() if line.startswith("gpubench sweep ")]
    assert len(orders) == 2
    assert all(line.endswith(f" --out {place}") for line in orders)
    with pytest.raises(
        UnusableError, match=r"small can't be predicted: .* \(3 groups more can't be predicted either\)"
    ):
        asked(folder(tmp_path / "two", alone(16)), experiment=tmp_path / "file.toml")


@pytest.mark.usefixtures("far")
def test_pairs_and_copies(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32), alone(64))
    text = asked(place, jobs=["batch_size=16", "batch_size=32", "batch_size=64"], pairs=True, workers="4")
    assert [line for line in text.splitlines() if " & " in line] == ["16 & 32", "16 & 64", "32 & 64"]
    text = asked(place, copies="2,3", batch_size="16", workers="4")
    assert [line for line in text.splitlines() if "copies" in line][:2] == ["2 copies", "3 copies"]
    assert "3 of 3: mobilenet_v2 crop-resize 16   4.00      10.17     2.54" in text


@pytest.mark.usefixtures("far")
def test_markdown(tmp_path: Path, asked: Asked) -> None:
    text = asked(folder(tmp_path, alone(16), alone(32)), jobs=TWO, markdown=True)
    assert "\n\n**16 workers=4 & 32 workers=4**\n\n| job | alone s |" in text
    assert "| 1 of 2: mobilenet_v2 crop-resize 16 | 4.00 | 6.78 | 1.69 |\n" in text


# ---------------------------------------------------------------- images and models that are gone


@pytest.mark.usefixtures("far")
def test_images_that_lie_elsewhere(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    facts = {"fingerprint": "f1", "train_images": 1000, "val_images": 10, "num_classes": 2, "size": 224}
    gone = [
        record.model_copy(update={
            "trial": AskedFields({**vars(record.trial), "data": "data/birds"}), "data": facts, "config_id": f"c{n}",
            "trial_id": f"t{n:012}",
            "resolved": {**record.resolved, "train_images": 1000},
        })
        for n, record in enumerate((alone(16), alone(32)))
    ]  # fmt: skip
    place = folder(tmp_path / "one", *gone)
    assert "Predicted: partly parallel" in asked(place, jobs=TWO, data="data/birds")
    with pytest.raises(UsageError, match="data/bees does not exist"):
        asked(place, jobs=TWO, data="data/bees")


@pytest.fixture
def damaged(tmp_path: Path, colours: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one image that can't be decoded."""
    monkeypatch.setenv("GPUBENCH_DATA", str(tmp_path / "home"))
    root = tmp_path / "images"
    shutil.copytree(colours, root)
    bad = root / "train/class0/0000.png"
    bad.write_bytes(bad.read_bytes()[:-100])
    return root


def of_images(root: Path, policy: BadImages) -> list[Record]:
    """Trials alone on the images of this folder that are used under a policy."""
    facts = Disk(policy).data(str(root)).as_dict()
    return [
        record.model_copy(update={
            "trial": AskedFields({**vars(record.trial), "data": str(root)}), "data": facts,
            "config_id": f"c{n}", "trial_id": f"t{n:012}",
            "resolved": {**record.resolved, "train_images": facts["train_images"], "num_classes": facts["num_classes"]},
        })
        for n, record in enumerate((alone(16), alone(32)))
    ]  # fmt: skip


@pytest.mark.usefixtures("far")
def test_rows_that_left_images_out_answer_for_those_images_and_for_no_others(
    tmp_path: Path, asked: Asked, damaged: Path
) -> None:
    place = folder(tmp_path / "one", *of_images(damaged, "skip"))
    assert "Predicted: partly parallel" in asked(place, jobs=TWO, data=str(damaged), bad_images="skip")
    with pytest.raises(UnusableError, match=r"were left out \(--bad-images skip\)"):
        asked(place, jobs=TWO, data=str(damaged))
    all_of_them = folder(tmp_path / "two", *of_images(damaged, "fail"))
    with pytest.raises(UnusableError, match=r"other images of that name.* --bad-images skip --out \S+two$"):
        asked(all_of_them, jobs=TWO, data=str(damaged), bad_images="skip")


@pytest.mark.usefixtures("far")
def test_a_file_that_skips_bad_images_asks_about_what_is_left(
    tmp_path: Path, asked: Asked, damaged: Path
) -> None:
    (tmp_path / "file.toml").write_text('name = "own"\n[run]\nbad_images = "skip"\n')
    place = folder(tmp_path / "one", *of_images(damaged, "skip"))
    text = asked(place, experiment=tmp_path / "file.toml", jobs=TWO, data=str(damaged))
    assert "Predicted: partly parallel" in text


@pytest.mark.usefixtures("far")
def test_images_that_are_gone_are_not_taken_for_those_that_were_left(
    tmp_path: Path, asked: Asked, damaged: Path
) -> None:
    place = folder(tmp_path / "one", *of_images(damaged, "skip"))
    shutil.rmtree(damaged)
    assert "Predicted: partly parallel" in asked(place, jobs=TWO, data=str(damaged), bad_images="skip")
    with pytest.raises(UsageError, match="does not exist"):
        asked(place, jobs=TWO, data=str(damaged))


@pytest.mark.usefixtures("far")
def test_a_model_whose_file_is_gone(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text("# a net\n")
    place = folder(tmp_path / "one", alone(16, model="nets.py:net"), alone(32, model="nets.py:net"))
    unsure = "all jobs: whether the model's file has changed since is not known.\n"
    assert unsure not in asked(place, jobs=TWO, model="nets.py:net")
    (tmp_path / "nets.py").unlink()
    assert unsure in asked(place, jobs=TWO, model="nets.py:net")


def test_a_variant_of_another_meaning_is_another_one(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "file.toml").write_text(
        'name = "own"\n[fixed]\nworkers = 4\n[[group]]\njobs = [{batch_size = 16}, {batch_size = 32}]\n'
        '[variants.crop-resize]\ncpu = ["RandomHorizontalFlip"]\n'
    )
    with pytest.raises(
        UnusableError, match=r"another variant of that name.* sweep \S+file\.toml --out \S+one$"
    ):
        asked(folder(tmp_path / "one", alone(16), alone(32)), experiment=tmp_path / "file.toml")


# ---------------------------------------------------------------- the published log


def test_the_published_log(asked: Asked) -> None:
    """Together each took 28.5 s."""
    jobs = ["batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3,strategy=dp"]
    text = asked(committed.folder("titan-xp-2021"), jobs=jobs, data="unpublished", input_size="224")
    assert [line.split()[-2] for line in text.splitlines() if " of 3: " in line] == [
        "31.85",
        "30.28",
        "22.22",
    ]
    assert "takes at least 27.61 s of the CPUs" in text
    assert "all jobs: row alone does not state width, " in text
    assert "So far: 3 jobs of 1 group on Titan Xp" in text


LOG = ("batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3,strategy=dp")


def test_jobs_of_other_images_are_told_which_there_are(asked: Asked) -> None:
    """Of the built-in data the log knows nothing; unasked, its own are meant."""
    log = committed.folder("titan-xp-2021")
    with pytest.raises(UnusableError) as raised:
        asked(log, jobs=[*LOG[:2], "batch_size=128,gpu_ids=2+3"], data="procedural")
    why = str(raised.value)
    assert why.count("(the nearest row has data=unpublished)") == 2
    assert "128@2+3 (the nearest row has data=unpublished and strategy=dp)" in why


def test_where_nobody_knows_how_many_cpus_there_were_none_are_too_many(asked: Asked) -> None:
    log = committed.folder("titan-xp-2021")
    ask = {"data": "unpublished", "input_size": "224"}
    known = asked(log, jobs=LOG, **ask)
    said = "all jobs: would have 4 CPUs; row alone does not state how many it had.\n"
    assert "would have" not in known
    assert asked(log, jobs=LOG, **ask, cpus="4").replace(said, "") == known
    assert said in asked(log, jobs=LOG, **ask, cpus="4")
    for cpus in ({}, {"cpus": "4"}):
        with pytest.raises(UnusableError, match=r"how many CPUs Titan Xp, .* is not on record"):
            asked(log, jobs=LOG, **ask, **cpus, cpu_sharing="pinned")


@pytest.mark.parametrize("page", ["docs/side-by-side.md", "results/titan-xp-2021/README.md"])
def test_the_command_that_pages_give_for_the_log_works(page: str) -> None:
    committed.folder("titan-xp-2021")
    found = re.findall(r"gpubench predict (\S.* --job [^#\n]*)", (committed.ROOT / page).read_text("utf-8"))
    assert len(found) == 1
    ended = run(*shlex.split(found[0]), at=committed.ROOT, PYTHONUTF8="1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    lines = [line for line in ended.stdout.decode().splitlines() if " of 3: " in line]
    assert [line.split()[-2] for line in lines] == ["31.85", "30.28", "22.22"]


# ---------------------------------------------------------------- how good answers have been


def test_the_stored_groups_by_the_model_of_this_version(asked: Asked) -> None:
    """Ranks that wait for each other are no longer taken for work: +49 % before, on the second group."""
    text = asked(committed.folder("h200x4-groups-2026"))
    said = re.search(r"By the model of this version: 16 jobs of 6 groups .*", text)
    assert said
    assert "half of the predictions were within 7 %" in said[0]
    assert "the worst was off by −25 %; the predicted verdict was right for 3 of 3 groups;" in said[0]
    assert "+49, +45, +18  1.72, 1.72, 1.72  −2, −6, −25" in text


def compared(solo: Record, slowdown: float, predicted: float) -> list[Record]:
    """Two jobs on one GPU that were compared with this trial."""
    first = together(solo.trial.batch_size, (slowdown,) * 2, (predicted,) * 2, "09:30")
    own = {"solo_id": solo.trial_id, "solo_epoch_time_s": solo.result.epoch_time_s}
    return [
        record.model_copy(update={
            "result": ResultColumns({**vars(record.result), **own}),
            "resolved": {**record.resolved, "cpu_ids": list(range(CPUS))},
        })
        for record in first
    ]  # fmt: skip


@pytest.mark.usefixtures("far")
def test_the_present_model_is_asked_about_the_very_rows_of_the_comparison(
    tmp_path: Path, asked: Asked
) -> None:
    """Another folder's row of the same trial: 1 s of 9 on the GPU, so that it would predict 1.00."""
    solo = alone(16)
    again = alone(16, epoch=9.0, busy=1.0, started_at="2026-11-21 09:00:00")
    assert again.trial_id == solo.trial_id
    group = compared(solo, 1.7, 2.0)
    own = folder(tmp_path / "own", solo, group)
    other, gone = folder(tmp_path / "other", again), folder(tmp_path / "gone", group)
    for places in ((own,), (own, other), (other, own)):
        line = next(text for text in asked(*places).splitlines() if text.startswith("2 copies"))
        assert " ".join(line.split()) == "2 copies 2 1.70, 1.70 2.00, 2.00 +18, +18 1.69, 1.69 0, 0"
    assert "by this version" not in asked(gone, other), "what was predicted then stands"


@pytest.mark.usefixtures("far")
def test_rows_of_hosts_with_other_counts_are_told(tmp_path: Path, asked: Asked) -> None:
    small = alone(32)
    small = small.model_copy(update={"environment": {**small.environment, "gpu_count": 1, "cpu_count": 4}})
    text = asked(folder(tmp_path, alone(16), small), jobs=TWO)
    assert text.splitlines()[0] == (
        f"By results of {SAID} (2 GPUs, 8 CPUs). Some rows were measured where there were 1 GPU, 4 CPUs."
    )


@pytest.mark.usefixtures("far")
def test_groups_of_one_name_and_repeated_runs_are_told_apart(tmp_path: Path, asked: Asked) -> None:
    groups = [together(16, (2.0, 2.0), (2.0, 2.1), "09:01"), together(32, (1.5, 1.5), (1.0, 1.0), "09:02")]
    again = together(16, (2.5, 2.5), (2.0, 2.0), "09:09")
    one, two = folder(tmp_path / "one", *groups), folder(tmp_path / "two", again)
    text = asked(one, two)
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("2 copies")]
    assert sorted(lines) == [
        "2 copies (batch_size=16) 2 2.00, 2.00 2.00, 2.10 0, +5",
        "2 copies (batch_size=16) 2 2.50, 2.50 2.00, 2.00 −20, −20",
        "2 copies (batch_size=32) 2 1.50, 1.50 1.00, 1.00 −33, −33",
    ]
    assert "6 jobs of 3 groups" in text
    assert asked(one, two, one) == text, "a folder that is given twice counts once"


@pytest.mark.usefixtures("far")
def test_groups_are_named_by_their_table_and_with_it_where_another_calls_one_the_same(
    tmp_path: Path, asked: Asked
) -> None:
    def of(table: str, group: list[Record], **more: Any) -> list[Record]:
        return [
            one.model_copy(
                update={
                    "experiment": table,
                    "trial": AskedFields(vars(one.trial) | more),
                    "resolved": one.resolved | more,
                }
            )
            for one in group
        ]

    twice = of("a", together(16, (2.0, 2.0), (2.0, 2.0), "09:01"), precision="bf16")
    plain = of("b", together(32, (2.0, 2.0), (2.0, 2.0), "09:02"), precision="fp32")
    three = of("b", together(64, (3.0,) * 3, (3.0,) * 3, "09:03"), precision="fp32")
    lines = asked(folder(tmp_path, twice, plain, three)).splitlines()
    named = [" ".join(line.split("  ")[0].split()) for line in lines if " copies " in line]
    assert named == ["a: 2 copies", "b: 2 copies", "3 copies"], "precision tells no groups of one table apart"


def test_without_any_group_it_says_how_to_get_one(tmp_path: Path, asked: Asked) -> None:
    assert "no group has been predicted and measured" in asked(folder(tmp_path, alone(16)))


# ---------------------------------------------------------------- the command


def run(*arguments: str, at: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "gpubench", "predict", *arguments], cwd=at,
        capture_output=True, timeout=60, check=False, env={"PATH": "/usr/bin:/bin", **environment},
    )  # fmt: skip


def test_plain_signs_on_a_c_locale() -> None:
    ended = run(str(committed.folder("titan-xp-2021")), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b"+12, +6, -22\n" in ended.stdout


@pytest.mark.parametrize("command", ["sweep", "predict"])
def test_help_asks_for_each_job_once(command: str) -> None:
    """One with copies is enough."""
    code = f"from gpubench.cli.app import app; app(['{command}', '--help'], standalone_mode=False)"
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "300", "PYTHONUTF8": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    (line,) = [line for line in ended.stdout.splitlines() if re.search(r"^\W*--job\b", line)]
    assert "ne of several jobs that run together; give it once for each" in line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["gone"],
            4,
            "gone is not a results folder; name one that gpubench sweep has written, such as ",
        ),
        (["--job", "batch=16"], 2, "did you mean batch_size?"),
        (["--set", "batch_size"], 2, "is not FIELD=VALUES"),
        (["--experiment", "gone.toml", "here"], 2, "gone.toml does not exist"),
        (["--pairs", "here"], 2, "there are no jobs to pair"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path, warm_command: WarmCommand, arguments: list[str], code: int, words: str
) -> None:
    folder(tmp_path / "here", alone(16))
    environment = {"PATH": "/usr/bin:/bin", "GPUBENCH_OUT": str(tmp_path)}
    ended = warm_command.run(("predict", *arguments), cwd=tmp_path, env=environment, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (code, "", 1)
    assert words in ended.stderr


def test_nothing_heavy_is_imported_for_a_thousand_rows(tmp_path: Path) -> None:
    """An answer from a thousand records comes within seconds: pandas and torch would double that, or worse."""
    first = alone(16)
    for number in range(1000):
        record = first.model_copy(update={"trial_id": f"t{number:012}", "config_id": f"c{number:012}"})
        path = Results(tmp_path).part("records", record.trial_id, 1, "json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(record.model_dump_json())
    code = (
        "import sys; from gpubench.cli.app import app\n"
        f"try: app(['predict', {str(tmp_path)!r}, '--set', 'workers=4', '--set', 'batch_size=16', '--copies', '2'],"
        " standalone_mode=False)\n"
        "finally: print({'torch', 'torchvision', 'pandas'} & set(sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "Predicted: partly parallel" in ended.stdout
    assert ended.stdout.endswith("set()\n")


def test_these_records_are_what_a_plan_would_ask_for() -> None:
    """Or else the tests above would test the made-up ids."""
    record = alone(16)
    asked = trial.make({**{k: v for k, v in vars(record.trial).items() if v is not None}})
    fingerprint = Disk().data("procedural").fingerprint
    assert trial.config_id(asked, VARIANTS["crop-resize"].definition(), fingerprint) == record.config_id
    assert isinstance(FAR, Machine)
