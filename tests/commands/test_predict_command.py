"""What `gpubench predict` answers, over folders whose figures were made up, and over a published log."""

from __future__ import annotations

import re
from pathlib import Path

import committed
import pytest
from made_up_rows import FAR, SAID, TWO, Asked, alone, folder
from msgspec import structs
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError, UsageError
from gpubench.commands import predict as predict_command


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(capsys)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is the one that has measured."""
    monkeypatch.setattr(predict_command.environment, "make_machine", lambda _: FAR)


def list_predicted(text: str) -> list[str]:
    """The predicted seconds of jobs that have not run together, in their order."""
    return re.findall(r" \d+ of \d+: [^:]*? \d+\.\d\d (\d+\.\d\d) \d+\.\d\d", text)


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
    assert "2 of 2: would have 4 workers" in text
    assert "1 of 2: would" not in text


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
    assert (text.count("Some overlap"), text.count("64 was not measured alone")) == (2, 2)
    assert asked.code == 0


@pytest.mark.usefixtures("far")
def test_pairs_and_copies(tmp_path: Path, asked: Asked) -> None:
    place = folder(tmp_path, alone(16), alone(32), alone(64))
    jobs = ["batch_size=16", "batch_size=32", "batch_size=64"]
    text = asked(place, jobs=jobs, pairs=True, workers="4", markdown=True)
    assert re.findall(r"\*\*(.*)\*\*", text) == ["16 & 32", "16 & 64", "32 & 64"]
    text = asked(place, copies="2,3", batch_size="16", workers="4", markdown=True)
    assert re.findall(r"\*\*(.*)\*\*", text) == ["2 copies", "3 copies"]
    assert "10.17 | 2.54 |" in text


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


# ---- no answer ----


@pytest.mark.usefixtures("far")
def test_rows_of_other_images_answer_for_no_job(tmp_path: Path, asked: Asked) -> None:
    other = structs.replace(alone(32, data={"fingerprint": "other"}), config_id="c1")
    assert "32 was not measured alone." in asked(folder(tmp_path, alone(16), other), jobs=TWO)
    assert asked.code == 4


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
        asked(place, jobs=TWO, device="cpu")
    text = asked(place, jobs=[TWO[0], f"{TWO[1]},device=cpu"])
    assert re.search(r"32 device=cpu .*not measured", text)


# ---- the command ----


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["gone"],
            4,
            "gone is not a results folder; name one that gpubench sweep has written, such as ",
        ),
        (["--job", "batch=16"], 2, "did you mean batch_size?"),
        (["--pairs", "here"], 2, "there are no jobs to pair"),
        (["--copies", "2", "--bad-images", "some"], 2, "unknown --bad-images 'some': valid: fail, skip\n"),
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
