"""Jobs that `gpubench predict` has no answer for, and what it advises."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest
from made_up_rows import CPUS, SAID, TWO, Asked, alone, folder

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.plan.command_line import read_experiment
from gpubench.plan.options import Options
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.schema.catalog import BadImages
from gpubench.schema.record import AskedFields, Record

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
    """The folder holds resnet50 in fp32 alone: that is meant, not the built-in experiment's network."""
    others = {"model": "resnet50", "precision": "fp32"}
    place = folder(tmp_path, alone(16, **others), alone(32, **others))
    said = asked(place, jobs=TWO)
    assert "What was not asked for is as in these rows: model=resnet50, precision=fp32." in said
    assert "1 of 2: resnet50 crop-resize 16" in said
    copies = asked(place, copies="2")
    assert "model=resnet50, precision=fp32, batch_size=16,32." in copies
    assert "2 copies (batch_size=32)" in copies
    assert "2 copies (batch_size=64)" not in copies
    with pytest.raises(UnusableError, match="resnet34 crop-resize 16 was not measured alone"):
        asked(place, copies="2", model="resnet34", batch_size="16")


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
        f"by the rows in {place}, resnet34 crop-resize 32 was not measured alone on {SAID} (2 groups"
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
    (tmp_path / "file.toml").write_text(
        'name = "own"\n[fixed]\nmodel = "resnet34"\nprecision = "bf16"\n[run]\nbad_images = "skip"\n'
    )
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
        'name = "own"\n[fixed]\nmodel = "resnet34"\nprecision = "bf16"\nworkers = 4\n'
        "[[group]]\njobs = [{batch_size = 16}, {batch_size = 32}]\n"
        '[variants.crop-resize]\ncpu = ["RandomHorizontalFlip"]\n'
    )
    with pytest.raises(
        UnusableError, match=r"another variant of that name.* sweep \S+file\.toml --out \S+one$"
    ):
        asked(folder(tmp_path / "one", alone(16), alone(32)), experiment=tmp_path / "file.toml")
