"""What a sweep says at its end besides the answer."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubench.plan import values
from gpubench.sweep.closing import finish, twice
from gpubench.sweep.summary import Summary
from gpubench.sweep.survey import Settings


def finished(mode: Any, summary: Summary, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What is said at the end of a sweep into out/x, with a limit of 90 s a trial."""
    said: list[str] = []
    bench = SimpleNamespace(results=SimpleNamespace(folder=Path("out/x")), timeout_s=90.0)
    work: Any = SimpleNamespace(bench=bench, reused=lambda _: [], problems=[], others=[])
    view: Any = SimpleNamespace(say=said.append)
    finish(work, [], summary, view, mode)
    capsys.readouterr()
    return said


@pytest.mark.parametrize("mode", ["quiet", "json"])
def test_without_a_table_the_way_to_the_reasons_is_named(
    mode: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finished(mode, Summary(ran=1, failed=1), capsys) == [
        "1 failed: the reasons are in out/x/trials.csv, the logs in out/x/logs; --retry failed runs it again"
    ]


def test_who_timed_out_is_told_apart_with_the_limit_and_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert finished("quiet", Summary(ran=5, failed=2, timed_out=3), capsys) == [
        "2 failed: the reasons are in out/x/trials.csv, the logs in out/x/logs; --retry failed runs them again",
        "3 timed out: where they stood at the deadline is in out/x/trials.csv, the logs in out/x/logs; the limit "
        "is now 90 s a trial, and --retry timeout --timeout 3m runs them again with twice that",
    ]
    assert finished("quiet", Summary(reused=1, timed_out=1), capsys)[0] == (
        "nothing left to do: 1 done, 0 skipped, 0 failed before, 1 timed out before"
    )


@pytest.mark.parametrize(("limit_s", "says"), [(600, "20m"), (1, "2s"), (0.4, "1s"), (45, "90s")])
def test_twice_a_limit_is_written_as_the_option_takes_it(limit_s: float, says: str) -> None:
    assert twice(limit_s) == says
    assert values.seconds(says) >= 2 * limit_s


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
        others=[],
        settings=Settings(fresh=fresh),
    )
    view: Any = SimpleNamespace(say=said.append)
    finish(work, [], Summary(ran=1, interrupted=True), view, "quiet")
    assert said[0].startswith("stopped; ")
    assert said[0].endswith(words)
    capsys.readouterr()


def test_what_was_skipped_for_a_lost_gpu_is_left_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []
    work: Any = SimpleNamespace(
        bench=SimpleNamespace(results=SimpleNamespace(folder=Path("out/x"))), problems=[], others=[]
    )
    view: Any = SimpleNamespace(say=said.append)
    finish(work, [], Summary(skipped=2, lost=2), view, "quiet")
    assert said == ["2 skipped because a GPU was lost: once it is back, the same command runs them"]
    capsys.readouterr()


def test_who_is_still_at_it_is_named_and_nothing_is_said_to_be_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: list[str] = []
    others = [f"process {number} on n{number}" for number in range(1, 5)]
    bench = SimpleNamespace(results=SimpleNamespace(folder=Path("out/x")), timeout_s=90.0)
    work: Any = SimpleNamespace(bench=bench, reused=lambda _: [], problems=[], list_others=lambda: others)
    view: Any = SimpleNamespace(say=said.append)
    finish(work, [], Summary(elsewhere=3), view, "quiet")
    capsys.readouterr()
    assert said == [
        "4 others (process 1 on n1, process 2 on n2, process 3 on n3 and 1 more) are at work on 3 of its trials and "
        "groups, which the table lacks yet; gpubench status out/x tells how far they are"
    ]
