"""What `gpubench predict` answers, over folders whose figures were made up."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import committed
import pytest
from made_up_rows import FAR, SAID, TWO, Asked, alone, answers, folder, run_predict
from warm_command import WarmCommand

from gpubench.basics.errors import UnusableError
from gpubench.node.environment import Machine
from gpubench.plan.sources import Disk
from gpubench.results.store import Results
from gpubench.schema import trial
from gpubench.schema.catalog import VARIANTS
from gpubench.schema.record import Record, ResultColumns

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
        "                                 alone  predicted    times\n"
        "job                                  s          s  as long\n"
        "-------------------------------  -----  ---------  -------\n"
        "1 of 2: resnet34 crop-resize 16   4.00       6.78     1.69\n"
        "2 of 2: resnet34 crop-resize 32   4.00       6.78     1.69\n"
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
    assert "resnet34 crop-resize 16@1   4.00" in text
    assert "6.00 s of GPU 1" in text
    assert "resnet34 crop-resize 32@1: would have 4 workers, had 8 alone.\n" in text
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
    assert "resnet34 crop-resize 16: row alone has doubts (other-load, short-epochs).\n" in text
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
    assert "left out: at least 50 % of the GPU time of 1 of 2: resnet34 crop-resize 16" in text
    assert "Predicted: parallel" in text


# ---------------------------------------------------------------- several groups


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


@pytest.mark.usefixtures("far")
def test_every_group_of_a_file_is_answered_where_it_can(tmp_path: Path, asked: Asked) -> None:
    (tmp_path / "file.toml").write_text(FILE)
    place = folder(
        tmp_path / "one", alone(16), alone(32), alone(16, precision="fp32"), alone(32, precision="fp32")
    )
    text = asked(place, experiment=tmp_path / "file.toml")
    heads = [line for line in text.splitlines() if line.startswith(("small", "large"))]
    assert heads == [
        "small (precision=fp32)", "large (precision=fp32)", "small (precision=bf16)", "large (precision=bf16)"
    ]  # fmt: skip
    assert text.count("Predicted: partly parallel") == 2
    assert text.count(", resnet34 crop-resize 64 was not measured alone on ") == 2
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
    assert "3 of 3: resnet34 crop-resize 16   4.00      10.17     2.54" in text


@pytest.mark.usefixtures("far")
def test_markdown(tmp_path: Path, asked: Asked) -> None:
    text = asked(folder(tmp_path, alone(16), alone(32)), jobs=TWO, markdown=True)
    assert "\n\n**16 workers=4 & 32 workers=4**\n\n| job | alone s |" in text
    assert "| 1 of 2: resnet34 crop-resize 16 | 4.00 | 6.78 | 1.69 |\n" in text


# ---------------------------------------------------------------- the command


def test_plain_signs_on_a_c_locale() -> None:
    ended = run_predict(
        str(committed.folder("titan-xp-2021")), LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0"
    )
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
    fingerprint = Disk().data("procedural:5120").fingerprint
    assert trial.config_id(asked, VARIANTS["crop-resize"].definition(), fingerprint) == record.config_id
    assert isinstance(FAR, Machine)
