"""Pictures as they are drawn: the words can be searched, marks and gaps are there, and files are the same each time."""

from __future__ import annotations

import io
import itertools
import math
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from PIL import Image

from gpubench.plot.description import Panel, Picture, PlottedAxis, PlottedPoint, PlottedSeries
from gpubench.plot.paper.figure import drawn
from gpubench.plot.paper.file import DPI, written
from gpubench.plot.paper.sheet import WIDTH

SVG = "{http://www.w3.org/2000/svg}"


def points(*figures: float | None, status: str = "missing", first: float = 16.0) -> tuple[PlottedPoint, ...]:
    """At 16, 32, 64, …"""
    return tuple(
        PlottedPoint(name=f"point {n}", x=first * 2**n, y=y, status="ok" if y is not None else status)
        for n, y in enumerate(figures)
    )


def lines(*series: PlottedSeries, **values: object) -> Picture:
    ticks = tuple(sorted({p.x for one in series for p in one.points}))
    panel = Panel(
        kind="lines",
        x=PlottedAxis(title="global batch size (images)", steps="log2", from_zero=False, ticks=ticks),
        y=PlottedAxis(title="epoch time (s)"),
        series=series,
    )
    made = Picture(
        name="growth",
        experiment="sizes",
        of="sizes",
        shows="epoch time",
        panels=(panel,),
        caption=("One. Two.", "H200."),
    )
    return replace(made, **values)  # type: ignore[arg-type]


def words(picture: Picture) -> str:
    root = ElementTree.fromstring(written(drawn(picture), "svg"))
    return " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))


def test_a_series_of_which_none_is_on_the_front_is_hollow_too() -> None:
    """Filled, it would read as if all of it were there."""
    best, beaten = points(8, 4), points(16, 9)
    made = lines(
        PlottedSeries(name="ddp", points=(replace(best[0], best=True), best[1]), joined=False),
        PlottedSeries(name="dp", look=1, points=beaten, joined=False),
    )
    (axes,) = drawn(made).axes
    marked = [line for line in axes.lines if line.get_marker() in ("o", "s")]
    filled = [list(line.get_ydata()) for line in marked if line.get_markerfacecolor() != "white"]
    assert filled == [[8]]
    assert len(marked) == 3
    plain = lines(PlottedSeries(name="ddp", points=best), PlottedSeries(name="dp", look=1, points=beaten))
    assert all(line.get_markerfacecolor() != "white" for line in drawn(plain).axes[0].lines)


def test_titles_labels_legend_and_caption_are_text_that_can_be_searched() -> None:
    found = words(
        lines(
            PlottedSeries(name="ddp", points=points(8, 4)),
            PlottedSeries(name="dp", look=1, points=points(9, 5)),
        )
    )
    for told in (
        "sizes: epoch time",
        "global batch size (images)",
        "epoch time (s)",
        "ddp",
        "dp",
        "16",
        "32",
        "H200.",
    ):
        assert told in found, told


def test_out_of_memory_is_marked_where_the_curve_ends() -> None:
    assert "oom" not in words(lines(PlottedSeries(name="", points=points(8, 4, None))))
    assert "oom" in words(lines(PlottedSeries(name="", points=points(8, 4, None, status="oom"))))


def test_a_line_is_never_joined_over_a_gap() -> None:
    def joined(*figures: float | None) -> int:
        """Strokes of the curve."""
        axes = drawn(lines(PlottedSeries(name="", points=points(*figures)))).axes[0]
        (curve,) = (line for line in axes.lines if line.get_marker() == "o")
        y = curve.get_ydata()
        return sum(bool(a == a and b == b) for a, b in itertools.pairwise(y))  # type: ignore[arg-type]

    assert joined(8, 6, 5, 4) == 3
    assert joined(8, None, 5, 4) == 1
    assert joined(8, None, 5, None, 4) == 0


def test_growth_can_be_seen_in_every_panel() -> None:
    """A panel from 0 shows a doubling over a good part of its height."""
    (axes,) = drawn(lines(PlottedSeries(name="", points=points(8, 4)))).axes
    low, high = axes.get_ylim()
    assert low == 0
    assert 4 / (high - low) > 0.4


def test_an_interval_is_a_bar_and_none_is_none() -> None:
    def bars(low: float | None, high: float | None) -> int:
        made = tuple(replace(p, low=low, high=high) for p in points(8, 7))
        axes = drawn(lines(PlottedSeries(name="", points=made))).axes[0]
        return sum(list(line.get_ydata()) == [low, high] for line in axes.lines)  # type: ignore[arg-type]

    assert bars(6.0, 9.0) == 2
    assert bars(None, None) == 0


def test_doubts_are_marked_as_in_the_table() -> None:
    def marks(*doubted: bool) -> int:
        made = tuple(replace(p, doubtful=d) for p, d in zip(points(8, 6, 5), doubted, strict=True))
        return words(lines(PlottedSeries(name="", points=made))).count("!")

    assert marks(False, True, False) == 1
    assert marks(True, True, True) == 0, "the caption says that all have"
    sure, unsure = points(8, 6), tuple(replace(p, doubtful=True) for p in points(9, 7))
    found = words(
        lines(PlottedSeries(name="ddp", points=sure), PlottedSeries(name="dp", look=1, points=unsure))
    )
    assert "dp !" in found
    assert found.count("!") == 1


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_a_picture_has_the_same_bytes_each_time(form: str) -> None:
    picture = lines(
        PlottedSeries(name="ddp", points=points(8, 4)), PlottedSeries(name="dp", look=1, points=points(9, 5))
    )
    made = written(drawn(picture), form)
    assert made == written(drawn(picture), form)
    assert not re.search(rb"20\d\d-\d\d-\d\d|D:20\d\d", made), "no date"


def test_it_is_as_wide_as_a_column() -> None:
    image = Image.open(io.BytesIO(written(drawn(lines(PlottedSeries(name="", points=points(8, 4)))), "png")))
    assert image.width == round(WIDTH * DPI)


def test_ten_series_with_long_names_stay_inside_of_the_picture_and_differ_without_colours() -> None:
    name = "strategy=ddp variant=pre-resized precision=bf16 memory_format=channels_last optimizer=sgd "
    series = [PlottedSeries(name=f"{name}{n}", look=n, points=points(8 + n, 4 + n)) for n in range(10)]
    figure = drawn(lines(*series))
    written(figure, "png")  # lays it out
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1
    assert box.y0 >= figure.axes[0].get_window_extent().y1, "the legend is outside of the data"
    looks = {(line.get_marker(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == 10


@pytest.mark.parametrize("kind", ["bars", "stacked"])
def test_bars_have_their_places_names_and_an_axis_from_zero(kind: str) -> None:
    panel = Panel(
        kind=kind,  # type: ignore[arg-type]
        x=PlottedAxis(title="", from_zero=False),
        y=PlottedAxis(title="epoch time (s)"),
        places=("batch_size=16", "batch_size=32"),
        series=tuple(
            PlottedSeries(
                name=name,
                look=look,
                points=(PlottedPoint(name="a", x=0, y=3.0), PlottedPoint(name="b", x=1, y=2.0)),
            )
            for look, name in enumerate(("crop-resize", "pre-resized"))
        ),
    )
    found = lines(
        PlottedSeries(name="", points=points(1)), panels=(panel, panel) if kind == "bars" else (panel,)
    )
    assert drawn(found).axes[0].get_xlim()[0] == 0
    for told in ("batch_size=16", "batch_size=32", "crop-resize", "pre-resized", "epoch time (s)"):
        assert told in words(found), told
    hatches = {bar.get_hatch() for bar in drawn(found).axes[0].patches}
    assert len(hatches) == 2, "bars differ without colours"


def test_words_stand_at_their_own_point_in_the_file_whatever_its_resolution() -> None:
    """Points stand so close that words a little aside would be another one's."""
    marked = [(16, 8.0), (17, 8.0), (64, 4.0), (66, 4.3)]
    made = tuple(PlottedPoint(name=str(x), x=x, y=y, label=str(x)) for x, y in marked)
    figure = drawn(lines(PlottedSeries(name="", points=made, joined=False)))
    for dpi in (72, 150, 300):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        (axes,) = figure.axes
        at = {str(x): axes.transData.transform((x, y)) / dpi for x, y in marked}
        led = {tuple(line.get_xydata()[1]): line.get_xydata()[0] for line in axes.lines[1:]}
        assert {text.get_text() for text in axes.texts} == set(at), "each has room"
        for text in axes.texts:
            place = text.get_position()
            begins = min(led, key=lambda end: math.dist(end, place), default=place)
            begins = led[begins] if led and math.dist(begins, place) < 0.12 else place
            assert min(at, key=lambda name: math.dist(at[name], begins)) == text.get_text()


@pytest.mark.parametrize("high", [5.0, 12.0])
def test_what_stands_behind_a_bar_is_not_struck_through_by_its_interval(high: float) -> None:
    """Neither where that ends, nor where it leaves the picture."""
    bar = PlottedPoint(name="a", x=0, y=4.0, low=3.0, high=high, doubtful=True)
    panel = Panel(
        kind="bars",
        x=PlottedAxis(title="", from_zero=False),
        y=PlottedAxis(title="epoch time (s)", top=5.0),
        places=("a", "b"),
        series=(PlottedSeries(name="", points=(bar, PlottedPoint(name="b", x=1, y=2.0))),),
    )
    (axes,) = drawn(lines(panel.series[0], panels=(panel,))).axes
    (mark,) = (text for text in axes.texts if text.get_text() == "!")
    assert mark.get_position()[0] > min(high, axes.get_xlim()[1])


@pytest.mark.parametrize("name", ["a$b$c", "<&>\"'", "大きな名前", "x" * 200, "\\alpha_{1}^2", "%s {0}"])
def test_any_name_can_be_drawn(name: str) -> None:
    found = lines(
        PlottedSeries(name=name, points=points(8, 4)),
        PlottedSeries(name="dp", look=1, points=points(9, 5)),
        of=name,
    )
    assert name in words(found).replace(" ", "") or name in words(found)
    written(drawn(found), "png")
    written(drawn(found), "pdf")
