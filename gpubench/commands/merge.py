"""What `gpubench merge` does: the records of several folders in one, and its CSVs anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.analyze.folder import analyze_records
from gpubench.analyze.questions import report_folders
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.words import clean, many
from gpubench.commands.folders import warn
from gpubench.render.files import write_tables
from gpubench.results.home import newest_results, results_home
from gpubench.results.store import Results
from gpubench.results.unite import United, list_further_rounds, unite
from gpubench.schema.record import Record
from gpubench.store.work_claims import list_workers

MOST_NAMED = 10


def merge_folders(folders: Sequence[Path], *, out: Path | None) -> int:
    """`gpubench merge`. Without `out`: of one folder its CSVs anew."""
    sources = list({path.resolve(): path for path in folders or [newest_results()]}.values())
    if out is None:
        if len(sources) > 1:
            raise UsageError("say where the folders are merged into: --out FOLDER")
        out = sources[0]
    elif any(path.resolve() == out.resolve() for path in sources[1:]):
        raise UsageError(
            f"--out {out} is one of the folders, and not the first; name it first, or another folder with --out"
        )
    for path in sources:
        if not path.is_dir() or not any((path / kind).is_dir() for kind in ("records", "plans")):
            raise UnusableError(
                f"{path} is not a results folder; name one that gpubench sweep has written, such as "
                f"{results_home()}/NAME"
            )
        for who in dict.fromkeys(worker.who for worker in list_workers(path) if worker.is_alive):
            warn(f"{who} measures into {path}: what it stores from now on needs another merge")
    target = Results(out)
    target.create()
    done = unite([Results(path) for path in sources], target, warn)
    lost = len(done.further - list_further_rounds(_write_tables(target)))
    target.check()
    for line in _describe(sources, out, done, lost):
        print(clean(line))
    return 0


def _write_tables(target: Results) -> list[Record]:
    """Returns the records that the tables are of."""
    records = target.records(warn)
    if not records:
        raise UnusableError(f"{target.folder} holds no record that can be read, so it gets no tables")
    folder = analyze_records(target, records, [], warn)
    write_tables(target, folder, report_folders([folder]))
    return records


def _describe(sources: Sequence[Path], out: Path, done: United, lost: int) -> list[str]:
    """What was done, the answer first."""
    if len(sources) == 1 and sources[0].resolve() == out.resolve():
        return [f"{out}: its tables are written anew from its records"]
    total = sum(done.added.values())
    lines = [f"{out}: {many(total, 'attempt')} added, tables written anew"]
    for place, path in enumerate(sources):
        if path.resolve() == out.resolve():
            but = f", but for {many(len(done.completed), 'record')}" if done.completed else ""
            lines.append(f"  {path}: stays as it was{but}")
            continue
        known = done.known[place]
        also = f", {many(known, 'attempt')} there already" if known else ""
        lines.append(f"  {path}: {many(done.added[place], 'attempt')} added{also}")
    if done.completed:
        lines.append(
            f"{many(len(done.completed), 'record')} that can't be read: another folder has the same attempt whole, "
            "which stands in its place:"
        )
        lines += _list_some([f"{damaged}: {whole}" for damaged, whole in done.completed])
    if lost:
        lines.append(
            f"{many(lost, 'attempt')} of further rounds counted in the folders and no longer "
            f"{'counts' if lost == 1 else 'count'} in {out}, since a first round of their trials stands behind them "
            "there, measured later in another folder. To have them count, merge into a new folder without that one"
        )
    return lines


def _list_some(lines: Sequence[str]) -> list[str]:
    """Lines that name the first of these, and how many more there are."""
    more = len(lines) - MOST_NAMED
    return [f"  {line}" for line in lines[:MOST_NAMED]] + ([f"  and {more} more"] if more > 0 else [])
