"""Sample reports, made by hand after committed folders: what `analyze` would hand to a renderer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpubench.core.claims import Certainty, Claim, Design, Evidence, Verdict
from gpubench.core.findings import (
    BatchSizeFinding,
    Choice,
    DevicesFinding,
    LeastCost,
    MeasuredJobGroup,
    NetworkSizeFinding,
    PowerLimitFinding,
    Remedy,
    SharingFinding,
    SpeedUp,
    TargetFinding,
    Top1Finding,
    VersusFinding,
)
from gpubench.core.report import Cell, HeadingFacts, Report, ReportColumn, ReportRow, ReportWarning, RowGroup


def make_claim(
    candidate: int,
    baseline: int,
    ratio: float,
    word: Certainty = "sure",
    *,
    low: float | None = None,
    high: float | None = None,
    p: float | None = None,
    metric: str = "images_per_s",
    design: Design = "paired",
    limit: float = 0.0,
) -> Claim:
    """A decided claim by its ratio."""
    verdict = Verdict(word=word, direction="more" if ratio > 1 else "less", p=p, low=low, high=high)
    evidence = Evidence(center=math.log(ratio), processes=(3, 3))
    return Claim(
        metric=metric, candidate=candidate, baseline=baseline, evidence=evidence, design=design, limit=limit,
        verdict=verdict,
    )  # fmt: skip


def make_facts(**changes: Any) -> HeadingFacts:
    """Facts of a folder of three processes a row."""
    facts = HeadingFacts(
        fixed={"model": "mobilenet_v2", "input_size": 224, "variant": "crop-resize", "precision": "fp32"},
        machines=("2 × NVIDIA H200, 32 CPUs",),
        images=5120,
        processes=(3, 3),
        is_published=False,
        time_kind="whole epochs",
    )
    return replace(facts, **changes)


def make_column(
    name: str, series: Mapping[str, Any] | None = None, *, is_number: bool = True
) -> ReportColumn:
    return ReportColumn(name=name, is_number=is_number, series=series or {})


def make_rows(values: Sequence[Sequence[Any]], **changes: Any) -> tuple[ReportRow, ...]:
    """Rows by their values; a cell may be given whole."""
    return tuple(
        ReportRow(
            labels=(number,),
            cells=tuple(value if isinstance(value, Cell) else Cell(value=value) for value in row),
            **changes,
        )
        for number, row in enumerate(values)
    )


SERIES: tuple[Mapping[str, Any], ...] = (
    {"gpus": 1, "strategy": "single"},
    {"gpus": 2, "strategy": "ddp"},
    {"gpus": 2, "strategy": "dp"},
)
SIZES = (16, 32, 64, 128, 256, 512)
EPOCHS = (
    ((4.90, 38), (3.07, 2), (3.08, 3), (2.85, 5), (3.12, 5), (3.77, 12)),
    ((6.27, 5), (3.25, 34), (1.93, 17), (1.74, 8), (1.70, 10), (2.03, 7)),
    ((27.9, 25), (14.4, 19), (7.28, 37), (4.27, 19), (2.49, 11), (2.59, 3)),
)
GIB = (
    (2.14, 3.47, 6.14, 11.3, 21.7, 42.3),
    (2.30, 2.98, 4.30, 6.97, 12.1, 22.5),
    (2.23, 2.94, 4.24, 6.93, 12.1, 22.6),
)


def batch_sizes() -> Report:
    """h200x2-2026: batch size beside devices and strategies. Row 10 * series + place of its size."""
    rows = []
    labels: dict[int, Mapping[str, Any]] = {}
    figures: dict[int, Mapping[str, Any]] = {}
    for place, size in enumerate(SIZES):
        cells = [Cell(value=size)]
        for number, series in enumerate(SERIES):
            time, percent = EPOCHS[number][place]
            row, factor = 10 * number + place, 1 + percent / 100
            labels[row] = {"batch_size": size, **series}
            figures[row] = {
                "epoch_time_s": time,
                "images_per_s": 5120 / time,
                "gpu_mem_mib": 1024 * GIB[number][place],
            }
            cells += [Cell(value=time, low=time / factor, high=time * factor), Cell(value=GIB[number][place])]
        row_labels = tuple(10 * number + place for number in range(3))
        rows.append(
            ReportRow(
                labels=row_labels,
                cells=tuple(cells),
                is_answer=size == 128,
                warnings=("spread",) if size == 16 else (),
            )
        )
    columns = [make_column("batch_size")]
    for series in SERIES:
        columns += [make_column("epoch_time_s", series), make_column("memory_gib", series)]
    figures[13] = {**figures[13], "images_per_s": 2948.0}
    return Report(
        name="mobilenet_v2-2gpu",
        question="On one GPU and on two, where does a larger batch of mobilenet_v2 stop paying, and which strategy "
        "is faster?",
        facts=make_facts(),
        columns=tuple(columns),
        groups=(RowGroup(head={}, rows=tuple(rows)),),
        findings=(_choose_batch(), _compare_devices(), _compare_strategies()),
        warnings=(
            ReportWarning(code="spread", rows=(0, 10, 20)),
            ReportWarning(code="first-batch", rows=(2, 3, 4, 5), figures={"low": 0.11, "high": 0.48}),
        ),
        labels=labels,
        figures=figures,
        axis="batch_size",
    )


def _choose_batch() -> BatchSizeFinding:
    claims = tuple(make_claim(10 + n + 1, 10 + n, 1.1, low=1.05, high=1.15, p=0.004) for n in range(5))
    choice = Choice(
        row=13, bound=0.146, gains={14: 0.146, 12: 0.111}, series=(10, 11, 12, 13, 14, 15), is_firm=True
    )
    return BatchSizeFinding(
        word="sure", claims=claims, rows=choice.series, choice=choice, label=SERIES[1], fastest=14, speed_gain=0.02,
        memory_ratio=1.74, least_cost=(
            LeastCost(label=SERIES[0], row=0, low=0, high=1, word="sure"),
            LeastCost(label=SERIES[1], row=11, low=11, high=12, word="sure"),
            LeastCost(label=SERIES[2], row=23, low=22, high=24, word="likely"),
        ),
    )  # fmt: skip


def _compare_devices() -> DevicesFinding:
    ratios = (0.78, 0.94, 1.60, 1.64, 1.83, 1.86)
    claims = [
        make_claim(
            10 + n, n, ratio, "sure" if n > 1 else "unknown", low=0.9 * ratio, high=1.1 * ratio, p=0.01
        )
        for n, ratio in enumerate(ratios)
    ]
    speed_ups = tuple(
        SpeedUp(claim=claim, devices=2, baseline_devices=1, same_batch_a_device=False, efficiency=ratio / 2)
        for claim, ratio in zip(claims, ratios, strict=True)
    )
    return DevicesFinding(word="sure", claims=tuple(claims), rows=(), speed_ups=speed_ups)


def _compare_strategies() -> VersusFinding:
    ratios = (4.45, 4.43, 3.77, 2.45, 1.46, 1.28)
    claims = tuple(make_claim(10 + n, 20 + n, ratio, p=0.0004) for n, ratio in enumerate(ratios))
    return VersusFinding(word="sure", claims=claims, field="strategy", value="ddp", baseline="dp")


def not_sure() -> Report:
    """The built-in sweep on two busy CPU cores: three rows of images/s with bars."""
    sizes, rates = (8, 16, 32, 64, 128), (145.0, 242.0, 298.0, 388.0, 406.0)
    choice = Choice(row=3, bound=0.45, gains={4: 0.45, 2: 0.07}, series=(0, 1, 2, 3, 4), is_firm=False)
    finding = BatchSizeFinding(
        word="unknown", choice=choice, slower=(0, 1), as_fast=(2, 4), remedy=Remedy(rounds=16, minutes=3.6)
    )
    rows = [
        [size, Cell(value=rate, low=rate / 1.3, high=rate * 1.3, bar=rate / 406), 3.0]
        for size, rate in zip(sizes, rates, strict=True)
    ]
    return Report(
        name="first-look",
        question="",
        facts=make_facts(machines=("AMD EPYC, 2 CPUs",), images=512, time_kind="steady rate"),
        columns=(make_column("batch_size"), make_column("images_per_s"), make_column("data_wait_pct")),
        groups=(RowGroup(head={}, rows=make_rows(rows)),),
        findings=(finding,),
        warnings=(),
        labels={n: {"batch_size": size} for n, size in enumerate(sizes)},
        figures={n: {"images_per_s": rate} for n, rate in enumerate(rates)},
        axis="batch_size",
    )


def one_process() -> Report:
    """h200x4-2026: one process a row, under a head for each strategy, out of memory at 512."""
    sizes = (16, 32, 64, 128, 256, 512)
    rates = {"ddp": (1261, 2522, 4191, 6097, 5790), "dp": (239, 448, 941, 1739, 3108)}
    gib = (2.0, 2.3, 3.0, 4.3, 7.0)
    labels = {}
    figures = {}
    groups = []
    for number, (strategy, values) in enumerate(rates.items()):
        rows = []
        for place, size in enumerate(sizes):
            row = 10 * number + place
            labels[row] = {"batch_size": size, "strategy": strategy}
            figures[row] = {}
            warned = ("dp",) if strategy == "dp" else ()
            if place == 5:
                rows.append(
                    ReportRow(
                        labels=(row,), cells=(Cell(value=size), Cell(value=None), Cell(value=None)), status="oom",
                        reason="OutOfMemoryError: CUDA out of memory", skipped=(1024, 2048), warnings=warned,
                    )
                )  # fmt: skip
                continue
            rate = values[place]
            figures[row] = {"images_per_s": float(rate), "gpu_mem_mib": 1024 * gib[place]}
            cells = (Cell(value=size), Cell(value=float(rate), bar=rate / 6097), Cell(value=gib[place]))
            rows.append(ReportRow(labels=(row,), cells=cells, is_answer=row == 3, warnings=warned))
        groups.append(RowGroup(head={"strategy": strategy}, rows=tuple(rows)))
    finding = BatchSizeFinding(
        word="likely", choice=Choice(row=3, bound=None, series=(0, 1, 2, 3, 4)), label={"strategy": "ddp"},
        as_fast=(4,), slower=(0, 1, 2), out_of_memory=5,
        least_cost=(LeastCost(label={"strategy": "ddp"}, row=3, low=1, high=3, word="likely"),),
    )  # fmt: skip
    ratios = (5.28, 5.62, 4.45, 3.51, 1.86)
    versus = VersusFinding(
        word="likely", field="strategy", value="ddp", baseline="dp",
        claims=tuple(make_claim(n, 10 + n, ratio, "likely") for n, ratio in enumerate(ratios)),
    )  # fmt: skip
    return Report(
        name="mobilenet_v2-4gpu",
        question="Where does a larger batch stop paying?",
        facts=make_facts(fixed={"model": "mobilenet_v2", "precision": "fp32", "gpu_mem_cap_mib": 12288},
                         machines=("4 × NVIDIA H200, 64 CPUs",), images=10240, processes=(1, 1),
                         time_kind="steady rate"),
        columns=(make_column("batch_size"), make_column("images_per_s"), make_column("memory_gib")),
        groups=tuple(groups),
        findings=(finding, versus),
        warnings=(
            ReportWarning(code="one-process", rows=(), figures={"noise": 0.4}),
            ReportWarning(code="dp", rows=tuple(range(10, 16))),
        ),
        labels=labels,
        figures=figures,
        axis="batch_size",
    )  # fmt: skip


def sharing() -> Report:
    """h200-copies-rounds-2026: equal jobs together."""
    groups = (
        (2, 16, 1.90, 1.59, ("some", "full"), (11.9, 12.0), (1.05, 1.06), 11.4),
        (3, 16, 2.95, 2.47, ("some", "full"), (11.4, 11.5, 11.7), (1.00, 1.01, 1.03), 11.4),
        (2, 128, 1.00, 1.09, ("none",), (3.37, 3.37), (2.00, 2.00), 1.69),
        (3, 128, 1.00, 1.09, ("none",), (5.05, 5.05, 5.05), (2.99, 2.99, 2.99), 1.69),
    )
    sharing_groups, rows, labels = [], [], {}
    for number, (jobs, size, work, bound, overlaps, together, slowdown, alone) in enumerate(groups):
        members = tuple(10 * number + job for job in range(jobs))
        labels |= {row: {"batch_size": size, "copies": jobs} for row in members}
        is_gain = size == 16
        sharing_groups.append(
            MeasuredJobGroup(
                name="", rows=members, jobs=jobs, work=work, bound=bound, is_lower_bound=is_gain,
                overlaps=overlaps, word="sure", gains=is_gain,
            )
        )  # fmt: skip
        rows.append(
            ReportRow(
                labels=members,
                cells=(
                    Cell(value=None), Cell(value=alone, low=alone / 1.2, high=alone * 1.2), Cell(value=together),
                    Cell(value=slowdown),
                    Cell(value=work, low=bound if is_gain else None, high=None if is_gain else bound, word="sure"),
                    Cell(value=overlaps),
                ),
            )
        )  # fmt: skip
    names = ("solo_epoch_time_s", "epoch_time_s", "slowdown", "work")
    return Report(
        name="mobilenet_v2-copies",
        question="One, two and three equal jobs on one GPU: what does sharing give?",
        facts=make_facts(machines=("1 × NVIDIA H200, 16 CPUs",), images=10240),
        columns=(
            make_column("group", is_number=False), *map(make_column, names), make_column("overlap", is_number=False),
        ),
        groups=(RowGroup(head={}, rows=tuple(rows)),),
        findings=(SharingFinding(word="sure", groups=tuple(sharing_groups)),),
        warnings=(),
        labels=labels,
        figures={},
    )  # fmt: skip


def pairs() -> Report:
    """h200-pairs-rounds-2026: a job that ran faster together than alone, and a group that has no memory."""
    report = sharing()
    labels = {
        0: {"model": "mobilenet_v2", "batch_size": 16}, 1: {"model": "resnet50", "batch_size": 64},
        2: {"model": "resnet50", "batch_size": 64}, 3: {"model": "mobilenet_v2", "batch_size": 256},
        4: {"batch_size": 1408}, 5: {"batch_size": 1408},
    }  # fmt: skip
    groups = (
        MeasuredJobGroup(
            name="", rows=(0, 1), jobs=2, work=1.99, bound=None, is_lower_bound=True,
            overlaps=("none", "some", "full"), word="unknown", gains=None, spoilt_by=0,
        ),
        MeasuredJobGroup(
            name="", rows=(2, 3), jobs=2, work=0.98, bound=1.17, is_lower_bound=False, overlaps=("none", "some"),
            word="sure", gains=False,
        ),
        MeasuredJobGroup(
            name="", rows=(4, 5), jobs=2, work=None, bound=None, is_lower_bound=True, overlaps=(), word="unknown",
            gains=None,
        ),
    )  # fmt: skip
    cells = (
        (None, (13.5, 3.06), (10.6, 4.31), (0.78, 1.41), 1.99, ("none", "some", "full")),
        (
            None,
            (3.06, 1.42),
            (5.75, 3.15),
            (1.88, 2.21),
            Cell(value=0.98, high=1.17, word="sure"),
            ("none", "some"),
        ),
        (None, 4.27, None, None, None, None),
    )
    rows = [replace(row, labels=group.rows) for row, group in zip(make_rows(cells), groups, strict=True)]
    rows[2] = replace(rows[2], status="oom")
    return replace(
        report,
        name="pairs",
        question="",
        groups=(RowGroup(head={}, rows=tuple(rows)),),
        findings=(SharingFinding(word="sure", groups=groups),),
        warnings=(ReportWarning(code="faster-together", rows=(0,)),),
        labels=labels,
    )


NETWORKS = (
    ("lenet", 1, 0.00065, 0.77, "sure"),
    ("mlp", 16, 0.086, 0.70, "sure"),
    ("mobilenet_v3_large", 1, 0.22, 1.17, "unknown"),
    ("mobilenet_v2", 1, 0.30, 1.49, "sure"),
    ("resnet50", 1, 4.1, 1.79, "sure"),
)


def network_sizes() -> Report:
    """h200x2-network-size-2026: five of its thirteen networks, one and two GPUs side by side."""
    labels: dict[int, Mapping[str, Any]] = {}
    rows, claims = [], []
    for n, (model, width, gmacs, ratio, word) in enumerate(NETWORKS):
        labels[n] = {"model": model, "width": width, "gpus": 1, "strategy": "single"}
        labels[10 + n] = {"model": model, "width": width, "gpus": 2, "strategy": "ddp"}
        low, high = ratio / 1.1, ratio * 1.1
        claims.append(make_claim(10 + n, n, ratio, word, low=low, high=high, p=0.01, design="ordered"))  # type: ignore[arg-type]
        speed_up = Cell(value=ratio, low=low, high=high, word=word)  # type: ignore[arg-type]
        rows.append([f"{model} x{width}" if width != 1 else model, gmacs, 1.85, 2.41, speed_up])
    finding = NetworkSizeFinding(
        word="sure", claims=tuple(claims), devices=2, strategy="ddp", first_faster=13, gmacs=0.30
    )
    return Report(
        name="network-size",
        question="From what network size do two GPUs pay?",
        facts=make_facts(fixed={"variant": "synthetic", "precision": "bf16", "batch_size": 256}, images=None),
        columns=(
            make_column("model", is_number=False), make_column("gmacs_per_image"),
            make_column("epoch_time_s", SERIES[0]), make_column("epoch_time_s", SERIES[1]),
            make_column("speedup", SERIES[1]),
        ),
        groups=(RowGroup(head={}, rows=make_rows(rows)),),
        findings=(finding,),
        warnings=(ReportWarning(code="throttled", rows=(3,)),),
        labels=labels,
        figures={},
    )  # fmt: skip


def power_limits() -> Report:
    """Three limits of one batch size: 150 W takes least."""
    figures = {0: (4149, 599_874), 1: (3852, 640_896), 2: (3515, 774_177)}
    metrics = {
        "energy_j": (0.775, 0.828),
        "edp_js": (0.915, 0.907),
        "epoch_time_s": (1.18, 1.096),
    }
    claims = {
        (row, metric): make_claim(
            row, 2, ratios[row], low=ratios[row] - 0.01, high=ratios[row] + 0.01, p=0.001, metric=metric
        )
        for metric, ratios in metrics.items()
        for row in (0, 1)
    }
    finding = PowerLimitFinding(
        word="sure", claims=tuple(claims.values()), rows=(0, 1, 2), baseline=2,
        choice=Choice(row=0, bound=0.031, gains={1: 0.031}, series=(0, 1, 2), is_firm=True),
        chosen_claims={metric: claim for (row, metric), claim in claims.items() if row == 0},
    )  # fmt: skip
    return Report(
        name="limits",
        question="",
        facts=make_facts(fixed={"model": "resnet50", "batch_size": 256}),
        columns=tuple(map(make_column, ("power_limit_w", "energy_j", "epoch_time_s"))),
        groups=(
            RowGroup(
                head={},
                rows=make_rows([(150, 599_874, 4149.0), (175, 640_896, 3852.0), (250, 774_177, 3515.0)]),
            ),
        ),
        findings=(finding,),
        warnings=(),
        labels={row: {"power_limit_w": limit} for row, limit in enumerate((150, 175, 250))},
        figures={
            row: {"energy_j": j, "epoch_time_s": s, "gpu_mem_mib": 9000.0} for row, (s, j) in figures.items()
        },
        axis="power_limit_w",
    )


def target() -> Report:
    """h200-until-top1-2026: one seed a row, the last size interrupted."""
    figures: dict[int, Mapping[str, Any]] = {
        0: {"time_to_top1_s": 66.2, "epochs_to_top1": 7, "energy_to_top1_j": 11600.0},
        1: {"time_to_top1_s": 46.8, "epochs_to_top1": 9, "energy_to_top1_j": 10500.0},
        2: {"time_to_top1_s": 36.1, "epochs_to_top1": 13, "energy_to_top1_j": 11700.0},
        3: {},
    }
    finding = TargetFinding(
        word="likely", target_pct=60.0, order=(2, 1, 0), as_fast=(1,), interrupted=(3,), least_energy=1,
        choice=Choice(row=2, bound=None),
    )  # fmt: skip
    values = [[size, *(figures[n].values() or (None,) * 3)] for n, size in enumerate((32, 64, 128, 256))]
    rows = list(make_rows(values))
    rows[2] = replace(rows[2], is_answer=True)
    rows[3] = replace(rows[3], status="interrupted")
    return Report(
        name="until-top1",
        question="Which batch size reaches 60 % top-1 first, and with the least energy?",
        facts=make_facts(processes=(1, 1), target_pct=60.0),
        columns=tuple(
            map(make_column, ("batch_size", "time_to_top1_s", "epochs_to_top1", "energy_to_top1_j"))
        ),
        groups=(RowGroup(head={}, rows=tuple(rows)),),
        findings=(finding,),
        warnings=(ReportWarning(code="one-seed", rows=()),),
        labels={n: {"batch_size": size} for n, size in enumerate((32, 64, 128, 256))},
        figures=figures,
        axis="batch_size",
    )


def published() -> Report:
    """titan-xp-2021: figures of a published log, whose rows are not all stated."""
    values = [(16, 1.23, None, 29.1, None), (32, 1.50, 22.0, 16.7, -43.0), (64, 2.00, 33.0, 12.3, -26.0)]
    rows = list(make_rows(values))
    rows[2] = replace(rows[2], is_answer=True)
    top1 = Top1Finding(
        word="unknown", field="variant", value="pre-resized", baseline="crop-resize", seeds=1,
        claims=tuple(
            Claim(
                metric="top1_pct", candidate=n, baseline=n + 1, design="equal", limit=1.0,
                evidence=Evidence(center=points, processes=(1, 1), is_log=False),
                verdict=Verdict(word="unknown", direction="more", p=None, low=None, high=None),
            )
            for n, points in enumerate((9.0, 25.0))
        ),
    )  # fmt: skip
    return Report(
        name="resnet34-4gpu",
        question="Where does a larger batch of resnet34 stop paying on four GPUs?",
        facts=make_facts(
            machines=("4 × Titan Xp",), is_published=True, images=None, time_kind="published log"
        ),
        columns=tuple(
            map(
                make_column,
                ("batch_size", "memory_gib", "gpu_mem_growth_pct", "epoch_time_s", "epoch_time_growth_pct"),
            )
        ),
        groups=(RowGroup(head={}, rows=tuple(rows)),),
        findings=(
            BatchSizeFinding(word="likely", choice=Choice(row=2, bound=None, series=(0, 1, 2)), as_fast=(1,)),
            top1,
        ),
        warnings=(
            ReportWarning(code="published-log", rows=()),
            ReportWarning(code="inferred", rows=(0, 1, 2)),
        ),
        labels={n: {"batch_size": size} for n, size in enumerate((16, 32, 64))},
        figures={2: {"epoch_time_s": 12.3, "gpu_mem_mib": 2048.0}},
        axis="batch_size",
    )


REPORTS = {
    "batch_sizes": batch_sizes,
    "not_sure": not_sure,
    "one_process": one_process,
    "sharing": sharing,
    "pairs": pairs,
    "network_sizes": network_sizes,
    "power_limits": power_limits,
    "target": target,
    "published": published,
}
