"""The web page of results: what stands in it. What it does in a browser: test_html_page_in_browser.py."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import committed
import pytest
from made_up_folders import table_of
from pages import cells, html, in_rounds, of_folders, panel, parsed, pictures, read, row, said
from swept import swept
from warm_command import WarmCommand

from gpubench.analyze.folder import read_folder, read_folders
from gpubench.export.page import grid, page
from gpubench.export.runs import list_runs
from gpubench.plan import experiment_file
from gpubench.plot.pictures import described
from gpubench.plot.subject import subjects
from gpubench.plot.table import lay_out
from gpubench.render import words

LARGEST = 3_000_000
VENDORED = {
    "d3-7.9.2.min.js": "912111098ea99503a6f4967361d2bbdc9dbf58cf9c678c8e27e5b02d1a07f0c1",
    "plot-0.6.17.umd.min.js": "4358086467740777dd788d6b27a95cebdbaefdd50c730a3060117073bd7134cb",
}
"""SHA-256 of what the npm registry gave out under these versions."""


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_a_committed_folder_as_a_page(folder: Path) -> None:
    """Valid HTML below 3 MB that loads nothing, in which every figure stands, and all that gpubench table says."""
    tables = lay_out(read_folder(folder, lambda _: None))
    text = of_folders(folder)
    assert len(text.encode()) < LARGEST
    tree = parsed(text)
    for table, shown, section in zip(tables, cells(tree), tree.iter("section"), strict=True):
        assert shown == [list(line) for line in table.cells]
        everything = said(section)
        assert table.facts in everything
        for line in words.write_lines(table.report):
            assert line.text.replace(" ", "") in everything.replace(" ", "")
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    loads_nothing(tree)


def loads_nothing(tree: Any) -> None:
    for element in tree.iter():
        for name, value in element.attrib.items():
            assert name not in ("src", "srcset", "action", "data", "poster"), (element.tag, name)
            if name == "href":
                assert value.startswith("#")
            assert not re.match("(https?:)?//", value)
        assert element.tag not in ("link", "img", "iframe", "object", "base")
    for style in tree.iter("style"):
        assert not re.search(r"url\(|@import", style.text)


HOSTILE = "</script><script>alert(1)</script><!-- ]]> \"'><img src=x onerror=alert(2)> &amp; \ud800 \x00 é"


def test_what_users_write_is_shown_and_never_run() -> None:
    rows = [
        row(16, model=HOSTILE, epoch_time_s=2.0, gpu_mem_mib=900.0, reason=HOSTILE, group=None),
        row(32, model=HOSTILE, epoch_time_s=1.0, gpu_mem_mib=950.0, host=HOSTILE),
        row(64, "failed", model=HOSTILE, reason=HOSTILE, missing={"epoch_time_s": HOSTILE}),
    ]
    rows += [row(16, model=f"{HOSTILE}2", epoch_time_s=3.0, trial_id="other", config_id="other")]
    plain = parsed(html(read(in_rounds())))
    text = html(read(rows, HOSTILE, HOSTILE, folder="a<b>&'\" \udcff"))
    tree = parsed(text)
    run = [[one for one in found.iter("script") if one.get("type") is None] for found in (plain, tree)]
    assert len(run[0]) == 4
    assert [one.text for one in run[0]] == [one.text for one in run[1]]
    assert not list(tree.iter("img"))
    assert pictures(tree)  # each is valid JSON
    told = panel(tree, "epoch time")["series"][0]["points"][0]["told"]
    assert HOSTILE[:60] in told
    assert HOSTILE[:60] in said(tree.find("head/title"))
    assert HOSTILE[:60] in said(tree.find(".//h1"))
    assert "a<b>&'\"" in said(tree.find("body"))


def test_points_are_the_rows_figures_and_gaps_stay_gaps() -> None:
    table = table_of(in_rounds(), axes=[["batch_size"]])
    tree = parsed(html(read(in_rounds())))
    (series,) = panel(tree, "epoch time")["series"]
    points = {point["x"]: point for point in series["points"]}
    for line in table.rows:
        point = points[line.batch_size]
        assert (point["y"], point.get("lo"), point.get("hi")) == (
            line.epoch_time_s, line.epoch_time_low_s, line.epoch_time_high_s)  # fmt: skip
    assert points[16]["lo"] < 4.0 < points[16]["y"] < 4.4 < points[16]["hi"]
    assert {x for x, point in points.items() if point["y"] is None} == {128, 256, 512}
    assert {x: point["ended"] for x, point in points.items() if point.get("ended")} == {128: "oom"}
    caption = next(said(one) for one in tree.iter("figcaption") if "Epoch time and memory" in said(one))
    assert "95 % intervals over 3 processes" in caption
    assert "oom: out of memory" in caption
    assert "out of memory" in points[128]["told"]
    shown = dict(zip([line.batch_size for line in table.rows], table.cells, strict=True))
    at = table.headings.index("epoch time s")
    assert f"epoch time {shown[32][at].partition(' ±')[0]} s (95 %: " in points[32]["told"]


def test_devices_are_set_against_the_ideal() -> None:
    tree = parsed(of_folders(committed.folder("h200x4-scaling-2026")))
    found = panel(tree, "throughput")
    measured = [one for one in found["series"] if one["role"] == "measured"]
    (ideal,) = (one for one in found["series"] if one["role"] == "ideal")
    rates = {point["x"]: point["y"] for one in measured for point in one["points"]}
    assert set(rates) == {1, 2, 4}
    ends = [(point["x"], point["y"]) for point in ideal["points"]]
    assert ends == [(1, rates[1]), (4, pytest.approx(4 * rates[1]))]
    assert found["x"]["steps"] == "linear"  # else the straight line would promise more in the middle
    assert found["y"]["steps"] == "linear"


def test_a_machine_that_has_measured_nothing_yet() -> None:
    rows = [row(16, "missing"), row(32, "interrupted"), row(64, "failed", reason="it fell")]
    tree = parsed(html(read(rows)))
    assert pictures(tree) == []
    assert "failed: it fell" in said(tree.find("body"))
    assert [line[-1] for line in cells(tree)[0]] == ["missing", "interrupted", "failed"]


def test_cells_are_sorted_by_their_figures() -> None:
    table = table_of(in_rounds(), axes=[["batch_size"]])
    tree = parsed(html(read(in_rounds())))
    lines = next(one for one in tree.iter("table") if one.get("class") == "rows").findall("tbody/tr")
    at = table.headings.index("epoch time s")
    known = [line[at].get("data-v") for line in lines]
    assert [float(one) if one else None for one in known] == [
        pytest.approx(one.epoch_time_s) if one.epoch_time_s else None for one in table.rows
    ]


def test_a_table_gets_as_many_rows_as_there_is_room_for_and_says_how_many_there_are() -> None:
    table = table_of(in_rounds())
    every, taken = grid.lines(table, 10**6)
    assert len(every) == len(table.rows)
    assert taken == sum(len(line.encode()) for line in every)
    shown, less = grid.lines(table, taken - 1)
    assert (shown, less) == (every[:-1], taken - len(every[-1].encode()))
    told = said(parsed(f"<!doctype html><title>x</title>{grid.grid(table, shown, 1)}"))
    assert "the first 5 of 6 rows; gpubench export --format csv writes" in told


def test_small_tables_leave_their_room_to_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = table_of(in_rounds()), table_of([row(batch, epoch_time_s=1.0) for batch in range(1, 300)])
    _, taken = grid.lines(small, 10**6)
    monkeypatch.setattr(page, "ROOM", 8 * taken)
    of_large, of_small = page._rows([large, small])
    assert len(of_small) == len(small.rows)
    assert sum(len(line.encode()) for line in of_large) <= 7 * taken
    assert 6 < len(of_large) < 299


def test_thousands_of_points_leave_room_for_the_page() -> None:
    """Pictures that a page has no room for are left out, and it says so."""
    rows = [
        row(batch, epoch_time_s=1.0 + 1 / batch, gpu_mem_mib=500.0 + batch, energy_j=9.0)
        for batch in range(1, 1200)
    ]
    large = [read(rows, folder=f"large{number}") for number in range(3)]
    text = html(*large, read(in_rounds()))
    assert len(text.encode()) < LARGEST
    assert "For want of room left out: " in text
    assert "<figure" in text


def test_the_plan_on_the_page_is_the_plan_that_was_swept(tmp_path: Path) -> None:
    job = swept(tmp_path, "sizes", "16,32", data="procedural:640")
    tree = parsed(of_folders(tmp_path))
    plan = next(said(one) for one in tree.iter("pre") if said(one).startswith("name = "))
    asked = job.plan.experiment
    swept_so_often = dataclasses.replace(asked, rounds=dataclasses.replace(asked.rounds, number=1))
    assert experiment_file.parse(plan, "the page") == swept_so_often
    command = next(said(one) for one in tree.iter("pre") if said(one).startswith("gpubench sweep"))
    assert command == f"gpubench sweep sizes.toml --out results/{tmp_path.name}"
    assert "It also needs" not in said(tree.find("body")), "gpubench makes procedural images itself"


def test_an_experiment_of_two_kinds_of_time_has_a_plan_in_both_tables_and_names_runs_by_what_varies(
    tmp_path: Path,
) -> None:
    swept(tmp_path, "sizes", "16,32", data="procedural:640")
    swept(tmp_path, "sizes", "16,32", data="procedural:640", steps="5")
    folder = read_folder(tmp_path, print)
    assert len(folder.tables) == 2
    text = of_folders(tmp_path)
    assert "No plan of these trials is stored" not in text
    assert (text.count("epochs = 2"), text.count("steps = 5")) == (1, 1), "of the rows of its own table alone"
    assert sorted(run.name for run in list_runs([folder], print)) == ["batch 16"] * 2 + ["batch 32"] * 2


def test_plans_are_repeated_into_the_folder_of_the_page_with_their_rounds_and_what_each_asks() -> None:
    tree = parsed(of_folders(committed.folder("h200-copies-rounds-2026"), committed.folder("h200x4-2026")))
    commands = [said(one) for one in tree.iter("pre") if said(one).startswith("gpubench sweep")]
    assert commands[0] == "gpubench sweep mobilenet_v2-copies.toml --out results/h200-copies-rounds-2026"
    plans = [said(one) for one in tree.iter("pre") if said(one).startswith("name = ")]
    assert experiment_file.parse(plans[0], "the page").rounds.number == 3, "as its [plan] says"
    assert {experiment_file.parse(one, "the page").rounds.number for one in plans[1:]} == {1}, (
        "as was measured"
    )
    told = [said(one) for one in tree.iter("p") if said(one).startswith("Plan ")]
    assert told[:2] == [
        "Plan 1, strategy ddp; batch size 16, 32, 64, 128, 256, 512, 1024, 2048:",
        "Plan 2, batch size 16; strategy dp:",
    ]


def test_the_first_sentence_of_an_answer_stands_out_and_is_what_the_contents_say() -> None:
    folders = [committed.folder(name) for name in ("h200x4-2026", "titan-xp-2021")]
    tables = [table for folder in read_folders(folders, lambda _: None) for table in lay_out(folder)]
    tree = parsed(of_folders(*folders))
    first = [said(section.find("ul[@class='answers']/li/strong")) for section in tree.iter("section")]
    shorts = [said(one) for one in tree.find(".//nav").iter("span") if one.get("class") == "short"]
    assert first == shorts
    for sentence, table in zip(first, tables, strict=True):
        assert table.answers[0].startswith(sentence)


def test_an_experiment_s_question_is_its_heading_else_its_name_with_the_one_that_it_answers() -> None:
    asked = parsed(html(read(in_rounds())))
    assert (said(asked.find(".//h1")), said(asked.find(".//p[@class='over']"))) == (
        "Which size?",
        "sizes · a folder",
    )
    unasked = parsed(html(read(in_rounds(), "my sizes", "")))
    assert said(unasked.find(".//h1")) == f"my sizes: {words.QUESTIONS['batch_size']}"
    assert said(unasked.find(".//p[@class='over']")) == "a folder"


def test_of_several_folders_each_title_names_its_own_once() -> None:
    folders = [read(in_rounds(), folder="x2"), read(in_rounds(), question="", folder="xp")]
    heads = [
        [said(section.find(place)) for place in ("p[@class='over']", "h2") if section.find(place) is not None]
        for section in parsed(html(*folders)).iter("section")
    ]
    assert heads == [["x2: sizes", "Which size?"], [f"xp: sizes: {words.QUESTIONS['batch_size']}"]]


def test_captions_on_the_page_send_nobody_to_the_terminal() -> None:
    tree = parsed(of_folders(committed.folder("h200x4-2026")))
    captions = [said(one) for one in tree.iter("figcaption")]
    assert any("(dp); they stand below, under Doubts." in one for one in captions)
    assert not any("gpubench table" in one for one in captions)


def test_a_page_of_several_folders_begins_with_its_contents(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    folders = [str(committed.folder(name)) for name in ("h200x4-2026", "titan-xp-2021")]
    out = tmp_path / "both.html"
    arguments = ("export", *folders, "--out", str(out))
    ended = warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{out}\n", "")
    tree = parsed(out.read_text("utf-8"))
    links = list(tree.find(".//nav").iter("a"))
    assert len(links) == len(list(tree.iter("section"))) == len(cells(tree)) > 9
    for link, section in zip(links, tree.iter("section"), strict=True):
        assert link.get("href") == f"#{section.get('id')}"
        assert said(link) == said(section.find(".//h2"))
    assert {"h200x4-2026", "titan-xp-2021"} <= {said(one) for one in tree.find(".//nav").iter("span")}


def test_one_folder_is_written_beside_the_user_under_its_name(
    warm_command: WarmCommand, tmp_path: Path
) -> None:
    arguments = ("export", str(committed.folder("h200-pairs-2026")), "--format", "html")
    ended = warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "h200-pairs-2026.html\n")
    assert (tmp_path / "h200-pairs-2026.html").read_text("utf-8").startswith("<!doctype html>")


def test_a_plan_that_cannot_be_read_is_among_the_doubts() -> None:
    folder = dataclasses.replace(read(in_rounds()), problems=("plan p.toml is left out: it is not TOML",))
    (doubts,) = (one for one in parsed(html(folder)).iter("ul") if one.get("class") == "doubts")
    assert "plan p.toml is left out" in said(doubts)


def test_a_record_that_cannot_be_read_is_among_the_doubts(tmp_path: Path) -> None:
    folder = shutil.copytree(committed.folder("h200-pairs-2026"), tmp_path / "damaged")
    damaged = min((folder / "records").glob("*/*.json"))
    damaged.write_text("{")
    (doubts,) = (one for one in parsed(of_folders(folder)).iter("ul") if one.get("class") == "doubts")
    assert f"{damaged.name} is left out" in said(doubts)


def figures_of(tree: Any) -> list[str]:
    """Which kinds of pictures stand on a page."""
    return [str(one.get("class")).split()[0] for one in tree.iter("figure")]


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_whatever_gpubench_plot_draws_stands_on_the_page(folder: Path) -> None:
    """With the same figures: a picture is described once, for paper, terminal and page."""
    found = [
        picture for subject in subjects(read_folder(folder, lambda _: None)) for picture in described(subject)
    ]
    tree = parsed(of_folders(folder))
    assert sorted(figures_of(tree)) == sorted(picture.name for picture in found)
    on_page = sorted(
        point["y"]
        for one in pictures(tree)
        for panel in one["panels"]
        for series in panel["series"]
        for point in series.get("points", ())
        if point["y"] is not None
    )
    assert on_page == sorted(
        p.y
        for picture in found
        for panel in picture.panels
        for series in panel.series
        for p in series.points
        if p.y is not None and series.marked
    )


def test_a_trial_s_samples_have_their_measured_epochs_shaded_and_their_thinning_told() -> None:
    tree = parsed(of_folders(committed.folder("h200-copies-2026")))
    trial = next(one for one in tree.iter("figure") if str(one.get("class")).startswith("trial "))
    found = next(one for one in pictures(tree) if one["panels"][0]["y"]["title"] == "GPU use (%)")
    titles = [panel["y"]["title"] for panel in found["panels"]]
    assert titles == ["GPU use (%)", "CPU use (%)", "GPU memory (MiB)", "power (W)"]
    for one in found["panels"]:
        assert one["spans"]
        for series in one["series"]:
            assert len(series["xs"]) == len(series["ys"]) <= 401
    told = said(trial.find("figcaption"))
    assert "Shaded: the measured epochs. Drawn: means of up to 2 readings in a row." in told


def test_parts_of_a_step_are_stacked() -> None:
    tree = parsed(of_folders(committed.folder("h200x4-scaling-2026")))
    found = panel(tree, "time of a step")
    assert found["kind"] == "stacked"
    assert [one["name"] for one in found["series"]] == ["forward", "backward"]
    assert len(found["places"]) == 3


@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_the_charting_libraries_are_as_they_were_published(name: str, digest: str) -> None:
    """And their licences stand in the page, as they ask for."""
    library = Path(page.__file__).parent / "vendor" / name
    assert hashlib.sha256(library.read_bytes()).hexdigest() == digest
    assert f"{name} sha256 {digest}" in (library.parent / "README.md").read_text("utf-8")
    text = html(read(in_rounds()))
    assert text.count("Permission to use, copy, modify") >= 2
    assert "Mike Bostock" in text
    assert "Observable, Inc." in text
