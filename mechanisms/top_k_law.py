"""The exact law of the k largest of n scores with independent Gumbel noise, as an order and as a set, in ball arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws.finite import FiniteLaw
from auditdp.numerics.balls import above, precision

MOST_OUTCOMES = 200_000

_Law = dict[tuple[int, ...], arb]


def plackett_luce(log_weights: Sequence[Any], count: int) -> FiniteLaw:
    """Return the law of the k largest of ``log_weights`` plus standard Gumbel noise, in order.

    P(i_1, …, i_k) = ∏_j w_{i_j}/(W − w_{i_1} − … − w_{i_{j−1}}), w_i = e^(log weight), W their sum.

    Source: Plackett (1975), Luce (1959); with Gumbel noise: Durfee & Rogers (2019), arXiv:1905.04273, Lemma 4.2.

    Args:
        log_weights: Scores over the scale of the noise, shape (n,): doubles, read as the rationals that they are, or balls.
        count: k, how many are selected, from 0 to n.

    Returns:
        The law; outcomes are ordered indices, int16, shape (n!/(n−k)!, k).

    Raises:
        MechanismError: If k is not in 0..n, or there are more than 200,000 outcomes.
    """
    _check(len(log_weights), count, math.perm)
    with precision():
        weights = _weights(log_weights)
        total = sum(weights, arb(0))
        law: _Law = {(): arb(1)}
        for _ in range(count):
            law = {
                (*chosen, i): probability * weights[i] / left
                for chosen, probability in law.items()
                for left in [total - sum((weights[j] for j in chosen), arb(0))]
                for i in range(len(weights))
                if i not in chosen
            }
        return _finite(law)


def unordered_top_k(log_weights: Sequence[Any], count: int) -> FiniteLaw:
    """Return the law of the set of the k largest of ``log_weights`` plus standard Gumbel noise.

    Whichever i of the set S is drawn last, S∖i was drawn before it: P(S) = Σ_{i∈S} P(S∖i) w_i/(W − w(S∖i)). It equals
    ∫₀¹ ∏_{i∈S} (1 − u^{w_i/w(Sᶜ)}) du: the noisy scores of S are the first arrivals of exponential clocks with rates w.

    Args:
        log_weights: As for ``plackett_luce``.
        count: k, how many are selected, from 0 to n.

    Returns:
        The law; outcomes are ascending indices, int16, shape (C(n, k), k).

    Raises:
        MechanismError: If k is not in 0..n, or there are more than 200,000 outcomes.
    """
    _check(len(log_weights), count, math.comb)
    with precision():
        weights = _weights(log_weights)
        total = sum(weights, arb(0))
        law: _Law = {(): arb(1)}
        for size in range(1, count + 1):
            rates = {
                chosen: p / (total - sum((weights[i] for i in chosen), arb(0)))
                for chosen, p in law.items()
            }
            law = {
                chosen: sum(
                    (
                        rates[chosen[:j] + chosen[j + 1 :]] * weights[i]
                        for j, i in enumerate(chosen)
                    ),
                    arb(0),
                )
                for chosen in combinations(range(len(weights)), size)
            }
        return _finite(law)


def set_epsilon(candidates: int, count: int, eta: float) -> float:
    """Return the exact pure ε of the set of the k largest of n scores that are clipped to [0, Δ], rounded up.

    P(S) is the chance that the clocks of S all ring before the others: it grows with the weights in S and falls with those
    outside. So P(S)/P′(S) is largest where S moves from 0 to Δ and all others from Δ to 0, and with E = e^(η/2) it is

        ∏_{j=1..k} E (j + (n−k)E)/(jE + n−k),

    which tends to e^{kη} for many candidates. In this pair every order of S has the same ratio.

    Args:
        candidates: n, how many scores there are; any of them may move anywhere in [0, Δ].
        count: k, how many are selected, from 0 to n.
        eta: η = 2Δ/β for noise of scale β, finite and > 0.

    Raises:
        MechanismError: If k is not in 0..n, or eta is not positive and finite.
    """
    _check(candidates, count, lambda *_: 1)
    if not 0 < eta < math.inf:
        raise MechanismError(f"set_epsilon: expected finite eta > 0, got eta={eta!r}")
    others = candidates - count
    with precision():
        up = (arb(eta) / 2).exp()
        ratios = (
            up * (j + others * up) / (j * up + others) for j in range(1, count + 1)
        )
        return above(sum((ratio.log() for ratio in ratios), arb(0)))


def _check(candidates: int, count: int, outcomes: Callable[[int, int], int]) -> None:
    if not 0 <= count <= candidates:
        raise MechanismError(
            f"expected count in 0..{candidates}, the number of scores, got count={count!r}"
        )
    if outcomes(candidates, count) > MOST_OUTCOMES:
        raise MechanismError(
            f"{count} of {candidates} scores have {outcomes(candidates, count):,} outcomes, at most {MOST_OUTCOMES:,}; use "
            "fewer scores, or the sampler"
        )


def _weights(log_weights: Sequence[Any]) -> list[arb]:
    return [(w if isinstance(w, arb) else arb(float(w))).exp() for w in log_weights]


def _finite(law: _Law) -> FiniteLaw:
    return FiniteLaw(np.array(list(law), dtype=np.int16), list(law.values()))
