"""The pictures that there are, which of them a report has, and how each is described. What they share: `vega.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpubench.core.findings import (
    BatchSizeFinding,
    DevicesFinding,
    Finding,
    NetworkSizeFinding,
    PowerLimitFinding,
    SharingFinding,
    TargetFinding,
    VersusFinding,
)
from gpubench.core.report import Report
from gpubench.core.trace import TrialTrace
from gpubench.render import words
from gpubench.render.pictures import vega
from gpubench.render.pictures.vega import Row, Vega

KINDS: Mapping[str, str] = {
    "growth": "two batch sizes with their rates, as from --batch-size 16,32",
    "devices": "rows on different numbers of GPUs that may be compared, as from --gpus 1,2,4",
    "networks": "three networks, each on different numbers of GPUs, as in experiments/network-size.toml",
    "limits": "two power limits with their energy, as from --set power_limit_w=150,200,250",
    "ways": "two ways to do the same work, as from --variant crop-resize,pre-resized",
    "together": "jobs that ran together and alone, as from --copies 1,2",
    "target": "a top-1 to reach, as from --until-top1 60",
    "energy": "two rows of one network whose energy was measured, on a GPU that tells it",
    "breakdown": "steps that were timed in parts, as from --breakdown",
    "trial": "a trial that ended ok and whose samples lie in the results folder",
}
"""Name -> what a sweep must have for it, as advice where a report lacks it; in the order of the docs."""


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


# ---- growth: rate and memory along the batch size, with the size to take ----

MIB_PER_GIB = 1024
SECONDS_PER_HOUR = 3600
UNKNOWN_HEIGHT = 1.15
"""Times the most memory that was measured: where a size that ran out stands if nobody knows what there was."""
TOLERANCE = 0.05
"""The recommended size is within this share of the best rate (`stats.choice`)."""


def draw_growth(report: Report, finding: BatchSizeFinding) -> Vega | None:
    """The picture; None where fewer than two sizes have a rate."""
    points = list_batch_size_points(report)
    if len({point["size"] for point in points if point["rate"] is not None}) < 2:
        return None
    choice = finding.choice.row if finding.choice else None
    points.sort(key=lambda point: point["row"] != choice)  # so that its series is among those that are drawn
    names, left_out = vega.limit_rows(list(dict.fromkeys(p["series"] for p in points)), vega.MOST_SERIES)
    points = sorted((p for p in points if p["series"] in names), key=lambda point: point["number"])
    names = list(dict.fromkeys(point["series"] for point in points))
    for point in points:
        point["is_sure"] = finding.word == "sure" and point["low"] is not None
    has_memory = any(point["memory"] is not None for point in points)
    panels = [draw_rates_by_batch_size(report, points, names, finding, is_labelled=not has_memory)]
    if has_memory:
        cap = report.facts.fixed.get("gpu_mem_cap_mib")
        cap = None if cap is None else float(cap) / MIB_PER_GIB
        panels.append(draw_memory_by_batch_size(points, names, cap))
    return vega.compose_finding_picture(report, finding, panels, margin=vega.NUMBERS, key=left_out)


def list_batch_size_points(report: Report) -> list[Row]:
    """The sizes of each series that ran alone, in their order; of those that were skipped after one ran out of memory
    that one stands. Rates are in images/s, of a published log, whose images are not known, in epochs an hour."""
    endings = {
        label: row.status if not place else "skipped"
        for row in report.rows
        for place, label in enumerate(row.labels)
    }
    rows = [
        row
        for row in vega.list_solo_rows(report)
        if endings.get(row, "ok") in ("ok", "oom") and report.labels[row]["batch_size"] is not None
    ]
    fields = {
        row: {name: value for name, value in report.labels[row].items() if name != "batch_size"}
        for row in rows
    }
    distinct = {str(label): label for label in fields.values()}
    names = words.number_equal_names([words.name_row(label) for label in distinct.values()])
    series = dict(zip(distinct, names, strict=True))
    knows_images = has_image_rates(report)
    points = []
    for row in rows:
        figures, size = report.figures[row], report.labels[row]["batch_size"]
        seconds, low, high, memory = (
            figures[name] for name in ("epoch_time_s", "epoch_time_low_s", "epoch_time_high_s", "gpu_mem_mib")
        )
        work = figures["images_per_s"] * seconds if knows_images and seconds else SECONDS_PER_HOUR
        points.append(
            {
                "series": series[str(fields[row])],
                "size": str(size),
                "number": size,
                "row": row,
                "rate": work / seconds if seconds else None,
                "low": work / high if high else None,
                "high": work / low if low else None,
                "memory": None if memory is None else memory / MIB_PER_GIB,
                "is_oom": endings.get(row) == "oom",
            }
        )
    return sorted(points, key=lambda point: point["number"])


def has_image_rates(report: Report) -> bool:
    """Whether every row with a batch size and a time tells images/s."""
    return all(
        figures["images_per_s"]
        for row, figures in report.figures.items()
        if figures["epoch_time_s"] and report.labels[row].get("batch_size") is not None
    )


def make_batch_size_axis(points: Sequence[Row], *, is_labelled: bool) -> Vega:
    """Batch sizes as equal steps; only the lowest panel says their numbers."""
    domain = list(dict.fromkeys(point["size"] for point in points))
    return {
        "field": "size",
        "type": "ordinal",
        "sort": domain,
        "scale": {"domain": domain, "type": "point"},
        "axis": {**vega.make_x_title("batch size, images")} if is_labelled else None,
    }


def draw_rates_by_batch_size(
    report: Report,
    points: Sequence[Row],
    names: Sequence[str],
    finding: BatchSizeFinding,
    *,
    is_labelled: bool,
) -> Vega:
    """Rates from 0, a line a series named at its end, the band that the choice was made from, and a ring around it."""
    unit = "images/s" if has_image_rates(report) else "epochs an hour"
    x = make_batch_size_axis(points, is_labelled=is_labelled)
    y = {
        "field": "rate",
        "type": "quantitative",
        "axis": {**vega.make_y_title(unit), "format": ",d", "tickCount": 6},
    }
    measured = [point for point in points if point["rate"] is not None]
    measured, _ = vega.clip_intervals_to_axis(measured, [point["rate"] for point in measured])
    color = vega.make_color_scale(names)
    ends = list({point["series"]: point for point in measured}.values()) if len(names) > 1 else []
    place = {"x": x, "y": y, "color": color}
    whiskers = {"x": x, **vega.make_span("y", y, "low", "high"), "color": color}
    layers = [
        vega.make_layer("rule", whiskers, opacity=0.7),
        vega.make_layer("line", place, strokeWidth=2.5),
        vega.make_series_point_layer(x, y, names),
        vega.make_text_layer(place, ends, "series", align="left", dx=10, fontWeight="bold", fontSize=12),
    ]
    choice = finding.choice
    if choice is not None:
        best = max(point["rate"] for point in measured if point["row"] in choice.series)
        band = [{"least": (1 - TOLERANCE) * best, "best": best}]
        heights: Vega = {"y": {"field": "least", "type": "quantitative"}, "y2": {"field": "best"}}
        layers.insert(0, vega.make_layer("rect", heights, band, color=vega.BAND, opacity=0.12))
        (chosen,) = (point for point in measured if point["row"] == choice.row)
        layers += draw_choice_ring(chosen, unit, x, y)
    return vega.make_panel(layers, measured, height=240)


def draw_choice_ring(chosen: Row, unit: str, x: Vega, y: Vega) -> list[Vega]:
    """A ring around the chosen point, and its figures beside it."""
    text = f"{words.format_axis_value(chosen['number'])}: {words.format_significant(chosen['rate'])} {unit}"
    side = -1 if x["sort"].index(chosen["size"]) >= len(x["sort"]) / 2 else 1
    data = [{"size": chosen["size"], "rate": chosen["rate"], "text": text}]
    align = "right" if side < 0 else "left"
    place = {"x": x, "y": y}
    return [
        vega.make_layer("point", place, data, size=320, strokeWidth=2, color="black", shape="circle"),
        vega.make_text_layer(place, data, align=align, dx=14 * side, dy=-16, color="black", fontSize=12),
    ]


def draw_memory_by_batch_size(points: Sequence[Row], names: Sequence[str], cap: float | None) -> Vega:
    """GiB from 0, the cap as a red line, and of each series a dotted way to a cross at the first size that ran out of
    memory: at the cap, else above all that ran, for how much it wanted is not known."""
    x = make_batch_size_axis(points, is_labelled=True)
    y = {
        "field": "memory",
        "type": "quantitative",
        "axis": {**vega.make_y_title("memory of the fullest GPU, GiB"), "tickCount": 4},
    }
    measured = [point for point in points if point["memory"] is not None and not point["is_oom"]]
    highest = max((point["memory"] for point in points if point["memory"] is not None), default=0.0)
    crosses: list[dict[str, Any]] = []
    ways: list[dict[str, Any]] = []
    for name in names:
        last = [point for point in measured if point["series"] == name][-1:]
        for failed in [point for point in points if point["series"] == name and point["is_oom"]][: len(last)]:
            height = UNKNOWN_HEIGHT * highest if cap is None else cap
            cross = {"size": failed["size"], "memory": height, "series": name}
            crosses.append({**cross, "text": f"{failed['number']:,}: out of memory"})
            ways += [{"size": last[0]["size"], "memory": last[0]["memory"], "series": name}, cross]
    line = [] if cap is None else [{"memory": cap, "text": f"cap {words.format_gib(cap * MIB_PER_GIB)} GiB"}]
    shape = "M-1,-1L1,1M-1,1L1,-1"
    place = {"x": x, "y": y}
    alarm: Vega = {"color": vega.ALARM, "fontSize": 12}
    layers = [
        vega.make_layer("rule", {"y": y}, line, color=vega.ALARM, strokeWidth=2),
        vega.make_text_layer({"y": y}, line, align="left", x=6, dy=10, **alarm),
        vega.make_layer("line", {**place, "color": vega.make_color_scale(names)}, strokeWidth=2.5),
        vega.make_series_point_layer(x, y, names),
        vega.make_layer("line", {**place, "detail": {"field": "series"}}, ways, strokeDash=[2, 3], color=vega.CONTEXT),
        vega.make_layer("point", place, crosses, shape=shape, size=60, strokeWidth=3, color=vega.ALARM),
        vega.make_text_layer(place, crosses, align="right", dx=12, dy=-14, **alarm),
    ]  # fmt: skip
    return vega.make_panel(layers, measured, height=110)


# ---- devices: what more devices bring ----

DEVICES_ROW_HEIGHT = 26


def draw_devices(report: Report, finding: DevicesFinding) -> Vega | None:
    """Dots with whiskers, a row a batch size, lines at 1 and at as many times as there are devices, efficiency at the
    margin; one panel for the same batch in all, one for the same batch a device. None without a comparison."""
    names = words.name_rows_apart(report, [speed_up.claim.candidate for speed_up in finding.speed_ups])
    rows, left_out = vega.limit_rows(
        [
            {
                "name": name,
                **vega.make_ratio_row(speed_up.claim),
                "ideal": speed_up.devices / speed_up.baseline_devices,
                "efficiency": f"{words.format_percent(speed_up.efficiency)} efficiency",
                "is_weak": speed_up.same_batch_a_device,
            }
            for speed_up, name in zip(finding.speed_ups, names, strict=True)
        ]
    )
    figures = [max(row["ideal"], row["ratio"]) for row in rows]
    rows, end = vega.clip_intervals_to_axis(rows, [1.0, *figures], room=1.02)
    headings = {False: "times as fast, same batch in all", True: "times as fast, same batch a device"}
    panels = [
        draw_scaling_panel(some, heading, end)
        for is_weak, heading in headings.items()
        if (some := [row for row in rows if row["is_weak"] == is_weak])
    ]
    if not panels:
        return None
    return vega.compose_finding_picture(report, finding, panels, margin=vega.NAMES, key=left_out)


def draw_scaling_panel(rows: Sequence[dict[str, Any]], heading: str, end: float) -> Vega:
    """One kind of scaling. `end`: where the axis ends, which both kinds have in common."""
    y = vega.make_name_axis([row["name"] for row in rows])
    x: Vega = vega.make_number_axis("ratio", {**vega.make_x_title(heading), "grid": True}, [0, end])
    color = vega.make_direction_scale()
    ideals = sorted({row["ideal"] for row in rows})
    whiskers = {**vega.make_span("x", x, "low", "high"), "y": y, "color": color}
    layers = [
        vega.make_layer("rule", {"x": x}, [{"ratio": 1}]),
        vega.make_layer(
            "rule", {"x": x}, [{"ratio": ideal} for ideal in ideals], strokeDash=[5, 3], color=vega.CONTEXT
        ),
        vega.make_layer("rule", whiskers, strokeWidth=2),
        vega.make_circle_layer(x, y, color, 90),
        vega.make_text_layer(
            {"y": y}, None, "efficiency", align="left", x="width", dx=10, color=vega.CONTEXT
        ),
    ]
    return vega.make_panel(layers, rows, width=vega.NARROW, height=DEVICES_ROW_HEIGHT * len(rows) + 10)


# ---- limits: energy and time over the power limit, with the limit to take ----

LIMIT_PANELS = {"energy_j": ("energy of an epoch", "J", 200), "epoch_time_s": ("time of an epoch", "s", 130)}
"""Figure -> what its panel shows, in which unit, and how high that is."""


def draw_limits(report: Report, finding: PowerLimitFinding) -> Vega | None:
    """Energy above, time below, from 0, the answer ringed in both. None for fewer than two limits with a number."""
    points = [
        {
            "limit": report.labels[row]["power_limit_w"],
            **{name: report.figures[row][name] for name in LIMIT_PANELS},
            "is_chosen": finding.choice is not None and row == finding.choice.row,
            "is_sure": finding.word == "sure",
        }
        for row in finding.rows
        if report.labels[row].get("power_limit_w") is not None
    ]
    if len(points) < 2:
        return None
    panels = [
        draw_limit_panel(points, name, is_labelled=place == len(LIMIT_PANELS) - 1)
        for place, name in enumerate(LIMIT_PANELS)
    ]
    return vega.compose_finding_picture(report, finding, panels, margin=vega.NUMBERS)


def draw_limit_panel(points: Sequence[Row], name: str, *, is_labelled: bool) -> Vega:
    """One figure over the limits."""
    title, unit, height = LIMIT_PANELS[name]
    limits = [point["limit"] for point in points]
    axis = {**vega.make_x_title("power limit of each GPU, W"), "values": limits} if is_labelled else None
    room = 0.15 * (max(limits) - min(limits))  # for words around the first and the last
    x = vega.make_number_axis("limit", axis, [min(limits) - room, max(limits) + room])
    y = vega.make_number_axis(
        name,
        {**vega.make_y_title(f"{title}, {unit}"), "format": ",~r", "tickCount": 5},
        [0, 1.3 * max(point[name] for point in points)],  # room for the answer's words
    )
    place = {"x": x, "y": y}
    fill: Vega = {"value": vega.COLORS[0]}
    dots = {**place, "fill": vega.make_certainty_fill(fill)}
    chosen = [
        {**point, "text": f"{point['limit']:g} W: {words.format_significant(point[name])} {unit}"}
        for point in points
        if point["is_chosen"]
    ]
    return vega.make_panel(
        [
            vega.make_layer("line", place, strokeWidth=2.5, color=vega.COLORS[0]),
            vega.make_layer("point", dots, size=60, strokeWidth=2, opacity=1, color=vega.COLORS[0]),
            vega.make_layer("point", place, chosen, size=320, strokeWidth=2, color="black", shape="circle"),
            vega.make_text_layer(place, chosen, dy=-20, color="black", fontSize=12),
        ],
        points,
        height=height,
    )


# ---- networks: speed-up over the size of networks, and where it turns ----

NETWORKS_HEIGHT = 320


def draw_networks(report: Report, finding: NetworkSizeFinding) -> Vega | None:
    """The picture; None where no network's size is known, or only one's. Above 1 more devices are faster, below they
    are slower; the ideal is a dashed line."""
    points, left_out = vega.limit_rows(
        [
            {
                "name": words.name_network(report, claim.candidate),
                "gmacs": gmacs,
                **vega.make_ratio_row(claim),
            }
            for claim in finding.claims
            if (gmacs := report.figures[claim.candidate]["gmacs_per_image"])
        ]
    )
    if len(points) < 2:
        return None
    powers = [10.0**power for power in range(-5, 5)]
    x: Vega = {
        "field": "gmacs",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 20},
        "axis": {**vega.make_x_title("GMACs an image (log)"), "format": "~g", "values": powers},
    }
    figures = [finding.devices, *(point["ratio"] for point in points)]
    points, top = vega.clip_intervals_to_axis(points, figures, room=1.05)
    bottom = 0.9 * min(0.5, *(point["low"] or point["ratio"] for point in points))
    y: Vega = vega.make_number_axis(
        "ratio", {**vega.make_y_title("times as fast"), "format": "~g", "tickCount": 6}, [bottom, top]
    )
    color = vega.make_direction_scale()
    devices = words.count_things(finding.devices, words.name_device_kind(report))
    ideal = [{"ratio": finding.devices, "text": f"ideal: {finding.devices} times"}]
    sides = [
        {"ratio": 1, "end": top, "shade": vega.FASTER},
        {"ratio": bottom, "end": 1, "shade": vega.SLOWER},
    ]
    shade = {"field": "shade", "type": "nominal", "scale": None}
    corner: dict[str, Any] = {"align": "right", "x": "width", "dx": -6}
    texts = [
        vega.make_text_layer(
            {"y": y}, [{"ratio": 1, "text": f"{devices} {text}"}], color=hue, dy=dy, **corner
        )
        for text, hue, dy in (("faster ↑", vega.FASTER, -10), ("slower ↓", vega.SLOWER, 12))
    ]
    place = {"x": x, "y": y}
    layers = [
        vega.make_layer("rect", {**vega.make_span("y", y, "ratio", "end"), "color": shade}, sides, opacity=0.07),
        vega.make_layer("rule", {"y": y}, ideal, strokeDash=[5, 3], color=vega.CONTEXT),
        vega.make_text_layer({"y": y}, ideal, align="left", x=8, dy=-8, color=vega.CONTEXT, fontSize=12),
        vega.make_layer("rule", {"y": y}, [{"ratio": 1}]),
        *texts,
        *draw_crossover_band(points, finding, x),
        vega.make_layer("rule", {"x": x, **vega.make_span("y", y, "low", "high"), "color": color}, strokeWidth=2),
        vega.make_circle_layer(x, y, color, 90),
        # Aslant, so that those of networks of about one size stand beside each other.
        vega.make_text_layer(place, None, "name", align="left", dx=9, dy=0, angle=-35, color=vega.COLORS[6]),
    ]  # fmt: skip
    panel = vega.make_panel(layers, points, height=NETWORKS_HEIGHT)
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NUMBERS, key=left_out)


def draw_crossover_band(points: list[Row], finding: NetworkSizeFinding, x: Vega) -> list[Vega]:
    """A grey band between the largest network that is not faster for sure and the smallest from which all are."""
    if finding.first_faster is None or finding.gmacs is None:
        return []
    smaller = [point["gmacs"] for point in points if point["gmacs"] < finding.gmacs]
    if not smaller:
        return []
    data = [{"gmacs": max(smaller), "end": finding.gmacs}]
    turn = [{"gmacs": finding.gmacs, "text": "← it turns here"}]
    return [
        vega.make_layer("rect", {"x": x, "x2": {"field": "end"}}, data, color=vega.CONTEXT, opacity=0.25),
        vega.make_text_layer({"x": x}, turn, align="left", dx=6, y=NETWORKS_HEIGHT - 8),
    ]


# ---- ways: one way against another, row by row (strategies, variants, precisions, ...) ----

WAYS_ROW_HEIGHT = 34


def draw_ways(report: Report, finding: VersusFinding) -> Vega | None:
    """A dumbbell a row: both times of an epoch (log), the ratio at the right. None where nothing is compared."""
    rows, left_out = vega.limit_rows(list_versus_rows(report, finding))
    if not rows:
        return None
    names = [row["name"] for row in rows]
    ways = [words.name_value(finding.field, finding.value), words.name_value(finding.field, finding.baseline)]
    y = vega.make_name_axis(names)
    x: Vega = {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"type": "log", "nice": False, "padding": 16},
        "axis": {**vega.make_x_title("epoch time, s (log)"), "grid": True, "tickCount": 6, "format": "~g"},
    }
    ends = [
        {"name": row["name"], "series": way, "seconds": row[side], "is_sure": row["is_sure"]}
        for row in rows
        for way, side in zip(ways, ("candidate", "baseline"), strict=True)
    ]
    heads = ends[:2]
    color = vega.make_color_scale(ways)
    shape = vega.make_shape_scale(ways)
    marks = {"x": x, "y": y, "color": color, "fill": vega.make_certainty_fill(color), "shape": shape}
    is_left = rows[0]["candidate"] <= rows[0]["baseline"]
    bold: Vega = {"fontWeight": "bold", "fontSize": 12}
    layers = [
        vega.make_layer(
            "rule", {**vega.make_span("x", x, "candidate", "baseline"), "y": y}, rows, strokeWidth=5, color="#cccfd4"
        ),
        vega.make_layer("point", marks, ends, size=110, strokeWidth=2, opacity=1),
    ]  # fmt: skip
    for head, is_right_aligned in zip(heads, (is_left, not is_left), strict=True):
        side = {"align": "right", "dx": -2} if is_right_aligned else {"align": "left", "dx": 2}
        layers.append(
            vega.make_text_layer({"x": x, "y": y, "color": color}, [head], "series", **side, dy=-16, **bold)
        )
    layers.append(vega.make_text_layer({"y": y}, rows, "ratio", align="left", x="width", dx=16, **bold))
    panel = vega.make_panel(layers, width=vega.NARROW, height=WAYS_ROW_HEIGHT * len(rows))
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NAMES, key=left_out)


def list_versus_rows(report: Report, finding: VersusFinding) -> list[dict[str, Any]]:
    """A row a claim: its name without what differs, the seconds of both, the ratio of their rates in words."""
    rows = []
    compared = [claim.candidate for claim in finding.claims]
    if len(compared) == 1:  # there is nothing to tell it apart from
        names = [words.name_row(report.labels[compared[0]], without={finding.field})]
    else:
        names = words.name_rows_apart(report, compared, without=(finding.field,))
    for claim, name in zip(finding.claims, names, strict=True):
        candidate, baseline = (
            report.figures[row]["epoch_time_s"] for row in (claim.candidate, claim.baseline)
        )
        if candidate and baseline:
            rows.append(
                {
                    "name": name,
                    "candidate": candidate,
                    "baseline": baseline,
                    "ratio": f"{words.format_ratio(words.compute_claim_figure(claim))} times",
                    "is_sure": claim.decided.word == "sure",
                }
            )
    return rows


# ---- together: what groups of jobs get done together, against one after the other ----

TOGETHER_ROW_HEIGHT = 44


def draw_together(report: Report, finding: SharingFinding) -> Vega | None:
    """A row a group: its work as a dot with the bound that its word rests on, a tick at no loss at all, what was
    predicted before as a hollow triangle above. None where no group's work is known."""
    groups, left_out = vega.limit_rows(list_group_rows(report, finding))
    if not groups:
        return None
    names = [group["name"] for group in groups]
    predicted = [group for group in groups if group["predicted"] is not None]
    works = [1.0, *(group["work"] for group in groups), *(group["predicted"] for group in predicted)]
    most = max(*works, *(group["jobs"] for group in groups))
    y = vega.make_name_axis(names)
    ticks = {"values": list(range(1, int(most) + 1)), "format": "d"}
    axis = vega.make_x_title("work done together (1: as one after the other)") | ticks
    x = vega.make_number_axis("work", axis, [0.9 * min(works), 1.05 * most])
    looks = [vega.COLORS[0], vega.COLORS[1], vega.CONTEXT]
    color = vega.make_category_scale("gains", ["gain", "none", "unknown"], looks)
    triangle: Vega = {
        "shape": "triangle-down",
        "size": 60,
        "yOffset": -15,
        "color": "#3A3F45",
        "filled": False,
    }
    jobs = {"x": {**x, "field": "jobs"}, "y": y}
    layers = [
        vega.make_layer("bar", {**vega.make_span("x", x, "alone", "jobs"), "y": y}, size=12, color="#e6e8eb"),
        vega.make_layer("tick", jobs, size=22, thickness=2, color=vega.CONTEXT),
        vega.make_layer("rule", {"x": x}, [{"work": 1}]),
        vega.make_layer("rule", {"x": x, "x2": {"field": "bound"}, "y": y, "color": color}, strokeWidth=3),
        vega.make_circle_layer(x, y, color, 120),
        vega.make_layer("point", {"x": {**x, "field": "predicted"}, "y": y}, predicted, **triangle),
        vega.make_text_layer(
            {"y": y, "color": color}, None, align="left", x="width", dx=10, fontWeight="bold", fontSize=12
        ),
    ]
    panel = vega.make_panel(layers, groups, width=vega.NARROW, height=TOGETHER_ROW_HEIGHT * len(groups))
    gains = {group["gains"] for group in groups}
    key = left_out or words.format_gains_legend(gains, has_predictions=bool(predicted))
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NAMES, key=key)


def list_group_rows(report: Report, finding: SharingFinding) -> list[dict[str, Any]]:
    """A row a group whose work is known: its name, its work with the bound, and what was predicted."""
    known = [(group, group.work) for group in finding.groups if group.work is not None]
    names = words.number_equal_names([words.name_group(report, group) for group, _ in known])
    return [
        {
            "name": name,
            "alone": 1,
            "jobs": group.jobs,
            "work": work,
            "bound": work if group.bound is None else group.bound,
            "predicted": group.predicted_work,
            "text": f"{words.format_ratio(work)} times{words.format_work_bound(group)}",
            "is_sure": group.word == "sure",
            "gains": "unknown" if group.gains is None else "gain" if group.gains else "none",
        }
        for (group, work), name in zip(known, names, strict=True)
    ]


# ---- target: top-1 over the time of training, and who reaches the target first ----

TARGET_HEIGHT = 300
SHIFTS = (-30, -63, -96, -129)
"""Pixels from a point up to the first line of its text; those of neighbours are unlike."""


def draw_target(report: Report, finding: TargetFinding) -> Vega | None:
    """A line a run that reached the target, with what it took at its end; runs that did not in grey. None where no
    run was judged twice."""
    traces = {row: trace for row, trace in report.training.items() if len(trace) > 1 and row in finding.rows}
    if not traces:
        return None
    ordered = [row for row in finding.order if row in traces]
    ordered += [row for row in traces if row not in finding.order]
    rows, left_out = vega.limit_rows(ordered, vega.MOST_SERIES)
    texts = [words.describe_run_to_target(report, row) for row in rows]
    names = dict(zip(rows, words.number_equal_names([name for name, _ in texts]), strict=True))
    points: list[Row] = []
    ends: list[Row] = []
    for row, (_, cost) in zip(rows, texts, strict=True):
        run: Row = {"series": names[row], "is_reached": row in finding.order}
        points += [{"seconds": seconds, "top1": top1, **run} for seconds, top1 in traces[row]]
        ends.append(
            {**points[-1], "text": [names[row], cost], "name": names[row], "is_sure": finding.word == "sure"}
        )
    reached, missed = (
        [[point for point in part if point["is_reached"] == is_reached] for part in (points, ends)]
        for is_reached in (True, False)
    )
    x: Vega = vega.make_number_axis(
        "seconds",
        {**vega.make_x_title("training time, s"), "tickCount": 8, "format": ",d"},
        [0, max(point["seconds"] for point in points)],
    )
    highest = max(finding.target_pct, *(point["top1"] for point in points))
    y: Vega = vega.make_number_axis(
        "top1",
        {**vega.make_y_title("top-1 on the validation images, %"), "tickCount": 5, "format": "d"},
        [0, 1.3 * highest],
    )
    color = vega.make_color_scale([end["series"] for end in reached[1]])
    place, series = {"x": x, "y": y}, {"field": "series"}
    layers = [
        vega.make_layer("line", {**place, "detail": series}, missed[0], color=vega.CONTEXT, strokeWidth=1.5),
        vega.make_layer("rule", {"y": y}, [{"top1": finding.target_pct}], strokeDash=[2, 3]),
        vega.make_layer("line", {**place, "color": color}, reached[0], strokeWidth=2.5),
        vega.make_circle_layer(x, y, color, 110, reached[1]),
        *(
            vega.make_text_layer({**place, "color": color}, some, align="right", dx=4, dy=dy, lineHeight=14)
            for some, dy in ((reached[1][n :: len(SHIFTS)], dy) for n, dy in enumerate(SHIFTS))
        ),
        vega.make_text_layer(place, missed[1], "name", align="left", dx=6, color=vega.CONTEXT),
    ]
    panel = vega.make_panel(layers, height=TARGET_HEIGHT)
    key = left_out or "first epoch included, evaluation not"
    return vega.compose_finding_picture(report, finding, [panel], margin=vega.NUMBERS, key=key)


# ---- energy: against the time of an epoch, with the rows that no other beats in both ----

POWERS = (50, 100, 200, 300, 400, 500, 700, 1000, 1500, 2000, 3000, 4000)
"""Watts of lines of equal power; those near the points are drawn."""
EPOCH_FIELDS = ("model", "width", "input_size", "train_images")
"""Fields that say what an epoch computes: of another network, or of fewer images, less energy is no saving."""
COLOURED_FIELDS = ("gpus", "ranks", "nodes", "strategy")
"""Fields by which points are coloured."""
MOST_POINTS = 300
"""More make files large."""
ENERGY_HEIGHT = 320
FAR = 6.0
"""Times the least, from which on an axis from 0 would press most points together."""


def draw_energy(report: Report) -> Vega | None:
    """A point a row that ran alone, one colour a strategy; the front joined, its ends named, lines of equal power in
    grey. None under two rows with energy, and where their epochs are unlike work."""
    rows = [
        row
        for row in vega.list_solo_rows(report)
        if report.figures[row]["energy_j"] and report.figures[row]["epoch_time_s"]
    ]
    works = {tuple(str(report.labels[row].get(name)) for name in EPOCH_FIELDS) for row in rows}
    if len(rows) < 2 or len(works) > 1:
        return None
    front = find_pareto_front(report.figures, rows)
    kept, left_out = vega.limit_rows([*front, *(row for row in rows if row not in front)], MOST_POINTS)
    names = dict(zip(kept, words.name_rows_apart(report, kept), strict=True))
    points = [
        {
            "seconds": report.figures[row]["epoch_time_s"],
            "joules": report.figures[row]["energy_j"],
            "series": words.name_row({name: report.labels[row].get(name) for name in COLOURED_FIELDS}),
            "name": names[row],
            "is_best": row in front,
        }
        for row in rows
        if row in kept
    ]
    best = sorted((point for point in points if point["is_best"]), key=lambda point: point["seconds"])
    is_log = any(
        max(point[field] for point in points) > FAR * min(point[field] for point in points)
        for field in ("seconds", "joules")
    )
    x, y = (make_linear_or_log_axis(field, points, is_log=is_log) for field in ("seconds", "joules"))
    ending = " (log)" * is_log
    x["axis"] = {**vega.make_x_title(f"time of an epoch, s{ending}"), "tickCount": 7, "format": "~g"}
    y["axis"] = {**vega.make_y_title(f"energy of an epoch, J{ending}"), "tickCount": 6, "format": ",d"}
    y["axis"]["grid"] = False
    series = list(dict.fromkeys(point["series"] for point in points))
    color, shape = (make(series) for make in (vega.make_color_scale, vega.make_shape_scale))
    if len(series) > 1:
        color["legend"] = shape["legend"] = {"title": None, "orient": "top"}
    marks = {
        "x": x,
        "y": y,
        "color": color,
        "shape": shape,
        "size": {"condition": {"test": "datum.is_best", "value": 110}, "value": 40},
        "opacity": {"condition": {"test": "datum.is_best", "value": 1}, "value": 0.6},
    }
    place = {"x": x, "y": y}
    ink = vega.COLORS[6]
    layers = [
        *draw_power_lines(points, x, y),
        vega.make_layer("line", place, best, color=vega.CONTEXT, strokeDash=[4, 3]),
        vega.make_layer("point", marks, filled=True),
        vega.make_text_layer(place, best[:1], "name", align="left", dx=10, dy=-10, color=ink),
        vega.make_text_layer(place, best[1:][-1:], "name", align="left", dx=4, dy=16, color=ink),
    ]
    title = words.format_energy_title(report, rows, front)
    panel = vega.make_panel(layers, points, height=ENERGY_HEIGHT)
    key = left_out or "large: beaten in both by no other"
    return vega.compose_picture(report, title, [panel], margin=vega.NUMBERS, key=key)


def find_pareto_front(figures: Mapping[int, Mapping[str, Any]], rows: Sequence[int]) -> list[int]:
    """The rows that no other beats, by being as good in both and better in one; the quickest first."""
    front: list[int] = []
    for row in sorted(rows, key=lambda row: (figures[row]["epoch_time_s"], figures[row]["energy_j"])):
        if not front or figures[row]["energy_j"] < figures[front[-1]]["energy_j"]:
            front.append(row)
    return front


def make_linear_or_log_axis(field: str, points: Sequence[Row], *, is_log: bool) -> Vega:
    """From 0, or by a logarithm from below the least, to above the most."""
    values = [point[field] for point in points]
    low = min(values) / 1.25 if is_log else 0
    scale = {"type": "log" if is_log else "linear", "domain": [low, 1.15 * max(values)], "nice": False}
    return {"field": field, "type": "quantitative", "scale": scale}


def draw_power_lines(points: Sequence[Row], x: Vega, y: Vega) -> list[Vega]:
    """Lines of equal power through the picture, with their watts at the upper end."""
    watts_of_points = [point["joules"] / point["seconds"] for point in points]
    (left, right), (low, high) = x["scale"]["domain"], y["scale"]["domain"]
    lines = []
    for watts in POWERS:
        if min(watts_of_points) / 1.3 < watts < 1.3 * max(watts_of_points):
            ends = max(left, low / watts), min(right, high / watts)
            lines += [
                {"watts": watts, "seconds": at, "joules": watts * at, "text": f"{watts:,} W"} for at in ends
            ]
    detail = {"x": x, "y": y, "detail": {"field": "watts"}}
    return [
        vega.make_layer("line", detail, lines, strokeWidth=1, color="#d5d8dc"),
        vega.make_text_layer(
            {"x": x, "y": y}, lines[1::2], align="left", dx=3, dy=-4, fontSize=10, color=vega.CONTEXT
        ),
    ]


# ---- breakdown: the parts of a step, one behind the other ----

BREAKDOWN_ROW_HEIGHT = 40
PART_COLORS = (vega.COLORS[6], vega.COLORS[0], vega.LIGHT, vega.COLORS[2], vega.COLORS[3])
"""Parts that touch differ in lightness, too, for readers who see no colours; in the order of `words.PARTS`."""
WIDE = 0.07
"""Share of the longest step from which a part has room for its milliseconds."""


def draw_breakdown(report: Report) -> Vega | None:
    """A bar a row whose steps were timed in parts, with the milliseconds in it, and behind it what is waited for
    gradients, be it ever so small. None where none was."""
    rows = [row for row, figures in report.figures.items() if any(figures[part] for part in words.PARTS)]
    if not rows:
        return None
    rows, left_out = vega.limit_rows(rows)
    names = words.name_rows_apart(report, rows)
    totals = [sum(report.figures[row][part] or 0.0 for part in words.PARTS) for row in rows]
    longest = max(totals)
    colors = dict(zip(words.PARTS.values(), PART_COLORS, strict=True))
    bars, ends = [], []
    for row, name, total in zip(rows, names, totals, strict=True):
        begin = 0.0
        for part, word in words.PARTS.items():
            value = report.figures[row][part]
            if value:
                bar = {"name": name, "part": word, "begin": begin, "end": begin + value}
                text = words.format_significant(value) if value > WIDE * longest else ""
                bars.append(
                    {**bar, "middle": begin + value / 2, "text": text, "is_light": colors[word] == vega.LIGHT}
                )
                begin += value
        waited = report.figures[row]["comm_ms"]
        wait = "" if waited is None else f", gradients {words.format_significant(waited, 2)} ms"
        wait += "" if waited is None else f" ({words.format_percent(waited / total)})"
        ends.append({"name": name, "end": total, "text": f"{words.format_significant(total)} ms{wait}"})
    y = vega.make_name_axis(names)
    x: Vega = vega.make_number_axis(
        "begin", {**vega.make_x_title("time of a step, ms"), "tickCount": 6}, [0, longest]
    )
    parts = [word for part, word in words.PARTS.items() if any(report.figures[row][part] for row in rows)]
    color = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": parts, "range": [colors[part] for part in parts]},
        "legend": {"title": None, "orient": "top", "symbolType": "square"},
    }
    letters = {"condition": {"test": "datum.is_light", "value": "black"}, "value": "white"}
    layers = [
        vega.make_layer("bar", {"x": x, "x2": {"field": "end"}, "y": y, "color": color}, bars, size=20),
        vega.make_text_layer({"x": {**x, "field": "middle"}, "y": y, "color": letters}, bars),
        vega.make_text_layer({"x": {**x, "field": "end"}, "y": y}, ends, align="left", dx=6),
    ]
    panel = vega.make_panel(layers, width=vega.NARROW - 60, height=BREAKDOWN_ROW_HEIGHT * len(rows))
    slowest = rows[totals.index(longest)]
    title: tuple[str, list[str]] = (words.format_breakdown_title(report, slowest), [])
    key = left_out or "what is exchanged behind the backward pass lies within it"
    return vega.compose_picture(report, title, [panel], margin=vega.NAMES, key=key)


# ---- trial: GPU and CPU use, memory and power over its life, with its phases ----

NAME_PIXELS = 80
"""From the beginning of one phase's name to that of the next, of which a column of a paper leaves 48: nearer ones would
run into each other."""
HEADINGS = {
    "gpu_util_pct": "GPU use, %",
    "cpu_util_pct": "CPU use, %",
    "gpu_mem_mib": "memory of a GPU, MiB",
    "power_w": "power of a GPU, W",
}


def draw_trial(report: Report, trace: TrialTrace) -> Vega:
    """A panel a metric: the mean of the GPUs, a pale band from the least to the most of one, what was measured shaded
    and named."""
    ends = [point.seconds for points in trace.panels.values() for point in points]
    end = max([*ends, *(phase.end for phase in trace.phases)])
    columns = list(trace.panels)
    panels = [
        draw_metric_panel(trace, column, end, is_first=column == columns[0], is_last=column == columns[-1])
        for column in columns
    ]
    title = words.format_trial_title(report, trace)
    return vega.compose_picture(report, title, panels, margin=vega.NUMBERS, key=f"trial {trace.trial_id}")


def draw_metric_panel(trace: TrialTrace, column: str, end: float, *, is_first: bool, is_last: bool) -> Vega:
    points = trace.panels[column]
    is_share = column.endswith("_pct")
    top = 100.0 if is_share else 1.05 * max(point.high for point in points)
    x: Vega = vega.make_number_axis(
        "seconds",
        {**vega.make_x_title("seconds since its launch"), "format": "~g"} if is_last else None,
        [0, end],
    )
    y: Vega = vega.make_number_axis(
        "mean", {**vega.make_y_title(HEADINGS[column]), "tickCount": 3, "format": ",d"}, [0, top]
    )
    measured = [phase for phase in trace.phases if phase.is_measured]
    shades = [{"seconds": phase.begin, "end": phase.end, "name": phase.name} for phase in measured]
    detail = {"field": "piece"}
    spread = {"x": x, **vega.make_span("y", y, "low", "high"), "detail": detail}
    layers = [
        vega.make_layer("rect", vega.make_span("x", x, "seconds", "end"), shades, color=vega.BAND, opacity=0.1),
        vega.make_layer("area", spread, color=vega.BAND, opacity=0.25),
        vega.make_layer("line", {"x": x, "y": y, "detail": detail}, color=vega.BAND, strokeWidth=1.5),
    ]  # fmt: skip
    if is_first:
        names = list_phase_labels(trace, end)
        layers.append(vega.make_text_layer({"x": x}, names, "name", align="left", dx=3, y=-5, fontSize=10))
    return vega.make_panel(layers, list(map(asdict, points)), width=vega.WIDTH + 80, height=70)


def list_phase_labels(trace: TrialTrace, end: float) -> list[dict[str, Any]]:
    """The names of phases where they begin; of those that are too near to the last named one none."""
    names: list[dict[str, Any]] = []
    for phase in trace.phases:
        if not names or (phase.begin - names[-1]["seconds"]) / end * (vega.WIDTH + 80) >= NAME_PIXELS:
            names.append({"seconds": phase.begin, "name": phase.name})
    return names


# ---- all of them ----

DRAWN: Mapping[type[Finding], tuple[str, Callable[[Report, Any], Vega | None]]] = {
    BatchSizeFinding: ("growth", draw_growth),
    DevicesFinding: ("devices", draw_devices),
    NetworkSizeFinding: ("networks", draw_networks),
    PowerLimitFinding: ("limits", draw_limits),
    SharingFinding: ("together", draw_together),
    TargetFinding: ("target", draw_target),
    VersusFinding: ("ways", draw_ways),
}
"""Kind of finding -> its kind of picture, and what draws it: None where there is too little to draw."""


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
            subject = words.name_row(finding.label) if isinstance(finding, PowerLimitFinding) else subject
            yield kind, subject, draw(report, finding)
    yield "energy", "", draw_energy(report)
    yield "breakdown", "", draw_breakdown(report)
    if trace is not None:
        yield "trial", trace.trial_id, draw_trial(report, trace)
