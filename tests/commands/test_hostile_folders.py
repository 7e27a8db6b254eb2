"""What a stranger may have put into a results folder, at the commands that read it: none waits, breaks off or obeys."""

from __future__ import annotations

import csv
import json
import os
import unicodedata
from pathlib import Path

from markdown_it import MarkdownIt
from place import Place
from swept import swept

HOSTILE = (
    "=1+1\x1b[31m\u202e# [here](https://example.org) ![i](https://example.org/i) <img src=x>\n# heading\r|"
)
CLAIM = {"host": "h", "boot": "b", "pid_namespace": "n", "pid": 7, "began": "1", "job": "", "user": 1}


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


def test_damaged_claims_hinder_no_command(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    for number, content in enumerate(DAMAGED_CLAIMS):
        put(place.home / "a" / "records" / "00" / f"t000000000{number:02}-r1-m00000000.1", content)
    ended = place.run("status", "a", "--json")
    # Of an owner of whom nothing is known it may be that he is at work; what is no file has none.
    assert (ended.returncode, len(json.loads(ended.stdout)["workers"])) == (5, len(DAMAGED_CLAIMS) - 3)
    assert place.run("audit", "a", "--json").returncode == 0
    assert place.run("merge", "a", "--out", "b").returncode == 0
    assert not list((place.home / "b" / "records").glob("*/*-r1-*"))


def test_what_files_say_reaches_no_terminal_and_no_markup_as_it_is(place: Place) -> None:
    swept(place.home / "a", "one", "16,32")
    for path in sorted((place.home / "a" / "records").glob("*/*.json")):
        record = json.loads(path.read_text())
        record |= {"experiment": HOSTILE, "reason": HOSTILE, "doubts": {HOSTILE: HOSTILE}}
        record["trial"] |= {"model": HOSTILE, "variant": HOSTILE}
        record["environment"] |= {"host": HOSTILE, "gpu_name": HOSTILE, "cpu_name": HOSTILE}
        path.write_text(json.dumps(record))
    path.write_text(json.dumps(record | {"status": "failed"}))
    for plan in (place.home / "a" / "plans").glob("*.toml"):
        plan.unlink()
    put(place.home / "a" / "records" / "00" / "t00000000000-r1-m00000000.1", CLAIM | {"host": HOSTILE})
    commands = (("table",), ("table", "--markdown"), ("status",), ("audit", "--markdown"), ("merge",))
    texts = {command: place.run(command[0], "a", *command[1:]) for command in commands}
    for command, ended in texts.items():
        for sign in {*ended.stdout, *ended.stderr} - {"\n"}:
            assert unicodedata.category(sign) not in ("Cc", "Cf"), (command, sign)
    for text in (texts["table", "--markdown"].stdout, (place.home / "a" / "table.md").read_text()):
        assert "example.org" in text
        inlines = [token for token in MarkdownIt("commonmark").parse(text) if token.type == "inline"]
        kinds = {child.type for token in inlines for child in token.children or ()}
        assert not kinds & {"link_open", "image", "html_inline"}
        assert "html_block" not in {token.type for token in MarkdownIt("commonmark").parse(text)}
    with (place.home / "a" / "trials.csv").open(newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert any("example.org" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@")) or {"\x1b", "\u202e"} & {*cell}]
