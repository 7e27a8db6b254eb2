"""The rows of one table and what their processes tell: where every question takes its figures from."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd

from gpubench.analyze.derive import RowArrangement
from gpubench.analyze.frames import find_unlike_settings
from gpubench.analyze.intervals import compute_node_shares
from gpubench.analyze.series import EncodedFields, Mask
from gpubench.core.claims import Certainty, Claim, Design, Evidence
from gpubench.core.findings import LimitAim, Remedy
from gpubench.schema.catalog import LOADS
from gpubench.schema.hosts import find_first_node as first_host
from gpubench.stats.estimates import estimate_log_ratio, mean
from gpubench.stats.noise import estimate_noise
from gpubench.stats.power import find_rounds_for_claims

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
ProcessKey: TypeAlias = tuple[int, int, str, int]
"""Round, repeat and node of a process, and its number among those that have these in common."""
Samples: TypeAlias = Mapping[ProcessKey, float]
"""A figure of each process of a row by its place: what two rows have in common there makes a pair."""
Figures: TypeAlias = Mapping[int, dict[ProcessKey, float]]
"""Row -> its samples; a row without any is left out."""
WAITING_PCT = 20.0
"""Of an epoch, from which on loaders set the pace of a row."""
UNIT = ("is_b", "table", "unit")
"""Columns of the summary that tell the groups of jobs apart; one table knows the last alone."""
LONGEST_ADVICE_MIN = 60.0
"""What would take longer to settle is not advised."""


@dataclass(frozen=True, kw_only=True)
class TableRows(RowArrangement):
    """The rows of one table, as a question needs them; `varied` begins with the column that names machines."""

    summary: pd.DataFrame
    """A line a row, in the table's order; index: labels."""
    runs: pd.DataFrame
    """A line a process; `row`: the label of its row."""
    noise: Mapping[int, float] = field(default_factory=dict)
    """Row -> the logarithm of the largest ratio that two processes of such rows were seen to differ by."""
    limit_aim: LimitAim = field(default_factory=LimitAim)
    """What a power limit is wanted for."""

    @cached_property
    def ended_processes(self) -> pd.DataFrame:
        """The processes that ended ok."""
        return self.runs[(self.runs["status"] == "ok") & self.runs["row"].isin(self.summary.index)]

    @cached_property
    def fields(self) -> EncodedFields:
        """The trial fields of all rows."""
        return EncodedFields.from_frame(self.summary)

    @cached_property
    def devices(self) -> pd.Series[int]:
        """GPUs of each row's trial; on a CPU its ranks."""
        return pd.Series(self.fields.devices.astype("int64"), index=self.summary.index)

    @cached_property
    def is_to_target(self) -> Mask:
        """Which rows went on until a top-1, or a figure of a command, was reached."""
        return (self.summary["until_top1"].notna() | self.summary["until"].notna()).to_numpy()

    @cached_property
    def is_job(self) -> Mask:
        """Which rows are of jobs of groups."""
        return self.summary["group"].notna().to_numpy()

    @cached_property
    def has_solo_rate(self) -> Mask:
        """Which rows are of trials that ran alone and have a rate."""
        return ~self.is_job & self.summary.index.isin(list(self.rates))

    @cached_property
    def solo_rows(self) -> pd.DataFrame:
        """The rows of trials that ran alone and have a rate."""
        return self.summary[self.has_solo_rate]

    @cached_property
    def rates(self) -> Figures:
        """Images a second; epochs a second where any row does not know its images."""
        return self.collect(self.images / self.ended_processes["epoch_time_s"].astype("float64"))

    @cached_property
    def seeds(self) -> int:
        """The most repeats of a row, which a round measures all."""
        counts = self.ended_processes.groupby("row")["repeat"].nunique(dropna=False)
        return int(counts.max()) if len(counts) else 1

    @cached_property
    def round_minutes(self) -> float | None:
        """What a further round of all rows takes, each repeat once; None where records do not tell.

        Jobs of a group run at the same time, so a group takes what the longest of its jobs does.
        """
        taken = self.ended_processes.groupby(["row", "repeat"], dropna=False)["took_s"].median()
        if taken.empty or taken.isna().any():
            return None
        keys = [self.summary[name] for name in UNIT if name in self.summary]
        is_alone = self.summary["unit"].isna()
        keys.append(self.summary.index.to_series().where(is_alone))
        rows, repeats = (taken.index.get_level_values(name) for name in ("row", "repeat"))
        of_runs = [key.loc[rows].to_numpy() for key in keys]
        return float(taken.groupby([*of_runs, repeats], dropna=False).max().sum() / 60)

    @cached_property
    def images(self) -> pd.Series[float]:
        """Images of an epoch, of each process that ended ok; 1 where any of the table does not know them.

        1 of known loads, whose epoch is a step.
        """
        images = self.ended_processes["images_per_epoch"].astype("float64")
        images = images.mask(self.ended_processes["model"].isin(LOADS), 1.0)
        is_timed = self.ended_processes["epoch_time_s"].notna()
        return images if images[is_timed].notna().all() else pd.Series(1.0, index=images.index)

    def get(self, row: int, column: str) -> Any:
        """A value of the summary."""
        return self.summary.at[row, column]

    def collect(self, values: pd.Series[Any]) -> Figures:
        """A figure of processes that ended ok, a line each, by row; those that are not known or 0 are left out."""
        numbers = values.reindex(self.ended_processes.index).to_numpy("float64", na_value=np.nan)
        figures: dict[int, dict[ProcessKey, float]] = {}
        twins: Counter[tuple[int, int, int, str]] = Counter()
        for place, value in zip(self._process_places, numbers.tolist(), strict=True):
            if 0 < value < math.inf:
                figures.setdefault(place[0], {})[*place[1:], twins[place]] = value
                twins[place] += 1
        return figures

    @cached_property
    def _process_places(self) -> list[tuple[int, int, int, str]]:
        """Of each process that ended ok its row, its round, its repeat, and its node."""
        ended = self.ended_processes
        numbers = [ended[name].to_numpy("int64", na_value=-1).tolist() for name in ("row", "round", "repeat")]
        nodes = [first_host(host) if isinstance(host, str) else "" for host in ended["host"]]
        return list(zip(*numbers, nodes, strict=True))

    def find_largest_noise(self, *rows: int) -> float | None:
        """The most that any of these rows was seen to vary by."""
        return max((self.noise[row] for row in rows if row in self.noise), default=None)

    def compare(self, figures: Figures, candidate: int, baseline: int) -> Evidence:
        """The logarithm of the ratio of two rows' figures.

        Of rows that were measured on unlike nodes, or unlike often on them, only common rounds tell: nobody knows what
        nodes differ by.
        """
        numerator, denominator = figures[candidate], figures[baseline]
        numerator_nodes, denominator_nodes = (
            compute_node_shares([place[2] for place in samples]) for samples in (numerator, denominator)
        )
        evidence = estimate_log_ratio(
            numerator, denominator, noise=self.find_largest_noise(candidate, baseline)
        )
        return evidence if numerator_nodes == denominator_nodes else replace(evidence, welch=None, noise=None)

    def make_claim(
        self, metric: str, figures: Figures, candidate: int, baseline: int, *, family: str,
        design: Design = "paired", series: str = "",
    ) -> Claim:  # fmt: skip
        """That two rows differ in a figure that both have."""
        return Claim(
            metric=metric, candidate=candidate, baseline=baseline, design=design, family=family, series=series,
            evidence=self.compare(figures, candidate, baseline),
        )  # fmt: skip

    def summarize_claims(self, claims: Sequence[Claim], family: Sequence[Claim]) -> dict[str, Any]:
        """What a finding says of claims that answer together: how sure it is, of which rows, and what would settle it.

        `family`: all claims that share their 5 % with these.
        """
        return {
            "word": join_certainty_of_claims(claims),
            "claims": tuple(claims),
            "rows": list_claimed_rows(claims),
            "remedy": find_claims_remedy(
                list_unsettled_claims(claims), family, self.round_minutes, self.seeds
            ),
        }


def list_machine_columns(rows: pd.DataFrame) -> list[str]:
    """The columns whose names tell several machines apart; empty for one."""
    if rows["machine"].nunique() < 2:
        return []
    models = [name for name in ("gpu_name", "cpu_name") if rows[name].nunique() > 1]
    return [*models, *find_unlike_settings(rows)]


def estimate_noise_by_row(summary: pd.DataFrame) -> dict[int, float]:
    """Row -> the logarithm of the largest ratio that two processes of such rows were seen to differ by."""
    batch, before = summary["batch_size"].astype("float64"), summary["before"].astype("float64")
    step_s = batch / summary["images_per_s"]
    is_half = batch == 2 * before.map(batch)
    facts = pd.DataFrame(
        {
            "gpus": summary["gpus"].fillna(0).astype("int64"),
            "utilization_pct": summary["gpu_util_pct"],
            "step_growth": (step_s / before.map(step_s)).where(is_half),
            "is_loader_bound": summary["data_wait_pct"].astype("float64") >= WAITING_PCT,
            "is_shared": summary["group"].notna(),
            "strategy": summary["strategy"],
        }
    ).astype(object)
    known: list[dict[str, Any]] = facts.where(facts.notna(), None).to_dict("records")  # type: ignore[assignment]
    return {int(label): estimate_noise(**row) for label, row in zip(summary.index, known, strict=True)}


def join_certainty_of_claims(claims: Iterable[Claim]) -> Certainty:
    """How sure several claims are together: the least sure word of those that are decided; unknown where none is."""
    return join_certainty(claim.decided.word for claim in claims)


def join_certainty(words: Iterable[Certainty]) -> Certainty:
    """The least sure of words that are not unknown; unknown where all are."""
    known = set(words) - {"unknown"}
    return "likely" if "likely" in known else "sure" if known else "unknown"


def average_log(samples: Samples) -> float:
    """The mean of the logarithms, by which claims compare."""
    return mean([math.log(value) for value in samples.values()])


def average_rounds_by_repeat(samples: Samples) -> dict[ProcessKey, float]:
    """A figure of each repeat, the geometric mean over its rounds, as of one round on the node of the first of them."""
    return {
        (0, repeat, keys[0][2], 0): math.exp(mean([math.log(samples[key]) for key in keys]))
        for repeat, keys in group_by(samples, lambda key: key[1]).items()
    }


def find_claims_remedy(
    open_claims: Iterable[Claim],
    claims: Sequence[Claim],
    round_minutes: float | None,
    repeats: int,
    *,
    is_of_seeds: bool = False,
) -> Remedy | None:
    """The rounds that would settle these of all claims; None where they take too many or too long, or nobody knows.

    `round_minutes`: what a further round of the whole sweep takes; None: not known. `repeats`: processes of a row that
    a round brings. `is_of_seeds`: the evidence is of seeds, so that more of these are what settles it.
    """
    unsettled = list(open_claims)
    families = group_by(claims, lambda claim: claim.family)
    rounds = [
        count
        for name, members in group_by(unsettled, lambda claim: claim.family).items()
        for count in find_rounds_for_claims(members, families[name])
    ]
    known = [count for count in rounds if count is not None]
    if not known or len(known) < len(rounds):
        return None
    processes = [claim.evidence.processes for claim in unsettled]
    return make_rounds_remedy(
        max(known), min(map(min, processes)), max(map(max, processes)), round_minutes, repeats, is_of_seeds
    )


def make_rounds_remedy(
    wanted: int,
    fewest: int,
    most: int,
    round_minutes: float | None,
    repeats: int,
    is_of_seeds: bool = False,
) -> Remedy | None:
    """The rounds that bring a row to so many processes; None where they take longer than anybody would wait.

    `fewest`, `most`: processes that rows have; the sweep has gone as many rounds as the latter tell.
    """
    per_round = 1 if is_of_seeds else repeats
    rounds, present = math.ceil(wanted / per_round), math.ceil(fewest / per_round)
    if rounds <= math.ceil(most / per_round):
        return None
    minutes = None
    if round_minutes is not None:
        minutes = (rounds - present) * round_minutes / (repeats if is_of_seeds else 1)
        if minutes > LONGEST_ADVICE_MIN:
            return None
    return Remedy(rounds=rounds, minutes=minutes, is_of_seeds=is_of_seeds)


def group_by(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Items by their keys, both in order of appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def list_unsettled_claims(claims: Iterable[Claim]) -> list[Claim]:
    """Those that are not sure."""
    return [claim for claim in claims if claim.decided.word != "sure"]


def list_claimed_rows(claims: Sequence[Claim]) -> tuple[int, ...]:
    """The rows that claims are about, each once."""
    return tuple(dict.fromkeys(row for claim in claims for row in (claim.candidate, claim.baseline)))
