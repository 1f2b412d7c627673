"""Pairs are printed as Python code that makes the inputs again and nothing else."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from auditdp import Pair
from auditdp.adjacency.adjacency import as_python, is_data
from auditdp.mechanism.calls.inputs import difference


@dataclass(frozen=True)
class Person:
    name: str
    ages: tuple[int, ...] = ()


LONG = "a" * 70
ROWS = [{"age": 40, "city": LONG}] * 6
WRITTEN = {
    "a row more": (([*ROWS, {"age": 7}], ROWS), "without data[6], which is {'age': 7}"),
    "a row less": (
        (ROWS, [{"age": 7}, *ROWS]),
        "without neighbour[0], which is {'age': 7}",
    ),
    "a field": (([*ROWS, {"age": 7}], [*ROWS, {"age": 8}]), "differs in [6]['age']"),
    "a key": (({LONG: 1, "b": 2}, {LONG: 1}), "without data['b']"),
    "an array": (
        (np.arange(30.0), np.append(np.arange(29.0), math.inf)),
        "differs in [29]",
    ),
    "not a number": (((LONG, math.nan), (LONG, -math.inf)), "differs in [1]"),
    "objects": ((Person(LONG, (1,)), Person(LONG)), "differs in .ages"),
}


@pytest.mark.parametrize(("pair", "marked"), WRITTEN.values(), ids=WRITTEN)
def test_the_printed_code_rebuilds_the_inputs_and_marks_the_difference(pair, marked):
    text, made = as_python(*pair), {"np": np, "Person": Person}
    exec(text, made)
    assert (
        difference(pair[0], made["data"]),
        difference(pair[1], made["neighbour"]),
    ) == (None, None)
    assert f"  # {marked}" in text


NOT_WRITTEN = {
    "short": ([1, 2], [1]),
    "too long": ([LONG * k for k in range(60)], []),
    "no data": ([LONG, object()], [LONG]),
}


@pytest.mark.parametrize("pair", NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_no_code_is_printed_for_short_too_long_or_opaque_inputs(pair):
    assert Pair(*pair).python == ""


@pytest.mark.parametrize(("library", "name"), [("pandas", "pd"), ("polars", "pl")])
def test_a_table_is_written_by_columns(library, name):
    library = pytest.importorskip(library)
    data = library.DataFrame({"age": list(range(40, 60)), "city": ["Ulm"] * 20})
    text, made = as_python(data, data.tail(19)), {name: library}
    exec(text, made)
    assert made["data"].equals(data)
    assert "without data[0], which is {'age': 40, 'city': 'Ulm'}" in text


CODE = [
    "print(1)",
    "(lambda: 1)()",
    "open('x')",
    "[x for x in (1,)]",
    "Path.home()",
    "f'{1}'",
    "x",
    "[*x]",
]


@pytest.mark.parametrize("code", CODE)
def test_code_that_does_more_than_rebuild_data_is_refused(code):
    assert is_data("data = [1.5, -1] * 2 + [Person(name='x')]\nneighbour = {}")
    assert not is_data(f"data = [{code}]\nneighbour = 1")
    assert not is_data(f"data = 1\nneighbour = 2\n{code}")
