"""The table that stands on a terminal while rounds go on, in whatever room there is, and the line after a round."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import pytest
from gpubench.report.standing import round_line, standing
from gpubench.report.table import Table, build
from rich.console import Console
from screen import Screen
from test_groups_told import alone, group
from test_tables import row

from gpubench.plan.outlook import Left
from gpubench.plan.rounds import ONE, Rounds
from gpubench.render.live import LiveView, PlainView, QuietView, view
from gpubench.render.running import LiveProgress, rounds_bar
from gpubench.schema.row import Row

FIVE = Rounds(number=5)


def processes(batch: int, *times: float, **values: object) -> list[Row]:
    values = {"gpu_mem_mib": 2000.0 + batch} | values
    return [row(batch, epoch_time_s=t, repeat=n, round=n, trial_id=f"t{batch}-{n}", **values)
            for n, t in enumerate(times, 1)]  # fmt: skip


def table(*rows: Sequence[Row]) -> Table:
    return build("sizes", [one for some in rows for one in some], axes=(("batch_size",),))


def apart(half: float) -> tuple[float, ...]:
    """Two times around 2.0 whose interval reaches so far on the log scale."""
    step = half / 12.706
    return 2 * math.exp(-step), 2 * math.exp(step)


MIXED = table(
    processes(16, *apart(0.041)), processes(32, 1.5), processes(64, *apart(0.02)), processes(128, 1.0, 4.0),
    [row(256, "oom")],
)  # fmt: skip


def lines(found: Table, width: int = 80, height: int = 20) -> list[str]:
    return [line.plain for line in standing(found, width, height)]


def test_it_has_what_varies_memory_the_time_with_its_interval_n_and_status() -> None:
    assert lines(MIXED, 72) == [
        "batch       GPU        epoch",
        " size  n    MiB       time s       ±  growth  status",
        "─────  ─  ─────  ───────────  ──────  ──────  ──────",
        "   16  2  2,016    2.0 ± 0.1   4.1 %          ok",
        "   32  1  2,032          1.5           −25 %  ok",
        "   64  2  2,064  2.00 ± 0.04   2.0 %   +33 %  ok",
        "  128  2  2,128          2.0  >100 %     0 %  ok !",
        "  256  0      –            –               –  oom",
    ]


@pytest.mark.parametrize("width", [10, 24, 40, 60, 80, 120])
@pytest.mark.parametrize("height", [0, 3, 5, 6, 8, 20])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    found = lines(MIXED, width, height)
    assert len(found) <= height
    assert all(len(line) <= width for line in found)


def test_where_it_is_narrow_columns_go_and_the_time_goes_last() -> None:
    wide, narrow, narrowest = lines(MIXED, 120)[1], lines(MIXED, 40)[1], lines(MIXED, 22)[1]
    assert "MiB" in wide
    assert "MiB" not in narrow
    assert "±" in narrow
    assert narrowest.split() == ["size", "time", "s"]


def test_where_it_is_low_the_least_sure_rows_stay_and_the_others_are_counted() -> None:
    found = lines(MIXED, 80, 7)
    assert [line.split()[0] for line in found[3:6]] == ["16", "32", "128"]
    assert found[-1] == "2 rows not shown: the surest, or without a time"
    assert lines(MIXED, 80, 5) == [], "less than two rows are no table"


def test_rows_of_a_group_stand_below_its_name() -> None:
    jobs = build("g", [alone(16), *group("2 copies", batches=(16, 16))])
    assert [line.split()[0] for line in lines(jobs)[3:]] == ["16", "2", "1", "2"]
    assert lines(jobs)[4] == "2 copies"
    assert lines(jobs, 80, 7) == lines(jobs)
    assert lines(jobs, 80, 6) == [], "one row, its group and how many are left out"


def test_a_round_ends_with_its_widest_interval_and_what_is_left() -> None:
    sure = table(processes(16, *apart(0.041)), processes(32, *apart(0.02)))
    assert round_line(2, FIVE, sure, Left(seconds=200)) == (
        "round 2 of 5: widest interval ± 4.1 % (batch_size=16); about 3 min left"
    )
    assert (
        round_line(5, FIVE, sure, Left(seconds=0)) == "round 5 of 5: widest interval ± 4.1 % (batch_size=16)"
    )
    assert "± >100 % (batch_size=128)" in round_line(2, FIVE, MIXED, Left(seconds=0))
    one = table(processes(16, 1.0), processes(32, 1.0))
    assert round_line(1, FIVE, one, Left(seconds=0)) == "round 1 of 5: each row is of one process"
    assert round_line(1, FIVE, table([row(256, "oom")]), Left(seconds=0)) == "round 1 of 5: no row has a time"


def bar(number: int, rounds: Rounds, done: int, total: int, width: int = 80) -> str:
    return rounds_bar(number, rounds, done, total, width).plain


def test_a_bar_for_each_round() -> None:
    assert bar(2, FIVE, 3, 6) == "round 2 of 5  ━━━━━━━ ━━━──── ─────── ─────── ───────  3 of 6 done"
    assert bar(7, Rounds(within_pct=2.0), 1, 4) == "round 7  " + "━" * 10 + "─" * 30 + "  1 of 4 done"
    assert bar(2, Rounds(number=30), 1, 2) == "round 2 of 30  " + "━" * 20 + "─" * 20 + "  1 of 2 done"
    assert bar(2, FIVE, 3, 6, width=30) == "round 2 of 5  3 of 6 done"
    assert all(len(bar(2, FIVE, 3, 6, width=width)) <= width for width in range(1, 100))


PROGRESS = LiveProgress(
    done=2, total=5, trial_label="batch_size=64", epoch=1, epochs=1, step=80, steps=160, elapsed_s=72, left_s=270
)  # fmt: skip


class Shown:
    """A live view on a screen."""

    def __init__(self, width: int = 80, height: int = 24, *, tables: bool = True) -> None:
        self.file = io.StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, width=width, height=height, color_system=None, _environ={}
        )
        self.view = LiveView(self.console, tables=tables)
        self.screen = Screen(width, height)
        self._read = 0

    @property
    def lines(self) -> list[str]:
        self.screen.feed(self.file.getvalue()[self._read :])
        self._read = len(self.file.getvalue())
        return self.screen.lines


def test_the_table_stands_above_the_trial_and_goes_in_the_end() -> None:
    seen = Shown()
    seen.view.say("before")
    seen.view.began_round(2, FIVE)
    seen.view.stands(lambda: MIXED, at_once=True)
    seen.view.update(PROGRESS)
    found = seen.lines
    assert found[0] == "before"
    assert found[1:9] == lines(MIXED)
    assert found[9:11] == ["", bar(2, FIVE, 2, 5)]
    assert found[11] == "[3/5] batch_size=64"
    assert found[-1] == "  ~4:30 left  1:12 elapsed"
    seen.view.close()
    assert seen.lines == ["before"]


def test_what_the_table_says_is_no_line_of_its_own_and_what_went_wrong_is() -> None:
    seen = Shown()
    seen.view.began_round(1, FIVE)
    seen.view.update(PROGRESS)
    seen.view.finished(1, 5, "first", row(64, epoch_time_s=1.0))
    seen.view.stands(lambda: MIXED, at_once=True)
    seen.view.began_round(2, FIVE)
    seen.view.update(PROGRESS)
    seen.view.finished(1, 5, "again", row(64, epoch_time_s=1.0))
    seen.view.finished(2, 5, "other", row(64, "failed", reason="why"))
    seen.view.ended_round("round 2 of 5: so sure")
    seen.view.close()
    assert seen.lines == [
        "[1/5] first  ok  epoch 1.00 s",
        "[2/5] other  failed  why",
        "round 2 of 5: so sure",
    ]


def test_where_no_table_fits_each_trial_is_a_line() -> None:
    seen = Shown(height=8)
    seen.view.stands(lambda: MIXED, at_once=True)
    seen.view.began_round(2, FIVE)
    seen.view.update(PROGRESS)
    seen.view.finished(1, 5, "again", row(64, epoch_time_s=1.0))
    assert seen.lines[0] == "[1/5] again  ok  epoch 1.00 s"
    assert len(seen.screen.seen) <= 8


def test_a_certainty_or_a_budget_is_what_the_remaining_time_is_to() -> None:
    seen = Shown()
    seen.view.update(
        LiveProgress(
            done=0, total=1, trial_label="b", left_s=90, until="to ± 2 %", at_least=True, elapsed_s=5
        )
    )
    assert seen.lines[-1] == "  at least 1:30 left to ± 2 %  0:05 elapsed"


def test_nobody_makes_a_table_for_a_view_that_shows_none() -> None:
    def never() -> Table:
        raise AssertionError("a table was made")

    plain = Console(file=io.StringIO())
    for one in (QuietView(), PlainView(plain), Shown(tables=False).view):
        one.began_round(1, FIVE)
        one.stands(never, at_once=True)


def test_without_a_terminal_a_round_is_a_line_before_and_one_after() -> None:
    for tables, said in ((True, "round 2 of 5\nround 2 of 5: so sure\n"), (False, "round 2 of 5\n")):
        console = Console(file=io.StringIO(), force_terminal=False)
        plain = view(console, tables=tables)
        plain.began_round(1, ONE)
        plain.began_round(2, FIVE)
        plain.ended_round("round 2 of 5: so sure")
        assert console.file.getvalue() == said  # type: ignore[attr-defined]
