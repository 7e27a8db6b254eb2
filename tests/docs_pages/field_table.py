"""The table of fields in docs/experiments.md, from their entries in `schema/trial_fields.py`.

`PYTHONPATH=tests python -m docs_pages.field_table docs/experiments.md` writes it there.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docs_pages.placing import write

from gpubench.plan.values import format_field_value
from gpubench.schema.trial_fields import ABOUT, DEFAULTS, FieldDescription

HEAD = "| field | default | option | what it is |\n| --- | --- | --- | --- |\n"


def text() -> str:
    """A line for each field that an experiment may give."""
    return HEAD + "".join(_row(name, about) for name, about in ABOUT.items())


def _row(name: str, about: FieldDescription) -> str:
    option = f"`{about.option.name}`" if about.option else ""
    what = f"{about.meaning}; {about.note}" if about.note else about.meaning
    return f"| `{name}` | {_default(about, DEFAULTS[name])} | {option} | {what} |\n"


def _default(about: FieldDescription, value: Any) -> str:
    if about.default:
        return about.default
    if value is None:
        return f"auto: {about.auto}" if about.auto else "–"
    return f"`{format_field_value(value)}`"


if __name__ == "__main__":
    write(Path(sys.argv[1]), HEAD, text())
