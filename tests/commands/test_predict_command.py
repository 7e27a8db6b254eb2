"""What `gpubench predict` answers, over folders whose figures were made up, and over a published log."""

from __future__ import annotations

import dataclasses
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import committed
import pytest
from made_up_rows import CPUS, FAR, SAID, TWO, Asked, alone, folder, run_predict, together
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands import predict as predict_command
from gpubench.node.environment import Machine
from gpubench.plan.command_line import read_experiment
from gpubench.plan.plan import expand
from gpubench.plan.sources import Disk
from gpubench.plan.sweep_options import Options
from gpubench.schema import trial
from gpubench.schema.catalog import VARIANTS, BadImages
from gpubench.schema.record import AskedFields, Record


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(capsys)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is the one that has measured."""
    monkeypatch.setattr(predict_command.environment, "machine", lambda _: FAR)


def list_predicted(text: str) -> list[str]:
    """The predicted seconds of jobs that have not run together, in their order."""
    return re.findall(r" \d+ of \d+: [^:]*? \d+\.\d\d (\d+\.\d\d) \d+\.\d\d", text)


def list_commands(asked: Asked, *folders: Path, **options: object) -> list[str]:
    """What measures what is lacking, as it is printed."""
    text = asked(*folders, markdown=True, **options)  # type: ignore[arg-type]
    return [line.strip() for line in text.splitlines() if line.startswith("    gpubench sweep")]


# ---- answers ----


@pytest.mark.usefixtures("far")
def test_two_jobs_on_one_gpu(tmp_path: Path, asked: Asked) -> None:
    """Each needs 0.75 of the GPU, of which 0.885 is left to two: 1.69 times as long."""
    text = asked(folder(tmp_path, alone(16), alone(32)), jobs=TWO)
    assert text.startswith(f"By results of {SAID} (2 GPUs, 8 CPUs). ")
    assert re.findall(r"crop-resize (\d+) (\d+\.\d+) (\d+\.\d+) (\d+\.\d+)", text) == [
        ("16", "4.00", "6.78", "1.69"),
        ("32", "4.00", "6.78", "1.69"),
    ]
    assert "(unknown, gain 0.18)" in text
    assert re.findall(r"(\d+\.\d+) s of (GPU 0|the CPUs)", text) == [("6.00", "GPU 0"), ("2.00", "the CPUs")]
    assert asked.code == 0


def test_elsewhere_it_says_whose_results_they_are(tmp_path: Path, asked: Asked) -> None:
    mine = folder(tmp_path / "one", alone(16), alone(32))
    other = folder(tmp_path / "two", alone(16, epoch=9.0, machine_key="Titan, 12196 MiB"))
    text = asked(mine, other, jobs=TWO)
    assert text.startswith(f"By results of {SAID} (2 GPUs, 8 CPUs), which")
    assert "Results of Titan, 12,196 MiB" in text
    assert "9.00" not in text


@pytest.mark.usefixtures("far")
def test_rows_lie_in_several_folders_or_wherever_sweeps_put_them(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = folder(tmp_path / "one", alone(16)), folder(tmp_path / "two", alone(32))
    named = asked(one, two, jobs=TWO)
    monkeypatch.setenv("GPUBENCH_OUT", str(tmp_path))
    assert (asked(jobs=TWO), asked.code) == (named, 0)
    assert "32 was not measured alone" in asked(one, jobs=TWO)
    assert asked.code == 4


@pytest.mark.usefixtures("far")
def test_repeats_are_told_by_their_geometric_mean(tmp_path: Path, asked: Asked) -> None:
    again = [alone(16, epoch=epoch, seed=seed) for seed, epoch in enumerate((3.9, 4.5, 9.0))]
    text = asked(folder(tmp_path, *again), copies="2", batch_size="16", workers="4")
    assert text.count(" 5.41 ") == 2  # the third root of 3.9 × 4.5 × 9.0
    assert "9.00" not in text


@pytest.mark.usefixtures("far")
def test_other_gpus_will_do_and_other_workers_are_told(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32, workers=8, resolved={"workers": 8}))
    text = asked(place, jobs=["batch_size=16,workers=4,gpu_ids=1", "batch_size=32,workers=4,gpu_ids=1"])
    assert "resnet34 crop-resize 16@1 4.00" in text
    assert "6.00 s of GPU 1" in text
    assert "32@1: would have 4 workers" in text
    assert "16@1: would" not in text


@pytest.mark.slow
@pytest.mark.usefixtures("far")
@pytest.mark.parametrize("busy", [0.2, 1.5, 4.0])
def test_no_answer_from_rows_beside_other_work_is_likely(tmp_path: Path, asked: Asked, busy: float) -> None:
    """Of three processes, one of which was disturbed; whatever the answer."""
    runs = [alone(batch, busy=busy, seed=seed) for batch in (16, 32) for seed in (7, 9)]
    assert "overlap (likely, " in asked(folder(tmp_path / "quiet", *runs), jobs=TWO)
    busy_run = alone(16, busy=busy, seed=8, doubts={"other-load": "Busy."})
    text = asked(folder(tmp_path / "busy", *runs, busy_run), jobs=TWO)
    assert "overlap (unknown, " in text
    assert "has warnings (other-load)." in text


# ---- several groups ----


FILE = """
name = "several"
[fixed]
model = "resnet34"
data = "procedural:5120"
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


@pytest.mark.slow
@pytest.mark.usefixtures("far")
def test_every_group_of_a_file_is_answered_where_it_can(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "file.toml").write_text(FILE)
    place = folder(
        tmp_path / "one", alone(16), alone(32), alone(16, precision="fp32"), alone(32, precision="fp32")
    )
    text = asked(place, experiment=tmp_path / "file.toml", markdown=True)
    assert re.findall(r"\*\*(.*)\*\*", text) == [
        "small (precision=fp32)", "large (precision=fp32)", "small (precision=bf16)", "large (precision=bf16)"
    ]  # fmt: skip
    assert (text.count("Some overlap"), text.count("64 was not measured alone")) == (
        2,
        2,
    )
    assert asked.code == 0
    commands = list_commands(asked, place, experiment=tmp_path / "file.toml")
    assert len(commands) == 2
    assert all(command.startswith(f"gpubench sweep --out {place} --set ") for command in commands)
    asked(folder(tmp_path / "two", alone(16)), experiment=tmp_path / "file.toml")
    assert asked.code == 4, "none could be answered"


@pytest.mark.usefixtures("far")
def test_pairs_and_copies(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32), alone(64))
    jobs = ["batch_size=16", "batch_size=32", "batch_size=64"]
    text = asked(place, jobs=jobs, pairs=True, workers="4", markdown=True)
    assert re.findall(r"\*\*(.*)\*\*", text) == ["16 & 32", "16 & 64", "32 & 64"]
    text = asked(place, copies="2,3", batch_size="16", workers="4", markdown=True)
    assert re.findall(r"\*\*(.*)\*\*", text) == ["2 copies", "3 copies"]
    assert "10.17 | 2.54 |" in text


def test_the_errors_of_groups_that_ran_stand_beside_what_was_predicted(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path / "one", alone(16), together(16, [2.0, 1.6], [1.5, 2.0], "10:00"))
    text = asked(place)
    assert " 1.50 2.00 -25 " in text
    assert " 2.00 1.60 25 " in text
    assert list_predicted(asked(folder(tmp_path / "two", alone(16)))) == []
    assert asked.code == 0
    assert predict_command.predict([place, tmp_path / "nothing"], Options()) == 4, "one can't be read"


# ---- the published log ----


LOG = ("batch_size=32,gpu_ids=0", "batch_size=64,gpu_ids=1", "batch_size=128,gpu_ids=2+3,strategy=dp")
OF_LOG = {"model": "mobilenet_v2", "data": "unpublished", "input_size": "224"}


@pytest.mark.slow
def test_the_published_log(asked: Asked) -> None:
    """Together each took 28.5 s."""
    text = asked(committed.folder("titan-xp-2021"), jobs=LOG, **OF_LOG)
    assert list_predicted(text) == ["31.85", "30.28", "22.22"]
    assert "27.61 s of the CPUs" in text
    ran = asked(committed.folder("titan-xp-2021"))
    assert " 31.85 1.97 1.76 12 " in ran
    assert " 22.22 1.97 2.52 -22 " in ran


def test_rows_of_other_images_answer_for_no_job(asked: Asked) -> None:
    """Of the built-in data the log knows nothing; unasked, its own are meant."""
    jobs = [*LOG[:2], "batch_size=128,gpu_ids=2+3"]
    text = asked(committed.folder("titan-xp-2021"), jobs=jobs, model="mobilenet_v2", data="procedural")
    assert text.count("was not measured alone") == 3
    assert asked.code == 4


@pytest.mark.slow
def test_where_nobody_knows_how_many_cpus_there_were_none_are_too_many(asked: Asked) -> None:
    log = committed.folder("titan-xp-2021")
    note = "All jobs: would have 4 cpus, had an unknown number alone. "
    known = asked(log, jobs=LOG, **OF_LOG)
    assert "would have" not in known
    assert asked(log, jobs=LOG, **OF_LOG, cpus="4").replace(note, "") == known
    assert note in asked(log, jobs=LOG, **OF_LOG, cpus="4")
    assert "CPUs are not on record" in asked(log, jobs=LOG, **OF_LOG, cpu_sharing="pinned")
    assert asked.code == 4


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/side-by-side.md", "results/titan-xp-2021/README.md"])
def test_the_command_that_pages_give_for_the_log_works(page: str) -> None:
    committed.folder("titan-xp-2021")
    found = re.findall(r"gpubench predict (\S.* --job [^#\n]*)", (committed.ROOT / page).read_text("utf-8"))
    assert len(found) == 1
    ended = run_predict(*shlex.split(found[0]), at=committed.ROOT, PYTHONUTF8="1")
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert list_predicted(" ".join(ended.stdout.decode().split())) == ["31.85", "30.28", "22.22"]


# ---- no answer ----


@pytest.mark.slow
@pytest.mark.usefixtures("far")
@pytest.mark.parametrize(
    ("record", "why"),
    [
        (alone(64), r"resize 32 was not measured alone\. To measure: gpubench sweep "),
        (alone(32, memory_format="contiguous"), r"32 was not measured alone\."),
        (alone(32, status="oom"), r"32 alone ended as out of memory\.|out of memory alone"),
        (alone(32, status="failed"), r"32 alone ended as failed\."),
        (
            dataclasses.replace(alone(32, data={"fingerprint": "other"}), config_id="c1"),
            r"32 was not measured alone\.",
        ),
    ],
)
def test_a_job_that_was_not_measured_alone(tmp_path: Path, asked: Asked, record: Record, why: str) -> None:
    place = folder(tmp_path, alone(16), record)
    assert re.search(why, asked(place, jobs=TWO))
    assert asked.code == 4


@pytest.mark.usefixtures("far")
def test_what_is_missing_can_be_typed_as_it_stands(tmp_path: Path, asked: Asked) -> None:
    many = "model=resnet34,batch_size=32,cudnn_benchmark=true,gpu_ids=0+1,cpus=4,lr=0.0123456789,width=1.0"
    place = folder(tmp_path / "my results", alone(16))
    (command,) = list_commands(asked, place, jobs=["batch_size=16,workers=4", many])
    words = shlex.split(command)
    assert words[:4] == ["gpubench", "sweep", "--out", str(place)]
    fields = dict(word.split("=") for word in words[4:] if word != "--set")
    experiment = read_experiment(None, Options(fields=fields), has_gpu=True)
    (unit,) = expand(experiment, device="cuda", sources=Disk(), cpus=CPUS).units
    t = unit.jobs[0].trial
    assert (t.model, t.batch_size, t.gpu_ids, t.cpus, t.strategy) == ("resnet34", 32, (0, 1), 4, "ddp")
    # All digits of a number, lest it be another trial.
    assert (t.cudnn_benchmark, t.lr) == (True, 0.0123456789)


@pytest.mark.usefixtures("far")
def test_needs_that_are_not_known_are_named(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16, busy=None), alone(32))
    assert "GPU time is not known" in asked(place, jobs=TWO)
    apart = asked(place, jobs=[f"{job},gpu_ids={n}" for n, job in enumerate(TWO)])
    # On GPUs of their own it plays no part.
    assert "would wait for nothing" in apart


@pytest.mark.slow
@pytest.mark.usefixtures("far")
def test_what_nobody_asked_for_is_as_in_the_rows_and_is_said(tmp_path: Path, asked: Asked) -> None:
    """The folder holds resnet50 in fp32 alone: that is meant, not the built-in experiment's network."""
    others = {"model": "resnet50", "precision": "fp32"}
    place = folder(tmp_path, alone(16, **others), alone(32, **others))
    text = asked(place, jobs=TWO)
    assert ": model=resnet50, precision=fp32." in text
    assert ": resnet50 crop-resize 16" in text
    copies = asked(place, copies="2")
    assert "model=resnet50, precision=fp32, batch_size=16,32." in copies
    assert "2 copies (batch_size=32)" in copies
    assert "2 copies (batch_size=64)" not in copies
    text = asked(place, copies="2", model="resnet34", batch_size="16")
    assert "16 was not measured alone" in text


@pytest.mark.usefixtures("far")
def test_more_than_the_machine_has(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32))
    assert "needs 6 GPUs, " in asked(place, jobs=["batch_size=16,gpu_ids=5", "batch_size=32"])
    text = asked(place, cpu_sharing="pinned", cpus="8", copies="2", batch_size="16")
    assert "needs 16 CPUs" in text


@pytest.mark.usefixtures("far")
def test_what_makes_no_sense(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16))
    for fields in ({"batch_size": "16"}, {"batch_size": "16", "copies": "1"}):
        with pytest.raises(UsageError, match="there are no jobs to predict"):
            asked(place, **fields)
    with pytest.raises(UsageError, match="runs beside none"):
        asked(place, jobs=["batch_size=16"])


@pytest.mark.usefixtures("far")
def test_rows_of_the_cpu_answer_for_jobs_on_the_cpu(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32))
    with pytest.raises(UnusableError, match="no trial in these results ended ok with device cpu"):
        asked(place, jobs=[f"{job},device=cpu" for job in TWO])
    text = asked(place, jobs=[TWO[0], f"{TWO[1]},device=cpu"])
    assert re.search(r"32 device=cpu .*not measured", text)


@pytest.mark.usefixtures("far")
def test_the_command_writes_where_predict_looks(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several folders the first with rows of this machine."""
    other = folder(tmp_path / "other", alone(32, machine_key="Titan, 12196 MiB"))
    mine = folder(tmp_path / "mine", alone(16))
    (command,) = list_commands(asked, other, mine, jobs=TWO)
    assert command.startswith(f"gpubench sweep --out {mine} ")
    monkeypatch.setenv("GPUBENCH_OUT", str(tmp_path))
    (command,) = list_commands(asked, jobs=TWO)
    assert "--out" not in command


def test_what_another_machine_lacks_is_to_be_measured_there(tmp_path: Path, asked: Asked) -> None:
    text = asked(folder(tmp_path, alone(16)), jobs=TWO)
    assert "such a machine: gpubench sweep" in text


@pytest.mark.usefixtures("far")
def test_a_file_s_own_variant_is_measured_by_the_file_with_the_same_options(
    tmp_path: Path, asked: Asked
) -> None:
    (tmp_path / "file.toml").write_text(
        'name = "own"\n[variants.crop-resize]\ncpu = ["RandomHorizontalFlip"]\n'
    )
    place = folder(tmp_path / "one", alone(16))
    options = {"experiment": tmp_path / "file.toml", "jobs": TWO, "width": "0.5", "bad_images": "skip"}
    (command,) = list_commands(asked, place, **options)
    given = f"{tmp_path / 'file.toml'} --set width=0.5 --job {TWO[0]} --job {TWO[1]} --bad-images skip"
    assert command == f"gpubench sweep --out {place} {given}"
    both = folder(tmp_path / "two", alone(16), alone(32))
    fixed = {"model": "resnet34", "precision": "bf16", "data": "procedural:5120"}
    assert "was not measured alone" in asked(both, experiment=tmp_path / "file.toml", jobs=TWO, **fixed)


# ---- images and models that are gone ----


@pytest.mark.usefixtures("far")
def test_images_that_lie_elsewhere(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    facts = {"fingerprint": "f1", "train_images": 1000, "val_images": 10, "num_classes": 2, "size": 224}
    gone = [
        dataclasses.replace(
            record,
            trial=AskedFields({**vars(record.trial), "data": "data/birds"}),
            data=facts,
            config_id=f"c{n}",
            trial_id=f"t{n:012}",
            resolved={**record.resolved, "train_images": 1000},
        )
        for n, record in enumerate((alone(16), alone(32)))
    ]  # fmt: skip
    place = folder(tmp_path / "one", *gone)
    assert "Some overlap" in asked(place, jobs=TWO, data="data/birds")
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
        dataclasses.replace(
            record,
            trial=AskedFields({**vars(record.trial), "data": str(root)}),
            data=facts,
            config_id=f"c{n}",
            trial_id=f"t{n:012}",
            resolved={**record.resolved, "train_images": facts["train_images"], "num_classes": facts["num_classes"]},
        )
        for n, record in enumerate((alone(16), alone(32)))
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("far")
def test_rows_that_left_images_out_answer_for_those_images_and_for_no_others(
    tmp_path: Path, asked: Asked, damaged: Path
) -> None:
    place = folder(tmp_path / "one", *of_images(damaged, "skip"))
    assert "Some overlap" in asked(place, jobs=TWO, data=str(damaged), bad_images="skip")
    assert "was not measured alone" in asked(place, jobs=TWO, data=str(damaged))
    whole = folder(tmp_path / "two", *of_images(damaged, "fail"))
    assert "was not measured alone" in asked(whole, jobs=TWO, data=str(damaged), bad_images="skip")
    commands = list_commands(asked, whole, jobs=TWO, data=str(damaged), bad_images="skip")
    assert all(command.endswith(" --bad-images skip") for command in commands)
    shutil.rmtree(damaged)
    assert "Some overlap" in asked(place, jobs=TWO, data=str(damaged), bad_images="skip")
    with pytest.raises(UsageError, match="does not exist"):
        asked(place, jobs=TWO, data=str(damaged))


@pytest.mark.usefixtures("far")
def test_a_model_whose_file_is_gone(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets.py").write_text("# a net\n")
    place = folder(tmp_path / "one", alone(16, model="nets.py:net"), alone(32, model="nets.py:net"))
    unsure = "All jobs: whether the model's file has changed is not known."
    assert unsure not in asked(place, jobs=TWO, model="nets.py:net")
    (tmp_path / "nets.py").unlink()
    assert unsure in asked(place, jobs=TWO, model="nets.py:net")


# ---- the command ----


@pytest.mark.slow
def test_plain_signs_on_a_c_locale() -> None:
    ended = run_predict(
        str(committed.folder("titan-xp-2021")), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert b" -22\n" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", ["sweep", "predict"])
def test_help_asks_for_each_job_once(command: str) -> None:
    """One with copies is enough."""
    code = f"from gpubench.cli.app import app; app(['{command}', '--help'], standalone_mode=False)"
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "300", "PYTHONUTF8": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    (line,) = [line for line in ended.stdout.splitlines() if re.search(r"^\W*--job\b", line)]
    assert "give it once for each" in line


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


def test_these_records_are_what_a_plan_would_ask_for() -> None:
    """Or else the tests above would test the made-up ids."""
    record = alone(16)
    asked = trial.make({**{k: v for k, v in vars(record.trial).items() if v is not None}})
    fingerprint = Disk().data("procedural:5120").fingerprint
    assert trial.config_id(asked, VARIANTS["crop-resize"].definition(), fingerprint) == record.config_id
    assert isinstance(FAR, Machine)
