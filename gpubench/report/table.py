"""A `Table`: what people read, built purely from rows. Renderers only lay it out."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as other
from types import NoneType
from typing import Any

from gpubench.analysis import by_figures, energy, scaling, top1
from gpubench.analysis import claims as told
from gpubench.analysis.alternatives import alternatives, pairs
from gpubench.analysis.growth import moves_with, of_merged, ordered_axis
from gpubench.analysis.knee import batches
from gpubench.analysis.over_processes import of_some_rounds
from gpubench.analysis.processes import with_processes
from gpubench.analysis.repeats import REPEATS, merge_repeats
from gpubench.analysis.settle import further
from gpubench.analysis.varied import (
    Axes,
    asked,
    determined,
    known,
    machine,
    remembering,
    solo,
    together,
    values,
    varied,
)
from gpubench.basics.later import Later
from gpubench.basics.words import clean
from gpubench.plan.max_batch import are_tries
from gpubench.report import groups, tries
from gpubench.report import top1 as top1_told
from gpubench.report.cells import texts
from gpubench.report.choice import SHOW, Choice
from gpubench.report.doubts import doubts
from gpubench.report.heading import heading, title
from gpubench.report.notes import remarks
from gpubench.report.pairs import Matrix, matrices
from gpubench.schema.cell import cell
from gpubench.schema.columns import BY_NAME, DERIVED, Column
from gpubench.schema.row import Row, TableRow, column_of, columns_of, replace

BREAKDOWN: tuple[str, ...] = (
    "copy_ms", "forward_ms", "backward_ms", "comm_ms", "comm_hidden_ms", "optimizer_ms", "comm_pct",
    "comm_mib_per_step", "slowest_rank", "breakdown_cost_pct",
)  # fmt: skip
"""Shown where the parts of steps were asked for, in place of ASIDE."""

ASIDE: frozenset[str] = frozenset({"gpu_util_pct", "cpu_util_pct", "energy_j", "images_per_joule"})
"""Left out beside BREAKDOWN, for width and because timing the parts moves them; `--columns` brings them back."""

TO_TOP1: tuple[str, ...] = ("epochs_to_top1", "time_to_top1_s", "top1_crossing_s", "energy_to_top1_j")
"""Shown where a top-1 to reach was asked for."""

FIGURES: tuple[str, ...] = (
    "gpu_mem_mib", "gpu_mem_growth_pct", "gpu_util_pct", "cpu_util_pct",
    "epoch_time_s", "epoch_time_growth_pct", "images_per_s", *scaling.COLUMNS, "data_wait_pct", *BREAKDOWN,
    "energy_j", "images_per_joule", "solo_epoch_time_s", "slowdown", "predicted_slowdown", "overlap_gain",
    "sharing", "full_together", "top1_pct", *TO_TOP1,
)  # fmt: skip
"""Columns of figures, in reading order; those that are empty for all rows are left out."""

COLUMN: dict[str, Column] = {
    **BY_NAME,
    **{column.name: column for column in DERIVED},
    "repeats": REPEATS,
    "group": Column("group", "", "", "group"),
    "job": Column("job", "", "", "job"),
    "gpu_name": Column("gpu_name", "", "", "GPU"),
    "cpu_name": Column("cpu_name", "", "", "CPU"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class TablePart:
    """Rows of a table that stand together under a line of their own."""

    label: str
    """`strategy=ddp`."""
    first: int
    """The number of its first row among those that are shown, from 0; it ends where the next one begins."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """One experiment's table. All cells are final text; `columns` and `rows` are what they were made from."""

    name: str
    """The experiment's, with the kind of time where the folder holds two."""
    title: str
    """What stands over it: the name, or what was swept."""
    question: str
    """The experiment's; empty where it asks none in words."""
    heading: Sequence[str]
    """Lines above: question, configuration, hardware, counts."""
    columns: tuple[Column, ...]
    cells: Sequence[tuple[str, ...]]
    """One tuple a row, one text a column. A CSV or a workbook asks for none of them, and of large tables they take a
    tenth of the time; so they are made later, as the lines above, the remarks and `right` are."""
    right: Sequence[bool]
    """Whether each column holds numbers, which stand on the right."""
    rows: tuple[TableRow, ...]
    """The rows behind `cells`, in the same order, with growth columns; repeats merged."""
    varied: tuple[str, ...]
    """The trial fields that differ between rows."""
    trials: tuple[Row, ...]
    """What `rows` were merged from: each repeat by itself."""
    axes: Axes
    """The axes that were asked for, as far as a plan tells."""
    answers: tuple[str, ...]
    """The first sentences below: where a larger batch stops paying, what jobs together did. May be empty."""
    remarks: Sequence[str]
    """Below the answers: what the columns and marks mean, what failed and why."""
    doubts: tuple[str, ...]
    """Last: what may be wrong with figures, and in which rows."""
    claims: told.Claims
    """What the answers claim over processes."""
    matrices: tuple[Matrix, ...] = ()
    """Tables of pairs of jobs, each with each, between the rows and the answers."""
    choice: Choice = SHOW
    """What was asked of the columns."""
    parts: tuple[TablePart, ...] = ()
    """Into which the rows are parted, in their order; empty: they are not."""
    whole: int | None = None
    """How many rows there are, where it was chosen which are shown: all else is told of these."""
    experiment: str = ""
    """The experiment's own name."""
    folder: str = ""
    """What its results folder is called; empty where the table was not read from one."""

    @property
    def notes(self) -> tuple[str, ...]:
        """All sentences below the table, in reading order."""
        return (*self.answers, *self.remarks, *self.doubts)

    def parted(self) -> list[tuple[str, int, int]]:
        """Label, first row and the row behind the last one of each part; a table without parts is one without label."""
        parts = self.parts or (TablePart(label="", first=0),)
        ends = [*(part.first for part in parts[1:]), len(self.rows)]
        return [(part.label, part.first, end) for part, end in zip(parts, ends, strict=True)]

    @property
    def headings(self) -> tuple[str, ...]:
        """What stands over each column."""
        return tuple(column.heading or column.name for column in self.columns)


def tables(
    rows: Sequence[Row],
    *,
    axes: Mapping[str, Axes] | None = None,
    questions: Mapping[str, str] | None = None,
    members: Mapping[str, Sequence[str]] | None = None,
    choice: Choice = SHOW,
) -> list[Table]:
    """One Table for each experiment of a results folder, or for each kind of its epoch times: these can't be compared.

    `rows` are those of `row_of`, and planned ones. The mappings are by experiment, from the stored plans; all
    may be missing. `members` lists an experiment's trial ids in planned order: trials that another experiment
    ran first stand in its table too. A row that no plan lists stands in the table of its `experiment`.
    """
    axes, questions, members = axes or {}, questions or {}, members or {}
    names = dict.fromkeys([*members, *(row.experiment for row in rows)])
    made = []
    for name in names:
        mine = [*_planned(rows, members.get(name, ())), *_unplanned(rows, name, members)]
        kinds = dict.fromkeys(row.kind for row in mine)
        for kind in kinds:
            alike = [row for row in mine if row.kind == kind]
            called = f"{name}, {kind}" if len(kinds) > 1 else name
            question = questions.get(name, "")
            table = build(called, alike, axes=axes.get(name, ()), question=question, choice=choice)
            made.append(other(table, experiment=name))
    return made


def build(
    name: str, rows: Sequence[Row], *, axes: Axes = (), question: str = "", choice: Choice = SHOW
) -> Table:
    """The Table of one experiment. `rows` must not be empty."""
    with remembering():
        return _build(name, rows, axes, question, choice)


def _build(name: str, rows: Sequence[Row], axes: Axes, question: str, choice: Choice) -> Table:
    of_tries = are_tries(name, rows)
    if of_tries:
        rows = [tries.of_memory_alone(row) for row in rows]
    baselines = "copies" not in asked(axes) and _only_baselines(rows)
    axis = None if baselines else ordered_axis(axes, rows)
    tied = moves_with(axis, axes, rows) if axis else ()
    merged = merge_repeats(rows)
    grown = of_merged(merged, axis, tied)
    found = groups.gathered(grown, axes)
    jobs = {id(row): row for row in grown}
    grown = [*solo(grown), *(jobs[id(row)] for group in found for row in group.rows)]
    grown, scaled = scaling.scale(grown, together(axes, "gpus", "ranks"), together(axes, "batch_size"))
    alike = _shared_alike(grown)
    fields = varied(alike, axes) or ("batch_size",)
    # The rows that jobs are compared with answer no question of their own, unless somebody asked it.
    of_batches, of_devices = (
        not baselines and (not found or not axes or bool(set(asked(axes)) & set(names)))
        for names in (("batch_size",), scaling.DEVICES)
    )
    along = axis is not None and axis not in ("batch_size", *scaling.DEVICES) and not found
    of_ways = asked(axes) if baselines or (found and axes) else fields
    side_by_side = pairs(grown, of_ways)
    claimed = told.claims(
        batches(merged, tied) if "batch_size" in fields and of_batches and not of_tries else [],
        grown,
        scaled if of_devices else [],
        [] if baselines else alternatives(side_by_side),
        [[jobs[id(row)] for row in group.rows] for group in found],
        along=along,
    )
    del jobs  # the lines as they were before all else is put into them
    made, how = claimed.made, further(grown)
    judged = told.rejudged(claimed, made)
    if judged:
        grown = [judged.get(id(row), row) for row in grown]
    found = [group.of(judged.get(id(row), row) for row in group.rows) for group in found]
    knees = told.knees(claimed, made, how)
    seen = by_figures.sentences(side_by_side, fields)
    claimed = claimed.of_several
    del alike, merged, side_by_side  # the lines of before are gone as others take their places
    grown = _finished(grown)
    names = [*_place(grown), *(field for field in fields if not _needless(field, fields, grown))]
    names += ["repeats"] if any(row.repeats > 1 for row in grown) else []
    names += [figure for figure in _figures(grown) if of_devices or figure not in scaling.COLUMNS]
    columns = tuple(COLUMN[column] for column in choice.of([*names, "status"]))
    answers = [sentence for knee in knees for sentence in (knee.sentence, *knee.besides)]
    answers += tries.sentences(grown, fields) if of_tries else []
    if axis is not None and along:
        answers += told.along_axis(claimed, made, axis, fields, how)
    answers += told.speedups(claimed, made, fields, how)
    answers += told.efficiencies(claimed, made)
    answers += told.alternatives(claimed, made, fields, how)
    answers += seen
    accuracies = top1.comparisons(grown, axes, fields)
    answers += top1_told.sentences(accuracies, fields)
    answers += groups.sentences(found, grown, rows, told.unsettled(claimed, made, how))
    compared = scaling.sentence(grown, scaled) if of_devices else None
    place = [*_place(grown), *fields]
    beside = [
        *(knee.remark for knee in knees),
        compared,
        top1_told.remark(accuracies),
        top1_told.not_compared(claimed.alternatives, accuracies),
        _by_some_rounds(grown, scaled),
    ]
    of_groups = [clean(text) for group in found for text in (group.label, *[""] * (len(group.rows) - 1))]
    # What is made later keeps the lines as they are now, and none of those before.
    return Table(
        name=clean(name),
        title=clean(title(name, question, axes, jobs=bool(found))),
        question=clean(question),
        heading=Later(
            lambda: tuple(
                clean(line) for line in (question, *heading(rows, _shared_alike(grown), fields)) if line
            )
        ),
        columns=columns,
        cells=Later(lambda: tuple(zip(*_texts(columns, grown, of_groups), strict=True))),
        right=Later(lambda: _numeric(columns, grown)),
        rows=tuple(grown),
        varied=fields,
        answers=tuple(clean(sentence) for sentence in answers),
        remarks=Later(
            lambda: (
                *(clean(said) for said in beside if said),
                *(clean(one) for one in top1_told.of_crossings(grown, place)),
                *remarks(grown, place),
            )
        ),
        doubts=tuple(doubts(grown, place)),
        claims=claimed,
        matrices=tuple(matrices(found, axes)),
        trials=tuple(rows),
        axes=axes,
        choice=choice,
    )


def _finished(rows: list[TableRow]) -> list[TableRow]:
    """The rows with what follows from their figures alone. `rows` is emptied meanwhile: of large tables it would take a
    tenth of the memory to have all of them twice. So a row stands for the row before in its new form."""
    found = []
    made: dict[int, TableRow] = {}
    rows.reverse()
    while rows:
        row = rows.pop()
        made[id(row)] = replace(
            top1.with_crossing(with_processes(row)),
            images_per_joule=energy.images_per_joule(row),
            edp_js=energy.edp_js(row),
            before=made.get(id(row.before), row.before),
        )
        found.append(made[id(row)])
    return found


def _only_baselines(rows: Sequence[Row]) -> bool:
    """Whether all trials by themselves are there because jobs are compared with them, not with each other."""
    wanted = {row.solo_id for row in rows} - {None}
    return bool(wanted) and all(row.trial_id in wanted for row in rows if not row.group)


def _shared_alike(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows, those of trials alone with the groups' word on how CPUs are shared: by itself a trial shares none.

    As they are where groups differ in it.
    """
    words = {known(row, "cpu_sharing") for row in rows if row.group}
    if len(words) != 1:
        return rows
    (word,) = words
    return [row if row.group else row.with_fields(cpu_sharing=word) for row in rows]


def _by_some_rounds(rows: Sequence[TableRow], scaled: Sequence[scaling.Comparison]) -> str:
    """That some ratios are not those of the epoch times shown; empty where all are."""
    pairs: list[tuple[Row, Row]] = [(row, row.before) for row in rows if row.before is not None]
    pairs += [(one.row, one.baseline) for one in scaled if one.row is not one.baseline]
    if not any(of_some_rounds(row, other) for row, other in pairs):
        return ""
    return (
        "Rows that were not measured in all the same rounds are compared by the rounds that both have, so a growth or "
        "a speedup need not be that of the epoch times shown."
    )


def _needless(field: str, fields: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether people need no column for a field, beside jobs: `3 copies` and `0+1` say how many. CSVs have it."""
    if field == "gpus":
        return "gpu_ids" in fields and "job" in _place(rows)
    return field == "copies" and "group" in _place(rows) and determined(rows, field, ("group",))


def _texts(
    columns: Sequence[Column], rows: Sequence[TableRow], of_groups: Sequence[str]
) -> Iterator[Sequence[str]]:
    """The cells of each column. `of_groups`: those of the column `group`, for the rows of groups, which are the last
    ones."""
    found = columns_of(rows, (column.name for column in columns))
    for column in columns:
        if column.name == "group":
            yield [""] * (len(rows) - len(of_groups)) + [*of_groups]
        else:
            yield texts(column, rows, found.get(column.name))


def _numeric(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[bool, ...]:
    """Whether each column holds numbers."""
    found = columns_of(rows, (column.name for column in columns))
    kinds = [set(map(type, found.get(column.name, ()))) for column in columns]  # few columns have two
    return tuple(all(issubclass(kind, (int, float, NoneType)) for kind in own) for own in kinds)


def _figures(rows: Sequence[Row]) -> list[str]:
    """Those of FIGURES that are shown."""
    parts = any(column_of(rows, "breakdown"))
    to_top1 = [row for row in rows if row.until_top1 and row.status == "ok"]
    told = _known_somewhere(rows, [figure for figure in FIGURES if figure not in TO_TOP1])
    told |= _known_somewhere(to_top1, TO_TOP1)
    if to_top1:  # empty where no row got there, and that is the answer
        told.add("time_to_top1_s")
    left_out = {*ASIDE} if parts else {*BREAKDOWN}
    return [figure for figure in FIGURES if figure in told and figure not in left_out]


def _known_somewhere(rows: Iterable[Row], names: Collection[str]) -> set[str]:
    """Those of these figures that any row has. Each row is looked at once, for what no row before it had."""
    sought, left = list(names), iter(rows)
    while sought:
        values = operator.attrgetter(*sought, sought[0])  # of one name it would give no tuple
        nothing = (None,) * (len(sought) + 1)
        told = next((told for told in map(values, left) if told != nothing), None)
        if told is None:
            break
        sought = [name for name, value in zip(sought, told, strict=False) if value is None]
    return {*names} - {*sought}


def _planned(rows: Sequence[Row], ids: Sequence[str]) -> list[Row]:
    index = {trial: number for number, trial in enumerate(ids)}
    return sorted((row for row in rows if row.trial_id in index), key=lambda row: index[row.trial_id])


def _unplanned(rows: Sequence[Row], name: str, members: Mapping[str, Sequence[str]]) -> list[Row]:
    """Rows of this experiment that no plan lists, sorted by what varies: records come in no useful order."""
    listed = {trial for ids in members.values() for trial in ids}
    mine = [row for row in rows if row.experiment == name and row.trial_id not in listed]
    fields = varied(mine)
    return sorted(
        mine, key=lambda row: [_sort_key(row.value(field)) for field in ("group", *fields, "repeat")]
    )


def _sort_key(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, (int, float)) else (2, cell(value))


def _place(rows: Sequence[Row]) -> list[str]:
    """Columns that say where a row was measured: the models where there are several, group and job."""
    names = {row.group for row in rows}
    several = len({machine(row) for row in rows} - {None}) > 1
    found = [name for name in ("gpu_name", "cpu_name") if several and len(values(rows, name)) > 1]
    found += ["group"] if len(names) > 1 else []
    return found + (["job"] if names != {None} else [])
