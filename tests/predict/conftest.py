"""What tests of `gpubench predict` are given."""

from __future__ import annotations

import pytest
from made_up_rows import FAR, Asked

from gpubench.commands import predict as predict_command


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str]) -> Asked:
    return Asked(capsys)


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is the one that has measured."""
    monkeypatch.setattr(predict_command.environment, "machine", lambda _: FAR)
