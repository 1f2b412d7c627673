"""DP-APPR-EM: the K largest entries of PageRank rows, by one-shot Gumbel noise, and their values.

Source: Zhang, Lee, Ma, Lou, Yang & Xiong (2024), "DPAR: Decoupled Graph Neural Networks with Node-Level Differential
Privacy", WWW 2024 (arXiv:2210.04442): DP-APPR-EM with options I and II, Corollary 1 and Theorem 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import comb, perm, prod
from typing import Any, Literal

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw, ball, precision
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.edges.laplace_cells import LaplaceMessage
from mechanisms.pagerank.rows import NOBODY, PublicRows, Rows
from mechanisms.rounding import laplace_scale
from mechanisms.top_k_law import plackett_luce, unordered_top_k
from mechanisms.validation import check_integer, check_positive

MAX_OUTCOMES = 2**14


@dataclass(frozen=True)
class DPApprEM:
    """The K largest entries of every row, clipped to [0, C₂] and with Gumbel(C₂/ε) added: option I, all values 1/K.

    Input: a graph (symmetric matrix of zeros and ones, or ``Graph``), or the rows themselves, as ``rows`` says. Output: the
    K indices of every row, ascending, or with ``ordered`` the largest first, int32, shape (size, rows·K); before them,
    where rows are sampled, the ids of their nodes. Where there are fewer than K candidates, −1 for the rest.

    Claimed: (ε₁, δ)-node DP for one row, ``row_epsilon``; (ε_g, 2Mδ) for M rows, ``share_of_row``. One row of public ids, in
    which every id of the universe is a candidate, has it: between any two graphs an entry changes by at most C₂.

    Args:
        epsilon: C₂ over the scale of the noise, in nats, finite and > 0.
        k: Number of indices K, >= 1.
        rows: Which rows.
        clip: C₂.
        candidates: Who may be among the K largest: every id of the universe, or the nodes that are there.
        ordered: Whether the order of the noisy entries is released too.
    """

    epsilon: float
    k: int
    rows: Rows
    clip: float = 0.001
    candidates: Literal["universe", "present"] = "universe"
    ordered: bool = False
    norm = "linf"

    def __post_init__(self) -> None:
        check_positive("DPApprEM", "epsilon", self.epsilon)
        check_positive("DPApprEM", "clip", self.clip)
        check_integer("DPApprEM", "k", self.k, 1)
        if self.candidates not in ("universe", "present"):
            raise MechanismError(
                f"DPApprEM: expected candidates 'universe' or 'present', got {self.candidates!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism, its noise, and its readings."""
        readings = f"{', present ids' if self.candidates == 'present' else ''}{', ordered' if self.ordered else ''}"
        return f"DPApprEM(epsilon={self.epsilon:g}, k={self.k}, {self.rows.name} of {self.rows.nodes}{readings})"

    @property
    def sensitivity(self) -> float:
        """The largest change of an entry, to which the noise is calibrated."""
        return self.clip

    @cached_property
    def scale(self) -> float:
        """C₂/ε, rounded towards privacy."""
        return laplace_scale(self.clip, self.epsilon)

    def query(self, data: Any, rng: Rng) -> Array:
        """Return the clipped entries of one run, shape (rows, nodes)."""
        return np.minimum(self.rows.draw(data, 1, rng)[1][0], self.clip)

    def select(self, data: Any, size: int, rng: Rng) -> tuple[Array, Array, Array]:
        """Return ids (size, rows), indices (size, rows, k), and the clipped entries there, NaN where there is no index."""
        ids, values = self.rows.draw(data, size, rng)
        values = np.minimum(values, self.clip)
        noisy = values + rng.gumbel(scale=self.scale, size=(size, *values.shape[1:]))
        noisy[:, :, ~self._candidates(data)] = -np.inf
        noisy[ids == NOBODY] = -np.inf
        best = np.argsort(-noisy, axis=2, kind="stable")[:, :, : self.k]
        chosen = np.where(
            np.isneginf(np.take_along_axis(noisy, best, axis=2)), NOBODY, best
        )
        if not self.ordered:
            chosen = np.sort(chosen, axis=2)
        missing = self.k - chosen.shape[2]
        chosen = np.concatenate(
            [np.full((*ids.shape, missing), NOBODY, chosen.dtype), chosen], axis=2
        )
        kept = np.take_along_axis(
            np.broadcast_to(values, noisy.shape), np.maximum(chosen, 0), axis=2
        )
        return ids, chosen, np.where(chosen == NOBODY, np.nan, kept)

    def _candidates(self, data: Any) -> Array:
        return self.rows.there(data) | (self.candidates == "universe")

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases, int32."""
        ids, chosen, _ = self.select(data, size, rng)
        parts = [ids] * self.rows.labelled + [chosen.reshape(size, -1)]
        return np.concatenate(parts, axis=1).astype(np.int32)

    def distribution(self, data: Any) -> FiniteLaw:
        """Return the exact law, rigorously enclosed; rows have independent noise. At most 2^14 choices of indices.

        Raises:
            MechanismError: If there are more.
        """
        candidates = int(self._candidates(data).sum())
        choices = (perm if self.ordered else comb)(candidates, min(self.k, candidates))
        if choices**self.rows.count > MAX_OUTCOMES:
            raise MechanismError(
                f"{self.name}: {choices**self.rows.count} choices of indices, at most {MAX_OUTCOMES}; use fewer ids or rows"
            )
        with precision():
            law = list(self._outcomes(data))
            return FiniteLaw(
                np.array([outcome for outcome, _ in law], np.int32), [p for _, p in law]
            )

    def _outcomes(self, data: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
        """Every output and its probability."""
        candidates = np.flatnonzero(self._candidates(data))
        for share, ids, rows in self.rows.mixture(data):
            named = ids if ids else (0,) * len(rows)
            laws = [
                self._row_law(row, candidates if who != NOBODY else candidates[:0])
                for who, row in zip(named, rows, strict=True)
            ]
            for parts in product(*(law.items() for law in laws)):
                chosen = sum((indices for indices, _ in parts), ())
                yield (*ids, *chosen), prod((p for _, p in parts), start=ball(share))

    def _row_law(self, row: Array, candidates: Array) -> dict[tuple[int, ...], Any]:
        """The law of the indices of one row, padded with −1, enclosed."""
        scale, selected = Fraction(self.scale), min(self.k, len(candidates))
        scores = [
            ball(Fraction(float(min(row[i], self.clip))) / scale) for i in candidates
        ]
        law = (plackett_luce if self.ordered else unordered_top_k)(scores, selected)
        padding = (NOBODY,) * (self.k - selected)
        return {
            padding + tuple(chosen): p
            for chosen, p in zip(
                candidates[law.outcomes].tolist(), law.balls, strict=True
            )
        }


@dataclass(frozen=True)
class DPApprEMValues:
    """Option II: the indices of ``DPApprEM``, and the clipped entries there with Lap(K·C₂/ε₂) added.

    Output: what ``select`` releases, then the K noisy values of every row, float64, shape (size, .. + rows·K).

    Claimed: (ε₁ + ε₂, δ) for one row. True: given the indices, K entries change by at most C₂ each (``SelectedValues``), and
    the two releases compose.

    Args:
        select: The selection.
        value_epsilon: ε₂ in nats, finite and > 0.
    """

    select: DPApprEM
    value_epsilon: float

    def __post_init__(self) -> None:
        check_positive("DPApprEMValues", "value_epsilon", self.value_epsilon)

    @property
    def name(self) -> str:
        """The selection and the budget of the values."""
        return f"{self.select.name} with values at {self.value_epsilon:g}"

    @cached_property
    def scale(self) -> float:
        """K·C₂/ε₂, rounded towards privacy."""
        return laplace_scale(
            self.select.k * Fraction(self.select.clip), self.value_epsilon
        )

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent releases, float64."""
        ids, chosen, values = self.select.select(data, size, rng)
        noisy = values + rng.laplace(scale=self.scale, size=values.shape)
        parts = [ids] * self.select.rows.labelled + [
            chosen.reshape(size, -1),
            noisy.reshape(size, -1),
        ]
        return np.concatenate(parts, axis=1).astype(np.float64)

    def log_prob(self, outputs: Array, data: Any) -> Array:
        """Return the log probability of the indices plus the log density of the values given them, shape (size,).

        Raises:
            MechanismError: If the outputs have another number of columns.
        """
        outputs = np.asarray(outputs)
        values = self.select.rows.count * self.select.k
        columns = self.select.rows.count * self.select.rows.labelled + 2 * values
        if outputs.shape[1] != columns:
            raise MechanismError(
                f"{self.name}: expected outputs of {columns} numbers, got {outputs.shape[1]}"
            )
        indices, noisy = outputs[:, :-values], outputs[:, -values:]
        found = self.select.distribution(data).log_prob(indices)
        for _, ids, rows in self.select.rows.mixture(data):
            mine = (indices[:, : len(ids)] == ids).all(axis=1)
            at = (
                indices[mine][:, len(ids) :]
                .astype(np.int64)
                .reshape(-1, len(rows), self.select.k)
            )
            clipped = np.minimum(
                np.broadcast_to(rows, (len(at), *rows.shape)), self.select.clip
            )
            centre = np.take_along_axis(clipped, np.maximum(at, 0), axis=2)
            away = np.abs(noisy[mine].reshape(at.shape) - centre) / self.scale + np.log(
                2 * self.scale
            )
            found[mine] -= np.where(at == NOBODY, 0, away).sum(axis=(1, 2))
        return found


@dataclass(frozen=True)
class SelectedValues(LaplaceMessage):
    """The entries of one row at K public indices, clipped to [0, C₂], with Lap(K·C₂/ε₂) added: option II's second step.

    Claimed: ε₂-DP. True: K entries change by at most C₂ each.

    Args:
        epsilon: ε₂ in nats, finite and > 0.
        indices: The K indices.
        rows: Which row; one.
        clip: C₂.
    """

    epsilon: float
    indices: tuple[int, ...]
    rows: PublicRows
    clip: float = 0.001
    norm = "l1"

    @property
    def name(self) -> str:
        """The mechanism, its budget and the indices."""
        return f"SelectedValues(epsilon={self.epsilon:g}, indices={self.indices}, {self.rows.name})"

    @property
    def sensitivity(self) -> float:
        """K·C₂."""
        return len(self.indices) * self.clip

    def query(self, data: Any, rng: Rng | None = None) -> Array:
        """Return the clipped entries, shape (K,)."""
        (row,) = self.rows.of(data, self.rows.seeds)
        return np.minimum(row[list(self.indices)], self.clip)

    def distribution(self, data: Any) -> LaplaceLaw:
        """Return location and scale of every value."""
        entries = self.query(data)
        scale = laplace_scale(len(self.indices) * Fraction(self.clip), self.epsilon)
        return LaplaceLaw(entries, np.full(len(entries), scale))
