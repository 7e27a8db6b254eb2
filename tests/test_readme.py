"""Every command of the README is one that works, and its pages say what the code does."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import committed
import pytest
from PIL import Image
from warm_command import WarmCommand

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


DOCTOR = "gpubench doctor"
"""It takes seconds, and runner/test_doctor.py runs it as it stands there."""


def test_the_readme_has_commands() -> None:
    assert len(commands()) > 10
    assert DOCTOR in commands()


@pytest.mark.parametrize("command", [line for line in commands() if line != DOCTOR])
def test_a_command_of_the_readme_works(
    command: str, birds: Path, tmp_path: Path, warm_command: WarmCommand
) -> None:
    words = shlex.split(command.replace("~/birds", f"{birds} --batch-size 8"), comments=True)[1:]
    if words[0] == "sweep" and "-n" not in words:
        words.append("-n")  # its plan: the sweep itself may want GPUs and minutes
    for word in words:
        if word.startswith("results/"):
            committed.folder(word.removeprefix("results/"))
    if words[0] in ("table", "audit") and not any(word.startswith("results/") for word in words):
        words.append(str(committed.folder("titan-xp-2021")))
    environment = os.environ | {
        "GPUBENCH_DATA": str(tmp_path / "data"),
        "GPUBENCH_OUT": str(tmp_path / "results"),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = warm_command.run(words, cwd=ROOT, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not (tmp_path / "results").exists()


# ---- the tables that it shows ----

TEXT = re.compile(r"```text\n(.*?)```", re.DOTALL)
WHOLE, EXCERPT = "results/h200x4-2026", "results/titan-xp-2021"
"""Of which folders it shows one whole table, and the rows of one."""


def shown() -> list[str]:
    return TEXT.findall((ROOT / "README.md").read_text("utf-8"))


def printed(folder: str) -> str:
    committed.folder(folder.removeprefix("results/"))
    done = subprocess.run(
        [sys.executable, "-m", "gpubench", "table", folder], cwd=ROOT, env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return done.stdout


def test_the_first_table_is_what_the_command_prints() -> None:
    """One of the tables of its folder, to the last sentence."""
    assert f"`gpubench table {WHOLE}` prints" in (ROOT / "README.md").read_text("utf-8")
    assert f"\n{shown()[0]}\n" in f"\n{printed(WHOLE)}\n"


def test_the_second_table_is_what_the_command_prints() -> None:
    """Headings and rows of one group, in their order; the lines above and below are left out."""
    assert f"`gpubench table {EXCERPT}`, 4" in (ROOT / "README.md").read_text("utf-8")
    first, *others = shown()[1].splitlines()
    lines = printed(EXCERPT).splitlines()
    candidates = [lines[number:] for number, line in enumerate(lines) if line == first]
    assert any(_in_order(others, after) for after in candidates), "\n".join([first, *others])


def _in_order(wanted: list[str], lines: list[str]) -> bool:
    """Whether all of `wanted` stand in the table that begins there, with at most names of groups between them."""
    table = iter(lines[: lines.index("")] if "" in lines else lines)
    return all(line in table for line in wanted)


def test_there_are_no_other_tables() -> None:
    assert len(shown()) == 2


def test_the_page_of_columns_is_made_from_the_columns() -> None:
    assert (ROOT / "docs" / "columns.md").read_text("utf-8") == columns.text()


PAGES = ("README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text("utf-8")):
        if target.startswith("results/") and not (committed.HOME / target.split("/")[1]).exists():
            continue  # deleted from this clone
        assert target.startswith("http") or (path.parent / target).exists(), f"{page}: {target}"
