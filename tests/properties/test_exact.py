"""A certificate is never wrong and a violation is never false: random laws, exact and wrapped in wide balls."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import assume, given
from hypothesis import strategies as st

from auditdp.adjacency import AnyValues
from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.errors import MechanismError
from auditdp.evidence.exact import exact_evidence
from auditdp.evidence.loss_of_laws import delta_curve, pair_loss
from auditdp.mechanism.laws import FiniteLaw
from auditdp.record.results import Verdict

SIZE = 4
levels = st.floats(0.05, 6.0)


weights = st.lists(st.integers(0, 30), min_size=SIZE, max_size=SIZE).filter(any)
laws = st.builds(lambda weights: [Fraction(w, sum(weights)) for w in weights], weights)


def exact_epsilon(p, q):
    """The largest |ln P/Q| of two exact laws, as a float."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    if any(not a or not b for a, b in pairs):
        return math.inf
    return math.log(max(max(a / b, b / a) for a, b in pairs))


def exact_delta(p, q, epsilon):
    e = Fraction(math.exp(epsilon))
    return float(
        max(
            sum(max(a - e * b, Fraction(0)) for a, b in zip(x, y, strict=True))
            for x, y in ((p, q), (q, p))
        )
    )


def finite(law):
    return FiniteLaw(np.arange(SIZE), law)


class Stated:
    name = "stated"

    def __init__(self, p, q):
        self.laws = finite(p), finite(q)

    def distribution(self, data):
        return self.laws[data]


def verdict(p, q, claim):
    return exact_evidence(Stated(p, q), claim, AnyValues((0, 1))).verdict


@given(laws, laws)
def test_epsilon_is_the_largest_log_ratio(p, q):
    loss, truth = pair_loss(finite(p), finite(q)), exact_epsilon(p, q)
    if math.isinf(truth):
        assert loss.lower == loss.upper == math.inf
    else:
        assert (loss.lower, loss.upper) == pytest.approx((truth, truth), abs=1e-12)


@given(laws, laws, levels)
def test_delta_is_the_hockey_stick_of_the_worse_order(p, q, epsilon):
    loss = pair_loss(finite(p), finite(q), epsilon=epsilon)
    assert float(loss.delta.mid()) == pytest.approx(
        exact_delta(p, q, epsilon), abs=1e-12
    )


@given(laws, laws, st.floats(1e-9, 0.999))
def test_the_epsilon_needed_for_a_delta_is_where_the_hockey_stick_comes_down_to_it(
    p, q, delta
):
    lower, upper = pair_loss(finite(p), finite(q), delta=delta).needed
    if upper == math.inf:
        assert lower == math.inf
        assert (
            max(
                sum(a for a, b in zip(*order, strict=True) if b == 0)
                for order in ((p, q), (q, p))
            )
            > delta
        )
        return
    assert upper - lower <= 1e-9 * (1 + upper)
    assert exact_delta(p, q, upper) <= delta + 1e-12
    assert lower == 0 or exact_delta(p, q, lower) >= delta - 1e-12


@given(laws, laws, st.lists(st.floats(0.0, 8.0), min_size=1, max_size=8))
def test_the_sorted_curve_is_the_hockey_stick_at_every_point(p, q, epsilons):
    curve = delta_curve(finite(p), finite(q), np.array(epsilons))
    assert [epsilon for epsilon, _ in curve] == epsilons
    assert [d for _, d in curve] == pytest.approx(
        [exact_delta(p, q, epsilon) for epsilon in epsilons], abs=1e-9
    )


@given(laws, laws, levels)
def test_a_pure_claim_is_decided_wherever_it_is_not_tight(p, q, level):
    truth = exact_epsilon(p, q)
    assume(abs(truth - level) > 1e-9)
    assert verdict(p, q, PureDP(level)) is (
        Verdict.CERTIFIED if truth < level else Verdict.VIOLATED
    )


@given(laws, laws, levels, st.floats(0.0, 0.9))
def test_an_approximate_claim_is_decided_wherever_it_is_not_tight(p, q, level, delta):
    truth = exact_delta(p, q, level) if delta else exact_epsilon(p, q)
    bound = delta or level
    assume(abs(truth - bound) > 1e-9)
    assert verdict(p, q, ApproxDP(level, delta)) is (
        Verdict.CERTIFIED if truth < bound else Verdict.VIOLATED
    )


@st.composite
def wrapped(draw):
    """An exact law, and balls that contain its probabilities off their centres; the centres sum to one as well."""
    law, centre = draw(laws), draw(laws)
    share = draw(st.sampled_from([0.0, 1e-9, 0.01, 0.1, 0.5, 1.0]))
    balls = []
    for p, c in zip(law, centre, strict=True):
        middle = float((1 - Fraction(share)) * p + Fraction(share) * c)
        balls.append(arb(middle, abs(middle - float(p)) * (1 + 1e-9) + 1e-15))
    return law, balls


@given(wrapped(), wrapped(), levels, st.sampled_from([0.0, 0.01, 0.2]))
def test_balls_never_certify_what_is_false_nor_violate_what_is_true(
    one, other, level, delta
):
    """The true laws lie in the balls, so whatever is said of the balls must be true of them."""
    (p, p_balls), (q, q_balls) = one, other
    claim = ApproxDP(level, delta)
    message = verdict(p_balls, q_balls, claim)
    truth = exact_delta(p, q, level) if delta else exact_epsilon(p, q)
    holds = truth <= (delta or level) + 1e-12
    if message is Verdict.CERTIFIED:
        assert holds
    if message is Verdict.VIOLATED:
        assert not holds or abs(truth - (delta or level)) < 1e-9


@given(wrapped(), wrapped())
def test_the_bounds_of_balls_enclose_the_truth(one, other):
    (p, p_balls), (q, q_balls) = one, other
    loss, truth = pair_loss(finite(p_balls), finite(q_balls)), exact_epsilon(p, q)
    assert loss.lower <= truth + 1e-12
    assert loss.upper >= truth - 1e-12


# Floats by everyday formulas.


def softmax(law):
    scores = [
        math.log(p.numerator) - math.log(p.denominator) + 1e5 if p else -math.inf
        for p in law
    ]
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def differences(law):
    """Of the distribution function, which cancel."""
    return np.diff([float(sum(law[:k])) for k in range(len(law) + 1)]).tolist()


def rest(law):
    """The last is what the others leave, to which 0.1 is added and taken away again."""
    listed = [float(p) for p in law[:-1]]
    return [*[p + 0.1 - 0.1 for p in listed], 1 - sum(listed)]


def mixed(law):
    return [p if k % 2 else float(p) for k, p in enumerate(law)]


def single(law):
    return list(np.array(law, dtype=np.float32))


FORMULAS = [
    lambda law: list(map(float, law)),
    softmax,
    differences,
    rest,
    mixed,
    single,
]


@st.composite
def skewed(draw):
    """A law with masses down to 1e-330, which is no double."""
    powers = st.sampled_from([0, 0, 0, 1, 3, 9, 11, 13, 17, 300, 330])
    weights = [
        Fraction(draw(st.integers(0, 30)), 10 ** draw(powers)) for _ in range(SIZE)
    ]
    assume(sum(weights))
    return [w / sum(weights) for w in weights]


def log(x):
    return math.log(x.numerator) - math.log(x.denominator)


@given(
    skewed(),
    skewed(),
    st.sampled_from(FORMULAS),
    st.booleans(),
    st.booleans(),
    levels,
    st.data(),
)
def test_floats_never_certify_what_is_false_nor_violate_what_is_true(
    p, q, formula, near, dropped, level, data
):
    """At the true ε, beside it, and anywhere; the laws are near to each other or not, zeros are listed or dropped."""
    if near:
        q = [a * b for a, b in zip(p, data.draw(laws), strict=True)]
        assume(sum(q))
        q = [x / sum(q) for x in q]
    rows = [(a, b) for a, b in zip(p, q, strict=True) if a or b]
    truth = (
        math.inf
        if any(not a or not b for a, b in rows)
        else max(abs(log(a) - log(b)) for a, b in rows)
    )
    if 0 < truth < math.inf:
        level = truth * data.draw(
            st.sampled_from(
                [1.0, 1 + 1e-13, 1 - 1e-13, 1 + 1e-9, 1 - 1e-9, 1.001, 0.999, 0.5]
            )
        )
    stated = [formula(law) for law in (p, q)]
    kept = [[k for k, x in enumerate(law) if x or not dropped] for law in stated]
    try:
        finite_laws = [
            FiniteLaw(np.array(at), [law[k] for k in at])
            for at, law in zip(kept, stated, strict=True)
        ]
    except MechanismError:  # the floats of single precision are too far off
        return
    for delta in (
        (0.0, data.draw(st.sampled_from([1e-12, 1e-6, 0.01])))
        if level < LARGEST_EXPONENT
        else (0.0,)
    ):
        message = exact_evidence(
            Laws(*finite_laws), ApproxDP(level, delta), AnyValues((0, 1))
        ).verdict
        holds = (
            exact_delta(p, q, level) <= delta if delta else truth <= level * (1 + 1e-12)
        )
        if message is Verdict.VIOLATED:
            assert not holds
        if message is Verdict.CERTIFIED and not dropped:
            assert holds or truth <= level * (1 + 1e-12)


LARGEST_EXPONENT = 700.0


class Laws(Stated):
    def __init__(self, *laws):
        self.laws = laws
