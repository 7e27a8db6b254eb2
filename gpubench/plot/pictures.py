"""The pictures that there are: a literal registry. Imports nothing heavy but what tables need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpubench.plot import (
    alternatives,
    breakdown,
    energy,
    growth,
    learning,
    limits,
    networks,
    pairs,
    rows,
    scaling,
    slowdowns,
    to_top1,
    trial,
)
from gpubench.plot.description import GO_ON, Panel, Picture
from gpubench.plot.subject import Subject


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """One kind of picture."""

    pictures: Callable[[Subject], Sequence[Picture]]
    """All that a table gives of it; none where it lacks what is needed."""
    shows: str
    """In a few words, for `--help` and the docs."""
    needs: str
    """What a sweep must have for it, as advice where a table lacks it."""


PICTURES: Mapping[str, Kind] = {
    "growth": Kind(
        pictures=growth.pictures,
        shows="epoch time and memory over the batch size, or another numeric axis",
        needs="two batch sizes with epoch times, as from --batch-size 16,32",
    ),
    "networks": Kind(
        pictures=networks.pictures,
        shows="what more GPUs bring, network by network, the smallest first",
        needs="three networks, each on different numbers of GPUs, as in experiments/network-size.toml",
    ),
    "scaling": Kind(
        pictures=scaling.pictures,
        shows="throughput over GPUs, with the ideal line",
        needs="rows on different numbers of GPUs that may be compared, as from --gpus 1,2,4",
    ),
    "alternatives": Kind(
        pictures=alternatives.pictures,
        shows="variants, strategies, … side by side: epoch time, CPU use, top-1",
        needs="two ways to do the same work, as from --variant crop-resize,pre-resized",
    ),
    "rows": Kind(
        pictures=rows.pictures,
        shows="rows side by side where nothing is ordered: epoch time, memory, CPU use, top-1",
        needs="two rows or more that differ in words, as from --model resnet18,mobilenet_v2",
    ),
    "slowdowns": Kind(
        pictures=slowdowns.pictures,
        shows="how much jobs that ran together slowed each other down",
        needs="jobs that ran together and alone, as from --copies 1,2",
    ),
    "pairs": Kind(
        pictures=pairs.pictures,
        shows="the slowdown of each job beside each other, as a matrix",
        needs="three jobs or more in pairs, as from --pairs with three --job's",
    ),
    "energy": Kind(
        pictures=energy.pictures,
        shows="energy against epoch time, with the Pareto front",
        needs="two trials whose energy was measured, on a GPU that tells it",
    ),
    "to-top1": Kind(
        pictures=to_top1.pictures,
        shows="training time and energy until a top-1 was reached",
        needs="a top-1 to reach, as from --set until_top1=60",
    ),
    "learning": Kind(
        pictures=learning.pictures,
        shows="top-1 over training time, epoch by epoch",
        needs="trials that were evaluated after several epochs, as from --set until_top1=60",
    ),
    "breakdown": Kind(
        pictures=breakdown.pictures,
        shows="the parts of a step, stacked",
        needs="steps that were timed in parts, as from --breakdown",
    ),
    "trial": Kind(
        pictures=trial.pictures,
        shows="one trial's GPU use, CPU use, memory and power over its life",
        needs="a trial that ended ok and whose samples lie in the results folder",
    ),
}
"""Name -> kind. The first that a table gives is its main picture."""


def described(subject: Subject, only: Sequence[str] = ()) -> list[Picture]:
    """All pictures that a table gives, in the order of PICTURES. `only`: of these kinds."""
    return [
        _bounded(_readable(picture))
        for name, kind in PICTURES.items()
        if not only or name in only
        for picture in kind.pictures(subject)
    ]


def _bounded(picture: Picture) -> Picture:
    """The picture, whose caption says where an interval goes on beyond an axis."""
    if not any(limits.leaves(panel) for panel in picture.panels):
        return picture
    first, *others = picture.caption
    return replace(picture, caption=(f"{first} {GO_ON}", *others))


MOST_SERIES, MOST_PLACES = 20, 60
"""More lines, or more bars below each other, nobody can read in one picture, and files grow without end."""


def _readable(picture: Picture) -> Picture:
    """The picture with no more series and places than can be read; what is left out is said first in its caption."""
    series = [one for one in picture.panels[0].series if one.role == "measured"]
    places = picture.panels[0].places
    left_out = []
    if len(series) > MOST_SERIES:
        left_out.append(f"the first {MOST_SERIES} of {len(series):,} series")
    if len(places) > MOST_PLACES:
        left_out.append(f"the first {MOST_PLACES} of {len(places):,} places")
    if not left_out:
        return picture
    first, *others = picture.caption
    said = f"Only {' and '.join(left_out)} are drawn. {first}"
    return replace(picture, panels=tuple(_cut(panel) for panel in picture.panels), caption=(said, *others))


def _cut(panel: Panel) -> Panel:
    kept = [one for one in panel.series if one.role == "measured"][:MOST_SERIES]
    series = [one for one in panel.series if one.role != "measured" or one in kept]
    if panel.places:
        series = [replace(one, points=tuple(p for p in one.points if p.x < MOST_PLACES)) for one in series]
    return replace(
        panel,
        series=tuple(series),
        places=panel.places[:MOST_PLACES],
        cells=tuple(cell for cell in panel.cells if max(cell.row, cell.column) < MOST_PLACES),
    )
