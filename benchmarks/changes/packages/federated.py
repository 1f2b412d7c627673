"""A model that clients move towards their own vectors, in rounds."""

import math

import numpy as np

CLIP = 1.0
ROUNDS = 2
DIMENSION = 3


def clipped(update):
    """Return an update, scaled to a norm of CLIP at most."""
    return update * min(1.0, CLIP / max(float(np.linalg.norm(update)), 1e-12))


def train(clients, rng, rho=0.5, size=5):
    """Return the ρ-zCDP model; size is the public number of clients that is aimed at."""
    sigma = CLIP * math.sqrt(ROUNDS / (2 * rho))
    model = np.zeros(DIMENSION)
    for _ in range(ROUNDS):
        total = np.zeros(DIMENSION)
        for client in clients:
            total = total + clipped(np.array(client) - model)
        model = model + (total + rng.normal(scale=sigma, size=DIMENSION)) / size
    return model
