"""What an output can hide: two that a caller tells apart are two."""

import numpy as np
import pytest

from auditdp import PureDP, check
from auditdp.mechanism.calls.leaves import leaves
from auditdp.mechanism.calls.representation import Representation
from auditdp.record.results import Verdict


class Lying(float):
    """Computes with its value, and says that it is 0 where it is made a float."""

    def __float__(self):
        return 0.0


MECHANISMS = {
    "a zero with a minus": lambda x, rng: -0.0 if x else 0.0,
    "one among much noise": lambda x, rng: np.append(
        rng.normal(size=60), -0.0 if x else 0.0
    ),
    "a float that lies": lambda x, rng: Lying(1 + x),
    "one in a list": lambda x, rng: [Lying(1 + x), 1],
}


@pytest.mark.dear
@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)
def test_an_output_that_names_its_input_refutes_the_claim(mechanism):
    assert (
        check(mechanism, PureDP(1.0), [(0, 1)], calls=1_000, seed=1).verdict
        is Verdict.VIOLATED
    )


def test_a_lie_that_comes_later_is_seen_all_the_same():
    """What the first outputs were decides how rows look; a class of numbers may turn later."""
    form = Representation.of([[1.0, 2.0]])
    assert len(np.unique(form.rows([Lying(1), Lying(2), 0.0]).view(np.uint64))) == 3
    assert list(leaves(Lying(3))) == [0.0, 3.0]
    assert list(leaves(np.float64(3))) == [3.0]
