"""The web page of results: what stands in it. What it does in a browser: test_html_page_in_browser.py."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import shutil
from pathlib import Path
from typing import Any

import committed
import pages
import pytest
from pages import cells, html, in_rounds, of_folders, panel, parsed, pictures, read, row, said, table_of
from swept import swept
from warm_command import WarmCommand

from gpubench.export.page import page
from gpubench.plan import experiment_file
from gpubench.plot.pictures import described
from gpubench.plot.subject import subjects
from gpubench.report.reading import reading, told_apart

LARGEST = 3_000_000
VENDORED = {
    "d3-7.9.2.min.js": "912111098ea99503a6f4967361d2bbdc9dbf58cf9c678c8e27e5b02d1a07f0c1",
    "plot-0.6.17.umd.min.js": "4358086467740777dd788d6b27a95cebdbaefdd50c730a3060117073bd7134cb",
}
"""SHA-256 of what the npm registry gave out under these versions."""


@pytest.mark.parametrize("folder", committed.folders(), ids=lambda folder: folder.name)
def test_a_committed_folder_as_a_page(folder: Path) -> None:
    """Valid HTML below 3 MB that loads nothing, in which every figure, answer and doubt stands."""
    tables = reading(folder, lambda _: None).tables
    text = of_folders(folder)
    assert len(text.encode()) < LARGEST
    tree = parsed(text)
    everything = said(tree.find("body"))
    for table, shown in zip(tables, cells(tree), strict=True):
        groups = (
            [column.name for column in table.columns].index("group")
            if "group" in [c.name for c in table.columns]
            else None
        )
        for line, wanted in zip(shown, table.cells, strict=True):
            for at, (cell, figure) in enumerate(zip(line, wanted, strict=True)):
                if at != groups or figure:  # else it says again what its group is called
                    assert cell == figure
        for sentence in (*table.remarks, *table.doubts, table.question, *table.heading):
            assert sentence.removeprefix("Doubt ") in everything
        for answer in table.answers:
            assert re.sub(r"\W", "", answer).lower() in re.sub(r"\W", "", everything).lower()
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


def test_what_users_write_is_shown_and_never_run(tmp_path: Path) -> None:
    rows = [
        row(16, model=HOSTILE, epoch_time_s=2.0, gpu_mem_mib=900.0, reason=HOSTILE, group=None),
        row(32, model=HOSTILE, epoch_time_s=1.0, gpu_mem_mib=950.0, host=HOSTILE),
        row(64, "failed", model=HOSTILE, reason=HOSTILE, missing={"epoch_time_s": HOSTILE}),
    ]
    rows += [row(16, model=f"{HOSTILE}2", epoch_time_s=3.0, trial_id="other", config_id="other")]
    plain = parsed(html(read(table_of(in_rounds()))))
    text = html(read(table_of(rows, HOSTILE, HOSTILE), folder=tmp_path / "a<b>&'\" \udcff"))
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
    table = table_of(in_rounds())
    tree = parsed(html(read(table)))
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
    assert shown[32][at] in points[32]["told"]  # as the table writes it


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
    tree = parsed(
        html(
            read(table_of([row(16, "missing"), row(32, "interrupted"), row(64, "failed", reason="it fell")]))
        )
    )
    assert pictures(tree) == []
    assert "failed: it fell" in said(tree.find("body"))
    assert [line[-1] for line in cells(tree)[0]] == ["missing", "interrupted", "failed"]


def test_cells_are_sorted_by_their_figures() -> None:
    table = table_of(in_rounds())
    tree = parsed(html(read(table)))
    lines = next(one for one in tree.iter("table") if one.get("class") == "rows").findall("tbody/tr")
    at = table.headings.index("epoch time s")
    known = [line[at].get("data-v") for line in lines]
    assert [float(one) if one else None for one in known] == [
        pytest.approx(one.epoch_time_s) if one.epoch_time_s else None for one in table.rows
    ]


def test_a_hundred_thousand_rows_and_a_small_table() -> None:
    """A page stays below 3 MB: it has the first rows of a large table, says so, and all rows of a small one."""
    small = table_of(in_rounds())
    times = 100_000 // len(small.rows) + 1
    large = dataclasses.replace(
        small, rows=small.rows * times, cells=tuple(small.cells) * times, name="large", title="large"
    )
    text = html(read(large, small))
    assert len(text.encode()) < LARGEST
    of_large, of_small = (body.count("<tr") for body in re.findall("<tbody>.*?</tbody>", text))
    assert of_small == len(small.rows)
    assert 1_000 < of_large < len(large.rows)
    assert f"the first {of_large:,} of {len(large.rows):,} rows; gpubench export --format csv writes" in text


def test_thousands_of_points_leave_room_for_the_page() -> None:
    """Pictures that a page has no room for are left out, and it says so."""
    rows = [
        row(batch, epoch_time_s=1.0 + 1 / batch, gpu_mem_mib=500.0 + batch, energy_j=9.0)
        for batch in range(1, 1200)
    ]
    large = table_of(rows)
    text = html(read(large, large, large, table_of(in_rounds())))
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


def test_a_long_answer_is_cut_into_two_whole_sentences() -> None:
    tree = parsed(of_folders(committed.folder("h200-copies-rounds-2026")))
    answers = [one for one in tree.iter("ul") if one.get("class") == "answers"]
    parts = [(said(one.find("strong")), one.find("span")) for answer in answers for one in answer.iter("li")]
    assert any(first.endswith("(overlap gain 0.00, −0.11 to 0.12).") for first, _ in parts)
    for first, rest in parts:
        assert first.endswith("."), first
        assert rest is None or said(rest)[0].isupper(), said(rest)


def test_a_long_answer_s_rest_keeps_the_names_that_it_begins_with() -> None:
    long = f"One is {'much ' * 30}faster than two"
    table = dataclasses.replace(table_of(in_rounds()), answers=(f"{long}; slower is none. More.",))
    named = dataclasses.replace(table, varied=("strategy",), answers=(f"{long}; single is so, too. More.",))
    for one, rest in ((table, "Slower is none. More."), (named, "single is so, too. More.")):
        (item,) = next(e for e in parsed(html(read(one))).iter("ul") if e.get("class") == "answers")
        assert said(item.find("span")) == rest


def test_the_contents_cut_no_answer() -> None:
    """Of several answers each says something else, and half a sentence may say the opposite of the whole."""
    told = "strategy=dp: it does not pay from 32 on; it is open from 16 to 32 (a; b). More of it."
    tables = [
        dataclasses.replace(table_of(in_rounds()), answers=answers)
        for answers in ((told,), (told, "strategy=ddp: it pays."), ())
    ]
    entries = parsed(html(read(*tables))).find(".//nav").iter("li")
    shorts = [[said(one) for one in entry.iter("span")] for entry in entries]
    assert shorts == [
        ["strategy=dp: it does not pay from 32 on; it is open from 16 to 32 (a; b)."],
        ["2 answers"],
        [],
    ]


def test_a_heading_keeps_names_as_they_are_and_the_folder_is_named_once() -> None:
    rows = in_rounds()
    mine = table_of(rows, "my sizes", "")
    ours = dataclasses.replace(mine, title="variant, jobs side by side")
    tree = parsed(html(read(mine, ours)))
    assert [said(one) for one in tree.iter("h2")] == ["my sizes", "Variant, jobs side by side"]
    assert [said(one) for one in tree.findall(".//section/p[@class='over']")] == ["a folder", "a folder"]
    folders = [read(table_of(rows, "sizes", question), folder=Path(name)) for name, question in
               (("x2", "Which size?"), ("xp", ""))]  # fmt: skip
    tree = parsed(html(*told_apart(folders)))
    heads = [
        [said(section.find(place)) for place in ("p[@class='over']", "h2") if section.find(place) is not None]
        for section in tree.iter("section")
    ]
    assert heads == [["x2: sizes", "Which size?"], ["xp: sizes"]]
    longer = [read(table_of(rows, "my sizes", ""), folder=Path(name)) for name in ("x2", "xp")]
    heads = [said(one) for one in parsed(html(*told_apart(longer))).iter("h2")]
    assert heads == ["x2: my sizes", "xp: my sizes"]


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
    one = read(table_of(in_rounds()))
    one.contents.problems.append("plan p.toml is left out: it is not TOML")
    assert "plan p.toml is left out" in said(parsed(html(one)).find("body"))


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
        picture for subject in subjects(reading(folder, lambda _: None)) for picture in described(subject)
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
    text = pages.html(read(table_of(in_rounds())))
    assert text.count("Permission to use, copy, modify") >= 2
    assert "Mike Bostock" in text
    assert "Observable, Inc." in text
