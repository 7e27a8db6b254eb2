"""The environment outside: what a user's command is to have, whatever our own processes on the way to it were given."""

from __future__ import annotations

import json
from collections.abc import Mapping

OUTSIDE = "GPUBENCH_OUTSIDE"
"""A variable with what others were before they were changed for our own processes: JSON, null for one that was not
there."""


def note_outside_environment(outside: Mapping[str, str], changed: Mapping[str, str]) -> dict[str, str]:
    """The changed environment, with a note of what it was."""
    names = [name for name in {**outside, **changed} if outside.get(name) != changed.get(name)]
    return {**changed, OUTSIDE: json.dumps({name: outside.get(name) for name in names})}


def read_outside_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment as it was before."""
    before: dict[str, str | None] = json.loads(environ.get(OUTSIDE, "{}"))
    kept = {name: value for name, value in environ.items() if name not in before and name != OUTSIDE}
    return kept | {name: value for name, value in before.items() if value is not None}
