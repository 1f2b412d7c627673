"""The privacy loss between known laws, enclosed in outward-rounded ball arithmetic.

Let P and Q be the laws of the output on two neighbours. The pure ε is the largest |ln P(y)/Q(y)| over outputs y, and δ(ε)
the largest P(S) - e^ε Q(S) over sets S of outputs, the larger of the two orders of P and Q. Each family of laws has a
function of its own: ``rows_loss`` for laws that are listed or constant on intervals, ``laplace_loss``, ``gaussian_loss``,
and ``envelope_losses`` for all inputs of a domain at once. They return a ``PairLoss``: bounds, never estimates, and what
they are computed from. A new family is a new function, and its line in ``pair_loss``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import arb

from auditdp.evidence.exact_losses import PairLoss, aligned, rows_loss
from auditdp.evidence.noise_loss import gaussian_loss, laplace_loss
from auditdp.mechanism.laws import GaussianLaw, LaplaceLaw
from auditdp.mechanism.laws.additive import gaussian_delta


def pair_loss(
    p: Any, q: Any, *, epsilon: float | None = None, delta: float | None = None
) -> PairLoss:
    """Return the loss between two laws of one family; what is asked of δ(ε) at an epsilon or a delta, where it is known.

    Raises:
        MechanismError: If the two laws are not of one family.
    """
    if isinstance(p, LaplaceLaw) and isinstance(q, LaplaceLaw):
        return laplace_loss(p, q)
    if isinstance(p, GaussianLaw) and isinstance(q, GaussianLaw):
        return gaussian_loss(p, q, epsilon=epsilon, delta=delta)
    return rows_loss(aligned(p, q), epsilon=epsilon, delta=delta)


def delta_curve(p: Any, q: Any, epsilons: Any) -> list[list[float]]:
    """Return [ε, δ(ε)] for plots, of two finite laws or two step laws: floating point, the larger of the two orders.

    With ratios sorted, δ(ε) is a difference of two suffix sums: one sort serves the whole curve.
    """
    if isinstance(p, GaussianLaw):
        mu = p.mu_against(q)
        return [
            [float(e), float(gaussian_delta(mu, arb(float(e))).mid())] for e in epsilons
        ]
    rows = aligned(p, q).rows
    pp, qq = (np.array([float(row[side].mid()) for row in rows]) for side in (0, 1))
    curve = np.maximum(_one_sided(pp, qq, epsilons), _one_sided(qq, pp, epsilons))
    return [[float(e), float(d)] for e, d in zip(epsilons, curve, strict=True)]


def _one_sided(p: Any, q: Any, epsilons: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.nan_to_num(
            np.log(p) - np.log(q), nan=0.0, posinf=np.inf, neginf=-np.inf
        )
    order = np.argsort(loss)
    tail_p = np.append(np.cumsum(p[order][::-1])[::-1], 0.0)
    tail_q = np.append(np.cumsum(q[order][::-1])[::-1], 0.0)
    start = np.searchsorted(loss[order], epsilons, side="right")
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # beyond the largest loss e^ε may overflow, times a tail of 0
        taken = np.where(tail_q[start] > 0, np.exp(epsilons) * tail_q[start], 0.0)
    return np.maximum(tail_p[start] - taken, 0.0)
