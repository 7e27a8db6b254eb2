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
from gpubench.cli.options import list_named_values, make_completer

Offered = Callable[..., list[str]]
BASH = shutil.which("bash")


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
    assert offered("co") == ["compare"]
    assert offered("sweep", "--strategy", "single,dd") == ["single,ddp"]
    assert offered("table", "res") == ["results/mine"]


def test_the_last_of_several_values_is_completed() -> None:
    assert make_completer(lambda: ("single", "dp", "ddp"))("single,d") == ["single,dp", "single,ddp"]


def test_every_field_with_named_values_offers_them() -> None:
    assert list_named_values("device") == ("cuda", "cpu")
    assert list_named_values("batch_size") == ()
    assert {"lenet", "resnet50"} <= set(list_named_values("model"))
