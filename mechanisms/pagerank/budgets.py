"""The budgets of DPAR's PageRank as its theorems state them: of one row from the noise of its entries, and of a row of many.

Source: Zhang, Lee, Ma, Lou, Yang & Xiong (2024), "DPAR: Decoupled Graph Neural Networks with Node-Level Differential
Privacy", WWW 2024 (arXiv:2210.04442): Corollary 1 and Theorems 1 and 3.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq

from auditdp.errors import MechanismError
from mechanisms.validation import check_integer, check_positive


def row_epsilon(epsilon: float, k: int, delta: float, *, each: float = 2.0) -> float:
    """Return Corollary 1's ε₁ of the K largest of entries in [0, C] with Gumbel(C/ε): (ε₁, δ)-DP.

    ε₁ = 2 min{Kε, Kε(e^2ε−1)/(e^2ε+1) + ε√(2K ln(1/δ))} = min{Kx, Kx·tanh(x/2) + x√(2K ln(1/δ))} with x = 2ε.

    True: the index of the largest has probability ∝ e^(εp_i/C), and entries that change by at most C, each in either
    direction, change it by a factor of at most e^2ε. The K largest in order are K such selections, each among those left
    over (Durfee & Rogers 2019, arXiv:1905.04273, Lemma 4.2), and K adaptive selections of x = 2ε each compose to both
    terms (Kairouz, Oh & Viswanath 2015, arXiv:1311.0776, Theorem 3.4). The published code draws Gumbel(2C/ε′) and leaves
    the factor 2 out: the same with ε′ = 2ε. With Gumbel(C/ε), x = ε (``each=1``) is right only where all entries change in
    one direction, as counts do when a record is added.

    Args:
        epsilon: C over the scale of the noise.
        k: Number of indices K, >= 1.
        delta: δ of the row, in (0, 1).
        each: What one selection loses, in units of epsilon.

    >>> round(row_epsilon(0.05, 200, 1e-6), 2)
    8.43
    """
    check_positive("row_epsilon", "epsilon", epsilon)
    check_integer("row_epsilon", "k", k, 1)
    if not 0 < delta < 1:
        raise MechanismError(f"row_epsilon: expected delta in (0, 1), got {delta!r}")
    x = each * epsilon
    return min(
        k * x, k * x * math.tanh(x / 2) + x * math.sqrt(2 * k * math.log(1 / delta))
    )


def entry_epsilon(row: float, k: int, delta: float) -> float:
    """Return the ε of the entries' noise whose K largest have Corollary 1's ε₁ = ``row``, rounded down.

    Raises:
        MechanismError: If row is not positive.
    """
    check_positive("entry_epsilon", "row", row)
    most = row / 2  # K = 1: 2ε
    # The error of the root is relative to it, so that rounding down covers it.
    root = brentq(
        lambda epsilon: row_epsilon(epsilon, k, delta) - row,
        most / (10 * k),
        most,
        xtol=1e-12 * most / k,
    )
    return float(root) * (1 - 1e-9)


def share_of_row(epsilon: float, rows: int, delta: float) -> float:
    """Return the ε₁ of each of M rows, (ε₁, δ)-DP each, by which all are claimed to be (ε, 2Mδ)-DP (Theorems 1 and 3).

    ε₁ = ε/(2√(M ln(e + ε/(2Mδ)))).

    Args:
        epsilon: ε_g of all rows in nats.
        rows: Number of rows M, >= 1.
        delta: δ of one row.
    """
    check_positive("share_of_row", "epsilon", epsilon)
    check_integer("share_of_row", "rows", rows, 1)
    return epsilon / (
        2 * math.sqrt(rows * math.log(math.e + epsilon / (2 * rows * delta)))
    )
