"""Every command of the README is one that works; what it and its pages show is what the program prints."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import committed
import pytest
from docs_pages import columns
from PIL import Image
from warm_command import WarmCommand

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"```(sh|text)\n(.*?)```", re.DOTALL)
USED = ("README.md", "docs/usage.md", "docs/side-by-side.md")
"""Pages whose commands are run here, and whose tables are compared with what the commands print."""

MOST_WORDS = 1500


def blocks(page: str, kind: str) -> list[str]:
    return [text for of, text in BLOCK.findall((ROOT / page).read_text("utf-8")) if of == kind]


def commands() -> list[str]:
    """Lines of the pages' shell blocks that call gpubench itself; the two of installation are .ci/run's."""
    lines = [line for page in USED for block in blocks(page, "sh") for line in block.splitlines()]
    called = [line.partition("  #")[0].strip() for line in lines if line.startswith("gpubench ")]
    return list(dict.fromkeys(called))


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    for number in range(80):
        folder = tmp_path / "birds" / f"class{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (40, 30), (number, 0, 0)).save(folder / f"{number}.jpg")
    return tmp_path / "birds"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return os.environ | {
        "GPUBENCH_DATA": str(tmp_path / "data"),
        "GPUBENCH_OUT": str(tmp_path / "results"),
        "CUDA_VISIBLE_DEVICES": "",
    }


DOCTOR = "gpubench doctor"
"""It takes seconds, and doctor's own tests run it."""


def test_the_pages_have_commands() -> None:
    assert len(commands()) > 20
    assert DOCTOR in commands()


def commands_with_something_new() -> list[str]:
    """Plans of all sweeps; else none whose options all stand in commands before it. Without doctor."""
    seen: set[tuple[str, str]] = set()
    chosen = []
    for line in commands():
        _, name, *words = shlex.split(line)
        parts = {(name, re.sub(r"=.*", "", word)) for word in words if word.startswith("-")} | {(name, "")}
        if name == "sweep" or parts - seen:
            chosen.append(line)
        seen |= parts
    return [line for line in chosen if not line.startswith(DOCTOR)]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands_with_something_new())
def test_a_command_of_the_pages_works(
    command: str, birds: Path, tmp_path: Path, environment: dict[str, str], warm_command: WarmCommand
) -> None:
    words = shlex.split(command.replace("~/birds", f"{birds} --batch-size 8"), comments=True)[1:]
    behind = words.index("--") if "--" in words else len(words)
    if words[0] == "sweep" and "-n" not in words[:behind]:
        words.insert(behind, "-n")  # its plan: the sweep itself may want GPUs and minutes
    for word in words:
        if word.startswith("results/"):
            committed.folder(word.removeprefix("results/"))
    if words[0] in ("table", "audit", "plot", "status") and not any(
        word.startswith("results/") for word in words
    ):
        words.append(str(committed.folder("h200x2-2026")))
    here = tmp_path / "checkout"  # what a command writes beside the results stays out of the real one
    here.mkdir()
    for name in ("results", "experiments", "docs"):
        (here / name).symlink_to(ROOT / name)
    (here / "train.py").touch()  # the reader's own script
    done = warm_command.run(words, cwd=here, env=environment, timeout=60)
    if re.search(
        r"needs a GPU: on a CPU take another|is a limit of a GPU", done.stderr
    ):  # no plan is made of it here
        assert (done.returncode, done.stdout) == (2, "")
        return
    if {"--meter", "--power", "--at-most-slower"} & set(words):  # they want a meter, or results under limits
        assert done.returncode in (0, 4)
        assert done.returncode == 0 or len(done.stderr.splitlines()) == 1
        return
    lacks = "no trial is left: needs " in done.stderr  # GPUs, which the plan says as well
    assert done.returncode == (4 if lacks else 0), done.stderr
    assert done.stdout.strip()
    assert not (tmp_path / "results").exists()


def test_the_commands_of_installation_are_those_of_ci() -> None:
    """`.ci/run` installs and sweeps, then installs and tests, in this order."""
    first, *_, last = blocks("README.md", "sh")
    assert first == "python3 -m venv .venv && .venv/bin/pip install .\n.venv/bin/gpubench sweep\n"
    assert last == "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]' && .venv/bin/pytest\n"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").split()) < MOST_WORDS


# ---- what it shows of what commands print ----

CUT = "…"
"""Alone on a line: any number of lines are left out. At the end of one: the rest of the line is."""

STORED = [
    (page, block)
    for page in USED
    for block in blocks(page, "text")
    if re.match(r"\$ gpubench \w+ results/", block)
]


def test_the_readme_shows_stored_results() -> None:
    assert len([page for page, _ in STORED if page == "README.md"]) == 4


@pytest.mark.slow
@pytest.mark.parametrize(("page", "block"), STORED, ids=[block.splitlines()[0] for _, block in STORED])
def test_what_is_shown_is_what_the_command_prints(page: str, block: str, warm_command: WarmCommand) -> None:
    first, *shown = block.splitlines()
    words = shlex.split(first)[2:]
    committed.folder(words[1].removeprefix("results/"))
    done = warm_command.run(words, cwd=ROOT, env=dict(os.environ), timeout=60)
    assert done.returncode == 0, done.stderr
    assert _told(shown, done.stdout.splitlines()), f"{page}: {first}"


def _told(shown: list[str], printed: list[str]) -> bool:
    """Whether these lines are what was printed, where some are left out and others are cut."""
    if not shown:
        return not printed
    if shown[0] == CUT:
        return any(_told(shown[1:], printed[number:]) for number in range(len(printed) + 1))
    return bool(printed) and _alike(shown[0], printed[0]) and _told(shown[1:], printed[1:])


def _alike(shown: str, printed: str) -> bool:
    return printed.startswith(shown.removesuffix(CUT)) if shown.endswith(CUT) else shown == printed


def test_the_picture_is_of_the_answer_that_its_description_tells(warm_command: WarmCommand) -> None:
    committed.folder("h200x4-2026")
    (description,) = re.findall(r"!\[(.*)\]\(docs/answer.svg\)", (ROOT / "README.md").read_text("utf-8"))
    done = warm_command.run(["table", "results/h200x4-2026"], cwd=ROOT, env=dict(os.environ), timeout=60)
    answers = re.findall(r"^Take batch (\d+) with ddp: .* ([\d,]+ images/s)", done.stdout, re.MULTILINE)
    size, rate = answers[-1]  # mobilenet_v2's: the folder's second table
    assert description.startswith(f"Batch {size} with ddp is the answer: {rate}")
    picture = (ROOT / "docs" / "answer.svg").read_text("utf-8")
    assert f"{size}: {rate}" in "".join(ElementTree.fromstring(picture).itertext())
    assert re.findall(r"(?:href|src|url)\W+http", picture) == []


def test_the_page_of_columns_is_made_from_the_columns() -> None:
    assert (ROOT / "docs" / "columns.md").read_text("utf-8") == columns.text()


PAGES = (
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
    *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
    *(str(page.relative_to(ROOT)) for page in (ROOT / "tests").glob("*/README.md")),
    *(f"results/{folder.name}/README.md" for folder in committed.folders("README.md")),
)  # fmt: skip
FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """What `page.md#here` may name: its headings, as GitHub writes them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return set(found)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    text = re.sub(r"`[^`\n]*`", "code", FENCED.sub("", path.read_text("utf-8")))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("http"):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        inside = there.relative_to(ROOT).parts
        if inside[:1] == ("results",) and len(inside) > 1 and not (committed.HOME / inside[1]).exists():
            continue  # deleted from this clone
        assert there.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(there), f"{page}: {target}"
