"""What stored results tell of one machine: its trials, how many GPUs and CPUs it has, and the images it trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.datasets.facts import DataFacts
from gpubench.node import environment
from gpubench.node.environment import Gpu, Machine
from gpubench.plan.sources import Disk, Shown
from gpubench.results.counting import counting
from gpubench.schema import catalog
from gpubench.schema.record import Record


class Counts(NamedTuple):
    """What a host has, or what of it could be used."""

    gpus: int
    cpus: int | None
    """None: not on record."""


@dataclass(frozen=True, kw_only=True)
class StoredRows:
    """The attempts that count, of one machine."""

    key: str
    """Its GPUs, or its CPU where it has measured on no GPU."""
    records: tuple[Record, ...]
    here: Machine | None
    """This machine, where the records are its own."""
    folders: tuple[tuple[Record, ...], ...] = ()
    """The same records by folder: one that lies in several is in each of them."""
    others: tuple[str, ...] = ()
    """Other machines that have results in the same folders. They are left out."""

    @property
    def device(self) -> str:
        """What a trial that names no device runs on."""
        return "cuda" if any(_device(record) == "cuda" for record in self.records) else "cpu"

    @cached_property
    def counts(self) -> Counts:
        """How many GPUs and CPUs: all of one host, lest one come out that never existed.

        Of this machine: GPUs hidden at present are there, if its rows show them. Of another: what could be used where
        its newest row was measured with most GPUs.
        """
        if self.here is None:
            return _counts(self._fullest)
        own = [_counts(record) for record in self.records if _cpu_name(record) == self.here.cpu_name]
        return Counts(max(len(self.here.gpus), *(one.gpus for one in own), 0), self.here.cpu_count)

    @cached_property
    def unlike(self) -> tuple[Counts, ...]:
        """Other counts that its rows were measured with, most first: of other hosts, or where less could be used.

        A trial on the CPU says nothing of GPUs, and what was left unsaid is not another count.
        """
        found = set()
        for record in self.records:
            gpus, cpus = _counts(record)
            seen = Counts(gpus if _device(record) == "cuda" else 0, cpus)
            others = [there and here and there != here for there, here in zip(seen, self.counts, strict=True)]
            if any(others):
                found.add(seen)
        return tuple(sorted(found, key=lambda one: (one.gpus, one.cpus or 0), reverse=True))

    @cached_property
    def machine(self) -> Machine:
        """Enough to lay jobs out on it."""
        gpus, cpus = self.counts
        # A log may not say how many CPUs its host had: then its time counts as that of one.
        cpus = cpus or 1
        told = self._fullest.environment
        return Machine(
            host=self.here.host if self.here else str(told.get("host") or ""),
            gpus=tuple(
                Gpu(index=n, uuid=f"GPU-{n}", name=str(told.get("gpu_name")), memory_mib=0)
                for n in range(gpus)
            ),
            driver=None,
            cpu_name=str(told.get("cpu_name")),
            cpu_ids=tuple(range(cpus)),
            cpu_count=cpus,
        )

    @cached_property
    def _fullest(self) -> Record:
        """The row with most GPUs; of several the newest."""
        return max(self.records, key=lambda record: (_counts(record).gpus, record.started_at))


def stored_of(
    folders: Iterable[Sequence[Record]],
    here: Machine,
    device: str | None = None,
    sweep: str = "gpubench sweep",
) -> StoredRows:
    """The results of this machine; where it has none, of the machine that has most, published logs last.

    `folders`: the records of each. `device`: where jobs must run on a GPU or on a CPU. Results on a machine's CPU stay
    with those on its GPUs. `sweep`: the command that measures into these folders. Raises UnusableError where nothing
    ended ok.
    """
    each = [tuple(counting(records).values()) for records in folders]
    found = {
        (record.trial_id, record.attempt, record.started_at, record.machine_key): record
        for records in each
        for record in records
    }
    usable = [r for r in found.values() if r.status == "ok" and device in (None, _device(r))]
    measured = [record for record in usable if record.source == "measured"]
    count = Counter(record.machine_key for record in measured or usable)
    if not count:
        where, more = ("", "") if device is None else (f" with device {device}", f" --device {device}")
        raise UnusableError(f"no trial in these results ended ok{where}; to measure some: {sweep}{more}")
    kinds = ["cuda", "cpu"] if here.gpus else ["cpu"]
    own = [environment.machine_key(here, kind) for kind in kinds]
    key = next((one for one in own if one in count), count.most_common(1)[0][0])
    of_key = [record for record in found.values() if record.machine_key == key]
    cpus = {_cpu_name(record) for record in of_key}
    keys = {key, *(cpus if key not in cpus else ())}
    return StoredRows(
        key=key,
        records=tuple(record for record in found.values() if record.machine_key in keys),
        folders=tuple(tuple(r for r in records if r.machine_key in keys) for records in each),
        here=here if key in own else None,
        others=tuple(sorted({r.machine_key for r in found.values() if r.status == "ok"} - keys)),
    )


def _device(record: Record) -> str | None:
    return record.resolved.get("device") or record.trial.device


def _cpu_name(record: Record) -> str | None:
    return record.environment.get("cpu_name")


def _counts(record: Record) -> Counts:
    return Counts(record.environment.get("gpu_count") or 0, record.environment.get("cpu_count"))


class Remembered(Disk):
    """Looks on the disk; of images and model files that do not lie there, the results tell.

    `policy`: under `fail` rows from which images were left out tell of other images than those that are asked about.
    """

    def __init__(
        self,
        records: Iterable[Record],
        policy: catalog.BadImages = "fail",
        shown: Shown = lambda _: nullcontext(),
    ) -> None:
        super().__init__(policy, shown)
        self._records = list(records)
        self._all_images = policy == "fail"

    def data(self, name: str) -> DataFacts:
        try:
            return super().data(name)
        except GpubenchError:
            # Those that have read the images know most of them.
            told = [
                r
                for r in self._records
                if r.trial.data == name
                and r.data.get("fingerprint")
                and not (self._all_images and r.data.get("skipped_images"))
            ]
            told.sort(
                key=lambda record: (
                    record.data["fingerprint"] != "none",
                    bool(record.data.get("skipped_images")),
                    record.started_at,
                )
            )
            if not told:
                raise
            self.known_data[name] = _facts(name, told[-1])
            return self.known_data[name]

    def model(self, name: str) -> str:
        try:
            return super().model(name)
        except UsageError:
            if not any(record.trial.model == name for record in self._records):
                raise
            self.known_models[name] = ""
            return ""


def _facts(name: str, record: Record) -> DataFacts:
    known = record.resolved | record.data
    return DataFacts(
        name=name,
        kind="folder",
        root=None,
        fingerprint=known["fingerprint"],
        train_images=known.get("train_images") or 0,
        val_images=known.get("val_images") or 0,
        num_classes=known.get("num_classes") or 0,
        size=known.get("size"),
    )
