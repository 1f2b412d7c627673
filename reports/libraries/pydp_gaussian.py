"""GaussianMechanism of PyDP (Google's C++ library): doubles do not resolve its granularity. Needs python-dp alone."""

import math

from pydp.algorithms.numerical_mechanisms import GaussianMechanism

mechanism = GaussianMechanism(1.0, 1e-5, 1.0)
granularity = 2.0 ** math.ceil(math.log2(2 * mechanism.std / 2**57))
print(f"σ = {mechanism.std:.4f}, granularity 2^{math.log2(granularity):.0f}")
for value in (0.0, 1.0):
    odd = inside = 0
    for _ in range(200_000):
        released = mechanism.add_noise(value)
        if 0.125 <= released < 0.5:
            inside += 1
            odd += (released / granularity) % 2 == 1
    print(
        f"noise on {value}: {odd} of {inside} releases in [.125, .5) are odd multiples of the granularity"
    )
