"""Randomness from a seed, of torch and of numpy."""

import numpy as np
import torch


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def rng(seed=0):
    return np.random.default_rng(seed)
