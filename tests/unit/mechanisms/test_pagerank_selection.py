"""DP-APPR-EM: laws of the K largest, budgets as the theorems state them, readings of who is a candidate, and errors."""

import math

import numpy as np
import pytest
from flint import arb

from auditdp import Nodes, Pair, QueryAnswers
from auditdp.errors import MechanismError
from auditdp.evidence.loss_of_laws import laplace_loss, pair_loss
from auditdp.mechanism.laws import precision
from mechanisms.graphs import Graph
from mechanisms.pagerank import (
    DPApprEM,
    DPApprEMValues,
    GivenRows,
    PlainRows,
    PublicRows,
    SampledRows,
    SelectedValues,
    entry_epsilon,
    row_epsilon,
    share_of_row,
)

RNG = np.random.default_rng
CLIP = 0.001
PATH = np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]])


def of_outcomes(law):
    return {
        tuple(y): float(p.mid())
        for y, p in zip(law.outcomes.tolist(), law.probabilities, strict=True)
    }


def test_corollary_1_by_hand():
    """K = 2, ε = .25: 2·min{.5, .5·tanh .25 + .25·√(4 ln 1000)} = 1; and where the second term is the less."""
    assert row_epsilon(0.25, 2, 1e-3) == 1.0
    growth = math.exp(0.02)
    by_formula = 2 * (
        500 * 0.01 * (growth - 1) / (growth + 1)
        + 0.01 * math.sqrt(1000 * math.log(1e6))
    )
    assert row_epsilon(0.01, 500, 1e-6) == pytest.approx(by_formula, rel=1e-12)
    assert by_formula < 2 * 500 * 0.01
    assert row_epsilon(0.5, 3, 1e-3, each=1) == 1.5


def test_theorem_1_by_hand():
    """ε_g = 8 and M = 70 at δ = 1e-4 leave ε₁ = 8/(2√(70 ln(e + 8/.014))) = 4/√(70·6.35289) for a row."""
    assert share_of_row(8.0, 70, 1e-4) == pytest.approx(
        4 / math.sqrt(70 * 6.35289), rel=1e-6
    )
    assert share_of_row(1.0, 1, 0.5) == pytest.approx(
        1 / (2 * math.sqrt(math.log(math.e + 1)))
    )


@pytest.mark.parametrize("k", [1, 2, 30, 1000])
@pytest.mark.parametrize("row", [1e-3, 0.2, 5.0])
def test_entry_budgets_are_inverse(row, k):
    epsilon = entry_epsilon(row, k, 1e-4)
    assert row * (1 - 1e-8) < row_epsilon(epsilon, k, 1e-4) <= row


def test_one_selection_loses_nearly_twice_epsilon():
    """One entry rises and m fall: the odds of the one change by e^ε(me^ε + 1)/(m + e^ε), which comes to e^2ε."""
    epsilon, m = 0.7, 8
    mechanism = DPApprEM(epsilon, 1, GivenRows(m + 1))
    low = CLIP * (np.arange(m + 1) == 0)
    exact = pair_loss(mechanism.distribution(low), mechanism.distribution(CLIP - low))
    growth = math.exp(epsilon)
    assert exact.lower == pytest.approx(
        math.log(growth * (m * growth + 1) / (m + growth)), rel=1e-9
    )
    assert epsilon < exact.upper < 2 * epsilon


def test_rows_are_clipped_and_compared_by_indices_only():
    graph_row = DPApprEM(1.0, 2, PublicRows(4)).query(PATH, RNG(0))
    np.testing.assert_allclose(graph_row, [[CLIP, CLIP, CLIP, 0]])
    law = of_outcomes(DPApprEM(1.0, 1, PublicRows(4)).distribution(PATH))
    assert law[(3,)] == pytest.approx(1 / (1 + 3 * math.e), rel=1e-9)


def test_all_pairs_of_entries_keep_corollary_1():
    mechanism = DPApprEM(0.4, 2, GivenRows(3), ordered=True)
    losses = [
        pair_loss(
            mechanism.distribution(pair.data), mechanism.distribution(pair.neighbour)
        )
        for pair in QueryAnswers(3, "all", CLIP, largest=1).exhaustive()
    ]
    assert max(loss.upper for loss in losses) <= row_epsilon(0.4, 2, 1e-9)


def test_two_rows_are_independent():
    rows = np.array([[CLIP, 0, 0], [0, 0, CLIP]])
    both = of_outcomes(DPApprEM(1.0, 1, GivenRows(3, 2)).distribution(rows))
    one, other = (
        of_outcomes(DPApprEM(1.0, 1, GivenRows(3)).distribution(row)) for row in rows
    )
    assert both[(0, 1)] == pytest.approx(one[(0,)] * other[(1,)])


GONE = np.diag([1, 1, 0, 0]).astype(np.int8)
"""Two isolated nodes, and two ids whose nodes are not there."""


def test_candidates_are_the_universe_or_the_nodes():
    universe = DPApprEM(1.0, 2, PublicRows(4)).distribution(GONE)
    assert len(universe.outcomes) == 6
    present = DPApprEM(1.0, 3, PublicRows(4), candidates="present")
    assert of_outcomes(present.distribution(GONE)) == {(-1, 0, 1): 1.0}
    assert present(GONE, 5, rng=RNG(0)).tolist() == [[-1, 0, 1]] * 5


def test_sampled_rows_name_their_nodes():
    mechanism = DPApprEM(1.0, 1, SampledRows(4, 1))
    law = of_outcomes(mechanism.distribution(GONE))
    assert {who for who, _ in law} == {0, 1}
    assert law[(0, 0)] == pytest.approx(math.e / (math.e + 3) / 2)
    assert set(mechanism(GONE, 50, rng=RNG(0))[:, 0].tolist()) == {0, 1}
    anybody = of_outcomes(
        DPApprEM(1.0, 1, SampledRows(4, 1, "universe")).distribution(GONE)
    )
    assert anybody[(3, 0)] == pytest.approx(1 / 16)


def test_more_rows_than_nodes():
    mechanism = DPApprEM(1.0, 2, SampledRows(4, 3))
    outcomes = mechanism.distribution(GONE).outcomes
    assert (outcomes[:, :3] == [0, 1, -1]).all()
    assert (outcomes[:, -2:] == -1).all()
    assert (mechanism(GONE, 20, rng=RNG(0))[:, [2, 7, 8]] == -1).all()
    nobody = DPApprEM(1.0, 1, SampledRows(4, 1), candidates="present")
    assert of_outcomes(nobody.distribution(np.zeros((4, 4)))) == {(-1, -1): 1.0}
    assert nobody(np.zeros((4, 4)), 2, rng=RNG(0)).tolist() == [[-1, -1]] * 2


def test_plain_rows_are_the_rows():
    mechanism, rows = PlainRows(PublicRows(4, (0, 1))), PublicRows(4).of(PATH, (0, 1))
    assert mechanism(PATH, 3, rng=RNG(0)).tolist() == [rows.ravel().tolist()] * 3
    law = mechanism.distribution(PATH)
    assert law.outcomes.tolist() == [rows.ravel().tolist()]
    assert law.floats.tolist() == [1.0]


def test_a_released_node_is_there():
    """M/N for the sample and (1 − M/N)·K/N for the other rows: with K = 2 more than 2M/N."""
    full, without = np.eye(4, dtype=np.int8), np.diag([1, 1, 1, 0]).astype(np.int8)
    mechanism = DPApprEM(1e-6, 2, SampledRows(4, 1), candidates="present")
    exact = pair_loss(
        mechanism.distribution(full), mechanism.distribution(without), epsilon=1.0
    )
    assert float(exact.delta.mid()) == pytest.approx(1 / 4 + 3 / 4 * 2 / 4, abs=1e-5)


def test_values_have_the_density_of_their_steps():
    select = DPApprEM(1.0, 1, PublicRows(4))
    mechanism = DPApprEMValues(select, 2.0)
    assert mechanism.scale == pytest.approx(CLIP / 2)
    outputs = np.array([[3, 0.0], [0, 2 * CLIP]])
    chosen = of_outcomes(select.distribution(PATH))
    expected = [
        math.log(chosen[(3,)]) - math.log(2 * mechanism.scale),
        math.log(chosen[(0,)]) - math.log(2 * mechanism.scale) - CLIP / mechanism.scale,
    ]
    np.testing.assert_allclose(mechanism.log_prob(outputs, PATH), expected)
    np.testing.assert_allclose(
        DPApprEMValues(DPApprEM(1.0, 1, SampledRows(4, 1)), 2.0).log_prob(
            np.array([[0, 0, CLIP], [1, 0, CLIP]]), GONE
        ),
        np.log([math.e / (math.e + 3) / 2, 1 / (math.e + 3) / 2])
        - math.log(2 * mechanism.scale)
        - [0, 2],
    )


def test_values_of_padding_are_no_numbers():
    mechanism = DPApprEMValues(
        DPApprEM(1.0, 3, PublicRows(4), candidates="present"), 1.0
    )
    outputs = mechanism(GONE, 3, rng=RNG(0))
    assert np.isnan(outputs[:, 3]).all()
    assert np.isfinite(outputs[:, 4:]).all()
    assert np.isfinite(mechanism.log_prob(outputs, GONE)).all()


def test_given_values_spend_their_budget():
    mechanism, adjacency = SelectedValues(1.0, (1, 2), PublicRows(4)), Nodes(4)
    losses = [
        laplace_loss(
            mechanism.distribution(p.data), mechanism.distribution(p.neighbour)
        )
        for p in adjacency.exhaustive()
    ]
    assert max(loss.lower for loss in losses) == pytest.approx(1.0)
    assert max(loss.upper for loss in losses) <= 1.0


def test_large_graphs_are_taken_as_lists_of_edges():
    path = Graph(2000, np.stack([np.arange(1999), np.arange(1, 2000)]))
    for rows in (PublicRows(2000, (0, 5)), SampledRows(2000, 2)):
        outputs = DPApprEM(60.0, 3, rows)(path, 2, rng=RNG(0))
        ids = outputs[:, :2] if rows.labelled else np.array([[0, 5]] * 2)
        indices = outputs[:, -6:].reshape(2, 2, 3)
        assert (np.abs(indices - ids[:, :, None]) < 40).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: DPApprEM(0.0, 1, GivenRows(3)),
            "expected epsilon, a finite number > 0",
        ),
        (lambda: DPApprEM(1.0, 0, GivenRows(3)), "expected k, an integer >= 1"),
        (lambda: DPApprEM(1.0, 1, GivenRows(3), clip=-1.0), "expected clip"),
        (
            lambda: DPApprEM(1.0, 1, GivenRows(3), candidates="all"),
            "'universe' or 'present', got 'all'",
        ),
        (
            lambda: DPApprEM(1.0, 8, GivenRows(20)).distribution(np.zeros(20)),
            "125970 choices of indices, at most 16384",
        ),
        (
            lambda: DPApprEM(1.0, 1, GivenRows(3))(np.zeros(4), 1, rng=RNG(0)),
            "1 rows of 3 numbers >= 0",
        ),
        (
            lambda: DPApprEM(1.0, 1, GivenRows(2))(np.array([-1.0, 0]), 1, rng=RNG(0)),
            "1 rows of 2 numbers >= 0",
        ),
        (
            lambda: DPApprEM(1.0, 1, PublicRows(3))(PATH, 1, rng=RNG(0)),
            "a graph of 3 ids, got one of 4",
        ),
        (lambda: SampledRows(3, 0), "expected count, an integer >= 1"),
        (lambda: SampledRows(3, 1, "all"), "among='present' or 'universe', got 'all'"),
        (
            lambda: DPApprEMValues(DPApprEM(1.0, 1, GivenRows(3)), 0.0),
            "expected value_epsilon",
        ),
        (
            lambda: DPApprEMValues(DPApprEM(1.0, 1, GivenRows(3)), 1.0).log_prob(
                np.zeros((5, 3)), np.zeros(3)
            ),
            "expected outputs of 2 numbers, got 3",
        ),
        (lambda: row_epsilon(1.0, 1, 1.0), r"delta in \(0, 1\), got 1\.0"),
        (lambda: entry_epsilon(0.0, 1, 0.1), "expected row"),
    ],
)
def test_errors_show_the_value_and_the_remedy(make, message):
    with pytest.raises(MechanismError, match=message):
        make()


def test_bounded_work_of_laws():
    """Balls stay tight: the law of a set of 3 of 9 sums to 1 within 1e-60."""
    mechanism = DPApprEM(0.3, 3, GivenRows(9))
    law = mechanism.distribution(CLIP * (np.arange(9) % 2))
    with precision():
        total = sum(law.balls, arb(0))
        assert total.contains(1)
        assert float(total.rad()) < 1e-60
    pair = Pair(np.zeros(9), np.full(9, CLIP))
    assert (
        pair_loss(
            *(mechanism.distribution(x) for x in (pair.data, pair.neighbour))
        ).upper
        < 1e-12
    )
