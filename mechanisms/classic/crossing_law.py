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

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly

from auditdp.laws import ball, precision

Answer = float | Fraction
"""A number that is exact; floats are told apart and put in order many times faster than fractions."""
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

    def probability(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        """Return P(every q of ``below`` has q + Lap(ν) < c + Lap(ρ), and every q of ``above`` has not), enclosed."""
        key = tuple(sorted(below)), tuple(sorted(above))
        if key not in self._known:
            with precision():
                self._known[key] = self._without_noise(*key) if self.nu == 0 else self._integral(*key)
        return self._known[key]

    def _integral(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        parts = (
            coefficient * piece.moment(power)
            for piece in self.pieces
            for power, coefficient in piece.product(below, above)
        )
        return sum(parts, arb(0))

    def _without_noise(self, below: Sequence[Answer], above: Sequence[Answer]) -> arb:
        """P(max of below < τ <= min of above)."""
        if below and above and max(below) >= min(above):
            return arb(0)
        return (self._at_most(min(above)) if above else arb(1)) - (self._at_most(max(below)) if below else arb(0))

    def _at_most(self, answer: Answer) -> arb:
        """P(τ <= answer)."""
        x = Fraction(answer)
        tail = ball(-abs(x - self.centre) / self.rho).exp() / 2
        return tail if x <= self.centre else 1 - tail


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of the line without an answer or the centre inside; to be used with the precision that is wanted."""

    low: End
    high: End
    law: Crossing
    _factors: dict[Any, tuple[arb_poly, int]] = field(init=False, repr=False, default_factory=dict)
    _products: dict[Any, tuple[arb_poly, int]] = field(init=False, repr=False, default_factory=dict)
    _moments: dict[int, arb] = field(init=False, repr=False, default_factory=dict)

    def product(self, below: Sequence[Answer], above: Sequence[Answer]) -> list[tuple[int, arb]]:
        """Return ∏_below F ∏_above (1 − F) as powers of w and their coefficients."""
        polynomial, passed = self._product(tuple(below), tuple(above))
        return [(k - passed, polynomial[k]) for k in range(polynomial.degree() + 1)]

    def _product(self, below: tuple[Answer, ...], above: tuple[Answer, ...]) -> tuple[arb_poly, int]:
        """The same as a polynomial over a power of w; most of a product is that of another output."""
        if not below and not above:
            return arb_poly([1]), 0
        if (below, above) not in self._products:
            rest = (below, above[:-1]) if above else (below[:-1], above)
            (polynomial, passed), (factor, one) = self._product(*rest), self._factor((above or below)[-1], not above)
            self._products[below, above] = polynomial * factor, passed + one
        return self._products[below, above]

    def _factor(self, answer: Answer, is_below: bool) -> tuple[arb_poly, int]:
        """F or 1 − F as a polynomial in w over a power of w, which is 1 for an answer to the left of the piece."""
        if (answer, is_below) not in self._factors:
            q = Fraction(answer)
            left = self._left_of(q)
            g = ball((self.law.centre - q) / self.law.nu * (1 if left else -1)).exp() / 2
            whole, part = ([0, g] if left else [g]), ([1, -g] if left else [-g, 1])
            self._factors[answer, is_below] = arb_poly(whole if left == is_below else part), not left
        return self._factors[answer, is_below]

    def _left_of(self, x: Answer) -> bool:
        return self.high is not None and self.high <= x

    def rate(self, power: int) -> Fraction:
        """Return r in f(τ) w^power = e^(r (τ−c))/2ρ."""
        return power / self.law.nu + (1 if self._left_of(self.law.centre) else -1) / self.law.rho

    def moment(self, power: int) -> arb:
        """Return the integral of f(τ) w^power over the piece, enclosed."""
        if power not in self._moments:
            rate = self.rate(power)
            if rate == 0:  # never at an infinite end, towards which the integrand falls
                assert self.low is not None
                assert self.high is not None
                integral = ball(self.high - self.low)
            else:
                integral = (self._exponential(rate, self.high) - self._exponential(rate, self.low)) / ball(rate)
            self._moments[power] = integral / ball(2 * self.law.rho)
        return self._moments[power]

    def _exponential(self, rate: Fraction, at: End) -> arb:
        """e^(rate (at − c)); 0 at an infinite end."""
        return arb(0) if at is None else ball(rate * (at - self.law.centre)).exp()
