"""Neighbours for private data, as source: from an annotation, the columns that the code names, or an example.

A collection gets ``Rows``, of which one is added or removed; an array one entry that is replaced, since its length may be
part of what it is. Domains are guesses, narrow ones, and what is written says so.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from auditdp.errors import ConfigurationError

PLAIN = {
    "int": "st.integers(0, 100)",
    "float": "st.floats(0, 1)",
    "bool": "st.booleans()",
    "str": 'st.text("abc", max_size=3)',
}
SINGLE = {"bool": "(False, True)", "float": "(0.0, 1.0)", "str": '("a", "b")', "int": "(0, 1)"}
"""Two neighbours of data that is one value."""
LISTS = {"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence"}
SETS = {"set": "st.sets", "Set": "st.sets", "frozenset": "st.frozensets", "FrozenSet": "st.frozensets"}
ARRAYS = {"ndarray", "NDArray", "ArrayLike", "Array", "array"}
MOST_LISTED = 8
"""Different texts of a column of an example that are listed."""
Classes = Mapping[str, ast.ClassDef]


def neighbours_of(annotation: str, columns: Mapping[str, str], classes: Classes) -> str:
    """Return what ``pairs=`` of an audit is, as source; empty where nothing says what the data is.

    Args:
        annotation: Of the private data.
        columns: What the rows of a table hold, by the names of its columns: strategies as source.
        classes: The classes of the file, by name.
    """
    node = _parsed(annotation)
    name, inside = _name(node), _arguments(node)
    if name in ARRAYS:
        return 'Rows(st.floats(0, 1), "replace", least=3, most=3, into=np.ndarray)'
    if name == "DataFrame":
        into = "polars" if annotation.startswith(("pl.", "polars.")) else "pandas"
        return f'Rows({_fixed(columns)}, "add/remove", into="{into}")' if columns else ""
    if name in {"dict", "Dict", "Mapping"} and len(inside) == 2:
        row = strategy(inside[1], columns, classes)
        if _name(inside[0]) == "int":
            return f'Rows({row}, "add/remove", into=dict)' if row else ""
        return '[({"a": 1, "b": 1}, {"a": 1})]' if _name(inside[1]) in ("int", "float") else ""
    many = name in LISTS or (name in ("tuple", "Tuple") and _name(inside[1] if len(inside) > 1 else None) == "...")
    if many:
        row = strategy(inside[0], columns, classes) if inside else PLAIN["int"]
        return f'Rows({row}, "add/remove"{", into=tuple" if name.lower() == "tuple" else ""})' if row else ""
    return f"[{SINGLE[name]}]" if name in SINGLE else ""


def strategy(node: ast.expr | None, columns: Mapping[str, str], classes: Classes) -> str:
    """Return a strategy of one row, as source; empty where nothing says what it is."""
    name, inside = _name(node), _arguments(node)
    if name in PLAIN:
        return PLAIN[name]
    if name in {*LISTS, *SETS}:
        element = strategy(inside[0], columns, classes) if inside else PLAIN["int"]
        return f"{SETS.get(name, 'st.lists')}({element}, max_size=5)" if element else ""
    if name in ("tuple", "Tuple"):
        parts = [strategy(each, columns, classes) for each in inside]
        return f"st.tuples({', '.join(parts)})" if parts and all(parts) else ""
    if name in {"dict", "Dict", "Mapping"}:
        return _fixed(columns) if columns else ""
    fields = _fields(classes[name], classes) if name in classes else {}
    if not fields:
        return ""
    if any(_name(base) == "TypedDict" for base in classes[name].bases):
        return _fixed(fields)
    return f"st.builds({name}, {', '.join(f'{field}={of}' for field, of in fields.items())})"


def columns_of(example: Path) -> dict[str, str]:
    """Return the columns of an example in CSV, with what their values span.

    Raises:
        ConfigurationError: If it cannot be read.
    """
    try:
        with example.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"--example {example}: cannot be read as CSV: {error}") from error
    if not rows:
        raise ConfigurationError(f"--example {example}: expected a line of names and at least one row")
    return {name: _spanned([row[name] or "" for row in rows]) for name in rows[0] if name}


def _spanned(values: Sequence[str]) -> str:
    for read, made in ((int, "st.integers"), (float, "st.floats")):
        with suppress(ValueError):
            numbers = [read(value) for value in values]
            return f"{made}({min(numbers)!r}, {max(numbers)!r})"
    return sampled(sorted(set(values)))


def sampled(values: Sequence[str]) -> str:
    """Return a strategy of some texts, as source."""
    return f"st.sampled_from([{', '.join(map(_text, values[:MOST_LISTED]))}])"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _fixed(columns: Mapping[str, str]) -> str:
    return f"st.fixed_dictionaries({{{', '.join(f'{_text(name)}: {of}' for name, of in columns.items())}}})"


def _fields(owner: ast.ClassDef, classes: Classes) -> dict[str, str]:
    """Return the fields of a class that annotates them; nothing where one is not known."""
    named = [node for node in owner.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    others = {name: node for name, node in classes.items() if name != owner.name}
    found = {node.target.id: strategy(node.annotation, {}, others) for node in named}  # type: ignore[union-attr]
    return found if all(found.values()) else {}


def _parsed(annotation: str) -> ast.expr | None:
    with suppress(SyntaxError):
        return ast.parse(annotation.strip("'\""), mode="eval").body
    return None


def _name(node: ast.expr | None) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value) | ast.BinOp(left=value, op=ast.BitOr()):
            return _name(value)
        case ast.Constant(value=str(text)):
            return _name(_parsed(text))
        case ast.Constant(value=value) if value is ...:
            return "..."
    return ""


def _arguments(node: ast.expr | None) -> list[ast.expr]:
    if isinstance(node, ast.BinOp):
        return _arguments(node.left)
    if not isinstance(node, ast.Subscript):
        return []
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
