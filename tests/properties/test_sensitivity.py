"""Evidence of sensitivity agrees with the sensitivity that a linear query has on paper."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from auditdp.adjacency import NeighbourList
from auditdp.evidence.sensitivity import sensitivity_evidence
from auditdp.numerics.streams import stream
from auditdp.record.results import Verdict


class Linear:
    """The matrix times the bits: one bit changes it by one column, so its sensitivity is the largest column norm."""

    name = "Linear"

    def __init__(self, matrix, sensitivity, norm):
        self.matrix, self.sensitivity, self.norm = matrix, sensitivity, norm

    def query(self, data, rng):
        return self.matrix @ data.astype(int)


matrices = st.integers(1, 5).flatmap(
    lambda bits: st.lists(
        st.lists(st.integers(-9, 9), min_size=bits, max_size=bits),
        min_size=1,
        max_size=3,
    )
)


def look(matrix, sensitivity, norm, *, examples, root=0):
    return sensitivity_evidence(
        Linear(np.array(matrix), sensitivity, norm),
        NeighbourList(len(matrix[0]) + 1),
        streams=lambda purpose, batch: stream(root, purpose, batch),
        examples=examples,
    )


@given(
    matrices,
    st.sampled_from([("l1", 1), ("l2", 2), ("linf", np.inf)]),
    st.integers(1, 30),
)
def test_all_pairs_show_the_largest_column(matrix, norm, sensitivity):
    name, order = norm
    columns = np.linalg.norm(np.array(matrix), order, axis=0)
    found = look(matrix, sensitivity, name, examples=50)
    assert found.details.exhaustive
    assert found.details.largest_difference == columns.max()
    assert (found.verdict is Verdict.MISCALIBRATED) == (columns.max() > sensitivity)
    assert (found.counterexample is not None) == (
        found.verdict is Verdict.MISCALIBRATED
    )


wide = st.lists(
    st.lists(st.integers(-9, 9), min_size=12, max_size=12), min_size=1, max_size=3
)


@settings(max_examples=10)
@given(wide, st.integers(1, 30), st.integers(0, 2**32))
def test_a_search_shows_nothing_that_is_not_there(matrix, sensitivity, root):
    """The 24,576 pairs are too many to compare; what a search shows of them is one of the columns."""
    columns = np.abs(np.array(matrix)).sum(axis=0)
    found = look(matrix, sensitivity, "l1", examples=60, root=root)
    assert not found.details.exhaustive
    assert found.details.largest_difference in columns
    assert (found.verdict is Verdict.MISCALIBRATED) == (
        found.details.largest_difference > sensitivity
    )
    assert found == look(matrix, sensitivity, "l1", examples=60, root=root)
