"""A `Table`: what people read, built purely from rows. Renderers only lay it out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from gpubench import result
from gpubench.analysis import energy, scaling
from gpubench.analysis.growth import growth, moves_with, ordered_axis
from gpubench.analysis.knee import knees
from gpubench.analysis.repeats import REPEATS
from gpubench.analysis.varied import Axes, Row, constant, inferred, label, machine, together, values, varied
from gpubench.report.choice import SHOW, Choice
from gpubench.result import Column, Record

UNKNOWN = "–"
"""Stands where a figure could not be had."""

WORDS = {"oom": "out of memory"}
"""Statuses that have a longer name where people read it."""

MIN_FOR_SPREAD = 3
"""Values from which a table shows their spread: two of them say too little."""

BREAKDOWN: tuple[str, ...] = (
    "copy_ms", "forward_ms", "backward_ms", "comm_ms", "optimizer_ms", "comm_pct", "comm_mib_per_step",
    "slowest_rank", "breakdown_cost_pct",
)  # fmt: skip
"""Shown where the parts of steps were asked for, in place of ASIDE."""

ASIDE: frozenset[str] = frozenset({"gpu_util_pct", "cpu_util_pct", "energy_j", "images_per_joule"})
"""Left out beside BREAKDOWN, for width and because timing the parts moves them; `--columns` brings them back."""

TO_TOP1: tuple[str, ...] = ("epochs_to_top1", "time_to_top1_s", "energy_to_top1_j")
"""Shown where a top-1 to reach was asked for."""

FIGURES: tuple[str, ...] = (
    "gpu_mem_mib", "gpu_mem_growth_pct", "gpu_util_pct", "cpu_util_pct",
    "epoch_time_s", "epoch_time_growth_pct", "images_per_s", *scaling.COLUMNS, "data_wait_pct", *BREAKDOWN,
    "energy_j", "images_per_joule", "solo_epoch_time_s", "slowdown", "overlap_gain", "predicted_slowdown",
    "top1_pct", *TO_TOP1,
)  # fmt: skip
"""Columns of figures, in reading order; those that are empty for all rows are left out."""

COLUMN: dict[str, Column] = {
    **result.BY_NAME,
    **{column.name: column for column in result.DERIVED},
    "repeats": REPEATS,
    "group": Column("group", "", "", "group"),
    "job": Column("job", "", "", "job"),
    "gpu_name": Column("gpu_name", "", "", "GPU"),
    "cpu_name": Column("cpu_name", "", "", "CPU"),
}

ANSI = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|.)")
MINUS = "−"  # U+2212: as wide as the plus sign, and never taken for a dash


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One experiment's table. All cells are final text; `columns` and `rows` are what they were made from."""

    name: str
    heading: tuple[str, ...]
    """Lines above: question, configuration, hardware, counts."""
    columns: tuple[Column, ...]
    cells: tuple[tuple[str, ...], ...]
    """One tuple a row, one text a column."""
    rows: tuple[Row, ...]
    """The rows behind `cells`, in the same order, with growth columns; repeats merged."""
    varied: tuple[str, ...]
    """The trial fields that differ between rows."""
    trials: tuple[Row, ...]
    """What `rows` were merged from: each repeat by itself."""
    axes: Axes
    """The axes that were asked for, as far as a plan tells."""
    notes: tuple[str, ...]
    """Sentences below: where a larger batch stops paying, what failed, doubts."""

    @property
    def headings(self) -> tuple[str, ...]:
        """What stands over each column."""
        return tuple(column.heading or column.name for column in self.columns)

    def numeric(self, column: int) -> bool:
        """Whether a column holds numbers, which stand on the right."""
        found = [row.get(self.columns[column].name) for row in self.rows]
        return all(value is None or isinstance(value, (int, float)) for value in found)


DETAILS = ("missing", "provenance", "facts")
"""What `row_of` adds for the reports on a table's sources and honesty; no column, and not for a JSON line."""


def row_of(record: Record) -> dict[str, Any]:
    """`result.row`, and what a table tells besides: `source`, `doubt_texts` (code -> sentence) and DETAILS.

    `missing` and `provenance` are the record's; `facts` are what it knows of the images, with `files` of the variant.
    """
    return {
        **result.row(record),
        "source": record.source,
        "doubt_texts": dict(record.doubts),
        "missing": dict(record.missing),
        "provenance": dict(record.provenance),
        "facts": {**record.data, "files": record.variant_definition.get("files")},
    }


def tables(
    rows: Sequence[Row],
    *,
    axes: Mapping[str, Axes] | None = None,
    questions: Mapping[str, str] | None = None,
    members: Mapping[str, Sequence[str]] | None = None,
    choice: Choice = SHOW,
) -> list[Table]:
    """One Table for each experiment of a results folder.

    `rows` are those of `row_of` or `result.row`. The mappings are by experiment, from the stored plans; all
    may be missing. `members` lists an experiment's trial ids in planned order: trials that another experiment
    ran first stand in its table too. A row that no plan lists stands in the table of its `experiment`.
    """
    axes, questions, members = axes or {}, questions or {}, members or {}
    names = dict.fromkeys([*members, *(row["experiment"] for row in rows)])
    made = []
    for name in names:
        mine = [*_planned(rows, members.get(name, ())), *_unplanned(rows, name, members)]
        if mine:
            question = questions.get(name, "")
            made.append(build(name, mine, axes=axes.get(name, ()), question=question, choice=choice))
    return made


def build(
    name: str, rows: Sequence[Row], *, axes: Axes = (), question: str = "", choice: Choice = SHOW
) -> Table:
    """The Table of one experiment. `rows` must not be empty."""
    axis = ordered_axis(axes, rows)
    tied = moves_with(axis, axes, rows) if axis else ()
    grown = growth(rows, axis, tied)
    scaled = scaling.scale(grown, together(axes, "gpus", "ranks"), together(axes, "batch_size"))
    for row in grown:
        row["images_per_joule"], row["edp_js"] = energy.images_per_joule(row), energy.edp_js(row)
    fields = varied(grown, axes) or ("batch_size",)
    names = [*_place(grown), *fields]
    names += ["repeats"] if any(row["repeats"] > 1 for row in grown) else []
    names += [figure for figure in FIGURES if _shown(figure, grown)]
    columns = tuple(COLUMN[column] for column in choice.of([*names, "status"]))
    texts = [_texts(column, grown) for column in columns]
    notes = [knee.sentence for knee in knees(rows, tied)] if "batch_size" in fields else []
    notes += [said] if (said := scaling.sentence(grown, scaled)) else []
    return Table(
        name=clean(name),
        heading=tuple(clean(line) for line in (question, *_heading(rows, grown, fields)) if line),
        columns=columns,
        cells=tuple(zip(*texts, strict=True)),
        rows=tuple(grown),
        varied=fields,
        notes=(*notes, *_notes(grown, [*_place(grown), *fields])),
        trials=tuple(rows),
        axes=axes,
    )


def _shown(figure: str, rows: Sequence[Row]) -> bool:
    if figure in (*BREAKDOWN, *ASIDE):
        parts = any(row.get("breakdown") for row in rows)
        if parts != (figure in BREAKDOWN):
            return False
    if figure in TO_TOP1:
        asked_for = [row for row in rows if row.get("until_top1") and row["status"] == "ok"]
        if figure == "time_to_top1_s" and asked_for:
            return True  # empty where no row got there, and that is the answer
        rows = asked_for
    return any(row.get(figure) is not None for row in rows)


def _planned(rows: Sequence[Row], ids: Sequence[str]) -> list[Row]:
    place = {trial: number for number, trial in enumerate(ids)}
    return sorted((row for row in rows if row["trial_id"] in place), key=lambda row: place[row["trial_id"]])


def _unplanned(rows: Sequence[Row], name: str, members: Mapping[str, Sequence[str]]) -> list[Row]:
    """Rows of this experiment that no plan lists, sorted by what varies: records come in no useful order."""
    listed = {trial for ids in members.values() for trial in ids}
    mine = [row for row in rows if row["experiment"] == name and row["trial_id"] not in listed]
    fields = varied(mine)
    return sorted(mine, key=lambda row: [_sort_key(row.get(field)) for field in ("group", *fields, "repeat")])


def _sort_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, (int, float)) else (2, result.cell(value))


def _place(rows: Sequence[Row]) -> list[str]:
    """Columns that say where a row was measured: the models where there are several, group and job."""
    groups = {row.get("group") for row in rows}
    several = len({machine(row) for row in rows} - {None}) > 1
    found = [name for name in ("gpu_name", "cpu_name") if several and len(values(rows, name)) > 1]
    found += ["group"] if len(groups) > 1 else []
    return found + (["job"] if groups != {None} else [])


# -- heading ----------------------------------------------------------------------------------------------


def _heading(rows: Sequence[Row], grown: Sequence[Row], fields: Collection[str]) -> list[str]:
    fixed = {name: value for name, value in constant(grown).items() if name not in fields}
    configured = ", ".join(part for part in (_configuration(fixed, grown, fields), _pipeline(rows)) if part)
    return [configured, _hardware(rows), _counts(rows), _no_top1(rows)]


def _pipeline(rows: Sequence[Row]) -> str:
    """Whether loading is in the epoch times. Empty where no record says how its images were fed."""
    told = [row for row in rows if (row.get("facts") or {}).get("files") and not inferred(row, "variant")]
    fed = {str(row.get("variant")): row["facts"]["files"] for row in told}
    without = [variant for variant, files in fed.items() if files == "none"]
    if not without:
        return "input pipeline included" if fed else ""
    if len(without) == len(fed):
        return f"no input pipeline ({' and '.join(without)}: one resident batch)"
    return f"input pipeline included, but not in {' and '.join(without)} (one resident batch)"


def _no_top1(rows: Sequence[Row]) -> str:
    """Why no row has a top-1. Empty where one has."""
    ended = [row for row in rows if row["status"] == "ok"]
    if any(row.get("top1_pct") is not None for row in ended):
        return ""
    why = dict.fromkeys(said for row in ended if (said := (row.get("missing") or {}).get("top1_pct")))
    return f"top-1 not measured: {'; '.join(why)}" if why else ""


def _configuration(fixed: Mapping[str, Any], rows: Sequence[Row], fields: Collection[str]) -> str:
    said = {
        "model": "{}", "width": "width {}", "input_size": "{} px", "variant": "{}", "data": "data {}",
        "batch_size": "batch size {}", "gpus": "{} GPU", "gpu_ids": "GPU ids {}", "ranks": "{} rank",
        "strategy": "{}", "precision": "{}", "memory_format": "{}", "execution": "{}", "optimizer": "{}",
        "workers": "{} worker", "cpus": "{} CPU", "gpu_mem_cap_mib": "GPU memory capped at {} MiB",
        "steps": "{} step", "copies": "{} copies", "until_top1": "until top-1 {} %",
        "breakdown": "parts of steps timed",
    }  # fmt: skip
    silent = {("width", 1.0), ("copies", 1), ("gpus", 0), ("breakdown", False)}
    parts = []
    for field, words in said.items():
        if field in fixed and (field, fixed[field]) not in silent:
            many = words.split()[-1] in ("GPU", "rank", "worker", "CPU", "step") and fixed[field] != 1
            parts.append(words.format(result.cell(fixed[field])) + ("s" if many else ""))
        if field == "model" and field in fixed and len(params := values(rows, "params_m")) == 1:
            parts.append(f"{params[0]:.3g} M parameters")
        if field == "precision" and field not in fixed and field not in fields:
            parts.append("precision not stated")
    return ", ".join(parts)


def _hardware(rows: Sequence[Row]) -> str:
    machines = dict.fromkeys(_machine(row) for row in rows)
    parts = [" and ".join(machine for machine in machines if machine)]
    for field in ("torch", "driver"):
        found = values(rows, field)
        parts += [f"{field} {' and '.join(map(str, found))}"] if found else []
    sources = {row.get("source") or "measured" for row in rows if row["status"] not in ("skipped", "missing")}
    parts += [f"taken from a {source}" for source in sorted(sources - {"measured"})]
    return "; ".join(part for part in parts if part)


def _machine(row: Row) -> str:
    """`4 × NVIDIA H200, Intel Xeon … (64 CPUs)`: what could be used, not what the trial used."""
    parts = []
    if row.get("gpu_name"):
        count = f"{row['gpu_count']} × " if row.get("gpu_count") else ""
        parts.append(f"{count}{row['gpu_name']}")
    if row.get("cpu_name"):
        count = f" ({row['cpu_count']} CPUs)" if row.get("cpu_count") else ""
        parts.append(f"{row['cpu_name']}{count}")
    return ", ".join(parts)


def _counts(rows: Sequence[Row]) -> str:
    counts = Counter(row["status"] for row in rows)
    order = ("ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing")
    trials = f"{len(rows)} trial{'s' if len(rows) != 1 else ''}"
    return f"{trials}: " + ", ".join(f"{counts[s]} {WORDS.get(s, s)}" for s in order if counts[s])


# -- cells ------------------------------------------------------------------------------------------------


def _texts(column: Column, rows: Sequence[Row]) -> list[str]:
    name = column.name
    if name == "status":
        return [str(row["endings"]) for row in rows]
    found = [row.get(name) for row in rows]
    digits = _digits(column, found)
    texts = []
    for row, value in zip(rows, found, strict=True):
        if value is None:
            has_no_other = name.endswith("_growth_pct") or name in scaling.COLUMNS
            nothing_to_say = (has_no_other and row["status"] == "ok") or name in ("group", "job")
            texts.append("" if nothing_to_say else UNKNOWN)
        elif name.endswith("_growth_pct"):
            texts.append(signed_percent(value))
        elif name == "epoch_time_s":
            texts.append(_epoch_time(row, value, digits))
        else:
            texts.append(_text(value, digits))
    return texts


def _digits(column: Column, found: Sequence[Any]) -> int | None:
    """Digits after the point: the column's, one more for each leading zero, none that all rows lack."""
    numbers = [abs(value) for value in found if isinstance(value, (int, float)) and value]
    if column.digits is None or not numbers:
        return column.digits
    digits = column.digits
    if column.unit == "s":
        smallest = min(numbers)
        digits += (smallest < 1) + (smallest < 0.1)
    needed = (len(f"{number:.{digits}f}".rstrip("0").partition(".")[2]) for number in numbers)
    return max(needed) if digits else 0


def _epoch_time(row: Row, value: float, digits: int | None) -> str:
    mark = "~" if row.get("epoch_time_source") == "extrapolated" else ""
    spread = row.get("epoch_time_iqr_s")
    several = max(row.get("epochs_measured") or 0, row["repeats"]) >= MIN_FOR_SPREAD
    tail = f" ± {_text(spread / 2, digits)}" if spread is not None and several else ""
    return f"{mark}{_text(value, digits)}{tail}"


def _text(value: Any, digits: int | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and digits is not None:
        return f"{_rounded(value, digits):,}"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return clean(str(value))


def _rounded(value: float, digits: int) -> Decimal:
    """Half up on the number as written, as people round: 20.5 becomes 21."""
    return Decimal(str(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)


def signed_percent(value: float) -> str:
    """`+22 %`, `−43 %`, `0 %`."""
    whole = int(_rounded(value, 0))
    sign = "+" if whole > 0 else MINUS if whole < 0 else ""
    return f"{sign}{abs(whole):,} %"


# -- notes ------------------------------------------------------------------------------------------------


def _notes(rows: Sequence[Row], fields: Sequence[str]) -> list[str]:
    notes = []
    if any(row.get("epoch_time_source") == "extrapolated" for row in rows):
        notes.append("~ marks an epoch time extrapolated from the steps that were measured.")
    if any(
        " ± " in _epoch_time(row, row["epoch_time_s"], 2)
        for row in rows
        if row.get("epoch_time_s") is not None
    ):
        over = "repeats" if any(row["repeats"] > 1 for row in rows) else "measured epochs"
        notes.append(f"± is half the interquartile range over {over}.")
    sentences: dict[str, list[Row]] = {}
    for row in rows:
        if row.get("until_top1") and row["reached"] < row["repeats"]:
            whose = (
                f" in {row['repeats'] - row['reached']} of {row['repeats']} repeats" if row["reached"] else ""
            )
            missed = (
                f"Top-1 of {row['until_top1']:g} % was not reached within {row.get('epochs')} epochs{whose}"
            )
            sentences.setdefault(missed, []).append(row)
        if row["endings"] not in ("ok", "oom", "missing"):
            reason = (row.get("reason") or "no reason was recorded").strip().splitlines()[0]
            sentences.setdefault(f"{row['endings']}: {reason}", []).append(row)
    for row in rows:
        texts = row.get("doubt_texts") or {}
        for code in (row.get("doubts") or "").split("+"):
            if code:
                sentence = f"Doubt {code}: {texts[code]}" if texts.get(code) else f"Doubt {code}"
                sentences.setdefault(sentence, []).append(row)
    return notes + [clean(f"{said} ({which(some, rows, fields)})") for said, some in sentences.items()]


def which(some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str]) -> str:
    """Names `some` of a table's `rows` in a few words."""
    if len(some) == len(rows):
        return "all rows" if len(rows) > 1 else "the only row"
    if len(some) > 3:
        return f"{len(some)} of {len(rows)} rows, the first: {label(some[0], fields)}"
    return "; ".join(label(row, fields) for row in some)


def clean(text: str) -> str:
    """One line of text without control codes: reasons may quote what a process printed in colour."""
    plain = ANSI.sub("", text)
    return "".join(sign if sign.isprintable() else " " for sign in plain)
