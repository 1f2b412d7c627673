"""DP-APPR-GM: PageRank rows of clipped norm with Gaussian noise, and the K largest entries of each.

How far are two rows of clipped norm apart? Rows are non-negative, so that p·p′ >= 0 and ‖p − p′‖₂² = ‖p‖² + ‖p′‖² − 2p·p′ is
at most 2C₁², attained by rows that share no node. Hence √2·C₁ for any two rows, and C₁ where one of them is 0 (a public
id whose node is not there), or where the angle between them is at most 60°.

The two rows of one seed share the seed, at which each has at least the restart probability of the plain walk, a = 2α/(1+α)
(up to ρd). Let the seed's one edge move from the hub of a star to that of another. In large stars the hub has
(1−a)/(2−a) and the seed a, so that the angle passes 60° as soon as (1−a)/(2−a) > a: a < (3−√5)/2 = .382, α < .236.
There the sensitivity is more than C₁. It is .967·C₁ on these graphs for α = .25, the lazy walk of ISTA's own paper, and
1.22·C₁ where the same .25 restarts the plain walk. With a self-loop at every node, as in the published code, the seed
keeps more of its walk, and it is less.

*Theorem.* For α = .25 and graphs without self-loops the sensitivity of one row is C₁: with x the entry of the seed and S the
sum of the squares of all other entries, S < (x − e)² for e = .00045, and for e = .017 where the seed has two edges or more.
So it is for what ``ista`` returns as long as the seed has fewer than 170 edges, its entries being no larger than those of
the exact PageRank, and that of the seed by at most ρd + ρ·tolerance·d less. Then p·p′ >= xx′ >= ‖p‖‖p′‖/2 for any two rows
that are not 0, whatever their graphs.

*Proof.* a = 2/5, entries sum to 1, x >= a, and what moves into a node other than the seed is 5/3 of its entry. Let m be the
largest other entry, at h, and n the second largest, at g, so that S <= m² + n(1 − x − m). Into the seed moves
r = (x − .4)/.6. Nothing moves from a node to itself, so m <= .6(1 − m): m <= .375. If m <= (x − e)²/(1 − x), then
S <= m(1 − x) is small enough. Else m > .265 (.24 for the larger e), since x >= .4, and with m <= .375 also x < .47.
Now h is a neighbour of the seed, for else m <= .6(1 − x − m), at most .225. So h sends every neighbour at most r.

- The seed has one edge, to h. Into g moves at most r + (1 − x − m − n), so that 1.6n <= .2 + .4x − .6m.
- It has more, and sends x/2 at most to each. Then m <= .6(x/2 + 1 − x − m), at most .3, and into g moves at most
  x/2 + r + (1 − x − m − n), so that 1.6n <= .2 + .7x − .6m.

With these n the bound on S is convex in m, so largest at an end of its range, and there it decreases with x: it is at most
.15961 at x = .4, m = .375 in the first case, and .14625 at x = .4, m = .3 in the second. (.4 − e)² is more: .15964 and
.14668. ∎

Source: Zhang, Lee, Ma, Lou, Yang & Xiong (2024), "DPAR: Decoupled Graph Neural Networks with Node-Level Differential
Privacy", WWW 2024 (arXiv:2210.04442): DP-APPR-GM and Theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import stats

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import GaussianLaw
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.gaussian import Gaussian
from mechanisms.pagerank.rows import PublicRows
from mechanisms.validation import check_integer, check_positive


@dataclass(frozen=True)
class NoisyRows:
    """Rows clipped to ‖p‖₂ <= C₁ with N(0, σ²I) added: DP-APPR-GM before it selects, or with K the number of ids.

    Input: a graph, as ``DPApprEM`` takes it. Output: every entry of every row, float64, shape (size, rows·nodes).

    Claimed: (ε, δ)-node DP for one row with σ = C₁√(2 ln(1.25/δ))/ε; (ε_g, 2Mδ) for M rows, ``share_of_row``. The formula is
    proved for ε < 1 (Dwork & Roth 2014, Theorem A.1), and C₁ is not the sensitivity of all readings, as said above.

    Args:
        epsilon: ε of one row in nats, finite and > 0.
        delta: δ of one row, in (0, 1).
        rows: Which rows.
        clip: C₁.
        apart: The sensitivity of a row in units of C₁: 1 as published, √2 for any two rows.
        calibration: How σ is found, as for ``Gaussian``.
    """

    epsilon: float
    delta: float
    rows: PublicRows
    clip: float = 0.01
    apart: float = 1.0
    calibration: Literal["analytic", "classic"] = "classic"
    norm = "l2"

    def __post_init__(self) -> None:
        check_positive("NoisyRows", "clip", self.clip)
        check_positive("NoisyRows", "apart", self.apart)
        if self.calibration not in ("analytic", "classic"):
            raise MechanismError(
                f"NoisyRows: expected calibration 'analytic' or 'classic', got {self.calibration!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, its budget and its rows."""
        return (
            f"NoisyRows(epsilon={self.epsilon:g}, delta={self.delta:g}, {self.rows.name} of {self.rows.nodes}, "
            f"{self.calibration}, sigma={self.sigma:.4g})"
        )

    @cached_property
    def sigma(self) -> float:
        """The standard deviation of an entry's noise."""
        return Gaussian(
            self.epsilon, self.delta, self.calibration, self.apart * self.clip
        ).sigma

    @property
    def sensitivity(self) -> float:
        """The ℓ₂ sensitivity of all rows together, if that of one is as declared."""
        return self.apart * self.clip * math.sqrt(self.rows.count)

    def query(self, data: Any, rng: Rng | None = None) -> Array:
        """Return the clipped rows, one after the other, shape (rows·nodes,)."""
        rows = self.rows.of(data, self.rows.seeds)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.ravel(rows * (self.clip / np.maximum(norms, self.clip)))

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy sets of rows."""
        location = self.query(data)
        return location + self.sigma * rng.standard_normal((size, len(location)))

    def distribution(self, data: Any) -> GaussianLaw:
        """Return the law: independent Gaussian entries."""
        return GaussianLaw(self.query(data), self.sigma)


@dataclass(frozen=True)
class DPApprGM:
    """The K largest noisy entries of every row of ``NoisyRows``, and their values: post-processing of all entries.

    Output: the K indices of every row, ascending, then the values there, float64, shape (size, 2·rows·K).

    Args:
        noisy: The rows with noise.
        k: Number of entries K that are kept of each row, from 1 to the number of ids.
    """

    noisy: NoisyRows
    k: int

    def __post_init__(self) -> None:
        check_integer("DPApprGM", "k", self.k, 1)
        if self.k > self.noisy.rows.nodes:
            raise MechanismError(
                f"DPApprGM: expected k of at most {self.noisy.rows.nodes} ids, got {self.k}"
            )

    @property
    def name(self) -> str:
        """The noisy rows and how many entries are kept."""
        return f"DPApprGM(k={self.k}, {self.noisy.name})"

    @property
    def sensitivity(self) -> float:
        """That of the rows before the noise."""
        return self.noisy.sensitivity

    norm = NoisyRows.norm

    def query(self, data: Any, rng: Rng | None = None) -> Array:
        """Return the rows before the noise."""
        return self.noisy.query(data)

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases."""
        rows = self.noisy(data, size, rng=rng).reshape(size, self.noisy.rows.count, -1)
        chosen = np.sort(
            np.argpartition(-rows, self.k - 1, axis=2)[:, :, : self.k], axis=2
        )
        values = np.take_along_axis(rows, chosen, axis=2)
        return np.concatenate(
            [chosen.reshape(size, -1), values.reshape(size, -1)], axis=1
        ).astype(np.float64)

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log density, shape (size,): of the K values, times the chance that all others are below the least."""
        indices, values = (
            part.reshape(len(outputs), self.noisy.rows.count, self.k)
            for part in np.hsplit(np.asarray(outputs), 2)
        )
        centres = np.broadcast_to(
            self.noisy.query(data).reshape(self.noisy.rows.count, -1),
            (len(outputs), self.noisy.rows.count, self.noisy.rows.nodes),
        )
        chosen, sigma = indices.astype(np.int64), self.noisy.sigma
        kept = stats.norm.logpdf(
            values, np.take_along_axis(centres, chosen, axis=2), sigma
        ).sum(axis=(1, 2))
        below = stats.norm.logcdf(values.min(axis=2, keepdims=True), centres, sigma)
        np.put_along_axis(below, chosen, 0.0, axis=2)
        return np.asarray(kept + below.sum(axis=(1, 2)))
