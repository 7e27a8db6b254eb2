"""The few figures that an answer comes down to, as tiles above a picture: at most MOST of a report's first finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpubench.core.claims import Claim
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
from gpubench.render import words

MOST = 4

Tile = tuple[str, str]
"""A figure, and what it is."""


def list_tiles(report: Report, capacity_mib: float | None) -> list[Tile]:
    """The tiles of a report. `capacity_mib`: the memory that a GPU has; None: not known."""
    if not report.findings:
        return []
    finding = report.findings[0]
    summarize = SUMMARIES.get(type(finding))
    tiles = [*summarize(report, finding)] if summarize else []
    memory = report.figures[finding.choice.row]["gpu_mem_mib"] if finding.choice is not None else None
    if memory is not None:
        total = "" if capacity_mib is None else f" of {words.format_gib(capacity_mib)}"
        tiles.append(make_tile("memory", f"{words.format_gib(memory)}{total} GiB"))
    return tiles[:MOST]


def make_tile(kind: str, value: str, **names: object) -> Tile:
    return value, words.TILES[kind].format(**names)


def _format_ratio_span(claims: Sequence[Claim]) -> str:
    return f"{words.format_span(map(words.compute_claim_figure, claims), words.format_ratio)}×"


def _list_batch_size_tiles(report: Report, finding: BatchSizeFinding) -> Iterator[Tile]:
    """The chosen size's rate, and how many times that of the smallest size it is."""
    if finding.choice is None:
        return
    row, smallest = finding.choice.row, finding.choice.series[0]
    yield from _list_rate_tiles(report, row)
    # By epochs, which a published log has, too; all rows of one series train the same images.
    seconds, slower = (report.figures[label]["epoch_time_s"] for label in (row, smallest))
    if smallest != row and seconds and slower:
        name = words.name_row({"batch_size": report.labels[smallest].get("batch_size")})
        yield _make_ratio_tile(slower / seconds, name)


def _list_devices_tiles(report: Report, finding: DevicesFinding) -> Iterator[Tile]:
    """The largest speed-up on each number of devices, the most devices first, with the efficiency of the first."""
    thing = words.name_device_kind(report)
    largest = {
        speed_up.devices: speed_up
        for speed_up in sorted(
            finding.speed_ups, key=lambda speed_up: words.compute_claim_figure(speed_up.claim)
        )
    }
    for place, (devices, speed_up) in enumerate(sorted(largest.items(), reverse=True)):
        names = {
            "devices": words.count_things(devices, thing),
            "fewer": words.count_things(speed_up.baseline_devices, thing),
        }
        yield make_tile("devices", _format_ratio_span([speed_up.claim]), **names)
        if not place:
            yield make_tile("efficiency", words.format_percent(speed_up.efficiency), **names)
            yield from _list_rate_tiles(report, speed_up.claim.candidate)


def _list_versus_tiles(report: Report, finding: VersusFinding) -> Iterator[Tile]:
    """How many times as fast, the least to the most; CPU time; the rate of the fastest row."""
    if not finding.claims:
        return
    baseline = words.name_value(finding.field, finding.baseline)
    yield make_tile("times", _format_ratio_span(finding.claims), name=baseline)
    if finding.cpu_claims:
        amount, change = words.format_cpu_time_change(finding)
        yield make_tile("cpu", amount, change=change)
    seconds = {claim.candidate: report.figures[claim.candidate]["epoch_time_s"] for claim in finding.claims}
    known = {row: value for row, value in seconds.items() if value is not None}
    if known:
        yield from _list_rate_tiles(report, min(known, key=known.__getitem__))


def _list_network_size_tiles(report: Report, finding: NetworkSizeFinding) -> Iterator[Tile]:
    """The size from which on more devices are faster, and how many times."""
    if finding.first_faster is None:
        return
    if finding.gmacs is not None:
        gmacs = f"{words.format_significant(finding.gmacs, 2)} GMACs"
        yield make_tile("network", gmacs, name=words.name_network(report, finding.first_faster))
    for kind, direction in (("faster", "more"), ("smaller", "less")):
        if claims := [claim for claim in finding.claims if claim.shows(direction)]:
            yield make_tile(kind, _format_ratio_span(claims))


def _list_jobs_together_tiles(report: Report, finding: SharingFinding) -> Iterator[Tile]:
    """The work of each group, the most first."""
    known = [(group.work, group) for group in finding.groups if group.work is not None]
    for work, group in sorted(known, key=lambda pair: -pair[0]):
        yield make_tile("work", f"{words.format_ratio(work)}×", name=words.name_group(report, group))


def _list_target_tiles(report: Report, finding: TargetFinding) -> Iterator[Tile]:
    """Seconds, epochs and energy of the first at the target, and how many times as fast as the second it is."""
    if not finding.order:
        return
    first, *later = finding.order
    target = words.name_figure_target(finding.until) if finding.until else f"{finding.target_pct:g} %"
    figures, names = report.figures[first], {"target": target}
    seconds, epochs, joules = (
        figures[name] for name in ("time_to_top1_s", "epochs_to_top1", "energy_to_top1_j")
    )
    if seconds is not None:
        value = f"{words.format_significant(seconds)} s"
        yield make_tile("target", value, name=name_row_without_group(report, first), **names)
    if epochs is not None:
        yield make_tile("epochs", words.format_number(epochs), **names)
    if joules is not None:
        yield make_tile("energy", f"{words.format_significant(joules / 1000)} kJ", **names)
    slower = report.figures[later[0]]["time_to_top1_s"] if later else None
    if seconds and slower:
        yield _make_ratio_tile(slower / seconds, name_row_without_group(report, later[0]))


SUMMARIES: Mapping[type[Finding], Callable[[Report, Any], Iterator[Tile]]] = {
    BatchSizeFinding: _list_batch_size_tiles,
    DevicesFinding: _list_devices_tiles,
    VersusFinding: _list_versus_tiles,
    NetworkSizeFinding: _list_network_size_tiles,
    SharingFinding: _list_jobs_together_tiles,
    TargetFinding: _list_target_tiles,
}
"""Kind of finding -> its tiles, the most important first."""


def _list_rate_tiles(report: Report, row: int) -> Iterator[Tile]:
    """Images/s, or the time of an epoch where images are not known."""
    figures, name = report.figures[row], name_row_without_group(report, row)
    if figures["images_per_s"] is not None:
        yield make_tile("rate", words.format_significant(figures["images_per_s"]), name=name)
    elif figures["epoch_time_s"] is not None:
        yield make_tile("epoch", f"{words.format_significant(figures['epoch_time_s'])} s", name=name)


def _make_ratio_tile(ratio: float, name: str) -> Tile:
    return make_tile("times" if ratio >= 1 else "slower", f"{words.format_ratio(ratio)}×", name=name)


def name_row_without_group(report: Report, row: int) -> str:
    """A row by the fields that vary, GPU ids and its group aside."""
    (name,) = words.name_rows_apart(report, [row], without=("group", "job"))
    return name
