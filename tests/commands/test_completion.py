"""Words that a real bash is offered for completion."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import gpubench
from gpubench import completion

Offered = Callable[..., list[str]]
BASH = shutil.which("bash")
FISH = shutil.which("fish")


@pytest.fixture
def path(tmp_path: Path) -> dict[str, str]:
    """An environment in which `gpubench` is this one."""
    command = tmp_path / "bin" / "gpubench"
    command.parent.mkdir()
    command.write_text(f"#!{sys.executable}\nfrom gpubench.__main__ import main\nmain()\n")
    command.chmod(0o755)
    root = Path(gpubench.__file__).parents[1]
    return {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(root), "HOME": str(tmp_path)}


@pytest.fixture
def offered(tmp_path: Path, path: dict[str, str]) -> Offered:
    """What bash offers for the last of these words of a command line, each of which is one for bash."""
    command = tmp_path / "bin" / "gpubench"
    asked = {**path, "_GPUBENCH_COMPLETE": "source_bash"}
    source = subprocess.run(
        [command], env=asked, text=True, capture_output=True, timeout=60, check=True
    ).stdout

    def run(*words: str) -> list[str]:
        script = (
            f'{source}\nCOMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '_gpubench_completion gpubench; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        ended = subprocess.run(
            [str(BASH), "--norc", "-c", script, "bash", "gpubench", *words],
            cwd=tmp_path,
            env=path,
            text=True,
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert ended.stderr == ""
        return ended.stdout.split()

    return run


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_bash_completes_commands_options_and_values(offered: Offered, tmp_path: Path) -> None:
    (tmp_path / "results" / "mine" / "records").mkdir(parents=True)
    (tmp_path / "question.toml").touch()
    assert offered("co") == ["compare"]
    assert offered("sweep", "--batch-s") == ["--batch-size"]
    assert offered("sweep", "--model", "resnet1") == ["resnet101", "resnet152", "resnet18"]
    assert offered("sweep", "--strategy", "single,dd") == ["single,ddp"]
    assert offered("sweep", "--set", "execution", "=", "") == ["eager", "compile", "graph"]
    assert offered("sweep", "q") == ["question.toml"]
    assert offered("table", "") == ["results/mine", "bin/"]
    assert offered("plot", "") == ["results/mine", "bin/"]


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="there is no bash")
def test_bash_completes_the_fixed_words_of_options(offered: Offered) -> None:
    assert offered("export", "x", "--format", "m") == ["md"]
    assert offered("export", "x", "--sheet", "") == ["table", "trials", "epochs"]
    assert offered("export", "x", "--to", "m") == ["mlflow"]
    assert offered("plot", "x", "--only", "growth,de") == ["growth,devices"]
    assert offered("plot", "x", "--format", "svg,p") == ["svg,png", "svg,pdf"]
    assert offered("table", "x", "--sort", "batch_s") == ["batch_size"]
    assert offered("table", "x", "--columns", "power_w,data_wait") == ["power_w,data_wait_pct"]
    assert offered("table", "x", "--where", "batch_s") == ["batch_size="]
    assert offered("table", "x", "--where", "variant", "=", "pre") == ["pre-resized"]


def test_a_column_is_completed_behind_a_minus_sign_too() -> None:
    assert completion.columns("power_w,-data_wait") == ["power_w,-data_wait_pct"]
    assert completion.columns("-data_wait") == ["-data_wait_pct"]


def test_a_folder_of_notes_beside_the_results_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results" / "mine" / "records").mkdir(parents=True)
    (tmp_path / "results" / "notes").mkdir()
    (tmp_path / "results" / "notes" / "README.md").touch()
    assert completion.results("") == ["results/mine"]
    assert completion.results("results/") == ["results/mine/"]


@pytest.mark.skipif(FISH is None, reason="there is no fish")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("co", ["compare"]),
        ("sweep --batch-s", ["--batch-size"]),
        ("sweep --model resnet1", ["resnet101", "resnet152", "resnet18"]),
        ("sweep --strategy single,dd", ["single,ddp"]),
        ("sweep --set execution=", ["execution=compile", "execution=eager", "execution=graph"]),
        ("sweep q", ["question.toml"]),
        ("table results/m", ["results/mine/"]),
    ],
)
def test_fish_completes_by_what_is_installed_for_it(
    line: str, words: list[str], path: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "results" / "mine" / "records").mkdir(parents=True)
    (tmp_path / "question.toml").touch()
    script = f"gpubench --show-completion fish | source; complete -C 'gpubench {line}'"
    asked = {**path, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    ended = subprocess.run(
        [str(FISH), "--no-config", "-c", script],
        cwd=tmp_path,
        env=asked,
        text=True,
        capture_output=True,
        timeout=60,
    )
    assert sorted(told.split("\t")[0] for told in ended.stdout.splitlines()) == words


def test_where_equals_signs_are_part_of_a_word_assignments_are_completed_whole() -> None:
    """As zsh and fish hand words over."""
    assert completion.assignment("memory_f") == ["memory_format=channels_last", "memory_format=contiguous"]
    assert completion.assignment("memory_format=con") == ["memory_format=contiguous"]
    assert completion.assignment("precision=fp32,b") == ["precision=fp32,bf16"]
    assert completion.assignment("batch") == ["batch_size="]
    assert completion.assignment("nothing=") == []


def test_every_field_with_named_values_offers_them() -> None:
    assert {"true", "false"} == set(completion.values_of("breakdown"))
    assert set(completion.values_of("device")) == {"cuda", "cpu", "auto"}
    assert completion.values_of("batch_size") == []
    assert {"lenet", "resnet50"} <= set(completion.values_of("model"))
