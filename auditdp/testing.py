"""Textbook mechanisms on one number, and the self-test of the auditor.

``cases`` pairs these mechanisms with true claims and with false ones. ``selftest``
audits each case, for the neighbouring inputs 0 and 1. The auditor must refute the false
claims, and must not refute the true ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from auditdp.adjacency import AnyValues
from auditdp.auditing.check import ALPHA, CALLS
from auditdp.auditing.declaration import Audit
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.claims.claim import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw
from auditdp.mechanism.protocol import Array, as_mechanism
from auditdp.record.budget import Budget


@dataclass(frozen=True)
class Response:
    """Randomised response on one bit (Warner 1965).

    It returns the true bit with probability e^epsilon/(1 + e^epsilon).

    Args:
        epsilon: The parameter of the code; ``math.inf`` returns the input itself.
    """

    epsilon: float

    @property
    def name(self) -> str:
        """Name for reports, such as ``Response(1.2)``."""
        return f"Response({self.epsilon:g})"

    @property
    def keep(self) -> float:
        """Probability of returning the true bit."""
        return 1 / (1 + math.exp(-self.epsilon))

    def __call__(self, data: int, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` noisy bits, int8."""
        return np.where(rng.random(size) < self.keep, data, 1 - data).astype(np.int8)

    def distribution(self, data: int) -> FiniteLaw:
        """Return the law of the bit, with the double ``keep`` as an exact fraction."""
        keep = Fraction(self.keep)
        return FiniteLaw(np.array([data, 1 - data]), [keep, 1 - keep])


@dataclass(frozen=True)
class LeakyResponse:
    """Randomised response that reveals the bit with probability delta.

    The output is the noisy bit, or 2 + the bit if the bit is revealed. Its two laws are
    the extreme pair of Kairouz, Oh & Viswanath (2015) for (epsilon, delta)-DP. So the
    claim is true and tight: no (epsilon, delta)-DP mechanism is easier to refute by
    mistake.
    """

    epsilon: float
    delta: float

    @property
    def name(self) -> str:
        """Name for reports, such as ``LeakyResponse(1, 0.01)``."""
        return f"LeakyResponse({self.epsilon:g}, {self.delta:g})"

    def __call__(self, data: int, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` outputs, each 0, 1, 2 or 3, as int8."""
        revealed = rng.random(size) < self.delta
        return np.where(
            revealed, 2 + data, Response(self.epsilon)(data, size, rng=rng)
        ).astype(np.int8)

    def distribution(self, data: int) -> FiniteLaw:
        """Return the law over the three outputs that this input can give."""
        keep, delta = Fraction(Response(self.epsilon).keep), Fraction(self.delta)
        return FiniteLaw(
            np.array([data, 1 - data, 2 + data]),
            [(1 - delta) * keep, (1 - delta) * (1 - keep), delta],
        )


@dataclass(frozen=True)
class LaplaceMechanism:
    """The input plus Laplace noise (Dwork et al. 2006).

    It is (1/scale)-DP on inputs that differ by 1.
    """

    scale: float

    @property
    def name(self) -> str:
        """Name for reports, such as ``LaplaceMechanism(scale=1)``."""
        return f"LaplaceMechanism(scale={self.scale:g})"

    def __call__(self, data: float, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` noisy numbers."""
        return data + rng.laplace(scale=self.scale, size=size)

    def log_prob(self, outputs: Array, data: float) -> Array:
        """Return the log density of each output."""
        return np.asarray(
            -np.abs(outputs - data) / self.scale - math.log(2 * self.scale)
        )

    def distribution(self, data: float) -> LaplaceLaw:
        """Return the law of the output, which has one coordinate."""
        return LaplaceLaw(np.array([float(data)]), np.array([self.scale]))


@dataclass(frozen=True)
class GaussianMechanism:
    """The input plus Gaussian noise N(0, sigma²).

    It is (1/sigma)-Gaussian DP on inputs that differ by 1.
    """

    sigma: float

    @property
    def name(self) -> str:
        """Name for reports, such as ``GaussianMechanism(sigma=1)``."""
        return f"GaussianMechanism(sigma={self.sigma:g})"

    def __call__(self, data: float, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` noisy numbers."""
        return data + self.sigma * rng.standard_normal(size)

    def log_prob(self, outputs: Array, data: float) -> Array:
        """Return the log density of each output, up to a constant of the mechanism."""
        return np.asarray(-0.5 * ((outputs - data) / self.sigma) ** 2)


@dataclass(frozen=True)
class SharedNoise:
    """The input plus Laplace noise that is drawn once for all outputs of a call.

    The outputs of a call are not independent runs, so it cannot be audited.
    """

    scale: float
    name: str = "SharedNoise"

    def __call__(self, data: Any, size: int, *, rng: np.random.Generator) -> Array:
        """Return ``size`` equal outputs."""
        return np.full(size, data + rng.laplace(scale=self.scale))


class _BlackBox:
    """A mechanism without its stated law: an audit has to learn from its outputs."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = as_mechanism(mechanism)
        self.name = f"{mechanism.name}, black box"

    def __call__(self, data: Any, size: int, *, rng: Any) -> Any:
        return self.mechanism(data, size, rng=rng)


def cases() -> list[tuple[Any, Claim, str]]:
    """Return the cases of the self-test: (mechanism, claim, expected verdict).

    Some claims are true and tight, others are false by various margins. Each case
    occurs twice: first with the mechanism's stated law, then as a black box.
    """
    true: list[tuple[Any, Claim, str]] = [
        (Response(1.0 - 1e-12), PureDP(1.0), "CERTIFIED"),
        (LaplaceMechanism(1.0), PureDP(1.0), "CERTIFIED"),
        (LeakyResponse(1.0 - 1e-12, 0.01), ApproxDP(1.0, 0.01), "CERTIFIED"),
        (GaussianMechanism(1.0), GaussianDP(1.0), "NOT_REFUTED"),
    ]
    false: list[tuple[Any, Claim]] = [
        (Response(1.2), PureDP(1.0)),
        (Response(math.inf), PureDP(1.0)),
        (LaplaceMechanism(1 / 1.5), PureDP(1.0)),
        (LeakyResponse(1.0, 0.01), PureDP(1.0)),
        (LeakyResponse(1.0, 0.05), ApproxDP(1.0, 0.01)),
        (GaussianMechanism(1 / 1.5), GaussianDP(1.0)),
    ]
    hidden: list[tuple[Any, Claim, str]] = [
        (_BlackBox(m), claim, "VIOLATED" if v == "VIOLATED" else "NOT_REFUTED")
        for m, claim, v in true
    ]
    hidden += [(_BlackBox(m), claim, "VIOLATED") for m, claim in false]
    return [*true, *((m, claim, "VIOLATED") for m, claim in false), *hidden]


def selftest(seed: int = 0) -> Iterator[tuple[str, str, str, int]]:
    """Audit every case, and yield (description, expected verdict, verdict, calls).

    The last case is a mechanism that shares its noise between the outputs of a call.
    'ERROR' is expected for it; the verdict is 'NOT NOTICED' if the audit accepts it.
    The calls of this case are not counted: 0.

    Args:
        seed: Root seed; equal seeds give equal results.
    """
    for mechanism, claim, expected in cases():
        audit = Audit(mechanism, claim, AnyValues((0, 1)))
        result = run_audit(
            audit,
            Settings(ALPHA, Budget(CALLS), seed, f"selftest {mechanism.name} {claim}"),
        )
        yield (
            f"{mechanism.name} claimed {claim}",
            expected,
            str(result.verdict),
            result.calls,
        )
    shared = SharedNoise(1.0)
    try:
        run_audit(
            Audit(shared, PureDP(1.0), AnyValues((0, 1))),
            Settings(ALPHA, Budget(CALLS), seed, "selftest shared noise"),
        )
        verdict = "NOT NOTICED"
    except MechanismError:
        verdict = "ERROR"
    yield "noise shared between the outputs of one call", "ERROR", verdict, 0
