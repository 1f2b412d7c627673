"""What covers all neighbours, what that rests on, and what contradicts it."""

import numpy as np
import pytest
from flint import arb

from auditdp.adjacency import AnyValues, Neighbours
from auditdp.claims.statements import PureDP
from auditdp.evidence.exact_coverage import additive, enclosed, enumerated, searched
from auditdp.evidence.exact_losses import PairLoss
from auditdp.evidence.exact_noise import declared_noise
from auditdp.evidence.loss_of_laws import stated_by
from auditdp.mechanism.capabilities import capabilities
from auditdp.mechanism.laws import LaplaceLaw

BITS, LISTED = AnyValues((0, 1)), Neighbours([(0, 1)])
LOSS = PairLoss(arb(1), arb(1), "a statement")


class Sum:
    """A sum with Laplace noise."""

    name, sensitivity, norm = "sum", 2.0, "l1"

    def distribution(self, data):
        return LaplaceLaw(np.array([float(data)]), np.array([4.0]))


def noise(mechanism=Sum):
    able = capabilities(mechanism())
    return declared_noise(able, stated_by(able, PureDP(1.0)), 0)


COVERING = {
    "enumerated": enumerated(LISTED, 12),
    "alike": enumerated(LISTED, 12, reordered=200),
    "enclosed": enclosed(LISTED, LOSS),
    "additive": additive(LISTED, noise(), LOSS, "3 pairs"),
}
CONTRADICTED = {
    "unlike": enumerated(LISTED, 12, 200, unlike="it loses more"),
    "beyond": enclosed(LISTED, LOSS, 7, beyond="it loses more"),
    "departing": additive(LISTED, noise(), LOSS, "3 pairs", departure="it loses more"),
}


@pytest.mark.parametrize("cover", COVERING.values(), ids=COVERING)
def test_what_nothing_contradicts_covers_all(cover):
    assert cover.unchecked == ""
    assert LISTED.name in cover.scope
    assert "all " in cover.scope


@pytest.mark.parametrize("cover", CONTRADICTED.values(), ids=CONTRADICTED)
def test_what_a_pair_contradicts_covers_nothing_and_assumes_nothing(cover):
    assert cover.unchecked == "it loses more"
    assert cover.bound is None
    assert cover.assumptions == ()


def test_bounds_are_of_the_envelope_or_of_the_sensitivity():
    assert COVERING["enclosed"].bound is COVERING["additive"].bound is LOSS
    assert COVERING["enumerated"].bound is COVERING["alike"].bound is None
    assert noise().bound({}).upper == pytest.approx(0.5)  # 2/4


def test_each_says_what_it_rests_on():
    assert not COVERING["enumerated"].assumptions
    assert enumerated(BITS, 1).assumptions == [
        "scope: these values are the whole domain"
    ]
    assert enumerated(BITS, 1).scope.startswith("the only pair of ")
    (alike,) = COVERING["alike"].assumptions
    assert "treats nodes alike: true on 200 pairs" in alike
    (envelope,) = COVERING["enclosed"].assumptions
    assert "no law was there to compare" in envelope
    (compared,) = enclosed(LISTED, LOSS, 1).assumptions
    assert (
        "its law lost no more on 1 pair, and that is searched, not proved" in compared
    )
    model, answers = COVERING["additive"].assumptions
    assert model.startswith(
        "the noise has one scale and shape, whatever the data: true on 3 pairs"
    )
    assert "at most 2 apart in l1" in answers


def test_a_query_is_named_where_there_is_one():
    class WithQuery(Sum):
        def query(self, data, rng):
            return data

    assert (
        "around its query" in additive(LISTED, noise(WithQuery), LOSS, "3 pairs").scope
    )


def test_a_search_covers_nothing_and_says_what_would():
    assert searched(LISTED, "3 pairs", "list fewer nodes").unchecked.endswith(
        "were covered; list fewer nodes"
    )
    assert searched(LISTED, "3 pairs").unchecked.endswith("were covered")
    assert searched(LISTED, "3 pairs").bound is None
