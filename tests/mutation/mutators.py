"""Each small change that could be made to a module, one at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterator

OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,),
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
UNTOLD = ("annotation", "returns", "decorator_list", "bases", "msg")
"""Fields that change nothing of what is computed."""
DECISIONS = (ast.Name, ast.Call, ast.Attribute, ast.NamedExpr)
"""Conditions that no other change negates."""


def mutate(tree: ast.Module) -> Iterator[str]:
    """What was changed, as text; while it is yielded the tree is changed. Sentences stay as they are."""
    for node, place in list(_walk(tree, "0")):
        for field, value in _list_changes(node):
            before, old = ast.unparse(node), getattr(node, field)
            setattr(node, field, value)
            yield f"{place}: {_tell(before, ast.unparse(node))}"
            setattr(node, field, old)


def _walk(node: ast.AST, place: str) -> Iterator[tuple[ast.AST, str]]:
    """Each node that is computed with, and its line and column."""
    place = f"{node.lineno}:{node.col_offset}" if isinstance(node, ast.expr | ast.stmt) else place
    yield node, place
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    for field, value in ast.iter_fields(node):
        children = value if isinstance(value, list) else [value]
        for child in children if field not in UNTOLD else ():
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield from _walk(child, place)


def _list_changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """A field of a node, and another value for it."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(node, field, None)
        if isinstance(statements, list):
            for number, statement in enumerate(statements):
                if _is_removable(statement):
                    yield field, [*statements[:number], ast.Pass(), *statements[number + 1 :]]
    match node:
        case ast.Compare():
            for number, operator in enumerate(node.ops):
                for other in OPERATORS.get(type(operator), ()):
                    yield "ops", [*node.ops[:number], other(), *node.ops[number + 1 :]]
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign():
            for other in OPERATORS.get(type(node.op), ()):
                yield "op", other()
        case ast.Constant(value=bool()):
            yield "value", not node.value
        case ast.Constant(value=float() as number) if number:
            yield "value", 2 * number
            yield "value", number / 2
        case ast.Constant(value=int() | float() as number):
            yield "value", number + 1
            yield "value", number - 1
        case ast.If() | ast.While() | ast.IfExp() if isinstance(node.test, DECISIONS):
            yield "test", ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension() if node.ifs:
            yield "ifs", node.ifs[1:]
        case ast.Return() if node.value is not None and ast.unparse(node.value) != "None":
            yield "value", ast.Constant(None)
        case ast.Call():
            if len(node.args) > 1 and not any(isinstance(value, ast.Starred) for value in node.args[:2]):
                yield "args", [node.args[1], node.args[0], *node.args[2:]]
            if isinstance(node.func, ast.Name) and node.func.id in NAMES:
                yield "func", ast.Name(NAMES[node.func.id])
        case ast.UnaryOp(op=ast.Not()):
            yield "operand", ast.UnaryOp(ast.Not(), node.operand)
        case ast.UnaryOp(op=ast.USub()):
            yield "op", ast.UAdd()


def _is_removable(statement: ast.stmt) -> bool:
    """Whether the rest still runs without it: no name that is read elsewhere comes from it."""
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    is_call = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Constant)
    return is_call or isinstance(statement, ast.AugAssign | ast.Raise | ast.Continue | ast.Break)


def _tell(before: str, after: str) -> str:
    """The lines in which two texts differ, without the ends that they share beyond a few words."""
    pairs = enumerate(zip(before, after, strict=False))
    place = next((number for number, (sign, other) in pairs if sign != other), 0)
    start = max(0, before.rfind("\n", 0, place) + 1, place - 60)
    return "  ->  ".join(" ".join(text[start : start + 110].split()) for text in (before, after))
