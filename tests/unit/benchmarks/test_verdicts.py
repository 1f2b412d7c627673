"""The standing adversary: its truths are true, and a wrong verdict is counted."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from auditdp import (
    AccountedDP,
    ApproxDP,
    GaussianDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from auditdp.evidence import exact
from auditdp.mechanism.laws import precision
from auditdp.numerics.balls import ball
from benchmarks.parts import Options
from benchmarks.verdicts import part
from benchmarks.verdicts.case import ALPHA, NEVER, Case
from benchmarks.verdicts.quadrature import Mixture, Permuted
from benchmarks.verdicts.truth import (
    BITS,
    Between,
    Finite,
    GaussianPair,
    LaplacePair,
    Worst,
    holds,
    level,
)

THIRD = Fraction(1, 3)
with precision(BITS):
    TWO, ONE, NONE = ball(1 - THIRD), ball(THIRD), arb(0)
RESPONSE = Finite([TWO, ONE], [ONE, TWO])
"""Randomised response of ε = ln 2."""


def number(limits):
    """The middle of two ends that are next to each other."""
    low, high = (float(end.mid()) for end in limits)
    assert low == pytest.approx(high, rel=1e-5)
    return (low + high) / 2


# truths


@pytest.mark.parametrize(
    ("claim", "known"),
    [
        (PureDP(1.0), math.log(2)),
        (ApproxDP(1.0, 1 / 12), math.log(7 / 4)),  # ln((2/3 - 1/12)/(1/3))
        (RenyiDP(2.0, 1.0), math.log(3 / 2)),  # ln(4/3 + 1/6)
        (GaussianDP(1.0), 0.8614545985),  # 2 Φ⁻¹(2/3), by a table
    ],
)
def test_levels_of_randomised_response(claim, known):
    assert number(level(RESPONSE, claim)) == pytest.approx(known, rel=1e-9)


def test_claims_next_to_the_truth_are_told_apart():
    below = math.log(2)  # as a double
    edge = (2 - math.exp(0.5)) / 3
    rho = number(RESPONSE.rho()[:1] * 2)
    assert rho < math.log(2) ** 2 / 2  # Bun & Steinke (2016), Proposition 1.4
    for false, true in (
        (PureDP(below), PureDP(math.nextafter(below, 1))),
        (ApproxDP(0.5, edge * (1 - 1e-13)), ApproxDP(0.5, edge * (1 + 1e-13))),
        # 1/3 and .0593
        (accounted(0.05), accounted(0.06)),
        (ZeroConcentratedDP(rho * 0.999), ZeroConcentratedDP(rho * 1.02)),
    ):
        assert holds(RESPONSE, false) is False
        assert holds(RESPONSE, true) is True


def accounted(delta):
    return AccountedDP([(0.0, 0.34), (0.6, delta)], quoted=delta)


def test_a_loss_is_infinite_where_one_input_alone_gives_an_output():
    revealing = Finite([TWO, ONE, NONE], [TWO, NONE, ONE])
    for claim in (
        PureDP(50.0),
        GaussianDP(50.0),
        RenyiDP(2.0, 50.0),
        ZeroConcentratedDP(50.0),
    ):
        assert holds(revealing, claim) is False
    assert holds(revealing, ApproxDP(0.1, 0.34)) is True


def test_closed_forms_agree_with_fine_cells():
    """Cells are post-processing, so that they lose no more than the laws.

    They lose next to as much.
    """
    ends = np.arange(-8.0, 9.0 + 0.01, 0.05)
    with precision(BITS):

        def tail(x, centre):
            below = (-(abs(arb(float(x)) - centre))).exp() / 2
            return below if x < centre else 1 - below

        laws = [
            [b - a for a, b in zip([arb(0), *tails], [*tails, arb(1)], strict=True)]
            for tails in ([tail(x, c) for x in ends] for c in (0, 1))
        ]
        cells, pair = Finite(*laws), LaplacePair(arb(1))
        for of in (
            lambda t: t.epsilon(arb(0)),
            lambda t: t.epsilon(arb(0.1)),
            lambda t: t.renyi(arb(2)),
            lambda t: t.rho(),
        ):
            low, high = float(of(cells)[0]), float(of(pair)[1])
            assert low <= high * (1 + 1e-9)
            assert low == pytest.approx(high, rel=0.02)
        assert float(GaussianPair(arb(1)).epsilon(arb(1e-5))[0]) == pytest.approx(
            4.377, abs=1e-3
        )  # Balle & Wang (2018)


def test_quadratures_agree_with_closed_forms():
    with precision(BITS):
        two = Mixture(1.5, (0.0, 1.0), (0.0, 1.0), 2)  # every record in every batch
        one = Mixture(1.0, (0.0, 1.0), (0.8, 0.2), 1)
        for epsilon in (0.0, 0.5, 2.0):
            gaussian = GaussianPair(arb(2).sqrt() / arb(1.5)).delta(arb(epsilon))[0]
            assert number(two.delta(arb(epsilon))) == pytest.approx(
                float(gaussian), rel=1e-5
            )
            amplified = 0.2 * float(
                GaussianPair(arb(1)).curve((1 + arb(epsilon).expm1() / arb(0.2)).log())
            )
            assert float(one.delta(arb(epsilon))[0]) == pytest.approx(
                amplified, rel=1e-5
            )  # the removal is the worse
        assert number(two.renyi(arb(2))) == pytest.approx(
            2 * 2 / (2 * 1.5**2), rel=1e-5
        )
        shuffled, whole = Permuted(1.0, 2), GaussianPair(arb(1))
        for epsilon in (0.0, 0.5, 1.5):
            assert (
                0
                < float(shuffled.delta(arb(epsilon))[0])
                < float(whole.delta(arb(epsilon))[0])
            )


def test_what_lies_between_is_not_decided():
    with precision(BITS):
        between = Between(LaplacePair(arb(1)), LaplacePair(arb(2)))
        assert [holds(between, PureDP(e)) for e in (0.9, 1.5, 2.1)] == [
            False,
            None,
            True,
        ]
        assert (
            number(Worst([LaplacePair(arb(1)), LaplacePair(arb(2))]).epsilon(arb(0)))
            == 2
        )


# cases


@pytest.mark.full
def test_a_case_is_the_same_again_whatever_was_before_it():
    first, again = part.carried_out(1, 14), part.carried_out(1, 14)
    assert (first.told, first.said) == (again.told, again.said)
    assert first.said
    assert part.carried_out(2, 14).told != first.told
    assert [Case(1, n).alpha for n in (0, 1)] == [NEVER, ALPHA]


@pytest.mark.full
def test_an_auditor_that_certifies_all_is_found_out(monkeypatch):
    monkeypatch.setattr(exact, "_judge", lambda loss, claim: (True, False))
    counted = part.chunk(3, 100, 20)
    wrong = [
        each for each in counted["wrong"] if "CERTIFIED of a false claim" in each["why"]
    ]
    assert len(wrong) >= 2
    assert wrong[0]["command"].startswith("python -m benchmarks verdicts --case 1")
    assert sum(row.get("wrong", 0) for row in counted["rows"].values()) >= len(wrong)
    assert part.view({"cases/0": counted}).bars[0].met is False


def test_no_verdict_of_thirty_cases_is_wrong(repeats):
    """Errors of α may come, and are counted by kind of evidence.

    One more than is allowed here comes one time in a thousand.
    """
    view = part.view({"cases/0": part.chunk(20240229, 60, repeats(30, least=10))})
    assert [bar.met for bar in view.bars] == [None, None, None], [
        table.rows for table in view.tables[1:]
    ]


def test_rates_are_held_against_alpha_and_units_cover_the_cases():
    counts = {"cases": 200, "tried": 100, "VIOLATED": 14}
    for by_chance, met in ((14, False), (part.limit(100), True)):
        row = counts | {"by chance": by_chance}
        found = {"rows": {"game: PureDP": row}, "cases": 5_000, "wrong": []}
        bars = part.view({"cases/0": found}).bars
        assert [bar.met for bar in bars] == [True, met, True]
    units = part.units(Options(seed=1, repeats=120)).values()
    assert sum(unit.args[2] for unit in units) == 120
    assert len(part.units(Options(seed=1))) * part.CHUNK == part.CASES
