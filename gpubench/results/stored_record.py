"""Stored records read back: the one place where what their files say is checked, by the definition of the columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from gpubench.basics.quoted import clean
from gpubench.basics.regular_file import read_regular
from gpubench.datasets.facts import DataFacts
from gpubench.schema.columns import BY_NAME, EPOCH_COLUMNS, HUGE, Amount, Count, Signed
from gpubench.schema.record import FIRST_ROUND, RECORD_SCHEMA, GroupRecord, Record
from gpubench.schema.trial_fields import FIELDS, TYPES
from gpubench.schema.validation import error_message, first

MOST_ATTEMPTS = 1_000_000
"""Nobody makes more at one unit: a larger number has been damaged."""


MOST_ERRORS = 10_000
"""More are not gone through: each takes a kilobyte."""


FEW = 20
"""What is wrong with one value stands together: of each type that it might have, why it is none."""


LONGEST = 250
"""Signs of a reason: it may quote the file."""


class DamagedError(Exception):
    """A record that can't be used. The message says why, in a few words that follow the file's name."""


class NewerError(DamagedError):
    """One that is whole, and of a later version."""


def bytes_of(path: Path) -> bytes:
    """What is in a file of the records folder. Raises OSError, for one that no attempt can be so large, too."""
    return read_regular(path)


def read(path: Path) -> list[Record]:
    """The attempt in a file of the records folder: one record, or one for each job of a group.

    Every value has its column's type and range, and the file has the attempt's name. Raises DamagedError.
    """
    try:
        text = bytes_of(path)
    except OSError as error:
        raise DamagedError(f"can't be read ({error.strerror})") from None
    try:
        if path.name.startswith("g"):
            _GROUP_SHAPE.model_validate_json(text, strict=True)
            group = GroupRecord.model_validate_json(text)
            unit_id, number, jobs = group.group_id, group.attempt, group.jobs
        else:
            _SHAPE.model_validate_json(text, strict=True)
            record = Record.model_validate_json(text)
            unit_id, number, jobs = record.trial_id, record.attempt, [record]
    except ValidationError as error:
        raise _damage(error, _GROUP_SHAPE if path.name.startswith("g") else _SHAPE) from None
    if path.name != (name := f"{unit_id}-{number}.json"):
        raise DamagedError(f"says that it is {name[:100]}")
    return jobs


def _damage(error: ValidationError, shape: type[BaseModel]) -> DamagedError:
    """What is wrong, in a few words; of a newer version only that, for all else may be new as well."""
    if error.error_count() > MOST_ERRORS:
        return DamagedError(f"is damaged in {error.error_count():,} places")
    errors = error.errors(include_url=False)
    for one in errors:
        if one["loc"][-1:] == ("schema_version",) and one["type"] == "less_than_equal":
            version = str(one["input"])[:20]
            return NewerError(
                f"was written by a newer gpubench (schema_version {version}); update gpubench to read it"
            )
    if errors[0]["type"] == "json_invalid":
        return DamagedError("is not JSON (half written?)")
    said = error_message(first(errors[:FEW], shape), shape, table="an object in braces")
    return DamagedError(clean(f"is damaged: {said}", LONGEST))


# ---- what may stand where ----


class _Part(BaseModel):
    """Values by name, each absent or null if need be. Names of other versions are let through: nobody reads them."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


def _part(name: str, kinds: Mapping[str, Any], needed: Collection[str] = ()) -> type[_Part]:
    """`needed`: what must be there."""
    fields: dict[str, Any] = {
        key: (kind, ...) if key in needed else (kind | None, None) for key, kind in kinds.items()
    }
    return create_model(name, __base__=_Part, **fields)


def _bounded(value: Any) -> Any:
    """Fields of trials and facts of images have no upper bounds of their own."""
    if isinstance(value, tuple):
        for one in value:
            _bounded(one)
    elif isinstance(value, (int, float)) and not abs(value) <= HUGE:
        raise ValueError(f"must be at most {HUGE:g}")
    return value


def _with_bounds(kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Annotated[kind, AfterValidator(_bounded)] for name, kind in kinds.items()}


class _Source(_Part):
    source: str | None = None
    period_s: Amount | None = None
    samples: Count | None = None
    gaps: Count | None = None


class _Solo(_Part):
    trial_id: str
    attempt: Count


class _Resource(_Part):
    name: str
    column: str
    unit: str
    alone: list[Signed | None]
    together: list[Signed | None]
    full_alone: list[bool]
    full_together: bool


class _Together(_Part):
    jobs: Count | None = None
    no_prediction: str | None = None
    undecidable: str | None = None
    gain_range: tuple[Signed, Signed] | None = None
    solos: list[_Solo | None] | None = None
    resources: list[_Resource] | None = None


class _Definition(_Part):
    files: str | None = None
    cpu: list[Any] | None = None
    gpu: list[Any] | None = None


_COLUMNS = _part(
    "_Columns",
    {name: column.holds for name, column in BY_NAME.items() if name not in FIELDS}
    | _with_bounds({name: TYPES[name] for name in BY_NAME if name in FIELDS}),
)
_RESOLVED = create_model(
    "_Resolved", __base__=_COLUMNS, cpu_ids=(list[Count] | None, None), gpu_uuids=(list[str] | None, None)
)
_EPOCH = _part(
    "_Epoch", {c.name: c.holds for c in EPOCH_COLUMNS[2:-1]}, needed=("epoch", "warmup", "epoch_time_s")
)
_Version = Annotated[int, Field(ge=1, le=RECORD_SCHEMA)]
_Attempt = Annotated[int, Field(ge=1, le=MOST_ATTEMPTS)]
_Seconds = dict[str, Signed]

_SHAPE = create_model(
    "_Shape",
    __base__=Record,
    schema_version=(_Version, FIRST_ROUND),
    attempt=(_Attempt, 1),
    round=(_Attempt, 1),
    trial=(_COLUMNS, ...),
    variant_definition=(_Definition, _Definition()),
    data=(_part("_Data", _with_bounds(get_type_hints(DataFacts))), None),
    resolved=(_RESOLVED, None),
    result=(_COLUMNS, None),
    environment=(_COLUMNS, None),
    provenance=(dict[str, str | _Source | None], {}),
    epochs=(Annotated[list[_EPOCH], FailFast()], []),  # type: ignore[valid-type, arg-type]
    windows=(Annotated[list[dict[str, Any]], FailFast()], []),
    span=(_Seconds, {}),
    phases=(_Seconds, {}),
    together=(_Together, None),
)
"""A record as it may be stored. Only looked at: what is told is the Record, whose values stay as they were written."""


class _Group(GroupRecord):
    @model_validator(mode="after")
    def _are_of_one_group(self) -> Self:
        for job in self.jobs:
            if (job.group_id, job.attempt) != (self.group_id, self.attempt):
                raise ValueError("its jobs are not all of this attempt at this group")
            if job.group is None or job.job is None:
                raise ValueError("a job has no name")
        return self


_GROUP_SHAPE = create_model(
    "_GroupShape",
    __base__=_Group,
    schema_version=(_Version, FIRST_ROUND),
    attempt=(_Attempt, ...),
    jobs=(Annotated[list[_SHAPE], Field(min_length=1), FailFast()], ...),
)
