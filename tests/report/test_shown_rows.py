"""Which rows of a table are shown, and in which order: what is asked, and what is refused."""

from __future__ import annotations

import committed
import pytest
from fixed_folder import ODD, fixed

from gpubench.basics.errors import UsageError
from gpubench.report import layout
from gpubench.report.reading import reading
from gpubench.report.shown import parse
from gpubench.report.table import Table


def never(line: str) -> None:
    raise AssertionError(line)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    (found,) = reading(fixed(tmp_path_factory.mktemp("shown") / "fixed"), never).tables
    return found


def places(table: Table) -> list[tuple[str, int]]:
    return [("odd" if row.variant == ODD else "crop", row.batch_size or 0) for row in table.rows]


@pytest.mark.parametrize(
    ("where", "left"),
    [
        (["batch_size>=64"], [("odd", 64), ("odd", 128), ("crop", 64), ("crop", 128)]),
        (["batch_size > 64", "variant=crop-resize"], [("crop", 128)]),
        (["batch_size=16,128", "variant!=crop-resize"], [("odd", 16), ("odd", 128)]),
        (["batch_size!=16,32,64"], [("odd", 128), ("crop", 128)]),
        (["status=oom"], [("crop", 128)]),
        (["epoch_time_s<4"], [("crop", 32), ("crop", 64)]),
        # A row that failed has no time, and is neither below nor above.
        (["epoch_time_s!=4"], [("odd", 128), ("crop", 16), ("crop", 32), ("crop", 64)]),
        (["batch_size<2e1"], [("odd", 16), ("crop", 16)]),
        (["reason=CUDA out of memory; + 2 GiB"], [("crop", 128)]),
        (["gpu_ids=0", "batch_size=32"], [("crop", 32)]),
        (["repeats>=3"], [("crop", 16)]),
        (["gpu_name=NVIDIA H200", "batch_size=32"], [("crop", 32)]),
    ],
)
def test_rows_that_meet_all_conditions(table: Table, where: list[str], left: list[tuple[str, int]]) -> None:
    assert places(parse(where=where).of(table)) == left


@pytest.mark.parametrize(
    ("sort", "first", "last"),
    [
        ("epoch_time_s", ("crop", 64), ("crop", 128)),
        ("-epoch_time_s", ("odd", 128), ("crop", 128)),  # those without a time are last either way
        ("-batch_size,variant", ("odd", 128), ("crop", 16)),
        ("batch_size,-variant", ("crop", 16), ("odd", 128)),
    ],
)
def test_rows_in_the_order_of_columns(
    table: Table, sort: str, first: tuple[str, int], last: tuple[str, int]
) -> None:
    found = places(parse(sort=sort).of(table))
    assert (found[0], found[-1]) == (first, last)
    assert sorted(found) == sorted(places(table))


def test_what_is_chosen_changes_no_figure_and_no_sentence(table: Table) -> None:
    """Else rows could be chosen for what they say, and the answers would be corrected for fewer claims."""
    shown = parse(where=["batch_size>=64"], sort="-epoch_time_s").of(table)
    assert (shown.answers, shown.remarks, shown.doubts) == (table.answers, table.remarks, table.doubts)
    assert shown.claims == table.claims
    by_row = {id(row): cells for row, cells in zip(table.rows, table.cells, strict=True)}
    assert all(by_row[id(row)] == cells for row, cells in zip(shown.rows, shown.cells, strict=True))
    assert shown.heading[-1].startswith("4 of 7 rows shown, where batch_size>=64, ")


def test_each_row_of_a_group_is_still_under_its_name() -> None:
    """Rows of two groups that change places, and one alone between them, are never taken for the wrong group's."""
    for table in reading(committed.folder("h200-copies-2026"), never).tables:
        names: dict[int, str] = {}
        sorted_, some = parse(sort="epoch_time_s").of(table), parse(where=["batch_size=16"]).of(table)
        for shown in (table, sorted_, some):
            name = ""
            for number, row in enumerate(shown.rows):
                name = layout.section(shown, number) or name
                under = "" if name == "alone" else name
                assert names.setdefault(id(row), under) == under
        assert len(set(names.values())) > 1


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"sort": "epoch_tme_s"}, r"^unknown column 'epoch_tme_s': did you mean epoch_time_s"),
        ({"where": ["batchsize>=64"]}, r"^unknown column 'batchsize': did you mean batch_size"),
        ({"sort": "batch_size,,"}, r"^--sort: the name of a column is missing"),
        ({"sort": "batch_size,-batch_size"}, r"^--sort: batch_size is given twice$"),
        (
            {"where": ["batch_size"]},
            r"^--where: 'batch_size' is no condition; write one such as 'batch_size>=64'",
        ),
        ({"where": ["batch_size>=many"]}, r"^--where: batch_size holds numbers, and 'many' is none$"),
        ({"where": ["batch_size>=nan"]}, r"^--where: batch_size holds numbers, and 'nan' is none$"),
        ({"where": ["batch_size>16,32"]}, r"several values go with = and != alone$"),
        ({"where": ["top1_pct="]}, r"names no value; a figure that is empty meets no condition anyway$"),
        ({"where": ["breakdown>yes"]}, r"^--where: breakdown is yes or no, which have no order"),
        ({"where": ["breakdown=maybe"]}, r"^--where: breakdown is yes or no, not 'maybe'$"),
        ({"where": ["gpu_ids>0"]}, r"^--where: gpu_ids holds lists, which have no order"),
        ({"where": ["__import__('os')=1"]}, r"^unknown column \"__import__\('os'\)\""),
    ],
)
def test_what_can_not_be_asked(asked: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse(**asked)  # type: ignore[arg-type]
