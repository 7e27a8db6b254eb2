"""Jobs that ran together: which rows of a table belong to one group, what it is called, and what is said of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from gpubench.analysis import sharing
from gpubench.analysis.doubted import serious
from gpubench.analysis.growth import percent
from gpubench.analysis.noise import begun, processes
from gpubench.analysis.sharing import stored_resources
from gpubench.analysis.varied import Axes, as_asked, asked, known, machine, solo, unit, varied
from gpubench.basics.words import clean, listed, number, signed
from gpubench.schema.record import ALLOTTED
from gpubench.schema.row import Row
from gpubench.schema.verdict import Sure, Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredGroup:
    """Jobs that ran together, repeats merged."""

    name: str
    where: tuple[str, ...]
    """Fields that tell it from other groups of its name."""
    rows: tuple[Row, ...]
    """In the order of the jobs."""

    def of(self, rows: Iterable[Row]) -> MeasuredGroup:
        """The group with these rows of the same jobs."""
        return replace(self, rows=tuple(rows))

    @property
    def label(self) -> str:
        """`3 copies (batch_size=16)`."""
        values = {field: dict.fromkeys(known(row, field) for row in self.rows) for field in self.where}
        said = [
            f"{field}={'/'.join(as_asked(value) for value in found)}"
            for field, found in values.items()
            if None not in found
        ]
        return f"{self.name} ({', '.join(said)})" if said else self.name


def gathered(rows: Sequence[Row], axes: Axes = ()) -> list[MeasuredGroup]:
    """The groups among these rows; those of one name one after the other, else as they came."""
    by_name: dict[str, list[list[Row]]] = {}
    for members in _together(rows):
        by_name.setdefault(members[0].group or "", []).append(sorted(members, key=_place))
    return [
        MeasuredGroup(name=name, where=where, rows=tuple(members))
        for name, same in by_name.items()
        for where in [_where(same, axes)]
        for members in same
    ]


def names_of_groups(rows: Sequence[Row], axes: Axes) -> dict[int, str]:
    """The id of each row of a group -> what its group is called, which a table says in the first row of each alone."""
    return {id(row): clean(group.label) for group in gathered(rows, axes) for row in group.rows}


def _together(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of one group each. Without an id, the second row of a job is one of a second group of that name."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    seen: Counter[tuple[Any, ...]] = Counter()
    for row in rows:
        if row.group:
            own: Any = unit(row)
            if own is None:
                job = (row.group, row.job)
                own, seen[job] = seen[job], seen[job] + 1
            found.setdefault((row.group, own), []).append(row)
    return list(found.values())


def number_of(row: Row) -> int | None:
    """2 of a row whose job is `2 of 3`; None where its jobs have other names."""
    first, _, last = str(row.job or "").partition(" of ")
    return int(first) if first.isdecimal() and last.isdecimal() else None


def _place(row: Row) -> int:
    return number_of(row) or 0


def _where(same: Sequence[Sequence[Row]], axes: Axes) -> tuple[str, ...]:
    """The fields in which groups of one name differ while the jobs of each agree. Where axes are known, of those."""
    fields = varied([row for rows in same for row in rows], axes)
    # Also one that a job settles for itself, and that is an axis for the others.
    of_axes = [
        field for field in fields if field in asked(axes) and (agree(field, same) or _differ(field, same))
    ]
    # One group that was measured under several allowances of CPUs: no axis tells its runs apart.
    ids = [rows[0].group_id for rows in same]
    again = len(set(ids)) < len(ids)
    machines = [field for field in fields if again and field in ALLOTTED and agree(field, same)]
    return tuple(dict.fromkeys([*of_axes, *machines]) or [field for field in fields if agree(field, same)])


def _differ(field: str, groups: Sequence[Sequence[Row]]) -> bool:
    """Whether the groups are told apart by the values of a field in their jobs."""
    return len({tuple(known(row, field) for row in rows) for rows in groups}) > 1


def agree(field: str, groups: Sequence[Sequence[Row]]) -> bool:
    """Whether the jobs of each group have the same value of a field."""
    return all(len({known(row, field) for row in rows}) == 1 for rows in groups)


def sentences(
    groups: Sequence[MeasuredGroup],
    alone: Sequence[Row] = (),
    trials: Sequence[Row] = (),
    unsettled: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """A paragraph for each group that ended ok: the verdict and how well it was predicted in its first sentence, then
    what was full, and what the figures rest on.

    `alone`: the table's rows, repeats merged; `trials`: what they were merged from. `unsettled`: by the id of a group,
    what it would take to decide an open one.
    """
    doubts = _doubts_alone(alone, trials) if groups else {}
    told = [(group.label, _told(group.rows, doubts, unsettled)) for group in groups]
    return [f"{label}: {' '.join(f'{said}.' for said in found)}" for label, found in told if found]


Doubts = Mapping[tuple[str, str | None, Any], frozenset[str]]
"""A trial's id, its machine and its CPUs, of which a job has as many -> the codes of its row's doubts."""


def _doubts_alone(alone: Sequence[Row], trials: Sequence[Row]) -> Doubts:
    """Those doubts about trials alone that may have moved their times. A repeat has those of all its repeats."""
    of_rows = {
        (row.config_id or row.trial_id, machine(row), row.cpus): frozenset(serious(row))
        for row in solo(alone)
    }
    return {
        (row.trial_id, machine(row), row.cpus): found
        for row in solo(trials)
        if (found := of_rows.get((row.config_id or row.trial_id, machine(row), row.cpus)))
    }


def _told(rows: Sequence[Row], doubts: Doubts, unsettled: Mapping[str, str]) -> list[str]:
    """Sentences without full stops, the first as it goes on after the group's name; empty for nothing to say."""
    if any(row.status != "ok" for row in rows):
        return []
    row, found = rows[0], rows[0].verdict or Verdict()
    first = "; ".join(part for part in (_verdict(rows, found), _predicted(rows)) if part)
    gain = row.overlap_gain
    more: list[str] = []
    if gain is not None and found.words:
        resources = stored_resources(row.together)
        slowdowns = [one.slowdown for one in rows if one.slowdown is not None]
        full = sharing.sentences(found, gain, resources, slowdowns)
        more = [*full, _of_the_first(rows) if full else "", origin(rows, found)]
    if gain is not None:
        more.append(_rests(rows, doubts))
    if found.sure == "open":
        more.append(unsettled.get(str(row.group_id), ""))
    return [first, *(f"{said[0].upper()}{said[1:]}" for said in more if said)] if first else []


def _of_the_first(rows: Sequence[Row]) -> str:
    """That of several processes of each job one tells what was full, where there are several."""
    most = max(map(processes, rows))
    return (
        f"how full each resource was is told by the first of {most} processes of each job" if most > 1 else ""
    )


def _rests(rows: Sequence[Row], doubts: Doubts) -> str:
    """What is doubtful of the trials that the jobs are compared with."""
    found = {code for row in rows for code in doubts.get((str(row.solo_id), machine(row), row.cpus), ())}
    return (
        f"the trials alone that it is compared with have doubts ({', '.join(sorted(found))})" if found else ""
    )


def _verdict(rows: Sequence[Row], found: Verdict) -> str:
    gain, missing = rows[0].overlap_gain, rows[0].missing
    if gain is None:
        why = missing.get("overlap_gain")
        return f"no verdict: {why}" if why else ""
    if not found.words:
        return f"no verdict (overlap gain {number(gain, 2)}){f': {found.why_not}' if found.why_not else ''}"
    start = "" if _logs(rows) else _lower(found.begins)
    return begun(start, sharing.headline(found, gain))


def _lower(said: str) -> str:
    return f"{said[:1].lower()}{said[1:]}"


UNSURE: Mapping[Sure, str] = {
    "spread not known": "how far the times spread is not known",
    "doubtful": "somebody else's work took a part of the machine",
    "faster than alone": "a job was faster than alone, so times differ from process to process by more than is known",
}
"""Why a verdict is one that chance may have made."""


def origin(rows: Sequence[Row], found: Verdict, unsure: Mapping[Sure, str] = UNSURE) -> str:
    """That the figures are of few processes, unless the sentence begins with that, and why chance may have made the
    verdict, by `unsure`."""
    if logs := _logs(rows):
        return f"each time is one figure of a {listed(sorted(logs))}"
    few = "" if found.begins else found.rests.removeprefix("; ")
    extrapolated = any(row.epoch_time_source == "extrapolated" for row in rows)
    parts = [few] if few else []
    parts += ["epoch times are extrapolated from steps"] if extrapolated else []
    parts += [unsure[found.sure]] if found.sure in unsure else []
    return ", and ".join(parts) if len(parts) < 3 else f"{parts[0]}, {parts[1]}, and {parts[2]}"


def _logs(rows: Sequence[Row]) -> set[str]:
    """The sources of rows that were not measured here."""
    return {row.source for row in rows} - {"measured"}


def _predicted(rows: Sequence[Row]) -> str:
    predicted = [row.predicted_slowdown for row in rows if row.predicted_slowdown is not None]
    if len(predicted) < len(rows):
        missing = rows[0].missing.get("predicted_slowdown")
        why = (rows[0].together.no_prediction if rows[0].together else None) or missing
        return f"not predicted: {why}" if why else ""
    said = f"predicted {listed([number(p, 2) for p in predicted])} times as long as alone"
    measured = [row.slowdown for row in rows if row.slowdown is not None]
    if len(measured) < len(rows):
        return said
    errors = [signed(percent(m, p)) for m, p in zip(measured, predicted, strict=True)]
    return f"{said}, measured {listed([number(m, 2) for m in measured])} (error {listed(errors)} %)"
