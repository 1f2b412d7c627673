"""A case of a traced function: its claim, its pairs, and the line and reason of its fault."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
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


def lines_marked(function: Callable[..., Any], mark: str) -> set[int]:
    """Return the lines of the statements of a function that have a mark at an end of line.

    The formatter puts a long statement on several lines, and its mark on one of them.
    """
    lines, start = inspect.getsourcelines(inspect.unwrap(function))
    found = {k for k, line in enumerate(lines, 1) if line.rstrip().endswith(mark)}
    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            if not found.isdisjoint(span):
                found |= set(span)
    return {start + k - 1 for k in found}


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
        """The lines of the statements that are to blame; none if the output is."""
        return lines_marked(self.function, MARK)


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
