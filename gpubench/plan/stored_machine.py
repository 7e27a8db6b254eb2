"""The machine that stored results are of, and what they remember of images and models that are gone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpubench.basics.errors import GpubenchError, UnusableError, UsageError
from gpubench.datasets.facts import DataFacts
from gpubench.node.environment import Gpu, Machine, make_hardware_key
from gpubench.plan.sources import DiskSources
from gpubench.schema import catalog
from gpubench.schema.record import Record


@dataclass(frozen=True, kw_only=True)
class StoredMachine:
    """A machine by what its results tell, and the attempts that were measured on it."""

    key: str
    """Its GPUs, or its CPU where it has measured on no GPU."""
    records: tuple[Record, ...]
    machine: Machine
    """Enough to lay jobs out on it."""
    cpus: int | None
    """None: not on record."""
    is_here: bool
    other_machines: tuple[str, ...]
    """Other machines that have results beside it. They are left out."""

    @property
    def device(self) -> str:
        """What a trial that names no device runs on."""
        return "cuda" if any(find_record_device(record) == "cuda" for record in self.records) else "cpu"


def choose_measured_machine(
    records: Iterable[Record], this_machine: Machine, device: str | None = None
) -> StoredMachine:
    """The results of this machine; where it has none, of the machine that has most, published logs last.

    `records`: attempts that count, of one folder or several; the same one in two folders counts once. `device`: where
    jobs must run on a GPU or on a CPU. Results on a machine's CPU stay with those on its GPUs. Raises UnusableError
    where nothing ended ok.
    """
    attempts: dict[tuple[object, ...], Record] = {}
    for record in records:
        attempt = record.trial_id, record.attempt, record.started_at, record.machine_key
        attempts.setdefault(attempt, record)
    ok = [record for record in attempts.values() if record.status == "ok"]
    usable = [record for record in ok if device in (None, find_record_device(record))]
    measured = [record for record in usable if record.source == "measured"]
    count = Counter(record.machine_key for record in measured or usable)
    if not count:
        raise UnusableError(f"no trial in these results ended ok{f' with device {device}' if device else ''}")
    keys_here = [
        make_hardware_key(this_machine, kind) for kind in (["cuda", "cpu"] if this_machine.gpus else ["cpu"])
    ]
    key = next((name for name in keys_here if name in count), count.most_common(1)[0][0])
    cpu_names = {r.environment.get("cpu_name") for r in attempts.values() if r.machine_key == key}
    keys = {key, *(cpu_names if key not in cpu_names else ())}
    mine = tuple(record for record in attempts.values() if record.machine_key in keys)
    newest_of_most_gpus = max(mine, key=lambda record: (_count_gpus(record), record.started_at))
    facts, is_here = newest_of_most_gpus.environment, key in keys_here
    gpus, cpus = _count_gpus(newest_of_most_gpus), facts.get("cpu_count")
    if is_here:  # GPUs that are hidden at present are there, if its rows show them
        shown = [_count_gpus(r) for r in mine if r.environment.get("cpu_name") == this_machine.cpu_name]
        gpus, cpus = max(len(this_machine.gpus), *shown, 0), this_machine.cpu_count
    machine = Machine(
        host=this_machine.host if is_here else str(facts.get("host") or ""),
        gpus=tuple(
            Gpu(index=n, uuid=f"GPU-{n}", name=str(facts.get("gpu_name")), memory_mib=0) for n in range(gpus)
        ),
        driver=None,
        cpu_name=str(facts.get("cpu_name")),
        cpu_ids=tuple(range(cpus or 1)),
        cpu_count=cpus or 1,
    )
    other_machines = tuple(sorted({record.machine_key for record in ok} - keys))
    return StoredMachine(
        key=key,
        records=mine,
        machine=machine,
        cpus=cpus,
        is_here=is_here,
        other_machines=other_machines,
    )


def find_record_device(record: Record) -> str | None:
    """The device that a trial ran on, or was asked to."""
    device: str | None = record.resolved.get("device") or record.trial.get("device")
    return device


def _count_gpus(record: Record) -> int:
    return record.environment.get("gpu_count") or 0


class RecordedSources(DiskSources):
    """Looks on the disk; of images and model files that do not lie there, the results tell.

    `policy`: under `fail` rows from which images were left out tell of other images than those that are asked about.
    """

    def __init__(self, records: Sequence[Record], policy: catalog.BadImages = "fail") -> None:
        super().__init__(policy)
        self._records = records
        self._is_of_all_images = policy == "fail"

    def find_data_facts(self, name: str) -> DataFacts:
        """Facts of these images: those that have read them know most. Raises GpubenchError where nothing tells."""
        try:
            return super().find_data_facts(name)
        except GpubenchError:
            known = [
                record
                for record in self._records
                if record.trial.get("data") == name
                and record.data.get("fingerprint")
                and not (self._is_of_all_images and record.data.get("skipped_images"))
            ]
            if not known:
                raise
        best = max(
            known,
            key=lambda record: (
                record.data["fingerprint"] != "none",
                bool(record.data.get("skipped_images")),
                record.started_at,
            ),
        )
        facts = best.resolved | best.data
        counts = {count: facts.get(count) or 0 for count in ("train_images", "val_images", "num_classes")}
        self.known_data[name] = DataFacts(
            name=name, kind="folder", root=None, fingerprint=facts["fingerprint"], size=facts.get("size"), **counts
        )  # fmt: skip
        return self.known_data[name]

    def find_model_fingerprint(self, name: str) -> str:
        """The fingerprint of a model's file; empty where that is not here but the results know the model."""
        try:
            return super().find_model_fingerprint(name)
        except UsageError:
            if not any(record.trial.get("model") == name for record in self._records):
                raise
            return self.known_models.setdefault(name, "")
