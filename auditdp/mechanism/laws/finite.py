"""Laws of outputs with finitely many values, and envelopes of all laws of a domain."""

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
from auditdp.numerics.arrays import Floats
from auditdp.numerics.balls import LeftOut, above, ball, left_out, middle, precision

Values = Array | Sequence[Any]


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """The law of an output with finitely many values.

    An outcome stands for every output of its value: 0 for 0.0 and -0.0, a list for a
    tuple, a mapping for one of any order (``auditdp.mechanism.calls.leaves``). Outcomes
    of one value that differ in kind stand each for itself.

    Args:
        outcomes: All outputs of positive probability, each once, also those that
            underflow to 0.0: an array of shape (m, ...), or a list of the returned
            values; for a call that raises, the type of the exception.
        probabilities: Their m probabilities, as Fractions, arb balls, or floats, whose
            error ``balls`` includes. Exact evidence attributes the mass that floats
            lack to outputs that are not listed.

    Raises:
        MechanismError: If the lengths differ, a probability is negative, or they cannot
            sum to one.
    """

    outcomes: Values
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
    def floats(self) -> Floats:
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
        # Checked when the law was made.
        assert self._left_out is not None
        return self._left_out

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return left_out(self.probabilities)

    @cached_property
    def largest(self) -> Floats:
        """Upper bounds on the probabilities, and last on that of an unlisted output.

        The shape is (m + 1,).
        """
        unlisted = above(self.left_out.most) if self.left_out.floats else 0.0
        return np.array([*map(above, self.balls), unlisted])

    @property
    def log_unlisted(self) -> float:
        """Upper bound on the log probability of an output that is not listed."""
        return math.log(self.largest[-1]) if self.largest[-1] else -math.inf

    @cached_property
    def values(self) -> list[bytes]:
        """The value of each outcome."""
        return row_keys(self.outcomes)

    @cached_property
    def split(self) -> frozenset[bytes]:
        """Values of which several outcomes are listed."""
        counts = Counter(self.values)
        return frozenset(value for value, times in counts.items() if times > 1)

    @cached_property
    def index(self) -> dict[bytes, int]:
        """Position of each outcome by its key."""
        return self.by_key(self.split)

    def by_key(self, split: frozenset[bytes]) -> dict[bytes, int]:
        """Return the position of each outcome by its value.

        The key of a value among ``split`` includes the kind of the outcome.
        """
        keys = _keys(self.outcomes, self.values, split)
        return {key: i for i, key in enumerate(keys)}

    def places(
        self,
        outputs: Values,
        form: Representation | None = None,
        split: frozenset[bytes] = frozenset(),
    ) -> NDArray[np.intp]:
        """Return the position of each output among the outcomes, shape (size,).

        Args:
            outputs: The outputs, or their rows if there is a ``form``.
            form: The representation of outputs by rows.
            split: Values whose outcomes stand for their own kind alone.

        Returns:
            Positions, -1 for an output that is not listed.
        """
        split = split | self.split
        index: dict[Any, int] = dict(self.by_key(split) if split else self.index)
        keys: list[Any]
        # Without doubles, or without a representation, rows are the outputs.
        if form is None or form.dtype != np.float64:
            keys = list(_keys(outputs, row_keys(outputs), split))
            return np.array([index.get(key, -1) for key in keys], dtype=np.intp)
        keys = form.keys(np.asarray(outputs))
        if split:
            # Rows of these outcomes are compared as a whole, kinds included.
            exact = {}
            for i, value in enumerate(self.values):
                if value in split:
                    exact[form.rows([self.outcomes[i]])[0].tobytes()] = i
            for k, row in enumerate(outputs):
                if row.tobytes() in exact:
                    keys[k] = row.tobytes()
            index |= exact
        # Some rows do not hold the whole value, and have a short key.
        if not all(isinstance(key, bytes) for key in keys):
            for i, value in enumerate(self.values):
                if value not in split:
                    index |= dict.fromkeys(short_keys(value), i)
        return np.array([index.get(key, -1) for key in keys], dtype=np.intp)

    def log_prob(self, outputs: Values, form: Representation | None = None) -> Floats:
        """Return the log probability of each output, -inf for one that is not listed.

        If probabilities are floats, the upper bounds on them count: a bet on a float of
        0.0 would be a bet on a certainty. Arguments are those of ``places``.
        """
        floats = np.append(self.floats, 0.0)
        with np.errstate(divide="ignore"):
            logs = np.log(self.largest if self.left_out.floats else floats)
        return np.asarray(logs[self.places(outputs, form)])


def _keys(outputs: Values, values: list[bytes], split: frozenset[bytes]) -> list[bytes]:
    if not split:
        return values
    return [
        value + form_key(y) if value in split else value
        for value, y in zip(values, outputs, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Envelope:
    """The smallest and largest probability (or density) of outputs over all inputs.

    In local privacy any two inputs are neighbours, so the pure epsilon is exactly

        max over outputs of ln(most / least),

    with no pair left out: for any two inputs and any output, P(y) <= most and Q(y) >=
    least, and both are attained. ``uses`` independent uses on different coordinates of
    a product of domains multiply it: every coordinate reaches its own worst case at
    once. If the coordinates are tied to each other it is a bound only: exact evidence
    compares an envelope with the law, if the mechanism states one, and takes the
    attained loss from the law. A density is with respect to any measure that does not
    depend on the input; outputs on which the law is constant may be listed as one.

    Args:
        outputs: The outputs, or words for classes of them, n of them.
        least: The smallest probability of each over the domain: Fractions, arb balls,
            or floats.
        most: The largest.
        inputs: For each, (an input where it is largest, an input where it is smallest),
            whole inputs of the mechanism.
        uses: Number of coordinates that each lose this much.

    Raises:
        MechanismError: If there is nothing, the lengths differ, or a smallest exceeds
            its largest or is negative.
    """

    outputs: Sequence[Any]
    least: Sequence[Any]
    most: Sequence[Any]
    inputs: Sequence[tuple[Any, Any]]
    uses: int = 1

    def __post_init__(self) -> None:
        fields = self.outputs, self.least, self.most, self.inputs
        sizes = [len(each) for each in fields]
        if len(set(sizes)) != 1 or 0 in sizes or self.uses < 1:
            raise MechanismError(
                f"Envelope: expected as many outputs, least, most and inputs, and uses >= 1, got "
                f"{', '.join(map(str, sizes))} and uses={self.uses!r}"
            )
        if any(bool(a > b) or bool(a < 0) for a, b in self.bounds):
            raise MechanismError(
                f"Envelope: expected 0 <= least <= most, got {list(zip(self.least, self.most, strict=True))}"
            )

    @cached_property
    def bounds(self) -> list[tuple[arb, arb]]:
        """(least, most) of each output as balls.

        Densities may exceed 1, and so may the errors of their floats.
        """
        # The error of floats is relative to the largest density.
        unit = max([1.0, *map(middle, self.most)])
        ends = zip(self.least, self.most, strict=True)
        with precision():
            return [(ball(a, unit), ball(b, unit)) for a, b in ends]
