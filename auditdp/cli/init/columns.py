"""The columns that code reads of a table, or of rows that are dictionaries, and what it says that they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from contextlib import suppress

from auditdp.cli.init.domains import PLAIN, sampled

AGGREGATED = {"agg", "aggregate", "count", "mean", "median", "nunique", "size", "std", "sum", "value_counts", "var"}
"""Methods of tables whose columns are no longer those of the data."""
KEYED = {"drop_duplicates", "get", "groupby", "pivot_table", "set_index", "sort_values"}
"""Methods that are given names of columns."""
PARTS = {"T", "at", "columns", "dtypes", "empty", "iat", "iloc", "index", "loc", "shape", "size", "values"}
"""Attributes of tables that are no columns."""


def columns_read(function: ast.AST, data: str, constants: Mapping[str, ast.expr]) -> dict[str, str]:
    """Return the columns with strategies, as source: of texts that code compares or groups by, or around what it clips to.

    Args:
        function: The code.
        data: The name of the private data.
        constants: What names of the module are, such as lists of keys.
    """
    nodes, tables, before = [*ast.walk(function)], {data}, 0
    while len(tables) > before:  # names that are made of the data, and names that are made of these
        before = len(tables)
        tables |= {name for node in nodes for name, value in _bound(node) if _origin(value) in tables}
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    reading = [node for node in nodes if _origin(node) in tables and node not in called]
    found = {name: PLAIN["int"] for node in reading for name in _columns(node)}
    texts: dict[str, list[str]] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=subject, attr="clip"), args=args, keywords=keywords):
                given = [*args, *(keyword.value for keyword in keywords if keyword.arg in ("lower", "upper"))]
                ends = [constants.get(end.id, end) if isinstance(end, ast.Name) else end for end in given]
                found |= {name: _around(ends) for name in _named(subject) if name in found}
            case ast.Compare(left=subject, comparators=[value]):
                _add(texts, subject, value, constants)
            case ast.Call(func=ast.Attribute(value=subject, attr="isin" | "reindex"), args=[value, *_]):
                _add(texts, subject, value, constants)
    return found | {name: sampled([*values, "other"]) for name, values in texts.items() if name in found and values}


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names that are bound to a value, or to the items of one."""
    match node:
        case ast.Assign(targets=[target], value=value):
            yield from ((each.id, value) for each in ast.walk(target) if isinstance(each, ast.Name))
        case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value):
            yield from ((each.id, value) for each in ast.walk(target) if isinstance(each, ast.Name))


def _steps(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a chain of brackets, attributes and calls from its end to the name that it begins with."""
    yield node
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        yield from _steps(node.func if isinstance(node, ast.Call) else node.value)


def _origin(node: ast.AST) -> str:
    """Return the name that a chain begins with; empty where it aggregates."""
    steps = [*_steps(node)]
    aggregated = any(isinstance(step, ast.Attribute) and step.attr in AGGREGATED for step in steps)
    return steps[-1].id if isinstance(steps[-1], ast.Name) and not aggregated else ""


def _columns(node: ast.AST) -> list[str]:
    """Return the columns that one step of a chain names."""
    match node:
        case ast.Subscript(slice=given):
            return _texts(given)
        case ast.Attribute(value=ast.Name(), attr=name):
            return [name] * (name not in PARTS)
        case ast.Call(func=ast.Attribute(attr=method), args=args, keywords=keywords) if method in KEYED:
            return [name for each in (*args, *(keyword.value for keyword in keywords)) for name in _texts(each)]
    return []


def _named(node: ast.AST) -> list[str]:
    """Return the columns that the step of a chain names that is nearest to its beginning."""
    steps = [*_steps(node)]
    called = [step.func for step in steps if isinstance(step, ast.Call)]
    return next((names for step in reversed(steps) if step not in called and (names := _columns(step))), [])


def _texts(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    return [each.value for each in items if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _add(texts: dict[str, list[str]], subject: ast.AST, value: ast.expr, constants: Mapping[str, ast.expr]) -> None:
    """Add the texts of a literal, or of a constant of the module, to those of the column that a chain names first."""
    listed = constants.get(value.id, value) if isinstance(value, ast.Name) else value
    for name in _named(subject)[:1]:
        known = texts.setdefault(name, [])
        known += [text for text in _texts(listed) if text not in known]


def _around(ends: list[ast.expr]) -> str:
    """Return a strategy of numbers around two literal ends: within them nobody sees that code clips no more."""
    with suppress(ValueError, TypeError):
        least, most = map(ast.literal_eval, ends)
        whole = isinstance(least, int) and isinstance(most, int)
        return f"st.{'integers' if whole else 'floats'}({2 * least - most}, {2 * most - least})"
    return PLAIN["int"]
