"""Batch scripts, word by word, and what a command line makes of them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import golden
import pytest

from gpubench.basics.errors import UsageError
from gpubench.plan.batch_script import (
    BatchScript,
    count_requested_gpus_per_node,
    format_time_limit_for_units,
    parse_time_limit,
    split_sbatch_arguments,
)

GOLDEN = Path(__file__).parent / "golden"
ONE = BatchScript(
    name="batch-size",
    command=["/home/me/venv/bin/gpubench", "sweep", "/home/me/batch-size.toml", "--set", "note=it's mine"],
    home="/home/me/my work",
    command_line="gpubench slurm batch-size.toml --partition gpu",
    cpus_per_task=4,
    time="2:00:00",
    options=["--partition=gpu"],
)
SCRIPTS = {
    # What sbatch was given by name stands behind our own, which it beats.
    "array": replace(ONE, tasks=8, time="30", options=["--partition=gpu", "-a 1-8%2", "--output=%j.log"]),
    "trial-over-nodes": replace(ONE, nodes=2, trial_nodes=2, time="1-12:00:00", options=[]),
    "cpus-by-gpu": replace(ONE, cpus_per_task=None, options=["--gres=gpu:2", "--cpus-per-gpu=2"]),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script(name: str) -> None:
    golden.check(GOLDEN / f"{name}.sbatch", SCRIPTS[name].format_script())


def test_nodes_that_share_no_trial_each_work_through_the_plan() -> None:
    script = replace(ONE, nodes=2).format_script()
    assert "#SBATCH --nodes=2\n" in script
    assert '\nsrun --kill-on-bad-exit=1 --cpus-per-task="$SLURM_CPUS_PER_TASK" \\\n' in script


@pytest.mark.skipif(
    shutil.which("shellcheck") is None, reason="no shellcheck here (apt-get install shellcheck)"
)
def test_shellcheck_finds_nothing(tmp_path: Path) -> None:
    for name, script in SCRIPTS.items():
        (tmp_path / name).write_text(script.format_script())
    command = ["shellcheck", "--severity=style", *(str(tmp_path / name) for name in SCRIPTS)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""


@pytest.mark.parametrize(
    ("options", "nodes", "expected"),
    [
        ([], 1, 0),
        (["--partition=gpu"], 1, 0),
        (["--gres=gpu"], 1, 1),
        (["--gres=gpu:a100"], 1, 1),
        (["--gres=gpu:a100:2,gpu:1,shard:5"], 1, 3),
        (["--gres=shard:5"], 1, 0),
        (["-G 4"], 2, 2),
        (["--gpus=a100:4"], 1, 4),
        (["--gpus-per-node=4"], 2, 4),
        (["--gpus-per-task=2", "--gres=gpu:4"], 1, 4),
    ],
)
def test_gpus_of_a_node_are_read_from_what_sbatch_is_given(
    options: list[str], nodes: int, expected: int
) -> None:
    assert count_requested_gpus_per_node(options, nodes) == expected


@pytest.mark.parametrize(
    ("words", "file", "options"),
    [
        ([], None, []),
        (["a.toml"], "a.toml", []),
        (["--partition", "gpu", "a.toml", "--gres=gpu:1"], "a.toml", ["--partition=gpu", "--gres=gpu:1"]),
        (["-A", "me", "--exclusive", "a.toml"], "a.toml", ["-A me", "--exclusive"]),
        (["--comment", "two words"], None, ["--comment='two words'"]),
        (["--comment=two words", "--qos=a#b"], None, ["--comment='two words'", "--qos='a#b'"]),
        (["-pgpu", "-Atwo words", "a.toml"], "a.toml", ["-pgpu", "-A'two words'"]),
    ],
)
def test_what_is_passed_on(words: list[str], file: str | None, options: list[str]) -> None:
    assert split_sbatch_arguments(words) == (file, options)


@pytest.mark.parametrize(
    "words",
    [["-pgpu", "x"], ["gpu"], ["a.toml", "b.toml"], ["--qos", "high", "x"], ["--comment=a\nrm -rf results"]],
)
def test_a_word_that_belongs_to_nothing_is_refused(words: list[str]) -> None:
    with pytest.raises(UsageError, match="neither an experiment file nor the value of an option"):
        split_sbatch_arguments(words)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90", 5400), ("1:30", 90), ("2:00:00", 7200), ("1-12", 129600), ("1-12:30", 131400), ("1-00:00:01", 86401),
        ("unlimited", 31_536_000), ("INFINITE", 31_536_000),
    ],
)  # fmt: skip
def test_slurm_s_times(text: str, expected: int) -> None:
    assert parse_time_limit(text) == expected


@pytest.mark.parametrize("text", ["", "2h", "0", "0:00", "1:2:3:4", "-5", "x"])
def test_what_is_no_time_of_slurm_s(text: str) -> None:
    with pytest.raises(UsageError, match="--time"):
        parse_time_limit(text)


def test_a_limit_has_room_and_is_never_shorter_than_the_longest_unit() -> None:
    assert format_time_limit_for_units([], 1) == "00:15:00"
    assert format_time_limit_for_units([600.0] * 8, 8) == "00:20:00"
    assert format_time_limit_for_units([600.0] * 8, 2) == "01:05:00"
    assert format_time_limit_for_units([7200.0, 60.0], 8) == "03:05:00"
    assert format_time_limit_for_units([86400.0], 1) == "1-12:05:00"
    assert parse_time_limit(format_time_limit_for_units([86400.0], 1)) == 86400 + 12 * 3600 + 300


def test_a_short_job_keeps_a_tenth_for_its_end() -> None:
    assert replace(ONE, time="3").signal_s == 18
    assert replace(ONE, time="3:00:00").signal_s == 120
