"""What is only bounded is never called lost: laws before post-processing, envelopes, missing probability, node names."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from auditdp import (
    AnyValues,
    ApproxDP,
    Audit,
    Box,
    Edges,
    GaussianDP,
    Pair,
    PureDP,
    QueryAnswers,
    Records,
)
from auditdp.adjacency import NeighbourList, NeighbourLists
from auditdp.auditing.gathering import Settings
from auditdp.auditing.judging import run_audit
from auditdp.betting.forecasters.forecaster import default_forecasters
from auditdp.errors import AdjacencyError, MechanismError
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.evidence.loss_of_laws import pair_loss
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
from auditdp.record.budget import Budget
from auditdp.record.results import Verdict

# Laws before post-processing.

NUMBERS = AnyValues((0.0, 1.0), finite=True)


class Sign:
    """The sign of x - 1/2 + Lap(1/2) for x in {0, 1}: ln((1 - e^-1/2)/(e^-1/2)) = 1.490, where the noise loses 2."""

    name = "sign"

    def __call__(self, data, size, *, rng):
        return np.sign(data - 0.5 + rng.laplace(scale=0.5, size=size))

    def before_processing(self, data):
        return LaplaceLaw(np.array([data]), np.array([0.5]))


class OldName(Sign):
    before_processing = None
    laplace = Sign.before_processing


class NoisyBit(Sign):
    """The sign of x - 1/2 + N(0, 1): ln(Φ(1/2)/Φ(-1/2)) = .806, where the noise has no pure ε."""

    def before_processing(self, data):
        return GaussianLaw(np.array([data]), 1.0)


@pytest.mark.parametrize("kind", [Sign, OldName])
def test_a_law_before_post_processing_refutes_nothing(kind):
    found = exact_evidence(kind(), PureDP(1.6), NUMBERS)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "that is the law before post-processing" in found.statement
    assert found.counterexample is None
    assert (found.epsilon_lower, found.epsilon_upper) == (None, 2.0)
    assert found.details.exact_epsilon is None
    assert capabilities(kind()).law_of_output is None
    assert capabilities(kind()).law(0.0).scale == 0.5


def test_a_law_before_post_processing_certifies():
    found = exact_evidence(Sign(), PureDP(2.0), NUMBERS)
    assert found.verdict is Verdict.CERTIFIED
    assert (found.epsilon_lower, found.epsilon_upper) == (None, 2.0)
    assert "and the output at most that" in found.statement


def test_gaussian_noise_before_post_processing_is_an_upper_bound_too():
    assert (
        exact_evidence(NoisyBit(), GaussianDP(1.0), NUMBERS).verdict
        is Verdict.CERTIFIED
    )
    for claim in (PureDP(0.9), ApproxDP(0.81, 0.01)):
        found = exact_evidence(NoisyBit(), claim, NUMBERS)
        assert found.verdict is Verdict.NOT_REFUTED
        assert (found.counterexample, found.epsilon_lower) == (None, None)


def test_noise_of_declared_sensitivity_before_post_processing_certifies_and_does_not_refute():
    class Clamped(Sign):
        sensitivity, norm = 1.0, "l1"

        def query(self, data, rng):
            return data

        def before_processing(self, data):
            return LaplaceLaw(np.asarray(data, float), np.full(len(data), 1.0))

    assert (
        exact_evidence(Clamped(), PureDP(1.0), QueryAnswers(1)).verdict
        is Verdict.CERTIFIED
    )
    assert (
        exact_evidence(Clamped(), PureDP(0.9), QueryAnswers(1)).verdict
        is Verdict.NOT_REFUTED
    )


def test_a_whole_audit_of_a_post_processed_output_stands():
    audit = Audit(Sign(), PureDP(1.6), NUMBERS)
    result = run_audit(
        audit, Settings(alpha=1e-6, budget=Budget(3_000), root_seed=0, key="sign")
    )
    assert result.verdict is Verdict.NOT_REFUTED
    assert result.epsilon_lower <= math.log((1 - math.exp(-1) / 2) / (math.exp(-1) / 2))


def test_a_control_with_a_law_before_post_processing_is_left_to_the_game():
    class Louder(Sign):
        def __call__(self, data, size, *, rng):
            return np.sign(data + rng.laplace(scale=0.05, size=size) - 0.5)

        def before_processing(self, data):
            return LaplaceLaw(np.array([data]), np.array([0.05]))

    assert not has_exact_law(Louder(), NUMBERS, refuting=True)
    audit = Audit(Sign(), PureDP(2.0), NUMBERS, controls=[Louder()])
    result = run_audit(
        audit, Settings(alpha=1e-6, budget=Budget(3_000), root_seed=0, key="sign")
    )
    assert result.verdict is Verdict.CERTIFIED
    assert result.surviving_controls == []


def test_a_laplace_law_of_the_output_is_forecast_with():
    class Plain(Sign):
        before_processing = None
        distribution = Sign.before_processing

    assert default_forecasters(Plain())[0].name == "likelihood ratio"
    assert default_forecasters(Sign())[0].name != "likelihood ratio"
    assert exact_evidence(Plain(), PureDP(1.6), NUMBERS).verdict is Verdict.VIOLATED
    result = run_audit(
        Audit(Plain(), PureDP(2.0), NUMBERS),
        Settings(alpha=1e-6, budget=Budget(500), root_seed=0, key="plain"),
    )
    assert result.verdict is Verdict.CERTIFIED


def test_a_mechanism_without_a_law_is_named():
    with pytest.raises(MechanismError, match=r"states no law .* distribution\(data\)"):
        exact_evidence(lambda data, rng: 0, PureDP(1.0), NUMBERS)


# Envelopes.


class Coins:
    """Answers each of d bits with probability 3/4 for x = 1 and 1/4 for x = -1: d ln 3; the envelope says what it likes."""

    name = "coins"

    def __init__(self, dimension, uses, least=Fraction(1, 4)):
        self.dimension, self.uses, self.least = dimension, uses, least

    def distribution(self, data):
        ps = [Fraction(1, 2) + Fraction(float(x)) / 4 for x in data]
        outcomes = list(itertools.product((0, 1), repeat=len(ps)))
        chances = [
            math.prod(p if y else 1 - p for p, y in zip(ps, ys, strict=True))
            for ys in outcomes
        ]
        return FiniteLaw(np.array(outcomes), chances)

    def envelope(self):
        high, low = np.full(self.dimension, 1.0), np.full(self.dimension, -1.0)
        return Envelope(
            [0, 1],
            [self.least] * 2,
            [Fraction(3, 4)] * 2,
            [(low, high), (high, low)],
            self.uses,
        )


def test_an_envelope_that_its_own_law_exceeds_certifies_nothing():
    box = Box(-1, 1, 5)
    broken = exact_evidence(Coins(5, 1), PureDP(1.2), box)
    assert broken.verdict is Verdict.VIOLATED
    assert broken.epsilon_lower == pytest.approx(5 * math.log(3))
    loose = exact_evidence(Coins(5, 1), PureDP(6.0), box)
    assert loose.verdict is Verdict.NOT_REFUTED
    assert (
        "more than its envelope allows, 1.09861228867: correct the envelope"
        in loose.statement
    )
    assert loose.epsilon_upper is None
    assert exact_evidence(Coins(5, 5), PureDP(5.5), box).verdict is Verdict.CERTIFIED


def test_an_envelope_that_no_pair_attains_refutes_nothing():
    for mechanism in (Coins(1, 2), Coins(1, 1, least=Fraction(1, 5))):
        found = exact_evidence(mechanism, PureDP(1.2), Box(-1, 1))
        assert found.verdict is Verdict.NOT_REFUTED
        assert found.epsilon_lower == pytest.approx(math.log(3))
        assert "no pair that was looked at attains" in found.statement
        certified = exact_evidence(mechanism, PureDP(2.5), Box(-1, 1))
        assert certified.verdict is Verdict.CERTIFIED
        assert certified.statement.startswith("At most ε = ")


def test_a_law_that_exceeds_its_envelope_between_the_ends_is_found():
    class Bulge(Coins):
        def distribution(self, data):
            p = (
                Fraction(9, 10)
                if abs(float(data[0])) < 0.3
                else Fraction(1, 2) + Fraction(float(data[0])) / 4
            )
            return FiniteLaw(np.array([0, 1]), [1 - p, p])

    assert (
        exact_evidence(Bulge(1, 1), PureDP(1.2), Box(-1, 1)).verdict is Verdict.VIOLATED
    )


def test_an_envelope_without_a_law_says_so():
    class Alone(Coins):
        distribution = None

    found = exact_evidence(Alone(2, 2), PureDP(2.5), Box(-1, 1, 2))
    assert found.verdict is Verdict.CERTIFIED
    assert any(
        "no law was there to compare" in assumption for assumption in found.assumptions
    )
    assert (
        exact_evidence(Alone(2, 2), ApproxDP(2.5, 1e-9), Box(-1, 1, 2)).verdict
        is Verdict.CERTIFIED
    )
    assert (
        exact_evidence(Alone(2, 2), ApproxDP(2.0, 1e-9), Box(-1, 1, 2)).verdict
        is Verdict.NOT_REFUTED
    )


# Probability that is missing.

LACK = 5e-10


def lacking(lack, first=0.5):
    return FiniteLaw(np.array([0, 1]), [first - lack, 1 - first])


@pytest.mark.parametrize("side", [0, 1])
def test_missing_mass_counts_as_delta(side):
    laws = [FiniteLaw(np.array([0, 1]), [Fraction(1, 2)] * 2)] * 2
    laws[side] = lacking(LACK)
    loss = pair_loss(*laws, epsilon=1.0, delta=1e-10)
    assert 0 <= max(0.0, float(loss.delta.lower())) <= 1e-10
    assert float(loss.delta.upper()) >= LACK
    assert (loss.upper, loss.needed[1]) == (math.inf, math.inf)
    assert loss.lower < 1e-8


def test_a_law_that_lacks_mass_is_not_certified_below_what_it_lacks():
    class Lacking:
        name = "lacking"

        def distribution(self, data):
            return (
                lacking(LACK)
                if data
                else FiniteLaw(np.array([0, 1]), [Fraction(1, 2)] * 2)
            )

    bit = AnyValues((0, 1))
    for claim in (ApproxDP(1.0, 1e-10), PureDP(20.0), GaussianDP(5.0)):
        assert exact_evidence(Lacking(), claim, bit).verdict is Verdict.NOT_REFUTED
    assert (
        exact_evidence(Lacking(), ApproxDP(1.0, 1e-8), bit).verdict is Verdict.CERTIFIED
    )


def test_an_output_that_a_lacking_law_does_not_list_may_have_what_is_missing():
    """1e-6 against at most 5e-10, and what floats are off by: a factor of 660 at least, and no infinite one, is shown."""
    most = LACK + 1e-9 + 1e-12
    one = FiniteLaw(np.array([0, 1]), [1 - Fraction(1, 10**6), Fraction(1, 10**6)])
    loss = pair_loss(one, FiniteLaw(np.array([0]), [1 - LACK]), epsilon=1.0, delta=1e-7)
    assert loss.lower == pytest.approx(math.log(1e-6 / most), rel=1e-3)
    assert loss.upper == math.inf
    assert math.isfinite(loss.needed[0])
    assert float(loss.delta.lower()) == pytest.approx(1e-6 - math.e * most, rel=1e-3)


def test_what_floats_may_lack_counts_as_delta_unless_their_list_is_taken_for_complete():
    """A sum of floats within rounding of 1 lists everything for a pure ε, which holds with any δ."""

    class Floats:
        name = "floats"

        def distribution(self, data):
            return FiniteLaw(np.array([0, 1]), [0.6, 0.4] if data else [0.4, 0.6])

    bit = AnyValues((0, 1))
    assert exact_evidence(Floats(), PureDP(0.5), bit).verdict is Verdict.CERTIFIED
    assert (
        exact_evidence(Floats(), ApproxDP(0.5, 1e-13), bit).verdict is Verdict.CERTIFIED
    )
    delta = pair_loss(*map(Floats().distribution, (0, 1)), epsilon=0.5).delta
    assert 1e-9 < float(delta.upper()) < 3e-9
    for claim in (PureDP(0.5), ApproxDP(0.5, 1e-13)):
        assumed = exact_evidence(Floats(), claim, bit).assumptions
        assert (
            "the floats of its law are right to a relative 1e-09 and an absolute 1e-12 of probability"
            in assumed
        )
        assert (
            "for a pure ε: its law lists every output of positive probability"
            in assumed
        )


def test_step_laws_that_lack_mass_are_treated_alike():
    loss = pair_loss(
        StepLaw([0, 1], [1 - LACK]), StepLaw([0, 1], [Fraction(1)]), epsilon=0.5
    )
    assert loss.upper == math.inf
    assert float(loss.delta.upper()) >= LACK


@pytest.mark.parametrize(
    "probabilities",
    [[0.5, 0.5 + 2e-9], [0.5, 0.5 - 2e-9], [math.nan, 0.5], [math.inf, 0.0]],
)
def test_floats_that_are_no_law_are_refused(probabilities):
    with pytest.raises(MechanismError, match="off by 1e-9"):
        FiniteLaw(np.array([0, 1]), probabilities)


# Domains and orders of nodes.


def test_floating_point_values_are_a_grid_unless_declared_to_be_all():
    class Clip:
        name = "clip"

        def distribution(self, data):
            p = Fraction(1, 2) + Fraction(float(np.ravel(data)[0])) / 8
            return FiniteLaw(np.array([0, 1]), [1 - p, p])

    grid = (0.0, 0.5, 1.0)
    found = exact_evidence(Clip(), PureDP(1.0), AnyValues(grid))
    assert found.verdict is Verdict.NOT_REFUTED
    assert (
        "give AnyValues(..., finite=True) if these values are the whole domain"
        in found.statement
    )
    assert "at 3 values" in found.statement
    whole = exact_evidence(Clip(), PureDP(1.0), AnyValues(grid, finite=True))
    assert whole.verdict is Verdict.CERTIFIED
    assert "scope: these values are the whole domain" in whole.assumptions
    for values in (
        [np.zeros(1), np.ones(1)],
        ((0, 0.5), (0, 1.0)),
        (np.float32(0), np.float32(1)),
    ):
        assert AnyValues(values).exhaustive() is None
    assert AnyValues((0, 1)).exhaustive() is not None
    assert AnyValues((0, 1), finite=False).exhaustive() is None


class OfNames:
    """Randomised response on one edge by name, or on a degree; the rest of the graph is not looked at."""

    def __init__(self, what):
        self.name, self.what = what, what

    def distribution(self, data):
        a = np.asarray(data)
        if self.what == "edge (1, 3)":
            p = Fraction(int(a[1, 3]))
        elif self.what == "degree of node 2":
            p = Fraction(1 + int(a[2].sum()), 2 + len(a))
        elif self.what == "weighted edges":
            weight = sum(
                (i + 1) * int(a[i, j])
                for i, j in itertools.combinations(range(len(a)), 2)
            )
            p = Fraction(10 + weight, 1000)
        else:
            p = Fraction(1 + int(a.sum()) // 2, 2 + len(a) ** 2)
        return FiniteLaw(np.array([0, 1]), [1 - p, p])


@pytest.mark.parametrize("what", ["edge (1, 3)", "degree of node 2", "weighted edges"])
@pytest.mark.parametrize("among", [None, (1, 2, 3)])
def test_a_law_that_depends_on_the_names_of_nodes_is_not_certified_up_to_their_order(
    what, among
):
    adjacency = Edges(4, unlabelled=True, among=among)
    truth = max(
        pair_loss(
            OfNames(what).distribution(p.data), OfNames(what).distribution(p.neighbour)
        ).upper
        for p in Edges(4, among=among).exhaustive()
    )
    found = exact_evidence(OfNames(what), PureDP(20.0), adjacency)
    if truth == math.inf:
        assert found.verdict is Verdict.VIOLATED
    else:
        assert found.verdict is Verdict.NOT_REFUTED
        assert "the law depends on the order of the nodes" in found.statement
        assert found.epsilon_upper is None
        assert found.epsilon_lower == pytest.approx(truth, rel=1e-9)


def test_a_law_of_the_number_of_edges_is_certified_with_its_assumption():
    found = exact_evidence(OfNames("edges"), PureDP(1.0), Edges(5, unlabelled=True))
    assert found.verdict is Verdict.CERTIFIED
    assert any(
        "treats nodes alike" in assumption and "not proved" in assumption
        for assumption in found.assumptions
    )
    assert found.details.pairs_enumerated == len(Edges(5, unlabelled=True).exhaustive())


@pytest.mark.parametrize("among", [None, (0, 2, 3)])
def test_reordered_pairs_are_neighbours_and_cover_every_changing_edge(among):
    adjacency, rng = Edges(5, among=among, unlabelled=True), np.random.default_rng(0)
    changing = list(itertools.combinations(range(5) if among is None else among, 2))
    for pair in adjacency.exhaustive()[::7]:
        for number in range(len(changing)):
            other = adjacency.reordered(pair, number, rng)
            adjacency.check(other)
            assert (
                tuple(np.argwhere(np.triu(other.data != other.neighbour))[0])
                == changing[number]
            )
            assert sorted(other.data.sum(axis=0)) == sorted(pair.data.sum(axis=0))


def every_input(adjacency):
    if isinstance(adjacency, NeighbourList):
        return [
            np.array(x, np.int8)
            for x in itertools.product((0, 1), repeat=adjacency.nodes - 1)
        ]
    if isinstance(adjacency, QueryAnswers):
        levels = itertools.product(
            range(adjacency.largest + 1), repeat=adjacency.length
        )
        return [adjacency.sensitivity * np.array(x, float) for x in levels]
    if isinstance(adjacency, Records):
        rows = itertools.product(
            adjacency.values, repeat=adjacency.users * adjacency.dimension
        )
        return [np.array(x).reshape(adjacency.users, adjacency.dimension) for x in rows]
    if isinstance(adjacency, AnyValues):
        return list(adjacency.values)
    size = adjacency.nodes
    places = [(i, j) for i in range(size) for j in range(size) if i != j]
    if not isinstance(adjacency, NeighbourLists):
        places = [(i, j) for i, j in places if i < j]
    found = []
    for ones in itertools.product((0, 1), repeat=len(places)):
        matrix = np.zeros((size, size), np.int8)
        for (i, j), one in zip(places, ones, strict=True):
            matrix[i, j] = one
            matrix[j, i] = (
                matrix[j, i] if isinstance(adjacency, NeighbourLists) else one
            )
        found.append(matrix)
    return found


@pytest.mark.parametrize(
    "adjacency",
    [
        NeighbourList(4),
        NeighbourLists(3),
        NeighbourLists(3, (1,)),
        Edges(3),
        Edges(4),
        Edges(4, among=(0, 2, 3)),
        QueryAnswers(2, largest=2),
        QueryAnswers(2, "all", 0.5, largest=2),
        Records(2, (0.0, 1.0, 2.0)),
        Records(2, (0.0, 1.0), 2),
        AnyValues((0, 1, "a")),
    ],
    ids=lambda adjacency: adjacency.name,
)
def test_what_is_enumerated_is_every_pair_that_the_adjacency_accepts(adjacency):
    """An adjacency that enumerates says that these are all: its own check is the oracle, on every pair of inputs."""

    def name(data):
        return np.asarray(data).astype(str).tolist().__repr__()

    def accepted(a, b):
        try:
            adjacency.check(Pair(a, b))
        except AdjacencyError:
            return False
        return True

    inputs = every_input(adjacency)
    true = {
        frozenset((name(a), name(b)))
        for a, b in itertools.combinations(inputs, 2)
        if accepted(a, b)
    }
    listed = [
        frozenset((name(pair.data), name(pair.neighbour)))
        for pair in adjacency.exhaustive()
    ]
    assert set(listed) == true
    assert len(listed) == len(true)


# Where bounds come from.

HALF, UP = np.array([0.5]), np.array([1.5])
NEARLY = 0.5 * (1 + 1e-14)
COMPLETE, LACKING = (
    FiniteLaw(np.arange(2), [0.5, 0.5]),
    FiniteLaw(np.arange(2), [0.5, 0.5 - 1e-10]),
)


@pytest.mark.parametrize(
    ("p", "q", "source"),
    [
        (COMPLETE, COMPLETE, "the two probabilities of every output"),
        (
            COMPLETE,
            LACKING,
            "some are not listed, so that the pure ε has no upper bound",
        ),
        (
            LaplaceLaw(UP, HALF),
            LaplaceLaw(HALF, HALF),
            "in scales of the noise, summed over the coordinates",
        ),
        (
            LaplaceLaw(UP, HALF),
            LaplaceLaw(HALF, UP),
            "scales of the noise, which depend on the data",
        ),
        (
            LaplaceLaw(UP, HALF),
            LaplaceLaw(HALF, np.array([NEARLY])),
            "agree up to rounding only",
        ),
        (
            GaussianLaw(UP, 0.5),
            GaussianLaw(HALF, 0.5),
            "in deviations of the noise, which is μ",
        ),
        (
            GaussianLaw(UP, 0.5),
            GaussianLaw(HALF, 1.5),
            "deviations of the noise, which depend on the data",
        ),
        (GaussianLaw(UP, 0.5), GaussianLaw(HALF, NEARLY), "which leaves μ and δ open"),
    ],
)
def test_a_loss_says_what_it_is_computed_from(p, q, source):
    assert source in pair_loss(p, q, epsilon=1.0, delta=0.1).source


def test_evidence_says_what_the_loss_of_the_worst_pair_is_computed_from():
    class Scaled(Sign):
        def distribution(self, data):
            return LaplaceLaw(np.zeros(1), np.array([1.0 + data]))

    refuted = exact_evidence(Scaled(), PureDP(1.0), NUMBERS)
    assert refuted.verdict is Verdict.VIOLATED
    assert (
        "the scales of the noise, which depend on the data"
        in refuted.counterexample.explanation
    )
    assert refuted.details.loss_computed_from in refuted.counterexample.explanation

    class Rounded(Sign):
        def distribution(self, data):
            return GaussianLaw(np.array([data]), 1.0 if data else 1.0 + 1e-14)

    undecided = exact_evidence(Rounded(), ApproxDP(1.0, 0.2), NUMBERS)
    assert undecided.verdict is Verdict.NOT_REFUTED
    assert (
        f"enclosure of a loss computed from {undecided.details.loss_computed_from}"
        in undecided.statement
    )
