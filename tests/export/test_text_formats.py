"""`gpubench export` in the formats that are text, as users run it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from fixed_folder import ODD, fixed
from swept import swept
from warm_command import WarmCommand

from gpubench.analyze.folder import read_folders
from gpubench.export.formats import FORMATS, FormatOptions
from gpubench.results.csv_text import DIALECTS, format_csv

Export = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fixed(tmp_path_factory.mktemp("export") / "fixed")


@pytest.fixture
def run(warm_command: WarmCommand, tmp_path: Path) -> Export:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)

    return run


def test_no_two_formats_end_alike() -> None:
    endings = [one.suffix for one in FORMATS.values()]
    assert len(set(endings)) == len(endings)
    assert all(one.startswith(".") and one == one.lower() for one in endings)


@pytest.mark.slow
@pytest.mark.parametrize(("form", "name"), [("csv", "csv"), ("latex", "tex")])
def test_a_form_and_the_format_of_its_name_are_one_text(
    run: Export, folder: Path, form: str, name: str
) -> None:
    table = run("table", str(folder), f"--{form}")
    export = run("export", str(folder), "--format", name)
    assert (table.returncode, table.stderr) == (export.returncode, export.stderr) == (0, "")
    assert table.stdout == export.stdout


def test_a_file_names_the_record_that_is_left_out(run: Export, folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "x")
    record = min((tmp_path / "x" / "records").glob("*/*.json"))
    record.write_bytes(record.read_bytes()[:200])
    export = run("export", "x", "--format", "json")
    assert (export.returncode, export.stderr.count(record.name)) == (0, 1)
    (report,) = json.loads(export.stdout)["reports"]
    assert [f"{record.name} is left out" in problem for problem in report["problems"]] == [True]


def test_a_file_is_written_whole_by_its_ending(run: Export, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "x.csv").symlink_to(tmp_path / "linked" / "real.csv")
    assert run("export", str(folder), "--out", "x.csv").returncode == 0
    assert (tmp_path / "x.csv").is_symlink()
    assert (tmp_path / "linked" / "real.csv").read_text() == run(
        "export", str(folder), "--format", "csv"
    ).stdout
    assert run("export", str(folder), "--out", "-", "--format", "md").stdout.startswith("## ")


def test_a_pipe_is_written_into_and_not_replaced(run: Export, folder: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    assert run("export", str(folder), "--out", str(pipe)).returncode == 0
    assert reader.communicate(timeout=30)[0].startswith("experiment,")
    assert pipe.is_fifo()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (["--format", "cvs"], 2, "unknown format 'cvs': did you mean csv?"),
        (["--out", "x.foo"], 2, "--format: '.foo' is the ending of none; say which one: csv, "),
        ([], 2, "--format: say which one: csv, "),
        (["--format", "csv", "--sheet", "epoch"], 2, "unknown sheet 'epoch': did you mean epochs?"),
        (["--format", "md", "--sheet", "epochs"], 2, "--sheet goes with --format csv or parquet alone"),
        (["--out", "x.tex", "--excel-eu"], 2, "--excel-eu goes with --format csv alone"),
        (["--excel", "--excel-eu"], 2, "--excel and --excel-eu are two forms of the same"),
        (["--out", "none/x.csv"], 4, "none/x.csv can't be written: there is no folder none"),
        (["--format", "csv", "--out", "."], 4, ". can't be written: it is a folder; name a file in it"),
        (["--format", "csv", "--out", "not-there/"], 2, "--out not-there/ is a folder: name a file in it"),
    ],
)
def test_what_can_not_be_had_is_one_line_and_nothing_is_written(
    run: Export, folder: Path, tmp_path: Path, arguments: list[str], code: int, why: str
) -> None:
    ended = run("export", str(folder), *arguments)
    assert (ended.returncode, ended.stdout) == (code, "")
    assert ended.stderr.startswith(f"gpubench: {why}")
    assert ended.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_of_several_folders_one_that_is_none_is_named_and_the_others_are_shown(
    run: Export, folder: Path
) -> None:
    for command in (("table",), ("export", "--format", "md")):
        ended = run(command[0], "nowhere", str(folder), *command[1:])
        assert ended.returncode == 4
        assert ended.stderr.startswith("gpubench: nowhere ")
        assert "crop-resize" in ended.stdout


@pytest.mark.parametrize(("sheet", "lines"), [("table", 7), ("trials", 9), ("epochs", 18)])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_sheets_in_each_dialect_hold_the_same_figures(
    folder: Path, sheet: str, lines: int, dialect: str
) -> None:
    folders = read_folders([folder], lambda line: pytest.fail(line))
    raw = FORMATS["csv"].write(folders, FormatOptions(sheet=sheet, dialect=dialect))
    mark, end = (b"", b"\n") if dialect == "plain" else (b"\xef\xbb\xbf", b"\r\n")
    assert raw.startswith(mark)
    assert raw.count(b"\r\n") == (len(raw.splitlines()) if end == b"\r\n" else 0)
    text = io.StringIO(raw.decode("utf-8-sig"), newline="")
    found = list(csv.DictReader(text, delimiter=";" if dialect == "excel-eu" else ","))
    assert len(found) == lines
    times = [line["epoch_time_s"].replace(",", ".") for line in found if line["epoch_time_s"]]
    assert 18.457 in map(float, times)
    assert all(len(time.partition(".")[2]) != 3 for time in times)
    if sheet != "epochs":
        assert {line["variant"] for line in found} == {"crop-resize", "'" + ODD}


@pytest.mark.slow
def test_trials_and_epochs_are_what_a_sweep_leaves(run: Export, tmp_path: Path) -> None:
    swept(tmp_path / "left", "one", "16,32").write_tables()
    for sheet in ("trials", "epochs", "table"):
        exported = run("export", "left", "--format", "csv", "--sheet", sheet).stdout
        left = (tmp_path / "left" / f"{sheet}.csv").read_text()
        # Trials that began in one second have no order.
        assert sorted(exported.splitlines()) == sorted(left.splitlines())


@pytest.mark.parametrize("dialect", DIALECTS.values())
@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"), ("\t=1", "'\t=1"), (" =1+1", " '=1+1"),
        ("a;=1+1", "a;'=1+1"), ("a,@x", "a,'@x"), ("a\t-1", "a\t'-1"), (-5, "-5"), ("a - b", "a - b"), (None, ""),
        (True, "1"), ([0, 1], "0+1"),
    ],
)  # fmt: skip
def test_text_is_never_run_and_numbers_stay_numbers(dialect: object, value: object, cell: str) -> None:
    text = format_csv(["a"], [[value]], dialect=dialect)  # type: ignore[arg-type]
    delimiter = dialect.delimiter  # type: ignore[attr-defined]
    (_, (found,)) = (
        csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter)
        if value is not None
        else ([], [""])
    )
    assert found == cell


@pytest.mark.parametrize(
    ("dialect", "cell"), [("plain", "-18.4570"), ("excel", "-18.4570"), ("excel-eu", "-18,4570")]
)
def test_a_figure_has_the_decimal_sign_of_its_dialect(dialect: str, cell: str) -> None:
    assert format_csv(["a"], [[-18.457]], dialect=DIALECTS[dialect]).splitlines()[1] == cell


def test_json_is_valid_typed_and_has_what_the_table_says(run: Export, folder: Path) -> None:
    def constant(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    data = json.loads(run("table", str(folder), "--json").stdout, parse_constant=constant)
    (report,) = data["reports"]
    assert report["name"] == "fixed"
    rows = {(row["fields"]["variant"], row["fields"]["batch_size"]): row for row in report["rows"]}
    assert {variant for variant, _ in rows} == {"crop-resize", ODD}
    number = rows["crop-resize", 32]["row"]
    assert rows["crop-resize", 32]["figures"]["epoch_time_s"] == 2.5
    assert rows["crop-resize", 32]["figures"]["top1_pct"] is None
    assert rows["crop-resize", 128]["figures"]["epoch_time_s"] is None
    (throttled,) = (warned for warned in report["warnings"] if warned["code"] == "throttled")
    assert throttled["rows"] == [number]
    best = next(finding for finding in report["findings"] if finding["question"] == "batch_size")
    assert best["choice"]["row"] == rows["crop-resize", 64]["row"]
    endings = {row["status"] for group in report["table"] for row in group["rows"]}
    assert endings == {"ok", "oom", "failed"}


def test_latex_has_as_many_cells_in_every_row_as_columns(run: Export, folder: Path) -> None:
    text = run("table", str(folder), "--latex").stdout
    depth = 0
    for number, sign in enumerate(text):
        depth += {"{": 1, "}": -1}.get(sign, 0) if text[number - 1] != "\\" else 0
        assert depth >= 0
    assert depth == 0
    rows = [line for line in text.splitlines() if line.endswith(r" \\")]
    columns = text.partition(r"\begin{tabular}{@{}")[2].partition("@{}}")[0]
    spans = [sum(map(int, re.findall(r"\\multicolumn{(\d+)}", line))) for line in rows]
    counts = [
        line.replace(r"\&", "").count("&") + bool(span) * (span - 1)
        for line, span in zip(rows, spans, strict=True)
    ]
    assert set(counts) == {len(columns) - 1}
    for rule in (r"\toprule", r"\midrule", r"\bottomrule", r"\caption{Which one is faster?}"):
        assert rule in text


def test_a_file_that_nobody_named_is_not_written_over(run: Export, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "fixed.html").write_text("somebody's own")
    done = run("export", str(folder), "--format", "html")
    assert (done.returncode, (tmp_path / "fixed.html").read_text()) == (4, "somebody's own")
    assert (done.stderr.count("\n"), "fixed.html" in done.stderr, "--out" in done.stderr) == (1, True, True)
    assert run("export", str(folder), "--format", "html", "--out", "fixed.html").returncode == 0
