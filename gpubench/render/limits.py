"""What configurations would do under other power limits, as text and Markdown, with all its English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpubench.basics.quoted import clean_line
from gpubench.basics.words import format_hardware_key
from gpubench.core.prediction import LimitCurve, LimitPrediction
from gpubench.render.grid import Grid, GridCell, GridGroup, GridRow
from gpubench.render.markdown import escape_markdown, format_tables
from gpubench.render.terminal import TO_ASCII, WIDTH, render_grid, wrap_text
from gpubench.render.words import format_change, format_percent, format_significant, name_row

HEADINGS = ("limit W", "time s", "power W", "energy J", "EDP J s", "")
MODELS: Mapping[str, str] = {
    "line": "a straight line between neighbouring limits",
    "monotone": "a monotone curve through all limits",
    "quadratic": "a quadratic in 1 / limit",
    "surface": "a smooth surface over limits and batch sizes",
    "physical": "a physical model (idle power, voltage, the share of time that follows the clock)",
}
"""Name of a model of `stats.power_limits` -> what it is."""


def format_text(predictions: Sequence[LimitPrediction], *, width: int = WIDTH, is_rich: bool = False) -> str:
    """A block a machine, in it a block a configuration, its answer first; ends in a newline.

    `is_rich`: for a terminal, which shows more than ASCII.
    """
    lines: list[str] = []
    for prediction in predictions:
        for curve in prediction.curves:
            lines += wrap_text(name_curve(prediction, curve), width)
            for sentence in list_curve_sentences(curve):
                lines += wrap_text(sentence, width)
            lines += [
                "",
                *(line.plain for line in render_grid(make_limits_grid(prediction, curve), width, is_rich)),
                "",
            ]
        lines += [*wrap_text(describe_model(prediction), width), ""]
    return "".join(f"{(line if is_rich else line.translate(TO_ASCII)).rstrip()}\n" for line in lines[:-1])


def format_markdown(predictions: Sequence[LimitPrediction]) -> str:
    """The same as Markdown."""
    blocks: list[str] = []
    for prediction in predictions:
        for curve in prediction.curves:
            blocks.append(f"**{escape_markdown(name_curve(prediction, curve))}**")
            blocks.append(
                "\n".join(f"- {escape_markdown(sentence)}" for sentence in list_curve_sentences(curve))
            )
            blocks += format_tables(make_limits_grid(prediction, curve))
        blocks.append(escape_markdown(describe_model(prediction)))
    return "\n\n".join(blocks) + "\n"


def name_curve(prediction: LimitPrediction, curve: LimitCurve) -> str:
    """The machine and the configuration."""
    return f"{clean_line(format_hardware_key(prediction.machine))}: {clean_line(name_row(curve.fields))}"


def list_curve_sentences(curve: LimitCurve) -> list[str]:
    """The answer by energy, by energy x time, and what to measure next."""
    highest, least, compromise = curve.rows[-1], curve.find_best("energy"), curve.find_best("edp")
    if least is highest:
        sentences = [f"Leave it at {highest.limit_w:g} W: no lower limit takes less energy."]
    else:
        saving, time = (
            1 - least.compute("energy") / highest.compute("energy"),
            least.time_s / highest.time_s - 1,
        )
        source, direction = "" if least.is_measured else " (foretold)", "more" if time > 0 else "less"
        sentences = [
            f"Take {least.limit_w:g} W{source}: {format_percent(saving)} less energy than at {highest.limit_w:g} W, "
            f"{format_percent(abs(time))} {direction} time."
        ]
    if compromise is highest:
        sentences.append(f"Energy x time is least at {highest.limit_w:g} W.")
    else:
        saving = 1 - compromise.compute("edp") / highest.compute("edp")
        sentences.append(
            f"Energy x time is least at {compromise.limit_w:g} W: {format_percent(saving)} less."
        )
    if (wanted := curve.next_limit) is not None:
        low, high = (format_change(100 * change) for change in (wanted.low, wanted.high))
        sentences.append(
            f"Measure {wanted.limit_w:g} W next: models foretell {low} to {high} there, by the least energy that was "
            "measured."
        )
    return sentences


def make_limits_grid(prediction: LimitPrediction, curve: LimitCurve) -> Grid:
    """A table with a row a limit; that with the least energy is the answer."""
    error = (
        ""
        if prediction.energy_error is None
        else f" ±{format_significant(100 * prediction.energy_error, 2)} %"
    )
    answer = curve.find_best("energy")
    rows = []
    for row in curve.rows:
        figures = (row.time_s, row.power_w, row.compute("energy"), row.compute("edp"))
        texts = [f"{row.limit_w:g}", *map(format_significant, figures)]
        texts.append("measured" if row.is_measured else f"foretold{error}")
        rows.append(GridRow(tuple(map(GridCell, texts)), is_answer=row is answer))
    count = len(HEADINGS)
    is_number = (*[True] * (count - 1), False)
    return Grid(("",) * count, HEADINGS, is_number, (GridGroup("", tuple(rows)),))


def describe_model(prediction: LimitPrediction) -> str:
    """What foretold, and how far off that is."""
    name = f"Foretold by {MODELS[prediction.model]}"
    if prediction.energy_error is None or prediction.line_error is None or prediction.regret is None:
        return f"{name}; how far off it is, a third limit would tell."
    error, line, regret = (
        f"{format_significant(100 * share, 2)} %"
        for share in (prediction.energy_error, prediction.line_error, prediction.regret)
    )
    return (
        f"{name}, the best of {len(MODELS)} by limits that were left out. Its energy was {error} off there in the "
        f"median (a straight line's {line}), and limits taken by it cost {regret} more energy than the best, in the "
        "mean."
    )
