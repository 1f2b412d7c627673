"""The oracle with exact laws: the true ε of a pair, and the best event for counts.

Everything is computed from the laws that the mechanisms state. An event is scored by the Clopper–Pearson bound
ln(p_low/q_high) at the expected counts, with half of the error probability on each side; by Neyman and Pearson, sets of
outputs with the largest likelihood ratio are the only candidates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom

from auditdp import FiniteLaw, LaplaceLaw, Pair
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array
from auditdp.numerics.binomial import lower_limit, upper_limit
from mechanisms.classic import SVT3, Rappor

DRAWS = 20_000_000
ALPHA = 0.05
CELLS = 400
"""Cells that the loss of one continuous coordinate is cut into; events of whole cells have exact probabilities."""


@dataclass(frozen=True)
class Event:
    """A set of outputs by its two probabilities, and the bound on ε that counting it is expected to give.

    Attributes:
        pair: The inputs, in the order in which the first makes the event likelier.
        p: Its probability under ``pair.data``.
        q: Its probability under ``pair.neighbour``.
        bound: The Clopper–Pearson lower bound on ε at the expected counts.
    """

    pair: Pair
    p: float
    q: float
    bound: float


def clopper_pearson(
    p: Array, q: Array, draws: int = DRAWS, alpha: float = ALPHA
) -> Array:
    """Return ln(p_low/q_high) for events of probabilities p and q at their expected counts, alpha/2 on each side."""
    x, y = draws * np.asarray(p, float), draws * np.asarray(q, float)
    with np.errstate(divide="ignore"):
        return np.log(
            lower_limit(x, draws, alpha / 2) / upper_limit(y, draws, alpha / 2)
        )


def best_event(
    mechanism: Any, pairs: list[Pair], draws: int = DRAWS, alpha: float = ALPHA
) -> Event:
    """Return the event, over all pairs in either order, that gives the largest expected bound.

    Args:
        mechanism: A mechanism of ``mechanisms.classic`` that states its law.
        pairs: The pairs of neighbours.
        draws: Draws on each side.
        alpha: Error probability of the bound.
    """
    events = []
    for pair in pairs:
        p, q = masses(mechanism, pair)
        for here, a, b in ((pair, p, q), (pair.swapped(), q, p)):
            order = np.argsort(
                -(np.log(np.maximum(a, 1e-320)) - np.log(np.maximum(b, 1e-320))),
                kind="stable",
            )
            up, vq = (
                np.minimum(np.cumsum(a[order]), 1.0),
                np.minimum(np.cumsum(b[order]), 1.0),
            )
            bounds = clopper_pearson(up, vq, draws, alpha)
            k = int(np.nanargmax(bounds))
            events.append(Event(here, float(up[k]), float(vq[k]), float(bounds[k])))
    return max(events, key=lambda event: event.bound)


def true_epsilon(mechanism: Any, pairs: list[Pair]) -> float:
    """Return the exact pure ε over these pairs (for a maximum that is released: at the ends of a grid, see ``masses``)."""
    return max(_epsilon(mechanism, pair) for pair in pairs)


def _epsilon(mechanism: Any, pair: Pair) -> float:
    if isinstance(mechanism, Rappor):
        a, b = (mechanism.reported(x) for x in (pair.data, pair.neighbour))
        loss = np.log([a / b, (1 - a) / (1 - b)])
        return float(max(loss.max(axis=0).sum(), -loss.min(axis=0).sum()))
    if isinstance(mechanism, SVT3):
        return _svt3(mechanism, pair)
    if (law := capabilities(mechanism).law) is not None:
        return pair_loss(law(pair.data), law(pair.neighbour)).upper
    grid = _grid(mechanism, pair)
    ones, zeros = (
        mechanism.log_prob(grid, pair.data),
        mechanism.log_prob(grid, pair.neighbour),
    )
    seen = np.isfinite(ones) | np.isfinite(zeros)
    return float(np.abs(ones[seen] - zeros[seen]).max())


def _svt3(mechanism: SVT3, pair: Pair) -> float:
    """Return the exact ε of SVT3 for ``stop=1`` where all answers move one way, a lower bound for other pairs.

    The output is computed from the noisy answers and a threshold that does not depend on the data, so Σ|q − q'|/ν bounds
    the loss. It is attained by "below" up to the last query, which is released below all answers of both inputs, if all
    answers move one way; in general the loss is the largest that such outputs show.
    """
    k = len(pair.data)
    numbers = np.full((k, k), np.nan)
    np.fill_diagonal(
        numbers, min(pair.data.min(), pair.neighbour.min(), mechanism.threshold) - 1.0
    )
    said = np.eye(k) - np.triu(np.ones((k, k)), 1)
    outputs = np.hstack([said, numbers])
    ones, zeros = (mechanism.log_prob(outputs, x) for x in (pair.data, pair.neighbour))
    return float(np.abs(ones - zeros).max())


def masses(mechanism: Any, pair: Pair) -> tuple[Array, Array]:
    """Return the probabilities of disjoint sets of outputs under the two inputs, each shape (m,).

    Single outputs of a finite law; for independent Laplace coordinates the values of the summed loss, cut into cells;
    for a maximum that is released, cells of its values; for RAPPOR the number of bits that speak for one input.
    """
    if isinstance(mechanism, Rappor):
        return _rappor(mechanism, pair)
    if (law := capabilities(mechanism).law) is not None:
        p, q = law(pair.data), law(pair.neighbour)
        return _laplace(p, q) if isinstance(p, LaplaceLaw) else _finite(p, q)
    grid = _grid(mechanism, pair)
    return tuple(
        np.diff(mechanism.cdf(grid, x), prepend=0.0, append=1.0)
        for x in (pair.data, pair.neighbour)
    )  # type: ignore[return-value]


def _finite(p: FiniteLaw, q: FiniteLaw) -> tuple[Array, Array]:
    keys = list(dict.fromkeys([*p.index, *q.index]))
    return tuple(
        np.array([law.floats[law.index[k]] if k in law.index else 0.0 for k in keys])
        for law in (p, q)
    )  # type: ignore[return-value]


def _laplace(p: LaplaceLaw, q: LaplaceLaw) -> tuple[Array, Array]:
    """Add the losses of the coordinates that differ, all by the same d = |difference|/scale.

    A coordinate's loss falls from d to −d while the output moves from the first centre to the second. It is +d with
    probability 1/2 and e^-d/2 under the two inputs, −d with e^-d/2 and 1/2, and has the density of an exponential
    between. Cut into equal cells it is a number of 0..CELLS+1, and sums of such numbers have laws by convolution.
    """
    losses = np.abs(p.location - q.location) / p.scale
    losses = losses[losses > 0]
    d = float(losses[0])
    assert np.allclose(losses, d), "the patterns change every answer by the same amount"
    passed = (1 - np.exp(-d * np.linspace(0, 1, CELLS + 1))) / 2
    inside = np.diff(passed)
    one = np.concatenate([[0.5], inside, [np.exp(-d) / 2]])
    two, ones, twos = one[::-1], np.ones(1), np.ones(1)
    for _ in losses:
        ones, twos = np.convolve(ones, one), np.convolve(twos, two)
    return ones, twos


def _rappor(mechanism: Rappor, pair: Pair) -> tuple[Array, Array]:
    a, b = (mechanism.reported(x) for x in (pair.data, pair.neighbour))
    up, down = int((a > b).sum()), int((a < b).sum())
    low, high = mechanism.ones
    i, j = np.arange(up + 1)[:, None], np.arange(down + 1)
    first = binom.pmf(i, up, high) * binom.pmf(j, down, 1 - low)
    second = binom.pmf(i, up, low) * binom.pmf(j, down, 1 - high)
    return first.ravel(), second.ravel()


def _grid(mechanism: Any, pair: Pair) -> Array:
    """Ends of cells for a released maximum: from far below all answers to far above, fine near the answers."""
    answers = np.concatenate([pair.data, pair.neighbour])
    near = np.linspace(answers.min() - 1, answers.max() + 1, 10 * CELLS + 1)
    far = mechanism.scale * np.geomspace(1e-3, 60, 2 * CELLS)
    return np.unique(np.concatenate([answers.min() - far, near, answers.max() + far]))
