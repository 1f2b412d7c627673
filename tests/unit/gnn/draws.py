"""Randomness from a seed, of torch and of numpy, and a graph of two communities."""

import numpy as np
import torch

from gnn.datasets.generated import stochastic_block_model


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rng(seed=0):
    return np.random.default_rng(seed)


def arcs(text):
    """Pairs of one-digit ids in two rows: [[0, 1], [1, 2]] of "01 12"."""
    pairs = [[int(node) for node in pair] for pair in text.split()]
    return torch.tensor(pairs).t().contiguous()


def flat(model):
    """All weights in one vector."""
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def zeroed(model):
    for weight in model.parameters():
        torch.nn.init.zeros_(weight)

    return model


def two_communities(size, *, inside=0.2, across=0.02, features=5, signal=3.0):
    return stochastic_block_model(
        [size, size],
        inside=inside,
        across=across,
        features=features,
        signal=signal,
        rng=rng(),
    )
