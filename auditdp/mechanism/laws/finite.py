"""Laws of finitely many outputs, and envelopes of all laws of a domain of inputs."""

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
    """Law of an output with finitely many values.

    An outcome stands for every output of the same value: 0 for 0.0 and -0.0, a list for
    a tuple, a mapping for the same mapping in another order. If several outcomes have
    one value but different kinds, such as 1 and 1.0, each stands only for outputs of
    its own kind. (``auditdp.mechanism.calls.leaves`` defines value and kind.)

    Args:
        outcomes: All outputs of positive probability, each once, also those whose
            probability underflows to 0.0. They are an array of shape (m, ...), or a
            list of the returned values. For a call that raises, the outcome is the type
            of the exception.
        probabilities: The m probabilities, as Fractions, arb balls, or floats. If
            floats sum to less than one, exact evidence attributes the rest to outputs
            that are not listed.

    Raises:
        MechanismError: If the lengths differ, an outcome is listed twice, a probability
            is negative, or the probabilities cannot sum to one.
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
        """The probabilities as balls, which contain the assumed error of floats."""
        with precision():
            return [ball(p) for p in self.probabilities]

    @property
    def left_out(self) -> LeftOut:
        """Bound on the probability of outputs that are not listed."""
        # Checked when the law was made.
        assert self._left_out is not None
        return self._left_out

    @cached_property
    def _left_out(self) -> LeftOut | None:
        return left_out(self.probabilities)

    @cached_property
    def largest(self) -> Floats:
        """Upper bounds on the probability of each outcome, shape (m + 1,).

        The last bound is for an output that is not listed.
        """
        unlisted = above(self.left_out.most) if self.left_out.floats else 0.0
        return np.array([*map(above, self.balls), unlisted])

    @property
    def log_unlisted(self) -> float:
        """Upper bound on the log probability of an output that is not listed."""
        return math.log(self.largest[-1]) if self.largest[-1] else -math.inf

    @cached_property
    def values(self) -> list[bytes]:
        """The value of each outcome, as bytes of ``row_keys``."""
        return row_keys(self.outcomes)

    @cached_property
    def split(self) -> frozenset[bytes]:
        """The values that several outcomes share."""
        counts = Counter(self.values)
        return frozenset(value for value, times in counts.items() if times > 1)

    @cached_property
    def index(self) -> dict[bytes, int]:
        """The position of each outcome, by its key (see ``by_key``)."""
        return self.by_key(self.split)

    def by_key(self, split: frozenset[bytes]) -> dict[bytes, int]:
        """Return the position of each outcome, by its key.

        The key is the value of the outcome. If the value is in ``split``, the key also
        includes the kind of the outcome.
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
            split: Values whose outcomes stand only for outputs of their own kind,
                beside those of ``self.split``.

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
        """Return the log probability of each output, shape (size,).

        It is -inf for an output that is not listed. If probabilities are floats, their
        upper bounds are used, and ``log_unlisted`` for an output that is not listed:
        with a float of 0.0, a bet would take an output for impossible that may only be
        rare.

        Args:
            outputs: The outputs, or their rows if there is a ``form``.
            form: The representation of outputs by rows.
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

    and this covers all pairs: for any two inputs and any output, P(y) <= most and Q(y)
    >= least, and both are attained. If a mechanism treats ``uses`` coordinates
    independently in this way, its epsilon is ``uses`` times this one, because every
    coordinate can have its worst case at once. If the coordinates depend on each other,
    the product is only a bound. So exact evidence compares an envelope with the law, if
    the mechanism states one, and takes the attained loss from the law. A density is
    with respect to any measure that does not depend on the input. Outputs with equal
    probabilities on every input may be listed as one.

    Args:
        outputs: The n outputs, or names of classes of outputs.
        least: The smallest probability of each output over the domain: Fractions, arb
            balls, or floats.
        most: The largest probability of each output over the domain.
        inputs: For each output, an input where it has the largest probability, and one
            where it has the smallest. They are whole inputs of the mechanism.
        uses: Number of coordinates that each have these probabilities.

    Raises:
        MechanismError: If the envelope is empty, the lengths differ, ``uses`` is not
            positive, or a smallest probability is negative or exceeds the largest.
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
        """The pair (least, most) of each output, as balls.

        The assumed error of floats is relative to the largest density, or to 1.
        """
        # The error of floats is relative to the largest density.
        unit = max([1.0, *map(middle, self.most)])
        ends = zip(self.least, self.most, strict=True)
        with precision():
            return [(ball(a, unit), ball(b, unit)) for a, b in ends]
