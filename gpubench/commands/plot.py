"""What `gpubench plot` does: pictures of results folders, as files."""

from __future__ import annotations

import mimetypes
from collections.abc import Collection, Sequence
from pathlib import Path

from gpubench.analyze.folder import Folder
from gpubench.basics.errors import UnusableError, UsageError, unknown
from gpubench.basics.words import clean
from gpubench.commands.opened import exit_code_of, read_named, warn
from gpubench.plot import files, trial
from gpubench.plot.description import Picture
from gpubench.plot.draw import need_matplotlib, why_none
from gpubench.plot.pictures import PICTURES, described
from gpubench.plot.subject import subjects
from gpubench.results.counting import newest

FORMATS = ("svg", "png", "pdf")
FOLDER = "plots"
"""In a results folder."""

Found = list[tuple[Folder, Picture]]


def plot(
    folders: Sequence[Path],
    *,
    out: Path | None,
    formats: str | None,
    only: str | None,
    trial_id: str | None,
) -> int:
    """`gpubench plot`. `formats`, `only`: names with commas between them."""
    kinds = _names("picture", only, PICTURES)
    wanted = _names("format", formats, FORMATS) or ["svg"]
    if out is not None and not out.is_dir() and mimetypes.guess_type(out.name)[0]:
        raise UsageError(
            f"--out names a folder, and {clean(str(out))} is the name of a file; the format is given by --format "
            f"{' or '.join(FORMATS)}"
        )
    if trial_id is not None and kinds not in ([], ["trial"]):
        raise UsageError("--trial draws that trial's samples alone: give no other picture with --only")
    need_matplotlib()
    found = read_named(folders)
    pictures = _of_trial(found, trial_id) if trial_id is not None else _all(found, kinds)
    if not pictures:
        raise UnusableError(why_none(kinds))
    for kind in kinds:
        if kind not in {picture.name for _, picture in pictures}:
            warn(f"no picture {kind}: it needs {PICTURES[kind].needs}")
    _write(pictures, out, wanted)
    return exit_code_of(folders, found)


def _names(what: str, text: str | None, valid: Collection[str]) -> list[str]:
    names = [] if text is None else [part.strip() for part in text.split(",")]
    for name in names:
        if name not in valid:
            raise unknown(what, name, valid)
    return list(dict.fromkeys(names))


def _all(found: Sequence[Folder], kinds: Sequence[str]) -> Found:
    return [
        (one, picture)
        for one in found
        for subject in subjects(one, warn, is_named=len(found) > 1)
        for picture in described(subject, kinds)
    ]


def _of_trial(found: Sequence[Folder], start: str) -> Found:
    """The picture of the one trial whose id begins so. Raises UsageError where there is none, or several."""
    ids = sorted(
        {record.trial_id for one in found for record in one.attempts if record.trial_id.startswith(start)}
    )
    if not start or not ids:
        raise UsageError(
            f"--trial: no trial's id begins with {start!r}; the column trial_id of trials.csv has them"
        )
    if len(ids) > 1:
        raise UsageError(
            f"--trial: {len(ids)} trials' ids begin with {start!r}: {', '.join(ids[:5])}; give more of it"
        )
    made: Found = []
    for one in found:
        mine = [record for record in newest(one.attempts).values() if record.trial_id == ids[0]]
        for subject in subjects(one, warn, is_named=len(found) > 1):
            if not mine or ids[0] not in set(subject.table.runs["trial_id"]):
                continue
            if picture := trial.of_record(subject, mine[0], ids[0]):
                made.append((one, picture))
    if not made:
        raise UnusableError(
            f"--trial: nothing was sampled of {ids[0]}, or its samples are not in the results folder"
        )
    return made[:1]


def _write(pictures: Found, out: Path | None, formats: Sequence[str]) -> None:
    """Writes them all, and prints their paths. One that can't be written keeps no other from it; then UnusableError."""
    from gpubench.plot.paper.figure import drawn
    from gpubench.plot.paper.file import written

    several = len({id(one) for one, _ in pictures}) > 1
    failed: list[str] = []
    for folder, mine in _by_folder(pictures, out):
        before = [
            (one.path.resolve().name if out is not None and several else "", picture) for one, picture in mine
        ]
        for name, picture in files.named(before):
            figure = drawn(picture)
            for form in formats:
                path = folder / f"{name}.{form}"
                try:
                    files.write(path, written(figure, form))
                except UnusableError as error:
                    failed.append(str(error))
                    continue
                print(path)
    if failed:
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        raise UnusableError(f"{failed[0]}{more}")


def _by_folder(pictures: Found, out: Path | None) -> list[tuple[Path, Found]]:
    """Where which pictures go: all into one folder, else those of each results folder into its own."""
    if out is not None:
        return [(out, pictures)]
    found: dict[Path, Found] = {}
    for one, picture in pictures:
        found.setdefault(one.path / FOLDER, []).append((one, picture))
    return list(found.items())
