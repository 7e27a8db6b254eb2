"""Plans of several folders as those of one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpubench.basics.regular_file import read_regular
from gpubench.plan.shards import join_parts
from gpubench.results.file_names import is_plain
from gpubench.results.plans import Stamp, read_parts, read_stamp
from gpubench.results.store import Results
from gpubench.results.whole_file import write_whole

_NUMBER = re.compile(r"(?m)(?<=^number = )\d+$")
_SHARDS = re.compile(r'(?m)^shards = ".*"\n')


@dataclass(frozen=True, kw_only=True, slots=True)
class _FoundPlan:
    """A plan as it lies in a folder."""

    path: Path
    content: bytes
    stamp: Stamp

    @property
    def place(self) -> tuple[str, int]:
        """When it was stored, among all."""
        return self.stamp.stored_at, self.stamp.number


def unite_plans(folders: Sequence[Results], target: Results, tell: Callable[[str], None]) -> None:
    """Each plan once, as it was stored last, numbered in the order in which they were stored. Of parts of a plan
    (`--shard`) it asks for all that any folder was asked for.

    `tell`: of those that can't be read, which stay where they are. Those of the target are told by whoever reads it.
    """
    versions = _find_versions(folders, target, tell)
    last = {name: max(plans, key=lambda plan: plan.place) for name, plans in versions.items()}
    in_order = sorted(last.items(), key=lambda item: (*item[1].place, item[0]))
    number = 0
    for name, plan in in_order:
        other = target.folder / "plans" / name
        if not plan.stamp.number:  # of a version that knew none: it stays older than all others
            if plan.path != other and not other.exists():
                write_whole(other, plan.content)
            continue
        number += 1
        text = plan.content.decode("utf-8")
        head, mark, tail = text.partition("\n[plan]\n")
        parts = ",".join(map(str, join_parts(read_parts(version.content) for version in versions[name])))
        number_line = f'{number}\nshards = "{parts}"' if parts else str(number)
        new_text = head + mark + _NUMBER.sub(number_line, _SHARDS.sub("", tail, count=1), count=1)
        if plan.path != other or new_text != text:
            write_whole(other, new_text)


def _find_versions(
    folders: Sequence[Results], target: Results, tell: Callable[[str], None]
) -> dict[str, list[_FoundPlan]]:
    """The plans by the names of their files: of each those of all folders."""
    versions: dict[str, list[_FoundPlan]] = {}
    kept: set[str] = set()
    for folder in folders:
        for path in folder.plans():
            target_path = target.folder / "plans" / path.name
            if not is_plain(path) or (target_path.exists() and not is_plain(target_path)):
                what = path if not is_plain(path) else target_path
                tell(f"{path} is left out: {what} is no file; rename it, and merge again")
                continue
            try:
                content = read_regular(path)
            except OSError as error:
                if path == target_path:
                    kept.add(path.name)
                else:
                    tell(
                        f"{path} is left out: it can't be read ({error.strerror}); make it readable, and merge again"
                    )
                continue
            plan = _FoundPlan(path=path, content=content, stamp=read_stamp(content))
            versions.setdefault(path.name, []).append(plan)
    return {name: plans for name, plans in versions.items() if name not in kept}
