"""What a child finds out about users' models: what is too slow, what dies."""

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
def test_a_model_that_is_not_ready_in_time_is_not_refused_and_no_disk_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk for temporary files may be full."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    lines: list[str] = []
    slow = "import time\ndef net(num_classes):\n    while True: time.sleep(9)\n"
    checks.run_user_code_tries(NODE, tries(tmp_path, fine=NET, slow=slow), 2, lines.append)
    (line,) = lines
    assert line.startswith(f"model '{tmp_path}/slow.py:net': not ready after 2 s")
    assert "\n" not in line


@pytest.mark.slow
def test_a_model_whose_process_dies_is_named_and_what_another_prints_or_starts_is_no_answer(
    tmp_path: Path,
) -> None:
    loud = "import subprocess\nprint('{\"error\": \"no\"}', flush=True)\nsubprocess.Popen(['sleep', '120'])\n"
    dies = "import os\nos.write(2, b'last words\\n')\nos.abort()\n"
    began = time.monotonic()
    with pytest.raises(
        UsageError, match=r"dies\.py:net': its process died while it was tried \(last words\)"
    ):
        checks.run_user_code_tries(NODE, tries(tmp_path, loud=loud + NET, dies=dies), 200, pytest.fail)
    # It does not wait for what the file has started.
    assert time.monotonic() - began < 110
