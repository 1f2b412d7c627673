"""A case of a traced function: its claim, its pairs, and the line and reason of its fault."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from auditdp.claims.claim import Claim

Function = TypeVar("Function", bound=Callable[..., Any])
MARK = "# here"
LOSS, SCALE, REUSE, ROUND, SEED, NUMBER = (
    "loss",
    "scale",
    "reuse",
    "round",
    "seed",
    "number",
)
"""Kinds of findings, as ``auditdp.tracing.Finding`` has them, that may be the true reason."""


@dataclass(frozen=True)
class TracedCase:
    """One function.

    Attributes:
        function: ``f(data, rng)``, or ``f(data)`` where it draws from elsewhere. A line that ends with MARK is to blame.
        claim: What its authors say of it.
        pairs: The adjacency, or the pairs (data, neighbour), that its authors would give.
        why: Why it is broken, or why the claim holds.
        kinds: Kinds of findings that are the true reason; empty for a correct one.
        group: What it is an example of.
    """

    function: Callable[..., Any]
    claim: Claim
    pairs: Any
    why: str
    kinds: tuple[str, ...]
    group: str

    @property
    def name(self) -> str:
        """The name in reports."""
        return self.function.__name__.replace("_", " ")

    @property
    def marked(self) -> set[int]:
        """The lines that are to blame; none where the output is."""
        lines, start = inspect.getsourcelines(inspect.unwrap(self.function))
        return {
            start + k for k, line in enumerate(lines) if line.rstrip().endswith(MARK)
        }


class TracedCases(list[TracedCase]):
    """A list that functions are added to where they are defined."""

    def __init__(self, group: str) -> None:
        super().__init__()
        self.group = group

    def broken(
        self, claim: Claim, pairs: Any, *kinds: str, why: str
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a broken function."""
        return lambda f: (
            self.append(TracedCase(f, claim, pairs, why, kinds, self.group)) or f
        )  # type: ignore[func-returns-value]

    def correct(
        self, claim: Claim, pairs: Any, *, why: str
    ) -> Callable[[Function], Function]:
        """Return a decorator that adds a function whose claim holds."""
        return self.broken(claim, pairs, why=why)


def log_loss(p: float, q: float) -> float:
    """Return |ln p/q|."""
    return abs(math.log(p / q))
