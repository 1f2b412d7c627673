"""A case of ordinary code: a function as engineers write it, its claim, and the truth."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from auditdp.claims.claim import Claim

Function = TypeVar("Function", bound=Callable[..., Any])
Rng = np.random.Generator


@dataclass(frozen=True)
class Case:
    """One mechanism.

    Attributes:
        name: What reports call it.
        function: ``f(data, rng)`` or ``f(data, size, *, rng)``; ``mechanism`` gives one that nobody has called yet.
        claim: What its authors say of it.
        pairs: The adjacency, or the pairs (data, neighbour), that its authors would give.
        level: The smallest ε (or μ) that holds on these pairs, at the claim's δ where it has one; infinite if none does.
        why: Why that is the level, in one sentence.
        fault: What kind of fault it has; empty for a correct one.
        refusal: Words of the error by which an audit may refuse it instead of refuting it. Only for code whose calls are not
            runs of their own, so that a claim about single runs cannot be tested.
    """

    name: str
    function: Any
    claim: Claim
    pairs: Any
    level: float
    why: str
    fault: str = ""
    refusal: str = ""

    @property
    def mechanism(self) -> Any:
        """The function, or a copy of the object, as it was before its first call."""
        return copy.deepcopy(self.function)

    @property
    def is_broken(self) -> bool:
        """True if the claim is false."""
        return self.level > self.claim.level * (1 + 1e-9)


class Cases(list[Case]):
    """A list that functions and classes are added to where they are defined."""

    def add(
        self,
        claim: Claim,
        pairs: Any,
        *,
        level: float,
        why: str,
        fault: str = "",
        refusal: str = "",
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a function, or an object of a class; see ``Case`` for the arguments."""

        def decorate(defined: Function) -> Function:
            name = defined.__name__.replace("_", " ")
            function = defined() if isinstance(defined, type) else defined
            self.append(Case(name, function, claim, pairs, level, why, fault, refusal))
            return defined

        return decorate


def geometric_noise(epsilon: float, rng: Rng) -> int:
    """Return an integer z with probability proportional to exp(−epsilon |z|): ε-DP for a count that changes by one.

    Source: Ghosh, Roughgarden & Sundararajan (2012), "Universally Utility-maximizing Privacy Mechanisms", SIAM J. Comput.
    """
    p = 1 - math.exp(-epsilon)
    return int(rng.geometric(p)) - int(rng.geometric(p))


def one_row_more(a: Any, b: Any) -> bool:
    """Return True if one list is the other with one row removed."""
    longer, shorter = (a, b) if len(a) > len(b) else (b, a)
    return any(
        [*longer[:k], *longer[k + 1 :]] == list(shorter) for k in range(len(longer))
    )
