"""The table of fields in docs/experiments.md, from their entries in `trial_fields.py`.

`python -m gpubench.report.fields docs/experiments.md` writes it anew between its marks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gpubench.plan.values import as_text
from gpubench.schema.field import About
from gpubench.schema.trial_fields import ABOUT, DEFAULTS

BEGIN = "<!-- made from gpubench/schema/trial_fields.py by gpubench.report.fields -->\n"
END = "<!-- end of the fields -->\n"


def table() -> str:
    """A line for each field that an experiment may give."""
    rows = "".join(_row(name, about) for name, about in ABOUT.items())
    return f"| field | default | option | what it is |\n| --- | --- | --- | --- |\n{rows}"


def in_page(page: str) -> str:
    """The page with the table as it is today."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _row(name: str, about: About) -> str:
    option = f"`{about.option.name}`" if about.option else ""
    what = f"{about.meaning}; {about.note}" if about.note else about.meaning
    return f"| `{name}` | {_default(about, DEFAULTS[name])} | {option} | {what} |\n"


def _default(about: About, value: object) -> str:
    if about.default:
        return about.default
    if value is None:
        return f"auto: {about.auto}" if about.auto else "–"
    return f"`{as_text(value)}`"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(in_page(path.read_text("utf-8")), "utf-8")
