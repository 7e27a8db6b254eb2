"""What is said of a group before it runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.doubted import serious
from gpubench.basics.words import number
from gpubench.record.together import GroupPrediction
from gpubench.report.prediction import predicted_verdict, waited_for
from gpubench.schema.row import Row


def prediction_line(group_prediction: GroupPrediction, solos: Sequence[Row]) -> str:
    """One line: how many times as long each job should take, and why; or why that is not known.

    `solos`: the rows of the trials alone, with the doubts that follow from their repeats.
    """
    prediction = group_prediction.prediction
    if prediction is None:
        return f"not predicted: {group_prediction.why_not}"
    times = ", ".join(number(slowdown, 2) for slowdown in prediction.slowdowns)
    by = "by these rows " if doubted(solos) else ""
    why = f"; {by}they would wait for {waited_for(prediction.limits) or 'nothing that they share'}"
    most = "at most " if prediction.at_most else ""
    estimated = any(wait and not wait.measured for wait in prediction.waits)
    left_out = "; without waiting for gradients, which is estimated" * estimated
    return (
        f"predicted {most}{times} times as long as alone: "
        f"{predicted_verdict(prediction, solos)}{why}{left_out}{doubted(solos)}"
    )


def doubted(solos: Sequence[Row]) -> str:
    """What speaks against the trials alone that the prediction is made of."""
    found = {code for solo in solos for code in serious(solo)}
    return f"; alone with doubts ({', '.join(sorted(found))})" if found else ""
