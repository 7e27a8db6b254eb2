"""Options and commands that this version no longer has."""

from __future__ import annotations

GONE: dict[str, str] = {
    "--ahead": "leave it out: trials of further rounds start when their turn has come",
    "--by": "sort rows with gpubench table --sort NAME",
    "--efficiency": "the columns strong_efficiency_pct and weak_efficiency_pct have it, row by row",
    "--explain": "gpubench sweep -n prints the plan, and trials.csv has every field of each trial",
    "--join": "leave it out: sweeps that are given the same folder share the work",
    "--no-join": "leave it out: sweeps that are given the same folder share the work",
    "--noise": "one process says likely at most; measure several with gpubench sweep --rounds 3",
    "--only alternatives": "write --only ways",
    "--only learning": "write --only target",
    "--only pairs": "write --only together",
    "--only rows": "gpubench table prints these figures with bars",
    "--only scaling": "write --only devices",
    "--only slowdowns": "write --only together",
    "--only to-top1": "write --only target",
    "--reference": "leave it out: rows that are compared stay on one node",
    "--sources": "each record under records/ says where a figure is from (provenance), and why one is missing",
    "--spare": "leave it out: a SLURM job keeps a tenth of its time for its end, three minutes at most",
    "--terminal": "gpubench plot writes files, and gpubench table prints the figures",
    "--to tensorboard": "write --to mlflow, which has series and pictures of runs, too",
    "--wait": "leave it out: nothing is locked; sweeps share a folder, and merge copies what is there",
    "--train-images": "measure with gpubench sweep --set train_images=N",
}
"""Option, with its value where only that is gone, or command, as it was typed -> what to do instead."""
