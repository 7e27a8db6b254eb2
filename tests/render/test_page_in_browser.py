"""The web page of results in a real browser: its first screen, folded parts, dark, phone, paper, keyboard, readers.

They need Chromium (`apt-get install chromium`), and one of them axe-core (`npm pack axe-core`, whose axe.min.js
GPUBENCH_AXE names). Without these they are skipped, unless GPUBENCH_BROWSER=required, as in CI.
"""

from __future__ import annotations

import itertools
import os
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
STORED = (
    "h200x4-2026", "h200-until-top1-2026", "h200-copies-rounds-2026", "h200x2-network-size-2026", "titan-xp-2021",
    "h200x4-scaling-2026",
)  # fmt: skip
ROUNDS = "rounds"


def missing(what: str) -> None:
    """Skips the test, or fails where it must run."""
    if REQUIRED:
        pytest.fail(f"{what}, and GPUBENCH_BROWSER=required")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium."""
    path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if path is None:
        missing("no Chromium is installed")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright is not installed")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
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
        width = options.pop("width", 1280)
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        if self.page.locator(".screen:visible figure").count() and options.get("java_script_enabled", True):
            self.page.locator(".screen:visible .drawing svg").wait_for()

    def __enter__(self) -> Any:
        return self.page

    def __exit__(self, *_: object) -> None:
        self.context.close()


def unfold(page: Any) -> None:
    """Opens all that is folded of the experiment that is shown."""
    for summary in page.locator("section:visible > details > summary").all():
        summary.click()
    page.wait_for_function(
        """() => [...document.querySelectorAll("figure.picture")].filter(figure => figure.checkVisibility())
        .every(figure => figure.querySelector(".drawing svg"))"""
    )


@pytest.mark.parametrize(("name", "width"), [*((name, 360) for name in STORED), (ROUNDS, 1280)])
def test_it_fits_draws_all_pictures_complains_of_nothing_and_asks_no_network(
    browser: Any, files: dict[str, Path], name: str, width: int
) -> None:
    opened = Opened(browser, files[name], width=width)
    with opened as page:
        unfold(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        pictures = page.locator("section:visible figure.picture")
        assert pictures.count() >= 1
        for picture in pictures.all():
            assert picture.bounding_box()["width"] <= width
            assert picture.locator("svg").bounding_box()["height"] > 60
    assert opened.complaints == []
    assert opened.requests == [files[name].as_uri()]


@pytest.mark.parametrize("name", STORED)
def test_the_first_screen_holds_question_answer_tiles_picture_and_table(
    browser: Any, files: dict[str, Path], name: str
) -> None:
    with Opened(browser, files[name]) as page:
        shown = page.locator("section:visible")
        order = [
            shown.locator(place).bounding_box()
            for place in (".question", "h2", ".certainty", ".tiles", ".screen figure.picture")
        ]
        for above, below in itertools.pairwise(order):
            assert above["y"] < below["y"]
        picture, table = order[-1], shown.locator(".beside").bounding_box()
        assert picture["y"] + picture["height"] <= 900
        assert table["y"] + table["height"] <= 900
        assert table["x"] > picture["x"] + picture["width"], "beside each other"
        assert 0.43 <= table["width"] / (table["width"] + picture["width"]) <= 0.53


def test_only_what_is_seen_is_drawn_until_it_is_unfolded(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        assert page.locator("svg").count() == 1
        page.get_by_text("Further pictures: 2").first.click()
        page.locator("section:visible svg").nth(2).wait_for()
        assert page.locator("svg").count() == 3


def test_a_picture_shows_the_report_s_figures_as_text(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        texts = page.locator(".screen:visible svg text").all_text_contents()
        assert "256: 4,970 images/s" in texts
        assert "2,048: out of memory" in texts
        name = page.locator(".screen:visible .drawing").get_attribute("aria-label")
        assert name.startswith("Take batch 256 with ddp: ")


def test_a_card_chooses_the_experiment_and_the_address_keeps_it(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        first, second = page.locator(".cards a").all()
        assert page.locator("section:visible").count() == 1
        assert (first.get_attribute("aria-current"), second.get_attribute("aria-current")) == ("true", None)
        second.click()
        assert page.locator("section:visible h2").inner_text().startswith("Take batch 128 with ddp")
        page.locator(".screen:visible svg").wait_for()
        assert (first.get_attribute("aria-current"), second.get_attribute("aria-current")) == (None, "true")
        assert page.evaluate("scrollY") == 0
        page.reload()
        assert page.locator("section:visible h2").inner_text().startswith("Take batch 128 with ddp")
        page.go_back()
        assert page.locator("section:visible h2").inner_text().startswith("Take batch 256 with ddp")


def test_the_command_is_copied(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"], permissions=["clipboard-read", "clipboard-write"]) as page:
        page.locator("section:visible .copy").click()
        page.get_by_role("button", name="copied").wait_for()
        command = "gpubench sweep resnet34-4gpu-1.toml --out results/h200x4-2026 --rounds 3"
        assert page.evaluate("getSelection().toString()") == command
        assert page.evaluate("navigator.clipboard.readText()") == command


def test_everything_is_reached_by_the_keyboard(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"]) as page:
        reached = []
        for _ in range(14):
            page.keyboard.press("Tab")
            reached.append(
                page.evaluate(
                    "(({className, id, hash, tagName}) => className || id || hash || tagName)(document.activeElement)"
                )
            )
        assert reached[:8] == ["skip", "theme", "print", "#e1", "#e2", "copy", "box", "SUMMARY"]
        page.locator("section:visible summary").first.focus()
        page.keyboard.press("Enter")
        assert page.get_by_text("What the columns mean").first.is_visible()


def test_light_and_dark(browser: Any, files: dict[str, Path]) -> None:
    """The page and its pictures, live, and always light on paper."""
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    blue = '.screen svg path[stroke="var(--blue)"]'
    line = f"getComputedStyle(document.querySelector('{blue}')).stroke"
    light, dark = ("rgb(255, 255, 255)", "rgb(0, 114, 178)"), ("rgb(20, 23, 27)", "rgb(86, 180, 233)")
    with Opened(browser, files[ROUNDS], color_scheme="light") as page:

        def look() -> tuple[str, str]:
            page.locator(blue).first.wait_for(state="attached")  # marks come after the picture's frame
            return page.evaluate(ground), page.evaluate(line)

        assert look() == light
        page.get_by_role("button", name="Dark").click()
        assert look() == dark
        page.get_by_role("button", name="Light").click()
        assert look() == light
    with Opened(browser, files[ROUNDS], color_scheme="dark") as page:
        assert look() == dark
        page.emulate_media(media="print", color_scheme="dark")
        assert look() == light
        page.emulate_media(media="screen", color_scheme="light")
        assert look() == light
        page.get_by_role("button", name="Dark").wait_for(state="visible")


def test_all_is_on_paper(browser: Any, files: dict[str, Path]) -> None:
    """What is folded, and every experiment with its pictures; afterwards the page is as it was."""
    opened = Opened(browser, files["h200x4-2026"])
    with opened as page:
        printed = page.pdf(prefer_css_page_size=True)
        assert printed.startswith(b"%PDF")
        assert 4 <= printed.count(b"/Type /Page\n") <= 10
        assert page.locator("figure.picture svg").count() == page.locator("figure.picture").count() == 6
        assert page.locator("section:visible").count() == 1
        assert page.locator("details[open]").count() == 0
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        assert page.locator("section:visible").count() == 2
        assert page.locator("main details:not([open])").count() == 0
        assert page.locator("button:visible, .cards:visible").count() == 0
    assert opened.complaints == []


def test_the_head_of_a_long_table_stays_in_sight(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "long.html"
    file.write_text(html(read([row(batch, epoch_time_s=2.0) for batch in range(1, 80)])), "utf-8")
    with Opened(browser, file) as page:
        box = page.locator(".box").first
        box.evaluate("box => box.scrollTop = box.scrollHeight")
        head, last = (
            box.locator(place).bounding_box() for place in ("thead th >> nth=0", "tbody tr >> nth=-1")
        )
        outside = box.bounding_box()
        assert 0 <= head["y"] - outside["y"] < 5
        assert head["y"] + head["height"] < last["y"] <= outside["y"] + outside["height"]


def test_without_javascript_all_figures_are_there(browser: Any, files: dict[str, Path]) -> None:
    with Opened(browser, files["h200x4-2026"], java_script_enabled=False) as page:
        assert page.locator("section:visible").count() == 2
        assert page.locator(".beside tbody tr:visible").count() == 16 + 12 + 4, "rows, and heads of groups"
        assert page.locator("noscript").first.is_visible()
        assert page.locator("button:visible").count() == 0


@pytest.mark.parametrize(
    ("name", "width", "scheme"), [("h200x4-2026", 1280, "light"), ("h200x2-network-size-2026", 360, "dark")]
)
def test_an_accessibility_checker_finds_nothing(
    browser: Any, files: dict[str, Path], name: str, width: int, scheme: str
) -> None:
    axe = Path(os.environ.get("GPUBENCH_AXE", ""))
    if not axe.is_file():
        missing("GPUBENCH_AXE does not name axe.min.js of axe-core")
    with Opened(browser, files[name], width=width, color_scheme=scheme) as page:
        unfold(page)
        page.add_script_tag(content=axe.read_text("utf-8"))
        found = page.evaluate("axe.run()")
        bad = [(each["id"], each["impact"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
        assert bad == []
        assert found["passes"]
