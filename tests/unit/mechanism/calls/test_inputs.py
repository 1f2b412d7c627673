"""Inputs are compared by content, and copies of them are lent."""

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


def change(x):
    x[1] = 7


def change_age(x):
    x.age = 1.0


def change_value(x):
    x.value = 2


def change_tensor(x):
    x["x"][0] = 5.0


def change_column(x):
    x["x"]["a"] = 5.0


def tensor():
    torch = pytest.importorskip("torch")
    return {"x": torch.tensor([1.0, float("nan")])}


def table():
    pandas = pytest.importorskip("pandas")
    return {"x": pandas.DataFrame({"a": [1.0, float("nan")]})}


CHANGES = {
    "array": (lambda: np.array([np.nan, 1.0]), change, ""),
    "objects": (lambda: np.array([None, "a"], object), change, "[1]"),
    "nested": (
        lambda: {"a": (1, [2, 3])},
        lambda x: change(x["a"][1]),
        "['a'][1][1]",
    ),
    "set": (lambda: {1, 2}, lambda x: x.add(3), ""),
    "another type": (lambda: Record(1), change_age, ".age"),
    "a list in a record": (lambda: Record(30), lambda x: x.tags.append(1), ".tags"),
    "slots": (lambda: Slotted(1), change_value, ".value"),
    "sparse": (lambda: sparse.csr_matrix(np.eye(3)), lambda x: x.data.fill(2), ""),
    "graph": (lambda: nx.path_graph(4), lambda x: x.add_edge(0, 3), "._adj[0]"),
    "tensor": (tensor, change_tensor, "['x']"),
    "table": (table, change_column, "['x']"),
}


@pytest.mark.parametrize(("make", "change", "place"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_found_with_its_place(make, change, place):
    data = make()
    after = copy.deepcopy(data)
    assert difference(data, after) is None
    change(after)
    assert difference(data, after) == place


def test_a_cache_inside_an_object_is_no_change():
    graph = nx.path_graph(4)
    after = copy.deepcopy(graph)
    # The graph keeps these views.
    assert len(after.adj) == len(after.nodes) == 4
    assert difference(graph, after) is None
    matrix = sparse.csr_matrix(([1.0, 2.0], [2, 0], [0, 2]), shape=(1, 3))
    after = matrix.copy()
    after.sort_indices()
    assert difference(matrix, after) is None


def test_an_object_that_holds_itself_ends():
    one = Record(1)
    one.friend = one
    assert difference(one, copy.deepcopy(one)) is None


def test_opaque_objects_differ_as_the_caller_decides():
    same = object()
    assert difference(object(), object()) is None
    assert difference(object(), object(), opaque="unknown") == "unknown"
    assert difference(same, same, opaque="unknown") is None


def test_a_copy_is_lent_and_is_replaced_once_it_was_changed():
    data = [1, 2]
    inputs = Inputs()
    with inputs.lent("f", data) as (first,), inputs.lent("f", data) as (again,):
        assert first == data
        assert first is not data
    with inputs.lent("f", data) as (again,):
        assert again is first
    with (
        pytest.raises(MechanismError, match="f: changes its input in place"),
        inputs.lent("f", data) as (lent,),
    ):
        lent.append(3)
    with pytest.raises(ZeroDivisionError), inputs.lent("f", data, 5) as (lent, number):
        lent[number - 5] /= 0
    with inputs.lent("f", data) as (lent,):
        assert lent == [1, 2]
