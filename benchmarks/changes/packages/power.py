"""The load curve of households, by its slowest waves."""

import numpy as np

HOURS = 8
KEPT = 3


def curve(households, rng, mu=1.0):
    """Return the μ-GDP sum of households' curves of HOURS numbers, each of Euclidean norm 1 at most."""
    waves = np.zeros(HOURS // 2 + 1, dtype=complex)
    for household in households:
        load = np.array(household, dtype=float)
        load = load / max(1.0, float(np.linalg.norm(load)))
        waves = waves + np.fft.rfft(load, norm="ortho")
    kept = np.zeros_like(waves)
    noise = rng.normal(scale=1 / mu, size=KEPT) + 1j * rng.normal(scale=1 / mu, size=KEPT)
    kept[:KEPT] = waves[:KEPT] + noise
    return np.fft.irfft(kept, n=HOURS, norm="ortho")
