"""Where results folders lie: what `--out` and GPUBENCH_OUT say, and which is the newest."""

from __future__ import annotations

import os
from pathlib import Path

from gpubench.basics.errors import UnusableError
from gpubench.plan.experiment import Experiment
from gpubench.results.plans import find_last_folder_use
from gpubench.results.store import Results


def choose_results_folder(out: Path | None, experiment: Experiment) -> Path:
    """--out, else a folder of the experiment's name under GPUBENCH_OUT or ./results."""
    return out or choose_results_home() / experiment.name


def choose_results_home() -> Path:
    """The place where sweeps put their folders."""
    return Path(os.environ.get("GPUBENCH_OUT", "results"))


def list_all_results_folders() -> list[Path]:
    """Every results folder in the place where sweeps put theirs. Raises UnusableError where there is none."""
    home = choose_results_home()
    folders = list_results_folders_in(home)
    if not folders:
        raise UnusableError(f"no results in {home}; run gpubench sweep, or name a folder")
    return folders


def list_results_folders_in(place: Path) -> list[Path]:
    """Every results folder that lies straight in this one."""
    return sorted({p.parent for pattern in ("*/trials.csv", "*/records") for p in place.glob(pattern)})


def find_newest_results_folder() -> Path:
    """The results folder in which something was last begun. Raises UnusableError where there is none."""
    return max(
        list_all_results_folders(), key=lambda folder: (find_last_folder_use(Results(folder)), folder.name)
    )


def make_no_results_error(folder: Path) -> UnusableError:
    """That this is none, and where those lie that there are."""
    return UnusableError(
        f"{folder} is not a results folder; name one that gpubench sweep has written, "
        f"such as {choose_results_home()}/NAME"
    )
