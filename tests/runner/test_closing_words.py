"""What a sweep says at its end besides the answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.runner import command
from gpubench.runner.sweep import Settings, Summary


@pytest.mark.parametrize("mode", ["quiet", "json"])
def test_without_a_table_the_way_to_the_reasons_is_named(
    mode: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    work: Any = SimpleNamespace(
        bench=SimpleNamespace(results=SimpleNamespace(folder=Path("out/x"))), reused=lambda _: [], problems=[]
    )
    view: Any = SimpleNamespace(say=said.append)
    command.finish(work, [], Summary(ran=1, failed=1), view, mode)
    assert said == [
        "1 failed: the reasons are below gpubench table out/x; --retry failed,timeout runs them again"
    ]
    capsys.readouterr()


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        (False, "to continue, run the same command again"),
        (True, "the same command measures all of them anew"),
    ],
)
def test_what_goes_on_after_a_stop_is_said(
    fresh: bool, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With --fresh nothing is gone on with: the finished trials would be measured again."""
    said: list[str] = []
    work: Any = SimpleNamespace(
        bench=SimpleNamespace(results=SimpleNamespace(folder=Path("out/x"))),
        problems=[],
        settings=Settings(fresh=fresh),
    )
    view: Any = SimpleNamespace(say=said.append)
    command.finish(work, [], Summary(ran=1, interrupted=True), view, "quiet")
    assert said[0].startswith("stopped; ")
    assert said[0].endswith(words)
    capsys.readouterr()


def test_what_was_skipped_for_a_lost_gpu_is_left_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    work: Any = SimpleNamespace(
        bench=SimpleNamespace(results=SimpleNamespace(folder=Path("out/x"))), problems=[]
    )
    view: Any = SimpleNamespace(say=said.append)
    command.finish(work, [], Summary(skipped=2, lost=2), view, "quiet")
    assert said == ["2 skipped because a GPU was lost: once it is back, the same command runs them"]
    capsys.readouterr()
