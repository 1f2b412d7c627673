import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auditdp.adjacency import Edges, Pair
from auditdp.mechanism.protocol import brief
from auditdp.report.html.drawings import Cells, Graph, Words, drawing, inputs


@given(st.data())
def test_the_graphs_of_a_written_pair_are_read_back(data):
    pair = data.draw(Edges(data.draw(st.sampled_from([2, 3, 5, 9, 10, 12]))).strategy())
    found = inputs(str(pair))
    if re.search(r"\d edges", str(pair)):  # the number of edges instead of too many
        assert found is None
        return
    assert found is not None
    edges = [
        {tuple(edge) for edge in np.argwhere(np.triu(graph)).tolist()}
        for graph in (pair.data, pair.neighbour)
    ]
    for drawn, own, other in ((found.first, *edges), (found.second, *edges[::-1])):
        assert isinstance(drawn, Graph)
        assert len(drawn.nodes) == len(pair.data)
        at = {place: k for k, place in enumerate(drawn.nodes)}
        read = {
            (at[x1, y1], at[x2, y2]): changed for x1, y1, x2, y2, changed in drawn.edges
        }
        assert read == {edge: edge not in other for edge in own}
    assert found.name == pair.name


@given(
    st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=6),
    st.integers(0, 5),
    st.sampled_from(["", "one below", "1 | 0: it", "a | b"]),
)
def test_the_arrays_of_a_written_pair_are_read_back(values, place, name):
    first, second = np.array(values), np.array(values)
    second[place % len(values)] += 1.0
    text = str(Pair(first, second, name))
    found = inputs(text)
    if "…" in text:
        return
    assert found is not None
    assert found.name == name
    assert isinstance(found.first, Cells)
    assert len(found.first.rows[0]) == len(values)
    if brief(first) != brief(second):
        assert [changed for _, changed in found.first.rows[0]].count(True) >= 1


def test_rows_of_a_matrix_and_what_differs_in_them():
    found = inputs(
        "hub | no hub: [[1,0,1], [0,1,1], [1,1,1]] | [[1,0,0], [0,1,0], [0,0,0]]"
    )
    assert found is not None
    assert found.name == "hub | no hub"
    assert found.first.rows[0] == [("1", False), ("0", False), ("1", True)]
    assert found.second.rows[2] == [("0", True)] * 3
    one = inputs("10 | 11")
    assert one is not None
    assert (one.first.rows, one.second.rows) == ([[("10", True)]], [[("11", True)]])


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("[120, 0] | [0]", [[True, False]], [[False]]),
        ("[1, 2, 3] | [1, 3]", [[False, True, False]], [[False, False]]),
        (
            "[[1, 2], [3, 4]] | [[3, 4]]",
            [[True, True], [False, False]],
            [[False, False]],
        ),
    ],
)
def test_what_is_in_one_of_them_alone_is_marked(text, first, second):
    found = inputs(text)
    assert found is not None
    for side, marks in ((found.first, first), (found.second, second)):
        assert [[changed for _, changed in row] for row in side.rows] == marks


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[-1.,-1.,-1.… | [-1.,-1.,-1.…",
        "4 nodes, edges 01 02… | 4 nodes, edges 01",
        "{'a': 1} | {'a': 2}",
        "<script> | [1]",
    ],
)
def test_what_is_neither_or_was_cut_short_is_not_drawn(text):
    assert inputs(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "[1,2",
        "[[1],[2,[3]]]",
        "99 nodes, edges 0-1",
        "[]",
    ],
)
def test_an_output_that_is_no_array_stays_text(text):
    assert drawing(text) == Words(text)


def test_inputs_that_numpy_shortened_stay_text_side_by_side():
    found = inputs("3781 bits, degree 1 | 0: [1,0,0,...,0,0,0] | [0,0,0,...,0,0,0]")
    assert found is not None
    assert (found.first, found.second) == (
        Words("[1,0,0,...,0,0,0]"),
        Words("[0,0,0,...,0,0,0]"),
    )


def test_a_graph_with_an_edge_beyond_its_nodes_stays_text():
    assert drawing("3 nodes, edges 01 07") == Words("3 nodes, edges 01 07")
