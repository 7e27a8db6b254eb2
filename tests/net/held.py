"""What the net holds of a results folder, how it is stored, and in what two states of it differ."""

from __future__ import annotations

import csv
import fnmatch
import io
import json
import lzma
import math
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import synthetic

HERE = Path(__file__).parent
DATA = HERE / "data"
RESULTS = HERE.parents[1] / "results"
COMMITTED = (
    "h200-copies-2026", "h200-copies-rounds-2026", "h200-cpus-2026", "h200-pairs-2026", "h200-pairs-rounds-2026",
    "h200-until-top1-2026", "h200x2-2026", "h200x2-network-size-2026", "h200x4-2026", "h200x4-groups-2026",
    "h200x4-scaling-2026", "titan-xp-2021",
)  # fmt: skip
"""The committed folders that hold records: the thirteenth, h200-checks-2026, holds none."""
CSVS = ("trials.csv", "epochs.csv", "table.csv")
CLOSE = 1e-9
"""By what share figures of intervals and claims may differ: sums in another order do by less, other rules by more."""
CLOSE_P = 1e-6
"""Likewise p-values, for libraries differ in the tails of Student's t."""
NOTHING = 1e-12
DIGITS = 12
BETWEEN = " | "

Key = tuple[str, ...]
"""Of a claim: table, kind, row, the row that it is compared with."""


@dataclass(frozen=True)
class IntervalOf:
    """A figure of a row of a table, with its 95 % interval."""

    table: str
    row: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    processes: Sequence[int]

    @property
    def key(self) -> Key:
        return self.table, self.row, self.metric


@dataclass(frozen=True)
class Claim:
    """A row compared with another."""

    key: Key
    estimate: float
    low: float | None
    high: float | None
    processes: Sequence[int]
    p: Mapping[str, float]
    """Of `equal` and `outside` the margin, or of `wrong`: not corrected for other claims."""


@dataclass(frozen=True)
class Verdict:
    """What was said of a claim: written down to be looked at, and held by no test."""

    key: Key
    word: str
    family: int
    adjusted: Mapping[str, float]
    sure: str = ""


@dataclass
class Figures:
    """What an analysis says of a folder."""

    intervals: list[IntervalOf] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)


# ---- folders ----


def list_parts() -> dict[str, list[str]]:
    """File of `data/` -> its folders: a committed one by itself, synthetic ones by their family."""
    families = {family: synthetic.list_folders(family) for family in synthetic.FAMILIES}
    return {name: [name] for name in COMMITTED} | families


def put(name: str, into: Path) -> Path:
    """A folder's records and plans, alone, in a new folder of its name."""
    folder = into / name
    if name not in COMMITTED:
        synthetic.write(name, folder)
        return folder
    for kind in ("records", "plans"):
        shutil.copytree(RESULTS / name / kind, folder / kind)
    return folder


def digest(name: str) -> str:
    """Of a synthetic folder's files; empty of a committed one, which git keeps."""
    return "" if name in COMMITTED else synthetic.digest(name)


# ---- stored ----


def as_plain(csvs: Mapping[str, str], figures: Figures, made_of: str) -> dict[str, Any]:
    """A folder as JSON has it. `made_of`: the digest of its files."""
    return {
        "made_of": made_of,
        **{name: csvs[name].split("\n") for name in CSVS},
        "intervals": {
            key: [_short(each.value), _short(each.low), _short(each.high), *each.processes]
            for key, each in _by_key(figures.intervals)
        },
        "claims": {
            key: [
                {"estimate": _short(claim.estimate), "low": _short(claim.low), "high": _short(claim.high)},
                [*claim.processes],
                {name: _short(p) for name, p in claim.p.items()},
            ]
            for key, claim in _by_key(figures.claims)
        },
        "verdicts": {
            key: [each.word, each.sure, each.family, {name: _short(p) for name, p in each.adjusted.items()}]
            for key, each in _by_key(figures.verdicts)
        },
        "answers": figures.answers,
    }


def _by_key(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Each under a key of its own: of several with the same key the later ones are numbered."""
    seen: dict[Key, int] = {}
    for item in items:
        number = seen[item.key] = seen.get(item.key, 0) + 1
        yield BETWEEN.join((*item.key, *([f"#{number}"] if number > 1 else []))), item


def _short(value: float | None) -> float | str | None:
    """With the digits that count; what is beyond all numbers as a word."""
    if value is None:
        return None
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else str(value)


def save(part: str, folders: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes a file of `data/`, always with the same bytes, and a line a value, so that two can be compared."""
    blocks = []
    for name, kinds in folders.items():
        values = ",\n".join(f" {_dump(kind)}: {_in_lines(value)}" for kind, value in kinds.items())
        blocks.append(f"{_dump(name)}: {{\n{values}\n}}")
    text = "{\n" + ",\n".join(blocks) + "\n}\n"
    DATA.mkdir(exist_ok=True)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    (DATA / f"{part}.json.xz").write_bytes(packed)


def _in_lines(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ",".join(f"\n  {_dump(item)}" for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"\n  {_dump(key)}: {_dump(item)}" for key, item in value.items()) + "}"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def load(part: str) -> dict[str, Any]:
    """Folder -> what is held of it."""
    folders: dict[str, Any] = json.loads(lzma.decompress((DATA / f"{part}.json.xz").read_bytes()))
    return folders


# ---- differences ----


@dataclass(frozen=True)
class Difference:
    """One value that is another than before."""

    where: str
    """A name of CSVS, `intervals` or `claims`."""
    column: str
    folder: str
    place: str
    before: object
    now: object

    def __str__(self) -> str:
        return f"{self.folder}, {self.where}, {self.place}, {self.column}: {self.before!r}, now {self.now!r}"


@dataclass(frozen=True)
class Allowed:
    """An entry of differences.toml."""

    where: str
    column: str
    rule: str
    count: int
    folders: str = "*"

    def covers(self, difference: Difference) -> bool:
        return (
            self.where == difference.where
            and fnmatch.fnmatchcase(difference.column, self.column)
            and fnmatch.fnmatchcase(difference.folder, self.folders)
        )


def load_allowed() -> list[Allowed]:
    """What may differ."""
    listed = tomllib.loads((HERE / "differences.toml").read_text(encoding="utf-8"))
    return [Allowed(**entry) for entry in listed.get("differs", [])]


def compare(
    folder: str, before: Mapping[str, Any], now: Mapping[str, Any], new: Sequence[str], gone: Sequence[str]
) -> Iterator[Difference]:
    """All in which two states of a folder differ. `new`, `gone`: columns of CSVs that only one of them has."""
    for name in CSVS:
        yield from _compare_csv(name, folder, "\n".join(before[name]), "\n".join(now[name]), new, gone)
    yield from _compare_values("intervals", folder, before["intervals"], now["intervals"], _interval_cells)
    yield from _compare_values("claims", folder, before["claims"], now["claims"], _claim_cells)


def _compare_csv(
    name: str, folder: str, before: str, now: str, new: Sequence[str], gone: Sequence[str]
) -> Iterator[Difference]:
    if before == now:
        return
    before, header = _without(before, gone)
    now, header_now = _without(now, [column for column in new if column not in header])
    if header != header_now:
        lost = [column for column in header if column not in header_now]
        added = [column for column in header_now if column not in header]
        yield Difference(name, "(header)", folder, "line 1", lost or "the same", added or "in another order")
    elif before != now:
        rows, rows_now = _parse(before), _parse(now)
        if len(rows) != len(rows_now):
            yield Difference(name, "(rows)", folder, "all", len(rows), len(rows_now))
            return
        cells = [
            Difference(name, column, folder, f"row {number}, {row[0]}", value, value_now)
            for number, (row, row_now) in enumerate(zip(rows, rows_now, strict=True))
            for column, value, value_now in zip(header, row, row_now, strict=True)
            if value != value_now
        ]
        yield from cells or [Difference(name, "(bytes)", folder, "all", "", "quoted otherwise")]


def _parse(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def _without(text: str, columns: Sequence[str]) -> tuple[str, list[str]]:
    """A CSV without these columns, and its header; as it is where it has none of them."""
    header, *rows = _parse(text)
    kept = [place for place, column in enumerate(header) if column not in columns]
    if len(kept) == len(header):
        return text, header
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([row[place] for place in kept] for row in (header, *rows))
    return out.getvalue(), [header[place] for place in kept]


def _interval_cells(key: str, value: Sequence[Any]) -> dict[str, Any]:
    metric = key.rpartition(BETWEEN)[2]
    ends = dict(zip(("value", "low", "high"), value, strict=False))
    return {f"{metric}.{name}": end for name, end in ends.items()} | {f"{metric}.n": value[3:]}


def _claim_cells(key: str, value: Sequence[Any]) -> dict[str, Any]:
    ends, counts, p = value
    kind = key.split(BETWEEN)[1]
    cells = {f"{kind}.{name}": end for name, end in ends.items()} | {f"{kind}.n": counts}
    return cells | {f"{kind}.p {name}": chance for name, chance in p.items()}


def _compare_values(
    where: str,
    folder: str,
    before: Mapping[str, Any],
    now: Mapping[str, Any],
    cells: Callable[[str, Sequence[Any]], dict[str, Any]],
) -> Iterator[Difference]:
    for key in {**before, **now}:
        if key not in now or key not in before:
            column = next(iter(cells(key, before.get(key) or now[key]))).rpartition(".")[0]
            yield Difference(where, f"{column}.(all)", folder, key, before.get(key), now.get(key))
            continue
        values, values_now = cells(key, before[key]), cells(key, now[key])
        for column in {**values, **values_now}:
            if not _is_close(column, values.get(column), values_now.get(column)):
                yield Difference(where, column, folder, key, values.get(column), values_now.get(column))


def _is_close(column: str, before: Any, now: Any) -> bool:
    if not isinstance(before, float) or not isinstance(now, float):
        return bool(before == now)
    close = CLOSE_P if ".p " in column else CLOSE
    return math.isclose(before, now, rel_tol=close, abs_tol=NOTHING)
