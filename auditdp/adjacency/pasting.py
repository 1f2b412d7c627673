"""A pair of inputs as Python to paste, with what differs marked: where the short text of a pair leaves some of it out."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import math
from typing import Any

import numpy as np

from auditdp.mechanism.calls.inputs import PLAIN, difference
from auditdp.mechanism.protocol import brief, columns_of, identity_key, is_table, rows_of

LONGEST = 4_000
"""Characters beyond which a pair is not written out."""
WHOLE = 1 << 20
CALLED = {"float", "set", "frozenset", "np.array", "pd.DataFrame", "pl.DataFrame"}


def as_python(data: Any, neighbour: Any) -> str:
    """Return two assignments, of ``data`` and ``neighbour``, with what differs in a comment.

    Empty where the short text shows all of both, and where an input is too long, or of a type that cannot be written.

    >>> print(as_python([{"age": 40, "city": "Ulm"}] * 2 + [{"age": 7, "city": "Bonn"}], [{"age": 40, "city": "Ulm"}] * 2))
    data = [{'age': 40, 'city': 'Ulm'}] * 2 + [{'age': 7, 'city': 'Bonn'}]
    neighbour = [{'age': 40, 'city': 'Ulm'}] * 2  # without data[2], which is {'age': 7, 'city': 'Bonn'}
    """
    if not any("..." in brief(each) or brief(each) != brief(each, WHOLE) for each in (data, neighbour)):
        return ""
    try:
        one, other = _written(data), _written(neighbour)
    except TypeError:
        return ""
    here, there = _marks(_rows(data), _rows(neighbour))
    text = f"data = {one}{here}\nneighbour = {other}{there}"
    return text if len(text) <= LONGEST and is_data(text) else ""


def is_data(text: str) -> bool:
    """Return whether Python makes nothing but data: containers, numbers, texts, and objects of the classes that it names."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    names = [ast.unparse(each.targets[0]) if isinstance(each, ast.Assign) else "" for each in body]
    return names == ["data", "neighbour"] and all(_is_data(each.value) for each in body)  # type: ignore[attr-defined]


def _is_data(node: ast.AST) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Call(func=ast.Name() | ast.Attribute() as called, args=arguments, keywords=keywords):
            name = ast.unparse(called)
            return (name in CALLED or (name.isidentifier() and name[:1].isupper())) and all(
                map(_is_data, [*arguments, *(keyword.value for keyword in keywords)])
            )
        case ast.List() | ast.Tuple() | ast.Set() | ast.Dict() | ast.UnaryOp() | ast.BinOp():
            inner = (each for each in ast.iter_child_nodes(node))
            return all(
                isinstance(each, ast.expr_context | ast.operator | ast.unaryop) or _is_data(each) for each in inner
            )
    return False


def _written(value: Any) -> str:
    """Return the Python of a value."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, PLAIN):
        return repr(value)
    if type(value) in (list, tuple):
        return _sequence(value)
    if type(value) is dict:
        return f"{{{', '.join(f'{_written(key)}: {_written(item)}' for key, item in value.items())}}}"
    if type(value) in (set, frozenset):
        inner = ", ".join(map(_written, sorted(value, key=repr)))
        return (
            f"{{{inner}}}" if inner and type(value) is set else f"{type(value).__name__}({f'[{inner}]' * bool(inner)})"
        )
    if isinstance(value, np.ndarray):
        return f"np.array({_written(value.tolist())}, dtype={_written(np.lib.format.dtype_to_descr(value.dtype))})"
    if is_table(value):
        return f"{'pd' if hasattr(value, 'iloc') else 'pl'}.DataFrame({_written(columns_of(value))})"
    if dataclasses.is_dataclass(value):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value) if field.init)
        return f"{type(value).__name__}({', '.join(f'{name}={_written(item)}' for name, item in fields)})"
    raise TypeError(f"no Python of {type(value).__name__}")


def _sequence(value: list[Any] | tuple[Any, ...]) -> str:
    """Return a list or a tuple, what follows itself as often as it does."""
    runs = [(text, len(list(same))) for text, same in itertools.groupby(map(_written, value))]
    start, end, comma = ("[", "]", "") if type(value) is list else ("(", ")", ",")
    parts: list[str] = []
    for repeated, some in itertools.groupby(runs, key=lambda run: run[1] > 1):
        if repeated:
            parts += [f"{start}{text}{comma}{end} * {count}" for text, count in some]
        else:
            texts = [text for text, _ in some]
            parts.append(f"{start}{', '.join(texts)}{comma if len(texts) == 1 else ''}{end}")
    return " + ".join(parts) or start + end


def _rows(value: Any) -> Any:
    if is_table(value):
        return rows_of(value)
    return value.tolist() if isinstance(value, np.ndarray) else value


def _marks(data: Any, neighbour: Any) -> tuple[str, str]:
    """Return the comments of both lines, of which one is empty."""
    if isinstance(data, dict) and isinstance(neighbour, dict) and data.keys() != neighbour.keys():
        lacking = [key for key in data if key not in neighbour]
        if lacking:
            return "", f"  # without data[{lacking[0]!r}]"
        return f"  # without neighbour[{next(key for key in neighbour if key not in data)!r}]", ""
    if isinstance(data, list | tuple) and isinstance(neighbour, list | tuple) and len(data) != len(neighbour):
        longer, shorter = sorted((data, neighbour), key=len, reverse=True)
        pairs = zip(longer, shorter, strict=False)
        place = next((k for k, (a, b) in enumerate(pairs) if identity_key(a) != identity_key(b)), len(shorter))
        name = "data" if longer is data else "neighbour"
        mark = f"  # without {name}[{place}], which is {brief(longer[place])}"
        return ("", mark) if longer is data else (mark, "")
    where = difference(data, neighbour)
    return "", f"  # differs in {where}" if where else ""
