"""The auditor's own test: broken mechanisms that it must refute, correct ones that it must leave alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from auditdp.adjacency import AnyValues
from auditdp.auditing.declaration import Audit
from auditdp.auditing.judging import run_audit
from auditdp.auditing.settings import Settings
from auditdp.claims.base import Claim
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import MechanismError
from auditdp.mechanism.protocol import as_mechanism
from auditdp.testing.mechanisms import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response, SharedNoise

CALLS = 50_000
ALPHA = 1e-6


class _BlackBox:
    """A mechanism with its law hidden, so that only outputs can give it away."""

    def __init__(self, mechanism: Any) -> None:
        self.mechanism = as_mechanism(mechanism)
        self.name = f"{mechanism.name}, black box"

    def __call__(self, data: Any, size: int, *, rng: Any) -> Any:
        return self.mechanism(data, size, rng=rng)


def cases() -> list[tuple[Any, Claim, str]]:
    """Return (mechanism, claim, expected verdict): tight true claims, and claims that are false by various margins."""
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
        (_BlackBox(m), claim, "VIOLATED" if v == "VIOLATED" else "NOT_REFUTED") for m, claim, v in true
    ]
    hidden += [(_BlackBox(m), claim, "VIOLATED") for m, claim in false]
    return [*true, *((m, claim, "VIOLATED") for m, claim in false), *hidden]


def selftest(seed: int = 0) -> Iterator[tuple[str, str, str, int]]:
    """Yield (what, expected verdict, verdict, calls) for every case."""
    for mechanism, claim, expected in cases():
        audit = Audit(mechanism, claim, AnyValues((0, 1)))
        result = run_audit(audit, Settings(ALPHA, CALLS, seed, f"selftest {mechanism.name} {claim}"))
        yield f"{mechanism.name} claimed {claim}", expected, str(result.verdict), result.calls
    shared = SharedNoise(1.0)
    try:
        run_audit(Audit(shared, PureDP(1.0), AnyValues((0, 1))), Settings(ALPHA, CALLS, seed, "selftest shared noise"))
        verdict = "NOT NOTICED"
    except MechanismError:
        verdict = "ERROR"
    yield "noise shared between the outputs of one call", "ERROR", verdict, 0
