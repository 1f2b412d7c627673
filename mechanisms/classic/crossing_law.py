"""The exact probability that noisy answers fall on the right sides of one noisy threshold.

A threshold τ = c + Lap(ρ) and answers q + Lap(ν), all independent. Given τ, an answer q is below with probability
F(τ − q) and not below with 1 − F(τ − q), F the distribution function of Lap(ν), and

    P(all of ``below`` are below, all of ``above`` are not) = ∫ f(τ) ∏_below F(τ − q) ∏_above (1 − F(τ − q)) dτ.

Between two neighbouring numbers of c and the answers, F(τ − q) is g w (τ < q) or 1 − g/w (τ > q) in w = e^((τ−c)/ν),
with g = e^∓((q−c)/ν)/2, so that the product is a polynomial in w over a power of w, and the integral a sum over powers j
of coefficients times ∫ f(τ) w^j dτ, an exponential of a rate that is rational and exact. Everything else is balls of 256
bits, which the few bits that cancel do not exhaust. The same integral gives report noisy max: τ is then the noisy
answer that wins, and the others are below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly

from auditdp.mechanism.laws import ball, precision

Answer = float | Fraction
"""An exact number; floats are compared and sorted many times faster than fractions."""
End = Fraction | None
"""An end of a piece; None is an infinite one."""


@dataclass(frozen=True, eq=False)
class Crossing:
    """A noisy threshold among noisy answers.

    Args:
        answers: All answers that will be asked about.
        centre: The threshold c.
        rho: Laplace scale of the threshold's noise, > 0.
        nu: Laplace scale of the answers' noise, >= 0; 0 for none.
    """

    answers: Sequence[Answer]
    centre: Fraction
    rho: Fraction
    nu: Fraction
    _known: dict[Any, arb] = field(init=False, repr=False, default_factory=dict)

    @cached_property
    def pieces(self) -> list[Piece]:
        """The real line, cut at the answers and the centre, from the left."""
        kinks: list[End] = sorted({*map(Fraction, self.answers), self.centre})
        return [Piece(low, high, self) for low, high in pairwise([None, *kinks, None])]

    @cached_property
    def _nothing(self) -> Sides:
        return Sides(None, [Factor(arb(1), arb(0), 0)] * len(self.pieces), self)

    def probability(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        """Return P(every q of ``below`` has q + Lap(ν) < c + Lap(ρ), and every q of ``above`` has not), enclosed."""
        key = tuple(sorted(below)), tuple(sorted(above))
        if key not in self._known:
            with precision():
                self._known[key] = (
                    self._without_noise(*key)
                    if self.nu == 0
                    else self._integral(below, above)
                )
        return self._known[key]

    def _integral(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        sides = self._nothing
        for each in sorted([*((q, True) for q in below), *((q, False) for q in above)]):
            sides = sides.and_then(*each)
        return sum(
            (sides.moment(piece, 0) for piece in range(len(self.pieces))), arb(0)
        )

    def _without_noise(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        """P(max of below < τ <= min of above)."""
        if below and above and max(below) >= min(above):
            return arb(0)
        return (self._at_most(min(above)) if above else arb(1)) - (
            self._at_most(max(below)) if below else arb(0)
        )

    def _at_most(self, answer: Answer) -> arb:
        """P(τ <= answer)."""
        x = Fraction(answer)
        tail = ball(-abs(x - self.centre) / self.rho).exp() / 2
        return tail if x <= self.centre else 1 - tail


@dataclass(frozen=True)
class Factor:
    """F(τ − q) or 1 − F(τ − q) on one piece of the line: (constant + slope w) / w^passed."""

    constant: arb
    slope: arb
    passed: int


@dataclass(eq=False)
class Sides:
    """The sides of the threshold on which the first few answers fall, from the smallest answer on.

    With m(j) the integral of f(τ) w^j ∏ over a piece, the product that of these answers, one answer more gives
    m′(j) = constant m(j − passed) + slope m(j + 1 − passed). Most of an output's sides are another's, and so the 2^k
    outputs of k answers take some 2^(k+1) such steps for each piece.

    Args:
        rest: All answers but the last; None where there is none.
        factors: What the last answer brings, on each piece.
        law: Whose answers they are.
    """

    rest: Sides | None
    factors: list[Factor]
    law: Crossing
    _next: dict[tuple[Answer, bool], Sides] = field(
        init=False, repr=False, default_factory=dict
    )
    _moments: dict[tuple[int, int], arb] = field(
        init=False, repr=False, default_factory=dict
    )

    def and_then(self, answer: Answer, is_below: bool) -> Sides:
        """Return the sides of these answers and of one more."""
        if (answer, is_below) not in self._next:
            factors = [piece.factor(answer, is_below) for piece in self.law.pieces]
            self._next[answer, is_below] = Sides(self, factors, self.law)
        return self._next[answer, is_below]

    def moment(self, piece: int, power: int) -> arb:
        """Return m(power) on a piece, enclosed."""
        if self.rest is None:
            return self.law.pieces[piece].moment(power)
        if (piece, power) not in self._moments:
            factor = self.factors[piece]
            power_of_rest = power - factor.passed
            found = arb(0)
            if factor.constant != 0:  # where it is 0 the integral may be infinite
                found += factor.constant * self.rest.moment(piece, power_of_rest)
            if factor.slope != 0:
                found += factor.slope * self.rest.moment(piece, power_of_rest + 1)
            self._moments[piece, power] = found
        return self._moments[piece, power]


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of the line without an answer or the centre inside; to be used with the precision that is wanted."""

    low: End
    high: End
    law: Crossing
    _factors: dict[Any, Factor] = field(init=False, repr=False, default_factory=dict)
    _moments: dict[int, arb] = field(init=False, repr=False, default_factory=dict)

    def product(
        self, below: Sequence[Answer], above: Sequence[Answer]
    ) -> list[tuple[int, arb]]:
        """Return ∏_below F ∏_above (1 − F) as powers of w and their coefficients."""
        factors = [self.factor(q, True) for q in below] + [
            self.factor(q, False) for q in above
        ]
        polynomial = math.prod(
            (arb_poly([f.constant, f.slope]) for f in factors), start=arb_poly([1])
        )
        passed = sum(f.passed for f in factors)
        return [(k - passed, polynomial[k]) for k in range(polynomial.degree() + 1)]

    def factor(self, answer: Answer, is_below: bool) -> Factor:
        """Return F or 1 − F, divided by a power of w for an answer to the left of the piece."""
        if (answer, is_below) not in self._factors:
            q = Fraction(answer)
            left = self._left_of(q)
            g = (
                ball((self.law.centre - q) / self.law.nu * (1 if left else -1)).exp()
                / 2
            )
            whole, part = (
                ((arb(0), g) if left else (g, arb(0))),
                ((arb(1), -g) if left else (-g, arb(1))),
            )
            self._factors[answer, is_below] = Factor(
                *(whole if left == is_below else part), not left
            )
        return self._factors[answer, is_below]

    def _left_of(self, x: Answer) -> bool:
        return self.high is not None and self.high <= x

    def rate(self, power: int) -> Fraction:
        """Return r in f(τ) w^power = e^(r (τ−c))/2ρ."""
        return (
            power / self.law.nu
            + (1 if self._left_of(self.law.centre) else -1) / self.law.rho
        )

    def moment(self, power: int) -> arb:
        """Return the integral of f(τ) w^power over the piece, enclosed."""
        if power not in self._moments:
            rate = self.rate(power)
            if rate == 0:  # never at an infinite end, towards which the integrand falls
                assert self.low is not None
                assert self.high is not None
                integral = ball(self.high - self.low)
            else:
                integral = (
                    self._exponential(rate, self.high)
                    - self._exponential(rate, self.low)
                ) / ball(rate)
            self._moments[power] = integral / ball(2 * self.law.rho)
        return self._moments[power]

    def _exponential(self, rate: Fraction, at: End) -> arb:
        """e^(rate (at − c)); 0 at an infinite end."""
        return arb(0) if at is None else ball(rate * (at - self.law.centre)).exp()
