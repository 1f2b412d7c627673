"""Comparing inputs by content, whatever they are, and lending copies of them."""

import copy
from dataclasses import dataclass, field

import networkx as nx
import numpy as np
import pytest
from scipy import sparse

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.inputs import Inputs, difference


@dataclass
class Record:
    age: int
    tags: list = field(default_factory=list)
    friend: object = None


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


def changed_array(x):
    x[1] = 7


CHANGES = {
    "array": (np.arange(3), changed_array, ""),
    "array with no number": (np.array([np.nan, 1.0]), changed_array, ""),
    "array of objects": (np.array([None, "a"], object), changed_array, "[1]"),
    "list": ([1, 2, 3], changed_array, "[1]"),
    "nested": ({"a": (1, [2, 3])}, lambda x: changed_array(x["a"][1]), "['a'][1][1]"),
    "a key more": ({"a": 1}, lambda x: x.update(b=2), ""),
    "a set": ({1, 2}, lambda x: x.add(3), ""),
    "bytes": (bytearray(b"ab"), changed_array, ""),
    "a record": (Record(30), lambda x: setattr(x, "age", 31), ".age"),
    "a list in a record": (Record(30), lambda x: x.tags.append(1), ".tags"),
    "slots": (Slotted(1), lambda x: setattr(x, "value", 2), ".value"),
    "sparse": (sparse.csr_matrix(np.eye(3)), lambda x: x.data.fill(2), ""),
    "a graph": (nx.path_graph(4), lambda x: x.add_edge(0, 3), "._adj[0]"),
    "another type": (Record(1), lambda x: setattr(x, "age", 1.0), ".age"),
}


@pytest.mark.parametrize(("data", "change", "where"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_found_and_its_place_told(data, change, where):
    after = copy.deepcopy(data)
    assert difference(data, after) is None
    change(after)
    assert difference(data, after) == where


def test_what_an_object_remembers_of_its_own_value_is_no_change():
    graph = nx.path_graph(4)
    after = copy.deepcopy(graph)
    assert len(after.adj) == len(after.nodes) == 4  # views that are kept in the object
    assert difference(graph, after) is None
    matrix = sparse.csr_matrix(([1.0, 2.0], [2, 0], [0, 2]), shape=(1, 3))
    after = matrix.copy()
    after.sort_indices()
    assert difference(matrix, after) is None


def test_an_object_that_holds_itself_ends():
    one = Record(1)
    one.friend = one
    assert difference(one, copy.deepcopy(one)) is None


def test_what_cannot_be_looked_into_is_as_one_says():
    assert difference(object(), object()) is None
    assert difference(object(), object(), opaque="unknown") == "unknown"
    same = object()
    assert difference(same, same, opaque="unknown") is None


def test_a_copy_is_lent_and_one_that_comes_back_changed_is_refused_and_replaced():
    data, inputs = [1, 2], Inputs()
    with inputs.lent("f", data) as (first,):
        assert first == data
        assert first is not data
    with inputs.lent("f", data) as (again,):
        assert again is first
    with (
        pytest.raises(MechanismError, match="f: changes its input in place"),
        inputs.lent("f", data) as (lent,),
    ):
        lent.append(3)
    with inputs.lent("f", data, 5) as (lent, number):
        assert (lent, number) == ([1, 2], 5)


def test_after_an_error_of_its_own_a_changed_copy_is_replaced_too():
    data, inputs = [1, 2], Inputs()

    def fails():
        with inputs.lent("f", data) as (lent,):
            lent.append(3)
            raise KeyError

    with pytest.raises(KeyError):
        fails()
    with inputs.lent("f", data) as (lent,):
        assert lent == [1, 2]


def test_tensors_and_tables_are_compared_by_content():
    torch, pandas = pytest.importorskip("torch"), pytest.importorskip("pandas")
    for data in (
        torch.tensor([1.0, float("nan")]),
        pandas.DataFrame({"a": [1.0, float("nan")]}),
    ):
        after = copy.deepcopy(data)
        assert difference({"x": data}, {"x": after}) is None
        after[0 if isinstance(after, torch.Tensor) else "a"] = 5.0
        assert difference({"x": data}, {"x": after}) == "['x']"
