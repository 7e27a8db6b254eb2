"""What a stranger may have put into a results folder, at the commands that read it: none waits, breaks off or obeys."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from swept import swept
from warm_command import WarmCommand

Run = Callable[..., subprocess.CompletedProcess[str]]
HOSTILE = (
    "=1+1\x1b[31m\u202e# [here](https://example.org) ![i](https://example.org/i) <img src=x>\n# heading\r|"
)
CLAIM = {"host": "h", "boot": "b", "pid_namespace": "n", "pid": 7, "began": "1", "job": "", "user": 1}


@pytest.fixture
def run(warm_command: WarmCommand, tmp_path: Path) -> Run:
    """Runs `gpubench` with these arguments beside the folder a."""
    swept(tmp_path / "a", "one", "16,32")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def put(path: Path, content: object) -> None:
    """Puts bytes, JSON, a folder, a pipe or a link there."""
    if path.is_file():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    if content == "folder":
        path.mkdir()
    elif content == "pipe":
        os.mkfifo(path)
    elif content == "link":
        path.symlink_to("/etc/passwd")
    else:
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


DAMAGED_CLAIMS = (
    b"", b"\xff\xfe\n", b"[" * 60_000, [], "text", CLAIM | {"pid": 10**30}, CLAIM | {"host": 7}, CLAIM | {"began": [1]},
    CLAIM | {"user": 10**30}, "folder", "pipe", "link",
)  # fmt: skip


def test_damaged_claims_hinder_no_command(run: Run, tmp_path: Path) -> None:
    for number, content in enumerate(DAMAGED_CLAIMS):
        put(tmp_path / "a" / "records" / "00" / f"t000000000{number:02}-r1-m00000000.1", content)
    ended = run("status", "a", "--json")
    # Of an owner of whom nothing is known it may be that he is at work; what is no file has none.
    assert (ended.returncode, len(json.loads(ended.stdout)["workers"])) == (5, len(DAMAGED_CLAIMS) - 3)
    assert run("audit", "a", "--json").returncode == 0
    assert run("merge", "a", "--out", "b").returncode == 0
    assert not list((tmp_path / "b" / "records").glob("*/*-r1-*"))


def test_what_files_say_reaches_no_terminal_and_no_markup_as_it_is(run: Run, tmp_path: Path) -> None:
    for path in sorted((tmp_path / "a" / "records").glob("*/*.json")):
        record = json.loads(path.read_text())
        record |= {"experiment": HOSTILE, "reason": HOSTILE, "doubts": {HOSTILE: HOSTILE}}
        record["trial"] |= {"model": HOSTILE, "variant": HOSTILE}
        record["environment"] |= {"host": HOSTILE, "gpu_name": HOSTILE, "cpu_name": HOSTILE}
        path.write_text(json.dumps(record))
    path.write_text(json.dumps(record | {"status": "failed"}))
    for plan in (tmp_path / "a" / "plans").glob("*.toml"):
        plan.unlink()
    put(tmp_path / "a" / "records" / "00" / "t00000000000-r1-m00000000.1", CLAIM | {"host": HOSTILE})
    commands = (("table",), ("table", "--markdown"), ("status",), ("audit", "--markdown"), ("merge",))
    texts = {command: run(command[0], "a", *command[1:]) for command in commands}
    for command, ended in texts.items():
        for sign in {*ended.stdout, *ended.stderr} - {"\n"}:
            assert unicodedata.category(sign) not in ("Cc", "Cf"), (command, sign)
    for text in (texts["table", "--markdown"].stdout, (tmp_path / "a" / "table.md").read_text()):
        assert "example.org" in text
        inlines = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "inline"]
        kinds = {child.type for token in inlines for child in token.children or ()}
        assert not kinds & {"link_open", "image", "html_inline"}
        assert "html_block" not in {token.type for token in MarkdownIt("commonmark").parse(text)}
    with (tmp_path / "a" / "trials.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert any("example.org" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@")) or {"\x1b", "\u202e"} & {*cell}]
