"""Columns added and removed by name."""

import pytest
from test_tables import row, sweep

from gpubench.basics.errors import UsageError
from gpubench.report.choice import Choice, parse
from gpubench.report.table import COLUMN, build


def names(text):
    return [column.name for column in build("sizes", sweep(), choice=parse(text, COLUMN)).columns]


def test_added_columns_stand_before_the_status_and_removed_ones_are_gone():
    usual = [column.name for column in build("sizes", sweep()).columns]
    assert names("power_w, edp_js,-cpu_util_pct") == [
        *(name for name in usual[:-1] if name != "cpu_util_pct"), "power_w", "edp_js", "status",
    ]  # fmt: skip
    assert names("epoch_time_s,-top1_pct") == usual  # there already; not there anyway


def test_a_column_that_nobody_measured_is_shown_empty():
    table = build("x", [row(64, epoch_time_s=1.0)], choice=Choice(added=("temperature_c",)))
    place = [column.name for column in table.columns].index("temperature_c")
    assert table.cells[0][place] == "–"


@pytest.mark.parametrize(
    ("text", "words"),
    [("growth", "did you mean gpu_mem_growth_pct, epoch_time_growth_pct?"), ("GPU MiB", "did you mean gpu_mem_mib?"),
     ("temperature", "did you mean temperature_c?"), ("power", "power_w"),
     ("pct", "docs/columns.md"), ("zzz", "docs/columns.md"), ("foo", "docs/columns.md .* trials.csv$"),
     ("powr_w", "did you mean power_w?"), ("-powr_w", "did you mean power_w?"), ("power_w,", "between two commas"),
     ("-", "between two commas"), ("loss,-loss", "both added and removed")],
)  # fmt: skip
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        parse(text, COLUMN)


def test_a_table_without_columns_is_refused():
    usual = ",".join(f"-{column.name}" for column in build("sizes", sweep()).columns)
    with pytest.raises(UsageError, match="every column is removed"):
        names(usual)
