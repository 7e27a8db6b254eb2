"""The rule on uncertainty: what figures and conclusions rest on."""

from __future__ import annotations

from gpubench.analysis.audit.facts import NOTHING, AuditedFolder, RuleFinding, does, of, once, rule_finding
from gpubench.analysis.noise import OWN, process_interval, processes
from gpubench.schema.epoch_times import FEWEST_TIMES


def repeated(facts: AuditedFolder) -> RuleFinding:
    """Rule 13: every time is of several processes, with an interval over them, and so is what is concluded.

    Processes of one configuration differ, and nothing that one of them saw tells by how much. Two have an interval, and
    one so wide that next to nothing can be concluded. How many processes a figure from elsewhere is of, nobody knows.
    """
    beside = [row for table in facts.tables for row in table.beside]
    rows = [row for row in once(beside) if row.epoch_time_s is not None]
    if not rows:
        return NOTHING
    compared = {id(row) for table in facts.tables if len(table.beside) > 1 for row in table.beside}
    own = [row for row in rows if row.source in OWN]
    foreign = [row for row in rows if row.source not in OWN]
    single = [row for row in own if process_interval(row) is None]
    two = [row for row in own if process_interval(row) is not None and processes(row) < FEWEST_TIMES]
    broken, unclear = [], []
    if single:
        beside_others = [row for row in single if id(row) in compared]
        stand = "they stand" if len(beside_others) > 1 else "it stands"
        drawn = f", and {stand} beside others, so conclusions rest on one process" if beside_others else ""
        broken.append(
            f"{of(single, rows)} {does(single, 'have')} an epoch time of one process, so without an interval{drawn}; "
            f"one tells nothing of how far processes differ, --rounds {FEWEST_TIMES} does"
        )
    if two:
        unclear.append(
            f"{of(two, rows)} {does(two, 'have')} an interval over two processes only, from which next to nothing can "
            f"be concluded; --rounds {FEWEST_TIMES} adds to them"
        )
    if foreign:
        unclear.append(f"of how many processes they are is not on record for {of(foreign, rows)}")
    fewest = min((processes(row) for row in own), default=0)
    return rule_finding(
        broken,
        unclear,
        f"epoch times in {of(rows, rows)} are of {fewest} processes or more each, with 95 % intervals over them",
    )
