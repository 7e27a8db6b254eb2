"""A prediction in the few words of a line before a group runs."""

from __future__ import annotations

from collections.abc import Sequence

from gpubench.analysis.prediction import Prediction
from gpubench.analysis.sharing import verdict_words
from gpubench.analysis.slowdown import expected
from gpubench.basics.words import listed, number
from gpubench.schema.row import Row

RESOURCES = {"cpu": "the CPUs", "gpu": "GPU time"}
"""How a resource of `Prediction.limits` is called: of a GPU only the time is known in which a kernel ran."""


def predicted_verdict(prediction: Prediction, solo: Sequence[Row]) -> str:
    """The predicted verdict in a few words, with the gain: `perhaps parallel, overlap gain 0.98`."""
    gain = prediction.overlap_gain
    found = expected(gain, solo)
    said = verdict_words(found, gain) if found.words else "no verdict"
    return f"{said}, overlap gain {number(gain, 2)}"


def waited_for(limits: Sequence[str]) -> str:
    """`the CPUs and GPU time`: what jobs would wait for, by `Prediction.limits`; empty for nothing."""
    return listed([RESOURCES.get(name, name) for name in limits])
