"""The loss between laws that are listed, or constant on intervals, and between all laws of an envelope: output by output.

What the privacy loss of one pair of laws is known to lie between, and the ε that a δ needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb

from auditdp.errors import MechanismError
from auditdp.mechanism.laws import Envelope, FiniteLaw, StepLaw, ball, precision
from auditdp.numerics.balls import (
    FLOAT_ABSOLUTE_ERROR,
    FLOAT_RELATIVE_ERROR,
    LeftOut,
    above,
    below,
    is_float,
)
from auditdp.numerics.rounding import outwards

ROUNDED, TINY = 2.0**-48, 1e-300
"""More than a few operations on doubles are off by, relative, and more than underflow loses, absolute."""
FLOATS = (
    f"the floats of its law are right to a relative {FLOAT_RELATIVE_ERROR:g} and an absolute {FLOAT_ABSOLUTE_ERROR:g} of "
    "probability"
)
LISTED = "for a pure ε: its law lists every output of positive probability"
Row = tuple[arb, arb, Any]
"""(P(y), Q(y), y) for an output y, or a class of outputs on which the ratio is constant."""


@dataclass(frozen=True)
class Aligned:
    """Two laws side by side, row by row."""

    rows: Sequence[Row]
    """(P(y), Q(y), y) for every output y that either law lists."""
    left_out: tuple[LeftOut, LeftOut]
    """What each of the two laws leaves out."""

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows."""
        return iter(self.rows)

    @property
    def filled(self) -> list[Row]:
        """The rows of outputs that are possible, with what floats may give an output that they do not list in place of 0."""
        p_left, q_left = (
            arb(0).union(side.most) if side.floats else arb(0) for side in self.left_out
        )
        return [
            (p_left if p == 0 else p, q_left if q == 0 else q, output)
            for p, q, output in self.rows
            if not (p == 0 and q == 0)
        ]


def aligned(p: Any, q: Any) -> Aligned:
    """Return (P(y), Q(y), y) for every output y that either law lists; for step laws, y may be an interval.

    Between consecutive breaks of either law both densities are constant, so the interval is as good as one output.

    Raises:
        MechanismError: If the laws are not both finite, or both step laws.
    """
    if isinstance(p, FiniteLaw) and isinstance(q, FiniteLaw):
        zero, split = arb(0), p.split | q.split
        of_p, of_q = p.by_key(split), q.by_key(split)
        rows = [
            (p.balls[i], q.balls[of_q[k]] if k in of_q else zero, p.outcomes[i])
            for k, i in of_p.items()
        ]
        rows += [
            (zero, q.balls[i], q.outcomes[i]) for k, i in of_q.items() if k not in of_p
        ]
        return Aligned(rows, (p.left_out, q.left_out))
    if isinstance(p, StepLaw) and isinstance(q, StepLaw):
        return Aligned(_aligned_steps(p, q), (p.left_out, q.left_out))
    raise MechanismError(
        f"expected two laws of one family, got {type(p).__name__} and {type(q).__name__}; which family it is must not "
        "depend on the data"
    )


def _aligned_steps(p: StepLaw, q: StepLaw) -> list[Row]:
    with precision():
        rows: list[Row] = [
            (ball(p.points.get(atom, 0)), ball(q.points.get(atom, 0)), float(atom))
            for atom in p.points | q.points
        ]
        for a, b in pairwise(sorted({*p.ends, *q.ends})):
            width = ball(b - a)
            masses = [law.density_between(a, b) * width for law in (p, q)]
            if not all(
                mass == 0 for mass in masses
            ):  # of a ball that only contains 0 that is not certain
                rows.append(
                    (
                        masses[0],
                        masses[1],
                        f"any number in [{float(a):.6g}, {float(b):.6g}]",
                    )
                )
        return rows


def rows_loss(
    laws: Aligned, *, epsilon: float | None = None, delta: float | None = None
) -> PairLoss:
    """Return the loss between two aligned laws, δ(epsilon) where an epsilon is given, and the ε needed for a delta.

    Pure epsilon is the largest |ln P(y)/Q(y)|; δ(ε) = Σ_y (P(y) - e^ε Q(y))₊, the larger of the two orders. With
    P(y) in [a, b] and Q(y) in [c, d], the larger of P/Q and Q/P lies between max(a/d, c/b) and max(b/c, d/a): whatever
    law inside the balls is the true one, its loss lies between the bounds.

    Outputs that are not listed. Let P give them at most m and Q at most n. For a set S of outputs, P(S) is at most what is
    listed plus m, and Q(S) at least what is listed: so they add at most m to δ(ε), whoever lists them. That is added
    always: it is 0 for Fractions, and the width of balls. Fractions and rigorous balls are taken at their word that the list
    is complete. Floats are not, where that would show a loss: an output that Q does not list may have up to n there, which
    bounds P/Q by P/n from below and δ(ε) by e^ε n less. That a pure ε is not larger rests on a complete list, of floats too;
    where their sum shows that it is none, an output that one law alone gives may be among those that neither lists, and no
    upper bound on the pure ε is left.
    """
    with precision():
        missing = any(side.lacks for side in laws.left_out)
        floats = any(side.floats for side in laws.left_out)
        low, high = arb(1), arb.pos_inf() if missing else arb(1)
        for pp, qq, _ in _telling(laws.filled):
            smallest, largest = ratio(pp, qq)
            low, high = _larger(low, smallest), _larger(high, largest)
        found = beyond = None
        if epsilon is not None:
            found = hockey_stick(laws, arb(epsilon))
            beyond = hockey_stick(laws, arb(epsilon) * (1 + arb(ROUNDING_TOLERANCE)))
        needed = None if delta is None else _needed_of_rows(laws, delta)
        source = "the two probabilities of every output"
        if missing:
            source += (
                ", of which some are not listed, so that the pure ε has no upper bound"
            )
        elif floats and not high.is_finite():
            source += ", of which some are floats too near 0 to bound a ratio (Fractions or balls would)"
        assumed = [FLOATS] * floats + [LISTED] * any(
            side.most > 0 and not side.lacks for side in laws.left_out
        )
        return PairLoss(
            low.log().lower(),
            high.log().upper(),
            source,
            found,
            beyond,
            None,
            needed,
            tuple(assumed),
        )


def _telling(rows: Sequence[Row]) -> list[Row]:
    """Return the rows without those whose ratio is certainly smaller than that of another one, which decide no bound.

    Doubles are told apart many times faster than balls. They enclose each probability and each ratio: what a double is off
    by is far less than the relative ``ROUNDED``, or than ``TINY`` where it underflows.
    """
    middle, radius = (
        np.array([[float(part(p)) for p in row[:2]] for row in rows])
        for part in (arb.mid, arb.rad)
    )
    most = (middle + radius) * (1 + ROUNDED) + TINY
    least = np.maximum(middle * (1 - ROUNDED) - radius * (1 + ROUNDED) - TINY, 0.0)
    with np.errstate(divide="ignore"):
        largest = (most / least[:, ::-1]).max(axis=1) * (1 + ROUNDED)
    smallest = (least / most[:, ::-1]).max(axis=1) * (1 - ROUNDED)
    return [
        rows[k] for k in np.flatnonzero(largest >= smallest.max(initial=0.0)).tolist()
    ]


def row_loss(p: arb, q: arb) -> PairLoss:
    """Return the loss of one output."""
    with precision():
        smallest, largest = ratio(p, q)
        return PairLoss(
            smallest.log().lower(),
            largest.log().upper(),
            "the two probabilities of one output",
        )


def _needed_of_rows(laws: Aligned, delta: float) -> tuple[float, float]:
    """Return bounds on the smallest epsilon at which ``delta`` holds.

    δ(ε) is the largest P(S) - e^ε Q(S) over sets S of outputs, so the smallest ε is the largest ln((P(S) - δ)/Q(S)), and the
    set that attains it is one of all outputs whose ratio P/Q is beyond some number: as many sets as there are outputs.
    That is computed in floating point, and then verified. Only outputs that are impossible under Q make it infinite.
    """
    rows = laws.rows
    exact = [side for side in (0, 1) if not laws.left_out[1 - side].floats]
    impossible = (
        sum((row[side] for row in rows if row[1 - side] == 0), arb(0)) for side in exact
    )
    if any(mass > arb(delta) for mass in impossible):
        return math.inf, math.inf
    p, q = (np.array([float(row[side].mid()) for row in rows]) for side in (0, 1))
    guesses = []
    for near, far in ((p, q), (q, p)):
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            order = np.argsort(-np.divide(near, far))
            logs = np.log(np.cumsum(near[order]) - delta) - np.log(
                np.cumsum(far[order])
            )
        guesses.append(np.max(logs, where=np.isfinite(logs), initial=0.0))
    return verified_epsilon(
        lambda epsilon: hockey_stick(laws, epsilon), delta, float(max(guesses))
    )


def envelope_losses(envelope: Envelope) -> list[PairLoss]:
    """Return uses · ln(most/least) for every output of an envelope, as the loss of its pair of inputs."""
    times = f", times {envelope.uses} uses" if envelope.uses > 1 else ""
    source = f"the least and the most probability of an output over all inputs{times}"
    assumed = (FLOATS,) if any(map(is_float, [*envelope.least, *envelope.most])) else ()
    with precision():
        found = []
        for least, most in envelope.bounds:
            low = _larger(arb(1), _quotient(most.lower(), least.upper()))
            high = _larger(arb(1), _quotient(most.upper(), least.lower()))
            ends = (
                (envelope.uses * low.log()).lower(),
                (envelope.uses * high.log()).upper(),
            )
            found.append(PairLoss(*ends, source, assumed=assumed))
        return found


def ratio(p: arb, q: arb) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the larger of p/q and q/p."""
    smallest = _larger(
        _quotient(p.lower(), q.upper()).lower(), _quotient(q.lower(), p.upper()).lower()
    )
    largest = _larger(
        _quotient(p.upper(), q.lower()).upper(), _quotient(q.upper(), p.lower()).upper()
    )
    return smallest, largest


def _quotient(a: arb, b: arb) -> arb:
    """a/b for endpoints of probabilities: 0 for 0/0 (an output of neither law), infinite for anything else over 0."""
    if a <= 0:
        return arb(0)
    return arb.pos_inf() if b <= 0 else a / b


def _larger(a: arb, b: arb) -> arb:
    return a if a >= b else b


def hockey_stick(laws: Aligned, epsilon: arb) -> arb:
    """Return δ(epsilon), the larger of the two orders, outputs that are not listed included."""
    e, zero = epsilon.exp(), arb(0)
    orders = []
    for one, other in ((0, 1), (1, 0)):
        listed = sum(((row[one] - e * row[other]).max(zero) for row in laws), zero)
        more, less = laws.left_out[one].most, laws.left_out[other]
        unlisted = (
            (-e * less.most if less.floats else zero).union(more)
            if more > 0 or less.floats
            else zero
        )
        orders.append((listed + unlisted).max(zero))
    return orders[0].max(orders[1])


ROUNDING_TOLERANCE = 1e-12
"""Two levels that agree to this relative difference are the same claim written in doubles."""


@dataclass(frozen=True)
class PairLoss:
    """The privacy loss of one pair of laws, enclosed."""

    low: arb
    """Lower bound on the exact pure epsilon, max over outputs of |ln P/Q|; may be infinite."""
    high: arb
    """Upper bound on it; infinite as soon as one probability may be zero where the other may not."""
    source: str
    """What the bounds are computed from, and why an end is open where the laws leave it so, in words that can follow
    "computed from".
    """
    delta: arb | None = None
    """Enclosure of δ at the claim's epsilon, the larger of the two orders; None where it is not known."""
    delta_beyond: arb | None = None
    """That δ at an epsilon that is larger by the rounding tolerance."""
    mu: arb | None = None
    """Enclosure of the exact μ of Gaussian DP, where the pair is Gaussian."""
    needed: tuple[float, float] | None = None
    """A lower and an upper bound on the smallest epsilon at which the claim's δ holds, the exact epsilon of an (ε, δ)
    claim; None where δ(ε) is not known.
    """
    assumed: tuple[str, ...] = ()
    """What the bounds rest on beside the laws as they are stated."""
    least_mu: arb | None = None
    """That μ less what the rounding of the locations explains, which refutes nothing."""

    @property
    def lower(self) -> float:
        """A double that is at most the exact epsilon."""
        return max(0.0, below(self.low))

    @property
    def upper(self) -> float:
        """A double that is at least the exact epsilon."""
        return above(self.high)

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        if low == math.inf:
            return "∞"
        width = (high - low) / max(high, 1.0) if high < math.inf else math.inf
        if width <= 1e-7:
            return f"{low:.{min(12, int(-math.log10(max(width, 1e-12))))}g}"
        return f"between {outwards(low, up=False, digits=6)} and {outwards(high, up=True, digits=6)}"


def verified_epsilon(
    delta_at: Callable[[arb], arb], delta: float, guess: float
) -> tuple[float, float]:
    """Return a lower and an upper bound on the smallest ε >= 0 with ``delta_at(ε) <= delta``, near a guess.

    Each is verified by the enclosure of δ there, and moved away from the guess until it is.
    """
    lower, upper = 0.0, math.inf
    for slack in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        below_it, above_it = (
            max(0.0, guess - slack * (1 + guess)),
            guess + slack * (1 + guess),
        )
        if lower == 0.0 and below_it > 0 and delta_at(arb(below_it)) > arb(delta):
            lower = below_it
        if upper == math.inf and delta_at(arb(above_it)) <= arb(delta):
            upper = above_it
        if upper < math.inf and (lower > 0 or below_it == 0):
            break
    return lower, upper
