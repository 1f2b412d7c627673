"""Evaluating what a mechanism computes before its noise on two neighbours, with the same internal randomness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from auditdp.adjacency import Adjacency, Pair
from auditdp.errors import AuditError, MechanismError
from auditdp.mechanism.calls.inputs import Inputs, is_sparse
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.protocol import Array, brief
from auditdp.numerics.randomness import Streams, position
from auditdp.record.details import SensitivityDetails
from auditdp.record.results import Counterexample, Evidence, Verdict

DRAWS = 8
"""Draws of its internal randomness with which a random query is compared on each pair."""
ROUNDING_TOLERANCE = 1e-9
"""Excess over the sensitivity, relative to it, that is called rounding."""
ROUNDING_UNITS = 256
"""Excess in units of the last place of the values (at the norm of the larger one) that is called rounding."""
EXACT_INTEGERS = 2**53
"""Integers below this are doubles, and so are their differences."""


@dataclass(frozen=True)
class QueryDifference:
    """The values of a query on the two inputs of a pair, the norm of their difference, and what rounding adds to it."""

    pair: Pair
    first: Any
    second: Any
    norm: float
    rounding: float


def evidence_of(
    details: SensitivityDetails, assumptions: list[str], statement: str, refuted: tuple[Pair, str] | None = None
) -> Evidence:
    """Return what a comparison says, with the pair that refutes the calibration, and why, where one does."""
    shown = None
    if refuted is not None:
        pair, explanation = refuted
        shown = Counterexample(pair=str(pair), python=pair.python, explanation=explanation)
    verdict = Verdict.NOT_REFUTED if shown is None else Verdict.MISCALIBRATED
    return Evidence("sensitivity", verdict, statement, assumptions=assumptions, details=details, counterexample=shown)


class QueryComparison:
    """Evaluates a query on both inputs of a pair, with the same randomness, and keeps the tally.

    Equal seeds make a coupling whatever is drawn, so a small difference under them always counts. A large one counts
    only if both inputs leave the generator in the same state: else the seed means different things to the two.

    Attributes:
        largest: The largest difference that counts.
        pairs: How many pairs were compared.
        uncoupled: On how many of them a large difference did not count.
        random: Whether the query ever drew anything.

    Raises:
        AuditError: If there is no query, or the declared sensitivity or its norm is not one.
    """

    def __init__(self, mechanism: Any, adjacency: Adjacency, streams: Streams) -> None:
        able = capabilities(mechanism)
        if able.query is None:
            raise MechanismError(f"{able.name}: has no query to compare; give it query(data, rng)")
        self.query = able.query
        self.adjacency = adjacency
        self.name = f"{able.name}.query"
        self.sensitivity = able.sensitivity
        self.order, self.norm = able.norm.order, able.norm.name
        self.seeds = [int(seed) for seed in streams("query", 0).integers(2**63, size=DRAWS)]
        self._inputs = Inputs()
        self.largest: QueryDifference | None = None
        self.pairs = self.uncoupled = 0
        self.random = False

    def refutes(self, difference: QueryDifference) -> bool:
        """Return whether the norm is above the sensitivity by more than what rounding explains."""
        return difference.norm > self.sensitivity * (1 + ROUNDING_TOLERANCE) + difference.rounding

    def of(self, pair: Pair) -> QueryDifference | None:
        """Return the largest difference that counts, over the draws; None where none does.

        Raises:
            AdjacencyError: If the pair is not adjacent.
            MechanismError: If the query raises, does not return finite numbers, or has different shapes on neighbours.
        """
        self.adjacency.check(pair)
        if not self.pairs:
            self._check_repeats(pair.data)
        self.pairs += 1
        counting, dropped = [], 0
        for seed in self.seeds:
            (first, used), (second, also_used) = self._evaluate(pair.data, seed), self._evaluate(pair.neighbour, seed)
            difference = self._difference(pair, first, second)
            if used == also_used or not self.refutes(difference):
                counting.append(difference)
            else:
                dropped += 1
            if used == also_used == position(np.random.default_rng(seed)):
                break  # it draws nothing, so the other seeds would give the same
            self.random = True
        self.uncoupled += dropped > 0
        if not counting:
            return None
        worst = max(counting, key=lambda difference: difference.norm)
        if self.largest is None or worst.norm > self.largest.norm:
            self.largest = worst
        return worst

    def _evaluate(self, data: Any, seed: int) -> tuple[Any, Any]:
        """Return the query's value, and the state in which it left its generator."""
        rng = np.random.default_rng(seed)
        try:
            with self._inputs.lent(self.name, data) as (lent,):
                raw = self.query(lent, rng)
            value = raw.tocsr() if is_sparse(raw) else np.asarray(raw)
        except AuditError:
            raise
        except Exception as error:
            raise MechanismError(
                f"{self.name} raised {type(error).__name__}: {error} (on input {brief(data)})"
            ) from error
        if value.dtype.kind not in "biuf":
            raise MechanismError(
                f"{self.name}: returned dtype {value.dtype} on input {brief(data)}, expected booleans, integers or "
                "floats; encode it as numbers"
            )
        if not np.isfinite(_entries(value)).all():
            raise MechanismError(
                f"{self.name}: returned NaN or an infinity on input {brief(data)}; no noise is calibrated to that, so "
                "clip it before the noise is added"
            )
        return value, position(rng)

    def _difference(self, pair: Pair, first: Any, second: Any) -> QueryDifference:
        if first.shape != second.shape:
            raise MechanismError(
                f"{self.name}: returned shape {first.shape} on {brief(pair.data)} and {second.shape} on its neighbour "
                f"{brief(pair.neighbour)}; how many values are released then depends on the data, which no noise on them "
                "hides: return one shape, such as a value for every possible record"
            )
        size = max(self._norm(first), self._norm(second))
        floats = [value.dtype for value in (first, second) if value.dtype.kind == "f"]
        if size >= EXACT_INTEGERS:
            floats.append(np.dtype(float))
        unit = max((float(np.finfo(dtype).eps) for dtype in floats), default=0.0)
        return QueryDifference(pair, first, second, self._norm(minus(first, second)), ROUNDING_UNITS * unit * size)

    def _norm(self, value: Any) -> float:
        entries = _entries(value)
        return float(np.linalg.norm(entries.astype(float), self.order)) if entries.size else 0.0

    def _check_repeats(self, data: Any) -> None:
        (once, _), (again, _) = (self._evaluate(data, self.seeds[0]) for _ in range(2))
        if once.shape != again.shape or _entries(minus(once, again)).any():
            raise MechanismError(
                f"{self.name}: gave {show(once)} and {show(again)} on one input with one seed; draw all its "
                "randomness from the rng that it is given"
            )


def _entries(value: Any) -> Array:
    return value.data if is_sparse(value) else np.ravel(value)


def minus(first: Any, second: Any) -> Any:
    """Return the difference of two arrays or sparse matrices, in doubles."""
    between = first.astype(float) - second.astype(float)
    return between if is_sparse(between) else np.asarray(between)


def show(value: Any) -> str:
    """Return a short rendering of a query's value."""
    return f"a sparse {value.shape} matrix" if is_sparse(value) else brief(value[()])
