"""Which columns and rows of a table are shown, and in which order: what is asked, and what is refused."""

from __future__ import annotations

from pathlib import Path

import committed
import made_up_rows
import pytest
from fixed_folder import ODD, fixed

from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.questions import make_folder_reports, make_table_report
from gpubench.analyze.view import TableView, parse_view
from gpubench.basics.errors import UsageError
from gpubench.core.findings import NetworkSizeFinding, SharingFinding
from gpubench.core.report import Report, RowSelection
from gpubench.render.words import format_legend
from gpubench.schema.columns import TABLE_BY_NAME


def never_stop(line: str) -> None:
    raise AssertionError(line)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return read_folder(fixed(tmp_path_factory.mktemp("shown") / "fixed"), never_stop)


def list_places(folder: Folder, view: TableView) -> list[tuple[str, int]]:
    summary = folder.select_table_rows(folder.tables[0])
    rows = summary.loc[view.select_rows(summary)]
    return [
        ("odd" if variant == ODD else "crop", batch)
        for variant, batch in zip(rows["variant"], rows["batch_size"], strict=True)
    ]


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
        (["breakdown=no", "batch_size=32"], []),  # no record tells
        (["epoch_time_s>1000"], []),
    ],
)
def test_rows_that_meet_all_conditions(folder: Folder, where: list[str], left: list[tuple[str, int]]) -> None:
    assert list_places(folder, parse_view(where=where)) == left


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
    folder: Folder, sort: str, first: tuple[str, int], last: tuple[str, int]
) -> None:
    places = list_places(folder, parse_view(sort=sort))
    assert (places[0], places[-1]) == (first, last)
    assert sorted(places) == sorted(list_places(folder, TableView()))


def test_equal_rows_keep_their_order_whichever_way_they_are_sorted(folder: Folder) -> None:
    for sort in ("strategy", "-strategy"):
        assert list_places(folder, parse_view(sort=sort)) == list_places(folder, TableView())


def list_labels(report: Report) -> list[int]:
    return [label for row in report.rows for label in row.labels]


def test_what_is_chosen_changes_no_figure_and_no_finding(folder: Folder) -> None:
    """Else rows could be chosen for what they say, and the answers would be corrected for fewer claims."""
    (table,) = folder.tables
    whole = make_table_report(folder, table)
    part = make_table_report(folder, table, parse_view(where=["batch_size>=64"], sort="-epoch_time_s"))
    assert (part.findings, part.warnings, part.labels) == (whole.findings, whole.warnings, whole.labels)
    assert (whole.selection, part.selection) == (
        None, RowSelection(rows=4, total=7, where=("batch_size>=64",), sort=("epoch_time_s downward",)),
    )  # fmt: skip
    times = {
        row.labels: row.cells[[c.name for c in part.columns].index("epoch_time_s")].value for row in part.rows
    }
    assert times == {
        (label,): folder.summary["epoch_time_s"].get(label) if folder.summary["repeats"][label] else None
        for label in list_labels(part)
    }
    known = [time for time in times.values() if time is not None]
    assert known == sorted(known, reverse=True)
    assert len(part.groups) == 1  # rows of one order stand under no heads


def test_groups_of_jobs_and_networks_are_chosen_as_lines() -> None:
    copies = committed.load("h200-copies-rounds-2026")
    (whole,) = make_folder_reports([copies])
    assert isinstance(whole.findings[0], SharingFinding)
    (part,) = make_folder_reports([copies], parse_view(where=["batch_size=16"], sort="-slowdown"))
    batches = {label: copies.summary["batch_size"][label] for label in list_labels(part)}
    assert set(batches.values()) == {16}
    assert [len(row.labels) for row in part.rows] == [2, 3]  # the pair is slowed down most
    assert [row for row in whole.rows if row in part.rows] == list(part.rows)
    networks = committed.load("h200x2-network-size-2026")
    (part,) = make_folder_reports([networks], parse_view(where=["model=lenet"], sort="-gmacs_per_image"))
    assert isinstance(part.findings[0], NetworkSizeFinding)
    assert [row.cells[0].value for row in part.rows] == ["lenet x16", "lenet x4", "lenet"]


def test_trials_that_no_group_is_compared_with_are_counted_and_can_be_chosen(tmp_path: Path) -> None:
    others = [made_up_rows.alone(batch, model="resnet50") for batch in (16, 64)]
    home = made_up_rows.folder(
        tmp_path / "x", *others, made_up_rows.together(32, [2.0, 2.0], [1.9, 1.9], "10:00")
    )
    folder = read_folder(home, never_stop)
    (whole,) = make_folder_reports([folder])
    assert isinstance(whole.findings[0], SharingFinding)
    shown = {label for row in whole.rows for label in row.labels}
    assert set(folder.summary["batch_size"][list(whole.unlisted_rows)]) == {16, 64}
    assert shown | set(whole.unlisted_rows) == set(folder.summary.index)
    assert "2 rows in no group: --columns all" in format_legend(whole)
    (chosen,) = make_folder_reports([folder], parse_view(where=["model=resnet50"]))
    assert [row.labels for row in chosen.rows] == [(row,) for row in whole.unlisted_rows]
    (pair,) = make_folder_reports([folder], parse_view(where=["batch_size=32"]))
    assert (pair.rows, pair.unlisted_rows) == (whole.rows, ())


def list_columns(folder: Folder, text: str | None) -> list[str]:
    (report,) = make_folder_reports([folder], parse_view(text))
    assert all(len(row.cells) == len(report.columns) for row in report.rows)
    return [column.name for column in report.columns]


def test_columns_are_added_behind_the_usual_ones_and_removed(folder: Folder) -> None:
    usual = list_columns(folder, None)
    assert usual == ["batch_size", "images_per_s", "epoch_time_s", "memory_gib", "cpu_util_pct"]
    assert list_columns(folder, "power_w, edp_js,-cpu_util_pct") == [*usual[:-1], "power_w", "edp_js"]
    assert list_columns(folder, "epoch_time_s,-top1_pct") == usual  # there already; not there anyway
    assert list_columns(folder, "-gpu_mem_mib,-batch_size") == ["images_per_s", "epoch_time_s", usual[-1]]
    every = list_columns(folder, "all,trial_id,-energy_j")
    assert {*usual, "epoch_time_growth_pct", "trial_id"} <= set(every)
    assert not {"energy_j", "top1_pct", "status", "gpu_mem_mib"} & set(every)  # top-1 is empty in all rows


def test_jobs_stand_each_in_a_row_where_columns_are_asked_for() -> None:
    copies = committed.load("h200-copies-rounds-2026")
    (report,) = make_folder_reports([copies], parse_view("power_w"))
    assert [column.name for column in report.columns][:4] == ["group", "job", "batch_size", "copies"]
    assert list_labels(report) == list(copies.summary.index)
    assert "work" not in list_columns(copies, "-work")


def test_a_table_without_columns_is_refused(folder: Folder) -> None:
    usual = ",".join(f"-{name}" for name in list_columns(folder, None))
    with pytest.raises(UsageError, match="every column is removed"):
        list_columns(folder, usual)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"columns": "work"}, r"^unknown column 'work'"),
        ({"columns": "powr_w"}, r"did you mean power_w\?"),
        ({"columns": "-powr_w"}, r"did you mean power_w\?"),
        ({"columns": "power_w,"}, r"^unknown column ''"),
        ({"columns": "-"}, r"^unknown column ''"),
        ({"columns": "-all"}, r"^unknown column 'all'"),
        ({"sort": "epoch_tme_s"}, r"^unknown column 'epoch_tme_s': did you mean epoch_time_s"),
        ({"where": ["batchsize>=64"]}, r"^unknown column 'batchsize': did you mean batch_size"),
        ({"sort": "batch_size,,"}, r"^unknown column ''"),
        (
            {"where": ["batch_size"]},
            r"^--where: 'batch_size' is no condition; write one such as 'batch_size>=64'",
        ),
        ({"where": ["batch_size>=many"]}, r"^--where: batch_size holds numbers, and 'many' is none$"),
        ({"where": ["batch_size>16,32"]}, r"several values go with = and != alone$"),
        ({"where": ["top1_pct="]}, r"^--where: 'top1_pct=' is no condition"),
        ({"where": ["breakdown>yes"]}, r"^--where: breakdown has no order; use = or !="),
        ({"where": ["breakdown=maybe"]}, r"^--where: breakdown is yes or no, not 'maybe'$"),
        ({"where": ["gpu_ids>0"]}, r"^--where: gpu_ids has no order; use = or !="),
        ({"where": ["__import__('os')=1"]}, r"^unknown column \"__import__\('os'\)\""),
    ],
)
def test_what_can_not_be_asked(asked: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        parse_view(**asked)  # type: ignore[arg-type]


def test_every_column_can_be_a_condition_and_an_order(folder: Folder) -> None:
    summary = folder.select_table_rows(folder.tables[0])
    for name in TABLE_BY_NAME:
        assert len(parse_view(where=[f"{name}!=0"]).select_rows(summary)) <= len(summary)
        assert sorted(parse_view(sort=f"-{name}").select_rows(summary)) == sorted(summary.index)
