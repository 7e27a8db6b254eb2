"""What the first node and an agent say to each other, message by message. Each side checks what comes in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from gpubench.basics.checked import reader
from gpubench.basics.quoted import clean
from gpubench.schema.attempt import Attempt
from gpubench.schema.events import Count, Event, Finite
from gpubench.schema.order import TrialOrder
from gpubench.schema.record import Ended as Ending
from gpubench.schema.samples import Samples, Series
from gpubench.schema.watched import Watched

# ---------------------------------------------------------------- what an agent is told


@dataclass(frozen=True, kw_only=True, slots=True)
class Open:
    """The first word: what is this node?"""

    request: Literal["open"] = "open"
    first: str
    """The first node, by name or IP address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskTime:
    """What does your clock say?"""

    request: Literal["time"] = "time"
    number: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunTrial:
    """Run this node's part of a trial."""

    request: Literal["run"] = "run"
    order: TrialOrder
    left_out: tuple[str, ...]
    timeout_s: float
    may_share: bool
    """Whether it runs on GPUs that another sweep of that node has, too."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """Ranks of all nodes have reported their results: yours may end."""

    request: Literal["release"] = "release"


@dataclass(frozen=True, kw_only=True, slots=True)
class StopTrial:
    """End the trial now."""

    request: Literal["stop"] = "stop"


@dataclass(frozen=True, kw_only=True, slots=True)
class Beat:
    """The first node is alive."""

    request: Literal["beat"] = "beat"


Request = Open | AskTime | RunTrial | Release | StopTrial | Beat
read_request: Callable[[Any], Request] = reader(Open, AskTime, RunTrial, Release, StopTrial, Beat)


# ---------------------------------------------------------------- what an agent tells


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuThere:
    """A GPU that the agent may use."""

    uuid: str
    name: str
    memory_mib: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """What this node is."""

    told: Literal["here"] = "here"
    version: str
    """Of gpubench."""
    host: str
    pid: int
    gpus: Sequence[GpuThere]
    cpu_name: str
    cpu_ids: Sequence[Count]
    address: str
    """The first node's IP address, as this node knows it."""
    interface: str
    """The network interface by which that is reached from here."""
    loopback: str
    """Nodes that say the same have their loopback addresses in common."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unable:
    """Why this node can't take part. The agent ends."""

    told: Literal["unable"] = "unable"
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ready:
    """Trials can be started."""

    told: Literal["ready"] = "ready"


@dataclass(frozen=True, kw_only=True, slots=True)
class Time:
    """To AskTime."""

    told: Literal["time"] = "time"
    number: int
    at: Finite


@dataclass(frozen=True, kw_only=True, slots=True)
class Complete:
    """All ranks of this node have reported their results, and wait for Release."""

    told: Literal["complete"] = "complete"


@dataclass(frozen=True, kw_only=True, slots=True)
class Alive:
    """The agent is alive."""

    told: Literal["alive"] = "alive"


@dataclass(frozen=True, kw_only=True, slots=True)
class SentSeries:
    """A series of samples."""

    metric: str
    device: str
    times: list[Finite]
    values: list[float]
    gaps: Count
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SentWatched:
    """What was seen of this node's part of a trial: `Watched`, before it is cut to windows."""

    series: list[SentSeries]
    gpus: list[str]
    uuids: dict[str, str]
    baseline_mib: dict[str, Finite]
    cpus: Finite
    cpu_metric: str
    cpu_source: str
    spare_cpus: Finite
    trained_until: Finite | None
    """None: it never had ended."""
    power_source: str
    skipped: list[tuple[Finite, list[Finite]]]
    strangers: list[str]
    desktops: list[str]
    max_sm_clock_mhz: Finite | None

    @classmethod
    def of(cls, seen: Watched) -> Self:
        return cls(
            series=[
                SentSeries(
                    metric=metric,
                    device=device,
                    times=one.times,
                    values=one.values,
                    gaps=one.gaps,
                    reason=one.reason,
                )
                for (metric, device), one in seen.samples.each()
            ],
            gpus=list(seen.gpus),
            uuids=dict(seen.uuids),
            baseline_mib=dict(seen.baseline_mib),
            cpus=seen.cpus,
            cpu_metric=seen.cpu_metric,
            cpu_source=seen.cpu_source,
            spare_cpus=seen.spare_cpus,
            trained_until=None if seen.trained_until == float("inf") else seen.trained_until,
            power_source=seen.power_source,
            skipped=[(period, list(times)) for period, times in seen.skipped.items()],
            strangers=list(seen.strangers),
            desktops=list(seen.desktops),
            max_sm_clock_mhz=seen.max_sm_clock_mhz,
        )

    def watched(self) -> Watched:
        samples = Samples()
        for one in self.series:
            samples.put(one.metric, one.device, Series(one.times, one.values, one.gaps, one.reason))
        return Watched(
            samples=samples,
            gpus=tuple(self.gpus),
            uuids=self.uuids,
            baseline_mib=self.baseline_mib,
            cpus=self.cpus,
            cpu_metric=self.cpu_metric,
            cpu_source=self.cpu_source,
            spare_cpus=self.spare_cpus,
            trained_until=float("inf") if self.trained_until is None else self.trained_until,
            power_source=self.power_source,
            skipped={period: tuple(times) for period, times in self.skipped},
            strangers=tuple(self.strangers),
            desktops=tuple(self.desktops),
            max_sm_clock_mhz=self.max_sm_clock_mhz,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What happened on this node, with what its processes printed. `Attempt`, of this node's ranks and clock."""

    told: Literal["ended"] = "ended"
    events: list[Annotated[Event, Field(discriminator="event")]]
    forced: tuple[Ending, str] | None
    launched: Finite
    started: Finite
    finished: Finite
    last_words: str
    watched: SentWatched
    log: str

    @classmethod
    def of(cls, done: Attempt, log: str) -> Self:
        return cls(
            events=list(done.events),
            forced=done.forced,
            launched=done.launched,
            started=done.started,
            finished=done.finished,
            last_words=done.last_words,
            watched=SentWatched.of(done.watched),
            log=log,
        )

    def attempt(self) -> Attempt:
        return Attempt(
            events=self.events,
            forced=self.forced,
            launched=self.launched,
            started=self.started,
            finished=self.finished,
            last_words=self.last_words,
            watched=self.watched.watched(),
        )


Told = Here | Unable | Ready | Time | Complete | Alive | Ended
_TOLD: TypeAdapter[Told] = TypeAdapter(
    Annotated[Told, Field(discriminator="told")], config=ConfigDict(extra="forbid", strict=True)
)


class ForeignWordsError(Exception):
    """A message that no agent of this version sends. The text says what is wrong with it."""


def read_told(data: bytes) -> Told:
    """What an agent tells. Raises ForeignWordsError."""
    try:
        return _TOLD.validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ForeignWordsError(clean(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 200)) from None
