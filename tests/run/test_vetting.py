"""What a child finds out about users' models: what is too slow, what dies; and what only a file's text shows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import scripted
from benches import node_of

from gpubench.basics.errors import UsageError
from gpubench.run import checks

NODE = node_of(scripted.computer())
NET = "from torch import nn\ndef net(num_classes):\n    return nn.Linear(1, num_classes)\n"
SIZES = {"num_classes": 3, "input_size": 8, "channels": 3, "width": 1.0}


def tries(folder: Path, **files: str) -> dict[str, Any]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    models = [f"{folder}/{name}.py:net" for name in files]
    return {f"model {model!r}": {"model": model, **SIZES} for model in models}


@pytest.mark.slow
@pytest.mark.parametrize("wait", ["sys.stdin.read() or time.sleep(60)", "exec('while True: pass')"])
def test_a_model_that_is_not_ready_in_time_is_not_refused(tmp_path: Path, wait: str) -> None:
    said: list[str] = []
    began = time.monotonic()
    slow = f"import sys, time\ndef net(num_classes):\n    {wait}\n"
    checks.run_tries(NODE, tries(tmp_path, fine=NET, slow=slow), 2, said.append)
    assert time.monotonic() - began < 50
    (line,) = said
    assert line.startswith(f"model '{tmp_path}/slow.py:net': not ready after 2 s")
    assert "\n" not in line


@pytest.mark.slow
def test_no_disk_is_needed_to_try_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one for temporary files may be full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    checks.run_tries(NODE, tries(tmp_path, fine=NET), 20, lambda _: None)


@pytest.mark.slow
def test_a_model_whose_process_dies_is_named_and_what_another_prints_or_starts_is_no_answer(
    tmp_path: Path,
) -> None:
    loud = "import subprocess\nprint('{\"error\": \"no\"}', flush=True)\nsubprocess.Popen(['sleep', '20'])\n"
    dies = "import os\nos.write(2, b'last words\\n')\nos.abort()\n"
    began = time.monotonic()
    with pytest.raises(
        UsageError, match=r"dies\.py:net': its process died while it was tried \(last words\)"
    ):
        checks.run_tries(NODE, tries(tmp_path, loud=loud + NET, dies=dies), 30, pytest.fail)
    # It does not wait for what the file has started.
    assert time.monotonic() - began < 19


@pytest.mark.parametrize(
    "text",
    [
        "def net(): pass", "class net: pass", "net = 3", "from x import net", "from x import y as net",
        "from x import *", "if x:\n    def net(): pass", "def __getattr__(name): pass",
        "globals()['net'] = 3", "for net in []: pass",
    ],
)  # fmt: skip
def test_a_function_that_the_text_may_define_is_left_to_the_child(tmp_path: Path, text: str) -> None:
    (tmp_path / "nets.py").write_text(text)
    checks.check_source(f"{tmp_path}/nets.py:net")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"def nat(): pass", "unknown function of .*nets.py 'net': did you mean nat"),
        (b"x = 3", "nets.py defines no function"),
        (b"def net(:", "nets.py, line 1: SyntaxError"),
        (b"def net():\n  x\n y", "nets.py, line 3: SyntaxError"),
        (b"\xff\xfe", "nets.py, line 1: SyntaxError"),
        (b"# coding: nosuch\nx = 1", "nets.py: SyntaxError: unknown encoding"),
        (b"x\0y", "nets.py is no Python text: it has null bytes, as binary files and texts in UTF-16 do"),
        ("def net(): pass".encode("utf-16"), "it has null bytes"),
    ],
)
def test_what_the_text_shows_is_told_at_once(tmp_path: Path, text: bytes, says: str) -> None:
    (tmp_path / "nets.py").write_bytes(text)
    with pytest.raises(UsageError, match=says) as caught:
        checks.check_source(f"{tmp_path}/nets.py:net")
    assert "\n" not in str(caught.value)
