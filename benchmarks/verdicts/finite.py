"""Mechanisms with finitely many outputs, and their stated laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from flint import arb, fmpq
from scipy.stats import binom, laplace

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    FiniteLaw,
    PureDP,
    Verdict,
    check,
    unseeded,
)
from auditdp.errors import MechanismError
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import ball
from benchmarks.verdicts.case import Case, Rng, claim_near
from benchmarks.verdicts.truth import BITS, Finite, Worst


@dataclass(frozen=True)
class Laws:
    """Laws of the outputs of some inputs.

    Attributes:
        name: The formula.
        true: Their probabilities.
        floats: The same as the formula gives them in floats; None where it gives fractions.
    """

    name: str
    true: Sequence[Sequence[Any]]
    floats: Sequence[np.ndarray[Any, Any]] | None = None


def _fractions(case: Case) -> Laws:
    inputs, size = int(case.rng.integers(2, 5)), int(case.rng.integers(2, 7))
    laws = []
    while len(laws) < inputs:
        weights = [
            int(w)
            for w in case.rng.integers(0, 12, size) * (case.rng.random(size) < 0.9)
        ]
        if sum(weights):
            laws.append([Fraction(w, sum(weights)) for w in weights])
    return Laws("fractions", laws)


def _tiny(case: Case) -> Laws:
    """Some outputs have next to no probability, down to 1e-300."""
    exponents = case.rng.integers(-300, 0, int(case.rng.integers(1, 4)))
    ratio = Fraction(int(case.rng.integers(1, 40)), 8)
    small = [Fraction(float(10.0**k)) / 8 for k in exponents]
    others = [x * ratio for x in small]
    return Laws(
        "fractions down to 1e-300",
        [[*small, 1 - sum(small)], [*others, 1 - sum(others)]],
    )


def _response(case: Case) -> Laws:
    """Randomised response, as it is or revealing with probability δ."""
    keep = 1 / (1 + math.exp(-float(case.rng.uniform(0.1, 4))))
    p, delta = Fraction(keep), Fraction(float(case.pick((0.0, 0.0, 1e-9, 1e-3, 0.1))))
    kept, lied = (1 - delta) * p, (1 - delta) * (1 - p)
    return Laws(
        "randomised response",
        [[kept, lied, delta, Fraction(0)], [lied, kept, Fraction(0), delta]],
    )


def _softmax(case: Case) -> Laws:
    """The exponential mechanism: scores that move by up to 1 between two inputs."""
    size, epsilon = int(case.pick((2, 5, 20, 2_000))), float(case.rng.uniform(0.1, 8))
    scores = np.round(case.rng.uniform(0, case.pick((2, 20, 700)), size), 3)
    both = [scores, scores + case.rng.integers(-1, 2, size)]
    true, floats = [], []
    for each in both:
        logits = epsilon * each / 2
        weights = np.exp(logits - logits.max())
        floats.append(weights / weights.sum())
        exact = [(arb(epsilon) * arb(float(s)) / 2).exp() for s in each]
        total = sum(exact, arb(0))
        true.append([w / total for w in exact])
    return Laws(f"softmax of {size} scores", true, floats)


def _ones(case: Case) -> Laws:
    """Return the number of ones among n randomised bits."""
    n, epsilon = int(case.pick((3, 20, 200, 2_000))), float(case.rng.uniform(0.2, 3))
    keep = 1 / (1 + math.exp(-epsilon))
    lie = 1 - keep
    others = binom.pmf(np.arange(n), n - 1, lie)
    floats = [np.convolve(others, [1 - one, one]) for one in (lie, keep)]
    a, b = arb(lie), 1 - arb(lie)
    term = b ** (n - 1)
    half = [term]
    for k in range(n - 1):
        term = term * a / b * (n - 1 - k) / (k + 1)
        half.append(term)
    true = []
    for one in (a, arb(keep)):
        zero = 1 - one
        true.append(
            [
                zero * x + one * y
                for x, y in zip([*half, arb(0)], [arb(0), *half], strict=True)
            ]
        )
    return Laws(f"ones among {n} randomised bits, binom.pmf", true, floats)


def _geometric(case: Case) -> Laws:
    """Two-sided geometric noise on a count, cut at both ends."""
    top, epsilon = case.pick(
        ((10, 1.0), (40, 0.5), (100, 8.0), (1_000, 1.0), (200, 0.1))
    )
    epsilon = epsilon * float(case.rng.uniform(0.8, 1.2))
    at = int(case.pick((0, 1, top // 2, top - 1)))
    places, alpha = np.arange(top + 1), math.exp(-epsilon)
    true, floats = [], []
    for count in (at, at + 1):
        inner = (1 - alpha) / (1 + alpha)
        found = inner * np.exp(-epsilon * np.abs(places - count))
        found[0], found[-1] = (
            alpha**count / (1 + alpha),
            alpha ** (top - count) / (1 + alpha),
        )
        floats.append(found)
        exact = (-arb(epsilon)).exp()
        law = [
            exact ** abs(k - count) * (1 - exact) / (1 + exact) for k in range(top + 1)
        ]
        law[0], law[-1] = (
            exact**count / (1 + exact),
            exact ** (top - count) / (1 + exact),
        )
        true.append(law)
    return Laws(f"geometric noise to {top}", true, floats)


def _rounded_laplace(case: Case) -> Laws:
    """Laplace noise that is rounded and cut, by differences of the cumulative distribution."""
    top, scale = int(case.pick((5, 30, 100))), float(case.rng.uniform(0.3, 3))
    at = int(case.rng.integers(top))
    edges = np.arange(top) + 0.5
    true, floats = [], []
    for count in (at, at + 1):
        floats.append(
            np.diff(np.concatenate([[0.0], laplace.cdf(edges, count, scale), [1.0]]))
        )
        tails = []
        for edge in edges:
            distance = abs(Fraction(float(edge)) - count) / Fraction(scale)
            tail = (-arb(fmpq(distance.numerator, distance.denominator))).exp() / 2
            tails.append((tail, 1 - tail) if edge < count else (1 - tail, tail))
        law = [tails[0][0]]
        for before, after in pairwise(tails):
            # Differences of whichever tail is the small one, so that the balls stay narrow.
            law.append(
                after[0] - before[0] if after[0] < 0.75 else before[1] - after[1]
            )
        true.append([*law, tails[-1][1]])
    return Laws(f"rounded Laplace noise to {top}, differences of cdf", true, floats)


def _discrete_gaussian(case: Case) -> Laws:
    top, sigma = int(case.pick((6, 40))), float(case.rng.uniform(0.5, 4))
    places, true, floats = np.arange(-top, top + 1), [], []
    for count in (0, 1):
        weights = np.exp(-((places - count) ** 2) / (2 * sigma**2))
        floats.append(weights / weights.sum())
        exact = [
            (-(arb(int(k - count)) ** 2) / (2 * arb(sigma) ** 2)).exp() for k in places
        ]
        total = sum(exact, arb(0))
        true.append([w / total for w in exact])
    return Laws(f"discrete Gaussian on {len(places)} numbers", true, floats)


FORMULAS: Sequence[Callable[[Case], Laws]] = (
    _fractions,
    _fractions,
    _response,
    _response,
    _tiny,
    _softmax,
    _ones,
    _geometric,
    _rounded_laplace,
    _discrete_gaussian,
)


def _raised(k: int) -> Any:
    return ValueError("no answer") if k == 0 else k


KINDS: dict[str, Callable[[int], Any]] = {
    "ints": int,
    "floats": lambda k: 0.1 * k,
    "NumPy scalars": lambda k: np.float32(k) if k % 2 else np.int64(k),
    "None beside numbers": lambda k: None if k == 0 else float(k),
    ".5 beside int 0": lambda k: 0.5 if k == 0 else k - 1,
    "max(0, x)": lambda k: max(0, 0.7 * k),
    "pairs of numbers": lambda k: (k, 0.5),
    "bool beside int": lambda k: k == 1 if k < 2 else k,
    "texts": lambda k: f"o{k}",
    "tuples": lambda k: (k, "x" if k % 2 else None),
    "dicts": lambda k: {"count": k, "sign": "+" if k % 2 else "-"},
    "lists of different lengths": lambda k: [1] * min(k, 40) + [k],
    "errors": _raised,
}
"""Return values of a function of one call, by the number of the output."""
ARRAYS = ("ints", "floats", "pairs of numbers")
"""Kinds of outputs that an array holds."""


@dataclass(frozen=True)
class Scalar:
    """A function of one call.

    Attributes:
        outputs: All outputs.
        chances: Cumulative probabilities by input.
        name: What it is.
    """

    outputs: Sequence[Any]
    chances: Sequence[Any]
    name: str

    def __call__(self, data: int, rng: Rng) -> Any:
        """Return one output."""
        found = self.outputs[self.place(data, rng.random())]
        if isinstance(found, Exception):
            raise found
        return found

    def place(self, data: int, uniform: Any) -> Any:
        """Return the number of the output."""
        return np.minimum(
            np.searchsorted(self.chances[data], uniform, side="right"),
            len(self.outputs) - 1,
        )


@dataclass(frozen=True)
class Batch(Scalar):
    """A vectorised mechanism."""

    def __call__(self, data: int, size: int, *, rng: Rng) -> Any:  # type: ignore[override]
        """Return ``size`` outputs."""
        return np.asarray(self.outputs)[self.place(data, rng.random(size))]


class _States:
    def distribution(self, data: int) -> Any:
        return self.law_of(data)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class StatingScalar(_States, Scalar):
    """A function of one call that states its law."""

    law_of: Callable[[int], Any]


@dataclass(frozen=True)
class StatingBatch(_States, Batch):
    """A vectorised mechanism that states its law."""

    law_of: Callable[[int], Any]


def _shifted(case: Case, laws: Sequence[Sequence[arb]], by: float) -> list[list[arb]]:
    """Return other laws: of one input some mass is moved from one output to another, by a part of the smaller."""
    which = int(case.rng.integers(len(laws)))
    found = [list(law) for law in laws]
    places = [k for k, p in enumerate(found[which]) if p > 0]
    if len(places) > 1:
        a, b = case.rng.choice(places, 2, replace=False)
        moved = min(found[which][a], found[which][b], key=float) * arb(by)
        found[which][a] -= moved
        found[which][b] += moved
    return found


def _stated(
    case: Case, laws: Laws, exact: Sequence[Sequence[arb]], off: bool
) -> tuple[str, Sequence[Sequence[Any]]]:
    """Return the form of the probabilities, and the probabilities."""
    how = case.pick(("as they are", "as they are", "floats", "balls"))
    if how == "balls":
        return how, exact
    if how == "floats" or off:
        return "floats", [[float(p) for p in law] for law in exact]
    if laws.floats is not None:
        return "floats of the formula", [law.tolist() for law in laws.floats]
    return "fractions", laws.true


def finite(case: Case) -> None:
    """Audit a mechanism of finitely many outputs."""
    with precision(BITS):
        laws = case.pick(FORMULAS)(case)
        exact = [[ball(p) for p in law] for law in laws.true]
        size = len(exact[0])
        code = Worst([Finite(a, b) for a, b in combinations(exact, 2)])
        kind = case.pick(tuple(KINDS))
        off = float(case.pick((0.0, 0.0, 0.0, 1e-13, 1e-9, 1e-3, 0.3)))
        stating = case.rng.random() < 0.8
        written, law, probabilities = "no law", None, None
        if stating:
            said = _shifted(case, exact, off) if off else exact
            law = (
                Worst([Finite(a, b) for a, b in combinations(said, 2)]) if off else code
            )
            written, probabilities = _stated(case, laws, said, bool(off))
        claimed = (PureDP, ApproxDP) if case.rng.random() < 0.8 else ()
        claim = claim_near(
            case, law if law is not None and case.rng.random() < 0.5 else code, claimed
        )
    if claim is None:
        return
    outputs = [KINDS[kind](k) for k in range(size)]
    chances = [np.cumsum([float(p) for p in each]) for each in exact]
    vectorised = kind in ARRAYS and case.rng.random() < 0.7
    case.told = (
        f"{laws.name}, {kind}{', vectorised' if vectorised else ''}, stated: {written}"
        + (f" off by {off:g}" if law is not None and off else "")
    )
    made = [chances, case.told]

    def distribution(data: int) -> FiniteLaw:
        kept = [
            (y, p)
            for y, p in zip(outputs, probabilities[data], strict=True)
            if _possible(p)
        ]  # type: ignore[index]
        shown = [y for y, _ in kept]
        return FiniteLaw(
            np.array(shown) if kind in ARRAYS else shown, [p for _, p in kept]
        )  # type: ignore[arg-type]

    mechanism: Any
    if law is None:
        mechanism = (Batch if vectorised else Scalar)(outputs, *made)
    else:
        mechanism = (StatingBatch if vectorised else StatingScalar)(
            outputs, *made, distribution
        )
    inputs = len(exact)
    pairs: Any = AnyValues(tuple(range(inputs)), finite=True)
    if inputs == 2 and case.rng.random() < 0.3:
        pairs = [(0, 1)]
    evidence, calls = _gathered(case, law is not None, claim)
    case.told += f", evidence {evidence or 'all that applies'}"
    further = (2 * calls,) if evidence == ["game"] and case.rng.random() < 0.3 else ()
    case.audit(
        lambda: Audit(mechanism, claim, pairs, evidence=evidence),
        claim,
        code,
        law=law,
        calls=calls,
        further=further,
    )


def _gathered(case: Case, stated: bool, claim: Any) -> tuple[list[str] | None, int]:
    """Return the kinds of evidence and their calls; games take most of the time."""
    of_laws = stated and isinstance(claim, PureDP | ApproxDP)
    if of_laws and case.rng.random() < 0.75:
        return ["exact"], 1
    if of_laws and case.rng.random() < 0.6:
        return ["exact", "counting"], 2_200
    evidence = case.pick((None, None, ["game"], ["game", "support"]))
    if isinstance(claim, PureDP):
        return evidence, int(case.pick((60, 60, 300, 2_200)))
    return evidence, int(case.pick((60, 60, 60, 300)))


def _possible(probability: Any) -> bool:
    """Return True if an author lists an output."""
    return isinstance(probability, float) or bool(probability > 0)


def remembering(case: Case) -> None:
    """Audit a mechanism that keeps its noise, which is as private as one release: it may be refused, and not refuted."""
    scale, keeps = 1.0, int(case.pick((2, 5, 50, 10**9)))
    form = case.pick(("function", "vectorised", "unseeded"))
    if form == "unseeded" and keeps == 10**9:
        keeps = 50  # else nobody can tell it from an answer without noise
    memory: dict[Any, list[Any]] = {}
    own = np.random.default_rng(case.number)

    def remembered(data: float, rng: Rng) -> float:
        count, noise = memory.get(data, [0, None])
        if noise is None or count % keeps == 0:
            noise = rng.laplace(scale=scale)
        memory[data] = [count + 1, noise]
        return data + noise

    def vectorised(data: float, size: int, *, rng: Rng) -> Any:
        return np.array([remembered(data, rng) for _ in range(size)])

    mechanism: Any = {
        "function": lambda data, rng: remembered(data, rng),
        "vectorised": vectorised,
        "unseeded": unseeded(lambda data: remembered(data, own)),
    }[form]
    calls = int(case.pick((400, 2_000)))
    case.told = f"noise kept for {'ever' if keeps == 10**9 else f'{keeps} calls'}, {form}, {calls} calls, α = {case.alpha:g}"
    try:
        result = check(
            mechanism,
            PureDP(1.0),
            [(0.0, 1.0)],
            calls=calls,
            alpha=case.alpha,
            seed=case.number,
        )
    except MechanismError as refused:
        case.shown.append(refused)
        case.says("state", form, "REFUSED")
    else:
        case.shown.append(result)
        wrong = (
            "VIOLATED, and every release is 1-DP"
            if result.verdict is Verdict.VIOLATED
            else ""
        )
        case.says("state", form, result.verdict, wrong, by_chance=True)
