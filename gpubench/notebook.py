"""Results folders for a notebook: frames of pandas, tables, findings and pictures, each made when it is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from gpubench.analyze.folder import Folder, read_folders
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.trace import make_recommended_trace
from gpubench.basics.errors import UnusableError, UsageError, make_unknown_name_error
from gpubench.core.findings import Finding
from gpubench.core.report import Report
from gpubench.export import sheets
from gpubench.render import html, terminal, words
from gpubench.render.draw import FORMS, draw_file_bytes
from gpubench.render.pictures.pictures import KINDS, explain_no_picture, list_pictures
from gpubench.render.pictures.vega import Vega
from gpubench.results.home import find_newest_results_folder
from gpubench.results.packed import is_file_or_member
from gpubench.results.samples_file import read_samples_file
from gpubench.results.store import Results
from gpubench.schema.columns import SAMPLE_COLUMNS
from gpubench.schema.record import Record
from gpubench.schema.samples import SAMPLE_HEADER


@dataclass(frozen=True, slots=True)
class LoadedPicture:
    """A picture of results, which a notebook shows."""

    description: Vega
    """In Vega-Lite (https://vega.github.io/vega-lite/), with all of its data."""

    def save(self, path: str | Path) -> None:
        """Writes it as SVG, PNG or PDF, as the path ends. Raises UsageError for another ending, and UnusableError where
        vl-convert is missing."""
        form = Path(path).suffix.removeprefix(".").lower()
        if form not in FORMS:
            raise make_unknown_name_error("format", form, FORMS)
        Path(path).write_bytes(draw_file_bytes(self.description, form))

    def _repr_svg_(self) -> str:
        return draw_file_bytes(self.description, "svg").decode()


class LoadedFolders:
    """Results folders, read. Each frame has units and meanings of its columns in `attrs`."""

    def __init__(self, folders: Sequence[Folder]) -> None:
        self.folders = tuple(folders)

    @cached_property
    def trials(self) -> pd.DataFrame:
        """A row a trial, and a row for each further round of it: every column of trials.csv."""
        return sheets.make_trial_sheet(self.folders).to_frame()

    @cached_property
    def epochs(self) -> pd.DataFrame:
        """A row an epoch or window, those that warm up marked: every column of epochs.csv."""
        return sheets.make_epoch_sheet(self.folders).to_frame()

    @cached_property
    def environment(self) -> pd.DataFrame:
        """A row for each machine with its software."""
        return sheets.make_environment_sheet(self.folders).to_frame()

    @cached_property
    def doubts(self) -> pd.DataFrame:
        """A row for each warning of each trial: its code and sentence."""
        return sheets.make_warning_sheet(self.folders).to_frame()

    def table(self) -> pd.DataFrame:
        """The lines of the tables, repeats and rounds merged, with growth and intervals: the columns of table.csv."""
        return sheets.make_table_sheet(self.folders).to_frame()

    @cached_property
    def reports(self) -> list[Report]:
        """One a table, as `gpubench table` prints them."""
        return make_folder_reports(self.folders)

    @property
    def findings(self) -> list[Finding]:
        """What the tables come to, table by table, with verdicts, claims and choices as data."""
        return [finding for report in self.reports for finding in report.findings]

    @property
    def answers(self) -> list[str]:
        """What the tables come to in words, a string a finding."""
        return [
            " ".join(words.format_finding_lines(report, finding))
            for report in self.reports
            for finding in report.findings
        ]

    def samples(self, trial_id: str, *, round: int = 1, results: str | None = None) -> pd.DataFrame:  # noqa: A002
        """The time series of a trial: each reading with its time, device, metric and the epoch in which it was taken.

        `round`: of the sweep's rounds. `results`: the name of the folder, where several hold the trial. Where a folder
        has measured it under several allowances of CPUs, the last one. Raises UsageError where there is no such trial.
        """
        held = [
            (folder, record)
            for folder in self.folders
            for record in folder.records
            if (record.trial_id, record.round) == (trial_id, round) and results in (None, folder.name)
        ]
        if not held:
            known = {record.trial_id for folder in self.folders for record in folder.records}
            raise make_unknown_name_error(
                "trial", trial_id, known, hint=f"not in round {round}" if trial_id in known else ""
            )
        if len(names := list(dict.fromkeys(folder.name for folder, _ in held))) > 1:
            raise UsageError(f"{trial_id} is in {', '.join(names)}; say which one: results={names[0]!r}")
        folder, record = max(held, key=lambda pair: (pair[1].started_at, pair[1].attempt))
        return read_samples(Results(folder.path), record)

    def plot(self, name: str | None = None) -> LoadedPicture:
        """A picture as `gpubench plot` draws it.

        `name`: growth, devices, energy, … (docs/plots.md); None: the main one. Of several tables that of the first that
        has such a picture. Raises UsageError for another name, and UnusableError where there is none.
        """
        if name is not None and name not in KINDS:
            raise make_unknown_name_error("picture", name, KINDS)
        for folder in self.folders:
            for report in make_folder_reports([folder]):
                trace = (
                    make_recommended_trace(folder, report, warnings.warn) if name in (None, "trial") else None
                )
                for picture in list_pictures(report, trace, [] if name is None else [name]):
                    return LoadedPicture(description=picture.description)
        raise UnusableError(explain_no_picture([] if name is None else [name]))

    def text(self) -> str:
        """What `gpubench table` prints."""
        return terminal.format_text(self.reports)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        paths = ", ".join(str(folder.path) for folder in self.folders)
        return (
            f"<gpubench results of {paths}: {sum(len(folder.attempts) for folder in self.folders)} records>"
        )

    def _repr_html_(self) -> str:
        return html.format_html(self.reports)


def load(*folders: str | Path) -> LoadedFolders:
    """Results folders (none: the newest one) for a notebook. What of them can't be read is a warning, and left out.

    Raises UnusableError where nothing can be read.
    """
    paths = [Path(folder) for folder in folders] or [find_newest_results_folder()]
    problems: list[str] = []
    try:
        return LoadedFolders(read_folders(paths, problems.append))
    finally:
        for line in problems:
            warnings.warn(line, stacklevel=3)  # as of the line that called `gpubench.load`


# ---- samples ----


def read_samples(results: Results, record: Record) -> pd.DataFrame:
    """All readings of one attempt in order of time, each with the epoch in which it was taken.

    Those that can't be read are left out, with a warning. Raises UnusableError where there are none.
    """
    path = results.make_attempt_file_path("samples", record.trial_id, record.attempt_name, "csv")
    if not is_file_or_member(path):
        raise UnusableError(f"{path} does not exist: no time series is stored of this attempt")
    problems: list[str] = []
    series = read_samples_file(path, problems.append)
    if not series:
        raise UnusableError(problems[0])
    for line in problems:
        warnings.warn(line, stacklevel=3)  # as of the line that called `samples`
    frame = pd.DataFrame(
        [(t, device, metric, value) for (device, metric), known in series.items() for t, value in known],
        columns=list(SAMPLE_HEADER),
    ).astype({"device": "category", "metric": "category"})
    frame = frame.sort_values("t_s", kind="stable", ignore_index=True)
    frame["epoch"] = pd.array([pd.NA] * len(frame), dtype="Int64")
    frame["measured"] = pd.array([False if record.span else pd.NA] * len(frame), dtype="boolean")
    frame = sheets.attach_column_info(frame, SAMPLE_COLUMNS)
    if record.span is None:
        return frame
    warm_up = {epoch["epoch"]: bool(epoch.get("warmup")) for epoch in record.epochs}
    frame.attrs["windows"] = []
    for window in record.windows:
        t0, t1 = window.t0 - record.span.launched, window.t1 - record.span.launched
        measured = not warm_up.get(window.epoch, False)
        inside = np.asarray((frame["t_s"] >= t0) & (frame["t_s"] <= t1))
        frame.loc[inside, "epoch"] = window.epoch
        frame.loc[inside, "measured"] = measured
        frame.attrs["windows"].append({"epoch": window.epoch, "measured": measured, "from_s": t0, "to_s": t1})
    return frame
