"""A case of the standing set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from auditdp import PureDP
from auditdp.claims.claim import Claim

Function = TypeVar("Function", bound=Callable[..., Any])
Row = tuple[str, Callable[..., Any], str]
APART = (0.0, 1.0)
"""The pair of a mechanism that takes one number, unless another one is given."""
UP = 1 + 1e-9
"""A computed level is multiplied by this, so that rounding makes no true claim false."""


@dataclass(frozen=True)
class Known:
    """One mechanism.

    Attributes:
        name: What reports call it.
        function: ``f(data, rng)``.
        claim: What its authors state.
        pairs: Neighbours (data, neighbour).
        truth: The smallest level of a claim of this kind (at its δ) that holds on each of these pairs, or a number that it
            is certainly not below; infinite where no level holds.
        why: The argument.
    """

    name: str
    function: Callable[..., Any]
    claim: Claim
    pairs: Sequence[tuple[Any, Any]]
    truth: float
    why: str


class KnownCases(list[Known]):
    """A list that functions are added to where they are defined; the argument is their docstring."""

    def holds(
        self, claim: Claim, *pairs: tuple[Any, Any], truth: float | None = None
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a correct function; its claim is exact unless a smaller ``truth`` is given."""
        return self._adding(claim, pairs, claim.level if truth is None else truth)

    def loses(
        self, truth: float, *pairs: tuple[Any, Any], claim: Claim | None = None
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a leaky function, which by its authors is 1-DP unless another claim is given."""
        return self._adding(claim or PureDP(1.0), pairs, truth)

    def rows(self, claim: Claim, *rows: Row, truth: float | None = None) -> None:
        """Add functions of one number, each as (name, function, argument), that share a claim and a level."""
        level = claim.level if truth is None else truth
        self.extend(
            Known(name, function, claim, [APART], level, why)
            for name, function, why in rows
        )

    def _adding(
        self, claim: Claim, pairs: Sequence[tuple[Any, Any]], truth: float
    ) -> Callable[[Function], Function]:
        def add(function: Function) -> Function:
            name = function.__name__.replace("_", " ")
            self.append(
                Known(
                    name,
                    function,
                    claim,
                    pairs or [APART],
                    truth,
                    function.__doc__ or "",
                )
            )
            return function

        return add
