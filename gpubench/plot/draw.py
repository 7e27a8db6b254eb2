"""One picture of results folders, for notebooks: `draw(folders).savefig("x.svg")`."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpubench.analyze.folder import Folder
from gpubench.basics.errors import UnusableError, unknown
from gpubench.plot.pictures import PICTURES, described
from gpubench.plot.subject import subjects

if TYPE_CHECKING:
    from gpubench.plot.paper.figure import Drawing

PACKAGE, EXTRA = "matplotlib", "plot"


def draw(folders: Sequence[Folder], name: str | None = None) -> Drawing:
    """The first picture of this kind (a key of PICTURES; None: the main one) that there is, as a matplotlib Figure.

    Of several folders, that of the first one that has such a picture.

    Raises UsageError for another name, and UnusableError where there is none or matplotlib is missing.
    """
    if name is not None and name not in PICTURES:
        raise unknown("picture", name, PICTURES)
    need_matplotlib()
    from gpubench.plot.paper.figure import drawn

    found = [subject for folder in folders for subject in subjects(folder, is_named=len(folders) > 1)]
    for kind in PICTURES if name is None else (name,):
        for subject in found:
            for picture in described(subject, [kind]):
                return drawn(picture)
    raise UnusableError(why_none([name] if name else []))


def need_matplotlib() -> None:
    """Raises UnusableError where it is not installed."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise UnusableError(
            f"pictures need {PACKAGE}, which is not installed: pip install 'gpubench[{EXTRA}]'"
        )


def why_none(only: list[str]) -> str:
    """That no picture can be drawn, and what a sweep must have for one."""
    if not only:
        return (
            f"nothing here can be drawn: a picture needs {PICTURES['growth'].needs}, or what another one needs \
(docs/plots.md)"
        )
    needs = "; ".join(f"{name} needs {PICTURES[name].needs}" for name in only)
    return f"nothing here can be drawn: {needs}"
