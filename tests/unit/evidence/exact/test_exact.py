"""Exact evidence: known losses, what it may certify, and that it decides nothing that it does not know."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp.adjacency import AnyValues, NeighbourList, Neighbours, Pair
from auditdp.claims.statements import ApproxDP, GaussianDP, PureDP
from auditdp.errors import AdjacencyError
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.evidence.loss_of_laws import delta_curve, laplace_loss, pair_loss
from auditdp.mechanism.laws import FiniteLaw, LaplaceLaw, precision
from auditdp.record.results import Verdict
from auditdp.testing import GaussianMechanism, LaplaceMechanism, LeakyResponse, Response

BIT = AnyValues((0, 1))


class Stated:
    """A mechanism that only states its law: ``laws[data]``, or ``laws(data)``."""

    name = "stated"

    def __init__(self, laws):
        self.laws = laws

    def distribution(self, data):
        made = self.laws(data) if callable(self.laws) else self.laws[data]
        return (
            made
            if isinstance(made, FiniteLaw | LaplaceLaw)
            else FiniteLaw(np.arange(len(made)), made)
        )


def verdict(laws, claim, adjacency=BIT, **options):
    return exact_evidence(Stated(laws), claim, adjacency, **options).verdict


def bit(keep):
    """Both laws of a bit that is kept with an exact probability."""
    return {0: [keep, 1 - keep], 1: [1 - keep, keep]}


def float_below(value):
    """The largest double below a ball."""
    low = float(value.mid())
    while not arb(low) < value:
        low = math.nextafter(low, -math.inf)
    return low


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_epsilon_of_randomised_response(epsilon):
    evidence = exact_evidence(Response(epsilon), PureDP(2 * epsilon), BIT)
    assert evidence.verdict is Verdict.CERTIFIED
    assert evidence.epsilon_lower == pytest.approx(epsilon, rel=1e-12)
    assert evidence.epsilon_upper == pytest.approx(epsilon, rel=1e-12)
    assert evidence.counterexample is None
    assert (
        exact_evidence(Response(epsilon), PureDP(epsilon / 2), BIT).verdict
        is Verdict.VIOLATED
    )


class ResponseRow:
    """Randomised response on every bit of a neighbour list, with an exact keep probability."""

    name = "response row"

    def __init__(self, keep):
        self.keep = keep

    def distribution(self, data):
        outcomes = np.array(list(itertools.product((0, 1), repeat=len(data))))
        return FiniteLaw(
            outcomes,
            [
                math.prod(
                    self.keep if a == b else 1 - self.keep
                    for a, b in zip(y, data, strict=True)
                )
                for y in outcomes
            ],
        )


def test_the_loss_of_a_response_row_depends_on_the_number_of_differing_bits():
    row, zeros = ResponseRow(Fraction(3, 4)), np.zeros(5, int)
    for differ in range(6):
        other = zeros.copy()
        other[:differ] = 1
        loss = pair_loss(row.distribution(zeros), row.distribution(other))
        assert (loss.lower, loss.upper) == pytest.approx(
            (differ * math.log(3),) * 2, abs=1e-12
        )


def test_all_pairs_of_a_response_row_are_certified():
    evidence = exact_evidence(
        ResponseRow(Fraction(3, 4)), PureDP(1.1), NeighbourList(5)
    )
    assert evidence.verdict is Verdict.CERTIFIED
    assert evidence.details.pairs_enumerated == 4 * 2**3
    assert (
        exact_evidence(
            ResponseRow(Fraction(3, 4)), PureDP(1.09), NeighbourList(5)
        ).verdict
        is Verdict.VIOLATED
    )


def truncated_geometric(n, a):
    """The law of a geometrically noised count clamped to 0..n (Ghosh, Roughgarden & Sundararajan 2009)."""

    def law(x):
        ends = [a**x / (1 + a), a ** (n - x) / (1 + a)]
        return [
            ends[0],
            *((1 - a) / (1 + a) * a ** abs(x - y) for y in range(1, n)),
            ends[1],
        ]

    return law


def test_the_truncated_geometric_mechanism_is_tight():
    near = Neighbours([(x, x + 1) for x in range(5)])
    evidence = exact_evidence(
        Stated(truncated_geometric(5, Fraction(1, 3))), PureDP(2.0), near
    )
    assert evidence.epsilon_lower == pytest.approx(math.log(3), rel=1e-14)
    law = truncated_geometric(5, Fraction(1, 3))
    assert (
        verdict(law, PureDP(5 * math.log(3) + 1e-9), AnyValues(tuple(range(6))))
        is Verdict.CERTIFIED
    )
    assert (
        verdict(law, PureDP(5 * math.log(3) - 1e-9), AnyValues(tuple(range(6))))
        is Verdict.VIOLATED
    )


TINY = Fraction(1, 10**30)


@pytest.mark.parametrize(
    "other", [[Fraction(0), Fraction(1)], [1 - TINY, TINY]], ids=["disjoint", "tiny"]
)
def test_an_output_that_only_one_input_gives_is_an_infinite_epsilon(other):
    evidence = exact_evidence(
        Stated({0: [Fraction(1), Fraction(0)], 1: other}), PureDP(50.0), BIT
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.epsilon_lower == evidence.epsilon_upper == math.inf
    assert "∞" in evidence.statement


def test_outcomes_that_one_law_does_not_list_count_as_impossible():
    laws = {
        0: FiniteLaw(np.array([0, 1]), [Fraction(1, 2)] * 2),
        1: FiniteLaw(np.array([1, 2]), [Fraction(1, 2)] * 2),
    }
    evidence = exact_evidence(Stated(laws), ApproxDP(1.0, 0.5), BIT)
    assert evidence.verdict is Verdict.CERTIFIED
    assert (
        exact_evidence(Stated(laws), ApproxDP(1.0, 0.49), BIT).verdict
        is Verdict.VIOLATED
    )


def test_the_order_of_outcomes_and_their_type_do_not_matter():
    one = FiniteLaw(
        np.array([0, 1, 2]), [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]
    )
    other = FiniteLaw(
        np.array([2.0, 0.0, 1.0]), [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)]
    )
    assert pair_loss(one, other).upper == 0.0


def test_outputs_of_one_input_alone_leave_no_epsilon_for_a_smaller_delta():
    p = [Fraction(6, 10), Fraction(3, 10), Fraction(1, 10), Fraction(0)]
    q = [Fraction(1, 10), Fraction(2, 10), Fraction(1, 2), Fraction(2, 10)]
    for delta, epsilon in (
        (0.21, math.log(4.9)),
        (0.2 + 1e-9, math.log(5)),
        (0.2 - 1e-9, math.inf),
    ):
        evidence = exact_evidence(Stated({0: p, 1: q}), ApproxDP(2.0, delta), BIT)
        assert evidence.epsilon_lower == pytest.approx(epsilon, rel=1e-7)
        assert evidence.epsilon_upper == pytest.approx(epsilon, rel=1e-7)


def test_a_tight_claim_is_certified_only_when_it_was_rounded_to_the_safe_side():
    with precision():
        q = arb(1).exp() / (1 + arb(1).exp())
        below = float_below(q)
        above = math.nextafter(below, 1)
        assert arb(above) > q
    assert verdict(bit(Fraction(below)), PureDP(1.0)) is Verdict.CERTIFIED
    assert verdict(bit(Fraction(above)), PureDP(1.0)) is Verdict.NOT_REFUTED
    assert verdict(bit(Fraction(above)), PureDP(1.0 - 1e-9)) is Verdict.VIOLATED
    assert (
        verdict(bit(Fraction(below)), PureDP(math.nextafter(1.0, 0) - 1e-15))
        is Verdict.NOT_REFUTED
    )


@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-9, 1e-15])
def test_a_tight_approximate_claim_is_not_violated_by_the_rounding_of_its_epsilon(
    delta,
):
    """A keep probability that is 1e-17 too large changes δ(ε) by about 1e-17, whatever delta was claimed."""
    with precision():
        above = math.nextafter(float_below(arb(1).exp() / (1 + arb(1).exp())), 1)
    rest = 1 - Fraction(delta)
    laws = {
        0: [
            rest * Fraction(above),
            rest * (1 - Fraction(above)),
            Fraction(delta),
            Fraction(0),
        ],
        1: [
            rest * (1 - Fraction(above)),
            rest * Fraction(above),
            Fraction(0),
            Fraction(delta),
        ],
    }
    assert verdict(laws, ApproxDP(1.0, delta)) is Verdict.NOT_REFUTED
    assert verdict(laws, ApproxDP(1.0 + 1e-9, delta)) is Verdict.CERTIFIED
    assert verdict(laws, ApproxDP(1.0 - 1e-6, delta)) is Verdict.VIOLATED


@pytest.mark.parametrize("excess", [1e-9, 1e-6, 0.1])
def test_a_claim_that_is_exceeded_beyond_rounding_is_violated(excess):
    keep = Fraction(1 / (1 + math.exp(-1.0 - excess)))
    evidence = exact_evidence(Stated(bit(keep)), PureDP(1.0), BIT)
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.epsilon_lower > 1.0
    assert (
        "0 | 1" in evidence.counterexample.pair
        or "1 | 0" in evidence.counterexample.pair
    )
    assert "factor of 2.71" in evidence.counterexample.explanation or excess == 0.1


def test_float_probabilities_cannot_certify_a_tight_claim_but_a_loose_one():
    keep = 1 / (1 + math.exp(-1.0))
    for shift in (0.0, -1e-15, -1e-13, 1e-10, -1e-10):
        assert verdict(bit(keep + shift), PureDP(1.0)) is Verdict.NOT_REFUTED
    assert verdict(bit(keep), PureDP(1.0 + 1e-8)) is Verdict.CERTIFIED
    assert verdict(bit(keep), PureDP(1.0 - 1e-8)) is Verdict.VIOLATED


def test_bounds_are_rounded_outwards():
    for p in (Fraction(3, 4), Fraction(2, 3), Fraction(7, 11), Fraction(99, 100)):
        evidence = exact_evidence(Stated(bit(p)), PureDP(9.0), BIT)
        with precision():
            truth = (arb(p.numerator) / (p.denominator - p.numerator)).log()
            assert arb(evidence.epsilon_lower) <= truth <= arb(evidence.epsilon_upper)
        assert evidence.epsilon_upper - evidence.epsilon_lower < 1e-14


@pytest.mark.parametrize(
    "options",
    [{"play": [Pair(0, 1)]}, {"adjacency": Neighbours([(0, 1)])}],
    ids=["chosen", "given"],
)
def test_without_all_pairs_nothing_is_certified(options):
    evidence = exact_evidence(
        Stated(bit(Fraction(3, 4))), PureDP(5.0), **{"adjacency": BIT, **options}
    )
    assert evidence.verdict is Verdict.NOT_REFUTED
    assert evidence.epsilon_upper is None
    assert evidence.epsilon_lower == pytest.approx(math.log(3))
    assert "not all" in evidence.statement
    assert (
        verdict(bit(Fraction(3, 4)), PureDP(1.0), **{"adjacency": BIT, **options})
        is Verdict.VIOLATED
    )


def test_pairs_that_are_not_adjacent_are_refused():
    with pytest.raises(AdjacencyError):
        verdict(bit(Fraction(3, 4)), PureDP(5.0), play=[Pair(0, 7)])


def test_the_worst_pair_leads():
    keep = {0: Fraction(1, 2), 1: Fraction(6, 10), 2: Fraction(9, 10)}
    evidence = exact_evidence(
        Stated(lambda x: [keep[x], 1 - keep[x]]), PureDP(1.0), AnyValues((0, 1, 2))
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.details.worst_pair == "2 | 0"
    assert evidence.epsilon_lower == pytest.approx(math.log(5))
    assert "0.5" in evidence.counterexample.explanation
    assert "0.1" in evidence.counterexample.explanation


def test_a_gaussian_claim_is_refuted_by_an_impossible_output_and_never_certified():
    assert verdict(bit(Fraction(3, 4)), GaussianDP(5.0)) is Verdict.NOT_REFUTED
    evidence = exact_evidence(
        Stated({0: [Fraction(1), Fraction(0)], 1: [Fraction(9, 10), Fraction(1, 10)]}),
        GaussianDP(5.0),
        BIT,
    )
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.epsilon_lower is None, "the bounds are about mu"
    assert evidence.epsilon_upper is None
    assert (
        exact_evidence(
            LaplaceMechanism(1.0), GaussianDP(1.0), AnyValues((0.0, 1.0), finite=True)
        ).verdict
        is Verdict.NOT_REFUTED
    )


HALF = [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]
# The third output of the second law has probability 0.001 ± 0.002: perhaps 0, so epsilon may be infinite.
NEAR_ZERO = [arb(0.4995, 0.001), arb(0.4995, 0.001), arb(0.001, 0.002)]


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize(
    "claim", [PureDP(1.0), PureDP(20.0), ApproxDP(1.0, 0.4985)], ids=str
)
def test_a_probability_that_may_be_zero_neither_certifies_nor_violates(claim, swap):
    laws = {0: HALF, 1: NEAR_ZERO} if not swap else {0: NEAR_ZERO, 1: HALF}
    if claim == PureDP(1.0):
        # Whatever the third probability is, at most 0.003, the ratio is at least 166 > e: this one is certain.
        assert verdict(laws, claim) is not Verdict.CERTIFIED
    else:
        assert verdict(laws, claim) is Verdict.NOT_REFUTED


def test_a_pair_that_is_undecided_leaves_no_upper_bound():
    laws = {
        0: [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
        1: [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
        2: [arb(0.5, 0.01), arb(0.49, 0.01), arb(0.01, 0.02)],
    }
    for order in itertools.permutations((0, 1, 2)):
        evidence = exact_evidence(Stated(laws), PureDP(50.0), AnyValues(order))
        assert evidence.verdict is Verdict.NOT_REFUTED
        assert evidence.epsilon_upper in (None, math.inf)
        assert not math.isnan(evidence.epsilon_lower)


WIDE = (
    [arb(0.11, 0.09), arb(0.39, 0.09), Fraction(1, 2)],
    [Fraction(1, 10), Fraction(4, 10), Fraction(1, 2)],
)


@pytest.mark.parametrize("swap", [False, True])
def test_a_wide_ratio_is_bounded_in_both_directions(swap):
    """P/Q in [0.2, 2] has its middle above 1, but Q/P may be 5; another output with ratio 1 must not hide that."""
    laws = dict(enumerate(WIDE[::-1] if swap else WIDE))
    assert verdict(laws, PureDP(1.0)) is Verdict.NOT_REFUTED


def test_the_upper_bound_of_a_wide_ratio_bounds_every_law_inside():
    one, other = (FiniteLaw(np.arange(3), law) for law in WIDE)
    assert pair_loss(one, other).upper >= math.log(5) - 1e-9
    assert pair_loss(other, one).upper >= math.log(5) - 1e-9


@pytest.mark.parametrize("width", [1e-3, 0.05, 0.2])
def test_balls_around_the_boundary_decide_nothing(width):
    laws = {
        0: [arb(0.75, width), arb(0.25, width)],
        1: [arb(0.25, width), arb(0.75, width)],
    }
    assert verdict(laws, PureDP(math.log(3))) is Verdict.NOT_REFUTED
    assert (
        verdict(laws, ApproxDP(0.5, 0.75 - math.exp(0.5) * 0.25)) is Verdict.NOT_REFUTED
    )


def test_narrow_balls_decide():
    laws = {
        0: [arb(0.75, 1e-6), arb(0.25, 1e-6)],
        1: [arb(0.25, 1e-6), arb(0.75, 1e-6)],
    }
    assert verdict(laws, PureDP(math.log(3) + 1e-4)) is Verdict.CERTIFIED
    assert verdict(laws, PureDP(math.log(3) - 1e-4)) is Verdict.VIOLATED


def test_a_nonsense_ball_decides_nothing():
    laws = {0: [arb(0.5, 100), arb(0.5, 100)], 1: [Fraction(1, 2), Fraction(1, 2)]}
    for claim in (PureDP(1.0), ApproxDP(1.0, 0.1)):
        assert verdict(laws, claim) is Verdict.NOT_REFUTED


class ByLength:
    """An adjacency of one's own, over inputs that a short rendering cannot tell apart."""

    name = "own adjacency"

    def __init__(self, data, neighbour):
        self.pair = Pair(data, neighbour)

    def check(self, pair):
        pass

    def pairs(self):
        return [self.pair]

    def exhaustive(self):
        return [self.pair]


def look_alikes():
    big, other = np.zeros((40, 40), int), np.zeros((40, 40), int)
    other[20, 21] = 1
    yield "long arrays in a tuple", (big, 1), (other, 1), lambda data: data[0].sum()
    yield (
        "lists of close floats",
        [np.array([0.1])],
        [np.array([0.1 + 1e-12])],
        lambda data: data[0][0] != 0.1,
    )
    yield (
        "same bytes, another type",
        np.array([1], np.int64),
        np.array([1, 0], np.int32),
        len,
    )
    yield (
        "same bytes, another shape",
        np.zeros(4),
        np.zeros((2, 2)),
        lambda data: data.ndim,
    )

    class Opaque:
        def __init__(self, value):
            self.value = value

        def __repr__(self):
            return "Opaque"

    yield "objects that print alike", Opaque(0), Opaque(1), lambda data: data.value


LOOK_ALIKES = list(look_alikes())


@pytest.mark.parametrize(
    ("data", "neighbour", "feature"),
    [case[1:] for case in LOOK_ALIKES],
    ids=[c[0] for c in LOOK_ALIKES],
)
def test_inputs_that_look_alike_are_not_taken_for_one(data, neighbour, feature):
    first = feature(data)

    def law(x):
        return (
            [Fraction(99, 100), Fraction(1, 100)]
            if feature(x) == first
            else [Fraction(1, 100), Fraction(99, 100)]
        )

    assert verdict(law, PureDP(1.0), ByLength(data, neighbour)) is Verdict.VIOLATED


def test_all_pairs_of_long_values_are_enumerated():
    values = [np.zeros(30) for _ in range(3)]
    values[1][0], values[2][15] = 1, 1

    def law(x):
        return (
            [Fraction(99, 100), Fraction(1, 100)]
            if x[15]
            else [Fraction(1, 2), Fraction(1, 2)]
        )

    assert verdict(law, PureDP(1.0), AnyValues(values)) is Verdict.VIOLATED


def test_the_laplace_mechanism_is_certified_by_its_closed_form():
    numbers = AnyValues((0.0, 1.0), finite=True)
    assert (
        exact_evidence(LaplaceMechanism(1.0), PureDP(1.0), numbers).verdict
        is Verdict.CERTIFIED
    )
    assert (
        exact_evidence(LaplaceMechanism(1.0), PureDP(1.0 - 1e-9), numbers).verdict
        is Verdict.VIOLATED
    )
    evidence = exact_evidence(LaplaceMechanism(0.3), PureDP(1.0 / 0.3), numbers)
    assert evidence.verdict in (Verdict.CERTIFIED, Verdict.NOT_REFUTED), (
        "equal up to the rounding of 1/0.3"
    )
    loss = laplace_loss(
        LaplaceLaw(np.zeros(2), np.ones(2)), LaplaceLaw(np.ones(2), np.ones(2))
    )
    assert (loss.lower, loss.upper) == (2.0, 2.0)


@pytest.mark.parametrize("delta", [1e-6, 0.1])
def test_a_laplace_law_under_an_approximate_claim_is_judged_and_does_not_crash(delta):
    """Pure ε-DP implies (ε, δ)-DP; beyond it the truth here is δ(ε) = 1 - e^((ε - ε')/2) for one coordinate."""
    numbers = AnyValues((0.0, 1.0), finite=True)
    assert exact_evidence(
        LaplaceMechanism(1.0), ApproxDP(1.0, delta), numbers
    ).verdict in (
        Verdict.CERTIFIED,
        Verdict.NOT_REFUTED,
    )
    loose = 1 - math.exp((1.0 - 1.5) / 2)
    assert (
        exact_evidence(
            LaplaceMechanism(1 / 1.5), ApproxDP(1.0, loose + 1e-6), numbers
        ).verdict
        is not Verdict.VIOLATED
    )
    tight = exact_evidence(
        LaplaceMechanism(1 / 1.5), ApproxDP(1.0, loose - 1e-6), numbers
    )
    assert tight.verdict is not Verdict.CERTIFIED


def test_the_leaky_response_is_tight_for_its_own_parameters_only():
    loose = LeakyResponse(1.0 - 1e-9, 0.01)
    assert exact_evidence(loose, ApproxDP(1.0, 0.01), BIT).verdict is Verdict.CERTIFIED
    assert (
        exact_evidence(
            LeakyResponse(1.0, 0.01 + 1e-9), ApproxDP(1.0, 0.01), BIT
        ).verdict
        is Verdict.VIOLATED
    )
    assert (
        exact_evidence(
            LeakyResponse(1.0 + 1e-9, 0.01), ApproxDP(1.0, 0.01), BIT
        ).verdict
        is Verdict.VIOLATED
    )
    assert exact_evidence(loose, PureDP(30.0), BIT).epsilon_lower == math.inf


def test_the_curve_for_plots_runs_from_total_variation_to_zero():
    evidence = exact_evidence(Stated(bit(Fraction(3, 4))), PureDP(2.0), BIT)
    curve, claimed = (
        np.array(evidence.details.curve),
        np.array(evidence.details.claim_curve),
    )
    assert curve[0].tolist() == pytest.approx([0.0, 0.5])
    assert curve[-1, 1] == 0.0
    assert (curve[:, 1] <= claimed[:, 1] + 1e-12).all(), (
        "a certified mechanism lies below its claim everywhere"
    )


@pytest.mark.filterwarnings("error")
def test_the_curve_of_an_infinite_or_very_large_loss_is_a_curve():
    p = FiniteLaw(np.arange(3), [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)])
    q = FiniteLaw(np.arange(2), [Fraction(1, 2), Fraction(1, 2)])
    points = np.array([0.0, 0.5, 5.0, 800.0])
    assert np.array(delta_curve(p, q, points))[:, 1].tolist() == pytest.approx(
        [0.25] * 4
    )


def test_which_mechanisms_state_a_law():
    assert has_exact_law(Response(1.0), AnyValues([0, 1]))
    assert has_exact_law(LaplaceMechanism(1.0), AnyValues([0, 1]))
    assert not has_exact_law(GaussianMechanism(1.0), AnyValues([0, 1]))
    assert not has_exact_law(lambda data, size, *, rng: 0, AnyValues([0, 1]))


def test_the_counterexample_is_the_violating_output_that_weighs_most():
    """A ratio of e^5 at probability 1e-6 is the largest, but the output with e^1.5 and probability .3 is what one sees."""
    rare, common = Fraction(1, 10**6), Fraction(3, 10)
    p = [rare, common, 1 - rare - common]
    q = [rare / 148, common / 4, 1 - rare / 148 - common / 4]
    evidence = exact_evidence(Stated({0: p, 1: q}), PureDP(1.0), AnyValues((0, 1)))
    assert evidence.verdict is Verdict.VIOLATED
    assert evidence.epsilon_lower == pytest.approx(math.log(148))
    assert evidence.counterexample.output == "1"
    assert (
        "a factor of 4 = e^1.38629436112; the claim is 1-DP. Over all outputs ε = 4.9972"
        in (evidence.counterexample.explanation)
    )


def test_where_refuting_is_enough_the_first_pair_that_breaks_the_claim_is_all_that_counts():
    asked = []

    class Leaky:
        name = "leaky"

        def distribution(self, data):
            asked.append(data)
            return FiniteLaw(
                np.array([0, 1]),
                [Fraction(1, 1 + 2**data), Fraction(2**data, 1 + 2**data)],
            )

    domain = AnyValues((1, 2, 3, 4, 5), finite=True)
    found = exact_evidence(Leaky(), PureDP(0.3), domain, refuting=True)
    assert found.verdict is Verdict.VIOLATED
    assert found.counterexample is not None
    assert len(set(asked)) == 2
    whole = exact_evidence(Leaky(), PureDP(0.3), domain)
    assert found.epsilon_lower <= whole.epsilon_lower
    true, same = (
        exact_evidence(Leaky(), PureDP(9.0), domain, refuting=refuting)
        for refuting in (True, False)
    )
    assert true == same
    assert true.verdict is Verdict.CERTIFIED
