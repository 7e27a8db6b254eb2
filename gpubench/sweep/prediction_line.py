"""What is said of a group before it runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.record.together import GroupPrediction
from gpubench.render.prediction import OVERLAPS, RESOURCES
from gpubench.render.words import format_number, join_words
from gpubench.schema.doubts import doubt_of
from gpubench.schema.row import Row


def prediction_line(group_prediction: GroupPrediction, solos: Sequence[Row]) -> str:
    """One line: how many times as long each job should take, and why; or why that is not known.

    `solos`: the rows of the trials alone, with the doubts that follow from their repeats.
    """
    prediction = group_prediction.prediction
    if prediction is None:
        return f"not predicted: {group_prediction.why_not}"
    times = ", ".join(format_number(job.slowdown, 2) for job in prediction.jobs)
    most = "at most " if prediction.is_upper_bound else ""
    waits = [RESOURCES[name] for name in prediction.waits_for] or ["nothing that they share"]
    doubts = write_doubts(solos)
    return (
        f"predicted {most}{times} times as long as alone: {OVERLAPS[prediction.overlap].lower()} "
        f"(gain {format_number(prediction.overlap_gain, 2)}); they would wait for {join_words(waits)}{doubts}"
    )


def write_doubts(solos: Sequence[Row]) -> str:
    """What speaks against the trials alone that the prediction is made of."""
    codes = {
        code for solo in solos for code in (solo.doubts or "").split("+") if code and doubt_of(code).serious
    }
    return f"; alone with warnings ({', '.join(sorted(codes))})" if codes else ""
