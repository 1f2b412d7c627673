"""Exact evidence beyond enumeration: envelopes over a domain, noise of declared sensitivity, and the search for pairs."""

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from auditdp import AnyValues, ApproxDP, Box, GaussianDP, PureDP, QueryAnswers
from auditdp.errors import AdjacencyError
from auditdp.evidence.exact import exact_evidence, has_exact_law
from auditdp.mechanism.laws import Envelope, FiniteLaw, GaussianLaw, LaplaceLaw, StepLaw
from auditdp.record.results import Verdict

THIRD = Fraction(1, 3)


@dataclass(frozen=True)
class Coin:
    """Answers 1 with probability (1 + x/3)/2 for each x in [-1, 1]: exactly ln 2 in local DP, between the two ends.

    ``uses`` is how many coordinates the envelope says there are, ``dimension`` how many there are.
    """

    uses: int = 1
    dimension: int = 1
    name = "coin"

    def distribution(self, data):
        ps = [(1 + Fraction(float(x)) * THIRD) / 2 for x in data]
        outcomes = list(itertools.product((0, 1), repeat=len(ps)))
        chances = [
            math.prod(p if y else 1 - p for p, y in zip(ps, ys, strict=True))
            for ys in outcomes
        ]
        return FiniteLaw(np.array(outcomes), chances)

    def envelope(self):
        ends = np.full(self.dimension, 1.0), np.full(self.dimension, -1.0)
        return Envelope(
            [0, 1],
            [THIRD, THIRD],
            [2 * THIRD, 2 * THIRD],
            [ends[::-1], ends],
            self.uses,
        )


class Unstated(Coin):
    """The same, with no law beside its envelope."""

    distribution = None


def test_an_envelope_certifies_the_whole_domain():
    found = exact_evidence(Coin(), PureDP(0.6931471805599454), Box(-1, 1))
    assert found.verdict is Verdict.CERTIFIED
    assert "all pairs of value LDP" in found.statement
    assert found.epsilon_upper == pytest.approx(math.log(2), rel=1e-15)


def test_an_envelope_refutes_with_its_two_inputs():
    for kind in (Coin, Unstated):
        found = exact_evidence(kind(uses=2, dimension=2), PureDP(1.0), Box(-1, 1, 2))
        assert found.verdict is Verdict.VIOLATED
        assert found.epsilon_lower == pytest.approx(2 * math.log(2), rel=1e-15)
        assert found.counterexample.pair == "[-1.,-1.] | [1.,1.]"
        loses = (
            "2 coordinates lose as much each"
            if kind is Unstated
            else "a factor of 4 = e^1.386"
        )
        assert loses in found.counterexample.explanation


def test_an_envelope_of_another_domain_is_an_error():
    with pytest.raises(AdjacencyError, match="outside the box"):
        exact_evidence(Coin(), PureDP(1.0), Box(-0.5, 0.5))


def test_without_an_envelope_a_continuum_is_searched():
    """P(1) = 1/2 for x = 0 and above, and less and less below 0: the listed pairs see it, and so does the search."""

    class Knee:
        name = "knee"

        def distribution(self, data):
            p = Fraction(1, 2) + Fraction(min(float(data[0]), 0.0)) * THIRD
            return FiniteLaw(np.array([0, 1]), [1 - p, p])

    clean = exact_evidence(Knee(), PureDP(2.0), Box(-1, 1))
    assert clean.verdict is Verdict.NOT_REFUTED
    assert "that a search came across" in clean.statement
    assert clean.epsilon_lower == pytest.approx(math.log(3))
    assert clean.epsilon_upper is None
    broken = exact_evidence(Knee(), PureDP(0.1), Box(-1, 1))
    assert broken.verdict is Verdict.VIOLATED
    assert broken.epsilon_lower == pytest.approx(math.log(3))


def test_the_search_finds_what_no_listed_pair_shows_and_makes_it_small():
    """Only records whose second coordinate is above three quarters of the range are told apart."""

    class Corner:
        name = "corner"

        def distribution(self, data):
            p = (
                Fraction(9, 10)
                if len(data) > 1 and 0.75 < data[1] < 1
                else Fraction(1, 2)
            )
            return FiniteLaw(np.array([0, 1]), [1 - p, p])

    found = exact_evidence(Corner(), PureDP(1.0), Box(0, 1, 3, shortest=1), seed=3)
    assert found.verdict is Verdict.VIOLATED
    assert found.epsilon_lower == pytest.approx(math.log(5))
    assert len(found.counterexample.pair.split("|")[0].split(",")) == 2


@dataclass(frozen=True)
class Noisy:
    """Additive noise with a declared sensitivity."""

    family: str
    sensitivity: float = 1.0
    name = "noisy"

    @property
    def norm(self):
        return "l2" if self.family == "gaussian" else "l1"

    def distribution(self, data):
        if self.family == "gaussian":
            return GaussianLaw(np.asarray(data, float), 2.0)
        return LaplaceLaw(np.asarray(data, float), np.full(len(data), 2.0))


def test_noise_around_a_query_of_declared_sensitivity_is_certified_given_it():
    found = exact_evidence(Noisy("gaussian"), GaussianDP(0.5), QueryAnswers(3))
    assert (found.epsilon_lower, found.epsilon_upper) == (0.5, 0.5)
    delta = GaussianDP(0.5).delta_at(1.0)
    assert (
        exact_evidence(
            Noisy("gaussian"), ApproxDP(1.0, delta * 1.000001), QueryAnswers(3)
        ).verdict
        is Verdict.CERTIFIED
    )
    assert (
        exact_evidence(
            Noisy("gaussian"), ApproxDP(1.0, delta * 0.999999), QueryAnswers(3)
        ).verdict
        is Verdict.VIOLATED
    )


def test_a_wrong_declared_sensitivity_certifies_nothing_that_a_pair_refutes():
    """All three answers change: the listed pairs are √3 apart, and the declared 1 does not hide them."""
    found = exact_evidence(Noisy("gaussian"), GaussianDP(0.5), QueryAnswers(3, "all"))
    assert found.verdict is Verdict.VIOLATED
    assert found.epsilon_lower == pytest.approx(math.sqrt(3) / 2)
    assert (
        exact_evidence(Noisy("laplace"), PureDP(0.5), QueryAnswers(3, "all")).verdict
        is Verdict.VIOLATED
    )


def test_step_laws_are_compared_as_they_are():
    class Shift:
        name = "shift"

        def distribution(self, data):
            return StepLaw([data, data + 2, data + 3], [Fraction(2, 5), Fraction(1, 5)])

    found = exact_evidence(Shift(), ApproxDP(0.1, 0.05), AnyValues([0, 1]))
    assert found.verdict is Verdict.VIOLATED
    assert "any number in" in found.counterexample.output
    assert found.details.curve


def test_which_mechanisms_state_a_law_for_which_neighbours():
    class OnlyEnvelope:
        envelope = Coin.envelope

    assert has_exact_law(OnlyEnvelope(), Box(-1, 1))
    assert not has_exact_law(OnlyEnvelope(), AnyValues([0, 1]))
    assert has_exact_law(Coin(), AnyValues([0, 1]))
