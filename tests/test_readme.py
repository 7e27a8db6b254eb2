"""Every command of the README is one that works, and its pages say what the code does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from gpubench import trial
from gpubench.report import columns

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def commands() -> list[str]:
    """Lines of the README's shell blocks that call gpubench itself; the two of installation are .ci/run's."""
    lines = [
        line
        for block in BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
        for line in block.splitlines()
    ]
    return [line.partition("  #")[0].strip() for line in lines if line.startswith("gpubench ")]


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    for number in range(80):
        folder = tmp_path / "birds" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (number, 0, 0)).save(folder / f"{number}.jpg")
    return tmp_path / "birds"


def test_the_readme_has_commands() -> None:
    assert len(commands()) > 10


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_readme_works(command: str, birds: Path, tmp_path: Path) -> None:
    words = shlex.split(command.replace("~/birds", f"{birds} --batch-size 8"), comments=True)[1:]
    if words[0] == "sweep" and "-n" not in words:
        words.append("-n")  # its plan: the sweep itself may want GPUs and minutes
    if words[0] in ("table", "audit") and not any(word.startswith("results/") for word in words):
        words.append(str(ROOT / "results" / "titan-xp-2021"))
    environment = os.environ | {
        "GPUBENCH_DATA": str(tmp_path / "data"),
        "GPUBENCH_OUT": str(tmp_path / "results"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not (tmp_path / "results").exists()


def test_the_page_of_columns_is_made_from_the_columns() -> None:
    assert (ROOT / "docs" / "columns.md").read_text("utf-8") == columns.text()


PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        assert target.startswith("http") or (path.parent / target).exists(), f"{page}: {target}"


def test_every_field_is_described() -> None:
    page = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    assert [name for name in trial.FIELDS if f"`{name}`" not in page] == []
