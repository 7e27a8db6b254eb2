"""From what network size on more devices are faster: a step a network, by ascending size, all else equal.

Small networks are slower on more devices and large ones faster, so the claims are tested in a fixed order from both
ends, by pairs of rounds alone: of networks of unlike sizes one row may vary a hundred times as much as the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpubench.analyze import devices
from gpubench.analyze.series import combine_codes
from gpubench.analyze.table_rows import TableRows, group_by, join_certainty_of_claims
from gpubench.core.claims import Claim
from gpubench.core.findings import NetworkSizeFinding

FEWEST_NETWORKS = 3
"""Networks from which a table asks from what size on more devices are faster."""
NETWORK = ("model", "width", "input_size", "num_classes")
"""The fields that make a network what it is."""


def make_claims(rows: TableRows) -> list[Claim]:
    """The speed-ups of networks by ascending GMACs an image, in a series for each kind of scaling.

    Series are of one strategy on equally many devices against equally many, with each network once. A network whose
    size is not known is in none.
    """
    codes = combine_codes(len(rows.summary), [rows.fields.codes[name] for name in NETWORK])
    if len(np.unique(codes[rows.has_solo_rate])) < FEWEST_NETWORKS:
        return []
    summary = rows.summary.assign(devices=rows.devices)
    gmacs = summary["gmacs_per_image"].astype("float64").fillna(0)
    alike = ("strategy", "device", "devices")
    series = group_by(
        (claim for claim in devices.make_claims(rows) if gmacs[claim.candidate] > 0),
        lambda claim: (
            claim.series, *summary.loc[claim.candidate, list(alike)], summary.at[claim.baseline, "devices"],
        ),
    )  # fmt: skip
    claims = []
    for place, steps in series.items():
        networks = {make_network_key(rows, claim.candidate) for claim in steps}
        if len(steps) == len(networks) >= FEWEST_NETWORKS:
            steps.sort(key=lambda claim: (gmacs[claim.candidate], make_network_key(rows, claim.candidate)))
            name = ":".join(map(str, place))
            claims += [
                replace(
                    claim,
                    evidence=replace(claim.evidence, welch=None),
                    design="ordered",
                    family=f"network_size:{name}",
                    series=name,
                )
                for claim in steps
            ]
    return claims


def make_findings(rows: TableRows, claims: Sequence[Claim]) -> list[NetworkSizeFinding]:
    """What the decided claims come to, a finding a series."""
    findings = []
    for _, group in itertools.groupby(claims, key=lambda claim: claim.series):
        steps = list(group)
        faster = list(itertools.takewhile(lambda claim: claim.shows("more"), reversed(steps)))
        first = faster[-1].candidate if faster else None
        findings.append(
            NetworkSizeFinding(
                **{**rows.summarize_claims(steps, steps), "word": join_certainty_of_claims(faster or steps)},
                devices=int(rows.devices[steps[0].candidate]),
                strategy=str(rows.get(steps[0].candidate, "strategy")),
                first_faster=first,
                gmacs=None if first is None else float(rows.get(first, "gmacs_per_image")),
            )
        )
    return findings


def make_network_key(rows: TableRows, row: int) -> tuple[str, ...]:
    """What tells networks apart."""
    return tuple(map(str, rows.summary.loc[row, list(NETWORK)]))
