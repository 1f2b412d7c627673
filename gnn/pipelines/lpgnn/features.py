"""The server's data of all features: multi-bit reports, or features without users' data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from gnn.datasets.features import one_hot_degree, uniform
from gnn.pipelines.lpgnn.parameters import Parameters
from gnn.sparse import csr, is_sparse, rows, with_values
from gnn.validation import DataError
from mechanisms.features import MultiBit

CELLS = 2**21
"""Features that are encoded at once: the mechanism needs some 60 bytes for each."""


@dataclass(frozen=True, eq=False)
class Reports:
    """Features as s E + c.

    Attributes:
        encoded: E, dense or sparse CSR, float32, shape (nodes, features).
        scale: s.
        shift: c.
    """

    encoded: Tensor
    scale: float = 1.0
    shift: float = 0.0


def reports(
    data: Data, parameters: Parameters, *, generator: torch.Generator
) -> Reports:
    """Return the reports that the server receives, on the CPU.

    Raises:
        DataError: If ad-hoc features have no width, or none is left after scaling.
        MechanismError: If a feature is outside the declared bounds.
    """
    if parameters.features != "MBM":
        return ad_hoc(data, parameters, generator=generator)
    x, low, high = data.x.cpu(), parameters.low, parameters.high
    if parameters.scaling == "population":
        x, low, high = scaled_by_population(x), 0.0, 1.0
    elif parameters.scaling == "clip":
        x = clipped(x, low, high)
    if math.isinf(parameters.epsilon_features):
        return Reports(x)
    rng = np.random.default_rng(int(torch.randint(2**63 - 1, (), generator=generator)))
    return multi_bit(
        x, MultiBit(parameters.epsilon_features, x.shape[1], low, high), rng=rng
    )


def multi_bit(x: Tensor, encoder: MultiBit, *, rng: np.random.Generator) -> Reports:
    """Return all encoded records as a sparse matrix, with the rectifier's terms.

    Records are encoded some at a time, so that memory is in proportion to what is sent.

    Args:
        x: Raw features, dense or sparse CSR, shape (nodes, features).
        encoder: What each user runs.
        rng: The randomness of the users.

    Raises:
        MechanismError: If a feature is outside the encoder's bounds.
    """
    values, columns, counts = [], [], [np.zeros(1, np.int64)]
    at_once = max(1, CELLS // x.shape[1])
    for start in range(0, len(x), at_once):
        block = rows(x, torch.arange(start, min(start + at_once, len(x))))
        sent = encoder.perturb(
            (block.to_dense() if is_sparse(block) else block).double().numpy(), rng=rng
        )
        places = sent.nonzero()
        values.append(sent[places])
        columns.append(places[1])
        counts.append(np.bincount(places[0], minlength=len(sent)))
    pointers = np.cumsum(np.concatenate(counts))
    encoded = csr(
        np.concatenate(values), np.concatenate(columns), pointers, (len(x), x.shape[1])
    )
    return Reports(encoded, scale=encoder.step, shift=(encoder.low + encoder.high) / 2)


def ad_hoc(
    data: Data, parameters: Parameters, *, generator: torch.Generator
) -> Reports:
    """Return ONES, OHD or RND, with as many columns as the features, or a given width.

    Raises:
        DataError: If neither says how many.
    """
    width = parameters.width or (data.x.shape[1] if data.x is not None else None)
    if width is None:
        raise DataError(
            f"LPGNN: the data has no features x to take the width of {parameters.features} from; give width"
        )
    if parameters.features == "RND":
        return Reports(uniform(data, width, generator=generator))
    if parameters.features == "OHD":
        return Reports(one_hot_degree(data, width).to_sparse_csr())
    nodes, nothing = int(data.num_nodes or 0), np.empty(0)
    return Reports(
        csr(nothing, nothing, np.zeros(nodes + 1), (nodes, width)), shift=1.0
    )


def clipped(x: Tensor, low: float, high: float) -> Tensor:
    """Return features clipped to the bounds, sparse ones in their places where 0 is within the bounds."""
    if is_sparse(x) and low <= 0 <= high:
        return with_values(x, x.values().clamp(low, high))
    return (x.to_dense() if is_sparse(x) else x).clamp(low, high)


def scaled_by_population(x: Tensor) -> Tensor:
    """Return features stretched to [0, 1] by their least and greatest value, without those that are constant.

    As ``mechanisms.features.MinMaxScaled`` with constant="drop". Not private.

    Raises:
        DataError: If every feature is constant.
    """
    if not is_sparse(x):
        least, most = x.amin(dim=0), x.amax(dim=0)
        kept = most > least
        if not kept.any():
            raise DataError(
                "LPGNN: every feature is the same for all nodes, and none is left after scaling"
            )
        return (x[:, kept] - least[kept]) / (most - least)[kept]
    columns, width = x.col_indices(), x.shape[1]
    stored = torch.bincount(columns, minlength=width)
    full = stored == len(x)
    extremes = [
        torch.zeros(width).scatter_reduce(0, columns, x.values(), how)
        for how in ("amin", "amax")
    ]
    if full.any() or bool((extremes[0] < 0).any()) or bool((extremes[1] <= 0).any()):
        return scaled_by_population(x.to_dense())
    return with_values(x, x.values() / extremes[1][columns])
