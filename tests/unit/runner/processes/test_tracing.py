"""What is put together of the traces of an audit's pairs."""

import math
from pathlib import Path

import pytest
from hypothesis import strategies as st

from auditdp.adjacency import AnyValues, Neighbours, Pair, Rows
from auditdp.auditing.declaration import Audit
from auditdp.claims.curves import ZeroConcentratedDP
from auditdp.claims.statements import ApproxDP, PureDP
from auditdp.errors import AdjacencyError, ConfigurationError
from auditdp.runner.audit_traces import generated_pairs, traced
from auditdp.runner.run_record import TRACED

HERE = Path(__file__).parent


def of(function, claim, pairs, *, count=0, seed=0, **options):
    audit = Audit(function, claim, pairs, **options)
    return traced(audit, "audit.py::it", HERE, pairs=count, seed=seed)


def response(bit, rng):
    return bit if rng.random() < 0.75 else 1 - bit


def two_sums(rows, rng):
    total = sum(rows) + rng.laplace(scale=4.0)
    return [total, len(rows) + rng.laplace(scale=2.0)]


def test_a_row_has_the_largest_numbers_of_all_pairs_and_the_level_is_that_of_one_pair():
    found = of(two_sums, PureDP(2.0), [([], [1]), ([], [4]), ([1], [1, 2])])
    assert [(line.moved, line.loss, line.share) for line in found.lines] == [
        (4, 1, 0.5),
        (1, 0.5, 0.25),
    ]
    assert found.level == 1.5
    assert {line.file for line in found.lines} == {Path(__file__).name}
    assert found.bounded == found.pairs == 3


def test_what_chance_decides_has_the_loss_of_the_law_of_the_output():
    """Randomised response that keeps a bit with probability 3/4 loses ln 3, although its coin does not depend on it."""
    found = of(response, PureDP(1.0), AnyValues((0, 1)))
    (line,) = found.lines
    assert (line.family, line.scale, line.moved) == ("coin", "", 0)
    assert line.loss == pytest.approx(math.log(3))
    assert found.level == pytest.approx(math.log(3))
    assert found.result.startswith("line ")
    assert "loses more than the claim" in found.result
    assert of(response, PureDP(1.1), AnyValues((0, 1))).result.startswith(
        "at most ε = 1.09861 on 1 pair traced"
    )


def test_losses_are_in_the_parameter_of_the_claim():
    def noisy(rows, rng):
        return len(rows) + rng.normal(scale=2.0)

    found = of(noisy, ZeroConcentratedDP(0.2), [([], [1])])
    assert found.parameter == "rho"
    assert found.level == pytest.approx(
        1 / 8
    )  # Δ²/2σ², Bun & Steinke 2016, Proposition 1.6
    assert found.lines[0].share == pytest.approx(1 / 1.6)
    assert found.result.startswith("at most ρ = 0.125 ")
    approximate = of(noisy, ApproxDP(1.0, 1e-5), [([], [1])])
    assert approximate.level > 1
    assert approximate.findings[0].kind == "loss"


def test_a_law_that_is_not_known_has_no_loss_and_infinite_ones_come_back_from_json():
    def odd(rows, rng):
        return len(rows) + rng.beta(2, 3), (len(rows) + rng.poisson(3.0))

    found = of(odd, PureDP(1.0), [([], [1])])
    assert None in [line.loss for line in found.lines]
    assert found.bounded == 0
    assert "part of the code is opaque" in found.result

    def scaled(rows, rng):
        return rng.laplace(scale=1.0 + len(rows)) + 0.5

    infinite = of(scaled, PureDP(1.0), [([], [1])])
    assert infinite.level == math.inf
    assert TRACED.validate_json(TRACED.dump_json(infinite)) == infinite


def test_a_finding_is_on_the_pair_where_it_shows_most():
    found = of(two_sums, PureDP(1.0), [([], [1]), ([], [5]), ([], [9]), ([1], [1, 6])])
    (finding,) = found.findings
    assert (finding.pair, finding.pairs) == ("[] | [9]", 3)
    assert finding.pair in found.result


@pytest.mark.parametrize("count", [0, 8])
def test_generated_pairs_are_neighbours_and_not_listed(count):
    pairs, listed = Rows(st.integers(0, 9), "add/remove", most=4), [Pair([1], [])]
    made = generated_pairs(pairs, listed, count, 1)
    for pair in made:
        pairs.check(pair)
    both = [*listed, *made]
    sides = {frozenset((tuple(pair.data), tuple(pair.neighbour))) for pair in both}
    assert len(sides) == 1 + count


def test_where_all_pairs_are_listed_none_is_generated():
    assert of(response, PureDP(2.0), AnyValues((0, 1)), count=20).generated == 0


def test_what_has_no_mechanism_no_pairs_or_no_neighbours_is_refused():
    with pytest.raises(AdjacencyError, match="not neighbours"):
        of(response, PureDP(1.0), Neighbours([(0, 1)], relation=lambda a, b: a == b))
    with pytest.raises(ConfigurationError, match="lists no pairs"):
        of(response, PureDP(1.0), Empty())


class Empty:
    name = "nothing"

    def check(self, pair):
        raise AdjacencyError(f"no neighbours: {pair}")

    def pairs(self):
        return []

    def exhaustive(self):
        return None
