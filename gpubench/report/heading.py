"""The lines above a table: what was the same for all rows, on what hardware, how many ended how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any

from gpubench.analysis.varied import Axes, asked, constant, inferred, solo, unit, values
from gpubench.basics.words import WORDS, many
from gpubench.schema.cell import cell
from gpubench.schema.field import in_order
from gpubench.schema.row import Row
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS

BUILT_IN = "batch-size"
"""Name of the experiments in `builtin/`."""


def title(name: str, question: str, axes: Axes, *, jobs: bool) -> str:
    """What stands over a table: the experiment's name, or what was swept where the name would mislead.

    The built-in experiment keeps its name whatever is asked with its help, for the results folder is called by it; its
    `question` goes where its axes are others. `jobs`: whether jobs run together.
    """
    fields = [field.replace("_", "-") for field in asked(axes)]
    if name != BUILT_IN or question or (fields == [name] and not jobs):
        return name
    beside = ["jobs side by side"] if jobs and "copies" not in fields else []
    return ", ".join([*fields, *beside]) or name


def heading(rows: Sequence[Row], grown: Sequence[Row], fields: Collection[str]) -> list[str]:
    fixed = {name: value for name, value in constant(grown).items() if name not in fields}
    if _reads_nothing(rows):
        fixed.pop("data", None)
    configured = ", ".join(part for part in (_configuration(fixed, grown, fields), _pipeline(rows)) if part)
    return [configured, hardware(rows), _counts(rows), _no_top1(rows)]


def _reads_nothing(rows: Sequence[Row]) -> bool:
    """Whether all rows are of variants without files; a planned row is like those that ran."""
    files = {row.variant: row.images.files for row in rows if row.images}
    return all(files.get(row.variant) == "none" for row in rows)


def _pipeline(rows: Sequence[Row]) -> str:
    """Whether loading is in the epoch times. Empty where no record says how its images were fed."""
    fed = {
        str(row.variant): row.images.files
        for row in rows
        if row.images and row.images.files and not inferred(row, "variant")
    }
    without = [variant for variant, files in fed.items() if files == "none"]
    if not without:
        return "input pipeline included" if fed else ""
    if len(without) == len(fed):
        return f"no input pipeline ({' and '.join(without)}: one resident batch)"
    return f"input pipeline included, but not in {' and '.join(without)} (one resident batch)"


def _no_top1(rows: Sequence[Row]) -> str:
    """Why no row has a top-1. Empty where one has, and of rates, which nobody asks for one."""
    ended = [row for row in rows if row.status == "ok" and row.kind != "steady rate"]
    if any(row.top1_pct is not None for row in ended):
        return ""
    ended = solo(ended) or ended  # jobs of groups leave it to the same trials alone
    why = dict.fromkeys(said for row in ended if (said := row.missing.get("top1_pct")))
    return f"top-1 not measured: {'; '.join(why)}" if why else ""


def _configuration(fixed: Mapping[str, Any], rows: Sequence[Row], fields: Collection[str]) -> str:
    parts = []
    for field in in_order(FIELDS, {name: ABOUT[name].said_behind for name in FIELDS}):
        about = ABOUT[field]
        unsaid = DEFAULTS[field] if about.added else about.unsaid
        if about.said and field in fixed and fixed[field] != unsaid:
            parts.append(about.said.format(_value(fixed[field]), s="" if fixed[field] == 1 else "s"))
        if field == "model" and field in fixed and len(params := values(rows, "params_m")) == 1:
            parts.append(f"{params[0]:.3g} M parameters")
        if field == "precision" and field not in fixed and field not in fields:
            parts.append("precision not stated")
    return ", ".join(parts)


def _value(value: Any) -> Any:
    """As text, but for whole numbers, which may be told with commas."""
    return value if isinstance(value, int) and not isinstance(value, bool) else cell(value)


def hardware(rows: Sequence[Row]) -> str:
    """On what the rows were measured, and with which versions."""
    alike: dict[Hashable, Row] = {}  # so that one of each is put into words
    for row in rows:
        alike.setdefault((row.gpu_name, row.gpu_count, row.cpu_name, row.cpu_count), row)
    machines = dict.fromkeys(map(_machine, alike.values()))
    # A record tells what one node has.
    each = "each node: " if any((row.nodes or 1) > 1 for row in rows) and any(machines) else ""
    parts = [each + " and ".join(machine for machine in machines if machine)]
    for field in ("torch", "driver"):
        found = values(rows, field)
        parts += [f"{field} {' and '.join(map(str, found))}"] if found else []
    parts += [f"MPS {state}" for state in values(rows, "mps") if state not in (None, "off")]
    sources = {row.source for row in rows if row.status not in ("skipped", "missing")}
    parts += [f"taken from a {source}" for source in sorted(sources - {"measured"})]
    return "; ".join(part for part in parts if part)


def _machine(row: Row) -> str:
    """`4 × NVIDIA H200, Intel Xeon … (64 CPUs)`: what could be used, not what the trial used."""
    parts = []
    if row.gpu_name:
        count = f"{row.gpu_count} × " if row.gpu_count else ""
        parts.append(f"{count}{row.gpu_name}")
    if row.cpu_name:
        count = f" ({many(row.cpu_count, 'CPU')})" if row.cpu_count else ""
        parts.append(f"{row.cpu_name}{count}")
    return ", ".join(parts)


def _counts(rows: Sequence[Row]) -> str:
    rounds = max((row.round for row in rows), default=1)
    broken = _with_a_broken_round(rows)
    rows = [row for row in rows if row.is_whole]
    counts = Counter(row.status for row in rows)
    order = ("ok", "oom", "failed", "timeout", "interrupted", "skipped", "missing")
    alone = solo(rows)
    jobs = [row for row in rows if row.group]
    groups = {unit(row) or row.group for row in jobs}
    told = [many(len(alone), "trial")] if alone or not jobs else []
    told += [f"{many(len(jobs), 'job')} of {many(len(groups), 'group')}"] if jobs else []
    often = f", in {rounds} rounds" if rounds > 1 else ""
    ended = ", ".join(f"{counts[s]} {WORDS.get(s, s)}" for s in order if counts[s])
    return f"{' and '.join(told)}{often}: {ended}{broken}"


def _with_a_broken_round(rows: Sequence[Row]) -> str:
    """How many of those that are ok have a further round that is not; empty where none has."""
    good = {row.trial_id for row in rows if row.round == 1 and row.status == "ok"}
    bad = [row for row in rows if row.round > 1 and row.status != "ok" and row.trial_id in good]
    if not bad:
        return ""
    how = " or ".join(dict.fromkeys(WORDS.get(row.status, row.status) for row in bad))
    return f"; of those that are ok, {len({row.trial_id for row in bad})} with a further round {how}"
