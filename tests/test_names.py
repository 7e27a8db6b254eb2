"""One name, one thing: no two classes of the package share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "gpubench"
REPLACED = ("export",)
"""Rooms that are rebuilt next: their classes may share a name with others until then."""


def test_no_two_classes_share_a_name() -> None:
    where = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).as_posix().startswith(REPLACED):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(PACKAGE)))
    assert where, "the package has classes"
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}
