"""Noise on numbers, promises of estimates, sensitivities, canaries, and recorded data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import arb
from scipy.special import expit, ndtr

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    Canaries,
    GaussianDP,
    GaussianLaw,
    LaplaceLaw,
    PureDP,
    Unbiased,
    VarianceAtMost,
    Verdict,
)
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.bounds import from_counts, from_guesses, from_outputs, from_scores
from auditdp.bounds.privacy_curves import EpsilonDelta, Gaussian
from auditdp.mechanism.laws import precision
from auditdp.record.budget import Budget
from benchmarks.false_alarms_one_run import TIGHT
from benchmarks.verdicts.case import Case, Rng, claim_near
from benchmarks.verdicts.truth import BITS, FLOATS, GaussianPair, LaplacePair, Truth

# noise on numbers


@dataclass(frozen=True)
class Noisy:
    """A number plus Laplace or Gaussian noise.

    Attributes:
        scale: Of the noise.
        gaussian: Whether it is Gaussian.
        rounded: Whether the output is rounded to a multiple of 1/8, which is post-processing.
        name: What it is.
    """

    scale: float
    gaussian: bool
    rounded: bool
    name: str

    def __call__(self, data: float, size: int, *, rng: Rng) -> Any:
        """Return noisy numbers."""
        found = data + self.scale * (
            rng.normal(size=size) if self.gaussian else rng.laplace(size=size)
        )
        return np.round(8 * found) / 8 if self.rounded else found


@dataclass(frozen=True)
class Stating(Noisy):
    """The same with its law, of the output or before rounding."""

    stated: float = 1.0

    def law(self, data: float) -> Any:
        """Return the law before rounding."""
        centre = np.array([float(data)])
        return (
            GaussianLaw(centre, self.stated)
            if self.gaussian
            else LaplaceLaw(centre, np.array([self.stated]))
        )


class OfOutput(Stating):
    """States the law of its output."""

    distribution = Stating.law


class BeforeRounding(Stating):
    """States the law before it rounds."""

    before_processing = Stating.law


def continuous(case: Case) -> None:
    """Audit Laplace or Gaussian noise on one number."""
    gaussian, rounded = bool(case.rng.random() < 0.5), bool(case.rng.random() < 0.3)
    scale, other = float(case.rng.uniform(0.3, 4)), float(case.pick((1.0, 0.5, 3.0)))
    stated = scale * float(case.pick((1.0, 1.0, 1.0, 1 + 1e-9, 0.7)))
    stating = case.rng.random() < 0.8

    def truth(of: float) -> Truth:
        with precision(BITS):
            return (GaussianPair if gaussian else LaplacePair)(arb(other) / arb(of))

    code, law = truth(scale), None if not stating else truth(stated)
    if stating and stated == scale:
        law = code
    kinds = (
        ((GaussianDP, ApproxDP) if gaussian else (PureDP, PureDP, ApproxDP))
        if case.rng.random() < 0.8
        else ()
    )
    claim = claim_near(case, law or code, kinds)
    if claim is None:
        return
    case.told = (
        f"{'Gaussian' if gaussian else 'Laplace'} noise of scale {scale!r} on 0 or {other}{', rounded' if rounded else ''}"
        + (f", stated with {stated!r}" if stating else "")
    )
    made = (scale, gaussian, rounded, case.told)
    mechanism: Any = Noisy(*made)
    if stating:
        mechanism = (BeforeRounding if rounded else OfOutput)(*made, stated)
    evidence, calls = case.pick(
        (
            (None, 60),
            (["game"], 60),
            (["exact"], 1),
            (["exact"], 1),
            (["exact", "counting"], 2_200),
        )
    )
    if not (stating and isinstance(claim, PureDP | ApproxDP | GaussianDP)):
        evidence, calls = ["game"], 60
    elif evidence == ["exact", "counting"] and rounded:
        evidence = ["exact"]
    pairs = AnyValues((0.0, other), finite=True)
    # What is said of a law before rounding, or of other noise, is not about the code.
    seen = code if not rounded else _AtMost(code)
    case.audit(
        lambda: Audit(mechanism, claim, pairs, evidence=evidence),
        claim,
        seen,
        law=law,
        calls=calls,
    )


@dataclass(frozen=True)
class _AtMost:
    """A truth after rounding: at most the loss before."""

    before: Any

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *given: (arb(0), getattr(self.before, name)(*given)[1])


# promises of estimates


@dataclass(frozen=True)
class Estimate:
    """A number plus one of some errors, in scale for some inputs.

    Attributes:
        errors: What is added.
        chances: With which probability.
        declared: Whether the range is.
        name: What it is.
    """

    errors: Any
    chances: Any
    declared: bool
    name: str

    def __call__(self, data: float, size: int, *, rng: Rng) -> Any:
        """Return estimates."""
        return data + rng.choice(self.errors, size, p=self.chances)

    def output_range(self, data: float) -> tuple[float, float] | None:
        """Return the range where it is declared."""
        return (
            (data + min(self.errors), data + max(self.errors))
            if self.declared
            else None
        )


def estimates(case: Case) -> None:
    """Audit a promise about an estimate with a known law of its errors."""
    size = int(case.rng.integers(2, 5))
    weights = [int(w) for w in case.rng.integers(1, 12, size)]
    chances = [Fraction(w, sum(weights)) for w in weights]
    errors = [
        Fraction(int(e), 8) for e in case.rng.choice(33, size, replace=False) - 16
    ]
    mean = sum((e * p for e, p in zip(errors, chances, strict=True)), Fraction(0))
    if case.rng.random() < 0.5:
        errors, mean = [e - mean for e in errors], Fraction(0)
    errors = [Fraction(float(e)) for e in errors]
    mean = sum((e * p for e, p in zip(errors, chances, strict=True)), Fraction(0))
    variance = (
        sum((e**2 * p for e, p in zip(errors, chances, strict=True)), Fraction(0))
        - mean**2
    )
    # Without a declared range the tests are asymptotic, and nothing holds at a tiny α.
    declared = bool(case.alpha < 1e-3 or case.rng.random() < 0.7)
    bias, near = float(abs(mean)), case.near()
    promise: Any = VarianceAtMost(float(variance) * near, lambda x: x)
    if case.rng.random() < 0.6:
        margin = bias * near if bias > 1e-9 else float(case.pick((0.05, 0.3)))
        promise = Unbiased(lambda x: x, margin, almost=bool(case.rng.random() < 0.5))
    case.told = f"errors {[str(e) for e in errors]} of {[str(p) for p in chances]}, declared range: {declared}, {promise}"
    estimate = Estimate(
        [float(e) for e in errors], [float(p) for p in chances], declared, case.told
    )
    inputs = {"0": [0.0], "5": [5.0]}
    settings = Settings(case.alpha, Budget(900), case.seed, f"case {case.number}")
    about = type(promise).__name__ + ("" if declared else ", no range declared")
    result = case.attempt(
        "estimation",
        about,
        lambda: run_audit(Audit(estimate, promise, inputs=inputs), settings),
    )
    if result is None:
        return
    if isinstance(promise, Unbiased):
        # An expectation in doubles is off by what 5 plus an error is rounded by.
        true = abs(mean) <= (
            Fraction(promise.margin) if promise.almost else Fraction(1, 10**15)
        )
        equivalent = abs(mean) <= Fraction(promise.margin)
    else:
        true = equivalent = variance <= Fraction(promise.bound)
    wrong = {Verdict.VIOLATED: true, Verdict.EQUIVALENT: not equivalent}.get(
        result.verdict, False
    )
    known = f"bias {float(mean):.12g}, variance {float(variance):.12g}"
    case.says(
        "estimation", about, result.verdict, known if wrong else "", by_chance=True
    )


# sensitivities


@dataclass(frozen=True)
class Calibrated:
    """A linear query with Laplace noise that is calibrated to a declared sensitivity."""

    weights: Any
    sensitivity: float
    norm: Any
    name: str

    def query(self, data: Any, rng: Rng) -> Any:
        """Return the numbers without noise."""
        return self.weights * np.asarray(data)

    def __call__(self, data: Any, size: int, *, rng: Rng) -> Any:
        """Return noisy answers."""
        return self.query(data, rng) + self.sensitivity * rng.laplace(
            size=(size, len(self.weights))
        )


def sensitivity(case: Case) -> None:
    """Audit the sensitivity of a query with known neighbours."""
    size, norm = int(case.rng.integers(1, 4)), case.pick(("l1", "l2", "linf"))
    weights = case.rng.integers(-8, 9, size) / 4
    values = [tuple(int(x) for x in case.rng.integers(0, 4, size)) for _ in range(5)]
    values = list(dict.fromkeys(values))
    if len(values) < 2:
        return
    true = Fraction(0)
    for a in values:
        for b in values:
            moved = [
                abs(Fraction(float(w)) * (x - y))
                for w, x, y in zip(weights, a, b, strict=True)
            ]
            found = {
                "l1": sum(moved, Fraction(0)),
                "l2": sum((m**2 for m in moved), Fraction(0)),
                "linf": max(moved),
            }
            true = max(true, found[norm])  # of l2 the square
    near = case.near()
    declared = (math.sqrt(true) if norm == "l2" else float(true)) * near
    if not declared:
        return
    kept = Fraction(declared) ** (2 if norm == "l2" else 1) >= true
    case.told = (
        f"weights {weights.tolist()} on {values}, {norm} sensitivity {declared!r}"
    )
    mechanism = Calibrated(weights, declared, norm, case.told)
    built = partial(
        Audit,
        mechanism,
        PureDP(1.0),
        AnyValues(tuple(values), finite=True),
        evidence=["sensitivity"],
    )
    settings = Settings(case.alpha, Budget(1), case.seed, f"case {case.number}")
    result = case.attempt("sensitivity", norm, lambda: run_audit(built(), settings))
    if result is not None:
        wrong = (
            f"the largest difference{' squared' if norm == 'l2' else ''} is {true}"
            if kept
            else ""
        )
        case.says(
            "sensitivity",
            norm,
            result.verdict,
            wrong if result.verdict is Verdict.MISCALIBRATED else "",
        )


# canaries


def canaries(case: Case) -> None:
    """Audit one training, or three, with canaries protected exactly as claimed."""
    name = case.pick(list(TIGHT))
    tight, factor = TIGHT[name], float(case.pick((1 + 1e-9, 1.0, 1.3, 0.4)))
    holding: Any = (
        ApproxDP(tight.claim.level, tight.at_once) if tight.at_once else tight.claim
    )
    claim = (
        holding
        if name == "accountant" or factor == 1.0
        else holding.at(holding.level * factor)
    )
    count, trainings = int(case.pick((30, 120))), int(case.pick((1, 3)))
    case.told = f"{count} canaries in {trainings} trainings, tight for {holding}{', at once' if tight.at_once else ''}: {claim}"  # noqa: E501
    built = partial(
        Audit,
        lambda data, rng: tight(data, rng),
        claim,
        Canaries(count),
        evidence=["one_run"],
        calls=trainings,
    )
    settings = Settings(case.alpha, Budget(trainings), case.seed, f"case {case.number}")
    about = type(claim).__name__
    result = case.attempt("one_run", about, lambda: run_audit(built(), settings))
    if result is None:
        return
    wrong = []
    if result.verdict is Verdict.VIOLATED and claim.level >= holding.level:
        wrong.append(f"VIOLATED, and {holding} holds")
    # Of a curve that is only implied, the level is one of the curve.
    if result.epsilon_lower is not None and result.epsilon_lower > holding.level * (
        1 + FLOATS
    ):
        wrong.append(f"lower bound {result.epsilon_lower!r} above {holding.level!r}")
    case.says("one_run", about, result.verdict, "; ".join(wrong), by_chance=True)


# recorded data


def _bound(case: Case, about: str, record: Any, truth: float) -> None:
    bound = case.attempt("bounds", about, record)
    if bound is None:
        return
    wrong = []
    if bound.lower > truth * (1 + FLOATS):
        wrong.append(f"lower bound {bound.lower!r} above {truth!r}")
    if bound.refuted and bound.claim >= truth:
        wrong.append(f"{bound.claim!r} refuted, and the truth is {truth!r}")
    verdict = Verdict.VIOLATED if bound.refuted else Verdict.NOT_REFUTED
    case.says("bounds", about, verdict, "; ".join(wrong), by_chance=True)


def _parameter(case: Case) -> tuple[str, float, float, float]:
    """Return a parameter, its true level, δ, and a claim."""
    parameter = case.pick(("epsilon", "mu"))
    level = float(case.rng.uniform(0.1, 3))
    delta = float(case.pick((0.0, 0.0, 1e-3, 0.05))) if parameter == "epsilon" else 0.0
    return parameter, level, delta, level * max(case.near(), 1.0)


def counts(case: Case) -> None:
    """Bound a level from counts of an event that is as telling as the level allows."""
    parameter, level, delta, claim = _parameter(case)
    curve = EpsilonDelta(delta) if parameter == "epsilon" else Gaussian()
    q = float(case.pick((0.5, 0.1, 0.01, expit(-level), ndtr(-level / 2))))
    numbers = [int(case.pick((10, 60, 200))) for _ in range(2)]
    first, second = (
        int(case.rng.binomial(n, float(p)))
        for n, p in zip(numbers, (curve.largest_p(q, level), q), strict=True)
    )
    method = case.pick(("exact", "clopper-pearson"))
    case.told = f"{first} of {numbers[0]} and {second} of {numbers[1]}, {method}, {parameter} {level!r}, δ = {delta}"
    case.told += f", claim {claim!r}"
    _bound(
        case,
        f"counts, {method}",
        lambda: from_counts(
            first,
            numbers[0],
            second,
            numbers[1],
            delta=delta,
            parameter=parameter,
            alpha=case.alpha,
            claim=claim,
            method=method,
        ),
        level,
    )


def guesses(case: Case) -> None:
    """Bound a level from right guesses, at the largest rate that the level allows."""
    _, level, delta, claim = _parameter(case)
    number, canary = int(case.pick((20, 100))), int(case.pick((1, 3)))
    right = (
        number
        if case.rng.random() < delta
        else int(case.rng.binomial(number, expit(level)))
    )
    method = "auto" if delta == 0 else case.pick(("auto", "one-run"))
    case.told = f"{right} of {number} right of {number * canary} canaries, ε = {level!r}, δ = {delta}, {claim!r}, {method}"
    _bound(
        case,
        f"guesses, {method}",
        lambda: from_guesses(
            right,
            number,
            canaries=number * canary,
            delta=delta,
            alpha=case.alpha,
            claim=claim,
            method=method,
        ),
        level,
    )


def scores(case: Case) -> None:
    """Bound a level from scores with labels, or from outputs of two inputs: Laplace or Gaussian noise as it is."""
    gaussian, level = bool(case.rng.random() < 0.5), float(case.rng.uniform(0.2, 3))
    number, design = int(case.pick((40, 200))), case.pick(("coin", "arms", "outputs"))
    labels = (
        case.rng.integers(0, 2, number) if design == "coin" else np.arange(number) % 2
    )
    noise = (
        case.rng.normal(size=number) / level
        if gaussian
        else case.rng.laplace(size=number) / level
    )
    values, claim = labels + noise, level * max(case.near(), 1.0)
    asked: dict[str, Any] = {
        "parameter": "mu" if gaussian else "epsilon",
        "alpha": case.alpha,
        "claim": claim,
    }
    method = case.pick(_methods(design, gaussian))
    case.told = f"{number} values, {design}, {'μ' if gaussian else 'ε'} = {level!r}, claim {claim!r}, {method}"

    def record() -> Any:
        if design == "outputs":
            return from_outputs(
                values[labels == 1],
                values[labels == 0],
                method=method,
                seed=case.number,
                **asked,
            )
        return from_scores(
            values, labels, design=design, method=method, seed=case.number, **asked
        )

    _bound(case, f"{design}, {method}", record, level)


def _methods(design: str, gaussian: bool) -> Sequence[str]:
    events = ["split-exact", "dkw"] if design != "outputs" else ["split-exact"]
    return [*events, *(["scan"] if design == "coin" and not gaussian else [])]
