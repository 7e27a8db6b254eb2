"""The web page of results: what stands in it. What it does in a browser: test_page_in_browser.py."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import committed
import pytest
from made_up_folders import folder_of
from pages import cells, descriptions, find, html, in_rounds, of_folders, parsed, read, row, said
from swept import swept
from warm_command import WarmCommand

from gpubench.analyze.folder import Folder, read_folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.trace import make_recommended_trace
from gpubench.plan import experiment_file
from gpubench.render import words
from gpubench.render.grid import make_grid
from gpubench.render.page import page
from gpubench.render.pictures.pictures import Picture, list_pictures
from gpubench.results.packed import unpack_folder

LARGEST = 3_000_000
LIBRARIES = Path(page.__file__).parents[1] / "vega"
VENDORED = {
    "vega-5.33.1.min.js": "463f3db6a40b20e9747b4ed38f37ed0add508838f9141b1cf8366784b07b30c8",
    "vega-lite-5.21.0.min.js": "cd32314b1e76e7d879dc9f0534b62be714df03554486c7ca2381abfd0a92d2f4",
}
"""SHA-256 of what the npm registry gave out under these versions."""
TILES = {
    ("h200x4-2026", 1): [
        ("6,097", "images/s: batch 128 with ddp"), ("4.83×", "as fast as batch 16"),
        ("4.3 of 12.0 GiB", "memory of the fullest GPU"),
    ],
    ("h200-until-top1-2026", 0): [
        ("36.1 s", "to 60 % top-1: batch 128"), ("13", "epochs to 60 %"), ("11.7 kJ", "energy to 60 %"),
        ("1.30×", "as fast as batch 64"),
    ],
    ("h200-copies-rounds-2026", 0): [
        ("2.95×", "work done: 3 × batch 16"), ("1.90×", "work done: 2 × batch 16"),
        ("1.00×", "work done: 2 × batch 128"), ("1.00×", "work done: 3 × batch 128"),
    ],
    ("h200x2-network-size-2026", 0): [
        ("0.30 GMACs", "an image: from mobilenet_v2 on"), ("1.49 to 1.79×", "as fast from there on"),
        ("0.64 to 0.77×", "as fast for smaller ones"),
    ],
    ("h200x4-scaling-2026", 0): [
        ("3.70×", "as fast on 4 GPUs as on 1 GPU"), ("93 %", "efficiency: 4 GPUs in place of 1 GPU"),
        ("16,246", "images/s: batch 512 on 4 GPUs (ddp)"), ("1.85×", "as fast on 2 GPUs as on 1 GPU"),
    ],
    ("titan-xp-2021", 0): [
        ("11.4 s", "an epoch: batch 128"), ("2.55×", "as fast as batch 16"),
        ("3.2 of 11.9 GiB", "memory of the fullest GPU"),
    ],
    ("titan-xp-2021", 3): [
        ("1.10 to 1.30×", "as fast as crop-resize"), ("69 to 75 %", "less CPU time"),
        ("8.70 s", "an epoch: batch 128 on 2 GPUs (dp), pre-resized"),
    ],
}  # fmt: skip
"""Folder and place of a table in it -> what its answer comes down to."""
SURE = {
    "h200x4-2026": ("◐ likely: one run each", "resnet34-4gpu-1.toml --out results/h200x4-2026 --rounds 3"),
    "h200x2-network-size-2026": ("● sure", "network-size.toml --out results/h200x2-network-size-2026 --rounds 14"),
    "titan-xp-2021": ("◐ likely: from a published log", ""),
}  # fmt: skip
"""How sure the first answer of a folder is, and what is swept to be surer."""
COMMITTED = tuple(dict.fromkeys(name for name, _ in TILES))


@cache
def loaded(name: str) -> Folder:
    """A committed folder."""
    return read_folder(committed.folder(name), lambda _: None)


@cache
def stored(name: str) -> Any:
    """The page of a committed folder."""
    text = html(loaded(name))
    assert len(text.encode()) < LARGEST
    return parsed(text)


def sections(tree: Any) -> list[Any]:
    return list(tree.iter("section"))


def folded(section: Any, summary: str) -> Any:
    """What is folded under this."""
    return next(part for part in section.findall("details") if said(part.find("summary")).startswith(summary))


def tiles(section: Any) -> list[tuple[str, str]]:
    (dl,) = find(section, "dl", "tiles")
    return [(said(tile.find("dd")), said(tile.find("dt"))) for tile in dl]


@pytest.mark.parametrize("name", committed.cases(COMMITTED))
def test_a_committed_folder_as_a_page(name: str) -> None:
    """Valid HTML below 3 MB that loads nothing, with every figure, sentence and picture of the reports."""
    reports = make_folder_reports([loaded(name)])
    tree = stored(name)
    for place, (report, section) in enumerate(zip(reports, sections(tree), strict=True)):
        assert said(section.find("p")) == words.format_question(report)
        heading = said(section.find("h2"))
        assert len(heading) <= words.HEADING_LETTERS
        (answer, *_) = words.list_sentences(report)
        plain = re.sub(
            r" ?\((sure|likely|unknown)(, |\))", lambda found: " (" * (found[2] == ", "), answer.text
        )
        assert re.match(re.escape(heading) + r"(\b|[.;:, ])", plain), (heading, plain)
        (table,) = find(section, "div", "beside")
        assert cells(table.find(".//table")) == expected_cells(make_grid(report))
        findings = said(folded(section, "How sure, and why"))
        for line in words.list_sentences(report):
            assert line.text in (findings if line.kind != "warning" else said(folded(section, "Warnings")))
        for finding in report.findings:
            for claim in finding.claims:
                assert all(part in findings for part in words.make_claim_cells(report, claim))
        if (name, place) in TILES:
            assert tiles(section) == TILES[name, place]
        pictures = list_pictures(report, make_recommended_trace(loaded(name), report, lambda _: None))
        has_pictures_as_text_and_colours_of_the_page(section, pictures)
    if name in SURE:
        (line,) = find(sections(tree)[0], "p", "certainty")
        command = "".join(map(said, line.iter("code"))).removeprefix("gpubench sweep ")
        assert (said(find(line, "span", "chip")[0]), command) == SURE[name]
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(ids) == len(set(ids))
    loads_nothing(tree)


def has_pictures_as_text_and_colours_of_the_page(section: Any, pictures: Sequence[Picture]) -> None:
    figures = list(section.iter("figure"))
    names = [find(figure, "div", "drawing")[0].get("aria-label") for figure in figures]
    assert names == [picture.title for picture in pictures]
    assert all("title" not in drawn for drawn in descriptions(section))
    for figure, picture, shown in zip(figures, pictures, descriptions(section), strict=True):
        *panels, footnote = picture.description["vconcat"]
        assert said(find(figure, "p", "footnote")[0]) == footnote["encoding"]["text"]["value"]
        assert list(data_of(shown["vconcat"])) == list(data_of(panels))
        left = re.findall(r'"#[0-9A-Fa-f]{3,6}"|"(?:white|black)"', json.dumps(shown))
        assert not left  # they would be invisible in the dark


def data_of(part: Any) -> Iterator[Any]:
    """All values of a description, but for colours."""
    if isinstance(part, dict):
        for name, child in part.items():
            if name == "data":
                for line in child["values"]:
                    yield {key: value for key, value in line.items() if key != "shade"}
            else:
                yield from data_of(child)
    elif isinstance(part, list):
        for child in part:
            yield from data_of(child)


def expected_cells(grid: Any) -> list[list[str]]:
    lines = []
    for group in grid.groups:
        lines += [[group.head]] if group.head else []
        for line in group.rows:
            texts = [cell.text for cell in line.cells]
            while line.ending and texts and not texts[-1]:
                texts.pop()
            is_ended = line.ending and len(texts) < len(line.cells)
            lines.append([*texts, line.ending] if is_ended else texts)
    return lines


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
    (policy,) = (meta.get("content") for meta in tree.iter("meta") if meta.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert not re.search("https?:|data:|[*]", policy)


HOSTILE = "</script><script>alert(1)</script><!-- ]]> \"'><img src=x onerror=alert(2)> &amp; {{ 7*7 }} \ud800 \x00 é"


def test_what_users_write_is_shown_and_never_run() -> None:
    rows = [
        row(16, model=HOSTILE, epoch_time_s=2.0, gpu_mem_mib=900.0, reason=HOSTILE, group=None),
        row(32, model=HOSTILE, epoch_time_s=1.0, gpu_mem_mib=950.0, host=HOSTILE, torch=HOSTILE),
        row(64, "failed", model=HOSTILE, reason=HOSTILE, missing={"epoch_time_s": HOSTILE}),
    ]
    rows += [row(16, model=f"{HOSTILE}2", epoch_time_s=3.0, trial_id="other", config_id="other")]
    plain = parsed(html(read(in_rounds())))
    tree = parsed(html(read(rows, HOSTILE, HOSTILE, folder="a<b>&'\" \udcff")))
    scripts = [[one for one in found.iter("script") if one.get("type") is None] for found in (plain, tree)]
    assert len(scripts[0]) == 3
    assert [script.text for script in scripts[0]] == [script.text for script in scripts[1]]
    assert not list(tree.iter("img"))
    assert plain.find(".//nav") is None, "of one experiment there is nothing to choose"
    shown = HOSTILE[:40]
    assert any(shown in json.dumps(drawn) for drawn in descriptions(tree))  # each is valid JSON
    (section,) = sections(tree)
    assert shown in said(section.find("p"))
    assert shown in said(folded(section, "What ran"))
    assert any(shown in cell for line in cells(section.find(".//table")) for cell in line)
    assert "a<b>&'\"" in said(tree.find("head/title"))
    assert "{{ 7*7 }}" in said(tree)


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Take batch 128 on 2 GPUs (ddp): 1.74 s, 2,948 images/s", "Take batch 128 on 2 GPUs (ddp): 1.74 s"),
        (
            "2 GPUs against 1: 1.25 times as fast (sure, efficiency 9 %)",
            "2 GPUs against 1: 1.25 times as fast",
        ),
        ("Short enough", "Short enough"),
        ("none of these clauses has an end before it must be cut", "none of these clauses has an end before"),
    ],
)
def test_a_heading_loses_its_last_clauses_and_no_half_word(text: str, short: str) -> None:
    assert words.shorten_to_clauses(text, 41) == short


def test_bars_are_shares_of_the_largest_and_the_recommended_row_is_marked() -> None:
    section = sections(stored("h200x4-2026"))[1]
    lines = section.find(".//table").findall("tbody/tr")
    shares = {cell.text: cell.get("style") for line in lines for cell in line if cell.get("style")}
    assert shares["6,097"] == "--share:100.0%"
    assert shares["1,261"] == "--share:20.7%"
    (answer,) = find(section.find(".//table"), "tr", "answer")
    assert said(answer).startswith("128 (the answer)")


def luminance(color: str) -> float:
    """As WCAG has it."""
    shares = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("place", [1, 2])
def test_each_colour_stands_out_from_its_ground(place: int) -> None:
    """Words by 4.5 to 1, as WCAG 1.4.3 asks; lines that carry nothing need not."""
    known = {colors[0]: luminance(colors[place]) for colors in page.COLORS.values()}
    grounds = dict.fromkeys(known.keys() - {"paper", "axis", "line", "faint", "span", "amber"}, "paper")
    for name, ground in (*grounds.items(), ("ink", "amber")):  # words stand on amber, and none are of it
        bright, dim = sorted((known[name], known[ground]), reverse=True)
        assert (bright + 0.05) / (dim + 0.05) >= 4.5, name


def test_a_machine_that_has_measured_nothing_yet() -> None:
    rows = [row(16, "missing"), row(32, "interrupted"), row(64, "failed", reason="it fell")]
    tree = parsed(html(read(rows)))
    assert descriptions(tree) == []
    assert cells(tree.find(".//table")) == [
        ["16", "not run yet"],
        ["32", "interrupted"],
        ["64", "failed: it fell"],
    ]


def test_a_folder_without_trials_says_so() -> None:
    assert words.NO_REPORT in said(parsed(html()).find(".//main"))


def test_why_a_figure_is_missing_is_told_once_for_all_rows() -> None:
    rows = [
        row(batch, epoch_time_s=1.0, gpu_mem_mib=9.0, missing={"energy_j": "no sensor"})
        for batch in (16, 32, 64)
    ]
    rows += [row(128, epoch_time_s=1.0, gpu_mem_mib=9.0, energy_j=4.0)]
    (section,) = sections(parsed(html(read(rows))))
    (line,) = (said(line) for line in folded(section, "All columns").iter("li") if "no sensor" in said(line))
    assert (line.partition(":")[0], line.count("no sensor")) == ("energy J", 1)
    assert line.endswith("(3 rows)")


def test_a_table_has_as_many_rows_as_can_be_read_and_says_how_many_are_left_out() -> None:
    rows = [
        row(batch, epoch_time_s=1.0 + 1 / batch, gpu_mem_mib=500.0 + batch, energy_j=9.0, images_per_s=50.0)
        for batch in range(1, 1200)
    ]
    text = html(read(rows), read(in_rounds()))
    assert len(text.encode()) < LARGEST
    first, _ = sections(parsed(text))
    assert len(cells(first.find(".//table"))) == page.MOST_ROWS
    assert (
        f"{1199 - page.MOST_ROWS} rows are left out for want of room: gpubench export --format csv"
        in said(first)
    )


def test_each_table_has_the_plan_of_its_rows_as_it_was_swept(tmp_path: Path) -> None:
    """Of an experiment of two kinds of time, too."""
    job = swept(tmp_path, "sizes", "16,32", data="procedural:640")
    tree = parsed(of_folders(tmp_path))
    command, plan = (said(pre) for pre in folded(sections(tree)[0], "What ran").iter("pre"))
    asked = job.plan.experiment
    swept_so_often = dataclasses.replace(asked, rounds=dataclasses.replace(asked.rounds, number=1))
    assert experiment_file.parse_experiment(plan, "the page") == swept_so_often
    assert command == f"gpubench sweep sizes.toml --out results/{tmp_path.name}"
    swept(tmp_path, "sizes", "16,32", data="procedural:640", steps="5")
    text = of_folders(tmp_path)
    assert len(sections(parsed(text))) == 2
    assert words.NO_PLAN not in text
    assert (text.count("epochs = 2"), text.count("steps = 5")) == (1, 1)


@pytest.mark.slow
def test_a_page_of_several_experiments_has_a_card_for_each(warm_command: WarmCommand, tmp_path: Path) -> None:
    folders = [str(committed.folder(name)) for name in ("h200x4-2026", "titan-xp-2021")]
    out = tmp_path / "both.html"
    arguments = ("export", *folders, "--out", str(out))
    ended = warm_command.run(arguments, cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{out}\n", "")
    tree = parsed(out.read_text("utf-8"))
    cards = list(tree.find(".//nav").iter("a"))
    assert len(cards) == len(sections(tree)) > 9
    for card, section in zip(cards, sections(tree), strict=True):
        assert card.get("href") == f"#{section.get('id')}"
        assert said(card.find("strong")) == said(section.find("h2"))
    assert said(cards[0].find("span")) == "h200x4-2026: resnet34-4gpu"
    machines = "4 × NVIDIA H200, 64 CPUs · 4 × Titan Xp · Titan Xp"
    began = "torch 2.11.0, 1.5.1 · Feb 2021 to Nov 2026"
    assert said(tree.find(".//h1")) == f"gpubench · h200x4-2026, titan-xp-2021 · {machines} · {began}"


def test_what_cannot_be_read_is_among_the_warnings(tmp_path: Path) -> None:
    folder = shutil.copytree(committed.folder("h200-pairs-2026"), tmp_path / "damaged")
    unpack_folder(folder, print)
    damaged = min((folder / "records").glob("*/*.json"))
    damaged.write_text("{")
    plan = min((folder / "plans").glob("*.toml"))
    plan.write_text("[")
    for samples in (folder / "samples").glob("*/*.csv"):
        samples.write_text(samples.read_text("utf-8") + "no,number\n", "utf-8")
    (section,) = sections(parsed(of_folders(folder)))
    warnings = said(folded(section, "Warnings"))
    assert f"{damaged.name} is left out" in warnings
    assert f"{plan.name} is left out" in warnings
    assert ".csv" in warnings


@pytest.mark.parametrize(("name", "digest"), VENDORED.items())
def test_the_charting_libraries_are_as_they_were_published(name: str, digest: str) -> None:
    """And their licences stand in the page, as they ask for."""
    assert name in page.LIBRARIES
    assert hashlib.sha256((LIBRARIES / name).read_bytes()).hexdigest() == digest
    assert f"{name} sha256 {digest}" in (LIBRARIES / "README.md").read_text("utf-8")
    footer = said(parsed(html(read(in_rounds()))).find(".//footer"))
    assert footer.count("Interactive Data Lab") == 2
    assert "Mike Bostock" in footer


def test_tiles_of_a_cpu_count_processes() -> None:
    rows = [
        row(16, device="cpu", gpus=0, gpu_name=None, gpu_count=0, ranks=ranks, trial_id=f"t{ranks}",
            config_id=f"c{ranks}", strategy="ddp" if ranks > 1 else "single", epoch_time_s=seconds,
            images_per_s=10_240 / seconds)
        for ranks, seconds in {1: 4.0, 2: 2.5}.items()
    ]  # fmt: skip
    folder = folder_of(rows, name="cpu", axes=[["ranks"]])
    (section,) = sections(parsed(html(folder)))
    assert tiles(section)[:2] == [
        ("1.60×", words.TILES["devices"].format(devices="2 processes", fewer="1 process")),
        ("80 %", words.TILES["efficiency"].format(devices="2 processes", fewer="1 process")),
    ]


def test_a_time_that_cannot_be_read_spoils_no_page() -> None:
    rows = [
        row(16, epoch_time_s=1.0, started_at="yesterday"),
        row(32, epoch_time_s=2.0, started_at="2026-11-20 09:53:00"),
    ]
    assert said(parsed(html(read(rows))).find("body/header/h1")).endswith(" · Nov 2026")
