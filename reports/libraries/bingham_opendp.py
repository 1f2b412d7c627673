"""OpenDP's eigenvector sampler has the law of the code as written, and not Bingham's. Needs opendp[numpy] alone."""

import numpy as np
import opendp.prelude as dp
from opendp.extras.numpy import _sscp_domain
from opendp.extras.sklearn._make_eigenvector import make_private_eigenvector

dp.enable_features("contrib", "honest-but-curious", "idealized-numerics")
domain = _sscp_domain(num_features=2, norm=1.0, p=2, size=8, T=float)
sampler = make_private_eigenvector(domain, dp.symmetric_distance(), 1.0)
squares = np.array([sampler(np.diag([8.0, 0.0]))[1] ** 2 for _ in range(600)])
error = squares.std() / len(squares) ** 0.5
print(
    f"mean of the squared second entry: {squares.mean():.4f} ± {error:.4f}; .2768 meant, .1026 as written (bingham.py)"
)
