"""Evidence of sensitivity agrees with the known sensitivity of a linear query."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.adjacency import NeighbourList
from auditdp.evidence.sensitivity import sensitivity_evidence
from auditdp.numerics.streams import stream
from auditdp.record.results import Verdict


class Linear:
    """The matrix times the bits: its sensitivity is the largest norm of a column."""

    name = "Linear"

    def __init__(self, matrix, sensitivity, norm):
        self.matrix, self.sensitivity, self.norm = matrix, sensitivity, norm

    def query(self, data, rng):
        return self.matrix @ data.astype(int)


def matrices(columns):
    row = st.lists(st.integers(-9, 9), min_size=columns, max_size=columns)
    return st.lists(row, min_size=1, max_size=3).map(np.array)


def evidence(matrix, sensitivity, norm, *, examples, root=0):
    return sensitivity_evidence(
        Linear(matrix, sensitivity, norm),
        NeighbourList(matrix.shape[1] + 1),
        streams=lambda purpose, batch: stream(root, purpose, batch),
        examples=examples,
    )


@given(
    st.integers(1, 5).flatmap(matrices),
    st.sampled_from([("l1", 1), ("l2", 2), ("linf", np.inf)]),
    st.integers(1, 30),
)
def test_all_pairs_show_the_largest_column(matrix, norm, sensitivity):
    name, order = norm
    largest = np.linalg.norm(matrix, order, axis=0).max()
    found = evidence(matrix, sensitivity, name, examples=50)

    assert found.details.exhaustive
    assert found.details.largest_difference == largest

    refuted = found.verdict is Verdict.MISCALIBRATED
    assert refuted == (largest > sensitivity) == (found.counterexample is not None)


@settings(max_examples=5)
@given(matrices(12), st.integers(1, 30), st.integers(0, 2**32))
def test_a_search_finds_only_differences_that_exist(matrix, sensitivity, root):
    """The 24,576 pairs are too many to compare.

    Each difference that a search finds is one of the columns.
    """
    columns = np.abs(matrix).sum(axis=0)
    found = evidence(matrix, sensitivity, "l1", examples=30, root=root)
    assert not found.details.exhaustive

    largest = found.details.largest_difference
    assert largest in columns
    assert (found.verdict is Verdict.MISCALIBRATED) == (largest > sensitivity)
    assert found == evidence(matrix, sensitivity, "l1", examples=30, root=root)
