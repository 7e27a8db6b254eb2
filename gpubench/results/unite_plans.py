"""Plans of several folders as those of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from gpubench.basics.errors import UsageError
from gpubench.plan.shards import join_parts
from gpubench.results.plans import PlanFile, read_plan_file
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole

_NUMBER = re.compile(r"(?m)(?<=^number = )\d+$")
_SHARDS = re.compile(r'(?m)^shards = ".*"\n')


def unite_plans(folders: Sequence[Results], target: Results, tell: Callable[[str], None]) -> None:
    """Each plan once, as it was stored last, numbered in the order in which they were stored. Of parts of a plan
    (`--shard`) it asks for all that any folder was asked for.

    `tell`: of those that can't be read, which stay where they are. Those of the target are told by whoever reads it.
    """
    versions: dict[str, list[PlanFile]] = {}
    unreadable: set[str] = set()
    for folder in folders:
        for path in folder.plans():
            try:
                file = read_plan_file(path)
                versions.setdefault(path.name, []).append(file)
            except (OSError, UsageError) as error:
                if folder is target:
                    unreadable.add(path.name)
                else:
                    tell(f"{path} is left out: {getattr(error, 'strerror', None) or error}")
    last = [max(files, key=_make_sort_key) for name, files in versions.items() if name not in unreadable]
    number = 0
    for file in sorted(last, key=lambda file: (*_make_sort_key(file), file.path.name)):
        path = target.folder / "plans" / file.path.name
        if not file.facts.number:  # of a version that knew none: it stays older than all others
            if not path.exists():
                write_whole(path, file.text)
            continue
        number += 1
        head, mark, tail = file.text.partition("\n[plan]\n")
        parts = ",".join(map(str, join_parts(other.facts.parts for other in versions[file.path.name])))
        number_line = f'{number}\nshards = "{parts}"' if parts else str(number)
        text = head + mark + _NUMBER.sub(number_line, _SHARDS.sub("", tail, count=1), count=1)
        if file.path != path or text != file.text:
            write_whole(path, text)


def _make_sort_key(file: PlanFile) -> tuple[str, int]:
    """When it was stored, among all."""
    return file.facts.stored_at, file.facts.number
