"""What `gpubench status` does: looks how far the sweeps of results folders are, and disturbs none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gpubench.basics.errors import ResumableStopError, UnusableError
from gpubench.basics.quoted import format_readable_json
from gpubench.basics.words import format_list
from gpubench.commands.folders import print_text, print_warning
from gpubench.node import environment
from gpubench.node.watch.nvml import open_nvml
from gpubench.plan.state import STALE_BY
from gpubench.render import status as render
from gpubench.render.terminal import WIDTH
from gpubench.results.home import find_newest_results_folder, list_results_folders_in, make_no_results_error
from gpubench.results.plans import read_stored_plans
from gpubench.results.status import FolderState, FolderStatus, make_status
from gpubench.results.store import Results

RUNNING = 5
CODES: dict[FolderState, int] = {
    "complete": 0,
    "failed": 1,
    "running": RUNNING,
    "unfinished": ResumableStopError.exit_code,
    "unknown": UnusableError.exit_code,
}
"""Exit code by state. Of several folders that of the one which needs somebody the most: the last of these."""


def status(folders: Sequence[Path], *, as_json: bool = False) -> int:
    """`gpubench status`. A folder that can't be read is named, and the others are told; then it ends in 4."""
    console = Console(highlight=False)
    width = console.width if console.is_terminal else WIDTH
    versions = _collect_known_versions()
    states: list[FolderState] = []
    code = 0
    for folder in dict.fromkeys(folders or [find_newest_results_folder()]):
        try:
            read = _read_folder_status(folder, versions)
        except UnusableError as error:
            if len(folders) < 2:
                raise
            print_warning(str(error))
            code = UnusableError.exit_code
            continue
        states.append(read.state)
        data = format_readable_json(render.status_to_data(read)) + "\n" if as_json else ""
        print_text(data or render.format_status(read, width))
    return code or max((CODES[state] for state in states), default=0, key=list(CODES.values()).index)


TORCH_PACKAGES = ("torch", "torchvision", "torchcodec")


def _collect_known_versions() -> dict[str, Any]:
    """The versions by which a sweep would find records stale, as far as they are known here: a login node has no
    driver, and need not have torch."""
    facts = environment.collect_environment_facts(environment.make_machine(open_nvml()))
    unknown = (
        *(["driver"] if facts["driver"] is None else []),
        *(TORCH_PACKAGES if facts["torch"] is None else []),
    )
    return {name: facts[name] for name in STALE_BY if name not in unknown}


def _read_folder_status(folder: Path, versions: Mapping[str, Any]) -> FolderStatus:
    if not folder.exists():
        raise UnusableError(
            f"{folder} is not there: no sweep has begun to write it yet, or it has another name"
        )
    if not any((folder / name).exists() for name in ("records", "plans")):
        if inside := list_results_folders_in(folder):
            raise UnusableError(
                f"{folder} holds results folders, and is none: name one of them, or several: "
                f"{format_list([path.name for path in inside])}"
            )
        raise make_no_results_error(folder)
    results = Results(folder)
    records = results.read_records(print_warning)
    plans, problems = read_stored_plans(results, records)
    for line in problems:
        print_warning(line)
    return make_status(results, records, plans, len(problems), versions)
