"""A row: all that tables, comparisons and predictions read of one trial. Its attributes are the columns, and more.

A row never changes; `replace` makes another one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from gpubench.schema.columns import (
    BY_NAME,
    AllocationColumns,
    CpuSpeedColumns,
    DoubtColumns,
    EnvironmentColumns,
    GpuSettingColumns,
    GroupColumns,
    IdentityColumns,
    LaterColumns,
    MeasuredColumns,
    ModelColumns,
    SkippedImageColumns,
)
from gpubench.schema.epoch_times import EXTRAPOLATED, STEADY, WHOLE_RUN, Kind
from gpubench.schema.trial_fields import FIELDS

if TYPE_CHECKING:
    from dataclasses import replace as replace  # so that the names and types of what is replaced are checked

    class FieldColumns:
        """The trial's fields, as asked for, or as the machine filled them in; None where that is not known. Here are
        those that code names."""

        command: str | None
        epoch_pattern: str | None
        model: str | None
        input_size: int | None
        batch_size: int | None
        gpus: int | None
        gpu_ids: Sequence[int] | None
        workers: int | None
        gpu_mem_cap_mib: int | None
        epochs: int | None
        steps: int | None
        window: float | None
        until_top1: float | None

else:
    # The number of the repeat is a column of its own.
    FieldColumns = make_dataclass(
        "FieldColumns",
        [(name, Any, field(default=None)) for name in FIELDS if name != "repeat"],
        frozen=True,
        kw_only=True,
        eq=False,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownImages:
    """What a record knows of its images. None: not on record."""

    files: str | None = None
    """How those of the variant lie: `none` where it reads none."""
    fingerprint: str | None = None
    train_images: int | None = None
    val_images: int | None = None
    size: int | None = None
    """Side in pixels where all are squares of one size."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Row(
    IdentityColumns,
    FieldColumns,
    ModelColumns,
    MeasuredColumns,
    GroupColumns,
    DoubtColumns,
    EnvironmentColumns,
    SkippedImageColumns,
    LaterColumns,
    AllocationColumns,
    CpuSpeedColumns,
    GpuSettingColumns,
):
    """One attempt at a trial, or a trial that was planned only; of a column that is None the value is not known."""

    asked: Mapping[str, Any] = field(default_factory=dict)
    """The trial's fields as asked for, None for what was left to the machine; empty where no record tells."""
    source: str = "measured"
    """`measured` by gpubench, or where the figures were taken from."""
    doubt_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Code -> what casts doubt on the row: a sentence, or several where it stands for several repeats."""
    missing: Mapping[str, str] = field(default_factory=dict)
    """Column -> why it is empty."""
    images: KnownImages | None = None
    """None where no record tells."""
    variant_definition: Mapping[str, Any] = field(default_factory=dict)
    together: Mapping[str, Any] = field(default_factory=dict)
    """For a job of a group: `Record.together`, the same for all its jobs."""
    printed: Mapping[str, float] = field(default_factory=dict)
    """Figures that a command printed, by name."""
    log: str | None = None
    """Where its processes' output is kept, from the results folder; None where gpubench did not measure it."""
    steady_step_s: float | None = None
    """Seconds of a step once the loaders run evenly, the median of the measured epochs; None where no record tells."""
    took_s: float | None = None
    """Seconds from the launch of its processes to their end; None where no record tells."""
    allowance: Hashable = None
    """What the machine gave the jobs of its attempt of what they left to it."""
    gpu_total_mib: float | None = None
    """Memory of the smallest GPU of the machine, as the driver counts it; None where the record does not tell."""
    gpu_reserved_mib: float | None = None
    """What the driver keeps of that for itself; None where the record does not tell."""

    @property
    def has_all_figures(self) -> bool:
        """Whether it measured all that there is of its trial: further rounds of versions before 0.2 did not."""
        return self.round == 1 or self.epoch_time_source != EXTRAPOLATED

    @property
    def kind(self) -> Kind:
        """What its epoch time is of, or would be."""
        if self.source != "measured":
            return "published log"
        if self.epoch_time_source == WHOLE_RUN:
            return "whole run"
        if self.epoch_time_source is None and self.command is not None:
            return "whole run" if self.epoch_pattern is None else "whole epochs"
        if self.epoch_time_source is None:
            return "steady rate" if self.epochs is None else "whole epochs"
        return "steady rate" if self.epoch_time_source == STEADY else "whole epochs"

    def __repr__(self) -> str:
        known = {name: value for name, value in vars(self).items() if value not in (None, (), {})}
        return f"Row({known})"

    @staticmethod
    def make_from_columns(values: Mapping[str, Any], **more: Any) -> Row:
        """The row with these values of COLUMNS; other names are let through, and left out. `more`: other attributes."""
        columns = {name: value for name, value in values.items() if value is not None and name in BY_NAME}
        return _make_row_of_values({**_NO_DETAILS, **columns, **more})


def collect_columns(rows: Sequence[Row], names: Iterable[str]) -> dict[str, list[Any]]:
    """What stands in each of these columns, under its name."""
    return {name: [getattr(row, name) for row in rows] for name in names}


ATTRIBUTES = frozenset(column.name for column in fields(Row))
_NO_DETAILS: dict[str, Any] = {
    name: MappingProxyType({})
    for name in ("asked", "doubt_texts", "missing", "printed", "together", "variant_definition")
}


def _make_row_of_values(values: dict[str, Any]) -> Row:
    """A row that keeps these values. A dataclass's own `__init__` takes several times as long, and tables are made by
    copying rows.

    What is None by default need not be given: the class has it.
    """
    row = object.__new__(Row)
    object.__setattr__(row, "__dict__", values)
    return row


if not TYPE_CHECKING:

    def replace(row: Row, /, **changes: Any) -> Row:
        """The row with other values."""
        if not changes.keys() <= ATTRIBUTES:
            raise TypeError(f"a row has no {min(changes.keys() - ATTRIBUTES)}")
        return _make_row_of_values({**vars(row), **changes})
