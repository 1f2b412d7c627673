"""Laplace noise as it is naively computed in floating point: the outputs that are possible betray the input.

A uniform number of the floating-point format is a multiple of 2^-24 or 2^-53, so that its logarithm takes few of the
values that the format has, and adding the data moves those few to different places for different data. An output that
is possible for one input only tells the inputs apart for certain, whatever the scale of the noise.

Source: Mironov (2012), "On Significance of the Least Significant Bits for Differential Privacy", CCS.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import Array
from mechanisms.cells import Rng
from mechanisms.classic.noise import answers
from mechanisms.validation import check_positive

WINDOW = 64
"""Lattice points that are tried on either side; where more could matter an output is called possible."""
LOG_ULPS = 8
"""Largest error of np.log and np.exp, in units in the last place; numpy states at most 4.
"""


@dataclass(frozen=True)
class NaiveLaplace:
    """One answer plus ±s·(−ln v) in arithmetic of one format, v uniform on the multiples of 2^-p in (0, 1].

    Output: float32 or float64, shape (size,). p is 24 or 53. Claimed: ε-DP for an answer that changes by at most 1,
    s = 1/ε. True: no ε, because most outputs are possible for one of two neighbours only, in either format: for 0 against
    1 at ε = .1 about 60 % of all outputs (``possible`` counts them).

    Args:
        epsilon: The claimed privacy loss in nats, finite and > 0.
        precision: "float32" or "float64".
    """

    epsilon: float
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        check_positive("NaiveLaplace", "epsilon", self.epsilon)
        if self.precision not in ("float32", "float64"):
            raise MechanismError(
                f"NaiveLaplace: expected 'float32' or 'float64', got {self.precision!r}"
            )

    @property
    def name(self) -> str:
        """The mechanism and its parameters."""
        return f"NaiveLaplace(epsilon={self.epsilon:g}, {self.precision})"

    @property
    def bits(self) -> int:
        """p: the uniform numbers are multiples of 2^-p."""
        return 24 if self.precision == "float32" else 53

    def _parts(self, data: Any) -> tuple[Any, Any]:
        kind = np.dtype(self.precision).type
        (answer,) = answers(self.name, data, length=1)
        return kind(answer), kind(1) / kind(self.epsilon)

    def __call__(self, data: Array, size: int, *, rng: Rng) -> Array:
        """Return ``size`` independent noisy answers in the format, shape (size,)."""
        answer, scale = self._parts(data)
        v = 1 - rng.random(size, dtype=self.precision)
        noise = scale * -np.log(v)
        return answer + np.where(
            rng.integers(2, size=size, dtype=np.int8), noise, -noise
        )

    def log_prob(self, outputs: Array, data: Array) -> Array:
        """Return the log density of real-valued noise at each output, -inf where it is impossible, shape (size,).

        Where an output is possible for both of two inputs the density's ratio is only nearly that of the lattices.
        """
        answer, scale = (float(part) for part in self._parts(data))
        density = -np.abs(np.asarray(outputs, np.float64) - answer) / scale - np.log(
            2 * scale
        )
        return np.where(self.possible(outputs, data), density, -np.inf)

    def possible(self, outputs: Array, data: Array) -> Array:
        """Return for each output whether the mechanism can produce it, bool, shape (size,); never False for one it can.

        Proof. Suppose y = fl(x ± n) with n = fl(s z), z = −fl(ln v) >= 0, v = m 2^-p, 1 <= m <= 2^p. Rounding is
        monotone, so x ± n lies between the neighbours y⁻ and y⁺ of y among the floats, ±n between y⁻ − x and y⁺ − x,
        and these two, once computed, are widened by one float each. In the same way z lies between the computed quotients
        by s, widened by two floats. With |fl(ln v) − ln v| <= 8 ulp, v lies between e^-z at the two ends moved by 8 ulp;
        the products 2^p e^-z, computed in double (float32) or to 8 ulp more (float64), bound m. Where this interval of
        m is within the window, every m in it is tried with the very operations of ``__call__``, elementwise and
        deterministic; where it is wider, the answer is True.

        Assumes that ``np.log`` gives one value for one argument wherever it stands in an array, and is within 8 ulp.
        """
        answer, scale = self._parts(data)
        outputs = np.asarray(outputs, self.precision)
        return self._possible(outputs, answer, scale, +1) | self._possible(
            outputs, answer, scale, -1
        )

    def _possible(self, y: Array, x: Any, s: Any, sign: int) -> Array:
        """Return True where y can be x + sign·s·z."""
        kind, infinity = y.dtype.type, np.inf
        low, high = (
            np.nextafter(y, -infinity, dtype=kind),
            np.nextafter(y, infinity, dtype=kind),
        )
        ends = sign * np.stack([low - x, high - x])
        low, high = np.sort(ends, axis=0)
        low, high = (
            _step(_step(end, way) / s, way, 2)
            for end, way in ((low, -infinity), (high, infinity))
        )
        reachable = high >= 0
        slack = 2 * LOG_ULPS * np.finfo(kind).eps
        least, most = (
            np.maximum(low, 0).astype(np.float64) * (1 - slack) - slack,
            np.maximum(high, 0).astype(np.float64) * (1 + slack) + slack,
        )
        grid = 2.0**self.bits
        first = np.maximum(np.floor(grid * np.exp(-most) * (1 - slack)), 1)
        last = np.minimum(np.ceil(grid * np.exp(-least) * (1 + slack)), grid)
        wide = last - first > 2 * WINDOW
        found = reachable & wide
        rest = np.flatnonzero(reachable & ~wide)
        m = first[rest]
        while len(rest):
            z = -np.log((m / grid).astype(kind))
            hit = x + kind(sign) * (s * z) == y[rest]
            found[rest[hit]] = True
            going = ~hit & (m < last[rest])
            rest, m = rest[going], m[going] + 1
        return found


def _step(values: Array, towards: float, times: int = 1) -> Array:
    for _ in range(times):
        values = np.nextafter(values, values.dtype.type(towards))
    return values
