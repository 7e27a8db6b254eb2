"""What `gpubench plot` does: pictures of results folders, as files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpubench.analyze.folder import Folder
from gpubench.analyze.questions import make_folder_reports
from gpubench.analyze.trace import make_recommended_trace, make_run_trace
from gpubench.basics.errors import UnusableError, UsageError
from gpubench.basics.safe_name import make_safe_file_name
from gpubench.basics.words import clean_line
from gpubench.commands.folders import (
    choose_read_exit_code,
    parse_known_names,
    print_warning,
    read_named_folders,
)
from gpubench.render.draw import FORMS, check_vl_convert, draw_file_bytes
from gpubench.render.pictures.pictures import KINDS, Picture, explain_no_picture, list_pictures
from gpubench.render.pictures.vega import COLUMN_SCALE, fit_to_paper_column
from gpubench.results.whole_file import write_whole

FOLDER = "plots"
"""In a results folder."""

FolderPicture = tuple[Folder, Picture]
"""A picture with the results folder that it is of."""


def plot(
    folders: Sequence[Path],
    *,
    out: Path | None,
    formats: str | None,
    only: str | None,
    trial_id: str | None,
    is_paper: bool,
) -> int:
    """`gpubench plot`. `formats`, `only`: names with commas between them. `is_paper`: for a column of a paper."""
    kinds = parse_known_names("picture", only, KINDS)
    forms = parse_known_names("format", formats, FORMS) or ["svg"]
    if out is not None and out.suffix.removeprefix(".") in FORMS and not out.is_dir():
        raise UsageError(
            f"--out names a folder, and {clean_line(str(out))} is the name of a file: give --format"
        )
    if trial_id is not None and kinds not in ([], ["trial"]):
        raise UsageError("--trial draws that trial's samples alone: give no other picture with --only")
    if out is not None and out.exists() and not out.is_dir():
        raise UsageError(f"--out names a folder, and {clean_line(str(out))} is a file")
    check_vl_convert()
    read = read_named_folders(folders)
    pictures = (
        draw_pictures_of_folders(read, kinds) if trial_id is None else draw_picture_of_trial(read, trial_id)
    )
    if not pictures:
        raise UnusableError(explain_no_picture(kinds))
    for kind in kinds:
        if kind not in {picture.kind for _, picture in pictures}:
            print_warning(f"no picture {kind}: it needs {KINDS[kind]}")
    write_pictures(pictures, out, forms, is_paper=is_paper)
    return choose_read_exit_code(folders, read)


def draw_pictures_of_folders(folders: Sequence[Folder], kinds: Sequence[str]) -> list[FolderPicture]:
    """All pictures of these kinds; of all kinds where none are named."""
    drawn = []
    for folder in folders:
        for report in make_folder_reports([folder]):
            has_trace = not kinds or "trial" in kinds
            trace = make_recommended_trace(folder, report, print_warning) if has_trace else None
            drawn += [(folder, picture) for picture in list_pictures(report, trace, kinds)]
    return drawn


def draw_picture_of_trial(folders: Sequence[Folder], start: str) -> list[FolderPicture]:
    """The picture of the one trial whose id begins so. Raises UsageError where there is none, or several."""
    known = {record.trial_id for folder in folders for record in folder.records}
    ids = sorted(name for name in known if name.startswith(start))
    if not start or not ids:
        raise UsageError(
            f"--trial: no trial's id begins with {start!r}; the column trial_id of trials.csv has them"
        )
    if len(ids) > 1:
        raise UsageError(
            f"--trial: {len(ids)} trials' ids begin with {start!r}: {', '.join(ids[:5])}; give more of it"
        )
    for folder in folders:
        reports = make_folder_reports([folder])
        for run, row in zip(folder.members["run"], folder.members["row"], strict=True):
            if folder.runs.at[run, "trial_id"] != ids[0]:
                continue
            trace = make_run_trace(folder, run, row, print_warning)
            report = next(report for report in reports if row in report.labels)
            if trace is not None:
                return [(folder, picture) for picture in list_pictures(report, trace, ["trial"])]
    raise UnusableError(
        f"--trial: nothing was sampled of {ids[0]}, or its samples are not in the results folder"
    )


# ---- files ----


def write_pictures(
    pictures: Sequence[FolderPicture], out: Path | None, forms: Sequence[str], *, is_paper: bool
) -> None:
    """Writes them all, and prints their paths. Raises UnusableError for the first that can't be written."""
    for path, picture in list_picture_paths(pictures, out):
        for form in forms:
            description = fit_to_paper_column(picture.description) if is_paper else picture.description
            file = path.with_name(f"{path.name}.{form}")
            try:
                write_whole(file, draw_file_bytes(description, form, COLUMN_SCALE if is_paper else 1.0))
            except UnusableError as error:
                raise UnusableError(f"{error}; name another folder with --out") from None
            print(file)


def list_picture_paths(pictures: Sequence[FolderPicture], out: Path | None) -> list[tuple[Path, Picture]]:
    """Where each goes, without an ending, no two to the same place: into `out`, else into its results folder."""
    several = len({id(folder) for folder, _ in pictures}) > 1
    taken: set[str] = set()
    places = []
    for folder, picture in pictures:
        home = folder.path / FOLDER if out is None else out
        if out is None and home.is_symlink():
            raise UnusableError(f"{home} is a link, which is not followed; name a folder with --out")
        prefix = folder.path.resolve().name if out is not None and several else ""
        first = make_safe_file_name("-".join(part for part in (prefix, picture.name) if part), "picture")
        name, number = first, 2
        while str(home / name).casefold() in taken:  # some file systems take A for a
            name = f"{first}-{number}"
            number += 1
        taken.add(str(home / name).casefold())
        places.append((home / name, picture))
    return places
