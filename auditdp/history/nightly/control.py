r"""One α for a stream of runs that never ends: what each night may spend, and the capital that audits carry over.

Null hypothesis, for an audit and a state of its sources: the claim holds. Night t has the weight w_t = 6/(π² t²); the
weights of all nights sum to 1. Half of α is spent on the verdicts of the nights, α w_t / 2 on those of night t, which is
a plain α-spending (a union bound). The other half belongs to capital: on night t each of the m_t audits deposits w_t / m_t
and then bets all that it has on that night's e-value E, the wealth of its game, whose expectation is at most 1 where the
claim is true:

    A ← (A · [its sources are those of the night before] + w_t / m_t) · E.       An alarm is A ≥ 2/α.

Guarantee: whatever the number of nights, of audits and of changes, the probability that a true claim is ever reported is
at most α. Proof, for capital: let A be 0 where the claim is false, and S_t the sum of all capital plus the weights of the
nights to come. Tonight's randomness is independent of the past, so the expectation of a night's capital is at most what was
carried over and deposited; a change of sources only discards. S is thus a non-negative supermartingale that starts at the
sum of all weights, 1, and reaches 2/α with probability at most α/2 (Ville 1939; Ramdas, Grünwald, Vovk & Shafer 2023,
"Game-theoretic statistics and safe anytime-valid inference", arXiv:2210.01948). The average over starting nights is what
lets a fault be seen that begins late: capital that was lost before it is replaced by deposits.

It assumes that the number of audits, and whether sources changed, is settled before the night's randomness is drawn, that a
night's root seed is used for no other night, and that the same sources make the same mechanism. New sources are a new null
hypothesis: their capital starts at the deposit.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

POWER = 0.9
MOST_NIGHTS = 10_000


def weight(night: int) -> float:
    """Return the share of α that a night has, from 1.

    >>> round(weight(1), 4), round(weight(10), 6)
    (0.6079, 0.006079)
    """
    return 6 / (math.pi * night) ** 2


def verdict_alpha(alpha: float, night: int) -> float:
    """Return the error probability that the verdicts of a night may have together."""
    return alpha * weight(night) / 2


def alarm_at(alpha: float) -> float:
    """Return the logarithm of the capital at which an audit is reported."""
    return math.log(2 / alpha)


def after_night(
    log_capital: NDArray[np.float64] | float,
    log_e: NDArray[np.float64] | float,
    *,
    same: NDArray[np.bool_] | bool,
    night: int,
    audits: int,
) -> NDArray[np.float64]:
    """Return the logarithm of the capital after a night, for one audit or an array of them.

    Args:
        log_capital: Before the night.
        log_e: Logarithm of the night's e-value.
        same: Whether the sources are those of the night before.
        night: Number of the night, from 1.
        audits: How many audits deposit on this night.
    """
    kept = np.where(same, log_capital, -math.inf)
    return np.asarray(np.logaddexp(kept, math.log(weight(night) / audits)) + log_e)


def nights_to_report(*, growth: float, deviation: float, alpha: float, night: int, audits: int) -> float:
    """Return within how many nights a fault that begins on a night is reported by its capital, nine times in ten.

    A normal approximation for e-values that are independent; only the deposit of the first night of the fault is counted, so
    that later ones come on top.

    Args:
        growth: Mean of the logarithm of a night's e-value under the fault, in nats.
        deviation: Its standard deviation.
        alpha: Error probability of the stream.
        night: The first night with the fault, from 1.
        audits: How many audits there are.

    Returns:
        The number of nights; infinite where the bets do not grow, or it would take more than 10,000.
    """
    needed = alarm_at(alpha) - math.log(weight(night) / audits)
    quantile = NormalDist().inv_cdf(POWER)
    # n g − z s √n = needed is quadratic in √n.
    if growth <= 0:
        return math.inf
    root = (quantile * deviation + math.sqrt((quantile * deviation) ** 2 + 4 * growth * needed)) / (2 * growth)
    nights = math.ceil(root**2)
    return nights if nights <= MOST_NIGHTS else math.inf
