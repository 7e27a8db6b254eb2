"""What is said of predictions: a sentence a template."""

from __future__ import annotations

import re
from pathlib import Path

import scripted

from gpubench.analyze import predict
from gpubench.analyze.predict import Predictions, StoredMachine
from gpubench.core.prediction import NoPrediction, PredictedGroup, PredictedJob, PredictionNote
from gpubench.render import prediction

DOUBTS = PredictionNote("doubts", {"codes": ("spread", "gaps")})
GROUP = PredictedGroup(
    name="two | jobs",
    jobs=(
        PredictedJob(name="1 of 2: a 16", alone_s=4.0, slowdown=1.6949, measured=1.7, notes=(DOUBTS,)),
        PredictedJob(name="2 of 2: a 32", alone_s=None, slowdown=1.0, notes=(DOUBTS, PredictionNote("cpu-load"))),
    ),
    word="likely", waits_for=("cpu", "gpu"), least_s={"cpu": 2.0, "gpu 0": 6.0, "cpu 1": 1.0}, is_upper_bound=True,
)  # fmt: skip
LACKING = NoPrediction(name="others", why=(PredictionNote("not-measured", {"job": "a 64"}),))
FOUND = Predictions(
    stored=StoredMachine(
        key="NVIDIA H200, 143771 MiB", records=(), machine=scripted.computer(gpus=1, cpus=8), cpus=8, is_here=False,
        other_machines=("Titan",),
    ),
    filled={"model": "a"}, groups=(GROUP, LACKING),
)  # fmt: skip


def test_a_block_a_group() -> None:
    assert prediction.format_text(FOUND) == (
        "By results of NVIDIA H200, 143,771 MiB (1 GPU, 8 CPUs), which is not this\n"
        "  machine. Results of Titan are left out. What was not asked for is as in these\n"
        "  rows: model=a.\n"
        "\n"
        "two | jobs\n"
        "\n"
        "job           alone s  predicted s  slowdown  measured  error %\n"
        "---------------------------------------------------------------\n"
        "1 of 2: a 16     4.00         6.78      1.69      1.70        0\n"
        "2 of 2: a 32        -            -      1.00         -        -\n"
        "\n"
        "Some overlap (likely, gain 0.59): the jobs would wait for the CPUs and GPU time.\n"
        "One epoch of each job takes at least 6.00 s of GPU 0, 2.00 s of the CPUs and\n"
        "  1.00 s of CPU set 1.\n"
        "It may be less: ranks keep a GPU busy while they wait for each other\n"
        "  (--breakdown measures it).\n"
        "1 of 2 and 2 of 2: the row alone has warnings (spread and gaps).\n"
        "2 of 2: CPU seconds are worked out from the load of all CPUs.\n"
        "\n"
        "others\n"
        "\n"
        "Not predicted: a 64 was not measured alone.\n"
    )
    wide = prediction.format_text(FOUND, width=200, is_rich=True)
    (row,) = (line for line in wide.splitlines() if line.startswith("2 of 2: a 32 "))
    assert row.split()[5:] == ["–", "–", "1.00", "–", "–"]


def test_markdown_escapes() -> None:
    text = prediction.format_markdown(FOUND)
    assert "**two \\| jobs**" in text
    (row,) = (line for line in text.splitlines() if line.startswith("| 1 of 2: a 16 |"))
    assert row.split(" | ")[1:] == ["4.00", "6.78", "1.69", "1.70", "0 |"]


def test_what_was_predicted_before_has_a_gain_alone() -> None:
    jobs = tuple(PredictedJob(name=name, alone_s=1.0, slowdown=2.0, measured=2.5) for name in "ab")
    assert prediction.list_group_sentences(PredictedGroup(name="", jobs=jobs)) == [
        "No overlap (predicted, gain 0.00)."
    ]


def test_every_note_has_words() -> None:
    assert (
        prediction.describe_note(
            PredictionNote("another-allowance", {"field": "cpus", "wanted": 4, "value": None})
        )
        == "would have 4 cpus, had an unknown number alone"
    )
    codes = set(re.findall(r'Note\(\s*"([^"]+)"', Path(predict.__file__).read_text()))
    assert codes == set(prediction.NOTES)
