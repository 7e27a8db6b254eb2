"""What tests of commands share."""

from __future__ import annotations

from pathlib import Path

import pytest
from place import Place
from warm_command import WarmCommand


@pytest.fixture
def place(tmp_path: Path, warm_command: WarmCommand) -> Place:
    return Place(tmp_path, warm_command)
