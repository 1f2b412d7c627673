"""With batches of a fixed size a replaced record moves the sum twice as far."""

import numpy as np

from auditdp.accountants import FixedSizeRDP


def test_a_replaced_record_halves_the_noise():
    """The Rényi account of dp-accounting 0.6 does not depend on the neighbours.

    For this reason we halve the noise.
    """
    orders, divergences = FixedSizeRDP(1.0, 100, 100, 1).divergences()
    np.testing.assert_allclose(divergences, orders * 2**2 / 2)
