"""The rejection step of the Bingham sampler has a factor upside down. Needs diffprivlib, and numpy that it brings.

Kent, Ganeiban & Mardia (2018) accept a direction u of the angular central Gaussian envelope with probability
exp(−uᵀAu) (uᵀΩu)^(d/2) / M; the code divides by (uᵀΩu)^(d/2). What comes out has the density
exp(−uᵀAu) (uᵀΩu)^(−d) instead of exp(−uᵀAu).
"""

import numpy as np
from diffprivlib.mechanisms import Bingham


def envelope(a):
    """Return Ω for a matrix A, by the library's own equation for b."""
    d, eigenvalues = len(a), np.linalg.eigvalsh(a)
    low, high = 1e-9, float(d)
    for _ in range(200):
        b = (low + high) / 2
        low, high = (b, high) if (1 / (b + 2 * eigenvalues)).sum() > 1 else (low, b)
    return np.eye(d) + 2 * a / b


def log_density(value, epsilon, u, *, written):
    """Return the log density, up to a constant, that is meant, or that the code as it is written has."""
    a = epsilon * (np.linalg.eigvalsh(value).max() * np.eye(len(value)) - value) / 4
    meant = -np.einsum("ni,ij,nj->n", u, a, u)
    return (
        meant - len(a) * np.log(np.einsum("ni,ij,nj->n", u, envelope(a), u)) * written
    )


rng = np.random.default_rng(1)
value = np.diag([8.0, 0.0])
circle = np.stack([np.cos(t := np.linspace(0, 2 * np.pi, 100_001)), np.sin(t)], axis=1)
seen = np.mean([Bingham(epsilon=1).randomise(value)[1] ** 2 for _ in range(5_000)])
means = []
for written in (False, True):
    weights = np.exp(log_density(value, 1.0, circle, written=written))
    means.append((weights * circle[:, 1] ** 2).sum() / weights.sum())
print(
    f"mean of the squared second entry: {seen:.4f} in 5,000 draws, {means[0]:.4f} meant, {means[1]:.4f} as written"
)


def largest_loss(d, m, epsilon, *, written, n=200_000):
    """Return the largest log ratio over the axes where one of m + 1 rows along an axis is replaced by one along another."""
    first, second = np.zeros((d, d)), np.zeros((d, d))
    first[0, 0], first[1, 1], second[1, 1] = 1, m, m + 1
    u = rng.standard_normal((n, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    ratios = []
    for matrix in (first, second):
        sampled = np.exp(log_density(matrix, epsilon, u, written=written))
        ratios.append(
            log_density(matrix, epsilon, np.eye(d), written=written)
            - np.log(sampled.mean())
        )
    return np.abs(ratios[0] - ratios[1]).max()


for d, m, epsilon in ((2, 4, 1.0), (5, 2, 4.0), (10, 16, 1.0), (10, 4, 4.0)):
    both = [
        largest_loss(d, m, epsilon, written=written) / epsilon
        for written in (True, False)
    ]
    print(
        f"{d} dimensions, {m + 1} rows, ε = {epsilon:g}: loss {both[0]:.3f} ε as written, {both[1]:.3f} ε as meant"
    )
