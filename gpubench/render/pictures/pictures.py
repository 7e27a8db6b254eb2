"""The pictures that there are, and which of them a report has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpubench.core.findings import (
    BatchSizeFinding,
    DevicesFinding,
    Finding,
    NetworkSizeFinding,
    SharingFinding,
    TargetFinding,
    VersusFinding,
)
from gpubench.core.report import Report
from gpubench.core.trace import TrialTrace
from gpubench.render.pictures import (
    breakdown,
    devices,
    energy,
    growth,
    networks,
    target,
    together,
    trial,
    ways,
)
from gpubench.render.pictures.vega import Vega

KINDS: Mapping[str, str] = {
    "growth": "two batch sizes with their rates, as from --batch-size 16,32",
    "devices": "rows on different numbers of GPUs that may be compared, as from --gpus 1,2,4",
    "networks": "three networks, each on different numbers of GPUs, as in experiments/network-size.toml",
    "ways": "two ways to do the same work, as from --variant crop-resize,pre-resized",
    "together": "jobs that ran together and alone, as from --copies 1,2",
    "target": "a top-1 to reach, as from --until-top1 60",
    "energy": "two rows of one network whose energy was measured, on a GPU that tells it",
    "breakdown": "steps that were timed in parts, as from --breakdown",
    "trial": "a trial that ended ok and whose samples lie in the results folder",
}
"""Name -> what a sweep must have for it, as advice where a report lacks it; in the order of the docs."""

DRAWN: Mapping[type[Finding], tuple[str, Callable[[Report, Any], Vega | None]]] = {
    BatchSizeFinding: ("growth", growth.draw),
    DevicesFinding: ("devices", devices.draw),
    NetworkSizeFinding: ("networks", networks.draw),
    SharingFinding: ("together", together.draw),
    TargetFinding: ("target", target.draw),
    VersusFinding: ("ways", ways.draw),
}
"""Kind of finding -> its kind of picture, and what draws it: None where there is too little to draw."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """A picture of a report."""

    kind: str
    """A key of KINDS."""
    name: str
    """The report's and the kind's, with what tells it from others of its kind: `x-ways-variant-pre-resized`."""
    description: Vega

    @property
    def title(self) -> str:
        """The answer that it shows."""
        return " ".join(self.description["title"]["text"])


def explain_no_picture(kinds: Collection[str]) -> str:
    """That no picture can be drawn, and what a sweep must have for one."""
    if not kinds:
        return (
            f"nothing here can be drawn: a picture needs {KINDS['growth']}, or what another one needs "
            "(docs/plots.md)"
        )
    needs = "; ".join(f"{kind} needs {KINDS[kind]}" for kind in kinds)
    return f"nothing here can be drawn: {needs}"


def list_pictures(
    report: Report, trace: TrialTrace | None = None, only: Collection[str] = ()
) -> list[Picture]:
    """All pictures of a report, those of its findings first and in their order: the first is the main one.

    `trace`: of the trial that is to be shown over its life. `only`: of these kinds.
    """
    return [
        Picture(kind=kind, name="-".join(filter(None, (report.name, kind, subject))), description=description)
        for kind, subject, description in _draw_each_kind(report, trace)
        if description is not None and (not only or kind in only)
    ]


def _draw_each_kind(report: Report, trace: TrialTrace | None) -> Iterator[tuple[str, str, Vega | None]]:
    for finding in report.findings:
        if type(finding) in DRAWN:
            kind, draw = DRAWN[type(finding)]
            subject = f"{finding.field}-{finding.value}" if isinstance(finding, VersusFinding) else ""
            subject = finding.strategy if isinstance(finding, DevicesFinding) else subject
            yield kind, subject, draw(report, finding)
    yield "energy", "", energy.draw(report)
    yield "breakdown", "", breakdown.draw(report)
    if trace is not None:
        yield "trial", trace.trial_id, trial.draw(report, trace)
