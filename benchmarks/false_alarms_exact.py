"""False verdicts of exact evidence on generated laws: none.

The oracle is by brute force and shares nothing with the evidence: Fractions, and decimals of 60 digits. δ(ε) is the largest
P(S) - e^ε Q(S) over all sets S of outputs, one by one; neighbours are all pairs of a domain that is small enough to list.
The claims are at the truth, a part in 10⁹ beside it, and anywhere. What the mechanism states is true, but may be enclosed in
balls, rounded to floats, incomplete, before post-processing, up to the order of nodes, or contradicted by its own envelope.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import combinations, product
from typing import Any

import numpy as np
from flint import arb

from auditdp import AnyValues, ApproxDP, Box, Edges, PureDP, QueryAnswers
from auditdp.adjacency import Adjacency
from auditdp.claims.claim import Claim
from auditdp.evidence.exact import exact_evidence
from auditdp.mechanism.laws import Envelope, FiniteLaw, LaplaceLaw, StepLaw
from auditdp.record.results import Verdict
from benchmarks.parts import Rng

Law = Sequence[Fraction]
"""Probabilities of numbered outputs."""
DIGITS = 60
HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Stated:
    """A mechanism that only states laws, by input."""

    laws: Callable[[Any], Any]
    name: str = "generated"

    def distribution(self, data: Any) -> Any:
        """Return the law of an input."""
        return self.laws(data)


@dataclass(frozen=True)
class Enveloped(Stated):
    """The same with an envelope."""

    extremes: Envelope | None = None

    def envelope(self) -> Envelope | None:
        """Return the envelope."""
        return self.extremes


@dataclass(frozen=True)
class Processed:
    """A mechanism that states a law before post-processing."""

    laws: Callable[[Any], Any]
    name: str = "generated"

    def before_processing(self, data: Any) -> Any:
        """Return the law of an input."""
        return self.laws(data)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _subsets(p: Law, q: Law) -> list[tuple[Fraction, Fraction]]:
    """P(S) and Q(S) of all sets S of outputs."""
    sums = [(Fraction(0), Fraction(0))]
    for a, b in zip(p, q, strict=True):
        sums += [(x + a, y + b) for x, y in sums]
    return sums


def true_epsilon(p: Law, q: Law, delta: Fraction = Fraction(0)) -> Decimal:
    """Return the smallest ε >= 0 with P(S) <= e^ε Q(S) + δ for all S, in both orders; infinite where there is none."""
    worst = Decimal(0)
    for one, other in ((p, q), (q, p)):
        for a, b in _subsets(one, other):
            if a > delta and b == 0:
                return Decimal("Infinity")
            if a > delta and a - delta > b:
                worst = max(worst, (_decimal(a - delta) / _decimal(b)).ln())
    return worst


def _wrong(mechanism: Any, adjacency: Adjacency, truth: Decimal, claim: Claim) -> bool:
    """Return True if the evidence states the opposite of the truth."""
    said = exact_evidence(mechanism, claim, adjacency).verdict
    return said is (
        Verdict.VIOLATED if truth <= Decimal(claim.level) else Verdict.CERTIFIED
    )


def _level(truth: Decimal, rng: Rng) -> float:
    """A level at the truth, beside it, or anywhere."""
    anywhere = float(rng.uniform(0.05, 4.0))
    if not truth.is_finite() or truth == 0:
        return anywhere
    factor = rng.choice([1.0, 1 - 1e-13, 1 + 1e-9, 1 - 1e-9, 0.9, 1.1, 0.0])
    return float(truth) * float(factor) or anywhere


def _law(rng: Rng, size: int) -> list[Fraction]:
    while True:
        weights = [
            int(w) for w in rng.integers(0, 12, size) * (rng.random(size) < 0.85)
        ]
        if sum(weights):
            return [Fraction(w, sum(weights)) for w in weights]


def _stated(law: Law, how: str, rng: Rng) -> list[Any]:
    """The probabilities as they are, as floats, or as balls that contain them off their centres."""
    if how == "floats":
        return [float(p) for p in law]
    if how == "balls":
        centre, share = (
            _law(rng, len(law)),
            Fraction(int(rng.integers(0, 100)), 10 ** int(rng.integers(3, 12))),
        )
        middles = [
            float((1 - share) * p + share * c) for p, c in zip(law, centre, strict=True)
        ]
        return [
            arb(m, abs(m - float(p)) * (1 + 1e-9) + 1e-15)
            for m, p in zip(middles, law, strict=True)
        ]
    return list(law)


def _finite(how: str, repeats: int, rng: Rng) -> int:
    """Two to four inputs with laws of up to five outputs, any two of them neighbours."""
    wrong = 0
    for _ in range(repeats):
        inputs, size = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        laws = [_law(rng, size) for _ in range(inputs)]
        stated = [FiniteLaw(np.arange(size), _stated(law, how, rng)) for law in laws]
        delta = (
            Fraction(0)
            if rng.random() < 0.5
            else Fraction(float(rng.choice([1e-12, 1e-6, 0.01, 0.2])))
        )
        truth = max(true_epsilon(p, q, delta) for p, q in combinations(laws, 2))
        claim: Claim = (
            ApproxDP(_level(truth, rng), float(delta))
            if delta
            else PureDP(_level(truth, rng))
        )
        wrong += _wrong(
            Stated(stated.__getitem__),
            AnyValues(tuple(range(inputs)), finite=True),
            truth,
            claim,
        )
    return wrong


def _incomplete(repeats: int, rng: Rng) -> int:
    """Laws of floats that leave out an output of probability up to 9e-10, of one input alone; δ is about as small."""
    wrong = 0
    for _ in range(repeats):
        size = int(rng.integers(2, 5))
        lack = Fraction(float(rng.uniform(0, 9e-10)))
        p, q = (
            [*(x * (1 - left) for x in _law(rng, size)), left]
            for left in rng.permutation([lack, Fraction(0)])
        )
        delta = Fraction(float(lack) * float(rng.choice([0.0, 0.2, 0.9, 1.1, 5.0])))
        truth = true_epsilon(p, q, delta)
        claim: Claim = (
            ApproxDP(_level(truth, rng), float(delta))
            if delta
            else PureDP(_level(truth, rng))
        )
        stated = [
            FiniteLaw(np.arange(size), [float(x) for x in law[:-1]]) for law in (p, q)
        ]
        wrong += _wrong(
            Stated(stated.__getitem__), AnyValues((0, 1), finite=True), truth, claim
        )
    return wrong


def _steps(repeats: int, rng: Rng) -> int:
    """Step laws with breaks and atoms at integers: outputs are unit intervals and atoms."""
    wrong = 0
    for _ in range(repeats):
        laws, stated = [], []
        for _ in range(2):
            law, ends = (
                _law(rng, 7),
                sorted(rng.choice(5, int(rng.integers(2, 4)), replace=False)),
            )
            steps = _law(rng, len(ends) - 1)
            weight = [HALF, Fraction(1), Fraction(0)][int(rng.integers(3))]
            atoms = (
                [weight * x / sum(law[:3]) for x in law[:3]]
                if sum(law[:3])
                else [weight, Fraction(0), Fraction(0)]
            )
            densities = [
                (1 - weight) * x / int(b - a)
                for x, a, b in zip(steps, ends, ends[1:], strict=False)
            ]
            stated.append(StepLaw([int(x) for x in ends], densities, [0, 1, 9], atoms))
            unit = [
                sum(
                    (
                        d
                        for d, a, b in zip(densities, ends, ends[1:], strict=False)
                        if a <= k < b
                    ),
                    Fraction(0),
                )
                for k in range(5)
            ]
            laws.append([*unit, *atoms])
        truth = true_epsilon(*laws)
        claim = PureDP(_level(truth, rng))
        wrong += _wrong(
            Stated(stated.__getitem__), AnyValues((0, 1), finite=True), truth, claim
        )
    return wrong


def _laplace(repeats: int, rng: Rng) -> int:
    """Laplace noise on up to three coordinates: the log ratio at every corner of the two centres and points far out."""
    wrong = 0
    for _ in range(repeats):
        k = int(rng.integers(1, 4))
        centres = rng.integers(-8, 9, (2, k)) / 4
        scale = rng.integers(1, 9, k) / 4
        scales = [
            scale,
            scale if rng.random() < 0.8 else scale * rng.choice([1.0, 2.0], k),
        ]
        if (scales[0] != scales[1]).any():
            truth = Decimal("Infinity")
        else:
            corners = product(
                *([Fraction(float(c)) for c in (-9, a, b, 9)] for a, b in centres.T)
            )
            far = [Fraction(float(s)) for s in scale]
            ratios = (
                sum(
                    ((abs(y - Fraction(float(b))) - abs(y - Fraction(float(a)))) / s)
                    for y, a, b, s in zip(at, *centres, far, strict=True)
                )
                for at in corners
            )
            truth = _decimal(max(abs(Fraction(ratio)) for ratio in ratios))
        stated = [LaplaceLaw(a, s) for a, s in zip(centres, scales, strict=True)]
        claim = PureDP(_level(truth, rng))
        wrong += _wrong(
            Stated(stated.__getitem__), AnyValues((0, 1), finite=True), truth, claim
        )
    return wrong


def _cut(repeats: int, rng: Rng) -> int:
    """Return Laplace noise that releases an interval, and states the law before that."""
    wrong = 0
    for _ in range(repeats):
        centres, scale = (
            rng.integers(-8, 9, 2) / 4,
            Decimal(float(rng.integers(1, 9) / 4)),
        )
        cuts = sorted(
            {float(x) for x in rng.integers(-12, 13, int(rng.integers(1, 4))) / 4}
        )
        laws = []
        for centre in centres:
            cdf = [Decimal(0)]
            for cut in cuts:
                x = (Decimal(cut) - Decimal(float(centre))) / scale
                cdf.append(x.exp() / 2 if x < 0 else 1 - (-x).exp() / 2)
            laws.append(
                [b - a for a, b in zip(cdf, [*cdf[1:], Decimal(1)], strict=True)]
            )
        truth = max(
            (abs((a / b).ln()) for a, b in zip(*laws, strict=True)), default=Decimal(0)
        )
        before = Decimal(float(abs(centres[0] - centres[1]))) / scale
        claim = PureDP(_level(truth if rng.random() < 0.5 else before, rng))
        stated = [
            LaplaceLaw(np.array([centre]), np.array([float(scale)]))
            for centre in centres
        ]
        # The oracle's last digits are rounded: where both agree in 50 digits, nothing is wrong.
        if abs(truth - Decimal(claim.level)) > Decimal("1e-50"):
            wrong += _wrong(
                Processed(stated.__getitem__),
                AnyValues((0, 1), finite=True),
                truth,
                claim,
            )
    return wrong


def _envelopes(repeats: int, rng: Rng) -> int:
    """Coins whose odds are linear in a number each, under an envelope that is right, too wide, too narrow, or for fewer."""
    wrong = 0
    for _ in range(repeats):
        dimension = int(rng.integers(1, 4))
        slope = Fraction(int(rng.integers(1, 8)), 16)
        uses = dimension if rng.random() < 0.5 else int(rng.integers(1, 5))
        stretch = (
            Fraction(1)
            if rng.random() < 0.5
            else Fraction(int(rng.integers(8, 25)), 16)
        )
        wide = min(slope * stretch, Fraction(15, 32))

        def law(data: Any, slope: Fraction = slope) -> FiniteLaw:
            ps = [HALF + slope * Fraction(float(x)) for x in data]
            outcomes = list(product((0, 1), repeat=len(ps)))
            chances = [Fraction(1)] * len(outcomes)
            for p, place in zip(ps, range(len(ps)), strict=True):
                chances = [
                    c * (p if y[place] else 1 - p)
                    for c, y in zip(chances, outcomes, strict=True)
                ]
            return FiniteLaw(np.array(outcomes), chances)

        high, low = np.ones(dimension), -np.ones(dimension)
        envelope = Envelope(
            [0, 1],
            [HALF - wide] * 2,
            [HALF + wide] * 2,
            [(low, high), (high, low)],
            uses,
        )
        truth = dimension * (_decimal(HALF + slope) / _decimal(HALF - slope)).ln()
        said = uses * (_decimal(HALF + wide) / _decimal(HALF - wide)).ln()
        claim = PureDP(_level(truth if rng.random() < 0.5 else said, rng))
        wrong += _wrong(
            Enveloped(law, extremes=envelope), Box(-1, 1, dimension), truth, claim
        )
    return wrong


def _graphs(repeats: int, rng: Rng) -> int:
    """A bit whose probability depends on the graph: on its number of edges, on degrees by name, or on one edge.

    The adjacency enumerates pairs up to the order of the nodes, or all; the oracle lists all labelled graphs.
    """
    wrong, nodes = 0, 3
    places = list(combinations(range(nodes), 2))
    for _ in range(repeats):
        kind = int(rng.integers(4))
        table = [
            Fraction(int(x), 64) for x in rng.integers(0 if kind == 3 else 8, 57, 16)
        ]
        name = int(rng.integers(nodes))

        def chance(
            a: Any, kind: int = kind, table: list[Fraction] = table, name: int = name
        ) -> Fraction:
            code = {
                0: int(a.sum()) // 2,
                1: int(a[name].sum()),
                2: int(a[places[name]]),
            }
            return table[
                code.get(kind, sum(int(a[e]) << k for k, e in enumerate(places)))
            ]

        truth = Decimal(0)
        for ones in product((0, 1), repeat=len(places)):
            for k in range(len(places)):
                both = []
                for bit in (0, 1):
                    matrix = np.zeros((nodes, nodes), np.int8)
                    for place, e in enumerate(places):
                        matrix[e] = matrix[e[::-1]] = bit if place == k else ones[place]
                    both.append([chance(matrix), 1 - chance(matrix)])
                truth = max(truth, true_epsilon(*both))
        adjacency = Edges(nodes, unlabelled=bool(rng.random() < 0.8))
        mechanism = Stated(
            lambda a, f=chance: FiniteLaw(np.array([0, 1]), [f(a), 1 - f(a)])
        )
        wrong += _wrong(mechanism, adjacency, truth, PureDP(_level(truth, rng)))
    return wrong


@dataclass(frozen=True)
class Noise(Stated):
    """Additive noise that is argued for by a query and its sensitivity in ℓ₁."""

    answer: Callable[[Any], Any] = lambda x: x
    sensitivity: float = 1.0
    norm: str = "l1"

    def query(self, data: Any, rng: Rng) -> Any:
        """Return the stated centre of the noise."""
        return self.answer(data)


def _declared(repeats: int, rng: Rng) -> int:
    """Laplace noise of a declared query, of which the declared model is true, or wrong in one of four ways.

    The scale is smaller beyond a threshold of one answer, of their sum or of the largest; the location is a multiple of the
    query, or shifted beyond a threshold; or answers move by more than the sensitivity beyond one. Then the loss is infinite,
    or what the model leaves out; such a departure can be overlooked, since it is searched for.
    """
    wrong = 0
    for _ in range(repeats):
        size, kind = int(rng.integers(1, 5)), int(rng.integers(5))
        scale, threshold = float(rng.integers(1, 9)) / 4, float(rng.integers(1, 21)) / 2
        # Powers of two and multiples of them, so that the float law is the exact one.
        times = float(rng.choice([0.25, 0.5, 0.75]))
        of = (lambda x: x[0], np.sum, np.max)[int(rng.integers(3))]

        def beyond(
            x: Any, of: Callable[[Any], Any] = of, threshold: float = threshold
        ) -> bool:
            return bool(of(x) > threshold)

        def steep(x: Any, threshold: float = threshold, times: float = times) -> Any:
            return x + times * np.maximum(x - threshold, 0)

        def law(
            x: Any,
            kind: int = kind,
            scale: float = scale,
            times: float = times,
            of: Any = beyond,
        ) -> LaplaceLaw:
            narrow = scale * times if kind == 1 and of(x) else scale
            centre = {2: (1 + times) * x, 3: x + times * of(x), 4: steep(x)}.get(
                kind, x
            )
            return LaplaceLaw(centre, np.full(len(x), narrow))

        loses = {1: np.inf, 2: 1 + times, 3: 1 + size * times, 4: 1 + times}.get(
            kind, 1.0
        )
        truth = Decimal(loses) / Decimal(scale)
        answer = steep if kind == 4 else (lambda x: x)
        wrong += _wrong(
            Noise(law, answer=answer),
            QueryAnswers(size),
            truth,
            PureDP(_level(truth, rng)),
        )
    return wrong


def _precise(check: Callable[[int, Rng], int], repeats: int, rng: Rng) -> int:
    with localcontext() as context:
        context.prec = DIGITS
        return check(repeats, rng)


CHECKS: dict[str, Callable[[int, Rng], int]] = {
    "finite laws": partial(_finite, "as they are"),
    "finite laws in floats": partial(_finite, "floats"),
    "finite laws in balls": partial(_finite, "balls"),
    "finite laws that leave an output out": _incomplete,
    "step laws": _steps,
    "Laplace laws": _laplace,
    "Laplace laws before post-processing": _cut,
    "envelopes with their laws": _envelopes,
    "graphs up to the order of nodes": _graphs,
    "noise around a declared query": _declared,
}
FALSE_ALARMS: Mapping[str, Callable[[int, Rng], int]] = {
    name: partial(_precise, check) for name, check in CHECKS.items()
}
"""Wrong verdicts of exact evidence, by kind of generated law."""
