"""What is said of a group before it runs. Pure."""

from __future__ import annotations

from gpubench.analysis.audit.fairness import HARMLESS
from gpubench.analysis.doubted import codes
from gpubench.report.prediction import foretold_verdict, waited_for
from gpubench.report.table import row_of
from gpubench.report.words import number
from gpubench.runner.together import Foreseen


def foretold(foreseen: Foreseen) -> str:
    """One line: how many times as long each job should take, and why; or why that is not known."""
    prediction = foreseen.prediction
    if prediction is None:
        return f"not predicted: {foreseen.why_not}"
    times = ", ".join(number(slowdown, 2) for slowdown in prediction.slowdowns)
    why = f"; they would wait for {waited_for(prediction.limits) or 'nothing that they share'}"
    most = "at most " if prediction.at_most else ""
    return (
        f"predicted {most}{times} times as long as alone: "
        f"{foretold_verdict(prediction, [row_of(solo) for solo in foreseen.solos if solo])}{why}{doubted(foreseen)}"
    )


def doubted(foreseen: Foreseen) -> str:
    """What speaks against the trials alone that the prediction is made of."""
    found = {code for solo in foreseen.solos if solo for code in codes(row_of(solo))} - HARMLESS
    return f"; alone with doubts ({', '.join(sorted(found))})" if found else ""
