"""Which of some canaries are in the training data."""

import numpy as np
import pytest

from auditdp import Canaries, Pair
from auditdp.errors import AdjacencyError


@pytest.mark.parametrize(
    ("data", "neighbour", "shown"),
    [
        ([True, False], [True, False], "differ in 0 canaries"),
        ([True, True], [False, False], "differ in 2 canaries"),
        ([1.0, 0.0], [1.0, 1.0], "bool of shape"),
        ([True], [False], "bool of shape"),
    ],
)
def test_what_is_no_pair_is_refused(data, neighbour, shown):
    with pytest.raises(AdjacencyError, match=shown):
        Canaries(2).check(Pair(np.array(data), np.array(neighbour)))


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "3"])
def test_a_count_that_is_none_is_refused(count):
    with pytest.raises(AdjacencyError, match="expected count, an integer >= 1"):
        Canaries(count)
