"""Which rows may be compared: those of one workload on one machine, along one axis and what may fairly move with it.

The workload is every trial field: what is computed, on which images, how they are fed, by what resources. All here
counts by codes, a number for each value of a field, so that no row is looked at by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpubench.schema import catalog
from gpubench.schema.columns import FIELD_COLUMNS
from gpubench.schema.record import ALLOTTED
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FIELDS, select_fields

Axes: TypeAlias = Sequence[Sequence[str]]
"""The axes that an experiment asks for, each a group of fields that move together: `[["batch_size", "lr"]]`."""
Codes: TypeAlias = npt.NDArray[np.int64]
"""A number for each value, in the order in which they come; -1 where it is missing."""
Mask: TypeAlias = npt.NDArray[np.bool_]

CANDIDATES: tuple[str, ...] = tuple(name for name in FIELD_COLUMNS if not ABOUT[name].repeats)
"""Fields that may tell rows apart: what only tells repeats apart never does."""
AUTO = frozenset(select_fields(lambda about: about.auto))
"""Fields of which a missing value is one that the machine has yet to settle, and no other value."""
FOLLOWS: dict[str, tuple[str, ...]] = {name: about.follows for name, about in ABOUT.items() if about.follows}
"""Field -> those that fill it where nobody asked for it. While these determine it, it tells nothing new."""
OLD_DEFAULTS: dict[str, Any] = {name: DEFAULTS[name] for name in select_fields(lambda about: about.added)}
"""Fields that came after the first results were stored: what a row that lacks them means."""
STRATEGY_FIELDS: tuple[str, ...] = ("strategy", *catalog.OWN_FIELDS)
"""Fields that say how devices share the work."""
DEVICES = select_fields(lambda about: about.of_devices)
"""Fields that say on what devices a trial runs, and how they share the work."""
COUNTS = frozenset({"gpus", "ranks"})
"""Those that say how many devices."""
MAY_MOVE_ALONG: dict[str, frozenset[str]] = {
    axis: frozenset(name for name in FIELDS if axis in ABOUT[name].moves_with)
    for axis in {axis for name in FIELDS for axis in ABOUT[name].moves_with}
}
"""Axis -> the fields that may move along it, where they are tied to it. `is_fair_step` says how far strategy and batch
size may."""
IMPLIED = frozenset(CANDIDATES) - set(ALLOTTED)
"""Fields that may follow an axis by themselves: CPUs and loaders are looked at apart."""
AUTO_ALIKE = ("gpu_ids", "workers")
"""Fields that may be left to the machine in a way that makes unlike values one."""
AUTO_FLAGS = ("is_asked_known", *(f"is_{field}_auto" for field in AUTO_ALIKE))
PLACES = ("machine", "gpu_name", "cpu_name", "group", "job")
"""Columns beside the fields that say where a row ran."""


def encode_values(values: Any) -> Codes:
    """A number for each value, in order of first appearance; -1 where it is missing."""
    codes: Codes = pd.factorize(values)[0].astype(np.int64)
    return codes


def combine_codes(size: int, columns: Iterable[Codes]) -> Codes:
    """A number for each combination of these codes, in order of first appearance; missing values are values here.

    `size`: how many rows there are; without columns they are all alike.
    """
    combined = np.zeros(size, dtype=np.int64)
    for codes in columns:
        wide = combined * (codes.max(initial=-1) + 2) + codes
        combined = pd.factorize(wide)[0].astype(np.int64)
    return combined


def list_asked_fields(axes: Axes) -> tuple[str, ...]:
    """Every field of the axes, flat."""
    return tuple(dict.fromkeys(field for group in axes for field in group))


def find_tied_fields(axes: Axes, *fields: str) -> set[str]:
    """The other fields that are on one axis with any of `fields`, and so move with them."""
    return {other for group in axes if set(fields) & set(group) for other in group} - set(fields)


def find_movable_fields(axis: str, tied: Collection[str]) -> frozenset[str]:
    """The fields of `tied` that may move along `axis`; where devices are among them, what may move along those, too."""
    axes = {axis, *(COUNTS & set(tied))}
    may = frozenset().union(*(MAY_MOVE_ALONG.get(field, frozenset()) for field in axes))
    return (may & set(tied)) - {axis}


def count_devices(rows: pd.DataFrame) -> npt.NDArray[np.float64]:
    """GPUs of each row's trial; on a CPU its ranks."""
    gpus, ranks = (rows[name].to_numpy("float64", na_value=np.nan) for name in ("gpus", "ranks"))
    return np.where(gpus > 0, gpus, np.where(ranks > 0, ranks, 1.0))


def _count_values(field: str, codes: Codes) -> int:
    """How many values a field has; those that the machine has yet to settle are none."""
    return len(np.unique(codes[codes >= 0] if field in AUTO else codes))


@dataclass(frozen=True, kw_only=True)
class EncodedFields:
    """The trial fields of rows as codes."""

    codes: Mapping[str, Codes]
    """Of CANDIDATES and of PLACES."""
    frame: pd.DataFrame
    """Their values, and what was left to the machine."""
    is_first_gpus: Mask
    """Whether GPU ids are the first so many (0, 1, …), and so tell no more than how many there are."""

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> EncodedFields:
        """The fields of runs, or of the rows of a summary."""
        codes = {}
        for name in CANDIDATES:
            values = frame[name]
            default = OLD_DEFAULTS.get(name)
            codes[name] = encode_values(values if default is None else values.fillna(default))
        codes |= {name: encode_values(frame[name]) for name in PLACES if name in frame}
        different = frame["gpu_ids"].drop_duplicates().dropna()
        counting = {ids for ids in different if ids == tuple(range(len(ids)))}
        is_first_gpus = frame["gpu_ids"].isin(counting).to_numpy()
        return cls(codes=codes, frame=frame[[*codes, *AUTO_FLAGS]], is_first_gpus=is_first_gpus)

    def __len__(self) -> int:
        return len(self.frame)

    def take(self, places: Mask | npt.NDArray[np.int64]) -> EncodedFields:
        """Those of some of the rows, in this order."""
        codes = {name: values[places] for name, values in self.codes.items()}
        return EncodedFields(
            codes=codes, frame=self.frame.iloc[places], is_first_gpus=self.is_first_gpus[places]
        )

    @cached_property
    def is_alone(self) -> Mask:
        """Which rows are of trials that ran alone: all but the jobs of groups."""
        return self.codes["group"] < 0

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many values each field has."""
        return {name: _count_values(name, self.codes[name]) for name in CANDIDATES}

    @cached_property
    def devices(self) -> npt.NDArray[np.float64]:
        """As `count_devices`."""
        return count_devices(self.frame)

    @cached_property
    def strategy(self) -> Codes:
        """How the devices shared the work: the strategy, and what belongs to that alone."""
        return combine_codes(len(self), [self.codes[name] for name in STRATEGY_FIELDS])

    def is_numeric(self, field: str) -> bool:
        """Whether all values of a field are numbers. A command may have no batch size, beside others that have one."""
        values = self.frame[field]
        if field == "batch_size" and values.nunique() > 1:
            values = values.dropna()
        if field not in AUTO and OLD_DEFAULTS.get(field) is None and values.isna().any():
            return False
        return bool(pd.api.types.is_numeric_dtype(values)) and not pd.api.types.is_bool_dtype(values)

    def is_auto(self, field: str) -> Mask:
        """Which trials left `field`, of AUTO_ALIKE, to the machine, as far as records tell."""
        return self.frame[f"is_{field}_auto"].to_numpy(dtype=bool)

    def encode_workload_field(self, field: str, free: Collection[str]) -> Codes:
        """The codes by which rows of different workloads are told apart."""
        codes = self.codes[field]
        if field == "gpu_ids":  # the first ones, or others of the same model where one of these was lost
            alike = self.is_first_gpus | self.is_auto(field)
        elif field == "workers" and {*COUNTS, "cpus"} & set(free):  # their number follows
            alike = self.is_auto(field)
        else:
            return codes
        return np.where(alike, codes.max(initial=-1) + 1, codes)

    def is_determined(self, field: str, by: Collection[str]) -> bool:
        """Whether rows that are equal in all of `by` never differ in `field`."""
        if self.counts[field] <= 1:
            return True
        groups = combine_codes(len(self), [self.codes[name] for name in by])
        known = self.codes[field] >= 0 if field in AUTO else np.ones(len(self), dtype=bool)
        both = combine_codes(len(self), [groups, self.codes[field]])
        return len(np.unique(both[known])) == len(np.unique(groups[known]))

    def list_varied_fields(self, axes: Axes = ()) -> tuple[str, ...]:
        """The fields that differ between rows, in the order of their columns.

        One that was asked for as an axis always counts; one that merely follows another (FOLLOWS) does not.
        """
        wanted = list_asked_fields(axes)
        return tuple(
            field
            for field in CANDIDATES
            if self.counts[field] > 1
            and (field in wanted or field not in FOLLOWS or not self._is_redundant(field))
        )

    def _is_redundant(self, field: str) -> bool:
        """Whether a field tells nothing beside those of FOLLOWS.

        Of GPU ids, only that they are the first so many, or stand for these where one was lost; of loaders, only if
        none or all trials alone left their number to the machine.
        """
        if field == "gpu_ids":
            known = self.codes[field] >= 0
            if not (self.is_first_gpus | self.is_auto(field))[known].all():
                return False
        if field == "workers":
            is_on_record = self.is_alone & self.frame["is_asked_known"].to_numpy(dtype=bool)
            if len(np.unique(self.is_auto(field)[is_on_record])) > 1:
                return False
        return self.is_determined(field, FOLLOWS[field])

    def find_fixed_fields(self) -> dict[str, Any]:
        """The fields that have one and the same known value in all rows, with that value."""
        values = {}
        for name in CANDIDATES:
            if self.counts[name] == 1:
                known = self.frame[name].dropna().array[:1]
                value = known[0] if len(known) else OLD_DEFAULTS.get(name)
                if value is not None:
                    values[name] = value.item() if isinstance(value, np.generic) else value
        return values

    def find_axis(self, axes: Axes) -> str | None:
        """The field that growth runs along: the batch size if it varies, else the GPUs, else the first number.

        Where the experiment's axes are known only they count, and jobs of groups never do. None if nothing numeric
        varies.
        """
        alone = self.take(self.is_alone)
        fields = [
            field for field in alone.list_varied_fields(axes) if not axes or field in list_asked_fields(axes)
        ]
        numeric = [field for field in fields if alone.is_numeric(field)]
        return next((field for field in ("batch_size", "gpus", *numeric) if field in numeric), None)

    def find_fields_tied_to_axis(self, axis: str, axes: Axes) -> tuple[str, ...]:
        """The fields that change together with `axis`, and may: those on one axis with it, and those that nobody asked
        for and that it determines (the strategy that a GPU count implies, say). Without known axes: none."""
        alone = self.take(self.is_alone)
        zipped = {field for group in axes if axis in group for field in group}
        candidates = IMPLIED - {*list_asked_fields(axes)} if axes else frozenset()
        implied = {
            field for field in candidates if alone.counts[field] > 1 and alone.is_determined(field, (axis,))
        }
        return tuple(sorted(find_movable_fields(axis, zipped | implied)))

    def encode_series(self, axis: str, tied: Collection[str] = ()) -> tuple[Codes, Codes]:
        """Of each row its series, and inside that what further tells rows apart, both as codes.

        Rows of one series differ in `axis` alone, in those of `tied` that may move along it, and in what other fields
        determine. Rows of different machines are in different series. `self`: of trials alone.
        """
        free = {axis, *find_movable_fields(axis, tied)}
        every_code = {name: self.encode_workload_field(name, free) for name in CANDIDATES if name not in free}
        codes = {name: values for name, values in every_code.items() if _count_values(name, values) > 1}
        machines = self.codes["machine"]
        several = [machines] if len(np.unique(machines[machines >= 0])) > 1 else []
        # A series need not be named by what other fields determine.
        sources = {field: [other for other in FOLLOWS.get(field, ()) if other in codes] for field in codes}
        shown = [
            field for field in codes if not (sources[field] and self.is_determined(field, sources[field]))
        ]
        # A planned row, which lacks what the machine settles, joins the series that it will be of.
        every = combine_codes(len(self), [*codes.values(), *several])
        return combine_codes(len(self), [*(codes[field] for field in shown), *several]), every

    def is_fair_step(self, before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> Mask:
        """Whether what moves along between neighbours of a series may; both are places of rows.

        Where the number of devices changes, the batch size or the batch a device must stay, and the strategy, but that
        `single` on one device is where every strategy begins. Where it stays, a larger batch brings no other strategy,
        GPUs, loaders or CPUs.
        """

        def is_same(name: str) -> Mask:
            is_equal: Mask = self.codes[name][before] == self.codes[name][after]
            return is_equal

        devices_before, devices_after = self.devices[before], self.devices[after]
        batch = self.frame["batch_size"].to_numpy("float64", na_value=np.nan)
        same_batch = is_same("batch_size")
        per_device = batch / self.devices
        beside = np.logical_and.reduce([is_same(name) for name in ("strategy", "gpu_ids", "workers", "cpus")])
        fewer = np.where(devices_before < devices_after, before, after)
        begins = (self.devices[fewer] == 1) & (self.frame["strategy"].to_numpy()[fewer] == "single")
        same_share = same_batch | (per_device[before] == per_device[after])
        fair: Mask = np.where(
            devices_before == devices_after,
            same_batch | beside,
            same_share & (begins | (self.strategy[before] == self.strategy[after])),
        )
        return fair
