"""What the claims of a question come to: a class a question, whose fields are all that its words need.

Rows are labels of the summary frame. Ratios are of rates: above 1 the candidate is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from gpubench.core.claims import Certainty, Claim
from gpubench.core.prediction import Goal


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """What would settle what is open, by a power analysis at 80 % power."""

    rounds: int
    """Of the whole sweep."""
    minutes: float | None
    """What the further ones take; None where no record tells."""
    is_of_seeds: bool = False
    """Whether these are seeds (`--repeats`) and no rounds, which would train the same again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The row that is recommended, and what it can cost to be wrong."""

    row: int
    bound: float | None
    """No other row of its series is more than this much faster, 95 % for all of them together (0.15: 15 %). None for
    one process."""
    gains: Mapping[int, float] = field(default_factory=dict)
    """Other rows of its series -> how much faster each may be at most, where that is above 0; the same confidence."""
    series: tuple[int, ...] = ()
    """All rows that it was chosen from, in the order of the axis."""
    is_firm: bool = False
    """Whether the bound is 25 % or less."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is common to all questions."""

    question: ClassVar[str]
    """The name of its file in `analyze/`."""
    word: Certainty
    """How sure its answer is."""
    claims: tuple[Claim, ...] = ()
    """All of its family, decided."""
    rows: tuple[int, ...] = ()
    """What it is about."""
    warnings: tuple[str, ...] = ()
    """Codes of warnings that touch it."""
    choice: Choice | None = None
    remedy: Remedy | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LeastCost:
    """Where along one series memory x time is least."""

    label: Mapping[str, object]
    """The fields that tell the series from others of the table; empty where it is the only one."""
    row: int
    """The least by the estimates."""
    low: int
    high: int
    """The range outside of which it is not, by the two chains of steps (or, for one process, by the noise)."""
    word: Certainty


@dataclass(frozen=True, kw_only=True)
class BatchSizeFinding(Finding):
    """Which batch size."""

    question: ClassVar[str] = "batch_size"
    label: Mapping[str, object] = field(default_factory=dict)
    """The fields that tell the chosen row's series from others, as GPUs and strategy."""
    fastest: int | None = None
    """The row with the best rate, where that is not the chosen one."""
    speed_gain: float | None = None
    """Rate of the fastest over the chosen one's, less 1."""
    memory_ratio: float | None = None
    """Memory of the fastest over the chosen one's."""
    as_fast: tuple[int, ...] = ()
    """Other rows that may be as fast as the chosen one, or faster: nothing excludes it."""
    slower: tuple[int, ...] = ()
    """Rows of the series that are slower for sure (or, of one process, beyond the noise)."""
    out_of_memory: int | None = None
    """The first row of the chosen series that ran out of memory."""
    interrupted: tuple[int, ...] = ()
    least_cost: tuple[LeastCost, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class SpeedUp:
    """A row against the same work on fewer devices."""

    claim: Claim
    devices: int
    baseline_devices: int
    same_batch_a_device: bool
    """Weak scaling; else the same global batch."""
    efficiency: float
    """Speed-up over how many times the baseline's devices: 0.8 is 80 %."""


@dataclass(frozen=True, kw_only=True)
class DevicesFinding(Finding):
    """What more devices bring."""

    question: ClassVar[str] = "devices"
    strategy: str = ""
    """Of the rows on more devices."""
    speed_ups: tuple[SpeedUp, ...] = ()


@dataclass(frozen=True, kw_only=True)
class VersusFinding(Finding):
    """One strategy, variant, precision, execution, optimizer … against another, all else equal."""

    question: ClassVar[str] = "versus"
    field: str = ""
    """The field that differs."""
    value: object = None
    """The candidate's."""
    baseline: object = None
    """The baseline's."""
    cpu_claims: tuple[Claim, ...] = ()
    """CPU seconds an epoch, where these differ by something that matters."""


@dataclass(frozen=True, kw_only=True)
class NetworkSizeFinding(Finding):
    """From what network size more devices are faster. Claims are in the order of GMACs."""

    question: ClassVar[str] = "network_size"
    devices: int = 0
    strategy: str = ""
    first_faster: int | None = None
    """The smallest network from which on all are faster; None where no end is decided."""
    gmacs: float | None = None
    """Of that network, for an image."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredJobGroup:
    """Jobs that ran together."""

    name: str
    """Empty for copies, which are named by what they are copies of."""
    label: Mapping[str, object] = field(default_factory=dict)
    """Fields that tell it from others of its name."""
    rows: tuple[int, ...]
    """Its jobs'."""
    jobs: int
    """How many they were; a job without a record has no row."""
    work: float | None = None
    """Sum of time alone / time together: 1 is one after the other, the number of jobs is no loss at all."""
    bound: float | None = None
    """The one-sided 95 % bound that its word rests on; None where no word is sure."""
    is_lower_bound: bool = False
    overlaps: tuple[str, ...] = ()
    """What is not excluded, of none, some, full."""
    word: Certainty = "unknown"
    gains: bool | None = None
    """Whether sharing gains (work above the border of none); None: unknown."""
    spoilt_by: int | None = None
    """A job that was faster together than alone, so that its time alone is not reliable."""
    predicted_work: float | None = None
    """The work that was predicted before the group ran; None where there was no prediction."""


def format_possible_overlaps(overlaps: Collection[str]) -> str:
    """What is not excluded, of none, some and full overlap: `some or full`; all three: `unknown`."""
    return " or ".join(overlaps) if len(overlaps) in (1, 2) else "unknown"


@dataclass(frozen=True, kw_only=True)
class SharingFinding(Finding):
    """May these jobs share the machine?"""

    question: ClassVar[str] = "sharing"
    groups: tuple[MeasuredJobGroup, ...] = ()


def collect_job_groups(findings: Iterable[Finding]) -> list[MeasuredJobGroup]:
    """All groups of jobs that these are about."""
    return [group for finding in findings if isinstance(finding, SharingFinding) for group in finding.groups]


@dataclass(frozen=True, kw_only=True)
class TargetFinding(Finding):
    """Who reaches the target first, in seconds and in joules."""

    question: ClassVar[str] = "target"
    target_pct: float = 0.0
    """Of top-1; 0 where a command was to reach a figure."""
    until: str = ""
    """`acc=60`: that figure; empty: top-1 was to be reached."""
    order: tuple[int, ...] = ()
    """Rows that reached it, the fastest first."""
    as_fast: tuple[int, ...] = ()
    """Those that may be as fast as the first with other seeds."""
    unreached: tuple[int, ...] = ()
    interrupted: tuple[int, ...] = ()
    least_energy: int | None = None
    energy_word: Certainty = "unknown"
    """How sure it is that this row takes less than every other one."""
    costlier: tuple[int, ...] = ()
    """Those that are shown to take more energy than that row."""
    costlier_word: Certainty = "unknown"
    are_others_alike: bool = True
    """Whether between all others no difference is shown."""


@dataclass(frozen=True, kw_only=True)
class Top1Finding(Finding):
    """Does top-1 stay the same? Its claims are differences in percentage points."""

    question: ClassVar[str] = "top1"
    field: str = ""
    value: object = None
    baseline: object = None
    seeds: int = 0
    """The fewest of a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitAim:
    """What a power limit is wanted for."""

    goal: Goal = "energy"
    """What shall be least."""
    at_most_slower: float | None = None
    """How much more time than at the highest limit an image may take (0.05: 5 %); None: any."""


@dataclass(frozen=True, kw_only=True)
class PowerLimitFinding(Finding):
    """Which power limit. Its claims are of energy, time and energy x time of an image, against the highest limit."""

    question: ClassVar[str] = "power_limit"
    label: Mapping[str, object] = field(default_factory=dict)
    """The fields that tell its series from others."""
    aim: LimitAim = LimitAim()
    baseline: int = 0
    """The row of the highest limit."""
    chosen_claims: Mapping[str, Claim] = field(default_factory=dict)
    """Metric -> the claim of the chosen row; empty where that is the baseline."""
    too_slow: tuple[int, ...] = ()
    """Rows that are not shown to be as fast as the aim asks."""
