"""What is said of a group before it runs. Pure."""

from __future__ import annotations

from gpubench.runner.together import Foreseen


def foretold(foreseen: Foreseen) -> str:
    """One line: how many times as long each job should take, and why; or why that is not known."""
    prediction = foreseen.prediction
    if prediction is None:
        return f"not predicted: {foreseen.why_not}"
    times = ", ".join(f"{slowdown:.2f}" for slowdown in prediction.slowdowns)
    why = (
        f"; the fullest: {' and '.join(prediction.limits)}" if prediction.limits else "; nothing will be full"
    )
    most = "at most " if prediction.at_most else ""
    return (
        f"predicted {most}{times} times as long as alone: {prediction.verdict}, overlap gain "
        f"{prediction.overlap_gain:.2f}{why}"
    )
