"""What `gpubench merge` does: the records of several folders in one, and its CSVs anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.analyze.folder import build_folder_from_records
from gpubench.analyze.questions import make_folder_reports
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.words import clean_line, format_count
from gpubench.commands.folders import print_warning
from gpubench.export.files import write_tables
from gpubench.results.home import choose_results_home, find_newest_results_folder
from gpubench.results.store import Results
from gpubench.results.unite import MergeSummary, unite_folders
from gpubench.store.work_claims import list_workers


def merge_folders(folders: Sequence[Path], *, out: Path | None) -> int:
    """`gpubench merge`. Without `out`: of one folder its CSVs anew."""
    sources = list({path.resolve(): path for path in folders or [find_newest_results_folder()]}.values())
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
                f"{choose_results_home()}/NAME"
            )
        for who in dict.fromkeys(worker.who for worker in list_workers(path) if worker.is_alive):
            print_warning(f"{who} measures into {path}: what it stores from now on needs another merge")
    target = Results(out)
    target.create_folder()
    done = unite_folders([Results(path) for path in sources], target, print_warning)
    _write_tables_anew(target)
    target.check_not_removed()
    for line in _list_summary_lines(sources, out, done):
        print(clean_line(line))
    return 0


def _write_tables_anew(target: Results) -> None:
    records = target.read_records(print_warning)
    if not records:
        raise UnusableError(f"{target.folder} holds no record that can be read, so it gets no tables")
    folder = build_folder_from_records(target, records, [], print_warning)
    write_tables(target, folder, make_folder_reports([folder]))


def _list_summary_lines(sources: Sequence[Path], out: Path, done: MergeSummary) -> list[str]:
    """What was done, the answer first."""
    if len(sources) == 1 and sources[0].resolve() == out.resolve():
        return [f"{out}: its tables are written anew from its records"]
    total = sum(done.added.values())
    lines = [f"{out}: {format_count(total, 'attempt')} added, tables written anew"]
    for place, path in enumerate(sources):
        if path.resolve() == out.resolve():
            lines.append(f"  {path}: stays as it was")
            continue
        known = done.known[place]
        also = f", {format_count(known, 'attempt')} there already" if known else ""
        lines.append(f"  {path}: {format_count(done.added[place], 'attempt')} added{also}")
    return lines
