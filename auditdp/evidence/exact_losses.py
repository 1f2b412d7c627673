"""Bounds on the privacy loss of one pair of laws, and of all laws of an envelope.

``rows_loss`` compares two laws output by output, if they list their outputs or are
constant on intervals. ``envelope_losses`` bounds the loss of any two inputs of an
envelope. Probabilities are balls, that is numbers with an error bound.
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
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import (
    FLOAT_ABSOLUTE_ERROR,
    FLOAT_RELATIVE_ERROR,
    LeftOut,
    above,
    below,
    is_float,
)
from auditdp.numerics.rounding import outwards

ROUNDING_TOLERANCE = 1e-12
"""Relative difference up to which two levels are one claim written in doubles."""
ROUNDING_UNITS = 256
"""Units in the last place by which rounding may move a location or a query."""
Row = tuple[arb, arb, Any]
"""(P(y), Q(y), y) for an output y, or for an interval of outputs with the same P/Q."""
_FLOATS = (
    f"the floats of its law are right to a relative {FLOAT_RELATIVE_ERROR:g} and an absolute {FLOAT_ABSOLUTE_ERROR:g} of "
    "probability"
)
_LISTED = "for a pure ε: its law lists every output of positive probability"


@dataclass(frozen=True)
class PairLoss:
    """Bounds on the privacy loss of a pair of laws, P and Q."""

    low: arb
    """Lower bound on the exact pure epsilon, which is the maximum of |ln P/Q|.

    It may be infinite.
    """
    high: arb
    """Upper bound on the exact pure epsilon.

    It is infinite if an output may be impossible under one of the two laws only.
    """
    source: str
    """The quantities from which the bounds are computed, in words.

    The phrase follows "computed from". It also has the reason for a missing bound.
    """
    delta: arb | None = None
    """Ball around the larger δ of (P, Q) and (Q, P), at the claim's epsilon.

    None if it was not computed.
    """
    delta_beyond: arb | None = None
    """Like ``delta``, at an epsilon that is larger by ``ROUNDING_TOLERANCE``.

    For Gaussian laws it is computed from ``least_mu``. A claim is broken only if this δ
    exceeds the claimed one.
    """
    mu: arb | None = None
    """Ball around the exact μ of Gaussian DP; None unless both laws are Gaussian.

    It is infinite if the deviations differ, and unbounded if rounding may be the reason
    for their difference.
    """
    needed: tuple[float, float] | None = None
    """Bounds on the smallest epsilon for which the pair is (epsilon, δ)-DP.

    δ is that of the claim. None if it was not computed.
    """
    assumed: tuple[str, ...] = ()
    """Assumptions of the bounds, apart from the stated laws."""
    least_mu: arb | None = None
    """``mu`` for locations whose distance is reduced by a tolerance for rounding.

    A claim is broken only if this μ exceeds the claimed one. None if ``mu`` is None.
    """

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
        if high < math.inf:
            width = max((high - low) / max(high, 1.0), 1e-12)
            if width <= 1e-7:
                return f"{low:.{int(-math.log10(width))}g}"
        least = outwards(low, up=False, digits=6)
        return f"between {least} and {outwards(high, up=True, digits=6)}"


@dataclass(frozen=True)
class Aligned:
    """Two laws side by side, row by row."""

    rows: Sequence[Row]
    """(P(y), Q(y), y) for every output y that either law lists."""
    left_out: tuple[LeftOut, LeftOut]
    """The probability of the outputs that each of the two laws does not list."""

    def __iter__(self) -> Iterator[Row]:
        """Iterate over the rows."""
        return iter(self.rows)

    @property
    def filled(self) -> list[Row]:
        """The rows of outputs that at least one of the laws can give.

        In a law that is stated by floats, an output with probability 0 may be possible.
        So its probability is a ball from 0 to the probability that the law leaves out.
        """
        zero = arb(0)
        p_left, q_left = (
            zero.union(side.most) if side.floats else zero for side in self.left_out
        )
        return [
            (p_left if p == 0 else p, q_left if q == 0 else q, output)
            for p, q, output in self.rows
            if not (p == 0 and q == 0)
        ]

    def side(self, which: int) -> Floats:
        """Return the probabilities of P (``which`` is 0) or Q (1), one double a row."""
        return np.array([float(row[which].mid()) for row in self.rows])

    def delta(self, epsilon: arb) -> arb:
        """Return a ball around the larger δ(epsilon) of (P, Q) and (Q, P).

        The ball includes the contribution of outputs that are not listed.
        """
        factor, zero = epsilon.exp(), arb(0)
        orders = []
        for one, other in ((0, 1), (1, 0)):
            excess = (row[one] - factor * row[other] for row in self.rows)
            listed = sum((each.max(zero) for each in excess), zero)
            more, less = self.left_out[one].most, self.left_out[other]
            # Unlisted outputs of the first law add to δ, and those of the second
            # subtract.
            if less.floats:
                listed += (-factor * less.most).union(more)
            elif more > 0:
                listed += zero.union(more)
            orders.append(listed.max(zero))
        return orders[0].max(orders[1])


def aligned(p: Any, q: Any) -> Aligned:
    """Return two laws side by side: a row for every output that either law lists.

    For step laws, y may be an interval: between consecutive breaks of either law both
    densities are constant, so the interval counts as one output.

    Raises:
        MechanismError: If the laws are not both finite, or both step laws.
    """
    rows: list[Row]
    if isinstance(p, FiniteLaw) and isinstance(q, FiniteLaw):
        # Outcomes of one value are distinct if either law lists them so.
        zero, split = arb(0), p.split | q.split
        of_p, of_q = p.by_key(split), q.by_key(split)
        rows = []
        for key, i in of_p.items():
            other = zero
            if key in of_q:
                other = q.balls[of_q[key]]
            rows.append((p.balls[i], other, p.outcomes[i]))
        for key, i in of_q.items():
            if key not in of_p:
                rows.append((zero, q.balls[i], q.outcomes[i]))
    elif isinstance(p, StepLaw) and isinstance(q, StepLaw):
        rows = _aligned_steps(p, q)
    else:
        raise MechanismError(
            f"expected two laws of one family, got {type(p).__name__} and {type(q).__name__}; which family it is must not "
            "depend on the data"
        )
    return Aligned(rows, (p.left_out, q.left_out))


def _aligned_steps(p: StepLaw, q: StepLaw) -> list[Row]:
    rows: list[Row] = []
    with precision():
        for atom in p.points | q.points:
            p_mass, q_mass = (ball(law.points.get(atom, 0)) for law in (p, q))
            rows.append((p_mass, q_mass, float(atom)))
        # Both densities are constant between any two consecutive breaks.
        for a, b in pairwise(sorted({*p.ends, *q.ends})):
            width = ball(b - a)
            p_mass, q_mass = (law.density_between(a, b) * width for law in (p, q))
            # A ball that only contains 0 is not equal to 0.
            if not (p_mass == 0 and q_mass == 0):
                output = f"any number in [{float(a):.6g}, {float(b):.6g}]"
                rows.append((p_mass, q_mass, output))
        return rows


def rows_loss(
    laws: Aligned, *, epsilon: float | None = None, delta: float | None = None
) -> PairLoss:
    """Return the loss between two aligned laws.

    The pure ε is the largest |ln P(y)/Q(y)|. δ(ε) is Σ_y (P(y) - e^ε Q(y))₊, or the
    same sum with P and Q exchanged if that is larger. With P(y) in [a, b] and Q(y) in
    [c, d], the larger of P/Q and Q/P lies between max(a/d, c/b) and max(b/c, d/a). So
    the bounds hold for all laws inside the balls.

    *Outputs that are not listed.* Let P give them at most m in total, and Q at most n;
    both are 0 for Fractions. They add at most m to δ(ε), so its upper bound includes m.
    Fractions and rigorous balls are taken to list every possible output. Floats are
    not, since small probabilities underflow: Q may give up to n to an output that it
    does not list. This weakens the lower bounds: P/Q is at least P/n there, and δ(ε)
    may be smaller by e^ε n. The upper bound on the pure ε assumes that the list is
    complete, also for floats. If floats sum to less than 1, the list is not complete,
    and the pure ε has no upper bound.

    Args:
        laws: The two laws.
        epsilon: The ε at which δ is computed, if any.
        delta: The δ at which the smallest ε is computed (``PairLoss.needed``), if any.
    """
    with precision():
        missing = any(side.lacks for side in laws.left_out)
        floats = any(side.floats for side in laws.left_out)
        # Ratios are at least 1, since the larger of two orders counts.
        low, high = arb(1), arb.pos_inf() if missing else arb(1)
        for p, q, _ in laws.filled:
            smallest, largest = ratio(p, q)
            low, high = _larger(low, smallest), _larger(high, largest)
        source = "the two probabilities of every output"
        if missing:
            source += (
                ", of which some are not listed, so that the pure ε has no upper bound"
            )
        elif floats and not high.is_finite():
            source += ", of which some are floats too near 0 to bound a ratio (Fractions or balls would)"
        incomplete = any(side.most > 0 and not side.lacks for side in laws.left_out)
        at = beyond = None
        if epsilon is not None:
            at = laws.delta(arb(epsilon))
            beyond = laws.delta(arb(epsilon) * (1 + arb(ROUNDING_TOLERANCE)))
        return PairLoss(
            low.log().lower(),
            high.log().upper(),
            source,
            at,
            beyond,
            needed=None if delta is None else _needed(laws, delta),
            assumed=(*[_FLOATS] * floats, *[_LISTED] * incomplete),
        )


def row_loss(p: arb, q: arb) -> PairLoss:
    """Return the loss of one output, from its two probabilities."""
    source = "the two probabilities of one output"
    with precision():
        smallest, largest = ratio(p, q)
        return PairLoss(smallest.log().lower(), largest.log().upper(), source)


def _needed(laws: Aligned, delta: float) -> tuple[float, float]:
    """Return bounds on the smallest epsilon with δ(epsilon) <= ``delta``.

    δ(ε) is the largest P(S) - e^ε Q(S) over sets S of outputs, so the smallest ε is the
    largest ln((P(S) - δ)/Q(S)). The set that attains it consists of all outputs whose
    ratio P/Q exceeds some number; there is one such set for each output. So ε is
    computed in floating point, and then verified in balls. It is infinite only if
    outputs that are impossible under Q have a probability above δ.
    """
    for side in (0, 1):
        # Floats that are not listed may be possible all the same.
        if not laws.left_out[1 - side].floats:
            impossible = (row[side] for row in laws.rows if row[1 - side] == 0)
            if sum(impossible, arb(0)) > arb(delta):
                return math.inf, math.inf
    p, q = laws.side(0), laws.side(1)
    guess = 0.0
    for near, far in ((p, q), (q, p)):
        # Sets of outputs with the largest ratios are nested, so that sums are
        # cumulative.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            order = np.argsort(-np.divide(near, far))
            excess = np.log(np.cumsum(near[order]) - delta)
            logs = excess - np.log(np.cumsum(far[order]))
        guess = max(guess, float(np.max(logs, where=np.isfinite(logs), initial=0.0)))
    return verified_epsilon(laws.delta, delta, guess)


def envelope_losses(envelope: Envelope) -> list[PairLoss]:
    """Return the loss ``uses`` · ln(most/least) for each of an envelope's outputs.

    It is the loss of the pair of inputs on which the output is most and least likely.
    """
    times = f", times {envelope.uses} uses" if envelope.uses > 1 else ""
    source = f"the least and the most probability of an output over all inputs{times}"
    floats = any(map(is_float, [*envelope.least, *envelope.most]))
    assumed = (_FLOATS,) if floats else ()
    found = []
    with precision():
        for smallest, largest in envelope.bounds:
            low = _larger(arb(1), _quotient(largest.lower(), smallest.upper())).log()
            high = _larger(arb(1), _quotient(largest.upper(), smallest.lower())).log()
            ends = (envelope.uses * low).lower(), (envelope.uses * high).upper()
            found.append(PairLoss(*ends, source, assumed=assumed))
    return found


def ratio(p: arb, q: arb) -> tuple[arb, arb]:
    """Return a lower and an upper bound on the larger of p/q and q/p."""
    # A quotient of exact ends is a ball again, whose outer end is the bound.
    smallest = _larger(
        _quotient(p.lower(), q.upper()).lower(), _quotient(q.lower(), p.upper()).lower()
    )
    largest = _larger(
        _quotient(p.upper(), q.lower()).upper(), _quotient(q.upper(), p.lower()).upper()
    )
    return smallest, largest


def _quotient(a: arb, b: arb) -> arb:
    """Return a/b for bounds on probabilities: 0 if a is 0, else infinite if b is 0."""
    if a <= 0:
        return arb(0)
    return arb.pos_inf() if b <= 0 else a / b


def _larger(a: arb, b: arb) -> arb:
    return a if a >= b else b


def verified_epsilon(
    delta_at: Callable[[arb], arb], delta: float, guess: float
) -> tuple[float, float]:
    """Return bounds on the smallest ε >= 0 with ``delta_at(ε) <= delta``, near a guess.

    Each bound is moved away from the guess until the ball of δ there verifies it. If
    that fails, the lower bound is 0 and the upper bound infinite.
    """
    lower, upper = 0.0, math.inf
    # The bounds are at first as near to the guess as doubles allow.
    for slack in (1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        step = slack * (1 + guess)
        near, far = max(0.0, guess - step), guess + step
        if lower == 0.0 and near > 0 and delta_at(arb(near)) > arb(delta):
            lower = near
        if upper == math.inf and delta_at(arb(far)) <= arb(delta):
            upper = far
        if upper < math.inf and (lower > 0 or near == 0):
            break
    return lower, upper
