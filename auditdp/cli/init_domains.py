"""Source text for the neighbours of private data, for ``auditdp init``.

It is derived from the annotation of the data, and from columns: those of an example, or
those that the code reads of a table or of rows that are dictionaries. A collection gets
``Rows`` with one row added or removed. An array gets one replaced entry, since its
length may be fixed. Domains of values are narrow guesses, and the written file states
that.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from auditdp.errors import ConfigurationError

PLAIN = {
    "int": "st.integers(0, 100)",
    "float": "st.floats(0, 1)",
    "bool": "st.booleans()",
    "str": 'st.text("abc", max_size=3)',
}
SINGLE = {
    "bool": "(False, True)",
    "float": "(0.0, 1.0)",
    "str": '("a", "b")',
    "int": "(0, 1)",
}
"""Two neighbours, as source, for each type of data that is one value."""
LISTS = {"list", "List", "Sequence", "Iterable", "Collection", "MutableSequence"}
SETS = {
    "set": "st.sets",
    "Set": "st.sets",
    "frozenset": "st.frozensets",
    "FrozenSet": "st.frozensets",
}
ARRAYS = {"ndarray", "NDArray", "ArrayLike", "Array", "array"}
MOST_LISTED = 8
"""Largest number of different texts that the strategy of a column lists."""
Classes = Mapping[str, ast.ClassDef]


def neighbours_of(annotation: str, columns: Mapping[str, str], classes: Classes) -> str:
    """Return the value of an audit's ``pairs``, as source; empty for unknown types.

    Args:
        annotation: Annotation of the private data, as source; empty if there is none.
        columns: Strategies, as source, by the names of columns.
        classes: The classes of the file, by name.
    """
    node = _parsed(annotation)
    name, inside = _name(node), _arguments(node)
    if name in ARRAYS:
        return 'Rows(st.floats(0, 1), "replace", least=3, most=3, into=np.ndarray)'
    if name == "DataFrame":
        into = "polars" if annotation.startswith(("pl.", "polars.")) else "pandas"
        return (
            f'Rows({_fixed(columns)}, "add/remove", into="{into}")' if columns else ""
        )
    if name in {"dict", "Dict", "Mapping"} and len(inside) == 2:
        row = strategy(inside[1], columns, classes)
        if _name(inside[0]) == "int":
            return f'Rows({row}, "add/remove", into=dict)' if row else ""
        return (
            '[({"a": 1, "b": 1}, {"a": 1})]'
            if _name(inside[1]) in ("int", "float")
            else ""
        )
    many = name in LISTS or (
        name in ("tuple", "Tuple")
        and _name(inside[1] if len(inside) > 1 else None) == "..."
    )
    if many:
        row = strategy(inside[0], columns, classes) if inside else PLAIN["int"]
        return (
            f'Rows({row}, "add/remove"{", into=tuple" if name.lower() == "tuple" else ""})'
            if row
            else ""
        )
    return f"[{SINGLE[name]}]" if name in SINGLE else ""


def strategy(
    node: ast.expr | None, columns: Mapping[str, str], classes: Classes
) -> str:
    """Return a strategy for values of an annotated type, as source; empty if unknown.

    Args:
        node: The annotation.
        columns: Strategies, as source, by the keys of a dictionary.
        classes: The classes of the file, by name.
    """
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
    """Return strategies, as source, by the columns of an example in CSV.

    A strategy spans the range of the column's numbers, or samples its texts.

    Raises:
        ConfigurationError: If the file cannot be read or has no rows.
    """
    try:
        with example.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(
            f"--example {example}: cannot be read as CSV: {error}"
        ) from error
    if not rows:
        raise ConfigurationError(
            f"--example {example}: expected a line of names and at least one row"
        )
    return {
        name: _spanned([row[name] or "" for row in rows]) for name in rows[0] if name
    }


def _spanned(values: Sequence[str]) -> str:
    for read, made in ((int, "st.integers"), (float, "st.floats")):
        with suppress(ValueError):
            numbers = [read(value) for value in values]
            return f"{made}({min(numbers)!r}, {max(numbers)!r})"
    return sampled(sorted(set(values)))


def sampled(values: Sequence[str]) -> str:
    """Return a strategy, as source, that samples the first ``MOST_LISTED`` texts."""
    return f"st.sampled_from([{', '.join(map(_text, values[:MOST_LISTED]))}])"


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _fixed(columns: Mapping[str, str]) -> str:
    return f"st.fixed_dictionaries({{{', '.join(f'{_text(name)}: {of}' for name, of in columns.items())}}})"


def _fields(owner: ast.ClassDef, classes: Classes) -> dict[str, str]:
    """Return strategies, as source, by the annotated fields of a class.

    The result is {} if the type of a field is unknown.
    """
    named = [
        node
        for node in owner.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    ]
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


AGGREGATED = {
    "agg",
    "aggregate",
    "count",
    "mean",
    "median",
    "nunique",
    "size",
    "std",
    "sum",
    "value_counts",
    "var",
}
"""Methods of tables whose results have other columns than the table."""
KEYED = {"drop_duplicates", "get", "groupby", "pivot_table", "set_index", "sort_values"}
"""Methods of tables whose arguments are names of columns."""
PARTS = {
    "T",
    "at",
    "columns",
    "dtypes",
    "empty",
    "iat",
    "iloc",
    "index",
    "loc",
    "shape",
    "size",
    "values",
}
"""Attributes of tables that are not columns."""


def columns_read(
    function: ast.AST, data: str, constants: Mapping[str, ast.expr]
) -> dict[str, str]:
    """Return strategies, as source, by the columns that a function reads.

    The strategy samples the texts with which the function compares a column, and one
    other text. If the function clips the column, the strategy spans the limits, and
    numbers beyond them. By default it is that of ``int`` in ``PLAIN``.

    Args:
        function: The syntax tree of the function.
        data: The name of the private data.
        constants: Values of names of the module, such as lists of keys.
    """
    nodes, tables, before = [*ast.walk(function)], {data}, 0
    # Names that are computed from the data, directly or indirectly, are added until
    # there are no more.
    while len(tables) > before:
        before = len(tables)
        tables |= {
            name
            for node in nodes
            for name, value in _bound(node)
            if _origin(value) in tables
        }
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    reading = [node for node in nodes if _origin(node) in tables and node not in called]
    found = {name: PLAIN["int"] for node in reading for name in _columns(node)}
    texts: dict[str, list[str]] = {}
    for node in nodes:
        match node:
            case ast.Call(
                func=ast.Attribute(value=subject, attr="clip"),
                args=args,
                keywords=keywords,
            ):
                given = [
                    *args,
                    *(
                        keyword.value
                        for keyword in keywords
                        if keyword.arg in ("lower", "upper")
                    ),
                ]
                ends = [
                    constants.get(end.id, end) if isinstance(end, ast.Name) else end
                    for end in given
                ]
                found |= {
                    name: _around(ends) for name in _named(subject) if name in found
                }
            case ast.Compare(left=subject, comparators=[value]):
                _add(texts, subject, value, constants)
            case ast.Call(
                func=ast.Attribute(value=subject, attr="isin" | "reindex"),
                args=[value, *_],
            ):
                _add(texts, subject, value, constants)
    return found | {
        name: sampled([*values, "other"])
        for name, values in texts.items()
        if name in found and values
    }


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that an assignment or loop binds, with its value or iterable."""
    match node:
        case ast.Assign(targets=[target], value=value):
            yield from (
                (each.id, value)
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            )
        case (
            ast.For(target=target, iter=value)
            | ast.comprehension(target=target, iter=value)
        ):
            yield from (
                (each.id, value)
                for each in ast.walk(target)
                if isinstance(each, ast.Name)
            )


def _steps(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the expressions of a chain of attributes, brackets and calls.

    The order is from the whole chain to the expression with which it begins.
    """
    yield node
    if isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        yield from _steps(node.func if isinstance(node, ast.Call) else node.value)


def _origin(node: ast.AST) -> str:
    """Return the name with which a chain begins.

    It is empty if the chain begins with another expression than a name, or if it names
    a method in ``AGGREGATED``.
    """
    steps = [*_steps(node)]
    aggregated = any(
        isinstance(step, ast.Attribute) and step.attr in AGGREGATED for step in steps
    )
    return steps[-1].id if isinstance(steps[-1], ast.Name) and not aggregated else ""


def _columns(node: ast.AST) -> list[str]:
    """Return the columns that a step names by itself; earlier steps are ignored.

    A step is an attribute, a bracket or a call of a chain.
    """
    match node:
        case ast.Subscript(slice=given):
            return _texts(given)
        case ast.Attribute(value=ast.Name(), attr=name):
            return [name] * (name not in PARTS)
        case ast.Call(
            func=ast.Attribute(attr=method), args=args, keywords=keywords
        ) if method in KEYED:
            return [
                name
                for each in (*args, *(keyword.value for keyword in keywords))
                for name in _texts(each)
            ]
    return []


def _named(node: ast.AST) -> list[str]:
    """Return the columns of the first step of a chain that has any, or [].

    The first step is at the beginning of the chain.
    """
    steps = [*_steps(node)]
    called = [step.func for step in steps if isinstance(step, ast.Call)]
    return next(
        (
            names
            for step in reversed(steps)
            if step not in called and (names := _columns(step))
        ),
        [],
    )


def _texts(node: ast.expr) -> list[str]:
    items = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    return [
        each.value
        for each in items
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _add(
    texts: dict[str, list[str]],
    subject: ast.AST,
    value: ast.expr,
    constants: Mapping[str, ast.expr],
) -> None:
    """Add the texts of a value to ``texts``, for the column that a chain names.

    Args:
        texts: The texts by column; it is changed.
        subject: The chain that names the column.
        value: A literal of texts, or the name of one in ``constants``.
        constants: Values of names of the module.
    """
    listed = constants.get(value.id, value) if isinstance(value, ast.Name) else value
    for name in _named(subject)[:1]:
        known = texts.setdefault(name, [])
        known += [text for text in _texts(listed) if text not in known]


def _around(ends: list[ast.expr]) -> str:
    """Return a strategy, as source, of numbers within and beyond two literal limits.

    Values within the limits alone would hide a missing clip. Without two literal
    limits, the strategy is that of ``int`` in ``PLAIN``.
    """
    with suppress(ValueError, TypeError):
        least, most = map(ast.literal_eval, ends)
        whole = isinstance(least, int) and isinstance(most, int)
        return f"st.{'integers' if whole else 'floats'}({2 * least - most}, {2 * most - least})"
    return PLAIN["int"]
