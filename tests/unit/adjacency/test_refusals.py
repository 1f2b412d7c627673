"""Pairs that are not neighbours are refused with the reason.

Arguments that make no adjacency are, too.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import strategies as st

from auditdp import (
    AnyValues,
    Box,
    Canaries,
    Edges,
    Fields,
    NeighbourList,
    NeighbourLists,
    Neighbours,
    Nodes,
    Pair,
    QueryAnswers,
    Records,
    Relationship,
    Rows,
)
from auditdp.errors import AdjacencyError
from tests.unit.adjacency.toys import (
    FIELDS,
    NUMBER,
    PERSON,
    Person,
    matrices,
    matrix,
    vectors,
)

VECTORS = [
    (
        NeighbourList(5),
        {
            "1 1 0 0 | 0 0 0 0": "2 bits",
            "1 0 0 0 | 0 0 0": r"\(3,\)",
            ".5 0 0 0 | 0 0 0 0": "other than 0 and 1: .0.5",
        },
    ),
    (
        QueryAnswers(2),
        {
            "1 1 | 1 1": "differ in 0 answers",
            "1 1 | 0 0": "2 answers, expected exactly one",
            "1 1 1 | 1 1 0": "not such a vector",
            "1 nan | 1 1": "not finite",
        },
    ),
    (
        QueryAnswers(2, "all"),
        {"1 1 | 1 1": "at least one", "1 1 | 2 2.5": "changes by 1.5"},
    ),
    (QueryAnswers(2, largest=1), {".5 1 | 1 1": "other than these"}),
    (
        Box(-1, 1),
        {
            ".5 | .5": "equal",
            ".5 | 1.5": "outside the box",
            ".5 .5 | .1": "not such a vector",
        },
    ),
    (Box(0, 1, 2, shortest=1), {"0 | 1 1": "equally many"}),
    (Canaries(2), {"1 0 | 1 1": "bool of shape"}),
    (Rows(PERSON, "replace", into="table"), {"0 0 | 1 1": "not such a table"}),
]
GRAPHS = [
    (NeighbourList(5), {"00 | ": r"\(4, 4\)"}),
    (NeighbourLists(4), {"22 0>1 | 22": "off-diagonal", " | ": "0 bits"}),
    (
        Edges(4),
        {
            "0>1 | ": "symmetric",
            "11 | ": "symmetric",
            "01 23 | ": "2 edges",
            " | ": "0 edges",
        },
    ),
    (Edges(4, among=(0, 2)), {"01 | ": "not between these nodes"}),
    (
        Nodes(4),
        {
            "01 23 | ": "share no node",
            " | ": "equal",
            "0>1 | ": "symmetric",
            "01 00 | ": "loops=True",
        },
    ),
    (Nodes(4, "removed"), {"01 12 | 01 13": "edges in both"}),
    (Nodes(4, loops=True), {"00 11 22 | 00 11 22 33": "zeros on the diagonal"}),
    (
        Nodes(4, "removed", loops=True),
        {"01 00 | 00": "not there", "00 11 | ": "share no node"},
    ),
]
ADDED, REPLACED = (Rows(NUMBER, change, most=4) for change in ("add/remove", "replace"))
RECORD = {"age": 1, "city": "", "ok": True}
POPULATIONS, CLOSE = Records(2, (0.0, 1.0)), lambda a, b: abs(a - b) <= 1
COLUMN = np.zeros((2, 1))
OTHERS = [
    (Nodes(4), 2 * matrix("01"), matrix(""), "zeros and ones"),
    (AnyValues((0, 1)), 0, 7, "7"),
    (Neighbours([(0, 1)], relation=CLOSE), 3, 5, "3 | 5"),
    (QueryAnswers(2), [[1, 1]], [[0, 1]], "not such a vector"),
    (POPULATIONS, COLUMN, COLUMN + 1, "2 records"),
    (ADDED, [1, 2], [1, 2], "2 and 2 rows, expected one more or less"),
    (ADDED, [1, 2, 3], [2, 1], "differ in 2 rows"),
    (ADDED, [1] * 5, [1] * 4, "data is not such a list"),
    (REPLACED, [1], [], "1 and 0 rows, expected equally many"),
    (Rows(NUMBER, "add/remove", into=dict), {0: 1}, {0: 2, 1: 1}, "differ in 2 rows"),
    (Rows(PERSON, "replace", into="pandas"), [1], [2], "not such a pandas"),
    (Fields(FIELDS, "one"), RECORD, RECORD, "differ in 0 fields"),
    (Fields(FIELDS, "one"), {"age": 1}, {"age": 2}, "data is not such a record"),
    (Fields({"x": NUMBER}, "one", Person), Person(1, "", True), 0, "not such a record"),
]
NOT_NEIGHBOURS = [
    (adjacency, read(text), fragment)
    for table, read in ((VECTORS, vectors), (GRAPHS, matrices))
    for adjacency, wrong in table
    for text, fragment in wrong.items()
]
NOT_NEIGHBOURS += [
    (adjacency, Pair(data, neighbour), fragment)
    for adjacency, data, neighbour, fragment in OTHERS
]


@pytest.mark.parametrize(("adjacency", "pair", "fragment"), NOT_NEIGHBOURS)
def test_a_pair_that_is_none_is_refused_in_both_orders(adjacency, pair, fragment):
    with pytest.raises(AdjacencyError, match=fragment):
        adjacency.check(pair)
    with pytest.raises(AdjacencyError):
        adjacency.check(pair.swapped())


NODES = ("nodes", [1, 0, -3, 2.0, "8", None])
REFUSED = [
    *((kind, *NODES) for kind in (NeighbourList, NeighbourLists, Edges, Relationship)),
    (Nodes, "an integer >= 2", NODES[1]),
    (partial(Nodes, 4), "'replaced' or 'removed', got 'moved'", ["moved"]),
    (partial(Edges, 4, "edges"), "two or more", [(0,), (0, 0), (0, 4), (0.0, 1)]),
    (partial(NeighbourLists, 3), "protected", [(), (3,), (-1,), (0.0,), 0]),
    (AnyValues, "two different values", [(), (1,), (1, 1)]),
    (Neighbours, "none", [[], ()]),
    (
        lambda item: Neighbours([(0, 1), item]),
        "expected pairs",
        [3, (1, 2, 3), "ab", np.zeros(2), None],
    ),
    (Canaries, "expected count, an integer >= 1", [0, -1, 2.0, True, "3"]),
    (lambda ends: Box(*ends), "expected", [(1, 1), (2, 1), (0, np.inf), ("0", 1)]),
    (lambda sizes: Box(0, 1, *sizes), "expected", [(0,), (2, 3), (2, 0), (2, 1.5)]),
    (
        partial(Records, 2),
        r"all numbers or all texts, got .*Rows\(strategy",
        [(None, "b"), (0, "b"), ((0, 1), (1, 0)), ("b", 1.0)],
    ),
    (partial(Records, 1), "expected", [(0.0,), (1.0, 0.0), (0.0, 0.0), (0.0, np.nan)]),
    (partial(Records, values=(0, 1)), "expected users", [0, 2.5, "3"]),
    (QueryAnswers, "expected", [0, 2.5]),
    (lambda by: QueryAnswers(2, sensitivity=by), "expected", [0.0, np.inf, "1"]),
    (lambda most: QueryAnswers(2, largest=most), "expected", [0, 1.5]),
    (lambda rows: Rows(rows, "replace"), "a Hypothesis strategy such as .* got 3", [3]),
    (partial(Rows, NUMBER), "or 'replace', got 'remove'", ["remove"]),
    (partial(Rows, NUMBER, "replace"), "least, an integer >= 0", [-1, 0.5]),
    (partial(Rows, NUMBER, "add/remove", 1), "most, .* >= 2", [1, 2.5]),
    (partial(Rows, NUMBER, "replace", 0, 3), "pandas, polars, got", [set]),
    (lambda rows: Rows(rows, "replace").pairs(), "generates something", [st.nothing()]),
    (lambda age: Fields({"age": age}, "one"), "a Hypothesis strategy by name", [3]),
    (partial(Fields, FIELDS), "'one' or 'any', got 'two'", ["two"]),
]
ARGUMENTS = [(make, part, each) for make, part, wrong in REFUSED for each in wrong]


@pytest.mark.parametrize(("make", "fragment", "argument"), ARGUMENTS)
def test_an_argument_that_makes_no_adjacency_is_refused(make, fragment, argument):
    with pytest.raises(AdjacencyError, match=fragment):
        make(argument)


def test_the_change_of_rows_has_to_be_stated():
    with pytest.raises(TypeError, match="change"):
        Rows(NUMBER)
