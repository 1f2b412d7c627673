"""Code on three numbers, of which one moves by 1.5 between two inputs: what a trace says of one idiom."""

import numpy as np
import pytest

from auditdp.claims.statements import GaussianDP
from auditdp.tracing import Trace, compare

torch = pytest.importorskip("torch")
FIRST, SECOND = [1.0, 2.0, 3.0], [1.0, 2.0, 4.5]


def last(*values):
    """Return the last of what is done one after another."""
    return values[-1]


def traced(function):
    """Compare both inputs, where the output is that of a plain run with the same draws."""

    def seeded(run):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002
        return run(np.random.default_rng(0))

    pair = seeded(
        lambda rng: compare(Trace(function), FIRST, SECOND, rng, claim=GaussianDP(9.0))
    )
    plain, output = seeded(lambda rng: function(FIRST, rng)), pair.first.output
    assert (type(plain), str(plain)) == (type(output), str(output))
    return pair


def of_tensors(function):
    """Return code on lists for one on tensors, which draws from a seed of its generator: also where it is run again."""
    return lambda v, rng: last(
        torch.manual_seed(int(rng.integers(2**31))), function(torch.tensor(v))
    )


def level_of(function):
    """Return what code loses that is followed whole."""
    pair = traced(function)
    assert (pair.extent, pair.opaque, pair.differ) == ("full", [], None)
    assert (pair.is_bound, pair.proposes) == (True, False)
    return pair.level
