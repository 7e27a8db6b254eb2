"""What was found out about a group of jobs that ran together, the same for all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Self


@dataclass(frozen=True, kw_only=True, slots=True)
class Resource:
    """How full one resource was: for each job alone, and for each while all of them ran."""

    name: str
    column: str
    unit: str
    alone: tuple[float | None, ...]
    """One a job; None: not known."""
    together: tuple[float | None, ...]
    full_alone: tuple[bool, ...]
    full_together: bool
    """For one of the jobs at least."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """What `as_dict` gave, back from JSON."""
        values: dict[str, Any] = {attribute.name: stored[attribute.name] for attribute in fields(cls)}
        for name in ("alone", "together", "full_alone"):
            values[name] = tuple(values[name])
        return cls(**values)


@dataclass(frozen=True, kw_only=True, slots=True)
class GroupFacts:
    """`Record.together`, as far as rows need it."""

    jobs: int | None = None
    """How many they were."""
    no_prediction: str | None = None
    """Why nothing was predicted."""
    undecidable: str | None = None
    """Why the version that measured them found no verdict."""
    gain_range: tuple[float, float] | None = None
    """The lowest and the highest overlap gain that this version found possible."""
    resources: tuple[Resource, ...] = ()

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """From a stored record."""
        ends = stored.get("gain_range")
        return cls(
            jobs=stored.get("jobs"),
            no_prediction=stored.get("no_prediction"),
            undecidable=stored.get("undecidable"),
            gain_range=(ends[0], ends[1]) if ends else None,
            resources=tuple(Resource.from_dict(resource) for resource in stored.get("resources") or ()),
        )
