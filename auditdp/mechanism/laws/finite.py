"""The law of an output with finitely many values.

The least and the most that any input of a domain gives an output: local privacy over all inputs at once.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from auditdp.errors import MechanismError
from auditdp.mechanism.calls.leaves import form_key, row_keys
from auditdp.mechanism.calls.representation import Representation, short_keys
from auditdp.mechanism.protocol import Array
from auditdp.numerics.balls import LeftOut, above, ball, left_out, middle, precision


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """The law of an output with finitely many values.

    An outcome stands for every output of its value: 0 for 0.0 and -0.0, a list for a tuple, a mapping for one of any order
    (``auditdp.mechanism.calls.leaves``). Outcomes of one value that differ in kind stand each for itself.

    Args:
        outcomes: All outputs of positive probability, each once, also those that underflow to 0.0: an array of
            shape (m, ...), or a list of whatever the mechanism returns; of a call that raises, the type of the exception.
        probabilities: Their m probabilities, as Fractions, arb balls, or floats, whose error ``balls`` names. What floats
            lack, exact evidence takes for outputs that are not listed.

    Raises:
        MechanismError: If the lengths differ, a probability is negative, or they cannot sum to one.
    """

    outcomes: Array | Sequence[Any]
    probabilities: Sequence[Any]

    def __post_init__(self) -> None:
        if len(self.outcomes) != len(self.probabilities):
            raise MechanismError(
                f"FiniteLaw: {len(self.outcomes)} outcomes but {len(self.probabilities)} probabilities; give one each"
            )
        if self._left_out is None:
            numbers = [
                float(p.mid() if isinstance(p, arb) else p) for p in self.probabilities
            ]
            raise MechanismError(
                f"FiniteLaw: expected probabilities >= 0 that sum to 1, got minimum {min(numbers, default=0.0):.3g} and "
                f"sum {sum(numbers):.15g} (Fractions must sum to 1 exactly, balls must contain 1, floats may be off by 1e-9)"
            )
        if len(self.index) != len(self.outcomes):
            raise MechanismError(
                "FiniteLaw: an outcome is listed twice; add its probabilities up"
            )

    @cached_property
    def floats(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The probabilities as float64, shape (m,)."""
        return np.array([middle(p) for p in self.probabilities])

    @cached_property
    def balls(self) -> list[arb]:
        """The probabilities as balls."""
        with precision():
            return [ball(p) for p in self.probabilities]

    @property
    def left_out(self) -> LeftOut:
        """The probability of outputs that are not listed."""
        assert self._left_out is not None  # checked when the law was made
        return self._left_out

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return left_out(self.probabilities)

    @cached_property
    def largest(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The largest that each probability may be, and last that of an output that is not listed; shape (m + 1,)."""
        unlisted = above(self.left_out.most) if self.left_out.floats else 0.0
        return np.array([*map(above, self.balls), unlisted])

    @property
    def log_unlisted(self) -> float:
        """The log probability that an output has at most that is not listed."""
        return math.log(self.largest[-1]) if self.largest[-1] else -math.inf

    @cached_property
    def values(self) -> list[bytes]:
        """The value of each outcome."""
        return row_keys(self.outcomes)

    @cached_property
    def split(self) -> frozenset[bytes]:
        """Values of which several outcomes are listed."""
        return frozenset(
            value for value, times in Counter(self.values).items() if times > 1
        )

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Position of each outcome by its key."""
        return self.by_key(self.split)

    def by_key(self, split: frozenset[bytes]) -> dict[bytes, int]:
        """Return the position of each outcome by its value, and where that is among ``split``, by its kind too."""
        return {
            key: i for i, key in enumerate(_keys(self.outcomes, self.values, split))
        }

    def places(
        self,
        outputs: Array | Sequence[Any],
        form: Representation | None = None,
        split: frozenset[bytes] = frozenset(),
    ) -> NDArray[np.intp]:
        """Return the position of each output among the outcomes, -1 where it is not listed; shape (size,).

        They are rows where a ``form`` is given. Of values to ``split`` an outcome stands for its own kind alone.
        """
        split = split | self.split
        index = self.by_key(split) if split else self.index
        if form is None or form.dtype != np.float64:  # rows are the outputs
            keys = _keys(outputs, row_keys(outputs), split)
            return np.array([index.get(key, -1) for key in keys], dtype=np.intp)
        found = form.keys(np.asarray(outputs))
        if split:
            exact = {
                form.rows([y])[0].tobytes(): i
                for i, y in enumerate(self.outcomes)
                if self.values[i] in split
            }
            found = [
                bits if (bits := row.tobytes()) in exact else key
                for row, key in zip(outputs, found, strict=True)
            ]
            index = index | exact
        short = (
            {} if all(isinstance(key, bytes) for key in found) else self._short(split)
        )
        return np.array(
            [index.get(key, short.get(key, -1)) for key in found], dtype=np.intp
        )

    def _short(self, split: frozenset[bytes]) -> dict[Any, int]:
        """Return the position of each outcome by what stands for its value in rows that do not hold it."""
        values = enumerate(self.values)
        return {
            short: i
            for i, value in values
            if value not in split
            for short in short_keys(value)
        }

    def log_prob(
        self, outputs: Array | Sequence[Any], form: Representation | None = None
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the log probability of each output, -inf for one that is not listed; arguments as for ``places``.

        Of floats it is that of the largest that they may be: a bet on a float of 0.0 would be one on a certainty.
        """
        with np.errstate(divide="ignore"):
            logs = np.log(
                self.largest if self.left_out.floats else np.append(self.floats, 0.0)
            )
        return np.asarray(logs[self.places(outputs, form)])

    def same_as(self, other: FiniteLaw) -> bool:
        """Return whether two laws agree up to rounding."""
        return all(
            np.allclose(
                np.exp(self.log_prob(each)),
                np.exp(other.log_prob(each)),
                rtol=1e-9,
                atol=0,
            )
            for each in (self.outcomes, other.outcomes)
        )


def _keys(
    outputs: Array | Sequence[Any], values: list[bytes], split: frozenset[bytes]
) -> list[bytes]:
    if not split:
        return values
    return [
        value + form_key(y) if value in split else value
        for value, y in zip(values, outputs, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Envelope:
    """For every output the smallest and the largest probability (or density) over all inputs of a domain.

    In local privacy any two inputs are neighbours, so the pure epsilon is exactly

        max over outputs of ln(most / least),

    with no pair left out: whatever two inputs and whatever output, P(y) <= most and Q(y) >= least, and both are attained.
    ``uses`` independent uses on different coordinates of a product of domains multiply it: every coordinate reaches its own
    worst case at once. Where the coordinates are tied to each other that is a bound only: exact evidence compares an
    envelope with the law, where the mechanism states one, and takes what is attained from the law. A density is taken with
    respect to any measure that does not depend on the input; outputs on which the law is constant may be listed as one.

    Args:
        outputs: The outputs, or words for classes of them, n of them.
        least: The smallest probability of each over the domain: Fractions, arb balls, or floats.
        most: The largest.
        inputs: For each, (an input where it is largest, an input where it is smallest), whole inputs of the mechanism.
        uses: Coordinates that each lose this much.

    Raises:
        MechanismError: If there is nothing, the lengths differ, or a smallest exceeds its largest or is negative.
    """

    outputs: Sequence[Any]
    least: Sequence[Any]
    most: Sequence[Any]
    inputs: Sequence[tuple[Any, Any]]
    uses: int = 1

    def __post_init__(self) -> None:
        sizes = {len(self.outputs), len(self.least), len(self.most), len(self.inputs)}
        if len(sizes) != 1 or 0 in sizes or self.uses < 1:
            raise MechanismError(
                f"Envelope: expected as many outputs, least, most and inputs, and uses >= 1, got {len(self.outputs)}, "
                f"{len(self.least)}, {len(self.most)}, {len(self.inputs)} and uses={self.uses!r}"
            )
        if any(bool(a > b) or bool(a < 0) for a, b in self.bounds):
            raise MechanismError(
                f"Envelope: expected 0 <= least <= most, got {list(zip(self.least, self.most, strict=True))}"
            )

    @cached_property
    def bounds(self) -> list[tuple[arb, arb]]:
        """(least, most) of each output as balls; densities may exceed 1, and so may what their floats are off by."""
        unit = max([1.0, *map(middle, self.most)])
        with precision():
            return [
                (ball(a, unit), ball(b, unit))
                for a, b in zip(self.least, self.most, strict=True)
            ]

    def same_as(self, other: Envelope) -> bool:
        """Return whether two envelopes agree up to rounding."""
        mine, theirs = (
            np.array([[middle(a), middle(b)] for a, b in law.bounds] + [[law.uses, 0]])
            for law in (self, other)
        )
        return mine.shape == theirs.shape and np.allclose(
            mine, theirs, rtol=1e-9, atol=0
        )
