"""Which picture shows which finding."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from gpubench.render.pictures import devices, growth, networks, target, together, ways
from gpubench.render.pictures.vega import Vega

PICTURES: Mapping[type[Finding], Callable[[Report, Any], Vega | None]] = {
    BatchSizeFinding: growth.draw,
    DevicesFinding: devices.draw,
    NetworkSizeFinding: networks.draw,
    SharingFinding: together.draw,
    TargetFinding: target.draw,
    VersusFinding: ways.draw,
}
"""Kind of finding -> the function that draws it, or None where there is too little to draw."""


def draw_finding(report: Report, finding: Finding) -> Vega | None:
    """The picture of a finding as Vega-Lite; None where it has none."""
    draw = PICTURES.get(type(finding))
    return None if draw is None else draw(report, finding)
