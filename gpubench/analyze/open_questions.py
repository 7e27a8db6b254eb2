"""Which questions of a sweep that goes on are open: its further rounds are for the rows of these.

Whoever looks after every round and stops at the first difference finds one in the end. So each claim, and each bound of
a choice, counts as answered at its j-th look only by stricter tests than those of the words below the table
(`stats.decisions`, looks).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpubench.analyze import batch_size, devices, network_size, power_limit, sharing, versus
from gpubench.analyze.folder import Folder, make_table_rows
from gpubench.analyze.table_rows import TableRows
from gpubench.core.claims import Claim
from gpubench.core.findings import BatchSizeFinding
from gpubench.stats.choice import FIRM_BOUND, bound_rival_gain
from gpubench.stats.decisions import compute_alpha_divisor, count_looks, decide_claims

SAME_RATE = math.log1p(0.02)
"""Rates, and energies, that differ by less are the same: that, too, is an answer."""


def list_trials_of_open_questions(folder: Folder, processes_a_round: int = 1) -> list[list[set[str]]] | None:
    """For each open question the ids of each of its rows' trials: a row has one for each repeat.

    None where no table asks anything that further rounds can answer. Top-1 and targets take seeds, not rounds.
    """
    members = folder.members[folder.members["is_ok"]]
    ids = folder.runs["trial_id"].loc[members["run"]].groupby(members["row"].to_numpy()).agg(set).to_dict()
    by_table = [
        list_rows_of_open_questions(make_table_rows(folder, table), processes_a_round)
        for table in folder.tables
    ]
    asking = [questions for questions in by_table if questions is not None]
    if not asking:
        return None
    return [[ids[row] for row in dict.fromkeys(rows)] for questions in asking for rows in questions]


def list_rows_of_open_questions(rows: TableRows, processes_a_round: int) -> list[tuple[int, ...]] | None:
    """The rows of each open question of one table."""
    scaling = network_size.make_claims(rows) or devices.make_claims(rows)
    differences = [claim for claim in (*scaling, *versus.make_claims(rows)) if claim.metric == versus.RATE]
    differences += [claim for claim in power_limit.make_claims(rows) if claim.metric == "energy_j"]
    groups = [claim for claim in sharing.make_claims(rows) if claim.metric == sharing.WORK]
    choices = batch_size.make_findings(rows, decide_claims(batch_size.make_claims(rows)))
    if not (differences or groups or choices):
        return None
    return [
        *_list_undecided_row_pairs(differences, processes_a_round),
        *_list_undecided_job_groups(rows, groups, processes_a_round),
        *(
            pair
            for finding in choices
            for pair in _list_undecided_choice_pairs(rows, finding, processes_a_round)
        ),
    ]


def _decide_claims_at_looks(claims: Sequence[Claim], processes_a_round: int) -> list[Claim]:
    return decide_claims(claims, [count_looks(claim.evidence, processes_a_round) for claim in claims])


def _list_undecided_row_pairs(claims: Sequence[Claim], processes_a_round: int) -> list[tuple[int, int]]:
    """The pairs of rows that are neither different nor the same."""
    equal = [replace(claim, design="equal", limit=SAME_RATE) for claim in claims]
    decided = _decide_claims_at_looks([*claims, *equal], processes_a_round)
    sure = [claim.decided.word == "sure" for claim in decided]
    return [
        (claim.baseline, claim.candidate)
        for claim, is_different, is_same in zip(claims, sure[: len(claims)], sure[len(claims) :], strict=True)
        if not is_different and not is_same
    ]


def _list_undecided_job_groups(
    rows: TableRows, claims: Sequence[Claim], processes_a_round: int
) -> Iterable[tuple[int, ...]]:
    """The jobs, and their trials alone, of groups of which it is not known whether sharing gains."""
    borders = {
        group.rows[0]: math.log(sharing.compute_overlap_borders(group.jobs)[0])
        for group in sharing.list_job_groups(rows)
    }
    decided = _decide_claims_at_looks(
        [claim for claim in claims if claim.limit == borders[claim.candidate]], processes_a_round
    )
    tested = {claim.candidate for claim in decided}
    known = {claim.candidate for claim in decided if claim.decided.word == "sure"}
    alone = sharing.find_solo_rows(rows)
    for group in sharing.list_job_groups(rows):
        if group.rows[0] in tested - known:
            yield (*group.rows, *(alone[row] for row in group.rows if row in alone))


def _list_undecided_choice_pairs(
    rows: TableRows, finding: BatchSizeFinding, processes_a_round: int
) -> Iterable[tuple[int, int]]:
    """The chosen row with each other one of its series that may be faster by more than what makes a choice firm."""
    choice = finding.choice
    assert choice is not None, "a finding on batch sizes has one"
    rivals = [row for row in choice.series if row != choice.row]
    for row in rivals:
        evidence = rows.compare(rows.rates, row, choice.row)
        look = count_looks(evidence, processes_a_round)
        bound = bound_rival_gain(evidence, len(rivals) * compute_alpha_divisor(look)) if look else None
        if bound is None or bound > FIRM_BOUND:
            yield choice.row, row
