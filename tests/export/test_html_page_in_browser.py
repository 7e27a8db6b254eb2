"""The web page of results in a real browser: sorted, filtered, pointed at, printed, read by a screen reader's rules.

They need Chromium (`apt-get install chromium`), and two of them axe-core (`npm pack axe-core`, whose axe.min.js
GPUBENCH_AXE names). Without these they are skipped, unless GPUBENCH_BROWSER=required, as in CI.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import committed
import pytest
from pages import html, in_rounds, of_folders, read, row

pytestmark = pytest.mark.browser
REQUIRED = os.environ.get("GPUBENCH_BROWSER") == "required"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTHS = (360, 1400)
STORED = ("h200x4-2026", "h200-pairs-2026", "titan-xp-2021", "h200x4-scaling-2026", "h200x2-2026")
ROUNDS = "rounds"


def missing(what: str) -> None:
    """Skips the test, or fails where it must run."""
    if REQUIRED:
        pytest.fail(f"{what}, and GPUBENCH_BROWSER=required")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        missing("no Chromium is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield running
        running.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages on disk, by name."""
    folder = tmp_path_factory.mktemp("pages")
    texts = {name: of_folders(committed.folder(name)) for name in STORED}
    texts[ROUNDS] = html(read(in_rounds()))
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


class Opened:
    """A page in a context of its own, with all that it complained of or asked a network for."""

    def __init__(self, browser: Any, file: Path, **options: Any):
        width = options.pop("width", 1400)
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda told: self.complaints.append(f"{told.type}: {told.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(file.as_uri())

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.context.close()


def shown_rows(page: Any) -> list[str]:
    """The row headers of the first table, of rows that are shown."""
    return page.locator("table.rows").first.locator("tbody tr:visible th").all_inner_texts()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*STORED, ROUNDS])
def test_it_fits_and_complains_of_nothing(
    browser: Any, files: dict[str, Path], name: str, width: int
) -> None:
    opened = Opened(browser, files[name], width=width)
    with opened as page:
        page.locator(".plot svg").first.wait_for()
        assert page.locator(".plot > svg").count() == page.locator(".plot").count() > 0
        across = "document.documentElement.scrollWidth"
        assert page.evaluate(across) <= width
        assert page.evaluate("document.querySelector('figure svg').getBoundingClientRect().width") <= width
    assert opened.complaints == []
    assert opened.asked == [files[name].as_uri()]


def test_a_header_sorts_by_figures_and_rows_without_one_stay_last(
    browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files[ROUNDS]) as page:
        given = shown_rows(page)
        assert given == ["16", "32", "64", "128", "256", "512"]
        head = page.locator("thead th", has_text="epoch time")
        button = head.get_by_role("button")
        button.click()
        assert head.get_attribute("aria-sort") == "ascending"
        assert shown_rows(page) == ["64", "32", "16", "128", "256", "512"]
        button.press("Enter")  # by the keyboard
        assert head.get_attribute("aria-sort") == "descending"
        assert shown_rows(page) == ["16", "32", "64", "128", "256", "512"]
        sizes = page.locator("thead th", has_text="batch size").get_by_role("button")
        sizes.click()
        sizes.click()
        assert shown_rows(page) == [
            "512",
            "256",
            "128",
            "64",
            "32",
            "16",
        ]  # not as text, where 64 is above 512
        assert head.get_attribute("aria-sort") is None
        sizes.click()
        assert shown_rows(page) == given


def test_the_filter_leaves_rows_with_all_words_and_says_how_many(
    browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        count = page.locator("output[aria-live]").and_(page.locator(".filter output")).first
        assert count.inner_text() == "16 rows"
        page.get_by_label("Show rows with").first.fill("DDP oom")
        assert count.inner_text() == "1 of 16 rows"
        assert shown_rows(page) == ["2,048"]
        page.emulate_media(media="print")  # on paper stand all rows, and no controls
        assert len(shown_rows(page)) == 16
        assert page.locator(".filter:visible, #theme:visible").count() == 0
        page.emulate_media(media="screen")
        page.get_by_label("Show rows with").first.fill("")
        assert (count.inner_text(), len(shown_rows(page))) == ("16 rows", 16)


def test_the_pointer_tells_the_value(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files[ROUNDS]) as page:
        row = page.locator("table.rows tbody tr", has=page.locator("th", has_text="32"))
        written = row.locator("td", has_text="±").first.inner_text().partition(" ±")[0]
        plot = page.locator(".plot").first
        point = plot.locator("g[aria-label=dot] > *").nth(1)
        point.hover(force=True)
        tip = plot.locator(".tip")
        assert f"epoch time {written} s" in tip.inner_text()
        told = page.locator("figure").first.locator(".told")
        assert told.text_content().startswith(f"batch size 32, epoch time {written} s (95 %: ")


def test_arrow_keys_go_from_point_to_point(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files[ROUNDS]) as page:
        plot, told = page.locator(".plot").first, page.locator("figure").first.locator(".told")
        plot.focus()
        heard = []
        for _ in range(4):
            page.keyboard.press("ArrowRight")
            heard.append(told.text_content().split(",")[0])
        assert heard == ["batch size 16", "batch size 32", "batch size 64", "batch size 128"]
        assert told.text_content() == "batch size 128, out of memory"
        page.keyboard.press("ArrowLeft")
        assert told.text_content().startswith("batch size 64")
        page.keyboard.press("Escape")
        assert told.text_content() == ""
    with Opened(browser, files["h200-pairs-2026"]) as page:  # of bars, too
        assert page.locator(".tip:visible").count() == 0
        page.locator(".slowdowns .plot").first.focus()
        page.keyboard.press("ArrowDown")
        assert "slowdown 1.20" in page.locator(".slowdowns .told").first.text_content()


def test_a_trial_s_life_is_pointed_at_and_shaded(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-scaling-2026"]) as page:
        trial = page.locator("figure.trial")
        assert trial.locator(".plot > svg").count() == 4
        assert trial.locator("g[aria-label=rect]").count() == 4  # what was measured
        power, told = trial.locator(".plot").nth(3), trial.locator(".told")
        power.focus()
        for key in ("ArrowRight", "PageDown", "End", "Home"):
            page.keyboard.press(key)
            assert re.fullmatch(r"GPU 0, power \d+(\.\d+)? W, [\d.]+ s since its launch", told.text_content())
        page.keyboard.press("Escape")
        assert told.text_content() == ""


def test_a_matrix_and_the_parts_of_a_step_are_pointed_at(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200-pairs-2026"]) as page:
        page.locator("figure.pairs .plot").focus()
        page.keyboard.press("ArrowRight")
        said = "slowdown of this job: mobilenet_v2 16, beside this job: resnet50 64, 1.20"
        assert page.locator("figure.pairs .told").text_content() == said
    with Opened(browser, files["h200x4-scaling-2026"]) as page:
        page.locator("figure.breakdown .plot").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        told = page.locator("figure.breakdown .told").text_content()
        assert "strategy single" in told
        assert "backward 15.58 ms" in told


@pytest.mark.parametrize("name", ["h200-pairs-2026", "h200x4-scaling-2026"])
def test_the_figures_of_each_picture_stand_in_a_table(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    """For who does not see it. Whatever the arrow keys reach is in it."""
    with Opened(browser, files[name]) as page:
        for at in range(page.locator("figure").count()):
            figure = page.locator("figure").nth(at)
            figure.locator("summary").click()
            for place in range(figure.locator(".plot").count()):
                title = figure.locator(".plot").nth(place).get_attribute("aria-label")
                table = figure.locator(".figures table").nth(place)
                assert title.endswith(table.locator("caption").inner_text())
                assert table.locator("tbody tr").count() >= 2
                assert all(head.strip() for head in table.locator("thead th").all_inner_texts())


def test_no_words_in_a_picture_lie_upon_others(browser: Any, files: dict[str, Path]) -> None:
    boxes = """figures => figures.map(figure =>
        [...figure.querySelectorAll('.plot > svg > text, .plot > svg [aria-label*=tick] text')]
        .filter(text => text.textContent)
        .map(text => text.getBoundingClientRect()).map(box => [box.x, box.y, box.right, box.bottom]))"""
    for name, width in (("h200-pairs-2026", 360), ("h200x4-scaling-2026", 1400)):
        with Opened(browser, files[name], width=width) as page:
            for found in page.locator("figure").evaluate_all(boxes):
                assert len(found) > 5
                for a, b in itertools.combinations(found, 2):
                    across, down = (min(a[n + 2], b[n + 2]) - max(a[n], b[n]) for n in (0, 1))
                    assert across < 1 or down < 4, (name, width, a, b)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_label_stands_at_its_own_point(browser: Any, files: dict[str, Path], width: int) -> None:
    """The nearest point to it, or to the line that leads to it, is that of the label; no two cover each other."""
    with Opened(browser, files["h200x2-2026"], width=width) as page:
        figure = page.locator("figure.energy")
        dots = figure.locator("g[aria-label=dot]").evaluate_all(
            """(groups) => groups.map(group => [...group.children].map(dot => {
                const box = dot.getBoundingClientRect();
                return [(box.x + box.right) / 2, (box.y + box.bottom) / 2];
            }))"""
        )
        (panel,) = json.loads(figure.locator("script").text_content())["panels"]
        series = [one for one in panel["series"] if one["role"] == "measured"]
        at = [
            (dot, point["label"])
            for one, there in zip(series, dots, strict=True)
            for point, dot in zip(one["points"], there, strict=True)
        ]
        labels = figure.locator("text.beside").evaluate_all(
            """texts => texts.map(text => {
                const box = text.getBoundingClientRect();
                const line = text.previousElementSibling;
                const led = line.classList.contains("leader");
                const from = led ? line.getPointAtLength(0).matrixTransform(line.getScreenCTM()) : null;
                return [text.textContent, [box.x, box.y, box.right, box.bottom], from && [from.x, from.y]];
            })"""
        )
        assert len(labels) >= (len(at) - 1 if width > 1000 else len(at) / 2)
        for said, (left, top, right, bottom), begins in labels:
            place = begins or ((left + right) / 2, (top + bottom) / 2)
            assert min(at, key=lambda one: math.dist(one[0], place))[1] == said
        for (_, a, _), (_, b, _) in itertools.combinations(labels, 2):
            across, down = (min(a[n + 2], b[n + 2]) - max(a[n], b[n]) for n in (0, 1))
            assert across < 1 or down < 4, (a, b)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_figure_behind_a_bar_is_struck_through_by_its_interval(
    browser: Any, files: dict[str, Path], width: int
) -> None:
    boxes = """(plots, place) => plots.map(plot => [...plot.querySelectorAll(place)]
        .map(one => one.getBoundingClientRect()).map(box => [box.x, box.y, box.right, box.bottom]))"""
    with Opened(browser, files["h200x2-2026"], width=width) as page:
        plots = page.locator("figure.alternatives .plot")
        intervals = plots.evaluate_all(boxes, "g[aria-label=rule] line")
        figures = plots.evaluate_all(boxes, ".behind")
        assert len(figures[0]) == len([one for one in intervals[0] if one[2] - one[0] > 1]) == 12
        for strokes, texts in zip(intervals, figures, strict=True):
            across = [one for one in strokes if one[2] - one[0] > 1]
            for a, b in itertools.product(across, texts):
                assert a[2] <= b[0] + 0.5 or a[3] < b[1] or a[1] > b[3], (a, b)
        frames = page.locator("figure.alternatives .plot > svg").evaluate_all(
            "svgs => svgs.map(svg => svg.getBoundingClientRect().right)"
        )
        assert all(
            text[2] <= frame + 1 for frame, texts in zip(frames, figures, strict=True) for text in texts
        )


def test_a_table_with_columns_out_of_sight_says_so_until_its_last_one_is_seen(
    browser: Any, files: dict[str, Path]
) -> None:
    with Opened(browser, files["h200x4-scaling-2026"]) as page:
        hint = page.locator(".grid .further").first
        assert "More columns to the right" in hint.inner_text()
        page.locator(".grid .box").first.evaluate("box => box.scrollLeft = box.scrollWidth")
        hint.wait_for(state="hidden")
    with Opened(browser, files["h200x4-scaling-2026"], width=3000) as page:
        for table in page.locator(".grid").all():
            wider = table.locator(".box").evaluate("box => box.scrollWidth > box.clientWidth")
            assert table.locator(".further").is_visible() == wider
    with Opened(browser, files[ROUNDS]) as page:
        assert not page.locator(".grid .further").first.is_visible(), "all its columns are seen"


def test_the_head_of_a_long_table_stays_in_sight(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "long.html"
    file.write_text(html(read([row(batch, epoch_time_s=2.0) for batch in range(1, 80)])), "utf-8")
    with Opened(browser, file) as page:
        box = page.locator(".box").first
        box.scroll_into_view_if_needed()
        box.evaluate("box => box.scrollTop = box.scrollHeight")
        head, last = (
            page.locator(place).bounding_box() for place in ("thead th >> nth=0", "tbody tr >> nth=-1")
        )
        outside = box.bounding_box()
        assert 0 <= head["y"] - outside["y"] < 5
        assert head["y"] + head["height"] < last["y"] <= outside["y"] + outside["height"]


@pytest.mark.parametrize("width", WIDTHS)
def test_what_is_told_of_a_point_stays_on_the_page(browser: Any, files: dict[str, Path], width: int) -> None:
    with Opened(browser, files["h200-pairs-2026"], width=width) as page:
        for at in range(page.locator(".plot").count()):
            page.locator(".plot").nth(at).focus()
            for _ in range(3):
                page.keyboard.press("ArrowRight")
                box = page.locator(".tip:visible").bounding_box()
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= width


def test_everything_is_reached_by_the_keyboard(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files[ROUNDS]) as page:
        reached = set()
        for _ in range(60):
            page.keyboard.press("Tab")
            reached.add(
                page.evaluate(
                    "(document.activeElement.className || document.activeElement.id || document.activeElement.tagName)"
                )
            )
        assert {"skip", "theme", "plot", "filter-1", "box", "BUTTON", "SUMMARY"} <= reached


def test_light_and_dark(browser: Any, files: dict[str, Path]) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    white = "rgb(255, 255, 255)"
    with Opened(browser, files[ROUNDS], color_scheme="light") as page:
        assert page.evaluate(paper) == white
        page.get_by_role("button", name="Dark").click()
        assert page.evaluate(paper) != white
        page.get_by_role("button", name="Light").click()
        assert page.evaluate(paper) == white
    with Opened(browser, files[ROUNDS], color_scheme="dark") as page:
        assert page.evaluate(paper) != white
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate(paper) == white
        page.emulate_media(media="screen", color_scheme="dark")
        page.get_by_role("button", name="Light").click()
        assert page.evaluate(paper) == white


def test_it_prints(browser: Any, files: dict[str, Path]) -> None:
    opened = Opened(browser, files["h200x4-2026"])
    with opened as page:
        printed = page.pdf(prefer_css_page_size=True)
        assert printed.startswith(b"%PDF")
        assert 2 <= printed.count(b"/Type /Page\n") <= 16
    assert opened.complaints == []


def test_an_option_in_a_sentence_stays_in_its_line(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        option = page.locator(".doubts .option").first
        assert option.evaluate("one => getComputedStyle(one).display") == "inline"


def test_without_javascript_all_figures_are_there(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files[ROUNDS], java_script_enabled=False) as page:
        assert shown_rows(page) == ["16", "32", "64", "128", "256", "512"]
        assert page.get_by_text("This picture needs JavaScript").first.is_visible()
        assert page.locator(".filter:visible, #theme:visible").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_an_accessibility_checker_finds_nothing_serious(
    browser: Any, files: dict[str, Path], width: int, scheme: str
) -> None:
    axe = Path(os.environ.get("GPUBENCH_AXE", ""))
    if not axe.is_file():
        missing("GPUBENCH_AXE does not name axe.min.js of axe-core")
    for name in ("h200x4-scaling-2026" if scheme == "dark" else "h200-pairs-2026", ROUNDS):
        with Opened(browser, files[name], width=width, color_scheme=scheme) as page:
            for more in page.locator("figure summary").all():
                more.click()
            page.add_script_tag(content=axe.read_text("utf-8"))
            found = page.evaluate("axe.run()")
            bad = [
                (one["id"], one["impact"], one["nodes"][0]["html"][:200])
                for one in found["violations"]
                if one["impact"] in ("serious", "critical")
            ]
            assert bad == []
            assert found["passes"]
