"""Where each sampled figure of a table came from, and why others are empty: `gpubench table --sources`. Pure.

What holds for many columns or rows is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpubench.basics.words import clean
from gpubench.report import markdown
from gpubench.report.groups import number_of
from gpubench.report.notes import which
from gpubench.report.table import Table
from gpubench.schema.columns import MEASURED, OF_GROUPS
from gpubench.schema.row import Row

NO_REASON = "empty: the record, which is older than this column, gives no reason"
COLUMNS = tuple(column.name for column in MEASURED if column.name != "doubts")
PROCESSES_UNSURE = "some of the row's processes have too few independent steps to tell how sure their mean is"
LONG = 120
"""Characters of a reason after which the record has the rest."""


def text(tables: Sequence[Table]) -> str:
    """Plain text, a paragraph a table, ending in a newline."""
    blocks = ["\n".join((f"Sources of {table.title}", *lines(table))) for table in tables]
    return "\n\n".join(blocks) + "\n"


def as_markdown(tables: Sequence[Table]) -> str:
    """The sources as Markdown lists."""
    blocks = []
    for table in tables:
        bullets = "\n".join(f"- {markdown.escape(line)}" for line in lines(table))
        blocks.append(f"## Sources of {table.title}\n\n{bullets}\n")
    return "\n".join(blocks)


def lines(table: Table) -> list[str]:
    """`columns: statement (rows)`: first the sampled columns, then the empty ones, then rows without figures."""
    rows = table.trials
    place = [name for name in ("group", "job") if any(number_of(row) for row in rows)]
    apart = ["repeat"] * any(row.repeat for row in rows) + ["round"] * any(row.round > 1 for row in rows)
    fields = [*place, *table.varied, *apart]
    ok = [row for row in rows if row.status == "ok"]
    sampled, empty = [], []
    for column in COLUMNS:
        groups: dict[str, list[Row]] = {}
        for row in ok:
            groups.setdefault(_statement(row, column), []).append(row)
        for said, some in groups.items():
            if said.startswith("empty"):
                empty.append((column, said, _where(some, rows, fields)))
            elif said:
                sampled.append((column, said + _numbers(some, column), _where(some, rows, fields)))
    found = [*_together(sampled), *_together([*empty, *_over_processes(table, fields)])]
    for source in sorted({row.source for row in ok} - {"measured"}):
        some = [row for row in ok if row.source == source]
        found.append(f"all other columns: empty: not in the {source} ({_where(some, rows, fields)})")
    endings: dict[str, list[Row]] = {}
    for row in rows:
        if row.status != "ok":
            short = _short(clean((row.reason or "").strip().split("\n")[0]))
            endings.setdefault(f"{row.status}{': ' if short else ''}{short}", []).append(row)
    found += [f"no figures: {said} ({which(some, rows, fields)})" for said, some in endings.items()]
    return [clean(line) for line in found]


def _over_processes(table: Table, fields: Sequence[str]) -> list[tuple[str, str, str]]:
    """Columns over the processes of a row that are empty, why, and in which rows."""
    rows = [row for row in table.rows if row.repeats > 1]
    of: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        unsure = any(run.step_error_pct is None for run in row.runs)
        for name in ("between_pct", "within_pct"):
            if row.value(name) is None and unsure:
                of.setdefault((name, f"empty: {PROCESSES_UNSURE}"), []).append(row)
    own = [name for name in fields if name not in ("repeat", "round")]
    return [(name, said, which(some, rows, own)) for (name, said), some in of.items()]


def _where(some: Sequence[Row], rows: Sequence[Row], fields: Sequence[str]) -> str:
    ok = sum(row.status == "ok" for row in rows)
    return f"all {ok} ok rows" if len(some) == ok > 3 and ok < len(rows) else which(some, rows, fields)


def _together(said: Iterable[tuple[str, str, str]]) -> list[str]:
    """Columns of which the same is true in the same rows stand in one line."""
    columns: dict[tuple[str, str], list[str]] = {}
    for column, statement, where in said:
        columns.setdefault((statement, where), []).append(column)
    return [f"{', '.join(names)}: {what} ({where})" for (what, where), names in columns.items()]


def _statement(row: Row, column: str) -> str:
    """What the record says of one column; empty where it says nothing and need not."""
    if row.value(column) is None:
        why = row.missing.get(column)
        if why is None and row.source != "measured":
            return ""  # the line on all other columns says it
        if why is None and column in OF_GROUPS and not row.group:
            why = "the trial ran alone"  # in records that are older than the column, too
        return f"empty: {_by_whom(why, row.gpubench)}" if why else NO_REASON
    source = row.provenance.get(column)
    if isinstance(source, Mapping):
        period = source.get("period_s")
        return f"{source.get('source')}; {f'every {period:g} s' if period else 'read once'}"
    return str(source or "")


def why_empty(row: Row, column: str) -> str:
    """Why a row has no such figure, as far as its record says it."""
    return _statement(row, column).removeprefix("empty: ")


def _by_whom(why: str, version: str | None) -> str:
    """A stored reason may say "this version", which was the one that measured, not the one that reads."""
    whose = f"gpubench {version}" if version else "the gpubench of that time"
    return why.replace("this version does not measure it", f"{whose} did not measure it").replace(
        "this version", whose
    )


def _short(reason: str) -> str:
    """A long reason, cut between two words."""
    if len(reason) <= LONG:
        return reason
    kept = reason[:LONG].rpartition(" ")[0] or reason[:LONG]
    return f"{kept.rstrip(' ,;:')} …"


def _numbers(rows: Iterable[Row], column: str) -> str:
    """`; 42 to 1,203 samples a row, up to 2 gaps`; empty where nothing was counted."""
    found = [row.provenance.get(column) for row in rows]
    counted = [source for source in found if isinstance(source, Mapping)]
    samples = [source["samples"] for source in counted if source.get("samples") is not None]
    if not samples:
        return ""
    low, high = min(samples), max(samples)
    several = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    gaps = max((source.get("gaps") or 0 for source in counted), default=0)
    lost = f", up to {gaps:,} gap{'s' if gaps != 1 else ''}" if gaps else ", no gaps"
    return f"; {several} sample{'s' if high != 1 else ''} a row{lost}"
