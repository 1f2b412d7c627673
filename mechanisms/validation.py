"""Checks of parameters and inputs that the mechanisms share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array, brief


def check_positive(owner: str, name: str, value: float) -> None:
    """Raise unless ``value`` is a finite number > 0."""
    if not (
        isinstance(value, int | float | np.integer | np.floating)
        and math.isfinite(value)
        and value > 0
    ):
        raise MechanismError(
            f"{owner}: expected {name}, a finite number > 0, got {value!r}; for no privacy at all publish the data"
        )


def check_integer(owner: str, name: str, value: int, least: int) -> None:
    """Raise unless ``value`` is an integer of at least ``least``."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | np.integer)
        or value < least
    ):
        raise MechanismError(
            f"{owner}: expected {name}, an integer >= {least}, got {value!r}"
        )


def bit_list(owner: str, data: Any) -> Array:
    """Return a neighbour list as int8 bits of shape (k,), k >= 1."""
    array = np.asarray(data)
    if array.ndim != 1 or not len(array) or not np.isin(array, (0, 1)).all():
        raise MechanismError(
            f"{owner}: expected a neighbour list, a one-dimensional array of at least one 0 or 1, got {brief(array)}"
        )
    return array.astype(np.int8)


def bit_matrix(owner: str, data: Any, nodes: int, *, symmetric: bool = True) -> Array:
    """Return an adjacency matrix as int8 of shape (nodes, nodes) with a zero diagonal."""
    array = np.asarray(data)
    if array.shape != (nodes, nodes):
        raise MechanismError(
            f"{owner}: expected an adjacency matrix of shape ({nodes}, {nodes}), got {array.shape}"
        )
    if not np.isin(array, (0, 1)).all() or array.diagonal().any():
        raise MechanismError(
            f"{owner}: expected zeros and ones with a zero diagonal, got {brief(array)}"
        )
    if symmetric and (array != array.T).any():
        raise MechanismError(
            f"{owner}: expected a symmetric matrix (an undirected graph), got {brief(array)}"
        )
    return array.astype(np.int8)


def rows_of(matrix: Array) -> Array:
    """Return the neighbour list of every user: the rows without the diagonal, shape (nodes, nodes - 1)."""
    nodes = len(matrix)
    return matrix[~np.eye(nodes, dtype=bool)].reshape(nodes, nodes - 1)


def all_bits(k: int) -> Array:
    """Return all 2^k bit lists of length k, int8, shape (2^k, k)."""
    return (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(np.int8)
