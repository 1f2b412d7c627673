"""What is found of newer papers' claims and code, by another route than the audits."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import binom, norm

from auditdp.accountants import NodeLevelRDP
from mechanisms.link_ldp.blink import posterior
from mechanisms.message_passing import counted_hops


def test_a_link_that_both_ends_report_loses_twice_epsilon():
    """Both bits 0 and both noisy degrees below 0: .7 + .3 for either user, with floats."""
    keep = 1 / (1 + math.exp(-0.3))
    without, with_link = keep * 0.5, (1 - keep) * 0.5 * math.exp(-0.7)
    assert 2 * math.log(without / with_link) == pytest.approx(2)


def test_fresh_messages_add_up():
    """Of two runs on one list the same output, twice."""
    keep = 1 / (1 + math.exp(-0.3))
    losses = [math.log(keep / (1 - keep)) + 0.7] * 2
    assert sum(losses) == pytest.approx(2)
    assert 128 * 5 + 30 == 670


@pytest.mark.parametrize("flip", [0.1, 0.45])
def test_the_posterior_of_blink_is_that_of_bayes(flip):
    for prior, bits in product((0.01, 0.6), product((0, 1), repeat=2)):
        given = [
            math.prod(1 - flip if bit == link else flip for bit in bits)
            for link in (1, 0)
        ]
        bayes = given[0] * prior / (given[0] * prior + given[1] * (1 - prior))
        assert posterior(sum(bits), prior, flip) == pytest.approx(bayes)


@pytest.mark.parametrize(
    ("c", "hops"), [(Fraction(1, 2), 16), (Fraction(9, 10), 10), (Fraction(9, 10), 2)]
)
def test_the_formula_for_hops_is_the_linear_hop(c, hops):
    """(Σ c^i)²/Σ c^(2i), in fractions; where the formula has a minimum, it is never K."""
    shift, variance = (
        sum(c**i for i in range(hops)),
        sum(c ** (2 * i) for i in range(hops)),
    )
    assert counted_hops(float(c), hops) == pytest.approx(float(shift**2 / variance))
    assert shift**2 / variance <= hops


def test_hops_at_the_default_of_the_code():
    assert counted_hops(0.9, 10) == pytest.approx(9.175, abs=1e-3)
    assert counted_hops(0.9, 2) == pytest.approx(1.994, abs=1e-3)
    assert counted_hops(0.9, 10_000) == pytest.approx(19)


def test_caribou_leaves_no_noise_between_the_features_of_an_isolated_node():
    """The difference of a node's features: c·α₁·Â of the noises' differences, and means cancel."""
    for linked, expected in ((0.0, 0.0), (1.0, 2 * (0.9 * 0.95) ** 2)):
        passed = np.array([[0, linked], [linked, 0]])
        difference = np.kron(np.eye(2), [[1, -1]])
        mean = np.kron(np.eye(2), np.full((2, 2), 0.5))
        released = 0.9 * (0.95 * np.kron(passed, np.eye(2)) + 0.05 * mean)
        covariance = difference @ released @ released.T @ difference.T
        assert np.diag(covariance) == pytest.approx([expected, expected])


def test_assigning_to_a_state_dict_changes_no_weight():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    layer.state_dict()["weight"] = (
        torch.nn.functional.normalize(layer.state_dict()["weight"], p=2, dim=0) * 1e-8
    )
    assert torch.equal(layer.weight, before)


def encoder_gradient(rows, bias, head, labels):
    """Per-row gradients of weights and bias of a linear encoder W = 0 with a fixed head, clipped at 1."""
    hidden = rows @ np.zeros((rows.shape[1], len(bias))) + bias
    scores = np.exp(hidden @ head)
    slopes = (
        scores / scores.sum(axis=1, keepdims=True) - np.eye(head.shape[1])[labels]
    ) @ head.T
    gradients = np.concatenate(
        [rows[:, :, None] * slopes[:, None, :], slopes[:, None, :]], axis=1
    )
    flat = gradients.reshape(len(rows), -1)
    return flat / np.maximum(1, np.linalg.norm(flat, axis=1, keepdims=True))


def test_a_node_moves_the_sum_of_its_neighbours_gradients_in_one_direction():
    """A hundred rows of one class lose their only neighbour: 20 times C is what the noise of the code is for."""
    degree, head = 100, np.array([[8.0, -8.0], [0.0, 0.0]])
    labels = np.ones(degree, dtype=int)
    linked, alone = np.ones((degree, 1)), np.zeros((degree, 1))
    sums = [
        encoder_gradient(rows, np.array([0.1, 0.0]), head, labels).sum(axis=0)
        for rows in (linked, alone)
    ]
    moved = np.linalg.norm(sums[0] - sums[1])
    assert moved == pytest.approx(
        degree * math.sqrt(0.5 + (1 - math.sqrt(0.5)) ** 2), rel=1e-9
    )
    assert moved > 3.7 * 2 * math.sqrt(degree + 1)


def test_the_encoder_of_dpdgc_by_a_central_limit():
    """Mean shift alone: √T·E[ρ]/(2λ√(D+1)) standard deviations, against at most √(T(e − 1))·q of one record at λ = 1."""
    steps, rate, degree = 400, 256 / 10_240, 100
    shown = math.sqrt(steps) * rate * degree / (2 * math.sqrt(degree + 1))
    assert shown > 2.4
    claimed = (
        norm.isf(1e-5) * shown + shown**2 / 2
    )  # about the ε at δ of a Gaussian with that mean
    assert claimed > 13


def ball(radius, distance):
    """The probability that noise of density e^(−r)/(4πr), a = 1, is within a ball at a distance, by quadrature."""
    if not distance:
        return quad(lambda r: r * math.exp(-r), 0, radius)[0]

    def density(angle, r):
        away = math.sqrt(r * r + distance**2 - 2 * r * distance * math.cos(angle))
        return r * r * math.sin(angle) * math.exp(-away) / (2 * away)

    return dblquad(density, 0, radius, 0, math.pi)[0]


def test_laplace_noise_in_three_coordinates_has_no_pure_epsilon():
    near, far = ball(0.2, 0.0), ball(0.2, 1.0)
    assert (near, far) == pytest.approx((0.0175230963064, 0.000984941500433))
    assert math.log(ball(0.002, 0.0) / ball(0.002, 1.0)) > 7.5
    assert near - math.e * far > 0.0148


def test_laplace_noise_in_many_coordinates_shows_its_scale():
    """In the limit W is known: E over W of the Gaussian δ(1) with μ = 1/√(2W), 0 for one number."""

    def delta(w):
        mu = 1 / math.sqrt(2 * w)
        return norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)

    assert quad(lambda w: delta(w) * math.exp(-w), 1e-9, 60, limit=200)[
        0
    ] == pytest.approx(0.187, abs=5e-4)


def test_batches_with_replacement_lose_more_than_the_accountant_says():
    """δ of Σ_k Bin(k; 6, 1/3) N(k/2, 1) against N(0, 1) at the accountant's ε, by quadrature."""
    epsilon = NodeLevelRDP(noise=4.0, nodes=6, reached=2, batch=6, steps=1).epsilon_at(
        1 / 60
    )
    weights = binom.pmf(range(7), 6, 1 / 3)

    def excess(x):
        shifted = sum(w * norm.pdf(x, k / 2) for k, w in enumerate(weights))
        return max(0.0, shifted - math.exp(epsilon) * norm.pdf(x))

    assert quad(excess, 0, 12, points=[2, 3, 4], limit=200)[0] > 1.4 / 60


def test_a_threshold_from_the_data_shows_itself():
    """Standard deviations 8 and .08: beyond 4 with probability .6 and 0."""
    sizes = [
        np.percentile(values, 75)
        for values in ([0.01, 0.01, 0.01, 1, 1], [0.01, 0.01, 0.01, 0.01, 1])
    ]
    assert sizes == pytest.approx([1, 0.01])
    beyond = [norm.sf(4, 2.03, 8) + norm.cdf(-4, 2.03, 8), norm.sf(4, 0.05, 0.08)]
    assert beyond[0] > 0.6
    assert beyond[1] < 1e-300


def kept(in_degree, bound):
    """The probability that the sampler keeps one edge into a node: drawn, and no more than ``bound`` are."""
    p = Fraction(bound, 2 * in_degree)
    return sum(
        p ** sum(drawn) * (1 - p) ** (in_degree - sum(drawn))
        for drawn in product((0, 1), repeat=in_degree)
        if drawn[0] and sum(drawn) <= bound
    )


def test_a_removed_node_changes_more_subgraphs_than_its_own():
    """Its 100 neighbours have 5 other in-neighbours each, all different; the published bound is K + 1 = 6.

    However the samples are paired, an edge is kept in one of them only with at least the difference of probabilities.
    """
    with_node, without = kept(6, 5), kept(5, 5)
    assert without == Fraction(1, 2)
    assert 500 * (without - with_node) > 44
